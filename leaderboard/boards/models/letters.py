"""Multiple choice: which options models choose, and how the option of each answer was found."""

from dataclasses import dataclass
from typing import cast

from leaderboard.boards import seen
from leaderboard.boards.declared import Rows, Table, TableQuery
from leaderboard.boards.models.keyed import ChoiceBoard
from leaderboard.rows import Row, plain
from leaderboard.scope import BadScope, Scope


@dataclass(frozen=True, kw_only=True)
class LetterRow(Row):
    """The share of one option among those that a model chose, or, ``of`` the key, among the right ones."""

    of: str
    model: str = ""
    letter: str
    share: float


@dataclass(frozen=True, kw_only=True)
class ExtractionRow(Row):
    """For how many answers the option was found in which way; ``found``: the share named by label or judge."""

    model: str
    label: int
    judge: int
    random: int
    none: int
    no_text: int
    n: int
    found: float | None


def _choices(scope: Scope) -> ChoiceBoard:
    if not scope.kind.rotates:
        raise BadScope(f"Only answers to multiple choice have options; those of kind {scope.kind} have none.")
    return cast(ChoiceBoard, seen.models(scope))


def letters(scope: Scope, asked: TableQuery) -> Rows:
    """Multiple choice: the share of each option among those that a model chose, and among the right ones."""
    board = _choices(scope)
    rows = [LetterRow(of="key", letter=letter, share=share) for letter, share in sorted(board.right.items())]
    for model, shares in sorted(board.letters.items()):
        for letter, share in sorted(shares.items()):
            rows.append(LetterRow(of="model", model=model, letter=letter, share=share))
    return Rows(plain(rows), board.notes)


def extraction(scope: Scope, asked: TableQuery) -> Rows:
    """Multiple choice: for how many answers of each model the option was found in which way."""
    board = _choices(scope)
    rows = []
    for row in sorted(board.rows, key=lambda row: row.model.casefold()):
        counts = row.extraction
        n, found = sum(counts.values()), counts["label"] + counts["judge"]
        rows.append(ExtractionRow(model=row.model, **counts, n=n, found=found / n if n else None))
    return Rows(plain(rows), board.notes)


TABLES = {
    "letters": Table(make=letters, board="models", rows_are={LetterRow: {}}, fits=lambda kind: kind.rotates),
    "extraction": Table(make=extraction, board="models", rows_are={ExtractionRow: {}}, fits=lambda kind: kind.rotates),
}
