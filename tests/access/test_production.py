"""An installation for others than this machine: what it does not start with; Django's checks find nothing."""

import json
import os

import pytest

from tests import forks

SAFE = {
    "SECRET_KEY": "production-" + "abcdefgh01234567" * 3,
    "CRITERIA_KEYS": "dGVzdHMtb25seS1rZXktb2YtdGhpcnR5LXR3by1ieXQ=",
    "ALLOWED_HOSTS": "example.org",
}


def run(tmp_path, *arguments, **environment):
    keep = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    env = keep | {"EVALSITE_DATA": str(tmp_path)} | SAFE | environment
    return forks.run(list(arguments), environment=env)


@pytest.mark.check("D1")
def test_djangos_checks_for_production_find_nothing(tmp_path):
    done = run(tmp_path, "manage.py", "check", "--deploy", "--fail-level", "WARNING")
    assert done.returncode == 0, done.stderr


@pytest.mark.check("D5")
def test_cookies_of_production_are_secure_and_out_of_reach_of_scripts(tmp_path):
    names = ["SESSION_COOKIE_SECURE", "SESSION_COOKIE_HTTPONLY", "SESSION_COOKIE_SAMESITE", "CSRF_COOKIE_SECURE"]
    code = f"import json; from evalsite import settings as s; print(json.dumps([getattr(s, n) for n in {names}]))"
    assert json.loads(run(tmp_path, "-c", code).stdout) == [True, True, "Lax", True]


@pytest.mark.check("D9")
@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"ALLOWED_HOSTS": "*"}, "ALLOWED_HOSTS"),
        ({"ALLOWED_HOSTS": "example.org,*"}, "ALLOWED_HOSTS"),
        ({"DEBUG": "true"}, "DEBUG"),
    ],
)
def test_what_is_only_for_this_machine_does_not_start_for_others(environment, said, tmp_path):
    refused = run(tmp_path, "-c", "import evalsite.settings", **environment)
    assert refused.returncode != 0
    assert f"ImproperlyConfigured: {said}" in refused.stderr
    assert run(tmp_path, "-c", "import evalsite.settings", DEBUG="true", ALLOWED_HOSTS="localhost").returncode == 0


def test_the_log_of_a_large_import_does_not_stay_as_large(tmp_path):
    """SQLite keeps a log of 2 GB for ever unless it is told a limit."""
    code = """
import os; os.environ["DJANGO_SETTINGS_MODULE"] = "evalsite.settings"
import django; django.setup()
from django.db import connection
with connection.cursor() as cursor:
    cursor.execute("CREATE TABLE big (text)")
    cursor.execute("INSERT INTO big SELECT zeroblob(100000000)")
    for _ in range(2):
        cursor.execute("PRAGMA wal_checkpoint")
        cursor.execute("INSERT INTO big VALUES (1)")
print(os.path.getsize(connection.settings_dict["NAME"] + "-wal"))
"""
    done = run(tmp_path, "-c", code)
    assert 0 < int(done.stdout) <= 2**26, done.stderr
