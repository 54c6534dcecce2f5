"""Several answers from best to worst, as MLLM-as-a-Judge asks for it (arXiv 2402.04788)."""

import re
from collections.abc import Sequence
from string import ascii_uppercase
from typing import Any

from bank.models import Item
from judging.protocols.base import Material, Protocol
from judging.protocols.baselines import Case, Verdict, lengths, overlaps, ranked
from judging.protocols.pair import Pair
from judging.protocols.replies import NoVerdict, ParsedVerdict, Place, unwrapped, verdict_candidates
from judging.protocols.settings import ONE_ORDER, Settings

_NAMES = re.compile(r"\b(?:assistant|answer|response)\s+(?=[A-Z]\b)", re.IGNORECASE)
_RANKING = re.compile(r"[A-Z](?:\s*(?:[,;>→]|,?\s+)?\s*[A-Z])*")


def parse_ranking(text: str, *, place: Place, count: int) -> ParsedVerdict:
    """The ranking of ``count`` answers from best to worst, each letter once, no ties.

    ``[[C]], [[A]], [[B]]``, ``[[C], [A], [B]]``, ``CAB``, ``C > A > B`` (MLLM-as-a-Judge, arXiv 2402.04788). A ranking
    with a missing, repeated or unknown letter is no verdict. Raises NoVerdict.
    """
    letters = ascii_uppercase[:count]
    for piece in verdict_candidates(text, place=place):
        value = _NAMES.sub("", unwrapped(re.sub(r"[\[\]\"']", "", piece.value)))
        if not _RANKING.fullmatch(value):
            continue
        named = re.findall(r"[A-Z]", value)
        if sorted(named) != list(letters):
            raise NoVerdict(f"the ranking does not name each of {', '.join(letters)} once")
        return ParsedVerdict({"ranking": [[letters.index(letter)] for letter in named]}, piece.analysis)
    raise NoVerdict(f"no ranking on the {place} line")


def _drawn(case: Case) -> Verdict:
    ranks = case.rng.sample(range(len(case.order)), len(case.order))
    return ranked([ranks[position] for position in case.order])


class Batch(Protocol):
    name = "batch"
    title = "Rankings"
    words = "the answers to a sample, best first"
    kind = Item.Kind.BATCH
    answers = 3
    units = "rankings"
    verdict_kind = "batch"
    answer_forms = ((r"(\[\[[A-C]\]\][, >]*){3}", "every letter in double brackets, [[A]], [[B]], [[C]]"),)
    reasonings = ("none", "first", "after", "three-step")
    printed = ONE_ORDER
    defaults = {"criteria": False, "order": "shuffled"}
    baselines = {
        "random": _drawn,
        "first": lambda case: {"ranking": [[place] for place in range(len(case.answers))]},
        "longest": lambda case: ranked(lengths(case)),
        "criteria-overlap": lambda case: ranked(overlaps(case)),
    }
    name_of = Pair.name_of

    def verdict_schema(self, material: Material, settings: Settings) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "string", "enum": list(ascii_uppercase[: len(material.answers)])}}

    def parse(self, text: str, material: Material, settings: Settings) -> ParsedVerdict:
        return parse_ranking(text, place=self.verdict_line(settings), count=len(material.answers))

    def best(self, material: Material, place: int) -> str:
        letter = ascii_uppercase[place]
        order = letter + ascii_uppercase[: len(material.answers)].replace(letter, "")
        return f"Judgement: {', '.join(f'[[{other}]]' for other in order)}"

    def lowest(self, material: Material, places: Sequence[int]) -> dict[str, Any]:
        answered = [place for place in range(len(material.answers)) if place not in places]
        return {"ranking": [rank for rank in (answered, list(places)) if rank]}
