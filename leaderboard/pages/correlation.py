"""The page of correlations: a matrix of rankings, the meta-ranking, and the spread over repeats."""

from dataclasses import dataclass

from leaderboard.boards import Board
from leaderboard.boards.base import Row
from leaderboard.figures import NONE, percent, two, whole
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
    repeats: list[tuple[str, str, str, str, str]]


def page_of(board: Board) -> CorrelationPage:
    rankings = board.extra["rankings"]
    by_pair = {frozenset((row["a"], row["b"])): row for row in board.rows}
    rows = []
    for one in rankings:
        cells = [_cell(one["key"], other["key"], by_pair) for other in rankings]
        rows.append((one["key"], one["about"], whole(one["n"]), cells))
    known = sorted((row for row in board.rows if row["value"] is not None), key=lambda row: -row["value"])
    return CorrelationPage(
        heads=[(one["key"], one["about"]) for one in rankings],
        rows=rows,
        lines=[_line(row) for row in known],
        meta=[(row["model"], row["ranks"], f"{row['mean']:.2f}", row["meta"]) for row in board.extra["ranks"]],
        repeats=[
            (row["judge"], row["model"], percent(row["mean"]), percent(row["sd"]), whole(row["repeats"]))
            for row in board.extra["repeats"]
        ],
    )


def _cell(one: str, other: str, by_pair: dict[frozenset[str], Row]) -> marks.HeatCell:
    if one == other:
        return marks.HeatCell("", "", "self", "")
    row = by_pair[frozenset((one, other))]
    if row["value"] is None:
        few = f"{row['n']} models in common: too few" if row["n"] < 3 else "one of the two ranks all models the same"
        return marks.HeatCell(NONE, whole(row["n"]), "qx", few)
    title = f"p = {p_value(row['p'])}, {row['test']}; n = {row['n']} models"
    return marks.HeatCell(two(row["value"]), whole(row["n"]), marks.heat(row["value"], LOW, HIGH), title)


def _line(row: Row) -> Line:
    low, high = row["value_low"], row["value_high"]
    return Line(
        row["a"],
        row["b"],
        two(row["value"]),
        "" if low is None else f"[{two(low)}, {two(high)}]",
        two(row["kendall"]),
        p_value(row["p"]),
        bool(row.get("significant")),
        whole(row["n"]),
    )
