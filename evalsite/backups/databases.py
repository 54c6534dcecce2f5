"""The database of this process as a file, and back: SQLite or PostgreSQL."""

import os
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db import DatabaseError, connection, transaction

from bank.database import execute
from evalsite.backups import folders
from evalsite.backups.folders import Failed

NAME = settings.DATABASES["default"]["NAME"]  # the file of SQLite
AS_OURS = ("--no-owner", "--no-privileges")


def dump(into: Path) -> dict[str, int]:
    """Copy the database as it is at one moment, while others write; returns its number of rows by table."""
    if connection.vendor == "sqlite":
        # It reads one state and keeps nobody from writing, and leaves out the pieces of what was overwritten.
        execute("VACUUM INTO %s", [str(into)])
        with closing(sqlite3.connect(into)) as copied:
            return _counts(copied.cursor())
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        cursor.execute("SELECT pg_export_snapshot()")
        _run("pg_dump", "--format=custom", *AS_OURS, f"--snapshot={cursor.fetchone()[0]}", f"--file={into}")
        return _counts(cursor)


def load(file: Path) -> None:
    """Make the database of a file that ``dump`` made, or leave it empty as it is."""
    if connection.vendor == "postgresql":
        _run("pg_restore", "--single-transaction", "--exit-on-error", *AS_OURS, str(file))
        return
    connection.close()
    for end in ("", "-wal", "-shm"):  # of an empty database
        Path(f"{NAME}{end}").unlink(missing_ok=True)
    folders.copy(file, Path(f"{NAME}.part"))
    os.replace(f"{NAME}.part", NAME)


def tables() -> list[str]:
    """The tables that there are."""
    if connection.vendor == "sqlite" and not Path(NAME).exists():
        return []  # asking would create it
    return sorted(connection.introspection.table_names())


def rows() -> dict[str, int]:
    """The number of rows by table."""
    with connection.cursor() as cursor:
        return _counts(cursor)


@contextmanager
def trial(name: str) -> Iterator[str]:
    """The DATABASE_URL of an empty database of this name for a while; "" on SQLite, whose data folder has its own.

    Raises Failed where the role may not create one.
    """
    if connection.vendor == "sqlite":
        yield ""
        return
    try:
        execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")
    except DatabaseError as error:
        role = connection.connection.info.user
        raise Failed(
            f"It was not verified: no database to restore it into could be made ({str(error).strip()}). "
            f"Let a superuser say\n  ALTER ROLE {role} CREATEDB"
        ) from None
    try:
        yield urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{name}").geturl()
    finally:
        drop(name)


def drop(name: str) -> None:
    """Remove a database that ``trial`` made, if it is there."""
    if connection.vendor == "postgresql":
        execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def _counts(cursor: Any) -> dict[str, int]:
    counts = {}
    for table in tables():
        cursor.execute(f"SELECT count(*) FROM {connection.ops.quote_name(table)}")
        counts[table] = cursor.fetchone()[0]
    return counts


def _run(tool: str, *options: str) -> None:
    """Run a program of PostgreSQL on the database. Raises Failed with its words."""
    connection.ensure_connection()
    given, server = settings.DATABASES["default"], connection.connection.info.server_version // 10_000
    names = {"host": "HOST", "port": "PORT", "user": "USER", "dbname": "NAME"}
    address = {name: given[key] for name, key in names.items() if given.get(key)}
    address |= {name: value for name, value in given.get("OPTIONS", {}).items() if isinstance(value, str)}
    # Not the password: everybody on the machine sees a command.
    password = {"PGPASSWORD": given["PASSWORD"]} if given.get("PASSWORD") else {}
    from psycopg.conninfo import make_conninfo  # an extra

    command = [tool, "--dbname", make_conninfo(**address), *options]
    try:
        done = subprocess.run(command, env=os.environ | password, capture_output=True, text=True)  # noqa: S603 (theirs)
    except FileNotFoundError:
        raise Failed(
            f"{tool} is not installed. It has to be of version {server} or newer: postgresql-client-{server} on Debian."
        ) from None
    if done.returncode:
        raise Failed(f"{tool}, which has to be of version {server} or newer, failed:\n{done.stderr.strip()}")
