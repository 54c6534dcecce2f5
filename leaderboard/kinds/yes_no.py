"""Answers to questions of yes or no, compared with their keys (POPE)."""

import pandas as pd

from leaderboard.kinds.base import NumberColumn, Shape
from leaderboard.kinds.choice import Keyed
from leaderboard.scope import Scope
from stats.figures import percent


class YesNo(Keyed):
    name = "yes-no"
    title = "Yes or no"
    aliases = ("yes_no",)
    column = "answer"
    question = "yes_no"
    shape = Shape(
        NumberColumn("accuracy", "Accuracy %", percent, "Share of right answers; one that says neither is not right"),
        "right %",
        "accuracy: an answer that says neither yes nor no is not right",
        beside=(
            NumberColumn("precision", "Precision %", percent, "Of the answers yes, how many are right"),
            NumberColumn("recall", "Recall %", percent, "Of the questions whose answer is yes, how many were found"),
            NumberColumn("f1", "F1 %", percent, "Harmonic mean of precision and recall"),
            NumberColumn("yes_ratio", "Yes %", percent, "Share of answers that say yes: a tendency, not a score"),
        ),
    )

    def numbers(self, scope: Scope, frame: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
        """Yes and no as words."""
        return frame.assign(value=frame["value"].map({True: "yes", False: "no"}))
