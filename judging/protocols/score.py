"""One answer on the benchmark's scale, as MLLM-as-a-Judge asks for it (arXiv 2402.04788): 1 Poor to 5 Excellent."""

from typing import Any

from bank.models import Item
from judging.protocols.base import Material, Protocol
from judging.protocols.settings import Settings
from judging.verdicts import Found, score


class Score(Protocol):
    name = "score"
    title = "Scores"
    kind = Item.Kind.SCORE
    verdict_kind = "score"
    weighted = True
    answer_forms = ((r"\[\[[0-9.]+\]\]", "a score in double brackets, [[{{ scale[0][0] }}]]"),)
    reasonings = ("none", "first", "after", "three-step")
    defaults = {"criteria": False}

    def verdict_schema(self, material: Material) -> dict[str, Any]:
        return {"type": "number", "enum": list(self.scale(material))}

    def parse(self, text: str, material: Material, settings: Settings) -> Found:
        scale, words = zip(*material.scale, strict=True)
        return score(text, place=self.place(settings), scale=scale, words=words)


PROTOCOL = Score()
