"""What all boards share: their shape, the ranks of models, and how boards are kept."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeVar

from django.utils import timezone
from pydantic import TypeAdapter

from bank.models import Capability
from leaderboard import cache, methods, votes
from leaderboard.hidden import is_kept_back, newest_edition
from leaderboard.rows import JSON, Row
from leaderboard.scope import Scope
from stats.ranks import Place

B = TypeVar("B", bound="Board")


@dataclass(frozen=True, eq=False)
class Board:
    """Rows, and what made them. Each board has a class of its own for what its page shows beside the rows.

    ``key`` names the view with its data: equal keys, equal board.
    """

    rows: Sequence[Row] = ()
    notes: Sequence[str] = ()
    runs: tuple[int, ...] = ()
    key: str = field(default="", kw_only=True)
    computed_at: datetime | None = field(default=None, kw_only=True)

    @property
    def data(self) -> str:
        """The fingerprint as it is shown."""
        return self.key[:8]

    @property
    def counted(self) -> dict[str, int]:
        """How many of what were counted."""
        return {}

    def as_json(self) -> list[JSON]:
        """The rows as commands and the API print them."""
        return [row.as_json() for row in self.rows]


# ---- boards of models ----


class Level(Row):
    """A model within a level or category: its numbers, and how many rows they are of."""

    n: int


class _ModelRow(Row):
    n: int
    levels: dict[str, Any]  # of some class of Level


@dataclass(frozen=True, kw_only=True)
class ModelRow(_ModelRow):
    """A model with its rank. ``rank`` is the ordinal and lies within its range; ``tier`` is 1 + the number of models
    that are significantly better.
    """

    model: str
    rank: int | None = None
    rank_low: int | None = None
    rank_high: int | None = None
    tier: int | None = None

    @property
    def place(self) -> int | None:
        """The rank that is shown: models that cannot be told apart share one."""
        return self.tier or self.rank

    def level(self, name: str) -> Level | None:
        """The numbers of this level or category, where the model has some."""
        numbers: Level | None = self.levels.get(name)
        return numbers


@dataclass(frozen=True, eq=False, kw_only=True)
class ModelsBoard(Board):
    """``items``: how many items, or samples, were counted; ``ranked_by``: the column that ranks;
    ``edition``: its number where this is a published one.
    """

    rows: Sequence[ModelRow] = field(default=(), kw_only=False)
    items: int = 0
    ranked_by: str = ""
    edition: int | None = None

    @property
    def counted(self) -> dict[str, int]:
        return {"items": self.items}


M = TypeVar("M", bound=ModelsBoard)
NOT_STORED = {"runs", "key", "computed_at", "edition"}


def as_stored(board: ModelsBoard) -> JSON:
    """A board of models as an edition keeps it."""
    stored: JSON = TypeAdapter(type(board)).dump_python(board, mode="json", exclude=NOT_STORED)
    return stored


def from_stored(board: type[M], text: str) -> M:
    """The board that an edition keeps, as JSON."""
    return TypeAdapter(board).validate_json(text)


def ranks(place: Place | None) -> dict[str, Any]:
    """A place as fields of a ``ModelRow``."""
    if place is None:
        return {}
    return {"rank": place.rank, "rank_low": place.rank_low, "rank_high": place.rank_high, "tier": place.tier}


def by_rank(row: ModelRow) -> tuple[bool, int, str]:
    """Sorts rows by rank, those without one last."""
    return row.rank is None, row.rank or 0, row.model


def level_names(scope: Scope) -> list[str]:
    """The columns of a view in the tree's order: its tops, or what lies below the chosen level."""
    nodes = Capability.objects.filter(benchmark=scope.benchmark)
    nodes = nodes.filter(parent__path=scope.level) if scope.level else nodes.filter(parent=None)
    return [*nodes.order_by("position", "pk").values_list("name", flat=True), ""]


def share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


# ---- what is kept ----


def kept(scope: Scope, what: str, compute: Callable[[Scope], B]) -> B:
    """The board of a view, computed again only when the data under it has changed."""
    key = key_of(scope, what)

    def make() -> B:
        board = compute(scope)
        return replace(board, key=key, computed_at=board.computed_at or timezone.now())

    return cache.kept("board", [key], make, seconds=24 * cache.HOUR)


def key_of(scope: Scope, what: str) -> str:
    """The name of a view together with the data it is computed from."""
    view = {name: getattr(scope, name) for name in scope.__dataclass_fields__ if name != "benchmark"}
    view |= {
        "benchmark": scope.benchmark.pk,
        "kind": scope.kind.name,
        "rule": scope.rule,
        "what": what,
        "methods": methods.VERSION,
    }
    if is_kept_back(scope):  # live data are no part of what is seen
        edition = newest_edition(scope)
        data: Any = edition and edition.pk
    else:
        data = votes.fingerprint(scope)
    return cache.key_of(view, data)
