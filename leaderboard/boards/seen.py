"""The rows of the leaderboards, as the page, the command and the API print them (design: Contract)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from judging.protocols.prompts.stored import AS_PUBLISHED, any_as_published
from judging.runs import queries
from leaderboard import votes
from leaderboard.boards.agreement import board as of_agreement
from leaderboard.boards.agreement.board import AgreementBoard
from leaderboard.boards.base import B, Board, ModelsBoard, kept_board
from leaderboard.boards.biases.board import BiasBoard
from leaderboard.boards.by_kind import makers_of
from leaderboard.boards.judges.board import JudgesBoard
from leaderboard.boards.models.pairs import PairsBoard
from leaderboard.boards.standing import rounds_beside_people, rounds_of
from leaderboard.boards.versus import board as versus
from leaderboard.boards.versus.board import Versus
from leaderboard.hidden import held_out_in, of_one_source, uncounted_runs, without_sealed
from leaderboard.scope import LENGTH, NO_CONTROL, NO_ELO, BadScope, Scope
from leaderboard.sight import JUDGES, MODELS, Sight

SIMULATED = "The labels come from simulated annotators: they say nothing about people."
HELD_OUT = "Half of what people labelled is held out: these figures are of the other half."
PARTLY_SIMULATED = "Some of the labels come from simulated annotators, who say nothing about people."


@kept_board(
    "models",
    lambda scope: makers_of(scope.kind).shape,
    of=MODELS,
    has_editions=True,
    unfit=lambda scope: scope.kind.no_models,
)
def models(scope: Scope) -> ModelsBoard:
    """Every model by verdicts of the view's kind. Below staff, a board that depends on hidden inputs is an edition."""
    board = _told(scope, _with_lengths(scope, makers_of(scope.kind).models(of_one_source(scope))))
    rounds = [OfRounds(note) for note in rounds_of(of_one_source(scope)).notes]
    return replace(board, notes=[*board.notes, *rounds]) if rounds else board


class OfRounds(str):
    """A note about what a board counts while rounds are open."""


def _with_lengths(scope: Scope, board: ModelsBoard) -> ModelsBoard:
    if scope.edition or not board.rows:
        return board
    lengths = votes.answer_lengths(scope)
    rows = []
    for row in board.rows:
        characters, tokens = lengths.get(row.model, (None, None))
        rows.append(replace(row, mean_length=characters, mean_tokens=tokens))
    return replace(board, rows=rows)


def rated_otherwise(scope: Scope, board: Board[Any]) -> PairsBoard | None:
    """The same board with length held equal, or with nothing held equal where it has something; to set beside it.

    None of other kinds, and of so many votes that it is computed on request alone.
    """
    if not board.rated or not Sight(scope, MODELS).live or votes.is_large(scope.benchmark):
        return None
    control = LENGTH if scope.control == NO_CONTROL else NO_CONTROL
    return cast(PairsBoard, models(replace(scope, control=control, elo=NO_ELO)))


@kept_board("judges", lambda scope: JudgesBoard, of=JUDGES, has_editions=True)
def judges(scope: Scope) -> JudgesBoard:
    """Every judge compared with people, by verdicts of the view's kind. Below staff, what depends on hidden inputs is
    an edition.
    """
    return _beside_people(scope, makers_of(scope.kind).judges(without_sealed(scope)))


@kept_board("agreement", unfit=of_agreement.unfit)
def agreement_of(scope: Scope) -> AgreementBoard:
    """Agreement of every two voters. Staff see the names of annotators, everybody else their pseudonyms."""
    return _beside_people(scope, of_agreement.agreements(without_sealed(scope), names=scope.names))


@kept_board("bias", lambda scope: BiasBoard)
def bias_of(scope: Scope) -> BiasBoard:
    """Every judge's biases with their intervals, and people's own (MLLM-Bench, Figures 2 and 3)."""
    if not scope.kind.biases:
        raise BadScope(f"Biases are measured for pairs, scores, components and rankings; none of kind {scope.kind}.")
    return _beside_people(scope, makers_of(scope.kind).biases(without_sealed(scope)))


def two_models(scope: Scope, a: str, b: str) -> Versus:
    """Two models by the verdicts, scores or keys of the view. Raises BadScope if one has none."""
    if a == b:
        raise BadScope("Choose two different models.")
    if scope.kind.no_models:
        raise BadScope(scope.kind.no_models)
    return versus.tested_together(makers_of(scope.kind).two_models(of_one_source(without_sealed(scope)), a, b))


def two_judges(scope: Scope, a: int, b: int) -> Versus:
    """Two judges' runs against people, on the items that both judged. Raises BadScope if one has no run."""
    scope = without_sealed(scope)
    first, second = versus.runs_of(scope, a), versus.runs_of(scope, b)
    if first[-1].pk == second[-1].pk:
        raise BadScope("Choose two different judges, or two settings of one.")
    result = makers_of(scope.kind).two_judges(scope, first, second)
    result = replace(result, measures=[*result.measures, *versus.reviewed(scope, first, second)])
    return versus.tested_together(result)


def _beside_people(scope: Scope, board: B) -> B:
    """The board as this viewer may see it, with a note where a half of its samples is held out."""
    board = _told(scope, board)
    notes = [HELD_OUT] if held_out_in(scope.benchmark) and not scope.half else []
    notes += [OfRounds(note) for note in rounds_beside_people(scope).notes] if board.rows else []
    return replace(board, notes=[*board.notes, *notes]) if notes else board


def _told(scope: Scope, board: B) -> B:
    """The board as this viewer may see it, with a note where its people are simulated, and where a prompt without our
    fences had a part in it.
    """
    simulated, real = votes.labels_by_origin(scope)
    notes = [PARTLY_SIMULATED if real else SIMULATED] if simulated else []
    notes += _not_asked(scope, board.runs)
    notes += [AS_PUBLISHED] if board.runs and any_as_published(board.runs) else []
    return replace(board, notes=[*board.notes, *notes]) if notes else board


def _not_asked(scope: Scope, runs: Sequence[int]) -> list[str]:
    """How many items its judge was not asked about, since an answer is none, and what that counts."""
    if scope.edition or not runs:
        return []
    withheld = uncounted_runs(staff=scope.staff)
    items, loses = queries.not_asked([run for run in runs if run not in withheld])
    if not items:
        return []
    counts = "that answer loses" if loses else "there is no verdict"
    number = f"{items:,} items" if items > 1 else "one item"
    return [f"Not asked about: {number}, where an answer is empty, refused or an error; {counts}."]
