"""The option that an answer means, as MMBench extracts it (arXiv 2307.06281, 4.2).

Step 1 reads the label in the answer's own text and needs no call. Step 2 asks the judge, who may say none of them. Step
3, if the judge's reply has no verdict, draws an option or none of them with the run's seed. Each verdict says which
step it came from.
"""

import random
from collections.abc import Sequence
from typing import Any

from bank.models import Item
from judging.protocols.base import CannotAsk, Material, Protocol
from judging.protocols.replies import NONE_OF_THEM, NoVerdict, ParsedVerdict, Place, unwrapped, verdict_candidates
from judging.protocols.settings import Printed, Settings
from stats.answer_text import option_in


def parse_option(text: str, *, place: Place, labels: Sequence[str]) -> ParsedVerdict:
    """The label of the option that an answer means; ``X`` if it means none. Raises NoVerdict.

    MMBench (arXiv 2307.06281), 4.2, step 2.
    """
    for piece in verdict_candidates(text, place=place):
        value = unwrapped(piece.value).removeprefix("Option ").removeprefix("option ")
        if value in labels or value == NONE_OF_THEM:
            return ParsedVerdict({"option": value}, piece.analysis)
    raise NoVerdict(f"none of {', '.join(labels)}, {NONE_OF_THEM} on the {place} line")


class ChoiceExtraction(Protocol):
    name = "choice-extraction"
    title = "Multiple choice: the option meant"
    words = "which option an answer means"
    kind = Item.Kind.SCORE
    verdict_kind = "choice"
    needs_options = True
    lacking = "no sample has options"
    answer_forms = (
        (r"Choice: ", "Choice: and a label"),
        (r"\bX\b", "{{ none_of_them }} where the answer means none"),
    )
    reasonings = ("none", "first")
    printed = Printed("MMBench", "4.2, the template with three examples", {"prompt": "examples"})
    defaults = {"criteria": False, "context": "none", "reasoning": "none"}
    fixed = ("criteria", "context")

    def values(self, material: Material, settings: Settings) -> dict[str, Any]:
        _check(material)
        return super().values(material, settings) | {"none_of_them": NONE_OF_THEM}

    def verdict_schema(self, material: Material, settings: Settings) -> dict[str, Any]:
        return {"type": "string", "enum": [*material.labels, NONE_OF_THEM]}

    def parse(self, text: str, material: Material, settings: Settings) -> ParsedVerdict:
        parsed = parse_option(text, place=self.verdict_line(settings), labels=material.labels)
        return ParsedVerdict(_canonical(material, parsed.verdict["option"], "judge"), parsed.analysis)

    def without_call(self, material: Material) -> dict[str, Any] | None:

        _check(material)
        label = option_in(material.answers[0], material.labels)
        return None if label is None else _canonical(material, label, "label")

    def fallback(self, material: Material, seed: bytes) -> dict[str, Any] | None:
        return _canonical(material, random.Random(seed).choice((*material.labels, NONE_OF_THEM)), "random")


def _canonical(material: Material, shown: str, extraction: str) -> dict[str, Any]:
    """The sample's own label of the option shown behind a label."""
    keys = {choice.shown: choice.key for choice in material.options}
    return {"option": keys.get(shown, NONE_OF_THEM), "extraction": extraction}


def _check(material: Material) -> None:
    if not material.options:
        raise CannotAsk("the sample has no options to choose from")
    if not material.answers:
        raise CannotAsk("the item has no answer")
