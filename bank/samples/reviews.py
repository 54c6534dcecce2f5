"""Cross-review in rounds, then the expert check. Nobody reviews or checks their own sample."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import Count, Max, Q, QuerySet
from django.utils import timezone

from accounts.models import User
from accounts.rules import allowed
from bank.errors import BadInput
from bank.models import Benchmark, ReviewRound, Sample, SampleReview
from bank.models.reviews import GUIDELINE
from bank.samples.editor import set_status

Verdict = SampleReview.Verdict
MOST_REVIEWS = 3


@transaction.atomic
def open_round(
    *, by: User, benchmark: Benchmark, samples: Sequence[Sample], reviewers: Sequence[User], per_sample: int = 1
) -> ReviewRound:
    """Open the next round over drafts and distribute the samples evenly, never to their author. Raises BadInput."""
    drafts = list(
        Sample.objects.select_for_update()
        .filter(benchmark=benchmark, pk__in=[sample.pk for sample in samples], status=Sample.Status.DRAFT)
        .order_by("position", "pk")
    )
    if not drafts:
        raise BadInput("There are no drafts to review. Only drafts can go into a round.")
    if not reviewers:
        raise BadInput("Choose at least one reviewer.")
    if not all(allowed(person, "review-samples") for person in reviewers):
        raise BadInput("Reviewers see criteria, so they must be curators or administrators.")
    if not 1 <= per_sample <= MOST_REVIEWS:
        raise BadInput(f"A sample gets 1 to {MOST_REVIEWS} reviews in a round.")
    shares = _shared(drafts, reviewers, per_sample)
    last = benchmark.review_rounds.aggregate(last=Max("number"))["last"] or 0
    made = ReviewRound.objects.create(benchmark=benchmark, number=last + 1, opened_by=by)
    SampleReview.objects.bulk_create(
        SampleReview(round=made, sample=sample, reviewer=person) for sample, person in shares
    )
    for sample in drafts:
        set_status(by=by, sample=sample, status=Sample.Status.REVIEW, reason=f"Review round {made.number}")
    return made


def _shared(drafts: list[Sample], reviewers: Sequence[User], per_sample: int) -> list[tuple[Sample, User]]:
    """Who reviews what: always the people with the fewest samples so far who are not the author."""
    load: Counter[int] = Counter()
    # Samples with the fewest possible reviewers first, or the last reviewer could be left with their own.
    choice = {sample.pk: [person for person in reviewers if person.pk != sample.author_id] for sample in drafts}
    pairs = []
    for sample in sorted(drafts, key=lambda sample: len(choice[sample.pk])):
        others = choice[sample.pk]
        if len(others) < per_sample:
            raise BadInput(
                f"Sample {sample.key!r} was written by {sample.author}, who may not review it: choose more reviewers."
            )
        for person in sorted(others, key=lambda person: load[person.pk])[:per_sample]:
            load[person.pk] += 1
            pairs.append((sample, person))
    order = {sample.pk: number for number, sample in enumerate(drafts)}
    return sorted(pairs, key=lambda pair: order[pair[0].pk])


@transaction.atomic
def give_review(*, review: SampleReview, by: User, verdict: str, points: dict[str, Any], note: str = "") -> None:
    """Store a reviewer's verdict; after the sample's last review, update its status. Raises BadInput.

    ``points`` holds {"ok": bool, "note": str} for each point of the guideline.
    """
    review = SampleReview.objects.select_for_update(of=("self",)).select_related("round").get(pk=review.pk)
    sample = Sample.objects.select_for_update().get(pk=review.sample_id)
    if review.reviewer_id != by.pk:
        raise BadInput("This review belongs to somebody else.")
    if sample.author_id == by.pk:
        raise BadInput("You cannot review your own sample.")
    if review.round.closed_at or review.verdict:
        raise BadInput("This review is closed." if review.round.closed_at else "You have reviewed this sample already.")
    if sample.status != Sample.Status.REVIEW:
        raise BadInput("This sample is no longer under review.")
    if verdict not in Verdict.values:
        raise BadInput("Choose fine, revise or reject.")
    missing = [title for name, (title, _) in GUIDELINE.items() if not isinstance(points.get(name, {}).get("ok"), bool)]
    if missing:
        raise BadInput(f"Say for each point whether it holds. Missing: {', '.join(missing)}.")
    failed = [name for name in GUIDELINE if not points[name]["ok"]]
    if verdict == Verdict.FINE and failed:
        raise BadInput("A point does not hold, so the sample is not fine: ask for a revision, or reject it.")
    if verdict != Verdict.FINE and not note.strip() and not any(points[name].get("note") for name in failed):
        raise BadInput("Say what needs to change, or why the sample is rejected.")
    review.verdict, review.points, review.note, review.at = verdict, points, note.strip(), timezone.now()
    review.save()
    _settle(review.round, sample, by)


def _settle(round: ReviewRound, sample: Sample, by: User) -> None:
    reviews = list(SampleReview.objects.filter(round=round, sample=sample))
    if all(review.verdict for review in reviews):
        verdicts = {review.verdict for review in reviews}
        objections = " ".join(
            words for review in reviews if review.verdict != Verdict.FINE and (words := words_of(review))
        )
        if Verdict.REJECT in verdicts:
            set_status(by=by, sample=sample, status=Sample.Status.REJECTED, reason=objections)
        elif Verdict.REVISE in verdicts:
            set_status(by=by, sample=sample, status=Sample.Status.DRAFT, reason=objections)
        else:
            set_status(by=by, sample=sample, status=Sample.Status.EXPERT)
    if not SampleReview.objects.filter(round=round, verdict="").exists():
        round.closed_at, round.closed_by = timezone.now(), by
        round.save(update_fields=["closed_at", "closed_by"])


def words_of(review: SampleReview) -> str:
    """A reviewer's objections, in one paragraph."""
    failed = [
        _sentence(f"{title}: {point['note'].strip()}" if point.get("note") else title)
        for name, (title, _) in GUIDELINE.items()
        if not (point := review.points.get(name, {"ok": True}))["ok"]
    ]
    return " ".join([*failed, review.note]).strip()


def _sentence(text: str) -> str:
    return text if text.endswith(tuple(".?!。？！")) else f"{text}."


@transaction.atomic
def close_round(*, round: ReviewRound, by: User) -> int:
    """End a round early: pending reviews are dropped, and their samples become drafts again. Returns how many."""
    waiting = SampleReview.objects.select_for_update().filter(round=round, verdict="")
    by_sample: dict[int, list[int]] = defaultdict(list)
    for review in waiting:
        by_sample[review.sample_id].append(review.pk)
    SampleReview.objects.filter(pk__in=[pk for pks in by_sample.values() for pk in pks]).delete()
    for sample in Sample.objects.select_for_update().filter(pk__in=by_sample, status=Sample.Status.REVIEW):
        if SampleReview.objects.filter(round=round, sample=sample).exists():
            _settle(round, sample, by)
        else:
            set_status(by=by, sample=sample, status=Sample.Status.DRAFT)
    ReviewRound.objects.filter(pk=round.pk, closed_at=None).update(closed_at=timezone.now(), closed_by=by)
    return len(by_sample)


@transaction.atomic
def decide(*, sample: Sample, by: User, decision: str, reason: str = "") -> None:
    """The expert check: ``approve``, ``reject`` (with reason) or ``revise`` (with reason). Raises BadInput."""
    sample = Sample.objects.select_for_update().get(pk=sample.pk)
    if sample.status != Sample.Status.EXPERT:
        raise BadInput("This sample is not waiting for an expert check.")
    if sample.author_id == by.pk:
        raise BadInput("You wrote this sample; somebody else has to check it.")
    reason = reason.strip()
    states = {"approve": Sample.Status.APPROVED, "reject": Sample.Status.REJECTED, "revise": Sample.Status.DRAFT}
    if decision not in states:
        raise BadInput("Choose approve, send back or reject.")
    if decision != "approve" and not reason:
        raise BadInput("Say why.")
    set_status(by=by, sample=sample, status=states[decision], reason=reason)


@dataclass(frozen=True, slots=True)
class RoundLine:
    """One round in numbers: samples by outcome."""

    round: ReviewRound
    samples: int
    fine: int
    sent_back: int
    rejected: int
    waiting: int
    revised: int  # of those sent back: changed since


def rounds_of(benchmark: Benchmark) -> list[RoundLine]:
    """Every round, oldest first."""
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
        for sample, verdicts_of_sample in verdicts.get(line.pk, {}).items():
            outcome = next(v for v in ("", Verdict.REJECT, Verdict.REVISE, Verdict.FINE) if v in verdicts_of_sample)
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
    """One reviewer's share of a round."""

    round: ReviewRound
    done: int
    all: int
    next: int | None  # the id of the review to do

    @property
    def left(self) -> int:
        return self.all - self.done


def shares_of(person: User, *, round: ReviewRound | None = None) -> list[Share]:
    """A reviewer's open rounds, oldest first, with what is left to do."""
    reviews = SampleReview.objects.filter(reviewer=person, round__closed_at=None)
    if round is not None:
        reviews = reviews.filter(round=round)
    counts = reviews.order_by().values_list("round").annotate(n=Count("pk"), done=Count("pk", filter=~Q(verdict="")))
    counts_by_round = {pk: (n, done) for pk, n, done in counts}
    shares = []
    for line in ReviewRound.objects.filter(pk__in=counts_by_round).select_related("benchmark").order_by("pk"):
        n, done = counts_by_round[line.pk]
        following = reviews.filter(round=line, verdict="").order_by("pk").values_list("pk", flat=True).first()
        shares.append(Share(line, done, n, following))
    return shares


def to_revise(person: User) -> QuerySet[Sample]:
    """An author's samples that were sent back (``status_reason`` says why) and are unchanged since."""
    samples = Sample.objects.filter(author=person, status=Sample.Status.DRAFT).exclude(status_reason="")
    return samples.select_related("benchmark").order_by("benchmark", "position")


def to_check(person: User, *, benchmark: Benchmark | None = None) -> QuerySet[Sample]:
    """Samples that wait for an expert check and that this person did not write."""
    samples = Sample.objects.filter(status=Sample.Status.EXPERT).exclude(author=person).select_related("benchmark")
    if benchmark is not None:
        samples = samples.filter(benchmark=benchmark)
    return samples.order_by("benchmark", "position", "pk")
