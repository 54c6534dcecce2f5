"""Points for each weighted part of an instruction, as MIA-Bench grades (arXiv 2407.01509)."""

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from bank import exposure
from bank.models import Item
from judging.protocols.base import CannotAsk, Criterion, Material, Protocol
from judging.protocols.baselines import CannotJudge, Case, Verdict, content_words
from judging.protocols.replies import NoVerdict, ParsedVerdict, Place, joined, split_thought
from judging.protocols.settings import Printed, Settings

_PART = re.compile(
    r"[\s*_`#>•-]*(?:the\s+)?score\s+(?:of|for)\s+component\s+(?P<number>[0-9]+)[\s*_`]*(?:is|[:：=])[\s*_`]*"
    r"(?P<points>-?[0-9]+(?:\.[0-9]+)?)\s*/\s*(?P<weight>[0-9]+(?:\.[0-9]+)?)[\s*_`]*[,;.]?",
    re.IGNORECASE,
)
_TOTAL = re.compile(
    r"[\s*_`#>•-]*(?:and\s+)?(?:the\s+)?total\s+score[\s*_`]*(?:is|[:：=])[\s*_`]*"
    r"(?P<points>-?[0-9]+(?:\.[0-9]+)?)\s*/\s*(?P<weight>[0-9]+(?:\.[0-9]+)?)[\s*_`]*\.?",
    re.IGNORECASE,
)
EPSILON = 1e-6


def parse_components(text: str, *, place: Place, keys: Sequence[str], weights: Sequence[float]) -> ParsedVerdict:
    """Points per component, as MIA-Bench's judge states them (arXiv 2407.01509, 2.2).

    ``Score of component 1: 4/4, score of component 2: 0/3, total score: 4/7.`` at the start of the reply (place first)
    or at its end (last). Every component once, with points between 0 and its weight and the right "/weight". The sum of
    the points counts: ``score`` is 10 x points / total weight. A different stated total is noted in ``reason``. Raises
    NoVerdict.
    """
    thought, reply_text = split_thought(text, place=place)
    start, end, scores, total = _statement(reply_text, place=place)
    numbers = [int(part["number"]) for part in scores]
    if sorted(numbers) != list(range(1, len(keys) + 1)):
        raise NoVerdict(f"there is not exactly one score for each of the {len(keys)} components")
    points = [0.0] * len(keys)
    for part in scores:
        index = int(part["number"]) - 1
        if abs(float(part["weight"]) - weights[index]) > EPSILON:
            raise NoVerdict(f"component {index + 1} is worth {weights[index]:g}, not {part['weight'][:6]}")
        points[index] = float(part["points"])
        if not 0 <= points[index] <= weights[index] or not math.isfinite(points[index]):
            raise NoVerdict(f"the points of component {index + 1} are not between 0 and {weights[index]:g}")
    verdict = {"parts": dict(zip(keys, points, strict=True)), "score": 10 * sum(points) / sum(weights)}
    if abs(float(total["points"]) - sum(points)) > EPSILON:
        verdict["reason"] = (
            f"the judge's total is {total['points'][:8]}; the sum of its points, {sum(points):g}, counts"
        )
    rest = reply_text[end:] if place == "first" else reply_text[:start]
    return ParsedVerdict(verdict, joined(thought, rest))


def _statement(reply_text: str, *, place: Place) -> tuple[int, int, list[re.Match[str]], re.Match[str]]:
    """The component scores with their total: where they start and end, at the start or end of the reply."""
    missing = NoVerdict(f"no component scores at the {'start' if place == 'first' else 'end'} of the reply")
    text = reply_text.rstrip().rstrip("`").rstrip()
    start = 0 if place == "first" else _last_run(text)
    position, scores = start, []
    while part := _PART.match(text, position):
        scores.append(part)
        position = part.end()
    total = _TOTAL.match(text, position)
    if not scores or total is None or (place == "last" and total.end() != len(text)):
        raise missing
    return start, total.end(), scores, total


def _last_run(text: str) -> int:
    """Where the last unbroken series of component scores starts; the end of the text if there is none."""
    start, end = len(text), -1
    for part in _PART.finditer(text):
        if part.start() != end:
            start = part.start()
        end = part.end()
    return start


def _points(case: Case, points_of: Callable[[str, float], float]) -> Verdict:
    if not case.parts:
        raise CannotJudge("the sample has no components")
    parts = {key: points_of(text, weight) for key, text, weight in case.parts}
    return {"parts": parts, "score": 10 * sum(parts.values()) / sum(weight for *_, weight in case.parts)}


def _overlap(case: Case) -> Verdict:
    answer_words = content_words(case.answers)

    def points_of(text: str, weight: float) -> float:
        component_words = content_words([text])
        return round(weight * len(component_words & answer_words) / len(component_words), 1) if component_words else 0.0

    return _points(case, points_of)


class Components(Protocol):
    name = "components"
    title = "Weighted components"
    words = "points for each component of the instruction"
    kind = Item.Kind.SCORE
    verdict_kind = "components"
    needs_criteria = ("component",)
    may_hold = exposure.TEXTS | exposure.Inputs.WEIGHT
    lacking = "no sample has components"
    answer_forms = (
        (
            r"[Ss]core of component 1: \S+/4, score of component 2: \S+/6, total score: \S+/10",
            "Score of component 1: x/{{ components[0].weight }}, and so on, total score: z/{{ total }}.",
        ),
    )
    printed = Printed("MIA-Bench", "2.2 and A.3", {"reasoning": "after", "context": "image"})
    defaults = {"reasoning": "after"}
    fixed = ("criteria",)
    baselines = {
        "random": lambda case: _points(case, lambda text, weight: float(case.rng.randint(0, int(weight)))),
        "criteria-overlap": _overlap,
    }

    def values(self, material: Material, settings: Settings) -> dict[str, Any]:
        parts = [{"text": part.text, "weight": f"{part.weight:g}"} for part in _parts(material)]
        total = f"{sum(part.weight or 0 for part in _parts(material)):g}"
        return super().values(material, settings) | {"components": parts, "total": total}

    def parse(self, text: str, material: Material, settings: Settings) -> ParsedVerdict:
        parts = _parts(material)
        return parse_components(
            text,
            place=self.verdict_line(settings),
            keys=[part.key for part in parts],
            weights=[part.weight or 0 for part in parts],
        )

    def best(self, material: Material, place: int) -> str:
        weights = [part.weight or 0 for part in material.criteria if part.kind == "component"]
        parts = [f"score of component {n}: {weight:g}/{weight:g}" for n, weight in enumerate(weights, 1)]
        return f"{', '.join(parts)}, total score: {sum(weights):g}/{sum(weights):g}.".capitalize()

    def lowest(self, material: Material, places: Sequence[int]) -> dict[str, Any]:
        return {"parts": {part.key: 0.0 for part in _parts(material)}, "score": 0.0}


def _parts(material: Material) -> list[Criterion]:
    parts = [criterion for criterion in material.criteria if criterion.kind == "component"]
    if not parts:
        raise CannotAsk("the sample has no components")
    if any(not part.weight for part in parts):
        raise CannotAsk("a component has no weight")
    return parts
