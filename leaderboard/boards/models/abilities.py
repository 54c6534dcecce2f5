"""How well all models together do on each ability (MMBench, arXiv 2307.06281, 5.3)."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from leaderboard.boards.base import Board, kept_board
from leaderboard.boards.declared import Table, kept, of_models
from leaderboard.boards.models import keyed, scores
from leaderboard.hidden import in_parts
from leaderboard.rows import Number, Row, number
from leaderboard.scope import Scope
from leaderboard.sight import MODELS
from stats.proportions import mean

NONE = "Nothing was counted on any ability."


@dataclass(frozen=True, kw_only=True)
class AbilityRow(Row):
    """The mean over the ``models`` that answered a sample, and over the ``n`` samples (or components) of an ability, as
    its path from the top; on the scale of the board. With all answers there it is the mean of the models' own numbers.
    """

    ability: str
    mean: Number
    models: int
    n: int


@kept_board("abilities", lambda scope: Board[AbilityRow], of=MODELS)
def abilities(scope: Scope) -> Board[AbilityRow]:
    """Every ability of the view, hardest first: the number that ranks the models, over all of them."""
    frame = _of_keys(scope) if scope.kind.keyed else _of_scores(scope)
    if frame.empty:
        return Board([], [NONE])
    ends = (0.0, 1.0) if scope.kind.keyed else scope.kind.ends(scope.benchmark)
    rows = []
    for ability, part in frame.groupby("ability"):
        of_sample = part.groupby("sample").agg(value=("value", "mean"), group=("group", "first"))
        average = mean(values=of_sample["value"].to_numpy(np.float64), cluster=of_sample["group"].to_numpy(), ends=ends)
        rows.append(
            AbilityRow(
                ability=str(ability), mean=number(average), models=int(part["model"].nunique()), n=len(of_sample)
            )
        )
    return Board(sorted(rows, key=lambda row: (row.mean.value or 0.0, row.ability)))


def _of_keys(scope: Scope) -> pd.DataFrame:
    """Right answers in every rotation where all models have them, else in one pass; at each depth of the tree."""
    answers, _, levels = keyed.counted_answers(scope)
    if not levels or answers.empty:
        return pd.DataFrame(columns=["ability"])
    of_models = [(name, keyed.every_rotation(rows), rows) for name, rows in answers.groupby("model")]
    circular = scope.kind.rotates and all(len(rotations) for _, rotations, _ in of_models)
    counted = pd.concat(
        [
            (rotations if circular else rows[rows["variant"] == ""]).assign(model=name)
            for name, rotations, rows in of_models
        ],
        ignore_index=True,
    )
    counted = counted.assign(value=counted["right"].astype(float))[["sample", "model", "group", "path", "value"]]
    steps = counted["path"].str.split(" / ")
    deepest = int(steps.str.len().max())
    at_depth = [
        counted[steps.str.len() >= depth].assign(ability=steps.str[:depth].str.join(" / "))
        for depth in range(1, deepest + 1)
    ]
    every = pd.concat(at_depth)
    return every[every["ability"] != ""]


def _of_scores(scope: Scope) -> pd.DataFrame:
    frame, _ = scores.verdicts_on_models(scope)
    frame = frame[frame["model"] != ""]
    if frame.empty:
        return pd.DataFrame(columns=["ability"])
    parts = scope.kind.shares(scope, frame).parts
    parts = parts[in_parts(scope, parts, by="part")]
    sample_of = frame.groupby("item")["sample"].first()
    parts = parts.assign(ability=parts["part"].astype(str), sample=parts["item"].map(sample_of))
    return parts[parts["ability"] != ""]


TABLES = {
    "abilities": Table(
        make=of_models(
            kept(
                abilities,
                "How well all models together do on each ability, hardest first (MMBench, 5.3).",
            )
        ),
        board="models",
        rows_are={AbilityRow: {}},
        fits=lambda kind: not kind.pairwise and not kind.no_models,
    ),
}
