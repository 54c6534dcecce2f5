"""What of a benchmark is sealed, in words: what visitors see of it, and why (ADR 31)."""

from collections.abc import Iterator
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
    """A part of a benchmark: what people below staff see of it, whether that is all, and why."""

    part: str
    seen: str
    is_open: bool
    why: str


def parts_of(benchmark: Benchmark) -> list[Sealed]:
    """Empty where nothing is sealed."""
    return list(_parts(benchmark))


def _parts(benchmark: Benchmark) -> Iterator[Sealed]:
    closed = closed_of(benchmark)
    keyed = closed & exposure.KEYED
    hidden = ", ".join(benchmark.hidden_splits)
    if closed:
        yield Sealed("Criteria", f"hidden: {_words(closed)}", False, "they are what answers are judged by")
    if keyed:
        edition = Edition.objects.filter(benchmark=benchmark, what=Edition.What.MODELS).order_by("-pk").first()
        published = f"as of edition {edition.number}, {edition.published_at:%-d %b %Y}" if edition else "no edition yet"
        yield Sealed(
            f"Scores that rest on {_words(keyed)}",
            published,
            bool(edition),
            f"totals of {MIN_SAMPLES} samples or more, published together: the score of a known answer tells its key",
        )
        yield Sealed("Single verdicts by judges that held them", "hidden", False, "they would tell them one by one")
    answers = Q(exposure.any_of(Inputs.ANSWER_KEY, "sample__closed")) | Q(sample__split__in=benchmark.hidden_splits)
    with guard.working():
        count = Response.objects.filter(answers, sample__benchmark=benchmark).count()
    if count:
        yield Sealed(f"{count:,} answers of models", "hidden", False, "with known answers, totals tell keys")
    if closed & exposure.TEXTS:
        yield Sealed(
            "Verdicts by free texts",
            "shown from the day after a run has ended",
            True,
            "while it goes on, the time of each would tell how long the text is",
        )
        yield Sealed("Prices and times of such runs", "hidden", False, "their lengths tell how long the text is")
    if outside := len(outside_items(benchmark)):
        why = "a submitted answer can ask the judge about hidden text; it enters the board by an edition"
        yield Sealed(f"Single verdicts on {outside:,} items with submitted answers", "hidden", False, why)
    if hidden:
        yield Sealed(f"Split {hidden}", "counted as a whole, on boards of models", False, "it is kept for comparing")
    if blind := Item.objects.filter(sample__benchmark=benchmark, blind=True).count():
        seen = f"hidden while {blind:,} items are labelled"
        yield Sealed("Votes on what people label blind", seen, False, "they would be ready to be copied")


def _words(inputs: int) -> str:
    return ", ".join(words for kind, words in WORDS.items() if inputs & kind)
