"""Moving a SQLite installation into an empty PostgreSQL database, all of it or nothing.

Both sides are read as the same plain values, and the same checksum is computed of them: what arrived is what was there.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from hashlib import sha256
from typing import Any

import psycopg
from django.apps import apps
from django.conf import settings
from django.db import connection, models, transaction
from psycopg.types.json import set_json_loads

from evalsite import doctor
from evalsite.backups.folders import Failed

BATCH = 2000  # rows in memory
NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")  # in JSON; \\u0000 is a backslash and some letters
Model = type[models.Model]
Rows = Iterable[Sequence[Any]]
Target = psycopg.Connection[Any]


def _check(url: str) -> None:
    """Raises Failed unless this is SQLite of this version and the other database empty; psycopg.Error."""
    if connection.vendor != "sqlite":
        raise Failed("This installation does not use SQLite: there is nothing to move.")
    if not url.startswith(("postgres://", "postgresql://")):
        raise Failed("URL is of the form postgres://USER:PASSWORD@HOST/NAME.")
    if (found := doctor.migrations()).is_fault:
        raise Failed(doctor.of_another_version(found.words))
    with psycopg.connect(url) as target:
        if target.execute("SELECT 1 FROM pg_tables WHERE schemaname = ANY(current_schemas(false))").fetchone():
            raise Failed(f"The database {target.info.dbname} is not empty. Make an empty one. Nothing was copied.")


def move(url: str, say: Callable[[str], object]) -> None:
    """Copy every row to the empty PostgreSQL database.

    Nobody writes to the SQLite database meanwhile: others wait as for any long write. Raises Failed, psycopg.Error.
    """
    _check(url)
    tables = _models()
    with transaction.atomic():  # it holds the write lock, as every transaction does: see settings
        say("Reading the SQLite database ...")
        here = {model: _tally(model, _source_rows(model)) for model in tables}
        say("Making the tables in PostgreSQL ...")
        _migrate(url)
        with psycopg.connect(url) as target:  # one transaction: all rows arrive, or none
            _prepare(target, tables)
            for model in tables:
                if count := here[model][0]:
                    say(f"Copying {model._meta.db_table} ({count:,})")
                    _copy(target, model)
            _finish(target, tables)
            say("Comparing ...")
            if other := [model for model in tables if _tally(model, _target_rows(target, model)) != here[model]]:
                names = ", ".join(model._meta.db_table for model in other)
                raise Failed(f"What arrived differs from what is here, in {names}. No row was kept there.")
    with psycopg.connect(url, autocommit=True) as target:
        target.execute("ANALYZE")
    say(f"{sum(count for count, _ in here.values()):,} rows are there, with the same checksum for each table as here.")


def _models() -> list[Model]:
    """All that have tables. Of migrations, PostgreSQL's database has its own record."""
    every = apps.get_models(include_auto_created=True)
    no_tables = [app for app, migrations in settings.MIGRATION_MODULES.items() if migrations is None]
    with_table = (model for model in every if model._meta.managed and not model._meta.proxy)
    return [model for model in with_table if model._meta.app_label not in no_tables]


def _columns(model: Model) -> str:
    return ", ".join(f'"{field.column}"' for field in model._meta.local_concrete_fields)


def _migrate(url: str) -> None:
    """Make the tables by a process that has that database for its own."""
    ours = {"SECRET_KEY": settings.SECRET_KEY, "CRITERIA_KEYS": ",".join(settings.CRITERIA_KEYS), "DATABASE_URL": url}
    command = [sys.executable, str(settings.BASE_DIR / "manage.py"), "migrate", "-v0"]
    done = subprocess.run(command, env=os.environ | ours, capture_output=True, text=True)  # noqa: S603 (ours)
    if done.returncode:
        raise Failed(f"The tables could not be made in PostgreSQL:\n{done.stderr.strip()}")


def _prepare(target: Target, tables: Sequence[Model]) -> None:
    """Empty the tables of what migrations put there, and let no row that comes in count as a change."""
    target.execute("SET TIME ZONE 'UTC'")
    set_json_loads(lambda text: text, target)
    target.execute(f"TRUNCATE {', '.join(model._meta.db_table for model in tables)}")
    for model in tables:
        target.execute(f"ALTER TABLE {model._meta.db_table} DISABLE TRIGGER USER")


def _finish(target: Target, tables: Sequence[Model]) -> None:
    """Check foreign keys, let changes count again, and go on with ids where SQLite was: no id is given twice."""
    target.execute("SET CONSTRAINTS ALL IMMEDIATE")
    with connection.cursor() as cursor:
        cursor.execute("SELECT name, seq FROM sqlite_sequence")
        last = dict(cursor.fetchall())
    for model in tables:
        table, key = model._meta.db_table, model._meta.pk.column
        target.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")
        if last.get(table):
            target.execute("SELECT setval(pg_get_serial_sequence(%s, %s), %s)", [table, key, last[table]])


def _source_rows(model: Model) -> Iterator[list[Any]]:
    """The rows as Python's values, as Django reads them of SQLite; JSON as text and what is encrypted as it is."""
    columns = [field.get_col(model._meta.db_table) for field in model._meta.local_concrete_fields]
    readers = [(at, read) for at, column in enumerate(columns) for read in connection.ops.get_db_converters(column)]
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {_columns(model)} FROM {model._meta.db_table}")
        while batch := cursor.fetchmany(BATCH):
            for row in map(list, batch):
                for at, read in readers:
                    row[at] = read(row[at], columns[at], connection)
                yield row


def _target_rows(target: Target, model: Model) -> Iterator[Sequence[Any]]:
    with target.cursor(name="rows") as cursor:
        cursor.itersize = BATCH
        yield from cursor.execute(f"SELECT {_columns(model)} FROM {model._meta.db_table}")


def _copy(target: Target, model: Model) -> None:
    into = f"COPY {model._meta.db_table} ({_columns(model)}) FROM STDIN"
    with target.cursor() as cursor, cursor.copy(into) as copy:
        for row in _source_rows(model):
            copy.write_row(row)


def _tally(model: Model, rows: Rows) -> tuple[int, int]:
    """The number of rows and the sum of their hashes, which does not depend on their order.

    Raises Failed for what PostgreSQL does not take and no column of SQLite refuses.
    """
    of_json = [isinstance(field, models.JSONField) for field in model._meta.local_concrete_fields]
    count = checksum = 0
    for row in rows:
        try:
            plain = [_json(one) if is_json and one else one for one, is_json in zip(row, of_json, strict=True)]
            text = json.dumps(plain, ensure_ascii=False, sort_keys=True, default=str)
            checksum += int.from_bytes(sha256(text.encode()).digest())
            if "\\u0000" in text and NUL.search(text):
                raise ValueError("a text holds a NUL character")
        except ValueError as error:
            half = "a text holds half a character (a lone surrogate)"
            why = half if isinstance(error, UnicodeEncodeError) else error
            raise Failed(f"PostgreSQL does not take row {row[0]} of {model._meta.db_table}: {why}.") from None
        count += 1
    return count, checksum % 2**256


def _json(text: str) -> Any:
    return json.loads(text, parse_float=_number)


def _number(text: str) -> int | Decimal:
    """A number of JSON as both sides have it: PostgreSQL keeps the digits and not how they were written."""
    number = Decimal(text)
    return int(number) if number == number.to_integral_value() else number.normalize()
