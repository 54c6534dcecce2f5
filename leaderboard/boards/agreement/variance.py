"""What verdicts differ by (prompt, item, person or order, and the rest), and what more of each would do."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from accounts.rules import allowed
from annotations.labels.agreement import components_of, label_rows
from judging.models import Run
from leaderboard import votes
from leaderboard.boards.agreement.campaigns import campaigns_of
from leaderboard.boards.base import Board, kept_board
from leaderboard.boards.declared import Rows, Table, TableQuery
from leaderboard.hidden import of_one_source, without_sealed
from leaderboard.metrics import ON_SCALE
from leaderboard.rows import Number, Row, number, plain
from leaderboard.scope import Scope
from leaderboard.votes import scores
from stats.generalizability import NO_VARIANCE, Components, components
from stats.verdicts import MISSING, TIE

UNFIT = "Only verdicts on a scale (pairs, scores) have a variance; none of kind {}."


@dataclass(frozen=True, kw_only=True)
class VarianceRow(Row):
    """One ``part`` of the variance of a verdict, of a ``campaign`` or of a ``judge`` in a run: its ``share``, and how
    many there are of it, its ``count``. ``error`` is the standard error of the mean over all items, ``twice_items`` and
    ``twice_ratings`` what it would be with twice the items, and with twice the people or repeats.
    """

    campaign: str = ""
    judge: str = ""
    run: int | None = None
    part: str
    variance: float
    share: Number
    count: int
    error: float
    twice_items: float
    twice_ratings: float
    n: int


def rows_of(found: Components, n: int, **of: str | int) -> list[VarianceRow]:
    """A row for each part. ``of``: whose verdicts they are."""
    error = found.error()
    more = {"error": error, "twice_items": found.error(items=2), "twice_ratings": found.error(raters=2), "n": n}
    return [
        VarianceRow(
            **of,  # type: ignore[arg-type]
            **more,  # type: ignore[arg-type]
            part=part.name,
            variance=part.variance,
            share=number(part.share),
            count=part.levels,
        )
        for part in found.parts
    ]


def _unfit(scope: Scope) -> str:
    return "" if scope.kind.on_scale else UNFIT.format(scope.kind)


@kept_board("variance", lambda scope: Board[VarianceRow], unfit=_unfit)
def of_judges(scope: Scope) -> Board[VarianceRow]:
    """The verdicts of every judge, of pairs in each order by itself, and of scores in each repeat."""
    scope = of_one_source(without_sealed(scope))
    rows: list[VarianceRow] = []
    notes, used = [], []
    for runs in votes.judge_groups(scope):
        if scope.run is not None and scope.run not in [run.pk for run in runs]:
            continue
        frame = _verdicts(scope, runs)
        found = _components(frame)
        used += runs
        if found is None:
            notes.append(f"{runs[-1].judge}: {NO_VARIANCE}.")
            continue
        rows += rows_of(found, len(frame), judge=runs[-1].judge.name, run=runs[-1].pk)
    return Board(rows, notes, tuple(run.pk for run in used))


def _components(frame: pd.DataFrame) -> Components | None:
    value, item, prompt, order = (frame[column].to_numpy() for column in ("value", "item", "group", "order"))
    return components(value=value, item=item, prompt=prompt, crossed=order, name="order")


def _verdicts(scope: Scope, runs: list[Run]) -> pd.DataFrame:
    """``item, group, order, value``, a row for each verdict."""
    if not scope.kind.pairwise:
        items = scores.items_of(scope)
        frame = scope.kind.numbers(scope, scores.of_runs(scope, runs), items)
        return frame.join(items["group"], on="item", how="inner").assign(order=0)
    parts = []
    for item, _, choice, turned in (votes.verdicts(scope, run) for run in runs):
        there = choice > MISSING
        value = ON_SCALE[np.minimum(choice[there], TIE)]
        parts.append(pd.DataFrame({"item": item[there], "order": turned[there].astype(int), "value": value}))
    frame = pd.concat(parts)
    return frame.join(votes.pairs(scope, only=frame["item"])["group"], on="item", how="inner")


def variance_parts(scope: Scope, asked: TableQuery) -> Rows:
    """What verdicts differ by: prompt, item, person or order, and the rest, each with its share of the variance of one
    verdict; of campaigns, for those who may read them, and of judges. And what twice the items, or twice the people or
    repeats, would make of the standard error of the mean.
    """
    rows, notes = [], []
    readable = allowed(asked.viewer, "read-judging", of=scope.benchmark) and scope.run is None
    for labelled in campaigns_of(scope, asked) if readable else ():
        labels = label_rows(labelled, asked.viewer)
        found = components_of(labels)
        if found is None:
            notes.append(f"{labelled.name}: its verdicts have no place on a scale, or there are none.")
        else:
            rows += rows_of(found, len(labels), campaign=labelled.name)
    board = of_judges(scope) if not scope.campaign else Board[VarianceRow]()
    return Rows(plain([*rows, *board.rows]), [*notes, *board.notes])


TABLES = {
    "variance": Table(
        make=variance_parts,
        board="judges",
        rows_are={VarianceRow: {}},
        fits=lambda kind: kind.on_scale,
        view=("kind", "run", "campaign", "level", "question_type", "split"),
    ),
}
