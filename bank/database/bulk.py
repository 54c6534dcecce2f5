"""Many rows into one table, past the ORM: the same call for both databases.

Rows are tuples of what the column takes as it is: text, numbers, None; JSON as text.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, count, repeat
from typing import Any

from django.db import connection, models
from django.db.models import Model
from django.db.models.expressions import DatabaseDefault

from accounts.crypto import EncryptedTextField

VARIABLES = 2000  # of one statement
# Fields whose values the databases take as they are: the ORM's way of asking each costs more than the insert.
PLAIN = {
    models.BooleanField,
    models.CharField,
    models.FloatField,
    models.ForeignKey,
    models.PositiveIntegerField,
    models.PositiveSmallIntegerField,
    models.TextField,
}


def ids(model: type[Model], count: int) -> Sequence[int]:
    """So many ids of new rows, which nobody else will get. Inside the transaction that inserts them."""
    table = model._meta.db_table
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":  # the transaction holds the only write lock
            start = _last(table) + 1
            return range(start, start + count)
        cursor.execute(f'LOCK TABLE "{table}" IN ROW EXCLUSIVE MODE')  # as an insert would: see reserve
        cursor.execute(
            "SELECT nextval(pg_get_serial_sequence(%s, 'id')) FROM generate_series(1, %s)", [f'"{table}"', count]
        )
        return list(chain.from_iterable(cursor.fetchall()))


def reserve(model: type[Model], count: int) -> range:
    """So many ids in one piece, which nobody else will get after this transaction, either."""
    table = model._meta.db_table
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            last = _last(table)
            cursor.execute("UPDATE sqlite_sequence SET seq = %s WHERE name = %s", [last + count, table])
            if not cursor.rowcount:
                cursor.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (%s, %s)", [table, last + count])
        else:
            # Whoever takes an id holds a lower lock on the table, to the end of its transaction: nobody takes one
            # between the two calls.
            cursor.execute(f'LOCK TABLE "{table}" IN SHARE ROW EXCLUSIVE MODE')
            cursor.execute("SELECT nextval(pg_get_serial_sequence(%s, 'id'))", [f'"{table}"'])
            last = cursor.fetchone()[0]
            cursor.execute("SELECT setval(pg_get_serial_sequence(%s, 'id'), %s)", [f'"{table}"', last + count])
        return range(last + 1, last + count + 1)


def _last(table: str) -> int:
    """The highest id that SQLite has given."""
    with connection.cursor() as cursor:
        cursor.execute(
            f'SELECT max(coalesce((SELECT max(id) FROM "{table}"), 0),'  # noqa: S608 (a table of ours)
            " coalesce((SELECT seq FROM sqlite_sequence WHERE name = %s), 0))",
            [table],
        )
        return int(cursor.fetchone()[0])


@dataclass(frozen=True, slots=True)
class Shared:
    """A column that holds one value in every row."""

    value: Any
    rows: int

    def __len__(self) -> int:
        return self.rows

    def __iter__(self) -> Iterator[Any]:
        return repeat(self.value, self.rows)

    def __getitem__(self, some: slice) -> "Shared":
        return Shared(self.value, len(range(*some.indices(self.rows))))


Column = Sequence[Any] | Shared


def packed(column: Column) -> Column:
    """The same column, as Shared where it is one: quicker to keep and to insert."""
    if isinstance(column, Shared) or not column or column[0] != column[-1] or column.count(column[0]) < len(column):
        return column
    return Shared(column[0], len(column))


def insert(model: type[Model], columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Insert rows; ``columns`` are names of database columns. Inside a transaction, which an error undoes whole.

    Raises IntegrityError as the ORM does.
    """
    if rows:
        insert_columns(model, dict(zip(columns, zip(*rows, strict=True), strict=True)))


def insert_columns(model: type[Model], values: Mapping[str, Column]) -> None:
    """The same by columns, all of the same length and none empty, by their names."""
    table, names = model._meta.db_table, tuple(values)
    connection.ensure_connection()
    with connection.wrap_database_errors:
        if connection.vendor != "sqlite":
            quoted = ", ".join(f'"{name}"' for name in names)
            into = f'COPY "{table}" ({quoted}) FROM STDIN'
            with connection.connection.cursor() as cursor, cursor.copy(into) as copy:
                for row in zip(*values.values(), strict=True):
                    copy.write_row(row)
            return
        # What all rows share is bound once: most columns of a thousand rows hold one value, and binding costs half.
        columns = list(map(packed, values.values()))
        once = [column.value for column in columns if isinstance(column, Shared)]
        own = [column for column in columns if not isinstance(column, Shared)]
        many = len(columns[0])
        step = (VARIABLES - len(once)) // max(len(own), 1)
        for start in range(0, many, step):
            rows = min(step, many - start)
            statement = _statement(table, names, tuple(isinstance(column, Shared) for column in columns), rows)
            some = zip(*(column[start : start + rows] for column in own), strict=True)
            connection.connection.execute(statement, [*once, *chain.from_iterable(some)])


def insert_objects(model: type[Model], rows: Sequence[Model]) -> None:
    """The same of new objects of a model, every column but the id, which the database gives."""
    if rows:
        insert_columns(model, columns_of(model, rows))


def columns_of(model: type[Model], rows: Sequence[Model]) -> dict[str, Column]:
    """New objects of a model by columns, as the database takes them; the id among them where they have one."""
    columns: dict[str, Column] = {}
    for field in model._meta.concrete_fields:
        if field.primary_key and rows[0].pk is None:
            continue
        name = field.attname
        if type(field) in PLAIN:
            values = [getattr(row, name) for row in rows]
            if field.has_db_default():
                values = [field.db_default if isinstance(value, DatabaseDefault) else value for value in values]
        else:
            values = [field.get_db_prep_save(field.pre_save(row, add=True), connection) for row in rows]
        columns[str(field.column)] = values
    return columns


def change(model: type[Model], column: str, values: Mapping[int, Any]) -> None:
    """Set a column of rows by their ids. Inside a transaction."""
    with connection.cursor() as cursor:
        table = model._meta.db_table
        statement = f'UPDATE "{table}" SET "{column}" = %s WHERE id = %s'  # noqa: S608 (tables and columns of ours)
        cursor.executemany(statement, [(value, pk) for pk, value in values.items()])


def columns_from(model: type[Model], values: Mapping[str, Column]) -> dict[str, Column]:
    """New rows by the names of their fields (``run_id``), as the database takes them.

    What is left out holds its default, but for the id, which is left out where it is not given.
    """
    blank, many = model(), len(next(iter(values.values())))
    columns: dict[str, Column] = {}
    for field in model._meta.concrete_fields:
        given = values.get(field.attname)
        if given is None and field.primary_key:
            continue
        if given is None:
            value = field.pre_save(blank, add=True)
            value = field.db_default if isinstance(value, DatabaseDefault) else value
            columns[str(field.column)] = Shared(field.get_db_prep_save(value, connection), many)
        elif type(field) in PLAIN:
            columns[str(field.column)] = given
        elif isinstance(given := packed(given), Shared) and not isinstance(field, EncryptedTextField):
            columns[str(field.column)] = Shared(field.get_db_prep_save(given.value, connection), many)
        else:
            columns[str(field.column)] = [
                None if value is None else field.get_db_prep_save(value, connection) for value in given
            ]
    return columns


@lru_cache(maxsize=64)
def _statement(table: str, names: tuple[str, ...], shared: tuple[bool, ...], rows: int) -> str:
    """Many rows a statement: its own cost is that of a row. FAIL keeps no journal for undoing half a statement."""
    places = iter(range(1, sum(shared) + 1))
    once = [f"?{next(places)}" if same else "" for same in shared]
    numbers = count(sum(shared) + 1)
    values = ", ".join(f"({', '.join(place or f'?{next(numbers)}' for place in once)})" for _ in range(rows))
    quoted = ", ".join(f'"{name}"' for name in names)
    return f'INSERT OR FAIL INTO "{table}" ({quoted}) VALUES {values}'  # noqa: S608 (tables and columns of ours)
