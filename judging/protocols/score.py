"""One answer on the benchmark's scale, as MLLM-as-a-Judge asks for it (arXiv 2402.04788): 1 Poor to 5 Excellent."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from bank.models import Item
from judging.endpoints.answers import Token
from judging.protocols.base import Material, Protocol
from judging.protocols.baselines import Baseline, Case, Verdict, content_words, overlaps
from judging.protocols.replies import NoVerdict, ParsedVerdict, Place, unwrapped, verdict_candidates
from judging.protocols.settings import MLLM_AS_A_JUDGE, Printed, Settings

_NUMBER = r"[+-]?[0-9]+(?:\.[0-9]+)?"
_SCORE = re.compile(
    rf"(?P<number>{_NUMBER})(?:\s*(?:/|out of)\s*(?P<of>[0-9]+))?(?:\s*[(:,–—-]?\s*(?P<word>[A-Za-z ]+)\)?)?"
    rf"|(?P<word_before>[A-Za-z ]+?)\s*[(:,–—-]\s*(?P<number_after>{_NUMBER})\)?"
)
LEAST_MASS = 0.5  # share of the probability that must fall on the scale for a weighted score


def _word_in(match: re.Match[str]) -> str:
    return (match["word"] or match["word_before"] or "").strip().casefold()


def _names(word: str, own: Sequence[str]) -> bool:
    return word in [each.casefold() for each in own]


def parse_score(text: str, *, place: Place, scale: Sequence[float], words: Sequence[str] = ()) -> ParsedVerdict:
    """The score in a reply: one of ``scale``, in digits, with or without its word ("4 (Good)", "4/5").

    A number off the scale is no score: nothing is rounded or clamped. Raises NoVerdict.
    """
    shown = f"{scale[0]:g} to {scale[-1]:g}"
    for piece in verdict_candidates(text, place=place):
        match = _SCORE.fullmatch(unwrapped(piece.value))
        if match is None:
            continue
        value = float(match["number"] or match["number_after"])
        word = _word_in(match)
        if match["of"] and float(match["of"]) != scale[-1]:
            raise NoVerdict(f"a score out of {match['of'][:6]} on a scale from {shown}")
        if value not in scale:
            raise NoVerdict(f"the score is not on the scale from {shown}")
        if word and not _names(word, words[list(scale).index(value) :][:1]):
            continue
        return ParsedVerdict({"score": value}, piece.analysis)
    raise NoVerdict(f"no score from {shown} on the {place} line")


def weighted_score(tokens: Sequence[Token], *, score: float, scale: Sequence[float]) -> float | None:
    """The mean of the scale's scores, weighted by the probabilities of the token that stated ``score``.

    The token is the last one that reads as the score, i.e. the verdict. Each score counts with the probabilities of all
    candidates that read as it; other candidates are left out. None if the endpoint returned no log-probabilities, if
    the score takes several tokens ("10"), or if too little probability falls on the scale.
    """
    for token in reversed(tokens):
        if _as_number(token.text) == score:
            break
    else:
        return None
    if any(len(f"{value:g}") > 1 for value in scale):
        return None  # the first of several digits does not determine the score
    mass: dict[float, float] = {}
    for text, logprob in token.candidates:
        value = _as_number(text)
        if value is not None and value in scale:
            mass[value] = mass.get(value, 0.0) + math.exp(min(0.0, logprob))
    total = sum(mass.values())
    if total < LEAST_MASS:
        return None
    mean = sum(value * weight for value, weight in mass.items()) / total
    return min(max(mean, min(mass)), max(mass))  # sums of fractions may step over an end


def _as_number(text: str) -> float | None:
    bare = text.strip(" *_`[]\"'\n")
    return float(bare) if re.fullmatch(_NUMBER, bare) else None


def _overlap(case: Case) -> Verdict:
    """The share of the criteria's words that occur in the answer, mapped to the scale."""
    share = overlaps(case)[0] / len(content_words(case.criteria))
    return {"score": case.scale[round(share * (len(case.scale) - 1))]}


class Score(Protocol):
    name = "score"
    title = "Scores"
    words = "how good an answer is, as a number"
    kind = Item.Kind.SCORE
    verdict_kind = "score"
    weighted = True
    answer_forms: ClassVar[tuple[tuple[str, str], ...]] = (
        (r"\[\[[0-9.]+\]\]", "a score in double brackets, [[{{ scale[0][0] }}]]"),
    )
    reasonings: ClassVar[tuple[str, ...]] = ("none", "first", "after", "three-step")
    printed: ClassVar[Printed | None] = MLLM_AS_A_JUDGE
    defaults: ClassVar[Mapping[str, Any]] = {"criteria": False}
    baselines: ClassVar[Mapping[str, Baseline]] = {
        "random": lambda case: {"score": case.rng.choice(list(case.scale))},
        "criteria-overlap": _overlap,
    }

    def verdict_schema(self, material: Material, settings: Settings) -> dict[str, Any]:
        return {"type": "number", "enum": list(self.scale(material))}

    def parse(self, text: str, material: Material, settings: Settings) -> ParsedVerdict:
        scale, words = zip(*material.scale, strict=True)
        return parse_score(text, place=self.verdict_line(settings), scale=scale, words=words)

    def best(self, material: Material, place: int) -> str:
        return f"Judgement: [[{max(self.scale(material)):g}]]"

    def lowest(self, material: Material, places: Sequence[int]) -> dict[str, Any]:
        return {"score": self.scale(material)[0]}
