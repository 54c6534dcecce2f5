"""What of a benchmark is sealed, in words: what visitors see of it, and why (ADR 31)."""

from dataclasses import dataclass

from django.db.models import Q

from bank import exposure, guard
from bank.exposure import Inputs
from bank.models import Benchmark, Item, Response
from leaderboard.hidden import closed_of, outside_items
from leaderboard.models import Edition
from stats.disclosure import MIN_SAMPLES

# Kinds of hidden inputs in words, in the order in which they are told.
WORDS = {
    Inputs.ANSWER_KEY: "answer keys",
    Inputs.EXACT_REFERENCE: "exact references",
    Inputs.RANGE: "ranges",
    Inputs.WEIGHT: "weights of components",
    Inputs.COMPONENT: "components",
    Inputs.SOFT_REFERENCE: "references",
    Inputs.GUIDELINE: "guidelines",
}


@dataclass(frozen=True, slots=True)
class Sealed:
    """What of a benchmark is sealed, as ``_sealed_rows.html`` tells it, with why: hidden inputs in words, those of them
    that are ``keyed``; the newest edition; how many answers, items with submitted ones and items labelled blind.
    """

    closed: str
    keyed: str
    edition: Edition | None
    answers: int
    texts: bool
    outside: int
    splits: str
    blind: int
    least: int = MIN_SAMPLES  # samples behind a total

    def __bool__(self) -> bool:
        return bool(self.closed or self.answers or self.outside or self.splits or self.blind)


def sealed_of(benchmark: Benchmark) -> Sealed:
    closed = closed_of(benchmark)
    answers = Q(exposure.any_of(Inputs.ANSWER_KEY, "sample__closed")) | Q(sample__split__in=benchmark.hidden_splits)
    with guard.working():
        count = Response.objects.filter(answers, sample__benchmark=benchmark).count()
    return Sealed(
        closed=_words(closed),
        keyed=_words(closed & exposure.KEYED),
        edition=Edition.objects.filter(benchmark=benchmark, what=Edition.What.MODELS).order_by("-pk").first(),
        answers=count,
        texts=bool(closed & exposure.TEXTS),
        outside=len(outside_items(benchmark)),
        splits=", ".join(benchmark.hidden_splits),
        blind=Item.objects.filter(sample__benchmark=benchmark, blind=True).count(),
    )


def _words(inputs: int) -> str:
    return ", ".join(words for kind, words in WORDS.items() if inputs & kind)
