"""Two caches of computed values, each with one rule for its key.

``cached`` has the state of the data in its key, along with the view and what its viewer may see: equal keys mean equal
values in every process. What takes seconds is kept in the data folder, too, for other processes and the next start.
``until_written`` needs no such key. It holds until anything at all is written to the database, which both databases
report exactly and in constant time. SQLite: ``data_version`` moves with every commit of another connection, and
``total_changes`` with every change of our own. PostgreSQL: a snapshot that reads the same sees the same rows.
"""

import functools
import hashlib
import json
import logging
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

from django.conf import settings
from django.core.cache import cache, caches
from django.db import connection

T = TypeVar("T")
log = logging.getLogger(__name__)
MOST = 24  # answers kept for each connection
HOUR = 3600  # seconds
COMPUTED_BY = ("accounts", "annotations", "bank", "judging", "leaderboard", "stats")
_MISSING = object()


def key_of(*parts: Any) -> str:
    """A hash of all parts, as JSON."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def cached(
    what: str, parts: Sequence[Any], make: Callable[[], T], *, seconds: int = HOUR, history: Sequence[Any] = ()
) -> T:
    """The value that ``make`` gave for the same ``parts``: the state of the data, the view, the class of its viewer.

    With a ``history``, see ``votes.history``, other processes and the next start have it, too.
    """
    key = f"{what}:{key_of(*parts)}"
    value: T = cache.get(key, _MISSING)
    if value is _MISSING:
        stored = history and not connection.in_atomic_block  # what a transaction sees may be undone
        value = _in_files(f"{what}:{key_of(_program(), history, *parts)}", make, seconds) if stored else make()
        cache.set(key, value, seconds)
    return value


def _in_files(key: str, make: Callable[[], T], seconds: int) -> T:
    files = caches["boards"]
    try:
        value: T = files.get(key, _MISSING)
    except Exception as error:  # whatever is in the file: cut short, or of another version of a library
        log.warning("A cached board cannot be read and is made again: %s", error)
        value = _MISSING  # type: ignore[assignment]
    if value is _MISSING:
        value = make()
        try:
            files.set(key, value, seconds)
        except OSError as error:
            log.warning("A board cannot be cached: %s", error)
    return value


@functools.cache
def _program() -> str:
    """Changes with every file of the program: what another version stored may have another shape."""
    files = sorted(path for package in COMPUTED_BY for path in (settings.BASE_DIR / package).rglob("*.py"))
    return key_of([(str(path), (stat := path.stat()).st_size, stat.st_mtime_ns) for path in files])


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
