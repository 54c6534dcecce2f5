"""The rows of the leaderboards, as the page, the command and the API print them (design: Contract)."""

from collections.abc import Callable

from leaderboard.boards.agreement import agreements
from leaderboard.boards.base import Board, judges, kept, models
from leaderboard.boards.bias import biases
from leaderboard.scope import Scope

BOARDS: dict[str, Callable[[Scope], Board]] = {
    "models": models,
    "judges": judges,
    "agreement": lambda scope: agreements(scope, names=scope.staff),
    "bias": biases,
}

__all__ = ["BOARDS", "Board", "agreements", "biases", "judges", "kept", "models"]
