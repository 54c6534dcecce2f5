"""Marks that a judge gives an answer beside the right one: of the answer (MMBench, Table 3: 1 to 5) or of its reasoning
(ChEF, C.4: 0 to 10). People give none.

Whoever knows an answer can tell from its mark whether it is right, so marks are as hidden as the right answers.
"""

from dataclasses import replace

import pandas as pd

from judging.protocols.base import KINDS_OF_REFERENCE
from leaderboard.boards import scores
from leaderboard.boards.base import ModelsBoard
from leaderboard.boards.judge_board import JudgesBoard
from leaderboard.boards.scores import Shares
from leaderboard.kinds.base import Kind, NumberColumn, Shape
from leaderboard.kinds.score import IN_WORDS, MEAN
from leaderboard.scope import Scope
from stats.figures import percent

NO_PEOPLE = "People give no marks of this kind, so no judge can be compared with them."


class _Marks(Kind):
    column = "score"
    hidden = KINDS_OF_REFERENCE

    def shares(self, scope: Scope, frame: pd.DataFrame) -> Shares:
        shares = super().shares(scope, frame)
        return replace(shares, parts=shares.parts.iloc[:0], order=[]) if scope.edition else shares

    def judges(self, scope: Scope) -> JudgesBoard:
        return JudgesBoard([], [NO_PEOPLE])


class Reference(_Marks):
    name = "reference"
    title = "Marks"
    aliases = ("reference-score",)
    board = scores.MarksBoard
    shape = Shape(
        MEAN,
        "mean mark",
        IN_WORDS,
        ends=(1.0, 5.0),
        unit=1.0,
        hundred=None,
        beside=(NumberColumn("exact_match", "Exact match %", percent, "Of the same answers, those that are the key"),),
    )

    def models(self, scope: Scope) -> ModelsBoard:
        return scores.with_exact_matches(scope, scores.models(scope))


class Reasoning(_Marks):
    name = "reasoning"
    title = "Reasoning"
    aliases = ("reasoning-quality",)
    shape = Shape(MEAN, "mean mark", IN_WORDS, ends=(0.0, 10.0), unit=1.0, hundred=None)
