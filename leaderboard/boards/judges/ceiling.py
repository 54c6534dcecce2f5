"""People against people, by every metric of judges: the ceiling that judges are seen beside."""

from dataclasses import dataclass
from functools import partial

from leaderboard.boards import seen
from leaderboard.boards.declared import OF_LABELS, Rows, Table, TableQuery
from leaderboard.boards.judges.board import PEOPLE, JudgesBoard
from leaderboard.rows import Number, Row, plain
from leaderboard.scope import POOL, Scope


@dataclass(frozen=True, kw_only=True)
class CeilingRow(Row):
    """People against people by one metric: overall (``level`` is empty), or in a level or data set."""

    kind: str
    reference: str
    metric: str
    level: str = ""
    value: Number
    n: int


VALUE_ALONE = "within a level the value stands alone, without an interval"


def ceiling(scope: Scope, asked: TableQuery) -> Rows:
    """People against people by every metric of judges, overall and by level or data set."""
    board: JudgesBoard = seen.judges(scope)
    rows: list[CeilingRow] = []
    for reference, against in board.against.items():
        row = partial(CeilingRow, kind=scope.kind.name, reference=reference)
        for metric, of_people in against.ceiling.items():
            rows.append(row(metric=metric, value=of_people.number, n=of_people.n))
            cells = against.cells.get(metric, {}).get(PEOPLE, {})
            levels = [(level, cells[level]) for level in board.cell_order if level in cells]
            if len(levels) > 1:
                rows += [
                    row(metric=metric, level=level, value=Number(at.value, n=at.n, reason=VALUE_ALONE), n=at.n)
                    for level, at in levels
                ]
    return Rows(plain(rows), board.notes)


TABLES = {
    "ceiling": Table(make=ceiling, board="judges", rows_are={CeilingRow: {}}, view=(*OF_LABELS, POOL.name)),
}
