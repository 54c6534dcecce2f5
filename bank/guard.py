"""Single verdicts and answers are read by ``seen_by``, or by workers that make numbers of them (ADR 31).

While somebody below staff is served, the default managers of judgments, trials, labels and responses refuse everything
else: a page that forgets to ask what its viewer may see fails instead of telling.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from accounts.rules import Viewer, allowed, granted, where
from bank.database.unfinished import FinishedManager

_served: ContextVar[Callable[[], Viewer] | None] = ContextVar("whom single rows are read for", default=None)


class Unseen(PermissionError):
    """Single verdicts or answers were read for somebody below staff without asking what they may see."""


@contextmanager
def serving(viewer: Callable[[], Viewer]) -> Iterator[None]:
    """Inside, rows are read for this viewer, of a request or a notice, who is asked for when a guarded table is read:
    a request with a token knows its user late.
    """
    token = _served.set(viewer)
    try:
        yield
    finally:
        _served.reset(token)


@contextmanager
def working() -> Iterator[None]:
    """Inside, everything can be read. For what makes numbers of many rows, or does what its viewer may do."""
    token = _served.set(None)
    try:
        yield
    finally:
        _served.reset(token)


class Guarded(FinishedManager[Any]):
    """Refuses queries for somebody below staff, but for ``seen_by``; for somebody who curates single benchmarks, it has
    the rows of these alone. ``BENCHMARK`` of the model is the path to the benchmark.
    """

    def get_queryset(self) -> Any:
        viewer, rows = _served.get(), super().get_queryset()
        if viewer is None or allowed(viewer(), "read-hidden"):
            return rows
        if not granted(viewer(), "read-hidden"):
            raise Unseen(f"{self.model.__name__} is read by seen_by below staff, or inside guard.working().")
        return rows.filter(where(viewer(), "read-hidden", self.model.BENCHMARK))

    def seen_by(self, viewer: Viewer) -> Any:
        """The rows that this viewer may see one by one."""
        with working():
            rows = self.get_queryset()
        return rows.seen_by(viewer)
