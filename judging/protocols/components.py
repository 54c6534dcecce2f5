"""Points for each weighted part of an instruction, as MIA-Bench grades (arXiv 2407.01509)."""

import math
import re
from collections.abc import Sequence
from typing import Any

from bank.models import Item
from judging.protocols.base import CannotAsk, Criterion, Material, Protocol
from judging.protocols.replies import Found, NoVerdict, Place, split_thought
from judging.protocols.settings import Settings

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


def parse_components(text: str, *, place: Place, keys: Sequence[str], weights: Sequence[float]) -> Found:
    """Points by component, as MIA-Bench's judge states them (arXiv 2407.01509, 2.2).

    ``Score of component 1: 4/4, score of component 2: 0/3, total score: 4/7.`` at the beginning of the reply (place
    first) or at its end (last). Every component once, points within 0 and its weight, each "/weight" as it is. The sum
    of the points counts: ``score`` is the points per total weight, times 10. A total that is stated otherwise is kept
    as a remark in ``reason``. Raises NoVerdict.
    """
    thought, said = split_thought(text, place=place)
    start, end, found, total = _statement(said, place=place)
    numbers = [int(part["number"]) for part in found]
    if sorted(numbers) != list(range(1, len(keys) + 1)):
        raise NoVerdict(f"the scores are not one for each of the {len(keys)} components")
    points = [0.0] * len(keys)
    for part in found:
        at = int(part["number"]) - 1
        if abs(float(part["weight"]) - weights[at]) > EPSILON:
            raise NoVerdict(f"component {at + 1} is worth {weights[at]:g}, not {part['weight'][:6]}")
        points[at] = float(part["points"])
        if not 0 <= points[at] <= weights[at] or not math.isfinite(points[at]):
            raise NoVerdict(f"the points of component {at + 1} are not between 0 and {weights[at]:g}")
    verdict = {"parts": dict(zip(keys, points, strict=True)), "score": 10 * sum(points) / sum(weights)}
    if abs(float(total["points"]) - sum(points)) > EPSILON:
        verdict["reason"] = (
            f"the judge's total is {total['points'][:8]}; the sum of its points, {sum(points):g}, counts"
        )
    rest = said[end:] if place == "first" else said[:start]
    return Found(verdict, "\n\n".join(piece.strip() for piece in (thought, rest) if piece.strip()))


def _statement(said: str, *, place: Place) -> tuple[int, int, list[re.Match[str]], re.Match[str]]:
    """The run of component scores with its total: where it starts and ends. It must open or close the reply."""
    missing = NoVerdict(f"no component scores at the {'beginning' if place == 'first' else 'end'} of the reply")
    body = said.rstrip().rstrip("`").rstrip()
    start = 0 if place == "first" else _last_run(body)
    at, found = start, []
    while part := _PART.match(body, at):
        found.append(part)
        at = part.end()
    total = _TOTAL.match(body, at)
    if not found or total is None or (place == "last" and total.end() != len(body)):
        raise missing
    return start, total.end(), found, total


def _last_run(body: str) -> int:
    """Where the last unbroken run of component scores begins; the end of the text where there is none."""
    begin, end = len(body), -1
    for part in _PART.finditer(body):
        if part.start() != end:
            begin = part.start()
        end = part.end()
    return begin


class Components(Protocol):
    name = "components"
    title = "Weighted components"
    kind = Item.Kind.SCORE
    verdict_kind = "components"
    answer_forms = (
        (
            r"[Ss]core of component 1: \S+/4, score of component 2: \S+/6, total score: \S+/10",
            "Score of component 1: x/{{ components[0].weight }}, and so on, total score: z/{{ total }}.",
        ),
    )
    defaults = {"reasoning": "after"}
    fixed = ("criteria",)

    def values(self, material: Material, settings: Settings) -> dict[str, Any]:
        parts = [{"text": part.text, "weight": f"{part.weight:g}"} for part in _parts(material)]
        total = f"{sum(part.weight or 0 for part in _parts(material)):g}"
        return super().values(material, settings) | {"components": parts, "total": total}

    def parse(self, text: str, material: Material, settings: Settings) -> Found:
        parts = _parts(material)
        return parse_components(
            text,
            place=self.place(settings),
            keys=[part.key for part in parts],
            weights=[part.weight or 0 for part in parts],
        )


def _parts(material: Material) -> list[Criterion]:
    parts = [criterion for criterion in material.criteria if criterion.kind == "component"]
    if not parts:
        raise CannotAsk("the sample has no components")
    if any(not part.weight for part in parts):
        raise CannotAsk("a component has no weight")
    return parts


PROTOCOL = Components()
