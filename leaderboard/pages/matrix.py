"""Win rates of every model against every other, as a heat table."""

from dataclasses import dataclass

from leaderboard.boards import Board
from leaderboard.boards.base import Row
from leaderboard.pages import marks
from leaderboard.pages.address import Address
from leaderboard.pages.figures import NONE, count, number_of, percent
from leaderboard.scope import Scope

FEWEST = 10  # items below which a cell has no colour


@dataclass(frozen=True, slots=True)
class MatrixPage:
    models: list[str]
    rows: list[tuple[str, str, list[marks.HeatCell]]]  # name, link, cells
    of: int
    pairs: int
    upright: bool


def page_of(address: Address, scope: Scope, board: Board) -> MatrixPage:
    """Everything that the table shows: the row's model won so many percent against the column's."""
    names = board.extra["models"]
    numbers = {(row["model"], row["other"]): row for row in board.rows}
    view = address.view() | {"source": scope.source, "run": str(scope.run) if scope.run else None}
    rows = [
        (
            name,
            address.to("leaderboard:votes", **(view | {"anchor": None, "model": name})),
            [_cell(address, view, name, other, numbers.get((name, other))) for other in names],
        )
        for name in names
    ]
    return MatrixPage(names, rows, board.extra["of"], len(board.rows) // 2, any(len(name) > 8 for name in names))


def _cell(address: Address, view: dict[str, str | None], name: str, other: str, row: Row | None) -> marks.HeatCell:
    if name == other:
        return marks.HeatCell("", "", "self", "")
    if row is None:
        return marks.HeatCell(NONE, "", "qx", f"{name} and {other} were not compared")
    said = f"{count(row['wins'])} won, {count(row['ties'])} tied, {count(row['losses'])} lost"
    low, high = row["win_rate_low"], row["win_rate_high"]
    ends = "" if low is None else f"; 95%: {percent(low)} to {percent(high)}"
    return marks.HeatCell(
        percent(row["win_rate"]),
        count(row["n"]),
        marks.heat(row["win_rate"], 0.0, 1.0) if row["n"] >= FEWEST else "qx",
        f"{name} against {other}: {said} of {number_of(row['n'], 'item')}{ends}",
        # Held against the other model: only then does the list hold this pair, whatever the benchmark's anchor is.
        address.to("leaderboard:votes", **(view | {"anchor": other, "model": name, "other": other})),
    )
