"""Several answers from best to worst, as MLLM-as-a-Judge asks for it (arXiv 2402.04788)."""

import re
from string import ascii_uppercase
from typing import Any

from bank.models import Item
from judging.protocols.base import Material, Protocol
from judging.protocols.replies import Found, NoVerdict, Place, plain, stated
from judging.protocols.settings import Settings

_NAMES = re.compile(r"\b(?:assistant|answer|response)\s+(?=[A-Z]\b)", re.IGNORECASE)
_RANKING = re.compile(r"[A-Z](?:\s*(?:[,;>→]|,?\s+)?\s*[A-Z])*")


def parse_ranking(text: str, *, place: Place, count: int) -> Found:
    """The order of ``count`` answers from best to worst, each letter once and no ties.

    ``[[C]], [[A]], [[B]]``, ``[[C], [A], [B]]``, ``CAB``, ``C > A > B`` (MLLM-as-a-Judge, arXiv 2402.04788). A ranking
    that leaves one out, names one twice or one that is not there is none. Raises NoVerdict.
    """
    letters = ascii_uppercase[:count]
    for piece in stated(text, place=place):
        value = _NAMES.sub("", plain(re.sub(r"[\[\]\"']", "", piece.value)))
        if not _RANKING.fullmatch(value):
            continue
        named = re.findall(r"[A-Z]", value)
        if sorted(named) != list(letters):
            raise NoVerdict(f"the ranking does not name each of {', '.join(letters)} once")
        return Found({"ranking": [[letters.index(letter)] for letter in named]}, piece.analysis)
    raise NoVerdict(f"no ranking on the {place} line")


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
        return parse_ranking(text, place=self.place(settings), count=len(material.answers))


PROTOCOL = Batch()
