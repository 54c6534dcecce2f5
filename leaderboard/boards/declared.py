"""What a board says of itself, so that command, API and downloads hold its rows: ``TABLES`` in its file, by name."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import TYPE_CHECKING, Any

from accounts.rules import Viewer
from leaderboard import votes
from leaderboard.boards.base import Board, KeptBoard
from leaderboard.methods import EPSILON
from leaderboard.rows import JSON, Row
from leaderboard.scope import JUDGED, POOL, SAMPLES, VIEW, BadScope, Scope
from leaderboard.sight import MODELS, Sight

if TYPE_CHECKING:
    from leaderboard.kinds.base import Kind

STRENGTHS = ("elo", "control", "weight")  # say nothing about numbers that are no strengths of models
OF_MODELS = tuple(name for name in VIEW if name != POOL.name)
OF_JUDGES = tuple(name for name in VIEW if name not in (*STRENGTHS, "ties", "reading", "total", "as_printed"))
OF_VOTERS = tuple(name for name in OF_JUDGES if name not in JUDGED)
OF_PLACES = tuple(
    name for name in OF_MODELS if name not in (*STRENGTHS, *JUDGED, "majority", "reading", "total", "as_printed")
)
OF_LABELS = ("kind", "campaign", "majority", *SAMPLES, "state")
OF_REPEATS = ("source", "run", "kind", *SAMPLES, "state")
OF_ANALYSES = ("source", "run", "kind", "campaign", *SAMPLES, "state")
OF_REVIEWS = ("source", "run", "kind", "campaign", POOL.name, *SAMPLES, "state")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableQuery:
    """What is asked of a table besides the view: for whom, whether the view is ``named``, by its source or run, the
    test's ``epsilon``, which ``part`` of it, which two, what is ``planned``.
    """

    viewer: Viewer
    named: bool = False
    epsilon: float = EPSILON
    part: str = ""
    a: str = ""
    b: str = ""
    planned: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rows:
    rows: list[JSON]
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """``board``: the one whose kinds apply. ``whole``: makes the board, where the table is one: these can be frozen.

    ``rows_are``: the sorts of rows it may hold, each with the columns that stand before its own.
    ``view``: the parameters of a view that it takes; ``takes``: those of ``TableQuery``. ``fits``: which kinds of
    verdicts it can be made of. ``alone``: whether it shows nothing of other benchmarks.
    """

    make: Callable[[Scope, TableQuery], Rows]
    board: str
    rows_are: Mapping[type[Row], Mapping[str, type]]
    whole: KeptBoard[Any] | None = None
    fits: Callable[["Kind"], bool] = lambda kind: True
    view: tuple[str, ...] = OF_MODELS
    takes: tuple[str, ...] = ()
    rule: str = "read-public"
    alone: bool = True


def chosen_part(asked: TableQuery, parts: Sequence[str]) -> str:
    if asked.part and asked.part not in parts:
        raise BadScope(f"Unknown part: {asked.part!r}. Parts: {', '.join(parts)}.")
    return asked.part or parts[0]


def board_rows(board: Board[Any]) -> Rows:
    return Rows(board.as_json(), board.notes)


def of_usual_source(scope: Scope, asked: TableQuery) -> tuple[Scope, str]:
    """The view with the source that the board of models takes where none is named, and a note that says so."""
    if asked.named or not Sight(scope, MODELS).live:
        return scope, ""
    return votes.in_place_of_people(scope)


def of_models(make: Callable[[Scope, TableQuery], Rows]) -> Callable[[Scope, TableQuery], Rows]:
    """A table that stands beside the board of models, of the same verdicts."""

    @wraps(make)
    def rows(scope: Scope, asked: TableQuery) -> Rows:
        scope, note = of_usual_source(scope, asked)
        made = make(scope, asked)
        return replace(made, notes=[*filter(None, [note]), *made.notes])

    return rows


def kept(board: KeptBoard[Any], words: str) -> Callable[[Scope, TableQuery], Rows]:
    """The rows of a board as it is kept; ``words``: what the API says of them."""

    def rows(scope: Scope, asked: TableQuery) -> Rows:
        return board_rows(board(scope))

    rows.__doc__ = words
    return rows
