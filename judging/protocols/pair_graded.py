"""How much better one of two answers is, in five steps, as Arena-Hard asks for it (arXiv 2406.11939)."""

import re
from collections.abc import Sequence
from typing import Any

from bank.models import Item
from bank.models.verdict import GRADED, choice_of
from judging.protocols.base import Material, Protocol
from judging.protocols.pair import losing
from judging.protocols.replies import NO_VOTE, NoVerdict, ParsedVerdict, Place, unwrapped, verdict_candidates
from judging.protocols.settings import Settings

PREFERENCES = {"A>>B": 1.0, "A>B": 0.75, "A=B": 0.5, "B>A": 0.25, "B>>A": 0.0}
# The same, written from the other side.
_TURNED = {"B=A": "A=B", "B<<A": "A>>B", "B<A": "A>B", "A<B": "B>A", "A<<B": "B>>A"}


def parse_preference(text: str, *, place: Place) -> ParsedVerdict:
    """``[[A>>B]]``, ``[[A>B]]``, ``[[A=B]]``, ``[[B>A]]`` or ``[[B>>A]]``, in presented order. Raises NoVerdict."""
    for piece in verdict_candidates(text, place=place):
        written = re.sub(r"\s", "", unwrapped(piece.value))
        preference = PREFERENCES.get(_TURNED.get(written, written))
        if preference is not None:
            verdict = {"choice": choice_of(preference).value, "preference": preference}
            return ParsedVerdict(verdict, piece.analysis)
    raise NoVerdict(NO_VOTE[place])


class PairGraded(Protocol):
    name = GRADED
    title = "Pairs, graded"
    words = "which answer is better, and by how much"
    kind = Item.Kind.PAIR
    verdict_kind = "pair"
    answer_forms = tuple((re.escape(f"[[{step}]]"), f"[[{step}]]") for step in PREFERENCES)
    reasonings = ("none", "first", "after", "three-step")
    defaults = {"criteria": False}

    def verdict_schema(self, material: Material, settings: Settings) -> dict[str, Any]:
        return {"type": "string", "enum": list(PREFERENCES)}

    def parse(self, text: str, material: Material, settings: Settings) -> ParsedVerdict:
        return parse_preference(text, place=self.verdict_line(settings))

    def lowest(self, material: Material, places: Sequence[int]) -> dict[str, Any]:
        choice = losing(places)
        return {"choice": choice, "preference": {"first": 1.0, "tie": 0.5, "second": 0.0}[choice]}
