"""The page of correlations: a matrix of rankings, the meta-ranking, and the spread over repeats."""

from dataclasses import dataclass

from leaderboard.boards.correlation import FEWEST, CorrelationBoard, RepeatsRow
from leaderboard.boards.correlation import CorrelationRow as Row
from leaderboard.figures import NONE, in_brackets, percent, two, whole
from leaderboard.pages import marks
from leaderboard.pages.versus import p_value

LOW, HIGH = -1.0, 1.0


@dataclass(frozen=True, slots=True)
class Line:
    """One pair of rankings in the table beside the matrix."""

    a: str
    b: str
    value: str
    interval: str
    kendall: str
    p: str
    significant: bool
    n: str


@dataclass(frozen=True, slots=True)
class CorrelationPage:
    heads: list[tuple[str, str]]  # name, what it is
    rows: list[tuple[str, str, str, list[marks.HeatCell]]]  # name, what it is, models, cells
    lines: list[Line]
    meta: list[tuple[str, list[int], str, int]]
    repeats: list[tuple[str, str, str, str, str, list[tuple[str, str]]]]  # with a cell and its title for each level
    repeat_levels: list[str]


def page_of(board: CorrelationBoard) -> CorrelationPage:
    by_pair = {frozenset((row.a, row.b)): row for row in board.rows}
    rows = []
    for ranking in board.rankings:
        cells = [_cell(ranking.key, other.key, by_pair) for other in board.rankings]
        rows.append((ranking.key, ranking.about, whole(len(ranking.values)), cells))
    with_values = [row for row in board.rows if row.value.value is not None]
    with_values.sort(key=lambda row: -(row.value.value or 0.0))
    levels = list(dict.fromkeys(name for row in board.repeats for name in row.levels))
    return CorrelationPage(
        heads=[(ranking.key, ranking.about) for ranking in board.rankings],
        rows=rows,
        lines=[_line(row) for row in with_values],
        meta=[(row.model, row.ranks, f"{row.mean:.2f}", row.meta) for row in board.ranks],
        repeats=[
            (row.shown, row.model, percent(row.mean), percent(row.sd), whole(row.repeats), _by_level(row, levels))
            for row in board.repeats
        ],
        repeat_levels=levels,
    )


READING = [
    ("Spearman's correlation", "is 1 where two rankings put their common models in the same order, −1 in the reverse."),
    ("", "Small figures are the models that both rank. Models with fewer than 30 items are in no ranking."),
    ("p", "is the share of permutations of the models that correlate as strongly; bold counts at 5%."),
]


def _cell(a: str, b: str, by_pair: dict[frozenset[str], Row]) -> marks.HeatCell:
    if a == b:
        return marks.HeatCell("", "", "self", "")
    row = by_pair[frozenset((a, b))]
    if row.value.value is None:
        few = f"{row.n} models in common: too few" if row.n < FEWEST else "one of the two ranks all models the same"
        return marks.HeatCell(NONE, whole(row.n), "qx", few)
    title = f"p = {p_value(row.p)}, {row.test}; n = {row.n} models"
    return marks.HeatCell(two(row.value.value), whole(row.n), marks.heat(row.value.value, LOW, HIGH), title)


def _by_level(row: RepeatsRow, levels: list[str]) -> list[tuple[str, str]]:
    """Mean ± standard deviation within each level, with the number of items as title."""
    cells = []
    for name in levels:
        level = row.levels.get(name)
        cells.append((f"{percent(level.mean)} ± {percent(level.sd)}", f"n = {level.n} items") if level else (NONE, ""))
    return cells


def _line(row: Row) -> Line:
    return Line(
        row.a,
        row.b,
        two(row.value.value),
        in_brackets(row.value, two),
        two(row.kendall),
        p_value(row.p),
        bool(row.significant),
        whole(row.n),
    )
