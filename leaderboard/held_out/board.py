"""A judge's run against people on the half that its benchmark holds out, as requests told it, beside the open half."""

from collections.abc import Sequence
from dataclasses import dataclass

from bank.models import Benchmark
from leaderboard.boards.base import Board, whole_from_text
from leaderboard.boards.judges.board import REFERENCES, JudgesBoard
from leaderboard.models import HeldOutRelease
from leaderboard.rows import Number, OfJudge


@dataclass(frozen=True, kw_only=True)
class HeldOutRow(OfJudge):
    """A judge by one metric against one reference over all data sets, on the half that is ``open`` and on the one that
    is ``held_out``.
    """

    judge: str
    run: int
    kind: str
    reference: str
    metric: str
    open: Number
    held_out: Number
    simulated: bool = False


@dataclass(frozen=True, eq=False)
class HeldOutBoard(Board[HeldOutRow]):
    rows: Sequence[HeldOutRow] = ()


def beside(of_open: JudgesBoard, of_held: JudgesBoard, run: int) -> HeldOutBoard:
    """The numbers of a run that both boards have."""
    rows = []
    for reference in REFERENCES:
        opened = of_open.overall(reference).get(run, {})
        for metric, held in of_held.overall(reference).get(run, {}).items():
            if metric in opened and held.n:
                rows.append(
                    HeldOutRow(
                        judge=held.judge,
                        run=run,
                        kind=held.kind,
                        reference=reference,
                        metric=metric,
                        open=opened[metric].value,
                        held_out=held.value,
                        simulated=held.simulated,
                    )
                )
    return HeldOutBoard(rows)


def releases(benchmark: Benchmark) -> list[tuple[HeldOutRelease, HeldOutBoard]]:
    """All that was asked for, the first request first, with the numbers that it told."""
    asked = benchmark.held_out_releases.select_related("by").order_by("number")
    return [(each, whole_from_text(HeldOutBoard, each.board)) for each in asked]
