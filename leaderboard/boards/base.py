"""What all boards share: their shape, how numbers are written into rows, and how they are kept."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import numpy as np
from django.utils import timezone

from bank.models import Capability
from leaderboard import cache, methods, votes
from leaderboard.hidden import STAFFS, edition_of, is_kept_back, newest_edition
from leaderboard.scope import Scope
from stats.means import Place
from stats.results import Estimate

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Cell:
    """A metric within a level or data set, and how many rows it is of."""

    value: float | None
    n: int


@dataclass(frozen=True, slots=True)
class Against:
    """Judges beside people by one reference: what is no row, since it ranks them or is about people alone.

    ``ceiling`` by metric: people against people. ``standing`` by metric and run, of judges that are no baselines.
    ``cells`` by metric, run and level or data set; people's own are those of run 0.
    """

    ceiling: dict[str, Row]
    standing: dict[str, dict[int, Place]]
    cells: dict[str, dict[int, dict[str, Cell]]]


@dataclass(frozen=True, slots=True)
class OfJudges:
    """What stands beside the rows of a board of judges: by reference, the order of cells, and by run what it costs."""

    against: dict[str, Against]
    cell_order: list[str]
    running: dict[int, Row]


@dataclass(frozen=True, eq=False, slots=True)
class Board:
    """Rows, and what made them. ``extra`` is what the page shows beside the rows; each board says what it puts there.

    ``key`` names the view with its data: equal keys, equal board.
    """

    rows: list[Row]
    notes: list[str] = field(default_factory=list)
    runs: tuple[int, ...] = ()
    extra: Row = field(default_factory=dict)
    judges: OfJudges | None = None
    key: str = ""
    computed_at: datetime | None = None

    @property
    def data(self) -> str:
        """The fingerprint as it is shown."""
        return self.key[:8]


def models(scope: Scope) -> Board:
    """Every model by verdicts of the view's kind; below staff, a board that rests on hidden inputs is an edition."""
    if is_kept_back(scope):
        edition, seen = edition_of(scope)
        return Board(**seen, computed_at=edition.published_at if edition else None)
    return scope.kind.models(scope)


def judges(scope: Scope) -> Board:
    """Every judge beside people, by verdicts of the view's kind."""
    return Board([], [STAFFS]) if is_kept_back(scope) else scope.kind.judges(scope)


def number(name: str, estimate: Estimate | None) -> Row:
    """``name``, ``name_low``, ``name_high``; null where it cannot be computed."""
    if estimate is None or estimate.value is None:
        return {name: None, f"{name}_low": None, f"{name}_high": None}
    interval = estimate.interval
    low, high = (interval.low, interval.high) if interval else (None, None)
    return {name: estimate.value, f"{name}_low": low, f"{name}_high": high}


def averaged(estimates: Iterable[Estimate]) -> Row:
    """Metrics are computed per repeat, then averaged; so are the ends of their intervals."""
    estimates = list(estimates)
    known = [number("value", estimate) for estimate in estimates if estimate.value is not None]
    n = max((estimate.n for estimate in estimates), default=0)
    if not known:
        return number("value", None) | {"n": n}
    ends: Row = {}
    for name in ("value", "value_low", "value_high"):
        values = [one[name] for one in known]
        ends[name] = None if None in values else float(np.mean(values))
    return ends | {"n": n}


def share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def kept(scope: Scope, what: str, compute: Callable[[Scope], Board]) -> Board:
    """The board of a view, computed again only when the data under it has changed."""
    key = key_of(scope, what)

    def make() -> Board:
        made = compute(scope)
        return replace(made, key=key, computed_at=made.computed_at or timezone.now())

    return cache.kept("board", [key], make, seconds=24 * cache.HOUR)


def key_of(scope: Scope, what: str) -> str:
    """The name of a view together with the data it is computed from."""
    view = {name: getattr(scope, name) for name in scope.__dataclass_fields__ if name != "benchmark"}
    view |= {"benchmark": scope.benchmark.pk, "rule": scope.rule, "what": what, "methods": methods.VERSION}
    if is_kept_back(scope):  # live data are no part of what is seen
        edition = newest_edition(scope)
        data: Any = edition and edition.pk
    else:
        data = votes.fingerprint(scope)
    return cache.key_of(view, data)


def level_names(scope: Scope) -> list[str]:
    """The columns of a view in the tree's order: its tops, or what lies below the chosen level."""
    nodes = Capability.objects.filter(benchmark=scope.benchmark)
    nodes = nodes.filter(parent__path=scope.level) if scope.level else nodes.filter(parent=None)
    return [*nodes.order_by("position", "pk").values_list("name", flat=True), ""]
