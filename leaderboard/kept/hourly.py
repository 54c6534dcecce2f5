"""What takes long and moves little, as Elo over a million votes: computed at most once an hour while verdicts come in.

This holds for pages that a job draws. Beside them, a job of its own computes it anew; until then they show what there
is, as of when that was computed. It is given up when something is written after which something may have to be hidden.
Whoever else asks, as commands and snapshots do, gets it of now.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Max
from django.utils import timezone

from accounts import jobs
from leaderboard.kept import counters
from leaderboard.models import HourlyValue

EVERY = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Drawing:
    """The page that a job draws, and whether what is kept for an hour is computed ``anew`` for it."""

    page: int
    anew: bool


_drawing: ContextVar[Drawing | None] = ContextVar("drawing", default=None)


@contextmanager
def drawing(page: int, *, anew: bool) -> Iterator[None]:
    """A job draws a page."""
    before = _drawing.set(Drawing(page, anew))
    try:
        yield
    finally:
        _drawing.reset(before)


def state(benchmark: int) -> tuple[Any, ...]:
    """What a board depends on beside its data, if it has a value that is kept for an hour."""
    now = _drawing.get()
    if now is None:
        return ()
    return now.anew, HourlyValue.objects.filter(benchmark=benchmark).aggregate(at=Max("at"))["at"]


def at_most_hourly(
    make: Callable[[], dict[str, Any]], *, view: str, data: str, benchmark: int
) -> tuple[dict[str, Any], datetime | None]:
    """What ``make`` gives, which JSON can hold, for a ``view`` of these ``data``; and as of when, unless it is of now.

    Both are hashes: equal ones have equal values.
    """
    page = _drawing.get()
    if page is None:
        return make(), None
    hiding = str(counters.version(benchmark, hiding=True))
    kept = HourlyValue.objects.filter(view=view, hiding=hiding).first()
    if kept and kept.data == data:
        return kept.value, None
    if kept and not page.anew:
        jobs.defer("draw_anew", not_before=kept.at + EVERY, page=page.page)
        return kept.value, kept.at
    at, value = timezone.now(), make()
    row = {"data": data, "hiding": hiding, "value": value, "at": at}
    HourlyValue.objects.update_or_create(view=view, defaults=row, create_defaults=row | {"benchmark_id": benchmark})
    return value, None
