"""The better of two answers, or a tie, as MLLM-as-a-Judge asks for it (arXiv 2402.04788)."""

from typing import Any

from bank.models import Item
from judging.protocols.base import Material, Protocol
from judging.protocols.settings import Settings
from judging.verdicts import Found, pair_letter


class Pair(Protocol):
    name = "pair"
    title = "Pairs"
    kind = Item.Kind.PAIR
    verdict_kind = "pair"
    answer_forms = (
        (r"\[\[A\]\]", "[[A]]"),
        (r"\[\[B\]\]", "[[B]]"),
        (r"\[\[C\]\]", "[[C]]"),
    )
    reasonings = ("none", "first", "after", "three-step")
    defaults = {"criteria": False}

    def verdict_schema(self, material: Material) -> dict[str, Any]:
        return {"type": "string", "enum": ["A", "B", "C"]}

    def parse(self, text: str, material: Material, settings: Settings) -> Found:
        return pair_letter(text, place=self.place(settings))


PROTOCOL = Pair()
