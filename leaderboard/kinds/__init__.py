"""The kinds of verdicts, and which of them a benchmark can fill a board with."""

from dataclasses import dataclass

from annotations.models import Campaign
from bank.models import Benchmark
from judging.models import Judgment, Run
from leaderboard.cache import until_written
from leaderboard.kinds.base import Kind
from leaderboard.kinds.batch import Batch
from leaderboard.kinds.choice import Choice
from leaderboard.kinds.components import Components
from leaderboard.kinds.marks import Reasoning, Reference
from leaderboard.kinds.pair import Pair
from leaderboard.kinds.score import Score
from leaderboard.kinds.yes_no import YesNo
from leaderboard.scope import BadScope
from leaderboard.votes import withheld_runs

__all__ = ["KINDS", "USUAL", "Kind", "default_of", "get", "has_verdicts", "known_of"]

USUAL = Pair()
# In the order in which a page offers them, and in which the first that has something opens.
KINDS: dict[str, Kind] = {
    one.name: one for one in (USUAL, Score(), Batch(), Components(), Choice(), YesNo(), Reference(), Reasoning())
}
_ALSO = {also: one for one in KINDS.values() for also in one.also}


def get(name: str) -> Kind:
    """The kind of that name. Raises BadScope."""
    found = KINDS.get(name) or _ALSO.get(name)
    if found is None:
        raise BadScope(f"There are no boards of kind {name!r}; there are: {', '.join(KINDS)}.")
    return found


def _of_models(benchmark: Benchmark, *, staff: bool) -> list[Kind]:
    """The kinds of boards of models that have something to show."""
    return [
        kind
        for kind in KINDS.values()
        if kind.has_models(benchmark, lambda kind: has_verdicts(benchmark, kind, staff=staff))
    ]


def _of_judges(benchmark: Benchmark, *, staff: bool) -> list[Kind]:
    """The kinds of verdicts that people or judges have given, of those that both give."""
    return [kind for kind in KINDS.values() if kind.metrics and has_verdicts(benchmark, kind, staff=staff)]


def _of_bias(benchmark: Benchmark, *, staff: bool) -> list[Kind]:
    return [kind for kind in _of_judges(benchmark, staff=staff) if kind.biases]


_FIND = {"models": _of_models, "judges": _of_judges, "bias": _of_bias}


def default_of(benchmark: Benchmark, what: str, *, staff: bool) -> Kind:
    """The kind of the board that opens first; pairs where there is nothing yet."""
    return next(iter(known_of(benchmark, what, staff=staff)), USUAL)


def known_of(benchmark: Benchmark, what: str, *, staff: bool) -> list[Kind]:
    """Of ``models``, ``judges`` or ``bias``, as last found if nothing was written since; of other boards none."""
    if what not in _FIND:
        return []
    return until_written(("kinds", what, benchmark.pk, staff), lambda: _FIND[what](benchmark, staff=staff))


def has_verdicts(benchmark: Benchmark, kind: Kind, *, staff: bool) -> bool:
    """Whether somebody labelled or judged in this kind, as far as this viewer may see it."""
    asked = until_written(("asked on", benchmark.pk, staff), lambda: _asked_on(benchmark, staff=staff))
    if asked.campaigns and kind.labels().filter(campaign__in=asked.campaigns).exists():
        return True
    runs = [run for run, protocol in asked.runs if protocol in kind.protocols]
    return bool(runs) and Judgment.objects.filter(run__in=runs, status=Judgment.Status.OK).exists()


@dataclass(frozen=True)
class Asked:
    """Who was asked on a benchmark: the campaigns, and the runs of judges with their protocols."""

    campaigns: list[int]
    runs: list[tuple[int, str]]


def _asked_on(benchmark: Benchmark, *, staff: bool) -> Asked:
    """Each kind would ask for both again, and most benchmarks have one or the other."""
    runs = Run.objects.filter(benchmark=benchmark, kind=Run.Kind.JUDGMENTS).exclude(pk__in=withheld_runs(staff=staff))
    campaigns = Campaign.objects.filter(benchmark=benchmark).order_by("pk").values_list("pk", flat=True)
    return Asked(list(campaigns), list(runs.order_by("pk").values_list("pk", "protocol")))
