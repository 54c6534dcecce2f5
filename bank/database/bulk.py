"""Bulk inserts that bypass the ORM, with the same calls for both databases.

Rows are tuples of values that the column takes as they are: text, numbers, None; JSON as text.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache, partial
from itertools import chain, count, repeat
from typing import Any

from django.db import connection, models
from django.db.models import Model
from django.db.models.expressions import DatabaseDefault

from accounts.crypto import EncryptedTextField, cipher
from bank.database import execute

VARIABLES = 2000  # of one statement
# Fields whose values the databases take as they are: preparing each through the ORM costs more than the insert.
PLAIN = {
    models.BooleanField,
    models.CharField,
    models.FloatField,
    models.ForeignKey,
    models.PositiveIntegerField,
    models.PositiveSmallIntegerField,
    models.TextField,
}


def new_ids(model: type[Model], count: int) -> Sequence[int]:
    """Reserve this many ids for new rows; nobody else gets them. Call it in the transaction that inserts the rows."""
    table = model._meta.db_table
    if connection.vendor == "sqlite":  # the transaction holds the only write lock
        start = _last(table) + 1
        return range(start, start + count)
    with connection.cursor() as cursor:
        cursor.execute(f'LOCK TABLE "{table}" IN ROW EXCLUSIVE MODE')  # as an insert would: see reserve
        cursor.execute(
            "SELECT nextval(pg_get_serial_sequence(%s, 'id')) FROM generate_series(1, %s)", [f'"{table}"', count]
        )
        return list(chain.from_iterable(cursor.fetchall()))


def reserve(model: type[Model], count: int) -> range:
    """Reserve a contiguous range of ids that nobody else will get, even after this transaction."""
    table = model._meta.db_table
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            last = _last(table)
            cursor.execute("UPDATE sqlite_sequence SET seq = %s WHERE name = %s", [last + count, table])
            if not cursor.rowcount:
                cursor.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (%s, %s)", [table, last + count])
        else:
            # Anyone who takes an id holds a weaker lock on the table until the end of their transaction, so nobody
            # can take one between the two calls.
            cursor.execute(f'LOCK TABLE "{table}" IN SHARE ROW EXCLUSIVE MODE')
            cursor.execute("SELECT nextval(pg_get_serial_sequence(%s, 'id'))", [f'"{table}"'])
            last = cursor.fetchone()[0]
            cursor.execute("SELECT setval(pg_get_serial_sequence(%s, 'id'), %s)", [f'"{table}"', last + count])
        return range(last + 1, last + count + 1)


def _last(table: str) -> int:
    """The highest id that SQLite has assigned."""
    return int(
        execute(
            f'SELECT max(coalesce((SELECT max(id) FROM "{table}"), 0),'  # noqa: S608 (a table of ours)
            " coalesce((SELECT seq FROM sqlite_sequence WHERE name = %s), 0))",
            [table],
        )
    )


@dataclass(frozen=True, slots=True)
class Constant:
    """A column with the same value in every row."""

    value: Any
    rows: int

    def __len__(self) -> int:
        return self.rows

    def __iter__(self) -> Iterator[Any]:
        return repeat(self.value, self.rows)

    def __getitem__(self, part: slice) -> "Constant":
        return Constant(self.value, len(range(*part.indices(self.rows))))


Column = Sequence[Any] | Constant


def compact(column: Column) -> Column:
    """The column as a Constant if all its values are equal: faster to keep and to insert."""
    if isinstance(column, Constant) or not column or column[0] != column[-1] or column.count(column[0]) < len(column):
        return column
    return Constant(column[0], len(column))


def insert(model: type[Model], columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Insert rows; ``columns`` names database columns. Call it in a transaction, which an error rolls back.

    Raises IntegrityError as the ORM does.
    """
    if rows:
        insert_columns(model, dict(zip(columns, zip(*rows, strict=True), strict=True)))


def insert_columns(model: type[Model], values: Mapping[str, Column]) -> None:
    """Insert by column: values by column name, all of the same length and none empty."""
    insert_into(model._meta.db_table, values)


def insert_into(table: str, values: Mapping[str, Column]) -> None:
    """The same for a table that is no model's."""
    names = tuple(values)
    connection.ensure_connection()
    with connection.wrap_database_errors:
        if connection.vendor == "sqlite":
            _insert_many(table, names, list(map(compact, values.values())))
        else:
            _copy(table, names, values.values())


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _copy(table: str, names: Sequence[str], columns: Iterable[Column]) -> None:
    """As PostgreSQL takes rows fastest."""
    into = f'COPY "{table}" ({_quoted(names)}) FROM STDIN'
    with connection.connection.cursor() as cursor, cursor.copy(into) as copy:
        for row in zip(*columns, strict=True):
            copy.write_row(row)


def _insert_many(table: str, names: tuple[str, ...], columns: Sequence[Column]) -> None:
    """Values that all rows share are bound once: most columns of a thousand rows are constant, and binding is half of
    the cost.
    """
    constants = [column.value for column in columns if isinstance(column, Constant)]
    varying = [column for column in columns if not isinstance(column, Constant)]
    row_count = len(columns[0])
    step = (VARIABLES - len(constants)) // max(len(varying), 1)
    for start in range(0, row_count, step):
        rows = min(step, row_count - start)
        statement = _statement(table, names, tuple(isinstance(column, Constant) for column in columns), rows)
        values_of_rows = zip(*(column[start : start + rows] for column in varying), strict=True)
        connection.connection.execute(statement, [*constants, *chain.from_iterable(values_of_rows)])


def insert_objects(model: type[Model], rows: Sequence[Model]) -> None:
    """Insert new model objects with every column but the id, which the database assigns."""
    if rows:
        insert_columns(model, columns_of(model, rows))


def columns_of(model: type[Model], rows: Sequence[Model]) -> dict[str, Column]:
    """New model objects as columns, as the database takes them, with the id if they have one."""
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


def update_column(model: type[Model], column: str, values: Mapping[int, Any]) -> None:
    """Set one column of rows by id. Call it in a transaction."""
    with connection.cursor() as cursor:
        table = model._meta.db_table
        statement = f'UPDATE "{table}" SET "{column}" = %s WHERE id = %s'  # noqa: S608 (tables and columns of ours)
        cursor.executemany(statement, [(value, pk) for pk, value in values.items()])


def prepared(model: type[Model], values: Mapping[str, Column]) -> dict[str, Column]:
    """Values by field name as the database takes them, by column; hidden text is encrypted."""
    columns: dict[str, Column] = {}
    done: dict[tuple[object, int], Column] = {}  # several fields may share one column of times
    for name, column in values.items():
        field: Any = model._meta.get_field(name)
        key = (field if isinstance(field, EncryptedTextField) else type(field), id(column))
        if type(field) in PLAIN:
            columns[str(field.column)] = compact(column)
            continue
        if key not in done:
            done[key] = _prepared(field, compact(column))
        columns[str(field.column)] = done[key]
    return columns


def _prepared(field: Any, column: Column) -> Column:
    if type(field) is EncryptedTextField and not field.row:
        return compact(cipher().seal_all(column, field.place))
    prepare: Callable[[Any], Any] = partial(field.get_db_prep_save, connection=connection)
    if isinstance(field, models.DateTimeField):
        prepare = _prepared_time
    elif isinstance(field, models.JSONField) and field.encoder is None:  # both databases take JSON as text
        prepare = json.dumps
    if isinstance(column, Constant):
        return Constant(None if column.value is None else prepare(column.value), len(column))
    return [None if value is None else prepare(value) for value in column]


@lru_cache(maxsize=10_000)  # the times of a label are also those of its assignment
def _prepared_time(value: datetime) -> Any:
    return models.DateTimeField().get_db_prep_save(value, connection)


def completed(model: type[Model], columns: Mapping[str, Column]) -> dict[str, Column]:
    """Columns as the database takes them, and the defaults of all fields that are missing but the id."""
    blank, row_count = model(), len(next(iter(columns.values())))
    whole = dict(columns)
    for field in model._meta.concrete_fields:
        name = str(field.column)
        if name not in whole and not field.primary_key:
            value = field.pre_save(blank, add=True)
            value = field.db_default if isinstance(value, DatabaseDefault) else value
            whole[name] = Constant(field.get_db_prep_save(value, connection), row_count)
    return whole


def literal(value: bool) -> str:
    """SQL for a truth value, which SQLite keeps as a number."""
    return str(int(value)) if connection.vendor == "sqlite" else str(value)


def insertion(model: type[Model], columns: Mapping[str, str], source: str) -> Callable[..., None]:
    """What inserts rows that other tables give: ``columns`` holds SQL by column name, ``source`` what stands behind
    FROM, with places for the values that are given with each call. All other columns have their defaults.
    """
    constants = completed(model, {name: Constant(None, 1) for name in columns})
    defaults = {name: column for name, column in constants.items() if name not in columns}
    selected = [*columns.values(), *("%s" for _ in defaults)]
    values = [next(iter(column)) for column in defaults.values()]
    statement = (
        f'INSERT INTO "{model._meta.db_table}" ({_quoted([*columns, *defaults])})'  # noqa: S608 (names of ours)
        f" SELECT {', '.join(selected)} FROM {source}"
    )
    return lambda *given: execute(statement, [*values, *given])


@lru_cache(maxsize=64)
def _statement(table: str, names: tuple[str, ...], shared: tuple[bool, ...], rows: int) -> str:
    """Many rows per statement: a statement itself costs as much as a row. FAIL keeps no journal to undo half a
    statement.
    """
    places = iter(range(1, sum(shared) + 1))
    once = [f"?{next(places)}" if same else "" for same in shared]
    numbers = count(sum(shared) + 1)
    values = ", ".join(f"({', '.join(place or f'?{next(numbers)}' for place in once)})" for _ in range(rows))
    return f'INSERT OR FAIL INTO "{table}" ({_quoted(names)}) VALUES {values}'  # noqa: S608 (tables and columns of ours)
