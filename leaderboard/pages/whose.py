"""Which models a board shows: of open or closed weights, of one organisation.

The filter hides rows and changes no number: ranks, strengths and intervals are of all models that were compared.
"""

import hashlib
import json
from dataclasses import dataclass, replace

from bank.models import EvaluatedModel
from leaderboard.boards.base import ModelsBoard
from leaderboard.pages.address import Address, Choice, Select

NAMES = ("weights", "organisation")
WEIGHTS = {"open": "open", "closed": "closed"}


@dataclass(frozen=True, slots=True)
class Whose:
    """The board with the rows that are shown, what has to be said about it, and the controls."""

    board: ModelsBoard
    facts: str  # a short name of what is known of the models: a page that shows it is made again when it changes
    note: str
    selects: list[Select]


def shown_of(address: Address, board: ModelsBoard) -> Whose:
    """The rows of the address' models; a control appears where there is something to choose from."""
    models = EvaluatedModel.objects.filter(name__in=[row.model for row in board.rows])
    facts = {
        name: (organisation, is_open)
        for name, organisation, is_open in models.values_list("name", "organisation", "open")
    }
    weights, organisation = (address.given.get(name, "") for name in NAMES)
    rows = [row for row in board.rows if _matches(facts.get(row.model, ("", None)), weights, organisation)]
    note = ""
    if weights or organisation:
        note = (
            f"{len(rows)} of {len(board.rows)} models are shown. Ranks, strengths and intervals are those among all: "
            "the filter hides rows, it does not compute anew."
        )
    digest = hashlib.sha256(json.dumps(sorted(facts.items())).encode()).hexdigest()[:16]
    return Whose(replace(board, rows=rows), digest, note, _selects(facts, weights, organisation))


def _matches(facts: tuple[str, bool | None], weights: str, organisation: str) -> bool:
    whose, is_open = facts
    if weights and is_open is not {"open": True, "closed": False}.get(weights, "no such weights"):
        return False
    return not organisation or whose == organisation


def _selects(facts: dict[str, tuple[str, bool | None]], weights: str, organisation: str) -> list[Select]:
    found = []
    if weights or any(is_open is not None for _, is_open in facts.values()):
        choices = [Choice("", "all"), *(Choice(value, label) for value, label in WEIGHTS.items())]
        found.append(Select("weights", "Weights", [("", choices)], weights, on=bool(weights)))
    names = sorted({whose for whose, _ in facts.values() if whose}, key=str.casefold)
    if organisation or len(names) > 1:
        choices = [Choice("", "all"), *(Choice(name, name) for name in names)]
        found.append(Select("organisation", "Organisation", [("", choices)], organisation, on=bool(organisation)))
    return found
