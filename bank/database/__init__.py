"""What the ORM does not do: the database's clock, batches, bulk inserts, rows of unfinished imports."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Any, TypeVar

from django.db import connection


def now() -> datetime:
    """The time by the database's clock: the one clock that all machines share. Leases go by no other.

    That of a query, as Now() has it, and not of its transaction. SQLite's is this machine's.
    """
    if connection.vendor == "sqlite":
        return datetime.now(UTC)
    with connection.cursor() as cursor:
        cursor.execute("SELECT STATEMENT_TIMESTAMP()")
        found: datetime = cursor.fetchone()[0]
    return found


T = TypeVar("T")


def batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


def chunks(values: Iterable[Any], size: int = 900) -> Iterator[list[Any]]:
    """For ``__in`` lookups that stay below SQLite's limit of variables."""
    return batched(dict.fromkeys(values), size)
