"""Computed values, kept in this process until something is written that counts for them, see ``counters``."""

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, TypeVar, TypeVarTuple

from django.core.cache import cache
from django.db.models import Model

from leaderboard.kept import counters

T = TypeVar("T")
M = TypeVar("M", bound=Model)
Others = TypeVarTuple("Others")
MOST = 256  # values
_kept: OrderedDict[Hashable, tuple[Hashable, Any]] = OrderedDict()
_lock = threading.Lock()


def key_of(*parts: Any) -> str:
    """A hash of all parts, as JSON."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def until_changed(key: Hashable, make: Callable[[], T], *, benchmark: int | None = None, votes: bool = True) -> T:
    """The value that ``make`` gave for ``key`` since the last write that counts for the benchmark, or without one
    anywhere; see ``counters``. It is shared by all requests: do not change it. What no verdict can change is said to be
    without ``votes``, and is kept while they come in.
    """
    now = counters.version(benchmark, votes=votes)
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


def kept_until_changed(what: Callable[[M, *Others], T], *, votes: bool = True) -> Callable[[M, *Others], T]:
    """A function of a benchmark, or of a row that belongs to one, whose answers are kept as ``until_changed`` does."""

    @wraps(what)
    def answer(about: M, *others: *Others) -> T:
        benchmark = getattr(about, "benchmark_id", about.pk)
        return until_changed((what, about.pk, *others), lambda: what(about, *others), benchmark=benchmark, votes=votes)

    return answer


def kept_while_voted(what: Callable[[M, *Others], T]) -> Callable[[M, *Others], T]:
    """The same of answers that no verdict can change."""
    return kept_until_changed(what, votes=False)


def forget() -> None:
    """Forget what this process keeps, for a database that is thrown away."""
    cache.clear()
    with _lock:
        _kept.clear()
