"""What the ORM does not do: the database's clock, batches, bulk inserts, rows of unfinished imports."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any, TypeVar

from django.db import connection
from django.db.models import Model


def now() -> datetime:
    """The time by the database's clock, the only one that all machines share and that leases use.

    It is the time of the query, as Now() gives it, not of its transaction. With SQLite it is this machine's time.
    """
    if connection.vendor == "sqlite":
        return datetime.now(UTC)
    time: datetime = execute("SELECT STATEMENT_TIMESTAMP()")
    return time


def analyze(*tables: type[Model]) -> None:
    """Let PostgreSQL count what its plans rest on, in these tables or in all. Until autovacuum comes round to do it, a
    query over rows that have just come in by the thousand may take minutes instead of milliseconds.
    """
    if connection.vendor == "postgresql":
        execute(f"ANALYZE {', '.join(table._meta.db_table for table in tables)}")


def execute(statement: str, values: Sequence[Any] = ()) -> Any:
    """Run a statement by hand; returns the first value of its first row, None where it has none."""
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        row = cursor.fetchone() if cursor.description else None
    return row[0] if row else None


T = TypeVar("T")


def batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


def chunks(values: Iterable[Any], size: int = 900) -> Iterator[list[Any]]:
    """Batches for ``__in`` lookups that stay below SQLite's limit on variables."""
    return batched(dict.fromkeys(values), size)
