"""Built-in judges that need no endpoint, the floor of every table of judges. Pure functions of the material."""

import random
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from bank.models.verdict import EVEN, GRADED, LABEL

Verdict = dict[str, Any]

# Words that say nothing about the content of an answer.
STOP_WORDS = frozenset(
    """a about after all also an and any are as at be been being both but by can could did do does each for from had has
    have he her his how i if in into is it its may might more most must no nor not of on one only or other our out over
    own she should so some such than that the their them then there these they this those to too under up use uses
    using very was we were what when where which while who why will with would you your""".split()
)
_WORD = re.compile(r"\w+")


class CannotJudge(ValueError):
    """The baseline cannot judge this item; says what is missing."""


@dataclass(frozen=True, slots=True)
class Case:
    """What a baseline sees, in presented order. ``order[k]`` is the canonical position of the answer at place k.

    ``rng`` is seeded with run, item and repeat but not with the order, so that `random` gives an item the same verdict
    in both orders. ``parts`` are the components to give points for: key, text, weight; ``categories`` those to choose
    from.
    """

    answers: Sequence[str]
    criteria: Sequence[str]
    order: Sequence[int]
    rng: random.Random
    scale: Sequence[float] = ()
    parts: Sequence[tuple[str, str, float]] = ()
    categories: Sequence[str] = ()


def judge(baseline: str, protocol: str, case: Case) -> Verdict:
    """The verdict of a baseline in presented order. Raises CannotJudge, and KeyError if ``can_judge`` is false."""
    return _JUDGES[protocol][baseline](case)


def can_judge(baseline: str, protocol: str) -> bool:
    """Whether this baseline gives verdicts in this protocol."""
    return baseline in _JUDGES.get(protocol, {})


def content_words(texts: Iterable[str]) -> frozenset[str]:
    """The distinct words of some texts, lower-case, without stop words."""
    return frozenset(word for text in texts for word in _WORD.findall(text.casefold())) - STOP_WORDS


def _overlaps(case: Case) -> list[int]:
    criteria_words = content_words(case.criteria)
    if not criteria_words:
        raise CannotJudge("the sample has no criteria")
    return [len(criteria_words & content_words([answer])) for answer in case.answers]


def _lengths(case: Case) -> list[int]:
    return [len(answer.split()) for answer in case.answers]


def _higher(values: Sequence[int]) -> Verdict:
    if values[0] == values[1]:
        return {"choice": "tie"}
    return {"choice": "first" if values[0] > values[1] else "second"}


def _side(case: Case) -> Verdict:
    return {"choice": "first" if case.order[0] == case.rng.randrange(2) else "second"}


def _ranked(values: Sequence[float]) -> Verdict:
    """Places by descending value; equal values share a rank."""
    groups = [[place for place, value in enumerate(values) if value == level] for level in sorted(set(values))]
    return {"ranking": groups[::-1]}


def _drawn_ranking(case: Case) -> Verdict:
    ranks = case.rng.sample(range(len(case.order)), len(case.order))
    return _ranked([ranks[position] for position in case.order])


def _overlap_score(case: Case) -> Verdict:
    """The share of the criteria's words that occur in the answer, mapped to the scale."""
    share = _overlaps(case)[0] / len(content_words(case.criteria))
    return {"score": case.scale[round(share * (len(case.scale) - 1))]}


def _points(case: Case, points_of: Callable[[str, float], float]) -> Verdict:
    if not case.parts:
        raise CannotJudge("the sample has no components")
    parts = {key: points_of(text, weight) for key, text, weight in case.parts}
    return {"parts": parts, "score": 10 * sum(parts.values()) / sum(weight for *_, weight in case.parts)}


def _overlap_points(case: Case) -> Verdict:
    answer_words = content_words(case.answers)

    def points_of(text: str, weight: float) -> float:
        component_words = content_words([text])
        return round(weight * len(component_words & answer_words) / len(component_words), 1) if component_words else 0.0

    return _points(case, points_of)


_PAIRS: dict[str, Callable[[Case], Verdict]] = {
    "random": _side,
    "first": lambda case: {"choice": "first"},
    "longest": lambda case: _higher(_lengths(case)),
    "criteria-overlap": lambda case: _higher(_overlaps(case)),
}


def _graded(judge_pair: Callable[[Case], Verdict], case: Case) -> Verdict:
    """As a choice between two, and never a strong one."""
    choice = judge_pair(case)["choice"]
    return {"choice": choice, "preference": {"first": 0.75, "second": 0.25}.get(choice, EVEN)}


_JUDGES: dict[str, dict[str, Callable[[Case], Verdict]]] = {
    "pairwise-criteria": _PAIRS,
    "pair": _PAIRS,
    GRADED: {name: partial(_graded, judge_pair) for name, judge_pair in _PAIRS.items()},
    "batch": {
        "random": _drawn_ranking,
        "first": lambda case: {"ranking": [[place] for place in range(len(case.answers))]},
        "longest": lambda case: _ranked(_lengths(case)),
        "criteria-overlap": lambda case: _ranked(_overlaps(case)),
    },
    "score": {
        "random": lambda case: {"score": case.rng.choice(list(case.scale))},
        "criteria-overlap": _overlap_score,
    },
    LABEL: {"random": lambda case: {"option": case.rng.choice(list(case.categories))}},
    "components": {
        "random": lambda case: _points(case, lambda text, weight: float(case.rng.randint(0, int(weight)))),
        "criteria-overlap": _overlap_points,
    },
}
