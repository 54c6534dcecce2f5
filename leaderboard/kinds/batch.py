"""Rankings of several answers to one instruction (MLLM-as-a-Judge, batch ranking)."""

from itertools import chain
from typing import Any

import pandas as pd

from leaderboard import metrics
from leaderboard.kinds.base import Kind
from leaderboard.votes import scores
from stats.rankings import Ranking


class Batch(Kind):
    name = "batch"
    title = "Rankings"
    column = "ranking"
    no_models = "Rankings rank answers to one instruction at a time; models are ranked by pairs or scores."
    rows_page = ""
    metrics = metrics.RANKINGS
    biases = ("position",)

    def value(self, stored: Any) -> tuple[Ranking, ...]:
        return (scores.places_in(stored),)

    def combined(self, values: "pd.Series[Any]") -> tuple[Ranking, ...]:
        # Not their mean: a judge that copies the order it is shown would hide behind ties.
        return tuple(chain.from_iterable(values))
