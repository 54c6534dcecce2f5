"""Win rates of every model against every other."""

from dataclasses import dataclass, field

import pandas as pd

from leaderboard import votes
from leaderboard.boards.base import Board
from leaderboard.boards.models.pairs import Tally
from leaderboard.boards.seen import models
from leaderboard.hidden import of_many, of_one_source
from leaderboard.rows import number
from leaderboard.scope import BadScope, Scope

MOST = 30  # models shown at once


@dataclass(frozen=True, kw_only=True)
class MatrixRow(Tally):
    """One model against another."""

    model: str
    other: str
    tie_rule: str
    n: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Matrix(Board[MatrixRow]):
    """``models`` and ``others`` are the names in the two blocks shown; ``of`` is the number of all models."""

    models: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    of: int = 0


def win_rates(scope: Scope, rows: int = 0, columns: int = 0) -> Matrix:
    """Win rates of one block of ``MOST`` models, by rank, against another block. ``rows`` and ``columns`` are the
    numbers of the blocks, from 0. Repeats are averaged: an item counts once.
    """
    if not scope.kind.pairwise:
        raise BadScope(f"Win rates are only computed for pairs; none of kind {scope.kind}.")
    ranked = models(scope)
    names = [row.model for row in ranked.rows]
    blocks = [names[MOST * start : MOST * (start + 1)] for start in (rows, columns)]
    if not all(blocks):
        blocks = [names[:MOST], names[:MOST]]
    outcomes = votes.outcomes(scope)
    frame = votes.join_items(votes.pairs(of_one_source(scope)), votes.with_failures(outcomes, scope.failures))
    ones, others = ({side: frame[side].isin(block) for side in ("a", "b")} for block in blocks)
    sided = votes.sided(frame[(ones["a"] & others["b"]) | (ones["b"] & others["a"])], "")
    sided = sided[sided["model"].isin(blocks[0]) & sided["other"].isin(blocks[1])]
    sided = sided[of_many(scope, sided, "model", "other")]
    cells = []
    for (model, other), part in sided.groupby(["model", "other"], observed=True):
        weight = part["weight"] if "weight" in part else pd.Series(1.0, index=part.index)
        played = [float(weight[part["outcome"] == code].sum()) for code in (votes.WIN, votes.TIE, votes.LOSS)]
        counts = dict(zip(("wins", "ties", "losses"), played, strict=True))
        share = votes.share_won(part, scope.ties)
        n = int(part["item"].nunique())
        cells.append(
            MatrixRow(model=str(model), other=str(other), **counts, win_rate=number(share), tie_rule=scope.ties, n=n)
        )
    return Matrix(cells, ranked.notes, ranked.runs, models=blocks[0], others=blocks[1], of=len(names))
