"""Votes between two answers (MLLM-Bench; MLLM-as-a-Judge, pair comparison)."""

from judging.models import Run
from leaderboard import metrics
from leaderboard.boards import bias, judge_board, pairs, versus
from leaderboard.boards.bias import BiasBoard
from leaderboard.boards.judge_board import JudgesBoard
from leaderboard.boards.versus import Versus
from leaderboard.figures import percent
from leaderboard.kinds.base import Kind, NumberColumn, Shape
from leaderboard.scope import Scope


class Pair(Kind):
    name = "pair"
    title = "Pairs"
    column = "choice"
    shape = Shape(NumberColumn("win_rate", "Win rate, %", percent, "Wins of all items; a tie is no win"), "win %")
    metrics = metrics.PAIRS
    pairwise = True
    biases = ("position", "length", "self")
    stand_in = "equality"
    reference = "majority of people"
    board = pairs.PairsBoard
    rows_page = "leaderboard:votes"

    @property
    def in_address(self) -> None:
        return None

    def models(self, scope: Scope) -> pairs.PairsBoard:
        return pairs.by_pairs(scope)

    def judges(self, scope: Scope) -> JudgesBoard:
        return judge_board.board(scope, judge_board.PairComparison)

    def bias(self, scope: Scope) -> BiasBoard:
        return bias.of_pairs(scope)

    def compare_models(self, scope: Scope, a: str, b: str) -> Versus:
        return versus.models_by_pairs(scope, a, b)

    def compare_judges(self, scope: Scope, first: list[Run], second: list[Run]) -> Versus:
        return versus.judges_by_pairs(scope, first, second)
