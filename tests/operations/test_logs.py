"""Log lines say which request they belong to, and tell no values."""

import io
import logging
import re

import pytest
from django.test import Client


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
    monkeypatch.setattr("leaderboard.views.queries.newest_visible", lambda viewer: 1 / 0)
    assert client.get("/leaderboards/").status_code == 500
    assert "ZeroDivisionError: division by zero" in lines()
