"""How well an answer reasons and is written, as ChEF measures language performance (arXiv 2311.02692, C.4).

The judge gets the right answer, assumes that what the response says about the image is true, and explains before it
gives a score from 0 to 10. ChEF averages several samples of the judge: set ``repeats`` and a temperature above 0.
"""

from typing import ClassVar

from bank import exposure
from judging.protocols.base import Material
from judging.protocols.reference_score import ReferenceScore
from judging.protocols.settings import Printed


class ReasoningQuality(ReferenceScore):
    name = "reasoning-quality"
    title = "Quality of the reasoning"
    words = "how sound the reasons of an answer are, 0 to 10"
    verdict_kind = "reasoning"
    may_hold = exposure.TEXTS | exposure.KEYS  # it marks against them
    marks = tuple(float(value) for value in range(11))
    answer_forms = ((r"(?:Mark|Score): [0-9]", "Score: and a number from 0 to 10"),)
    reasonings = ("first",)
    printed = Printed("ChEF", "C.4, several samples: five marks", {"repeats": 5})
    defaults = {"context": "none", "repeats": 3, "temperature": 1}
    fixed: ClassVar[tuple[str, ...]] = ("criteria", "context")

    def best(self, material: Material, place: int) -> str:
        return "Score: 10"
