"""Whether anything at all was written to the database since this connection looked last, told in constant time.

Both databases know it exactly. SQLite: ``data_version`` moves with every commit of another connection, and
``total_changes`` with every change of our own. PostgreSQL: a snapshot that reads the same sees the same rows.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from django.db import connection

T = TypeVar("T")
MOST = 24  # answers kept for each connection


def state() -> Hashable | None:
    """What this connection sees, as a value that is equal only if it sees the same; None where that cannot be told.

    Inside a transaction our own rows may come and go (a savepoint) without a trace: then it is None.
    """
    if connection.in_atomic_block:
        return None
    connection.ensure_connection()
    driver = connection.connection
    if connection.vendor == "sqlite":
        # Asked of the driver itself, for a page asks it thirty times.
        return (driver, driver.execute("PRAGMA data_version").fetchone()[0], driver.total_changes)
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_current_snapshot()::text")
            return (driver, cursor.fetchone()[0])
    return None


def until_written(key: Hashable, make: Callable[[], T]) -> T:
    """What ``make`` gave for ``key`` when the database was as it is now; made again after any write."""
    now = state()
    if now is None:
        return make()
    seen, answers = getattr(connection, "_answers", (None, None))
    if seen != now or answers is None:
        answers = OrderedDict[Hashable, Any]()
        connection._answers = (now, answers)  # type: ignore[attr-defined]
    if key in answers:
        answers.move_to_end(key)
        found: T = answers[key]
        return found
    made = make()
    # Reading may write (a session, an access log): what was read then belongs to the state before.
    if state() == now:
        answers[key] = made
        while len(answers) > MOST:
            answers.popitem(last=False)
    return made
