"""Marks that a judge gives an answer beside the right one: of the answer (MMBench, Table 3: 1 to 5) or of its reasoning
(ChEF, C.4: 0 to 10). People give none.

Whoever knows an answer can tell from its mark whether it is right, so marks are as hidden as the right answers.
"""

from dataclasses import replace

import pandas as pd

from judging.protocols.base import KINDS_OF_REFERENCE
from leaderboard.kinds.base import Kind, NumberColumn, Shape
from leaderboard.kinds.score import IN_WORDS, MEAN
from leaderboard.scope import Scope
from leaderboard.votes.scores import Shares
from stats.figures import percent


class _Marks(Kind):
    column = "score"
    hidden = KINDS_OF_REFERENCE

    def shares(self, scope: Scope, frame: pd.DataFrame) -> Shares:
        shares = super().shares(scope, frame)
        return replace(shares, parts=shares.parts.iloc[:0], order=[]) if scope.edition else shares


class Reference(_Marks):
    name = "reference"
    title = "Marks"
    aliases = ("reference-score",)
    shape = Shape(
        MEAN,
        "mean mark",
        IN_WORDS,
        ends=(1.0, 5.0),
        unit=1.0,
        hundred=None,
        beside=(NumberColumn("exact_match", "Exact match %", percent, "Of the same answers, those that are the key"),),
    )


class Reasoning(_Marks):
    name = "reasoning"
    title = "Reasoning"
    aliases = ("reasoning-quality",)
    shape = Shape(MEAN, "mean mark", IN_WORDS, ends=(0.0, 10.0), unit=1.0, hundred=None)
