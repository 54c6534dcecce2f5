"""What numbers count where researchers differ: chosen on pages, by command and API, and written into every row.

A new definition is an object here, a field of ``Scope`` with its name, and the boards that follow it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leaderboard.kinds.base import Kind


@dataclass(frozen=True, slots=True)
class Way:
    """One of the ways: how it is called in a control, and what a page says of numbers made with it (or nothing)."""

    label: str
    said: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """``name``: of the parameter and of the field of ``Scope``; ``ways`` by value; ``of_kind``: the values that a kind
    of verdict can take, its default first, none if the question does not arise.
    """

    name: str
    label: str
    help: str
    ways: Mapping[str, Way]
    of_kind: Callable[["Kind"], Sequence[str]]


NO_TIES, HALF, DROPPED = "none", "half", "drop"
EXCLUDE, AS_TIE, WRONG = "exclude", "tie", "wrong"


def _of_failures(kind: "Kind") -> Sequence[str]:
    if kind.pairwise:
        return EXCLUDE, AS_TIE, WRONG
    return (WRONG, EXCLUDE) if kind.keyed else (EXCLUDE,)


TIES = Definition(
    name="ties",
    label="A tie counts",
    help="what a tie counts in win rates: none (default), half, or drop: ties are left out",
    ways={
        NO_TIES: Way("nothing", "win % counts no ties"),
        HALF: Way("half a win", "win % counts a tie as half a win"),
        DROPPED: Way("not at all: left out", "win % is of the items that were not tied"),
    },
    of_kind=lambda kind: (NO_TIES, HALF, DROPPED) if kind.pairwise else (),
)
FAILURES = Definition(
    name="failures",
    label="A failure counts",
    help="what an item without a readable verdict or answer counts: exclude (default, but for answers compared with "
    "keys), tie (pairs only), or wrong: lost, not right",
    ways={
        EXCLUDE: Way("not at all: left out"),
        AS_TIE: Way("as a tie", "an item on which the judge failed counts as a tie"),
        WRONG: Way("as lost or wrong", "an item on which the judge failed counts as lost"),
    },
    of_kind=_of_failures,
)
DEFINITIONS = {definition.name: definition for definition in (TIES, FAILURES)}


def in_words(scope: Any) -> str:
    """What a page says of the definitions in force, those of its ``Scope`` that do not go without saying."""
    words = (definition.ways[getattr(scope, name)].said for name, definition in DEFINITIONS.items())
    return "; ".join(filter(None, words))
