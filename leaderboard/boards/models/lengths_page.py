"""How long answers of models and replies of judges are, as tables."""

from collections.abc import Sequence

from leaderboard.boards.models.lengths import LengthRow, LengthsBoard
from leaderboard.lookups import known_models
from leaderboard.show import marks
from leaderboard.show.marks import Cell, Chip
from leaderboard.show.table import Column, Table, column_of, names, table, text
from stats.figures import whole

EACH = "Counted over all of them; each stands on the page of its item"


def tables_of(board: LengthsBoard) -> list[Table]:
    """Of answers and of replies, those that there are."""
    parts = (("Answers of models, in characters", board.rows), ("Replies of judges, in tokens", board.replies))
    return [_table(title, rows) for title, rows in parts if rows]


def _table(title: str, rows: Sequence[LengthRow]) -> Table:
    known = known_models(row.model for row in rows)
    most = max(max(row.counts) / row.n for row in rows)

    def name(row: LengthRow) -> Cell:
        chips = (Chip("simulated"),) if row.simulated or known[row.model].simulated else ()
        return Cell(row.model or row.judge, f"run {row.run}" if row.run else "", chips=chips)

    def between(row: LengthRow) -> Cell:
        return Cell(f"{whole(row.p10)} to {whole(row.p90)}", title=f"Half: {whole(row.p25)} to {whole(row.p75)}")

    def drawn(row: LengthRow) -> Cell:
        return Cell(bar=marks.histogram([count / row.n for count in row.counts], most))

    longest = whole(rows[0].width * (len(rows[0].counts) - 1))
    return table(
        [
            names("Model" if rows[0].model else "Judge", name),
            column_of(LengthRow, "p50", cell=lambda row: Cell(whole(row.p50), title=EACH)),
            Column("Most are", between, title="Nine tenths are above the first, and below the second"),
            column_of(LengthRow, "mean"),
            Column("n", lambda row: Cell(whole(row.n), title=EACH)),
            text(f"0 to {longest}, and longer", drawn),
        ],
        sorted(rows, key=lambda row: -row.p50),
        label=title,
        caption=title,
        fill=True,
    )
