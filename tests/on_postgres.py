"""What meets SQL of its own, once more on PostgreSQL: ``python -m tests.on_postgres [--all] [OPTION OF PYTEST ...]``.

With ``--all``, or of files that are named, every test that touches the database. Takes TEST_POSTGRES_URL, else the
server on localhost that lets ``postgres`` in; where none answers it says so.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

URL = os.environ.get("TEST_POSTGRES_URL", "postgres://postgres@127.0.0.1:5432/postgres")
NAME = f"evalsite_tests_{os.getpid()}"  # of this run alone: several may go on at once
QUICK = "-c synchronous_commit=off"  # no test pulls the plug
FOLDERS = ["access", "accounts", "operations", "annotations", "bank", "judging", "leaderboard"]


def main() -> int:
    if not answers():
        return 0
    print("The database tests again, on PostgreSQL:", flush=True)
    asked = [argument for argument in sys.argv[1:] if argument != "--all"]
    named = any(argument.startswith("tests/") for argument in asked)
    chosen = "not soak and not browser" + (
        "" if named or "--all" in sys.argv else " and both_databases and not one_database"
    )
    folders = [] if named else [f"tests/{name}" for name in FOLDERS]
    command = [sys.executable, "-m", "pytest", "-m", chosen, *folders, *asked]
    try:
        return subprocess.run(
            command,
            env=os.environ | {"TEST_DATABASE_URL": URL, "TEST_DATABASE_NAME": NAME, "PGOPTIONS": QUICK},
        ).returncode
    finally:
        _clean()


def answers() -> bool:
    """Whether there is a server; where none is, it is said."""
    try:
        psycopg.connect(URL, connect_timeout=3).close()
    except psycopg.OperationalError as error:
        print(f"PostgreSQL does not answer ({str(error).splitlines()[0]}): its tests were skipped.")
        return False
    return True


@contextmanager
def database() -> Iterator[dict[str, str]]:
    """The environment of an empty database, which is dropped at the end."""
    with psycopg.connect(URL, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(NAME)))
    try:
        yield {"DATABASE_URL": urlsplit(URL)._replace(path=f"/{NAME}").geturl(), "PGOPTIONS": QUICK}
    finally:
        _clean()


def _clean() -> None:
    """Drop what is left of the databases of this run: one of each process of it."""
    with psycopg.connect(URL, autocommit=True) as connection:
        rows = connection.execute("SELECT datname FROM pg_database WHERE starts_with(datname, %s)", [NAME]).fetchall()
        for (name,) in rows:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


if __name__ == "__main__":
    sys.exit(main())
