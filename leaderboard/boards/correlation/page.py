"""The page of correlations: a matrix of rankings, the meta-ranking, and the spread over repeats."""

from dataclasses import dataclass
from itertools import chain

from leaderboard.boards.correlation.board import FEWEST, CorrelationBoard, MetaRank, Ranking, SpreadRow
from leaderboard.boards.correlation.board import CorrelationRow as Row
from leaderboard.boards.judges.page import in_plain_words
from leaderboard.show import marks
from leaderboard.show.marks import Cell, Chip
from leaderboard.show.table import P_VALUE, Column, Table, names, table, text, upright
from stats.figures import NONE, in_brackets, p_value, percent, two, whole

LOW, HIGH = -1.0, 1.0
SAME = "one of the two ranks all models the same"


CHIPS = {"baseline": "needs no skill", "benchmark": "board", "typed": "typed"}


@dataclass(frozen=True, slots=True)
class CorrelationPage:
    """Tables: every ranking against every other, each two with interval and p, the mean of the ranks, and judges'
    repeats.
    """

    matrix: Table
    pairs: Table
    meta: Table
    repeats: Table


def build_correlation_page(board: CorrelationBoard) -> CorrelationPage:
    by_pair = {frozenset((row.a, row.b)): row for row in board.rows}
    return CorrelationPage(_correlation_matrix(board, by_pair), _pairs(board), _meta_ranks(board), _repeats(board))


def _correlation_matrix(board: CorrelationBoard, by_pair: dict[frozenset[str], Row]) -> Table:
    def name(ranking: Ranking) -> Cell:
        chips = (Chip(CHIPS[ranking.about]),) if ranking.about in CHIPS else ()
        return Cell(in_plain_words(ranking.key), chips=chips)

    def against(other: Ranking) -> Column[Ranking]:
        def cell(ranking: Ranking) -> Cell:
            if ranking.key == other.key:
                return marks.ITSELF
            row = by_pair[frozenset((ranking.key, other.key))]
            if row.value.value is None:
                few = f"{row.n} models in common: too few"
                return Cell(NONE, whole(row.n), "qx", few if row.n < FEWEST else SAME)
            title = f"p = {p_value(row.p)}, {row.test}; n = {row.n} models"
            return Cell(two(row.value.value), whole(row.n), marks.heat(row.value.value, LOW, HIGH), title)

        return upright(in_plain_words(other.key), cell)

    return table(
        [
            names("Ranking", name),
            Column("Models", lambda ranking: len(ranking.values)),
            *(against(other) for other in board.rankings),
        ],
        board.rankings,
        row_css=lambda ranking: "" if ranking.about in ("people", "judge") else "base",
        label="Correlation matrix",
        caption="Spearman's correlation of every two rankings, with the number of shared models",
        css="matrix upright",
        fill=True,
    )


def _pairs(board: CorrelationBoard) -> Table:
    rows = [row for row in board.rows if row.value.value is not None]
    return table(
        [
            names("One", lambda row: in_plain_words(row.a), css="name"),
            text("Other", lambda row: in_plain_words(row.b), css="name"),
            Column("Spearman, 95%", lambda row: Cell(two(row.value.value), in_brackets(row.value, two), strong=True)),
            Column("Kendall", "kendall"),
            P_VALUE,
            Column("n", "n"),
        ],
        sorted(rows, key=lambda row: -(row.value.value or 0.0)),
        label="Pairs of rankings",
        caption="Correlation of every two rankings with its interval and permutation p",
        css="cmpt versus",
    )


def _meta_ranks(board: CorrelationBoard) -> Table:
    def rank_in(at: int, ranking: Ranking) -> Column[MetaRank]:
        return upright(in_plain_words(ranking.key), lambda row: Cell(str(row.ranks[at])))

    return table(
        [
            Column("Rank", lambda row: Cell(str(row.meta), strong=True)),
            names("Model", "model", css=""),
            Column("Mean", "mean"),
            *(rank_in(at, ranking) for at, ranking in enumerate(board.rankings)),
        ],
        board.ranks,
        label="Mean of the ranks",
        caption="Rank of each model in every ranking, their mean, and the rank of that",
        css="matrix upright",
        fill=True,
    )


def _repeats(board: CorrelationBoard) -> Table:
    def at_level(name: str) -> Column[SpreadRow]:
        def cell(row: SpreadRow) -> Cell:
            level = row.levels.get(name)
            if level is None:
                return Cell(NONE)
            return Cell(f"{percent(level.mean)} ± {percent(level.sd)}", title=f"n = {level.n} items")

        return Column(name or "No level", cell, css="n nowrap")

    levels = dict.fromkeys(chain.from_iterable(row.levels for row in board.repeats))
    return table(
        [
            names("Judge", "shown", css=""),
            text("Model", "model"),
            Column("Mean", "mean", percent),
            Column("SD", "sd", percent),
            Column("Repeats", "repeats"),
            *(at_level(name) for name in levels),
        ],
        board.repeats,
        label="Over repeats",
        caption="Mean and standard deviation of the win rate over repeats",
        css="cmpt",
    )
