"""The rows of the leaderboards, as the page, the command and the API print them (design: Contract)."""

from collections.abc import Callable
from dataclasses import replace

from judging.protocols.prompts.stored import AS_PUBLISHED, any_as_published
from leaderboard import votes
from leaderboard.boards.agreement import AgreementBoard, agreements
from leaderboard.boards.base import B, Board, ModelsBoard, cached, from_stored
from leaderboard.boards.bias import BiasBoard, biases
from leaderboard.boards.judge_board import JudgesBoard
from leaderboard.hidden import NONE_YET, STAFFS, edition_of, is_kept_back
from leaderboard.scope import Scope


def models(scope: Scope) -> ModelsBoard:
    """Every model by verdicts of the view's kind. Below staff, a board that depends on hidden inputs is an edition."""
    if not is_kept_back(scope):
        return _told(_with_lengths(scope, scope.kind.models(scope)))
    edition = edition_of(scope)
    if edition is None:
        return ModelsBoard([], [NONE_YET])
    board = from_stored(scope.kind.board, edition.board)
    return replace(board, edition=edition.number, computed_at=edition.published_at)


def _with_lengths(scope: Scope, board: ModelsBoard) -> ModelsBoard:
    if scope.edition or not board.rows:
        return board
    lengths = votes.answer_lengths(scope)
    rows = [
        replace(row, mean_length=characters, mean_tokens=tokens)
        for row in board.rows
        for characters, tokens in [lengths.get(row.model, (None, None))]
    ]
    return replace(board, rows=rows)


def judges(scope: Scope) -> JudgesBoard:
    """Every judge compared with people, by verdicts of the view's kind."""
    return JudgesBoard([], [STAFFS]) if is_kept_back(scope) else _told(scope.kind.judges(scope))


def agreement_of(scope: Scope) -> AgreementBoard:
    """Agreement of every two voters. Staff see the names of annotators, everybody else their pseudonyms."""
    return _told(agreements(scope, names=scope.staff))


def bias_of(scope: Scope) -> BiasBoard:
    """Every judge's biases, by verdicts of the view's kind."""
    return _told(biases(scope))


def _told(board: B) -> B:
    """The board, with a note where a prompt without our fences had a part in it."""
    if not board.runs or not any_as_published(board.runs):
        return board
    return replace(board, notes=[*board.notes, AS_PUBLISHED])


BOARDS: dict[str, Callable[[Scope], Board]] = {
    "models": models,
    "judges": judges,
    "agreement": agreement_of,
    "bias": bias_of,
}

__all__ = ["BOARDS", "Board", "agreement_of", "agreements", "bias_of", "cached", "judges", "models"]
