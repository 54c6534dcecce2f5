"""What all boards share: their shape, the ranks of models, and how boards are cached."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime
from math import ceil
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import pandas as pd
from django.core.cache import cache as first_times
from django.utils import timezone
from prometheus_client import Histogram
from pydantic import TypeAdapter

from accounts.installation_key import keyed
from leaderboard import methods, votes
from leaderboard.kept import hourly, values
from leaderboard.methods import PROVISIONAL, SEED
from leaderboard.models import Edition
from leaderboard.rows import JSON, Number, Row
from leaderboard.scope import BadScope, Scope
from leaderboard.sight import Sight, Withheld
from stats.arrays import BoolArray
from stats.figures import listed
from stats.power import LEVEL, MOST_TIMES, detectable, times_as_many
from stats.proportions import t_quantile
from stats.ranks import Behind, Place, benjamini_hochberg, places_of_means

B = TypeVar("B", bound="Board[Any]")
R = TypeVar("R", bound=Row, covariant=True)
COMPUTED = Histogram("evalsite_board_seconds", "Boards that were computed", ["board"], buckets=(0.1, 0.3, 1, 3, 10, 30))
DAY = 24 * 3600  # seconds


@dataclass(frozen=True, eq=False)
class Board(Generic[R]):
    """Rows, and the runs they come from. Subclasses add what their page shows beside the rows.

    ``key`` identifies the view with its data: equal keys mean equal boards.
    """

    rows: Sequence[R] = ()
    notes: Sequence[str] = ()
    runs: tuple[int, ...] = ()
    rated: ClassVar[bool] = False  # whether models have strengths, which may hold something equal
    key: str = field(default="", kw_only=True)
    computed_at: datetime | None = field(default=None, kw_only=True)

    @property
    def data(self) -> str:
        """The fingerprint as shown to users."""
        return self.key[:8]

    @property
    def counted(self) -> dict[str, int]:
        """What was counted, and how many of each."""
        return {}

    def as_json(self) -> list[JSON]:
        """The rows as commands and the API print them."""
        return [row.as_json() for row in self.rows]


# ---- boards of models ----


PROVISIONAL_RANK = f"rank: provisional, over fewer than {PROVISIONAL} items"
MOST_NAMED = 8


MAY_BE_BEST = "May be the best"


def best_of(places: Mapping[str, bool | None], islands: int = 1) -> list[str]:
    """A note on the models that may be the best; none where that cannot be told. ``places``: whether a model may;
    ``islands``: how many groups of models there are that never met, of which ``places`` are one.
    """
    best = [name for name, may in places.items() if may]
    if not best or len(places) < 2:
        return []
    named = listed(sorted(best)) if len(best) <= MOST_NAMED else f"{len(best)} of {len(places)} models"
    among = f" of the {len(places)} that are connected" if islands > 1 else ""
    return [f"{MAY_BE_BEST}{among}, all together with 95%: {named}."]


class Tested(Row):
    """A row about a test: ``significant`` at 5% with all tests that are made together."""

    p: float | None
    significant: bool | None


T = TypeVar("T", bound=Tested)


def with_significance(rows: Sequence[T], correct: Callable[..., BoolArray] = benjamini_hochberg) -> list[T]:
    """With the tests that are significant at 5% after this correction for their number marked."""
    found = [row.p for row in rows if row.p is not None]
    counts = iter(correct(p=found) if found else ())
    return [row if row.p is None else replace(row, significant=bool(next(counts))) for row in rows]  # type: ignore[type-var]


class Level(Row):
    """A model within a level or category: its numbers, and the number of rows behind them."""

    n: int


class _ModelRow(Row):
    n: int
    levels: dict[str, Any]  # values are subclasses of Level


@dataclass(frozen=True, kw_only=True)
class ModelRow(_ModelRow):
    """A model with its rank. ``rank`` is the ordinal and lies within its range; ``tier`` is 1 for the first,
    and one more wherever at least one model of an earlier tier is significantly better. ``mean_length`` of its answers
    is in characters; ``mean_tokens`` if all are known.
    """

    model: str
    rank: int | None = None
    rank_low: int | None = None
    rank_high: int | None = None
    tier: int | None = None
    mean_length: float | None = None
    mean_tokens: float | None = None

    def _notes(self) -> Iterator[str]:
        if self.rank is not None and self.n < PROVISIONAL:
            yield PROVISIONAL_RANK
        yield from super()._notes()

    def level(self, name: str) -> Level | None:
        """The numbers of this level or category; None if the model has none."""
        numbers: Level | None = self.levels.get(name)
        return numbers


@dataclass(frozen=True, kw_only=True)
class ApartRow(Row):
    """Two neighbours that share a rank: by how much ``a`` is ahead of ``b`` in the number that ranks, the smallest true
    ``detectable`` difference with ``n`` items of each, and how many ``more`` items of each would tell a difference like
    the one seen apart. ``reason`` says why there is no such number.
    """

    a: str
    b: str
    measure: str
    difference: Number
    detectable: float
    n: int
    more: int | None
    reason: str = ""


NO_DIFFERENCE = "no difference was seen"
TOO_MANY = f"it would take more than {MOST_TIMES:g} times as many items"
ALONE = "contrast, tested alone"


def apart(rows: Sequence["ModelRow"], measure: str, behind: Mapping[str, tuple[str, Behind]]) -> list[ApartRow]:
    """The neighbours in ``rows`` that share a tier. ``behind``: by model the next stronger one, and by how much."""
    row_of = {row.model: row for row in rows}
    found = []
    for model, (stronger, gap) in behind.items():
        b, a = row_of[model], row_of[stronger]
        if b.tier is None or a.tier != b.tier or min(a.n, b.n) < PROVISIONAL:
            continue
        margin, n = t_quantile(LEVEL, gap.df) * gap.error, min(a.n, b.n)
        times = times_as_many(gap.difference, gap.error)
        ends = gap.difference - margin, gap.difference + margin
        reason = "" if times else TOO_MANY if gap.difference else NO_DIFFERENCE
        row = ApartRow(
            a=stronger,
            b=model,
            measure=measure,
            difference=Number(gap.difference, *ends, gap.error, n, None, ALONE),
            detectable=detectable(gap.error),
            n=n,
            more=ceil(n * (times - 1)) if times else None,
            reason=reason,
        )
        found.append((b.rank or 0, row))
    return [row for _, row in sorted(found, key=lambda each: each[0])]


@dataclass(frozen=True, eq=False)
class ModelsBoard(Board[ModelRow]):
    """``items``: how many items, or samples, were counted; ``ranked_by``: the column that ranks; ``edition``: its
    number if this board is a published edition; ``apart``: of a live board, how many items more would tell neighbours
    apart that share a rank.
    """

    rows: Sequence[ModelRow] = ()
    _: KW_ONLY
    items: int = 0
    ranked_by: str = ""
    edition: int | None = None
    apart: Sequence[ApartRow] = ()

    @property
    def counted(self) -> dict[str, int]:
        return {"items": self.items}

    @property
    def level_columns(self) -> list[list[str]]:
        """The levels or categories with a column each, by depth of the tree; none where one would repeat the whole."""
        return []

    @property
    def all_notes(self) -> list[str]:
        """The notes, and what is left out of the board."""
        return list(self.notes)


M = TypeVar("M", bound=ModelsBoard)
NOT_STORED = {"runs", "key", "computed_at", "edition", "apart"}


def as_stored(board: ModelsBoard) -> JSON:
    """A board of models as an edition stores it."""
    stored: JSON = TypeAdapter(type(board)).dump_python(board, mode="json", exclude=NOT_STORED)
    return stored


def whole_as_text(board: Board[Any]) -> str:
    """The whole board as JSON text, which keeps the order of its parts on every database."""
    return TypeAdapter(type(board)).dump_json(board, exclude={"key", "computed_at"}).decode()


def whole_from_text(board: type[B], text: str) -> B:
    """The board that ``whole_as_text`` wrote, or an edition stored."""
    return TypeAdapter(board).validate_json(text)


def places_by(frame: pd.DataFrame, models: Sequence[str], value: str = "right") -> dict[str, Place]:
    """Where the means of a column rank, by model. The rows have their ``model`` and ``group``."""
    code = {model: at for at, model in enumerate(models)}
    places = places_of_means(
        values=frame[value].to_numpy(np.float64),
        model=frame["model"].map(code).to_numpy(),
        models=len(models),
        cluster=frame["group"].to_numpy(),
        rng=np.random.default_rng(SEED),
    )
    return dict(zip(models, places, strict=True))


def ranks(place: Place | None) -> dict[str, Any]:
    """The place as fields of a ``ModelRow``."""
    if place is None:
        return {}
    return {"rank": place.rank, "rank_low": place.rank_low, "rank_high": place.rank_high, "tier": place.tier}


CODED = "given as an interval: a share would tell the answer of nearly every sample behind it"


def as_interval(exact: Number, *, low: float, high: float) -> Number:
    """The number without its value, which would settle what it is made of."""
    return Number(low=low, high=high, n=exact.n, groups=exact.groups, reason=CODED)


def by_rank(row: ModelRow) -> tuple[bool, int, str]:
    """Sort key: rows by rank, rows without one last."""
    return row.rank is None, row.rank or 0, row.model


def next_better(names: Sequence[str], places: Sequence[Place]) -> dict[str, tuple[str, Behind]]:
    """By model the next stronger one, and by how much it is; see ``apart``."""
    return {
        name: (names[place.behind.other], place.behind)
        for name, place in zip(names, places, strict=True)
        if place.behind
    }


def share(part: int, total: int) -> float | None:
    return part / total if total else None


# ---- boards as they are asked for ----


@dataclass(frozen=True, eq=False)
class KeptBoard(Generic[B]):
    """A board of a view as its viewer sees it: computed again only when its data have changed, or an edition.

    ``of``: whose editions decide what is seen; ``has_editions``: whether they hold this board, which else is empty
    where its viewer sees them. ``shape``: the class of the board, by the view; without one it is refused there.
    ``unfit``: why there is no such board of the view, for whomever; "" where there is one.
    """

    name: str
    compute: Callable[[Scope], B]
    shape: Callable[[Scope], type[Any]] | None = None
    of: Edition.What | None = None
    has_editions: bool = False
    unfit: Callable[[Scope], str] = lambda scope: ""

    def __call__(self, scope: Scope) -> B:
        """Raises BadScope for a view that there is none of, or none for this viewer."""
        if reason := self.unfit(scope):
            raise BadScope(reason)
        sight = Sight(scope, self.of)
        return _cached(sight, self.name, self.compute if sight.live else lambda scope: self._not_live(sight))

    def _not_live(self, sight: Sight) -> B:
        scope, edition = sight.scope, sight.edition
        if self.shape is None:
            raise Withheld(sight.reason)
        shape: type[B] = self.shape(scope)
        if not self.has_editions:
            return shape([], [sight.reason])
        if sight.refusal:
            raise Withheld(sight.refusal)
        if edition is None:
            return shape([], [sight.reason])
        board = whole_from_text(shape, edition.board)
        runs = (edition.run_id,) if edition.run_id and not scope.kind.keyed else board.runs
        return replace(board, edition=edition.number, computed_at=edition.published_at, runs=runs)  # type: ignore[call-arg]


def kept_board(
    name: str, shape: Callable[[Scope], type[Any]] | None = None, **more: Any
) -> Callable[[Callable[[Scope], B]], KeptBoard[B]]:
    """Declares what computes a board as the board that doors ask for, see ``KeptBoard``."""

    def declare(compute: Callable[[Scope], B]) -> KeptBoard[B]:
        return KeptBoard(name, compute, shape, **more)

    return declare


def cached(scope: Scope, name: str, compute: Callable[[Scope], B]) -> B:
    """What is computed of a view, which no edition holds; again only when its data have changed."""
    return _cached(Sight(scope), name, compute)


def _cached(sight: Sight, name: str, compute: Callable[[Scope], B]) -> B:
    key = _key_of(sight, name)

    def make() -> B:
        with COMPUTED.labels(re.split("[ :]", name)[0]).time():
            board = compute(sight.scope)
        # The time at which these data were first seen: a write that is withheld from the view must not move it.
        first_seen = first_times.get_or_set(f"first-seen:{key}", timezone.now, DAY)
        return replace(board, key=key, computed_at=board.computed_at or first_seen)

    benchmark = sight.scope.benchmark.pk
    return values.until_changed(("board", key, *hourly.state(benchmark)), make, benchmark=benchmark)


LATER = ("half", "pseudonyms")  # fields of a scope that snapshots of before have keys without


def _key_of(sight: Sight, name: str) -> str:
    """The fingerprint of a view together with the data it is computed from. It is hashed with the installation's key,
    for everybody sees it, and could try what is withheld until it fits.
    """
    data: Any = votes.fingerprint(sight.scope) if sight.live else sight.versions
    return keyed("board", values.key_of(view_in_json(sight.scope, name), data))


def view_in_json(scope: Scope, what: str) -> dict[str, Any]:
    """Everything that says which view it is, and of which board."""
    fields = {
        attribute: getattr(scope, attribute)
        for attribute in scope.__dataclass_fields__
        if attribute != "benchmark" and (attribute not in LATER or getattr(scope, attribute))
    }
    return fields | {
        "benchmark": scope.benchmark.pk,
        "kind": scope.kind.name,
        "rule": scope.rule,
        "what": what,
        "methods": methods.VERSION,
    }
