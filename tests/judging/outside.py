"""An installation of its own, for tests that kill processes: data folder, database, `manage.py` in subprocesses."""

import fcntl
import json
import os
import shutil
import sqlite3
import subprocess
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from tests import forks

ROOT = Path(__file__).resolve().parents[2]
OTHER_CLOCK = """
import sys, time
from datetime import timedelta
from django.core.management import execute_from_command_line
from django.utils import timezone
true, true_time = timezone.now, time.time
timezone.now = lambda: true() + timedelta(seconds={ahead})
time.time = lambda: true_time() + {ahead}
execute_from_command_line(["manage.py", *sys.argv[1:]])
"""
HELPER = """
import json, sys, traceback
import django; django.setup()
from django.db import connections
for line in sys.stdin:
    names = {}
    try:
        exec(json.loads(line), names)
        reply = {"answer": names["answer"]}
    except BaseException:
        reply = {"error": traceback.format_exc()}
    connections.close_all()
    print(json.dumps(reply), flush=True)
"""


class Installation:
    def __init__(self, folder: Path, database: str) -> None:
        self.environment = {
            **os.environ,
            "EVALSITE_DATA": str(folder),
            "DATABASE_URL": database,
            "DJANGO_SETTINGS_MODULE": "evalsite.settings",
            "SECRET_KEY": "tests-only-" + "x" * 50,
            "CRITERIA_KEYS": "dGVzdHMtb25seS1rZXktb2YtdGhpcnR5LXR3by1ieXQ=",
            "ALLOWED_HOSTS": "testserver",
            "PORT": "0",  # any that is free: people run evalsite at the usual one beside
            "PYTHONPATH": str(ROOT),
        }
        self.environment.pop("DJANGO_ALLOW_ASYNC_UNSAFE", None)  # of the tests' own process, where a browser ran
        self._helper: forks.Forked | None = None

    def start(self, *command: str, ahead: float = 0, **environment: str) -> forks.Forked:
        """Start ``manage.py COMMAND``, with more in its environment; its output comes by pipes. Its clock may be some
        seconds ahead of the true time, or behind."""
        program = ["-c", OTHER_CLOCK.format(ahead=ahead)] if ahead else ["manage.py"]
        return forks.start([*program, *command], environment=self.environment | environment)

    def tried(self, *command: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        """How ``manage.py COMMAND`` ended, with more in its environment."""
        return forks.run(["manage.py", *command], environment=self.environment | environment)

    def manage(self, *command: str) -> str:
        done = self.tried(*command)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def sql(self, statement: str) -> list[tuple]:
        """Run one statement in the database, beside whatever the processes do; returns its rows."""
        database = self.environment["DATABASE_URL"]
        if database.startswith("sqlite"):
            connection = sqlite3.connect(database.removeprefix("sqlite:///"), timeout=20)
        else:
            connection = psycopg.connect(database)
        with closing(connection), connection:
            done = connection.execute(statement)
            return done.fetchall() if done.description else []

    def run(self, code: str) -> "subprocess.CompletedProcess[str]":
        """Run code in a process of the installation."""
        return forks.run(["-c", f"import django; django.setup()\n{code}"], environment=self.environment)

    def ask(self, code: str):
        """Run code in the installation; it sets ``answer`` to something that JSON can hold."""
        done = self.run(f"{code}\nimport json; print(json.dumps(answer))")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    def ask_helper(self, code: str):
        """As ``ask``, in one process that stays: starting another costs half a second of CPU each time."""
        if self._helper is None:
            self._helper = forks.talk(["-c", HELPER], environment=self.environment)
        self._helper.stdin.write(json.dumps(code) + "\n")
        self._helper.stdin.flush()
        reply = json.loads(self._helper.stdout.readline())
        assert "error" not in reply, reply["error"]
        return reply["answer"]

    def close(self) -> None:
        if self._helper is not None:
            self._helper.communicate(timeout=60)


@contextmanager
def installation(folder: Path):
    """An installation with its tables made, on the kind of database that the tests run on."""
    url = os.environ.get("TEST_DATABASE_URL")
    if not url:
        here = Installation(folder, f"sqlite:///{folder}/evalsite.sqlite3")
        with_tables(folder / "evalsite.sqlite3")
        try:
            yield here
        finally:
            here.close()
        return
    name = f"evalsite_outside_{os.getpid()}"
    with psycopg.connect(urlsplit(url)._replace(path="/postgres").geturl(), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name}")
        postgres_with_tables(name)
        here = Installation(folder, urlsplit(url)._replace(path=f"/{name}").geturl())
        try:
            yield here
        finally:
            here.close()
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def with_tables(database: Path, *, key: bool = True) -> None:
    """Make an SQLite database with its tables and nothing in them: a copy of the first one of this run, with the key of
    the installation that goes with CRITERIA_KEYS, or as it is before it has one.
    """
    with _alone() as kept:
        made = _tables(kept)
    database.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(made, database)
    if not key:
        with closing(sqlite3.connect(database)) as connection, connection:
            connection.execute("DELETE FROM accounts_installationkey")


def postgres_with_tables(name: str) -> None:
    """As ``with_tables``, on the PostgreSQL of the tests; what is copied is dropped at the end of tests.on_postgres."""
    with _alone() as kept, _postgres() as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {_postgres_tables(kept, connection)}")


def make_tables() -> None:
    """Make what ``with_tables`` copies, on the database of this run, before anybody asks for it."""
    if "TEST_DATABASE_URL" not in os.environ:
        with _alone() as kept:
            _tables(kept)
        return
    with _alone() as kept, _postgres() as connection:
        _postgres_tables(kept, connection)


def _tables(kept: Path) -> Path:
    if not (made := kept / "tables.sqlite3").exists():
        making = kept / "making.sqlite3"
        Installation(kept / "making", f"sqlite:///{making}").manage("migrate", "-v0")
        with closing(sqlite3.connect(making)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        making.rename(made)
    return made


def _postgres_tables(kept: Path, connection: psycopg.Connection) -> str:
    made = f"{os.environ.get('TEST_DATABASE_NAME', f'evalsite_{os.getpid()}')}_tables"
    if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [made]).fetchone():
        connection.execute(f"CREATE DATABASE {made}")
        url = urlsplit(os.environ["TEST_DATABASE_URL"])._replace(path=f"/{made}").geturl()
        Installation(kept / "making", url).manage("migrate", "-v0")
    return made


def _postgres() -> psycopg.Connection:
    url = urlsplit(os.environ["TEST_DATABASE_URL"])._replace(path="/postgres").geturl()
    return psycopg.connect(url, autocommit=True)


@contextmanager
def _alone():
    """The folder that the processes of a run share, for one of them at a time."""
    kept = Path(os.environ["TESTS_SHARE"])
    with (kept / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield kept
