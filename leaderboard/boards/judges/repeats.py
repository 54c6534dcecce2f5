"""How many of a judge's repeats say the same of an item (MLLM-as-a-Judge, Figure 5)."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from judging.models import Run
from leaderboard import votes
from leaderboard.boards.base import Board, kept_board
from leaderboard.boards.declared import OF_REPEATS, Table, kept
from leaderboard.hidden import of_one_source, without_sealed
from leaderboard.rows import UNKNOWN, Number, OfJudge, number, of_judge
from leaderboard.scope import Scope
from leaderboard.votes import scores
from stats.proportions import rate
from stats.reliability import most_alike

NONE = "No judge was asked more than once."


@dataclass(frozen=True, kw_only=True)
class RepeatsRow(OfJudge):
    """The share of a judge's items on which ``alike`` of its ``repeats`` verdicts, and no more, are the same."""

    judge: str
    run: int
    repeats: int
    alike: int
    share: Number = UNKNOWN
    n: int
    simulated: bool = False


@kept_board("repeats", lambda scope: Board[RepeatsRow])
def repeats(scope: Scope) -> Board[RepeatsRow]:
    """Every judge that was asked several times, over all items that it gave a verdict on, labelled or not.

    A repeat without a verdict is like no other.
    """
    scope = of_one_source(without_sealed(scope))
    groups = scores.items_asked(scope)["group"]
    rows, used = [], []
    for runs in votes.judge_groups(scope):
        verdicts = _verdicts(scope, runs).join(groups, on="item", how="inner")
        asked = max(runs[-1].repeats, int(verdicts["repeat"].max()) + 1 if len(verdicts) else 1)
        if asked == 1 or verdicts.empty:
            continue
        used += runs
        of_items = most_alike(verdicts)
        rows += [
            RepeatsRow(
                **of_judge(runs[-1]),
                repeats=asked,
                alike=alike,
                share=number(rate(hits=of_items["alike"] == alike, cluster=of_items["group"].to_numpy())),
                n=len(of_items),
            )
            for alike in range(1, asked + 1)
        ]
    return Board(rows, [] if rows else [NONE], tuple(run.pk for run in used))


def _verdicts(scope: Scope, runs: Sequence[Run]) -> pd.DataFrame:
    """``item, repeat, verdict``."""
    if scope.kind.pairwise:
        return votes.of_runs(scope, runs).frame.rename(columns={"choice": "verdict"})[["item", "repeat", "verdict"]]
    frame = scores.of_runs(scope, runs)
    return frame[["item", "repeat"]].assign(verdict=frame["value"].map(scores.over_orders))


TABLES = {
    "repeats": Table(
        make=kept(
            repeats,
            "Of each judge that was asked several times: the share of its items on which so many of its verdicts are "
            "the same (MLLM-as-a-Judge, Figure 5).",
        ),
        board="judges",
        rows_are={RepeatsRow: {}},
        view=OF_REPEATS,
    ),
}
