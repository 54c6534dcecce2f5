"""The rows of the leaderboards, as the page, the command and the API print them (design: Contract)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from django.db.models import QuerySet

from annotations.models import Label
from bank import exposure
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
from leaderboard.boards.versus import board as versus
from leaderboard.boards.versus.board import Versus
from leaderboard.hidden import (
    blind_items,
    blind_since,
    counts_sealed,
    held_out_in,
    of_one_source,
    sealed_items,
    uncounted_runs,
    until_closed,
    without_sealed,
)
from leaderboard.scope import LENGTH, NO_CONTROL, NO_ELO, BadScope, Scope
from leaderboard.sight import JUDGES, MODELS, Sight
from leaderboard.votes.scores import counted_labels, items_asked
from stats.figures import number_of

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
    under_way = _under_way(of_one_source(scope)) if scope.by_people and scope.run is None else []
    return replace(board, notes=[*board.notes, *under_way]) if under_way else board


class OfRounds(str):
    """A note about what a board counts while rounds are open."""


def _under_way(scope: Scope) -> list[str]:
    """What the numbers of a view count of items that people label blind, and of labels in hidden splits: why a board
    counts more or fewer items when a campaign opens or closes. It says nothing that a label of an open round moves.
    """
    if scope.kind.keyed or not counts_sealed(scope):
        return []
    blind, everything = blind_items(scope.benchmark).keys(), replace(scope, staff=True, singly=False)
    asked = set(items_asked(everything).index)
    counted = _labelled(counted_labels(scope, every=True)) & set(items_asked(scope).index)
    before = _labelled(counted_labels(everything, every=True).filter(exposure.said_before()))
    again, few = len(counted & blind), len((before & asked & blind) - counted)
    first = len(asked & blind) - again - few
    until = until_closed(scope)
    notes = []
    if again:
        since = f"As of {blind_since(scope):%-d %b %Y}, the last closed state"
        which = f"{number_of(again, 'item')} {_are(again)} being labelled again {until}"
        notes.append(f"{since}: {which}, and what is said of these now counts when that round closes.")
    if few:
        which = f"{number_of(few, 'more item' if again else 'item')} that people label again {until} {_are(few)}"
        notes.append(f"{which} left out: numbers of few would tell single verdicts.")
    if first:
        which = f"{number_of(first, 'item')} {_are(first)} being labelled {until}"
        notes.append(f"{which}, and {'counts' if first == 1 else 'count'} when that round closes.")
    return [OfRounds(note) for note in (*notes, *_of_hidden_splits(scope, asked, counted))]


def _are(n: int) -> str:
    return "is" if n == 1 else "are"


def _labelled(labels: QuerySet[Label]) -> set[int]:
    return set(labels.order_by().values_list("item", flat=True).distinct())


def _of_hidden_splits(scope: Scope, asked: set[int], counted: set[int]) -> list[str]:
    sealed = (sealed_items(scope.benchmark) - blind_items(scope.benchmark).keys()) & asked
    everything = replace(scope, staff=True, singly=False)
    given = _labelled(counted_labels(everything, every=True)) & sealed
    notes = []
    if told := given & counted:
        count = "counts" if len(told) == 1 else "count"
        items = number_of(len(told), "item")
        notes.append(f"{items} of a hidden split {count} in the whole, and in no part by level or length.")
    if left := len(given - counted):
        which = f"{number_of(left, 'more labelled item' if told else 'labelled item')} of a hidden split {_are(left)}"
        notes.append(f"{which} left out: numbers of few would tell single verdicts.")
    return notes


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
    notes += _under_way(without_sealed(scope)) if board.rows else []
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
