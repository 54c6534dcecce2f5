"""Votes between two answers (MLLM-Bench; MLLM-as-a-Judge, pair comparison)."""

from bank.models import Item
from judging.models import Run
from leaderboard import metrics
from leaderboard.boards import pair_judges, pairs
from leaderboard.boards.base import Board
from leaderboard.boards.versus import between_judges, between_models
from leaderboard.boards.versus.measures import Versus
from leaderboard.figures import percent
from leaderboard.kinds.base import Column, Kind, Shape
from leaderboard.scope import Scope


class Pair(Kind):
    name = "pair"
    title = "Pairs"
    column = "choice"
    item_kind = Item.Kind.PAIR
    shape = Shape(Column("win_rate", "Win rate, %", percent, "Wins of all items; a tie is no win"), "win %")
    metrics = metrics.PAIRS
    pairwise = True
    biases = ("position", "length", "self")
    stand_in = "equality"
    reference = "majority of people"
    rows_page = "leaderboard:votes"

    @property
    def in_address(self) -> None:
        return None

    def models(self, scope: Scope) -> Board:
        return pairs.by_pairs(scope)

    def judges(self, scope: Scope) -> Board:
        return pair_judges.by_pairs(scope)

    def compare_models(self, scope: Scope, a: str, b: str) -> Versus:
        return between_models.by_pairs(scope, a, b)

    def compare_judges(self, scope: Scope, first: list[Run], second: list[Run]) -> Versus:
        return between_judges.by_pairs(scope, first, second)
