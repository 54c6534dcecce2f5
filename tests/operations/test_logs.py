"""Log lines say which request they belong to, and tell no values."""

import gzip
import io
import json
import logging
import re

import pytest
from django.test import Client
from django.utils import timezone
from werkzeug import Response

from evalsite import logs
from tests.judging.outside import Installation
from tests.operations.test_health import read_only


@pytest.fixture
def lines():
    """What the console is told, line by line."""
    root, told = logging.getLogger(), io.StringIO()
    (console,) = (handler for handler in root.handlers if type(handler) is logging.StreamHandler)
    handler = logging.StreamHandler(told)
    handler.setFormatter(console.formatter)
    root.addHandler(handler)
    yield lambda: told.getvalue().splitlines()
    root.removeHandler(handler)


def test_each_line_names_its_request(db, lines):
    for path in ("/nowhere/", "/nowhere/else/"):
        Client().get(path)
    ids = [re.search(r"\brequest_id=([0-9a-f]{16})$", line)[1] for line in lines() if "nowhere" in line]
    assert len(ids) == 2
    assert len(set(ids)) == 2


def test_an_exception_is_told_without_the_values_of_variables(lines):
    secret = "-".join(("zq7", "secret"))
    try:
        raise ValueError(len(secret))
    except ValueError:
        logging.getLogger("evalsite.something").exception("It broke")
    told = "\n".join(lines())
    assert "It broke" in told
    assert "ValueError: 10" in told
    assert "zq7-secret" not in told


def test_a_refused_page_is_told_in_a_line_and_a_broken_one_with_its_traceback(client_of, lines, monkeypatch):
    client = client_of("annotator")
    client.raise_request_exception = False
    assert client.get("/people/").status_code == 403
    assert [line.split("]")[1].split("[")[0].strip() for line in lines()] == ["Forbidden (Permission denied): /people/"]
    monkeypatch.setattr("leaderboard.views.newest_visible", lambda viewer: 1 / 0)
    assert client.get("/leaderboards/").status_code == 500
    assert "ZeroDivisionError: division by zero" in lines()


@pytest.mark.django_db(transaction=True)
def test_a_request_refused_for_a_fault_of_the_machine_takes_one_line_that_gives_the_reason(client_of, lines):
    curator = client_of("curator")
    curator.raise_request_exception = False
    with read_only():
        assert curator.post("/accounts/tokens/", {"scopes": ["read"], "ends": "30"}).status_code == 503
        (page,) = lines()
        assert "/accounts/tokens/ The database cannot be written: it is read-only." in page
        assert Client().get("/readyz").status_code == 503
        (_, ready) = lines()
        assert "Not ready: database: The database cannot be written" in ready


def test_lines_of_json_name_request_run_and_item():
    record = logging.getLogger("judging.work").makeRecord(
        "judging.work", logging.INFO, "", 0, "Run %s begins", (7,), None, extra={"run": 7, "item": 3}
    )
    logs.request_id.set("0123456789abcdef")
    line = json.loads(logs.JSONFormatter().format(record))
    assert timezone.datetime.fromisoformat(line.pop("at"))
    assert line == {
        "level": "info",
        "logger": "judging.work",
        "message": "Run 7 begins",
        "request_id": "0123456789abcdef",
        "run": 7,
        "item": 3,
    }


def test_format_level_and_time_zone_are_settings(tmp_path):
    here = Installation(tmp_path / "data", f"sqlite:///{tmp_path}/data/evalsite.sqlite3")
    here.environment |= {"LOG_FORMAT": "json", "LOG_LEVEL": "warning", "TIME_ZONE": "Europe/Rome"}
    told = here.run("""
import logging
from django.utils import timezone
from werkzeug import Response
logging.getLogger("judging").info("quiet")
logging.getLogger("judging").warning("loud")
print(timezone.localtime().tzname())
""")
    (line,) = told.stderr.splitlines()
    assert json.loads(line)["message"] == "loud"
    assert told.stdout.strip() in ("CET", "CEST")
    numbers = [(name, "x") for name in ("PORT", "TRUSTED_PROXIES", "KEEP_CALLS_DAYS")]
    for name, value in (("LOG_FORMAT", "xml"), ("LOG_LEVEL", "loud"), ("TIME_ZONE", "Rome"), *numbers):
        done = here.tried("doctor", **{name: value})
        problem = done.stderr
        assert f"{name} is '{value}'" in problem.replace("LOUD", "loud")
        assert "Traceback" not in problem
        assert done.returncode == 1


def test_sentry_is_told_of_a_fault_without_variables(tmp_path, httpserver):
    told, asked = [], []
    httpserver.expect_request("/7", method="GET").respond_with_handler(
        lambda request: asked.append(request.headers) or Response("")
    )
    httpserver.expect_request(re.compile("/api/7/envelope/")).respond_with_handler(
        lambda request: told.append(gzip.decompress(request.data)) or Response("{}")
    )
    here = Installation(tmp_path / "data", f"sqlite:///{tmp_path}/data/evalsite.sqlite3")
    here.environment["SENTRY_DSN"] = f"http://public@127.0.0.1:{httpserver.port}/7"
    done = here.run("""
import logging, os, sys, sentry_sdk, urllib.request
urllib.request.urlopen(os.environ["SENTRY_DSN"].replace("public@127.0.0.1", "localhost")).close()
sys.argv.append("postgres://evalsite:password@host/name")
def breaks(criterion):
    return 1 / 0
try:
    breaks("-".join(["hidden", "words"]))
except ZeroDivisionError:
    logging.getLogger("judging").exception("Run %s stops", 7)
sentry_sdk.flush(5)
""")
    assert done.returncode == 0, done.stderr
    (envelope,) = told
    assert b"ZeroDivisionError" in envelope
    assert b"in breaks" in envelope or b'"function":"breaks"' in envelope
    assert b"hidden-words" not in envelope
    assert b"password@host" not in envelope
    (headers,) = asked
    assert not {"sentry-trace", "baggage"} & {name.lower() for name in dict(headers)}
    assert b"criterion" not in envelope.replace(b"breaks(criterion)", b"").replace(b"def breaks", b"")


def test_an_address_that_is_none_of_sentrys_is_said_in_words(tmp_path):
    here = Installation(tmp_path / "data", f"sqlite:///{tmp_path}/data/evalsite.sqlite3")
    problem = here.tried("doctor", SENTRY_DSN="junk").stderr
    assert "SENTRY_DSN is no address" in problem
    assert "Traceback" not in problem
