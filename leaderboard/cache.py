"""Computed values, kept until something is written that counts for them, see ``changes``.

``until_changed`` keeps what is small, or asked for in each request, as it is. ``cached`` keeps copies, and what takes
long in the data folder, too, for other processes and the next start.
"""

import functools
import hashlib
import json
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

from django.conf import settings
from django.core.cache import cache, caches
from prometheus_client import Histogram

from leaderboard import changes

T = TypeVar("T")
log = logging.getLogger(__name__)
MOST = 96  # values kept until something changes
LONG = 0.5  # seconds, from which on a value is put into a file
HOUR = 3600  # seconds
COMPUTED_BY = ("accounts", "annotations", "bank", "judging", "leaderboard", "stats")
COMPUTED = Histogram(
    "evalsite_board_seconds",
    "Boards that were computed, or taken from a file",
    ["board"],
    buckets=(0.1, 0.3, 1, 3, 10, 30),
)
_MISSING = object()
_kept: OrderedDict[Hashable, tuple[Hashable, Any]] = OrderedDict()
_lock = threading.Lock()


def key_of(*parts: Any) -> str:
    """A hash of all parts, as JSON."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def cached(what: str, parts: Sequence[Any], make: Callable[[], T], *, seconds: int = HOUR, shared: bool = False) -> T:
    """The value that ``make`` gave for the same ``parts``: the view, the class of its viewer, and what changes with its
    data, as a rule ``changes.version``.

    If it is ``shared`` and took long, other processes and the next start have it, too.
    """
    key = key_of(*parts)
    value: T = cache.get(f"{what}:{key}", _MISSING)
    if value is _MISSING:
        with COMPUTED.labels(what).time():
            value = _in_files(f"{what}:{key_of(_program(), key)}", make, seconds) if shared else make()
        cache.set(f"{what}:{key}", value, seconds)
    return value


def _in_files(key: str, make: Callable[[], T], seconds: int) -> T:
    files = caches["boards"]
    try:
        value: T = files.get(key, _MISSING)
    except Exception as error:  # whatever is in the file: cut short, or of another version of a library
        log.warning("A cached board cannot be read and is made again: %s", error)
        value = _MISSING  # type: ignore[assignment]
    if value is _MISSING:
        started = time.monotonic()
        value = make()
        if time.monotonic() - started < LONG:
            return value
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


def until_changed(key: Hashable, make: Callable[[], T], *, benchmark: int | None = None) -> T:
    """The value that ``make`` gave for ``key`` since the last write that counts for the benchmark, or without one
    anywhere; see ``changes``. It is shared by all requests: do not change it.
    """
    now = changes.version(benchmark)
    with _lock:
        at, value = _kept.get(key, (None, None))
        if at == now:
            _kept.move_to_end(key)
            kept: T = value
            return kept
    made = make()
    with _lock:
        _kept[key] = now, made
        _kept.move_to_end(key)
        while len(_kept) > MOST:
            _kept.popitem(last=False)
    return made


def forget() -> None:
    """Forget what this process keeps, for a database that is thrown away."""
    cache.clear()
    with _lock:
        _kept.clear()
