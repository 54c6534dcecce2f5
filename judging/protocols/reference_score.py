"""A mark from 1 to 5 of an open answer against a reference, as MMBench's Table 3 has it (arXiv 2307.06281)."""

from collections.abc import Sequence
from typing import Any

from bank.models import Item
from judging.protocols.base import KINDS_OF_REFERENCE, CannotAsk, Material, Protocol
from judging.protocols.replies import Found
from judging.protocols.score import parse_score
from judging.protocols.settings import Settings

SCALE = (1.0, 2.0, 3.0, 4.0, 5.0)


class ReferenceScore(Protocol):
    name = "reference-score"
    title = "Marks against a reference"
    kind = Item.Kind.SCORE
    verdict_kind = "reference"
    weighted = True
    answer_forms = ((r"(?:Mark|Score): [1-5]", "Mark: and a number from 1 to 5"),)
    defaults = {"context": "none"}
    fixed = ("criteria",)

    def values(self, material: Material, settings: Settings) -> dict[str, Any]:
        return super().values(material, settings) | {"references": references(material)}

    def scale(self, material: Material) -> Sequence[float]:
        return SCALE

    def verdict_schema(self, material: Material) -> dict[str, Any]:
        return {"type": "number", "enum": list(SCALE)}

    def parse(self, text: str, material: Material, settings: Settings) -> Found:
        return parse_score(text, place=self.place(settings), scale=SCALE)


def references(material: Material) -> list[str]:
    """The right answers; a key to options with what it stands for. Raises CannotAsk."""
    meaning = {choice.key: choice.text for choice in material.options}
    found = [
        f"{one.text}: {meaning[one.text]}" if one.text in meaning else one.text
        for one in material.criteria
        if one.kind in KINDS_OF_REFERENCE
    ]
    if not found:
        raise CannotAsk("the sample has no reference answer")
    return found


PROTOCOL = ReferenceScore()
