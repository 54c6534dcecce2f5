"""Two caches of computed values, each with one rule for its key.

``cached`` has the state of the data in its key, along with the view and what its viewer may see: equal keys mean equal
values in every process. ``until_written`` needs no such key. It holds until anything at all is written to the database,
which both databases report exactly and in constant time. SQLite: ``data_version`` moves with every commit of another
connection, and ``total_changes`` with every change of our own. PostgreSQL: a snapshot that reads the same sees the same
rows.
"""

import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

from django.core.cache import cache
from django.db import connection

T = TypeVar("T")
MOST = 24  # answers kept for each connection
HOUR = 3600  # seconds
_MISSING = object()


def key_of(*parts: Any) -> str:
    """A hash of all parts, as JSON."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def cached(what: str, parts: Sequence[Any], make: Callable[[], T], *, seconds: int = HOUR) -> T:
    """The value that ``make`` gave for the same ``parts``: the state of the data, the view, the class of its viewer."""
    key = f"{what}:{key_of(*parts)}"
    value: T = cache.get(key, _MISSING)
    if value is _MISSING:
        value = make()
        cache.set(key, value, seconds)
    return value


def state() -> Hashable | None:
    """A value that is equal only if this connection sees the same data; None where there is no way to tell.

    Inside a transaction our own rows may come and go (a savepoint) without a trace: then it is None.
    """
    if connection.in_atomic_block:
        return None
    connection.ensure_connection()
    driver = connection.connection
    if connection.vendor == "sqlite":
        # Straight from the driver, because a page asks thirty times.
        return (driver, driver.execute("PRAGMA data_version").fetchone()[0], driver.total_changes)
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_current_snapshot()::text")
            return (driver, cursor.fetchone()[0])
    return None


def until_written(key: Hashable, make: Callable[[], T]) -> T:
    """The value that ``make`` gave for ``key`` since the last write to the database; computed again after any write."""
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
