"""Points for the weighted components of an instruction (MIA-Bench)."""

from types import MappingProxyType

import pandas as pd

from leaderboard import metrics
from leaderboard.kinds.base import Kind, NumberColumn, Shape
from leaderboard.scope import OF_TEN, TOTAL, Scope
from leaderboard.votes import points
from leaderboard.votes.scores import Shares
from stats.figures import tenth


class Components(Kind):
    name = "components"
    title = "Components"
    column = "parts"
    shape = Shape(
        NumberColumn("score", "Score %", tenth, "Points of all components per total weight"),
        "points %",
        "points per weight, in percent; a category is the mean over its components",
        ends=(0.0, 100.0),
        unit=1.0,
        hundred=100.0,
    )
    metrics = metrics.SCORES
    by_weights = True
    paper = "MIA-Bench"
    printed = MappingProxyType({TOTAL.name: OF_TEN})
    hidden = ("component",)
    biases = ("high_score", "length", "self")
    scale_width = 10
    part_word = "category"
    compared_by = "Points per weight, %"
    compared_in = "percent"
    edition_digits = 1

    made_of = staticmethod(points.made_of)

    def numbers(self, scope: Scope, frame: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
        """Points as percentages of their weights."""
        if frame.empty:
            return frame
        counted = frame[frame["item"].isin(items.index)]
        percentages, _, _ = points.shares_of(
            scope, counted.join(items[["sample", "group"]], on="item").assign(model="")
        )
        return percentages[list(frame.columns)].astype({"value": float})

    def shares(self, scope: Scope, frame: pd.DataFrame) -> Shares:
        verdict_shares, component_shares, notes = points.shares_of(scope, frame)
        return Shares(
            verdict_shares,
            component_shares.rename(columns={"category": "part"}),
            points.order_of(component_shares["category"]),
            notes,
        )
