"""The page on which an edition is published: what it would reveal beside the last one, and whether a sample can be told
from it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from leaderboard.boards.base import ModelRow, ModelsBoard, whole_from_text
from leaderboard.editions import Cells, Draft, models_in_steps
from stats.figures import NONE, listed, rank_range


@dataclass(frozen=True, slots=True)
class Revealed:
    """What visitors would see of an edition beside the last one, as the template tells it: how many are ``named`` whose
    numbers rest on something hidden, who enters and who leaves;
    the samples behind any number, at most; of models their levels, and the ranks that move.
    """

    named: int
    named_then: int
    entering: list[str]
    leaving: list[str]
    most_then: int
    most: int
    levels_then: int
    levels: int
    new: int  # of the levels
    new_levels: str
    kept_levels: str
    moved: list[str]
    intervals: list[str]
    told_as: str  # the same in words
    left_out: list[tuple[str, str]]
    out: str  # who is, in words


def revealed_by(draft: Draft) -> Revealed:
    then: Cells = draft.last.cells if draft.last else {}
    now = draft.cells
    before = {*then, *(models_in_steps(draft.last) if draft.last else ())}
    named = {*now, *draft.in_steps}
    board = draft.board if isinstance(draft.board, ModelsBoard) else None
    rows: Sequence[ModelRow] = board.rows if board else []
    last: Sequence[ModelRow] = whole_from_text(type(board), draft.last.board).rows if board and draft.last else []
    levels, levels_then = ({name for row in of for name in row.levels} for of in (rows, last))
    ranks = {row.model: _rank(row) for row in last}
    intervals = draft.as_intervals()
    return Revealed(
        named=len(named),
        named_then=len(before),
        entering=sorted(named - before),
        leaving=sorted(before - named),
        most_then=_most(then),
        most=_most(now),
        levels_then=len(levels_then),
        levels=len(levels),
        new=len(levels - levels_then),
        new_levels=listed(sorted(levels - levels_then)),
        kept_levels=draft.levels_kept_out() if board else "",
        moved=[
            f"{row.model} {ranks[row.model]} to {_rank(row)}"
            for row in rows
            if row.model in ranks and ranks[row.model] != _rank(row)
        ],
        intervals=intervals,
        told_as=listed(intervals),
        left_out=list(draft.left_out.items()),
        out=listed(list(draft.left_out)),
    )


def _rank(row: ModelRow) -> str:
    return rank_range(row.rank, row.rank_low, row.rank_high) or NONE


def _most(cells: Cells) -> int:
    """The samples behind any number of the model that has most."""
    return max((len(set().union(*numbers.values())) for numbers in cells.values()), default=0)
