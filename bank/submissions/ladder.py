"""The submitter's view of scores whose answer keys are not all open to everybody (ADR 11).

Every scored submission answers a question about hidden keys, and whoever asks often enough knows them. So of the shown
half a score is told only where it beats the person's best told one (``stats.ladder``), for each split and kind of
question over all models that the person submits, withdrawn ones included; of the kept half, when a curator releases it.
What was told is stored and stays, whatever keys are corrected later.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from django.db.models import Count

from bank.models import Benchmark, Submission, SubmissionRules, SubmissionScore, ToldScore
from bank.submissions import totals
from stats import ladder
from stats.disclosure import MIN_SAMPLES

MOST_TOLD = 50  # submissions of a person, where a curator sets no limit
MAIN = ("circular", "vanilla", "accuracy")  # the number that is told: the first that there is
DIGITS = 2  # a released share is told in whole per cent

Ladder = tuple[str, str]  # split and kind of question


class Mark(Protocol):
    """A sample of the shown half, compared with its key."""

    @property
    def sample(self) -> int: ...
    @property
    def cluster(self) -> str: ...
    @property
    def hit(self) -> bool: ...
    @property
    def chance(self) -> float: ...


def best_told(submission: Submission) -> dict[Ladder, ToldScore]:
    """The best score that its sender was told so far, by split and kind of question."""
    rows = ToldScore.objects.filter(
        submission__by=submission.by_id, submission__benchmark=submission.benchmark_id, kept=False, value__isnull=False
    )
    ordered = rows.select_related("submission").order_by("value", "-pk")
    return {(row.split, row.kind): row for row in ordered}


def tell(
    submission: Submission,
    rules: SubmissionRules,
    shown: Mapping[Ladder, Sequence[Mark]],
    *,
    best: Mapping[Ladder, ToldScore],
    hits_of_best: Mapping[tuple[int, int], bool],
) -> None:
    """Tell of the shown halves what the Ladder allows, once for each submission, split and kind of question.

    ``hits_of_best``: whether a submission in ``best`` is right about a sample, by both ids. Call it in a transaction
    that holds ``quota.lock_person``.
    """
    if rules.in_all is None and _told_to(submission) >= MOST_TOLD:
        return
    earlier = set(ToldScore.objects.filter(submission=submission, kept=False).values_list("split", "kind"))
    for (split, kind), marks in sorted(shown.items()):
        if (split, kind) in earlier:
            continue
        before = best.get((split, kind))
        base, reached = _to_beat(before, marks, hits_of_best)
        value = ladder.told(
            hits=[mark.hit for mark in marks], base=base, best=reached, cluster=[mark.cluster for mark in marks]
        )
        known = value if value is not None else before.value if before else None
        ToldScore.objects.create(submission=submission, split=split, kind=kind, value=value, best=known)


def _to_beat(
    best: ToldScore | None, marks: Sequence[Mark], hits_of_best: Mapping[tuple[int, int], bool]
) -> tuple[list[float], float]:
    """The hits of the best told submission and its score; before there is one, those of guessing."""
    if best is None:
        chances = [mark.chance for mark in marks]
        return chances, sum(chances) / len(chances)
    hits = [float(hits_of_best.get((best.submission_id, mark.sample), False)) for mark in marks]
    return hits, best.value or 0.0


def _told_to(submission: Submission) -> int:
    """Of how many other submissions to the benchmark its sender was told."""
    rows = ToldScore.objects.filter(
        submission__by=submission.by_id, submission__benchmark=submission.benchmark_id, kept=False
    )
    return rows.exclude(submission=submission).values("submission").distinct().count()


def release(submission: Submission) -> None:
    """Tell the figures of the kept halves, as they are now, in whole per cent.

    A figure that is about fewer than ``MIN_SAMPLES`` answers is not told.
    """
    for score in SubmissionScore.objects.filter(submission=submission, part=SubmissionScore.Part.KEPT):
        number = main_number(score)
        if number is not None and min(score.n, score.numbers.get("answered", score.n)) >= MIN_SAMPLES:
            value = round(number, DIGITS)
            kept = f"kept half of {score.split or 'no split'}, {score.get_kind_display().lower()}"
            totals.note(submission=submission, made_of={"kept": kept}, of=kept, samples=score.n)
            ToldScore.objects.get_or_create(
                submission=submission,
                split=score.split,
                kind=score.kind,
                kept=True,
                defaults={"value": value, "best": value},
            )


def main_number(score: SubmissionScore) -> float | None:
    """The share right that ranks: over all rotations where they were sent."""
    number = next((score.numbers[name] for name in MAIN if score.numbers.get(name)), None)
    return None if number is None else number["value"]


def tellings(benchmark: Benchmark) -> dict[str, int]:
    """How many ``submissions`` to a benchmark their senders were told of, and how many ``people`` those are.

    For curators: people who share what they are told learn as much as one person with all their submissions.
    """
    rows = ToldScore.objects.filter(submission__benchmark=benchmark, kept=False)
    return rows.aggregate(submissions=Count("submission", distinct=True), people=Count("submission__by", distinct=True))
