"""Win rates of every model against every other, as a heat table."""

from dataclasses import dataclass

from bank.forms.fields import whole_number
from leaderboard.boards.base import cached
from leaderboard.boards.models.matrix import MOST, Matrix, MatrixRow, win_rates
from leaderboard.scope import Scope
from leaderboard.show import marks
from leaderboard.show.marks import Cell
from leaderboard.show.pickers import Select, pick
from leaderboard.show.table import Column, Table, names, table, upright
from leaderboard.view import Address
from stats.figures import NONE, count, interval, number_of, percent

BLOCKS = ("rows", "columns")
FEWEST = 10  # items below which a cell has no colour


@dataclass(frozen=True, slots=True)
class MatrixPage:
    table: Table
    shown: str
    pairs: int


def board_of(address: Address, scope: Scope) -> Matrix:
    """The blocks of models that the address names, or the first."""
    rows, columns = (max(0, (whole_number(address.params.get(name)) or 1) - 1) for name in BLOCKS)
    return cached(scope, f"matrix {rows} {columns}", lambda scope: win_rates(scope, rows, columns))


def selects(address: Address, board: Matrix) -> list[Select]:
    """Which models stand in the rows and in the columns, where there are more than a table shows."""
    of = board.of
    if of <= MOST:
        return []
    starts = range(0, of, MOST)
    choices = {str(block): f"{start + 1}–{min(start + MOST, of)}" for block, start in enumerate(starts, start=1)}
    labels = zip(BLOCKS, ("Rows: models by rank", "Columns"), strict=True)
    chosen = [(name, label, address.params.get(name, "1")) for name, label in labels]
    return [pick(name, label, choices, block, on=block != "1") for name, label, block in chosen]


def build_matrix_page(address: Address, scope: Scope, board: Matrix) -> MatrixPage:
    """Everything that the table shows: the row's model won so many percent against the column's."""
    others, total = board.others, board.of
    numbers = {(row.model, row.other): row for row in board.rows}
    view = address.view() | {"source": scope.source, "run": str(scope.run) if scope.run else None}

    def name_cell(name: str) -> Cell:
        return Cell(name, link=address.to("leaderboard:votes", **(view | {"anchor": None, "model": name})))

    def against(other: str) -> Column[str]:
        def cell(name: str) -> Cell:
            if name == other:
                return marks.ITSELF
            row = numbers.get((name, other))
            if row is None:
                return Cell(NONE, css="qx", title=f"{name} and {other} were not compared")
            # Compared with the other model: only then does the list hold this pair, whatever the benchmark's anchor is.
            of_both = view | {"anchor": other, "model": name, "other": other}
            return _won_cell(row, address.to("leaderboard:votes", **of_both))

        return upright(other, cell)

    some = f"{len(board.models)} of {total} models by rank; choose others above the table"
    return MatrixPage(
        table(
            [names("Model", name_cell), *(against(other) for other in others)],
            board.models,
            label="Win rates",
            caption="Share of items that the row's model won against the column's, with the number of items",
            css="matrix upright" if any(len(name) > 8 for name in others) else "matrix",
            does="Click: the items of the two.",
            fill=True,
        ),
        "By rank" if total <= MOST else some,
        len({frozenset((row.model, row.other)) for row in board.rows}),
    )


def _won_cell(row: MatrixRow, link: str) -> Cell:
    won, tied, lost = (count(outcome) for outcome in row.outcomes)
    title = f"{row.model} against {row.other}: {won} won, {tied} tied, {lost} lost of {number_of(row.n, 'item')}"
    ends = interval(row.win_rate, percent)
    return Cell(
        percent(row.win_rate.value),
        count(row.n),
        marks.heat(row.win_rate.value, 0.0, 1.0) if row.n >= FEWEST else "qx",
        f"{title}; {ends}" if ends else title,
        link,
    )
