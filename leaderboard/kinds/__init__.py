"""The kinds of verdicts, and which of them have data for a board of a benchmark."""

from collections.abc import Iterator
from typing import Any

from django.db.models import Exists, OuterRef

from annotations.models import Campaign, Label
from bank import guard
from bank.models import Benchmark
from bank.submissions import marked_responses
from judging.models import Judgment, Run
from leaderboard.hidden import unseen_runs
from leaderboard.kept.values import until_changed
from leaderboard.kinds.base import Kind
from leaderboard.kinds.batch import Batch
from leaderboard.kinds.choice import Choice
from leaderboard.kinds.components import Components
from leaderboard.kinds.marks import Reasoning, Reference
from leaderboard.kinds.nominal import Nominal
from leaderboard.kinds.pair import Pair
from leaderboard.kinds.score import Score
from leaderboard.kinds.yes_no import YesNo
from leaderboard.scope import BadScope

__all__ = ["KINDS", "USUAL", "Kind", "available", "default_of", "get", "has_verdicts", "is_available"]

USUAL = Pair()
# In the order that a page offers them; the first one with data opens.
KINDS: dict[str, Kind] = {
    one.name: one
    for one in (USUAL, Score(), Batch(), Components(), Choice(), YesNo(), Nominal(), Reference(), Reasoning())
}
# Those that always rest on hidden criteria first; others do where verdicts held some.
WITH_EDITIONS = [kind.name for kind in sorted(KINDS.values(), key=lambda kind: not kind.hidden) if not kind.no_models]
_ALSO: dict[str, Kind] = {}
for _kind in KINDS.values():
    _ALSO |= dict.fromkeys(_kind.aliases, _kind)


def get(name: str) -> Kind:
    """The kind with this name or alias. Raises BadScope."""
    kind = KINDS.get(name) or _ALSO.get(name)
    if kind is None:
        raise BadScope(f"Unknown kind of board: {name!r}. Kinds: {', '.join(KINDS)}.")
    return kind


def _of_models(benchmark: Benchmark, *, staff: bool) -> Iterator[Kind]:
    """The kinds whose board of models has something to show."""
    for kind in KINDS.values():
        if kind.question:
            found = marked_responses.are_answered(benchmark, options=kind.rotates)
        else:
            found = not kind.no_models and _given(benchmark, staff=staff).get(kind.name, False)
        if found:
            yield kind


def _of_judges(benchmark: Benchmark, *, staff: bool) -> Iterator[Kind]:
    """The kinds with metrics for judges in which people or judges have given verdicts."""
    return (kind for kind in KINDS.values() if kind.metrics and has_verdicts(benchmark, kind, staff=staff))


def _of_bias(benchmark: Benchmark, *, staff: bool) -> Iterator[Kind]:
    return (kind for kind in _of_judges(benchmark, staff=staff) if kind.biases)


_FIND = {"models": _of_models, "judges": _of_judges, "bias": _of_bias}


def default_of(benchmark: Benchmark, board: str, *, staff: bool) -> Kind:
    """The kind of the board that opens first; pairs if there are no data yet."""
    return next(iter(available(benchmark, board, staff=staff)), USUAL)


def available(benchmark: Benchmark, board: str, *, staff: bool) -> list[Kind]:
    """The kinds with data for ``models``, ``judges`` or ``bias``; none for other boards. Kept until it may change."""
    if board not in _FIND:
        return []
    key = ("kinds", board, benchmark.pk, staff)
    return until_changed(key, lambda: list(_FIND[board](benchmark, staff=staff)), benchmark=benchmark.pk)


def is_available(benchmark: Benchmark, board: str, *, staff: bool) -> bool:
    """Whether there is one, asked no further than to the first that is found. Kept until it may change."""
    key = ("has kinds", board, benchmark.pk, staff)
    return until_changed(key, lambda: any(_FIND[board](benchmark, staff=staff)), benchmark=benchmark.pk)


def has_verdicts(benchmark: Benchmark, kind: Kind, *, staff: bool) -> bool:
    """Whether there is a label or judgment of this kind that this viewer may see. Kept until it may change."""
    return kind.name in _given(benchmark, staff=staff)


def _given(benchmark: Benchmark, *, staff: bool) -> dict[str, bool]:
    """By kind of which there are verdicts, whether any are people's or a judge's that is no baseline: a baseline is a
    floor for judges, and ranks no models. Kept until it may change.
    """
    key = ("kinds with verdicts", benchmark.pk, staff)
    given: dict[str, bool]
    given = until_changed(key, lambda: _with_verdicts(benchmark, staff=staff), benchmark=benchmark.pk)
    return given


@guard.working()
def _with_verdicts(benchmark: Benchmark, *, staff: bool) -> dict[str, bool]:
    """As ``_given``, by one question about labels, and one about judgments."""
    columns = {kind.column for kind in KINDS.values()}
    given = {
        column: Exists(Label.objects.filter(campaign=OuterRef("pk"), **{f"{column}__isnull": False}))
        for column in columns
    }
    found: Any = Campaign.objects.filter(benchmark=benchmark).order_by().values("protocol", **given)
    campaigns: list[dict[str, Any]] = list(found)
    unseen = unseen_runs(benchmark, staff=staff, edition=True)  # a board of keyed runs may have an edition
    judged = Exists(Judgment.objects.filter(run=OuterRef("pk"), status=Judgment.Status.OK))
    runs = Run.objects.filter(judged, benchmark=benchmark, kind=Run.Kind.JUDGMENTS).exclude(pk__in=unseen)
    protocols = set(runs.order_by().values_list("protocol", "judge__baseline").distinct())

    def by_people(kind: Kind) -> bool:
        return any(campaign[kind.column] and kind.is_of(campaign["protocol"]) for campaign in campaigns)

    ranks: dict[str, bool] = {}
    for kind in KINDS.values():
        baselines = {baseline for protocol, baseline in protocols if protocol in kind.protocols}
        said_by_people = by_people(kind)
        if baselines or said_by_people:
            ranks[kind.name] = "" in baselines or said_by_people
    return ranks
