"""Rankings of several answers to one instruction (MLLM-as-a-Judge, batch ranking)."""

from collections.abc import Callable
from typing import Any, NoReturn

import pandas as pd

from bank.models import Benchmark, Item
from judging.models import Run
from leaderboard import metrics
from leaderboard.boards import bias, versus
from leaderboard.boards.bias import BiasBoard
from leaderboard.boards.versus import Versus
from leaderboard.kinds.base import Kind
from leaderboard.scope import BadScope, Scope
from leaderboard.votes import scores
from stats.rankings import Ranking

NO_MODELS = "Rankings rank answers to one instruction at a time; models are ranked by pairs or scores."


class Batch(Kind):
    name = "batch"
    title = "Rankings"
    column = "ranking"
    item_kind = Item.Kind.BATCH
    metrics = metrics.RANKINGS
    biases = ("position",)

    def value(self, stored: Any) -> tuple[Ranking, ...]:
        return (scores.places_in(stored),)

    def combined(self, values: "pd.Series[Any]") -> tuple[Ranking, ...]:
        # Not their mean: a judge that copies the order it is shown would hide behind ties.
        return tuple(ranking for verdict in values for ranking in verdict)

    def has_models(self, benchmark: Benchmark, has_verdicts: Callable[[Kind], bool]) -> bool:
        return False

    def models(self, scope: Scope) -> NoReturn:
        raise BadScope(NO_MODELS)

    def bias(self, scope: Scope) -> BiasBoard:
        return bias.of_rankings(scope)

    def compare_models(self, scope: Scope, a: str, b: str) -> NoReturn:
        raise BadScope(NO_MODELS)

    def compare_judges(self, scope: Scope, first: list[Run], second: list[Run]) -> Versus:
        return versus.judges_by_rankings(scope, first, second)
