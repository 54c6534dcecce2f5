"""Votes between two answers (MLLM-Bench; MLLM-as-a-Judge, pair comparison)."""

from types import MappingProxyType

from leaderboard import metrics
from leaderboard.kinds.base import Kind, NumberColumn, Shape
from leaderboard.scope import ANY_ORDER, AS_TIE, FAILURES, NO_TIES, ORDERS, TIES
from stats.figures import percent


class Pair(Kind):
    name = "pair"
    title = "Pairs"
    column = "choice"
    shape = Shape(NumberColumn("win_rate", "Win rate, %", percent, "Wins of all items; a tie is no win"), "win %")
    metrics = metrics.PAIRS
    leading = "accuracy_sided"
    pairwise = True
    paper = "MLLM-Bench"
    # Table 5: one vote decides, twice none is a tie, and wins are of all items. What a reply without a vote counts is
    # not printed; it is taken as the vote that says neither.
    printed = MappingProxyType({TIES.name: NO_TIES, FAILURES.name: AS_TIE, ORDERS.name: ANY_ORDER})
    biases = ("position", "length", "self")
    stand_in = "equality"
    reference = "majority of people"
    rows_page = "leaderboard:votes"

    @property
    def in_address(self) -> None:
        return None
