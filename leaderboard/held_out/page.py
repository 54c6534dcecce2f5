"""The page of the half that a benchmark holds out: who asked for a judge's figures on it, and what was told."""

from collections.abc import Sequence
from dataclasses import dataclass

from leaderboard.boards.judges.board import MAJORITY
from leaderboard.held_out.board import HeldOutBoard, HeldOutRow
from leaderboard.kinds import KINDS
from leaderboard.metrics import Metric
from leaderboard.models import HeldOutRelease
from leaderboard.show.marks import Cell
from leaderboard.show.table import Column, Table, names, number_cell, table, text
from stats.figures import percent, two


@dataclass(frozen=True, slots=True)
class _Line:
    """A request, and the row that it is shown by."""

    asked: HeldOutRelease
    row: HeldOutRow


def table_of(told: Sequence[tuple[HeldOutRelease, HeldOutBoard]]) -> Table:
    """Every request, the newest first, with its judge's leading metric against people's majority on both halves."""

    lines = []
    for asked, board in reversed(told):
        row = _leading(board)
        if row:
            lines.append(_Line(asked, row))

    def half(label: str, number: str) -> Column[_Line]:
        def cell(line: _Line) -> Cell:
            return number_cell(line.row.number(number), percent if _metric(line.row).is_share else two)

        return Column(label, cell, title="As it was when it was asked for")

    return table(
        [
            names("Judge", lambda line: Cell(line.row.shown, f"run {line.row.run}, request {line.asked.number}")),
            text("Asked by", lambda line: Cell(str(line.asked.by or "a command"), f"{line.asked.at:%-d %b %Y}")),
            text("Against people", lambda line: _label(_metric(line.row))),
            half("Open half", "open"),
            half("Held-out half", "held_out"),
        ],
        lines,
        label="Requests",
        caption="Who asked for a judge's figures on the half that is held out, and what was told",
        fill=True,
    )


def _leading(board: HeldOutBoard) -> HeldOutRow | None:
    """The row of the metric that boards show unasked, against the majority."""
    rows = {row.metric: row for row in board.rows if row.reference == MAJORITY}
    first = next(iter(rows.values()), None)
    return rows.get(KINDS[first.kind].metric("", rows).name, first) if first else None


def _metric(row: HeldOutRow) -> Metric:
    return KINDS[row.kind].metric(row.metric, ())


def _label(metric: Metric) -> str:
    return f"{metric.label} %" if metric.is_share else metric.label
