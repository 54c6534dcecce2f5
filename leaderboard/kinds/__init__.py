"""The kinds of verdicts, and which of them have data for a board of a benchmark."""

from annotations.models import Campaign
from bank import guard
from bank.models import Benchmark
from judging.models import Judgment, Run
from leaderboard.cache import until_changed
from leaderboard.hidden import unseen_runs
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

__all__ = ["KINDS", "USUAL", "Kind", "available", "default_of", "get", "has_verdicts"]

USUAL = Pair()
# In the order that a page offers them; the first one with data opens.
KINDS: dict[str, Kind] = {
    one.name: one
    for one in (USUAL, Score(), Batch(), Components(), Choice(), YesNo(), Nominal(), Reference(), Reasoning())
}
# Those that always rest on hidden criteria first; others do where verdicts held some.
WITH_EDITIONS = [kind.name for kind in sorted(KINDS.values(), key=lambda kind: not kind.hidden) if not kind.no_models]
_ALSO = {also: one for one in KINDS.values() for also in one.aliases}


def get(name: str) -> Kind:
    """The kind with this name or alias. Raises BadScope."""
    kind = KINDS.get(name) or _ALSO.get(name)
    if kind is None:
        raise BadScope(f"Unknown kind of board: {name!r}. Kinds: {', '.join(KINDS)}.")
    return kind


def _of_models(benchmark: Benchmark, *, staff: bool) -> list[Kind]:
    """The kinds whose board of models has something to show."""
    given = _given(benchmark, staff=staff)
    return [kind for kind in KINDS.values() if kind.has_models(benchmark, lambda kind: kind.name in given)]


def _of_judges(benchmark: Benchmark, *, staff: bool) -> list[Kind]:
    """The kinds with metrics for judges in which people or judges have given verdicts."""
    given = _given(benchmark, staff=staff)
    return [kind for kind in KINDS.values() if kind.metrics and kind.name in given]


def _of_bias(benchmark: Benchmark, *, staff: bool) -> list[Kind]:
    return [kind for kind in _of_judges(benchmark, staff=staff) if kind.biases]


_FIND = {"models": _of_models, "judges": _of_judges, "bias": _of_bias}


def default_of(benchmark: Benchmark, board: str, *, staff: bool) -> Kind:
    """The kind of the board that opens first; pairs if there are no data yet."""
    return next(iter(available(benchmark, board, staff=staff)), USUAL)


def available(benchmark: Benchmark, board: str, *, staff: bool) -> list[Kind]:
    """The kinds with data for ``models``, ``judges`` or ``bias``; none for other boards. Kept until it may change."""
    if board not in _FIND:
        return []
    key = ("kinds", board, benchmark.pk, staff)
    return until_changed(key, lambda: _FIND[board](benchmark, staff=staff), benchmark=benchmark.pk)


def has_verdicts(benchmark: Benchmark, kind: Kind, *, staff: bool) -> bool:
    """Whether there is a label or judgment of this kind that this viewer may see."""
    return kind.name in _given(benchmark, staff=staff)


@guard.working()
def _given(benchmark: Benchmark, *, staff: bool) -> set[str]:
    """The names of the kinds of which there is a label or judgment that this viewer may see. Kept until it may change,
    for all kinds together: three boards of a benchmark ask for each.
    """

    def look() -> set[str]:
        campaigns = list(Campaign.objects.filter(benchmark=benchmark).order_by("pk").values_list("pk", flat=True))
        unseen = unseen_runs(benchmark, staff=staff, edition=True)  # a board of keyed runs may have an edition
        runs = Run.objects.filter(benchmark=benchmark, kind=Run.Kind.JUDGMENTS).exclude(pk__in=unseen)
        protocols = list(runs.order_by("pk").values_list("pk", "protocol"))
        return {kind.name for kind in KINDS.values() if _is_given(kind, campaigns, protocols)}

    return until_changed(("given", benchmark.pk, staff), look, benchmark=benchmark.pk)


def _is_given(kind: Kind, campaigns: list[int], protocols: list[tuple[int, str]]) -> bool:
    """Whether these campaigns, or these runs with their protocols, have a verdict of this kind."""
    if campaigns and kind.labels().filter(campaign__in=campaigns).exists():
        return True
    runs = [run for run, protocol in protocols if protocol in kind.protocols]
    return bool(runs) and Judgment.objects.filter(run__in=runs, status=Judgment.Status.OK).exists()
