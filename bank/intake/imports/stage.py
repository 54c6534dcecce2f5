"""Rows of an import that are checked and not written yet, in tables that its connection alone sees.

Each row is put once, with its hidden cells sealed. What it is about, whether it is there already and what is new is
found by joins over all rows. The tables lie on disk, lock nothing, and go with the connection: on PostgreSQL they are
temporary ones; on SQLite, which may keep such in memory, those of a file without a name.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.models import Model

from bank.database import bulk, chunks, execute
from bank.database.unfinished import unfinished_ids
from bank.intake.formats.reading import Where
from bank.intake.imports import Cancelled

NUMBER, TEXT = "bigint", "text"
BYTES = "bytea"
KEY = "INTEGER PRIMARY KEY"  # on SQLite the number of the row itself
STEP = 5_000  # rows that are held at once
CACHE = 32_768  # KB of the file that SQLite keeps in memory
LINES, RECORDS = 1, 2


class Stage:
    """``cancelled`` is polled before each statement; if it returns true, Cancelled is raised."""

    def __init__(self, cancelled: Callable[[], bool]) -> None:
        self.cancelled = cancelled
        self._files: list[str] = []
        self._tables: dict[str, None] = {}
        self._file = ""  # the name that SQLite knows the file by

    def __enter__(self) -> "Stage":
        return self

    def __exit__(self, *error: object) -> None:
        """Frees the space before an undo, which may need it."""
        self.drop()

    def _open(self) -> None:
        """Attach a file that nobody can find. Within a transaction, as in tests, SQLite attaches none."""
        if connection.vendor != "sqlite" or connection.in_atomic_block or self._file:
            return
        with suppress(DatabaseError):
            execute("DETACH DATABASE stage")  # of an import before, whose end could not
        with tempfile.NamedTemporaryFile(dir=settings.DATA if settings.DATA.is_dir() else None) as file:
            execute("ATTACH DATABASE %s AS stage", [file.name])
        self._file = "stage"
        for said in ("journal_mode = OFF", "synchronous = OFF", "locking_mode = EXCLUSIVE", f"cache_size = -{CACHE}"):
            execute(f"PRAGMA stage.{said}")

    def make(self, table: str, *, primary: Sequence[str] = (), **columns: str) -> None:
        """An empty table with these columns and their types, and perhaps a key of several columns."""
        listed = [f'"{name}" {kind}' for name, kind in columns.items()]
        listed += [f"PRIMARY KEY ({', '.join(primary)})"] if primary else []
        by_key = "WITHOUT ROWID" if primary and connection.vendor == "sqlite" else ""
        self._open()
        self.do(f"DROP TABLE IF EXISTS {table}")
        kind, name = ("TABLE", f"stage.{table}") if self._file else ("TEMPORARY TABLE", table)
        self.do(f"CREATE {kind} {name} ({', '.join(listed)}) {by_key}")
        self._tables[table] = None

    def has(self, table: str) -> bool:
        return table in self._tables

    def index(self, table: str, *columns: str) -> None:
        name = f"{table}_{'_'.join(columns)}"
        name = f"stage.{name}" if self._file else name
        self.do(f"CREATE INDEX IF NOT EXISTS {name} ON {table} ({', '.join(columns)})")
        self.look_at(table)

    def look_at(self, table: str) -> None:
        """Let PostgreSQL count the rows: nothing else does in a temporary table."""
        if connection.vendor == "postgresql":
            self.do(f"ANALYZE {table}")

    def put(self, table: str, columns: Mapping[str, bulk.Column]) -> None:
        """Rows by column, as the database takes them."""
        if len(next(iter(columns.values()))):
            bulk.insert_into(table, columns)

    def go_on(self) -> None:
        if self.cancelled():
            raise Cancelled

    def do(self, statement: str, *values: Any) -> int:
        """Run a statement; returns how many rows it made, changed or removed."""
        self.go_on()
        with connection.cursor() as cursor:
            cursor.execute(statement, values)
            return max(cursor.rowcount, 0)

    def ask(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """All rows of a result, which has to be a small one: see ``slices``."""
        self.go_on()
        with connection.cursor() as cursor:
            cursor.execute(statement, values)
            return cursor.fetchall()

    def number(self, statement: str, *values: Any) -> int:
        """The one number of a result, 0 for none."""
        return self.ask(statement, *values)[0][0] or 0

    def slices(self, table: str, key: str = "n", step: int = STEP) -> Iterator[tuple[int, int]]:
        """The first and the last number of stretches that hold the rows of a table."""
        [(first, last)] = self.ask(f"SELECT min({key}), max({key}) FROM {table}")
        for start in range(first, last + 1, step) if first is not None else ():
            yield start, min(start + step - 1, last)

    def rows(self, table: str, statement: str) -> Iterator[tuple[Any, ...]]:
        """The rows of a result by stretches of a table, whose first and last number the statement takes."""
        for some in self.slices(table):
            yield from self.ask(statement, *some)

    def change(self, table: str, key: str, rows: Sequence[tuple[Any, ...]], *columns: str) -> None:
        """Set columns of single rows: the values of each, then its key."""
        listed = ", ".join(f'"{name}" = %s' for name in columns)
        with connection.cursor() as cursor:
            cursor.executemany(f"UPDATE {table} SET {listed} WHERE {key} = %s", rows)

    def first(self, table: str) -> int:
        return self.number(f"SELECT min(n) FROM {table}")

    def span(self, table: str) -> int:
        """How many numbers its rows have between the first and the last, both included."""
        return self.number(f"SELECT max(n) - min(n) + 1 FROM {table}")

    def repeated(self, table: str, joins: str, key: Mapping[str, str], told: str) -> Iterator[tuple[Where, Where, Any]]:
        """Rows with the key of a row before them, by their places, that of the first and what of them is ``told``; they
        leave the table. ``key`` holds the columns of a key, of ``staged``, which is the table, or of what ``joins``
        join to it, with their types.
        """
        names = {f"key{number}": column for number, column in enumerate(key)}
        types = dict(zip(names, key.values(), strict=True))
        self.make("staged_key", primary=tuple(names), **types, n=NUMBER)
        rows = self.number(f"SELECT count(*) FROM {table}")
        keyed = self.do(
            f"""INSERT INTO staged_key SELECT {", ".join(names.values())}, staged.n FROM {table} staged {joins}
            ORDER BY staged.n ON CONFLICT DO NOTHING"""
        )
        if keyed == rows:
            return
        same = " AND ".join(f"keyed.{name} = {column}" for name, column in names.items())
        self.make("staged_repeated", n=KEY, first=NUMBER)
        self.do(
            f"""INSERT INTO staged_repeated SELECT staged.n, keyed.n FROM {table} staged {joins}
            JOIN staged_key keyed ON {same} WHERE keyed.n <> staged.n ORDER BY staged.n"""
        )
        for place, first, other in self.rows(
            "staged_repeated",
            f"""SELECT staged.place, first.place, staged.{told} FROM staged_repeated repeated
            JOIN {table} staged ON staged.n = repeated.n JOIN {table} first ON first.n = repeated.first
            WHERE repeated.n BETWEEN %s AND %s ORDER BY repeated.n""",
        ):
            yield self.where(place), self.where(first), other
        self.do(f"DELETE FROM {table} WHERE n IN (SELECT n FROM staged_repeated)")

    def stored(self, table: str, joins: str, model: type[Model], names: Sequence[str]) -> Iterator[tuple[Where, bool]]:
        """Rows that are stored already, by their places, and whether these fields say the same; they leave the table.
        ``joins`` join to ``staged``, which is the table, the row ``stored`` of the model, with its condition last.
        """
        self.make("staged_found", n=KEY, stored=NUMBER)
        found = self.do(
            f"""INSERT INTO staged_found SELECT staged.n, min(stored.id) FROM {table} staged {joins}
            AND {seen(model, "stored")} GROUP BY staged.n"""
        )
        listed = ", ".join(f'staged."{column}"' for column in columns_of(model, names))
        for some in self.slices("staged_found") if found else ():
            rows = self.ask(
                f"""SELECT staged.place, found.stored, {listed} FROM staged_found found
                JOIN {table} staged ON staged.n = found.n WHERE found.n BETWEEN %s AND %s ORDER BY found.n""",
                *some,
            )
            stored = _values(model, [row[1] for row in rows], names)
            for place, pk, *said in rows:
                yield self.where(place), stored[pk] == _read(model, names, said)
        if found:
            self.do(f"DELETE FROM {table} WHERE n IN (SELECT n FROM staged_found)")

    def places(self, places: Sequence[Where]) -> list[int]:
        """Places in files as numbers, which grow with them: the file, the kind of number, and the number."""
        codes = []
        last, base = None, 0
        for file, line, record in places:
            if file != last:
                last, base = file, self._base(file)
            if line is not None:
                codes.append(base | LINES << 40 | line)
            else:
                codes.append(base if record is None else base | RECORDS << 40 | record)
        return codes

    def _base(self, file: str) -> int:
        if file not in self._files:
            self._files.append(file)
        return self._files.index(file) << 42

    def where(self, place: int) -> Where:
        file, kind, number = self._files[place >> 42], place >> 40 & 3, place & (1 << 40) - 1
        return Where(file, line=number if kind == LINES else None, record=number if kind == RECORDS else None)

    def drop(self) -> None:
        """Take the room back. Without its connection nothing is left."""
        with suppress(DatabaseError):
            while self._tables:
                execute(f"DROP TABLE IF EXISTS {self._tables.popitem()[0]}")
            if self._file:
                execute("DETACH DATABASE stage")
                self._file = ""


def columns_of(model: type[Model], names: Sequence[str]) -> dict[str, str]:
    """Columns that hold what these fields of a model hold, with their types."""
    fields: list[Any] = [model._meta.get_field(name) for name in names]
    return {str(field.column): field.rel_db_type(connection) for field in fields}


def seen(model: type[Model], alias: str) -> str:
    """A condition for rows that belong to no unfinished import, for a join."""
    return f"NOT ({unfinished_ids(model._meta.db_table, f'{alias}.id')})"


def _values(model: Any, ids: Sequence[int], names: Sequence[str]) -> dict[int, tuple[Any, ...]]:
    """What is stored in these fields, by id."""
    manager = getattr(model, "all_objects", model.objects)
    rows = (row for some in chunks(ids) for row in manager.filter(pk__in=some).values_list("pk", *names))
    return {pk: tuple(values) for pk, *values in rows}


def _read(model: type[Model], names: Sequence[str], values: Sequence[Any]) -> tuple[Any, ...]:
    """Values as the database took them, as its rows are read."""
    fields: list[Any] = [model._meta.get_field(name) for name in names]
    return tuple(
        field.from_db_value(value, None, connection) if hasattr(field, "from_db_value") else value
        for field, value in zip(fields, values, strict=True)
    )
