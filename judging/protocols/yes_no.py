"""Whether an answer says yes or no, as POPE needs it (arXiv 2305.10355); plain answers need no call."""

from typing import Any

from bank.models import Item
from judging.protocols.base import CannotAsk, Material, Protocol
from judging.protocols.replies import NONE_OF_THEM, NoVerdict, ParsedVerdict, Place, unwrapped, verdict_candidates
from judging.protocols.settings import Settings
from stats.answer_text import answer_in


def parse_yes_no(text: str, *, place: Place) -> ParsedVerdict:
    """``Yes`` or ``No``; ``X``, stored as the option, if the answer says neither. Raises NoVerdict."""
    for piece in verdict_candidates(text, place=place):
        value = unwrapped(piece.value).casefold()
        if value in ("yes", "no"):
            return ParsedVerdict({"answer": value == "yes"}, piece.analysis)
        if value == NONE_OF_THEM.casefold():
            return ParsedVerdict({"option": NONE_OF_THEM}, piece.analysis)
    raise NoVerdict(f"neither yes nor no on the {place} line")


class YesNo(Protocol):
    name = "yes-no"
    title = "Yes or no"
    words = "whether an answer says yes or no"
    kind = Item.Kind.SCORE
    verdict_kind = "yes-no"
    answer_forms = (
        (r"Answer: Yes", "Answer: Yes"),
        (r"Answer: No", "Answer: No"),
        (r"Answer: X", "Answer: X"),
    )
    reasonings = ("none", "first")
    defaults = {"criteria": False, "context": "none", "reasoning": "none"}
    fixed = ("criteria", "context")

    def verdict_schema(self, material: Material, settings: Settings) -> dict[str, Any]:
        return {"type": "string", "enum": ["Yes", "No", NONE_OF_THEM]}

    def parse(self, text: str, material: Material, settings: Settings) -> ParsedVerdict:
        parsed = parse_yes_no(text, place=self.verdict_line(settings))
        return ParsedVerdict(parsed.verdict | {"extraction": "judge"}, parsed.analysis)

    def without_call(self, material: Material) -> dict[str, Any] | None:

        if not material.answers:
            raise CannotAsk("the item has no answer")
        answer = answer_in(material.answers[0])
        return None if answer is None else {"answer": answer, "extraction": "label"}
