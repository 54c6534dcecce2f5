"""How well an answer reasons and is written, as ChEF measures language performance (arXiv 2311.02692, C.4).

The judge gets the right answer, assumes that what the response says about the image is true, and explains before it
gives a score from 0 to 10. ChEF averages several samples of the judge: set ``repeats`` and a temperature above 0.
"""

from collections.abc import Sequence
from typing import Any

from bank import exposure
from bank.models import Item
from judging.protocols.base import KINDS_OF_REFERENCE, Material, Protocol
from judging.protocols.reference_score import references
from judging.protocols.replies import ParsedVerdict
from judging.protocols.score import parse_score
from judging.protocols.settings import Settings

SCALE = tuple(float(value) for value in range(11))


class ReasoningQuality(Protocol):
    name = "reasoning-quality"
    title = "Quality of the reasoning"
    words = "how sound the reasons of an answer are, 0 to 10"
    kind = Item.Kind.SCORE
    verdict_kind = "reasoning"
    needs_criteria = KINDS_OF_REFERENCE
    may_hold = exposure.TEXTS | exposure.KEYS  # it marks against them
    lacking = "no sample has a reference answer"
    weighted = True
    answer_forms = ((r"(?:Mark|Score): [0-9]", "Score: and a number from 0 to 10"),)
    reasonings = ("first",)
    defaults = {"context": "none", "repeats": 3, "temperature": 1}
    fixed = ("criteria", "context")

    def values(self, material: Material, settings: Settings) -> dict[str, Any]:
        return super().values(material, settings) | {"references": references(material)}

    def scale(self, material: Material) -> Sequence[float]:
        return SCALE

    def verdict_schema(self, material: Material, settings: Settings) -> dict[str, Any]:
        return {"type": "number", "enum": list(SCALE)}

    def parse(self, text: str, material: Material, settings: Settings) -> ParsedVerdict:
        return parse_score(text, place=self.verdict_line(settings), scale=SCALE)

    def lowest(self, material: Material, places: Sequence[int]) -> dict[str, Any]:
        return {"score": self.scale(material)[0]}
