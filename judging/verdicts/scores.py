"""Scores of one answer, on a scale or by weighted components."""

import math
import re
from collections.abc import Sequence

from judging.verdicts.place import plain, split_thought, stated
from judging.verdicts.reply import Found, NoVerdict, Place, Token

_NUMBER = r"[+-]?[0-9]+(?:\.[0-9]+)?"
_SCORE = re.compile(
    rf"(?P<number>{_NUMBER})(?:\s*(?:/|out of)\s*(?P<of>[0-9]+))?(?:\s*[(:,–—-]?\s*(?P<word>[A-Za-z ]+)\)?)?"
    rf"|(?P<word_before>[A-Za-z ]+?)\s*[(:,–—-]\s*(?P<number_after>{_NUMBER})\)?"
)
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
LEAST_MASS = 0.5  # of the probability that must fall on the scale for a weighted score


def score(text: str, *, place: Place, scale: Sequence[float], words: Sequence[str] = ()) -> Found:
    """The score that a reply states: one of ``scale``, in plain digits, with or without its word ("4 (Good)", "4/5").

    A number that is not on the scale is no score: nothing is rounded or clamped. Raises NoVerdict.
    """
    shown = f"{scale[0]:g} to {scale[-1]:g}"
    for piece in stated(text, place=place):
        match = _SCORE.fullmatch(plain(piece.value))
        if match is None:
            continue
        value = float(match["number"] or match["number_after"])
        word = (match["word"] or match["word_before"] or "").strip().casefold()
        if match["of"] and float(match["of"]) != scale[-1]:
            raise NoVerdict(f"a score out of {match['of'][:6]} on a scale from {shown}")
        if value not in scale:
            raise NoVerdict(f"the score is not one of the scale from {shown}")
        if word and word not in [known.casefold() for known in words[list(scale).index(value) :][:1]]:
            continue
        return Found({"score": value}, piece.analysis)
    raise NoVerdict(f"no score from {shown} on the {place} line")


def components(text: str, *, place: Place, keys: Sequence[str], weights: Sequence[float]) -> Found:
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


def weighted_score(tokens: Sequence[Token], *, score: float, scale: Sequence[float]) -> float | None:
    """The mean of the scale's scores, weighted by the probabilities of the token that stated ``score``.

    The token is the last one that reads as the score: the verdict that was taken. Each score counts with the
    probabilities of all tokens that read as it; what stands for no score is left out. None where the endpoint gave no
    log-probabilities, where the score took several tokens ("10"), or where next to nothing fell on the scale.
    """
    for token in reversed(tokens):
        if _as_number(token.text) == score:
            break
    else:
        return None
    if any(len(f"{value:g}") > 1 for value in scale):
        return None  # the first of several digits does not tell which score follows
    mass: dict[float, float] = {}
    for text, logprob in token.candidates:
        value = _as_number(text)
        if value is not None and value in scale:
            mass[value] = mass.get(value, 0.0) + math.exp(min(0.0, logprob))
    total = sum(mass.values())
    if total < LEAST_MASS:
        return None
    return sum(value * weight for value, weight in mass.items()) / total


def _as_number(text: str) -> float | None:
    bare = text.strip(" *_`[]\"'\n")
    return float(bare) if re.fullmatch(_NUMBER, bare) else None
