"""Several answers from best to worst, as MLLM-as-a-Judge asks for it (arXiv 2402.04788)."""

from string import ascii_uppercase
from typing import Any

from bank.models import Item
from judging.protocols.base import Material, Protocol
from judging.protocols.settings import Settings
from judging.verdicts import Found, ranking


class Batch(Protocol):
    name = "batch"
    title = "Rankings"
    kind = Item.Kind.BATCH
    verdict_kind = "batch"
    answer_forms = ((r"(\[\[[A-C]\]\][, >]*){3}", "every letter in double brackets, [[A]], [[B]], [[C]]"),)
    reasonings = ("none", "first", "after", "three-step")
    defaults = {"criteria": False, "order": "shuffled"}

    def verdict_schema(self, material: Material) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "string", "enum": list(ascii_uppercase[: len(material.answers)])}}

    def parse(self, text: str, material: Material, settings: Settings) -> Found:
        return ranking(text, place=self.place(settings), count=len(material.answers))


PROTOCOL = Batch()
