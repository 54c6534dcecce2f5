"""The better of two answers, or a tie, as MLLM-as-a-Judge asks for it (arXiv 2402.04788)."""

import re
from collections.abc import Sequence
from string import ascii_uppercase
from typing import Any, ClassVar

from bank.models import Item
from judging.protocols.base import Material, Protocol
from judging.protocols.baselines import PAIRS
from judging.protocols.replies import NO_VOTE, NoVerdict, ParsedVerdict, Place, unwrapped, verdict_candidates
from judging.protocols.settings import ONE_ORDER, Printed, Settings

_LETTER = re.compile(r"(?:(?:assistant|answer|response)\s+)?(?P<letter>[ABC])|(?P<tie>tie)", re.ASCII)
_CHOICES = {"A": "first", "B": "second", "C": "tie"}


def parse_letter(text: str, *, place: Place) -> ParsedVerdict:
    """``A``, ``B``, or ``C`` for a tie, as MLLM-as-a-Judge has it (arXiv 2402.04788, appendix). Raises NoVerdict."""
    for piece in verdict_candidates(text, place=place):
        value = unwrapped(piece.value)
        match = _LETTER.fullmatch(value if len(value) == 1 else value[:1].lower() + value[1:])
        if match:
            return ParsedVerdict({"choice": _CHOICES[match["letter"]] if match["letter"] else "tie"}, piece.analysis)
    raise NoVerdict(NO_VOTE[place])


def losing(places: Sequence[int]) -> str:
    """The choice between two answers where those at these places lose; a tie where both do."""
    return "tie" if len(places) > 1 else "second" if 0 in places else "first"


class OfPairs(Protocol):
    """The better of two answers."""

    kind = Item.Kind.PAIR
    answers = 2
    units = "pairs"
    verdict_kind = "pair"
    baselines = PAIRS

    def lowest(self, material: Material, places: Sequence[int]) -> dict[str, Any]:
        return {"choice": losing(places)}


class Pair(OfPairs):
    name = "pair"
    title = "Pairs"
    words = "which answer is better, as people are asked"
    answer_forms: ClassVar[tuple[tuple[str, str], ...]] = (
        (r"\[\[A\]\]", "[[A]]"),
        (r"\[\[B\]\]", "[[B]]"),
        (r"\[\[C\]\]", "[[C]]"),
    )
    reasonings = ("none", "first", "after", "three-step")
    printed: ClassVar[Printed | None] = ONE_ORDER
    defaults = {"criteria": False}

    def verdict_schema(self, material: Material, settings: Settings) -> dict[str, Any]:
        return {"type": "string", "enum": ["A", "B", "C"]}

    def parse(self, text: str, material: Material, settings: Settings) -> ParsedVerdict:
        return parse_letter(text, place=self.verdict_line(settings))

    def name_of(self, place: int) -> str:
        return f"Answer {ascii_uppercase[place]}"

    def best(self, material: Material, place: int) -> str:
        return f"Judgement: [[{ascii_uppercase[place]}]]"
