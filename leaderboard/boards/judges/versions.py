"""Versions of a judge's prompt on the same items that people labelled: what each change of the prompt was worth."""

from dataclasses import dataclass
from itertools import pairwise

from judging.models import Run
from leaderboard import votes
from leaderboard.boards import seen
from leaderboard.boards.base import Board, kept_board
from leaderboard.boards.declared import OF_REPEATS, Table, kept
from leaderboard.rows import UNKNOWN, Number, OfJudge
from leaderboard.scope import BadScope, Scope

NONE = "No judge was asked by two versions of a prompt."
CAUSE = "each version is compared with the one before it on the items that both judged, by a paired test"


@dataclass(frozen=True, kw_only=True)
class VersionRow(OfJudge):
    """A version of a judge's prompt by a ``measure`` against people, beside the one ``before`` it on the ``n`` items
    that both judged: ``value`` and ``value_before`` there, and their ``difference`` with p of the paired test.
    ``spent``: US dollars of its run, for staff.
    """

    judge: str
    prompt: str
    version: int
    run: int
    before: int
    measure: str
    value: float | None
    value_before: float | None
    difference: Number = UNKNOWN
    p: float | None
    significant: bool | None
    n: int
    spent: float | None = None
    simulated: bool = False


@kept_board("versions", lambda scope: Board[VersionRow])
def versions(scope: Scope) -> Board[VersionRow]:
    """Every two versions of a prompt that follow each other in runs of one judge with the same other settings."""
    if not scope.kind.metrics:
        return Board([], [NONE])
    rows: list[VersionRow] = []
    used: list[Run] = []
    for runs in _by_prompt(scope):
        for before, run in pairwise(runs):
            rows += _compared(scope, run, before)
            used += [before, run]
    numbers = tuple(dict.fromkeys(run.pk for run in used))
    return Board(rows, [CAUSE] if rows else [NONE], numbers)


def _by_prompt(scope: Scope) -> list[list[Run]]:
    """The last run of each version, in their order, of each judge and prompt with the same other settings."""
    last: dict[tuple[str, ...], dict[int, Run]] = {}
    for runs in votes.judge_groups(scope):
        run = runs[-1]
        if run.template_version is None:
            continue
        others = sorted((name, str(value)) for name, value in run.settings.items() if name != "prompt")
        key = (run.judge.name, run.protocol, _name(run), str(others))
        last.setdefault(key, {})[run.template_version] = run
    return [[found[version] for version in sorted(found)] for found in last.values() if len(found) > 1]


def _name(run: Run) -> str:
    return str(run.settings.get("prompt", "")).partition("@")[0]


def _compared(scope: Scope, run: Run, before: Run) -> list[VersionRow]:
    try:
        result = seen.two_judges(scope, run.pk, before.pk)
    except BadScope:
        return []
    return [
        VersionRow(
            judge=run.judge.name,
            prompt=_name(run),
            version=run.template_version or 0,
            run=run.pk,
            before=before.template_version or 0,
            measure=measure.measure,
            value=measure.a,
            value_before=measure.b,
            difference=measure.difference,
            p=measure.p,
            significant=measure.significant,
            n=measure.n,
            spent=run.spent if scope.staff else None,
            simulated=run.judge.simulated,
        )
        for measure in result.measures
    ]


TABLES = {
    "versions": Table(
        make=kept(
            versions,
            "What each change of a judge's prompt was worth: every version beside the one before it, against people "
            "on the items that both judged, with the interval of the difference and p of the paired test.",
        ),
        board="judges",
        rows_are={VersionRow: {}},
        view=OF_REPEATS,
    ),
}
