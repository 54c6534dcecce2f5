"""Rounds of cross-review, and who has what to do."""

from collections import Counter
from dataclasses import dataclass

from django.db.models import Count, Q, QuerySet

from accounts.models import User
from bank.models import Benchmark, ReviewRound, Sample, SampleReview

Verdict = SampleReview.Verdict


@dataclass(frozen=True, slots=True)
class RoundLine:
    """One round in numbers: samples by what the round made of them."""

    round: ReviewRound
    samples: int
    fine: int
    sent_back: int
    rejected: int
    waiting: int
    revised: int  # of those sent back: changed since


def rounds_of(benchmark: Benchmark) -> list[RoundLine]:
    """Every round, the first first."""
    lines = []
    verdicts: dict[int, dict[int, set[str]]] = {}
    revised: dict[int, set[int]] = {}
    rows = SampleReview.objects.filter(round__benchmark=benchmark).order_by()
    for round_id, sample, verdict, at in rows.values_list("round", "sample", "verdict", "revised_at"):
        verdicts.setdefault(round_id, {}).setdefault(sample, set()).add(verdict)
        if verdict == Verdict.REVISE and at is not None:
            revised.setdefault(round_id, set()).add(sample)
    for line in benchmark.review_rounds.select_related("opened_by"):
        counts: Counter[str] = Counter()
        sent = set()
        for sample, given in verdicts.get(line.pk, {}).items():
            outcome = next(v for v in ("", Verdict.REJECT, Verdict.REVISE, Verdict.FINE) if v in given)
            counts[outcome] += 1
            if outcome == Verdict.REVISE:
                sent.add(sample)
        lines.append(
            RoundLine(
                round=line,
                samples=sum(counts.values()),
                fine=counts[Verdict.FINE],
                sent_back=counts[Verdict.REVISE],
                rejected=counts[Verdict.REJECT],
                waiting=counts[""],
                revised=len(revised.get(line.pk, set()) & sent),
            )
        )
    return lines


@dataclass(frozen=True, slots=True)
class Share:
    """What one reviewer has in a round."""

    round: ReviewRound
    done: int
    all: int
    next: int | None  # the id of the review to do

    @property
    def left(self) -> int:
        return self.all - self.done


def shares_of(person: User, *, round: ReviewRound | None = None) -> list[Share]:
    """A reviewer's open rounds, oldest first, with what is left."""
    mine = SampleReview.objects.filter(reviewer=person, round__closed_at=None)
    if round is not None:
        mine = mine.filter(round=round)
    counts = mine.order_by().values_list("round").annotate(n=Count("pk"), done=Count("pk", filter=~Q(verdict="")))
    found = {pk: (n, done) for pk, n, done in counts}
    shares = []
    for line in ReviewRound.objects.filter(pk__in=found).select_related("benchmark").order_by("pk"):
        n, done = found[line.pk]
        following = mine.filter(round=line, verdict="").order_by("pk").values_list("pk", flat=True).first()
        shares.append(Share(line, done, n, following))
    return shares


def to_revise(person: User) -> QuerySet[Sample]:
    """An author's samples that a review or a check sent back (``status_reason`` says why), unchanged since."""
    found = Sample.objects.filter(author=person, status=Sample.Status.DRAFT).exclude(status_reason="")
    return found.select_related("benchmark").order_by("benchmark", "position")


def to_check(person: User, *, benchmark: Benchmark | None = None) -> QuerySet[Sample]:
    """Samples that wait for an expert's check and that this person did not write."""
    found = Sample.objects.filter(status=Sample.Status.EXPERT).exclude(author=person).select_related("benchmark")
    if benchmark is not None:
        found = found.filter(benchmark=benchmark)
    return found.order_by("benchmark", "position", "pk")
