"""The page on which an edition is published: what it would reveal beside the last one, and whether a sample can be told
from it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from leaderboard.boards.base import ModelRow, ModelsBoard, whole_from_text
from leaderboard.editions import Cells, Draft
from leaderboard.figures import NONE, listed, number_of, rank_range
from stats.disclosure import MIN_SAMPLES


@dataclass(frozen=True, slots=True)
class Revealed:
    """What visitors would see of an edition beside the last one, as the template tells it: who enters and who leaves;
    the samples behind any number, at most; of models their levels, and the ranks that move.
    """

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


@dataclass(frozen=True, slots=True)
class Check:
    """Whether something hidden could be told: ``state`` is ok, kept (it was held back for that) or bad."""

    words: str
    found: str
    state: str = "ok"


def revealed_by(draft: Draft) -> Revealed:
    then: Cells = draft.last.cells if draft.last else {}
    now = draft.cells
    board = draft.board if isinstance(draft.board, ModelsBoard) else None
    rows: Sequence[ModelRow] = board.rows if board else []
    last: Sequence[ModelRow] = whole_from_text(type(board), draft.last.board).rows if board and draft.last else []
    levels, levels_then = ({name for row in of for name in row.levels} for of in (rows, last))
    ranks = {row.model: _rank(row) for row in last}
    intervals = draft.as_intervals()
    return Revealed(
        entering=sorted(set(now) - set(then)),
        leaving=sorted(set(then) - set(now)),
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
    )


def _rank(row: ModelRow) -> str:
    return rank_range(row.place, row.rank_low, row.rank_high) or NONE


def _most(cells: Cells) -> int:
    """The samples behind any number of the model that has most."""
    return max((len(set().union(*numbers.values())) for numbers in cells.values()), default=0)


def checks_of(draft: Draft) -> list[Check]:
    """What was checked before it may be published, and what was found."""
    checks = [_enough(draft)]
    differs = f"No difference of two editions rests on fewer than {MIN_SAMPLES} samples"
    if draft.board is not None and draft.problem and not draft.unchanged:
        checks.append(Check(differs, draft.problem, "bad"))
    elif draft.last:
        checks.append(Check(differs, f"Compared with edition {draft.last.number}: {draft.changes_in_words()}"))
    else:
        checks.append(Check(differs, "this would be the first edition"))
    kept = draft.levels_kept_out()
    left = "Nothing small is left over when levels are taken from the total"
    checks.append(Check(left, kept or "all of its levels can be told", "kept" if kept else "ok"))
    names = draft.as_intervals()
    settles = "No number settles the samples behind it"
    checks.append(Check(settles, f"as intervals: {listed(names)}" if names else "none does", "kept" if names else "ok"))
    alike = f"No two {draft.noun}s give each other away"
    out = listed(list(draft.left_out))
    checks.append(Check(alike, f"left out: {out}" if out else "nothing had to be left out", "kept" if out else "ok"))
    if draft.unchanged:
        checks.append(Check("It says something new", draft.problem, "bad"))
    return checks


def _enough(draft: Draft) -> Check:
    words = f"Every number rests on at least {MIN_SAMPLES} samples"
    if draft.board is None:
        return Check(words, draft.problem, "bad")
    return Check(words, f"Smallest group: {number_of(draft.least, 'sample')} behind a number")
