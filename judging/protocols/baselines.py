"""The built-in judges: they need no endpoint, and are the floor of every table of judges.

Each protocol names those that give verdicts in it (``Protocol.baselines``), pure functions of the material.
"""

import random
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

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
    """The view of a baseline, in presented order. ``order[k]`` is the canonical position of the answer at place k.

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


Baseline = Callable[[Case], Verdict]  # raises CannotJudge


def content_words(texts: Iterable[str]) -> frozenset[str]:
    """The distinct words of some texts, lower-case, without stop words."""
    return frozenset(word for text in texts for word in _WORD.findall(text.casefold())) - STOP_WORDS


def overlaps(case: Case) -> list[int]:
    criteria_words = content_words(case.criteria)
    if not criteria_words:
        raise CannotJudge("the sample has no criteria")
    return [len(criteria_words & content_words([answer])) for answer in case.answers]


def lengths(case: Case) -> list[int]:
    return [len(answer.split()) for answer in case.answers]


def _higher(values: Sequence[int]) -> Verdict:
    if values[0] == values[1]:
        return {"choice": "tie"}
    return {"choice": "first" if values[0] > values[1] else "second"}


def _side(case: Case) -> Verdict:
    return {"choice": "first" if case.order[0] == case.rng.randrange(2) else "second"}


def ranked(values: Sequence[float]) -> Verdict:
    """Places by descending value; equal values share a rank."""
    groups = [[place for place, value in enumerate(values) if value == level] for level in sorted(set(values))]
    return {"ranking": groups[::-1]}


PAIRS: dict[str, Baseline] = {
    "random": _side,
    "first": lambda case: {"choice": "first"},
    "longest": lambda case: _higher(lengths(case)),
    "criteria-overlap": lambda case: _higher(overlaps(case)),
}
