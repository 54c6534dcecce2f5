"""Many rows into one table, past the ORM: the same call for both databases.

Rows are tuples of what the column takes as it is: text, numbers, None; JSON as text.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain

from django.db import connection
from django.db.models import Model

VARIABLES = 2000  # of one statement
MANY = 20_000


def ids(model: type[Model], count: int) -> Sequence[int]:
    """So many ids of new rows, which nobody else will get. Inside the transaction that inserts them."""
    table = model._meta.db_table
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":  # the transaction holds the only write lock
            cursor.execute(
                f'SELECT max(coalesce((SELECT max(id) FROM "{table}"), 0),'  # noqa: S608 (a table of ours)
                " coalesce((SELECT seq FROM sqlite_sequence WHERE name = %s), 0))",
                [table],
            )
            start = cursor.fetchone()[0] + 1
            return range(start, start + count)
        cursor.execute(
            "SELECT nextval(pg_get_serial_sequence(%s, 'id')) FROM generate_series(1, %s)", [f'"{table}"', count]
        )
        return list(chain.from_iterable(cursor.fetchall()))


def insert(model: type[Model], columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Insert rows; ``columns`` are names of database columns. Inside a transaction, which an error undoes whole.

    Raises IntegrityError as the ORM does.
    """
    names = ", ".join(f'"{name}"' for name in columns)
    table = f'"{model._meta.db_table}" ({names})'
    connection.ensure_connection()
    with connection.wrap_database_errors:
        if connection.vendor != "sqlite":
            with connection.connection.cursor() as cursor, cursor.copy(f"COPY {table} FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)
            return
        # Many rows a statement: its own cost is that of a row. FAIL keeps no journal for undoing half a statement.
        one = f"({', '.join('?' * len(columns))})"
        execute = connection.connection.execute
        step = VARIABLES // len(columns)
        for start in range(0, len(rows), step):
            some = rows[start : start + step]
            statement = f"INSERT OR FAIL INTO {table} VALUES {', '.join([one] * len(some))}"  # noqa: S608
            execute(statement, list(chain.from_iterable(some)))


@contextmanager
def loading(coming: Mapping[type[Model], int]) -> Iterator[None]:
    """For so many new rows of each table: what is many to its table goes in without the plain indexes.

    SQLite builds an index in one go at a third of the cost of keeping it row by row. Call it inside a transaction: no
    other connection sees the tables without their indexes, and an error brings them back. PostgreSQL would lock the
    tables for it.
    """
    again: list[str] = []
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            for model, count in coming.items():
                table = model._meta.db_table
                cursor.execute(f'SELECT count(*) FROM (SELECT 1 FROM "{table}" LIMIT %s)', [count])  # noqa: S608
                if count < MANY or cursor.fetchone()[0] == count:
                    continue
                cursor.execute(
                    "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = %s"
                    " AND sql LIKE 'CREATE INDEX%%'",
                    [table],
                )
                for name, sql in cursor.fetchall():
                    cursor.execute(f'DROP INDEX "{name}"')
                    again.append(sql)
    yield
    with connection.cursor() as cursor:
        for sql in again:
            cursor.execute(sql)
