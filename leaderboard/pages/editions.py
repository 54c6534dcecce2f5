"""The page on which an edition is published: what it would reveal beside the last one, and whether a sample can be told
from it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from leaderboard.boards.base import ModelRow, ModelsBoard, whole_from_text
from leaderboard.editions import Cells, Draft
from leaderboard.figures import NONE, listed, number_of, rank_range, whole
from leaderboard.models import Edition
from stats.disclosure import MIN_SAMPLES

NAMED = 2  # models in a line, before it says how many more


@dataclass(frozen=True, slots=True)
class Revealed:
    """A line of what visitors would see: in the last edition, in this one, and what changes. ``is_kept``: what is held
    back.
    """

    what: str
    before: str
    now: str
    changes: str
    is_kept: bool = False


@dataclass(frozen=True, slots=True)
class Check:
    """Whether something hidden could be told: ``state`` is ok, kept (it was held back for that) or bad."""

    words: str
    found: str
    state: str = "ok"


def revealed_by(draft: Draft) -> list[Revealed]:
    noun = "judge" if draft.what == Edition.What.JUDGES else "model"
    then: Cells = draft.last.cells if draft.last else {}
    now = draft.cells
    entering, leaving = sorted(set(now) - set(then)), sorted(set(then) - set(now))
    words = [f"{_named(entering)} {'enters' if len(entering) == 1 else 'enter'}"] if entering and then else []
    words += [f"{_named(leaving)} {'leaves' if len(leaving) == 1 else 'leave'}"] if leaving else []
    lines = [
        Revealed(f"{noun.capitalize()}s", _count(then), whole(len(now)), "; ".join(words) or _same(draft)),
        Revealed("Samples behind them", _most(then), _most(now), draft.changes_in_words(noun) if then else ""),
    ]
    if isinstance(draft.board, ModelsBoard):
        lines += _of_models(draft, draft.board)
    if names := draft.as_intervals():
        lines.append(
            Revealed("Told as intervals", "", whole(len(names)), f"{listed(names)}: a share would settle samples", True)
        )
    lines += [Revealed(f"Left out: {name}", "", "", reason, True) for name, reason in draft.left_out.items()]
    return lines


def _of_models(draft: Draft, board: ModelsBoard) -> list[Revealed]:
    rows: Sequence[ModelRow] = board.rows
    last: Sequence[ModelRow] = whole_from_text(type(board), draft.last.board).rows if draft.last else []
    levels, levels_then = ({name for row in of for name in row.levels} for of in (rows, last))
    new = sorted(levels - levels_then)
    lines = [
        Revealed(
            "Levels",
            whole(len(levels_then)) if draft.last else NONE,
            whole(len(levels)),
            f"{listed(new)} {'is' if len(new) == 1 else 'are'} new" if new and draft.last else _same(draft),
        )
    ]
    if kept := draft.levels_kept_out():
        lines.append(Revealed("Levels kept out", "", "", kept, True))
    if draft.last:
        ranks = {row.model: _rank(row) for row in last}
        moved = [
            f"{row.model} {ranks[row.model]} to {_rank(row)}"
            for row in rows
            if row.model in ranks and ranks[row.model] != _rank(row)
        ]
        lines.append(Revealed("Ranks that move", "", whole(len(moved)), _named(moved) or "none"))
    return lines


def _rank(row: ModelRow) -> str:
    return rank_range(row.place, row.rank_low, row.rank_high) or NONE


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{', '.join(names[:NAMED])}{more}" if more else listed(list(names))


def _same(draft: Draft) -> str:
    return "the same" if draft.last else "the first edition"


def _count(cells: Cells) -> str:
    return whole(len(cells)) if cells else NONE


def _most(cells: Cells) -> str:
    """The samples behind any number of the model that has most."""
    return whole(max((len(set().union(*numbers.values())) for numbers in cells.values()), default=0)) if cells else NONE


def checks_of(draft: Draft) -> list[Check]:
    """What was checked before it may be published, and what was found."""
    noun = "judge" if draft.what == Edition.What.JUDGES else "model"
    checks = [_enough(draft)]
    differs = f"No difference of two editions rests on fewer than {MIN_SAMPLES} samples"
    if draft.board is not None and draft.problem and not draft.unchanged:
        checks.append(Check(differs, draft.problem, "bad"))
    elif draft.last:
        checks.append(Check(differs, f"Compared with edition {draft.last.number}: {draft.changes_in_words(noun)}"))
    else:
        checks.append(Check(differs, "this would be the first edition"))
    kept = draft.levels_kept_out()
    left = "Nothing small is left over when levels are taken from the total"
    checks.append(Check(left, kept or "all of its levels can be told", "kept" if kept else "ok"))
    names = draft.as_intervals()
    settles = "No number settles the samples behind it"
    checks.append(Check(settles, f"as intervals: {listed(names)}" if names else "none does", "kept" if names else "ok"))
    alike = f"No two {noun}s give each other away"
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
