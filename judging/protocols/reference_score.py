"""A mark from 1 to 5 of an open answer against a reference, as MMBench's Table 3 has it (arXiv 2307.06281)."""

from collections.abc import Sequence
from typing import Any, ClassVar

from bank import exposure
from judging.protocols.base import KINDS_OF_REFERENCE, CannotAsk, Material, Protocol
from judging.protocols.replies import ParsedVerdict
from judging.protocols.score import Score, parse_score
from judging.protocols.settings import Printed, Settings


class ReferenceScore(Score):
    name = "reference-score"
    printed: ClassVar[Printed | None] = None
    title = "Marks against a reference"
    words = "how well an answer agrees with the reference, 1 to 5"
    verdict_kind = "reference"
    marks: ClassVar[tuple[float, ...]] = (1.0, 2.0, 3.0, 4.0, 5.0)
    needs_criteria = KINDS_OF_REFERENCE
    may_hold = exposure.TEXTS | exposure.KEYS  # it marks against them
    lacking = "no sample has a reference answer"
    answer_forms = ((r"(?:Mark|Score): [1-5]", "Mark: and a number from 1 to 5"),)
    reasonings = Protocol.reasonings
    baselines = Protocol.baselines
    defaults = {"context": "none"}
    fixed: ClassVar[tuple[str, ...]] = ("criteria",)

    def values(self, material: Material, settings: Settings) -> dict[str, Any]:
        return super().values(material, settings) | {"references": references(material)}

    def scale(self, material: Material) -> Sequence[float]:
        return self.marks

    def parse(self, text: str, material: Material, settings: Settings) -> ParsedVerdict:
        return parse_score(text, place=self.verdict_line(settings), scale=self.marks)

    def best(self, material: Material, place: int) -> str:
        return "Mark: 5"


def references(material: Material) -> list[str]:
    """The right answers; an answer key is followed by the text of its option. Raises CannotAsk."""
    option_texts = {choice.key: choice.text for choice in material.options}
    references = [
        f"{criterion.text}: {option_texts[criterion.text]}" if criterion.text in option_texts else criterion.text
        for criterion in material.criteria
        if criterion.kind in KINDS_OF_REFERENCE
    ]
    if not references:
        raise CannotAsk("the sample has no reference answer")
    return references
