"""Which numbers about keys that are not open to everybody are told: none about fewer than LEAST samples, neither alone
nor held against others of the same submission, those of earlier scorings among them.

What a number owes to hidden keys is, by sample, a keyed hash of the key and the answer: a cell of ``stats.disclosure``.
An answer that names nothing, or another option in each rotation, is wrong whatever the key is, and owes nothing.
"""

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar, cast

from bank.models import ScoredCells, Submission, SubmissionScore
from stats import disclosure
from stats.disclosure import Cell, tells_of_few

Told = dict[str, Cell]  # what numbers are made of, by their names
PARTS = {"yes": 1, "no": 0, "neither": -1}  # of the answers, on which precision, recall and F1 rest


class Row(Protocol):
    """What is read of a sample that was held against its key; ``one`` and ``every`` are empty where nothing is owed."""

    @property
    def sample(self) -> int: ...
    @property
    def said(self) -> int: ...
    @property
    def one(self) -> str: ...
    @property
    def every(self) -> str: ...


R = TypeVar("R", bound=Row)


def level_name(names: Sequence[str], measure: str) -> str:
    return "\x1f".join([measure, *names])


def tellable(kind: str, rows: Sequence[R], levels: Sequence[tuple[list[str], list[R]]], *, circular: bool) -> Told:
    """The numbers of one part that may stand together, each with what it is made of: the whole first, then levels."""

    def cell(some: Sequence[R], measure: str) -> Cell:
        if measure == "circular":
            return {str(row.sample): row.every for row in some if row.every}
        return {str(row.sample): row.one for row in some if row.one and (measure != "accuracy" or row.said >= 0)}

    choice = kind == SubmissionScore.Kind.CHOICE
    measures = ["circular", "vanilla"][not circular :] if choice else ["accuracy"]
    groups = [{measure: cell(rows, measure)} for measure in measures]
    if not choice:
        groups.append({name: cell([row for row in rows if row.said == said], name) for name, said in PARTS.items()})
    for names, some in sorted(levels, key=lambda level: -len(level[1])):
        groups += [{level_name(names, measure): cell(some, measure)} for measure in measures]
    everything = {name: one for group in groups for name, one in group.items()}
    if not tells_of_few(list(everything.values())):
        return everything
    return disclosure.tellable(groups)


# ---- over time ----


def shown_before(submission: Submission) -> list[Cell]:
    """What every number of a submission that was ever stored is made of; kept halves count as if they were shown."""
    rows = ScoredCells.objects.filter(submission=submission).order_by("pk")
    return [cell for row in rows for cell in row.cells]


def keep(submission: Submission, cells: Sequence[Cell]) -> None:
    """Remember what numbers that are shown from now on are made of."""
    if cells:
        ScoredCells.objects.create(submission=submission, cells=cast(Any, cells))


def may_follow(new: Sequence[Cell], before: Sequence[Cell]) -> bool:
    """Whether these numbers, held against those that were shown before, tell of no few samples."""
    return all(cell in before for cell in new) or not tells_of_few([*before, *new])
