"""Whether an answer says yes or no, as POPE needs it (arXiv 2305.10355); plain answers need no call."""

from typing import Any

from bank.models import Item
from judging.protocols.base import CannotAsk, Material, Protocol
from judging.protocols.replies import NONE_OF_THEM, Found, NoVerdict, Place, plain, stated
from judging.protocols.settings import Settings
from stats.answers import answer_in


def parse_yes_no(text: str, *, place: Place) -> Found:
    """``Yes`` or ``No``; ``X``, kept as the option, where the answer says neither. Raises NoVerdict."""
    for piece in stated(text, place=place):
        value = plain(piece.value).casefold()
        if value in ("yes", "no"):
            return Found({"answer": value == "yes"}, piece.analysis)
        if value == NONE_OF_THEM.casefold():
            return Found({"option": NONE_OF_THEM}, piece.analysis)
    raise NoVerdict(f"neither yes nor no on the {place} line")


class YesNo(Protocol):
    name = "yes-no"
    title = "Yes or no"
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

    def verdict_schema(self, material: Material) -> dict[str, Any]:
        return {"type": "string", "enum": ["Yes", "No", NONE_OF_THEM]}

    def parse(self, text: str, material: Material, settings: Settings) -> Found:
        found = parse_yes_no(text, place=self.place(settings))
        return Found(found.verdict | {"extraction": "judge"}, found.analysis)

    def without_call(self, material: Material) -> dict[str, Any] | None:
        if not material.answers:
            raise CannotAsk("the item has no answer")
        said = answer_in(material.answers[0])
        return None if said is None else {"answer": said, "extraction": "label"}


PROTOCOL = YesNo()
