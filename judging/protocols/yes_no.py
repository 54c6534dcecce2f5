"""Whether an answer says yes or no, as POPE needs it (arXiv 2305.10355); plain answers need no call."""

from typing import Any

from bank.models import Item
from judging.protocols.base import CannotAsk, Material, Protocol
from judging.protocols.settings import Settings
from judging.verdicts import NONE_OF_THEM, Found, yes_or_no
from stats.said import answer_in


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
        found = yes_or_no(text, place=self.place(settings))
        return Found(found.verdict | {"extraction": "judge"}, found.analysis)

    def without_call(self, material: Material) -> dict[str, Any] | None:
        if not material.answers:
            raise CannotAsk("the item has no answer")
        said = answer_in(material.answers[0])
        return None if said is None else {"answer": said, "extraction": "label"}


PROTOCOL = YesNo()
