"""The one clock that leases go by."""

from datetime import UTC, datetime

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
