"""How much better one of two answers is, in five steps, as Arena-Hard asks for it (arXiv 2406.11939)."""

import re
from collections.abc import Sequence
from functools import partial
from string import ascii_uppercase
from typing import Any

from bank.models.verdict import EVEN, GRADED, choice_of
from judging.protocols.base import Material
from judging.protocols.baselines import PAIRS, Baseline, Case, Verdict
from judging.protocols.pair import Pair, losing
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


def _graded(judge_pair: Baseline, case: Case) -> Verdict:
    # As a choice between two, and never a strong one.
    choice = judge_pair(case)["choice"]
    return {"choice": choice, "preference": {"first": 0.75, "second": 0.25}.get(choice, EVEN)}


class PairGraded(Pair):
    name = GRADED
    printed = None
    title = "Pairs, graded"
    graded = True
    words = "which answer is better, and by how much"
    answer_forms = tuple((re.escape(f"[[{step}]]"), f"[[{step}]]") for step in PREFERENCES)
    baselines = {name: partial(_graded, judge_pair) for name, judge_pair in PAIRS.items()}

    def verdict_schema(self, material: Material, settings: Settings) -> dict[str, Any]:
        return {"type": "string", "enum": list(PREFERENCES)}

    def parse(self, text: str, material: Material, settings: Settings) -> ParsedVerdict:
        return parse_preference(text, place=self.verdict_line(settings))

    def best(self, material: Material, place: int) -> str:
        letter, other = ascii_uppercase[place], ascii_uppercase[1 - place]
        return f"Judgement: [[{letter}>>{other}]]"

    def lowest(self, material: Material, places: Sequence[int]) -> dict[str, Any]:
        choice = losing(places)
        return {"choice": choice, "preference": {"first": 1.0, "tie": 0.5, "second": 0.0}[choice]}
