"""Cross-review in rounds, then the expert check. Nobody reviews or checks their own sample."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.db.models import Count, Max, Min, Q, QuerySet
from django.utils import timezone

from accounts.models import User
from accounts.rules import allowed, where
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
    if not all(allowed(person, "review-samples", of=benchmark) for person in reviewers):
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


def _check_open(review: SampleReview, sample: Sample, by: User) -> None:
    """Raises BadInput if this person cannot give this review, or not any more."""
    if review.reviewer_id != by.pk:
        raise BadInput("This review belongs to somebody else.")
    if sample.author_id == by.pk:
        raise BadInput("You cannot review your own sample.")
    if review.round.closed_at or review.verdict:
        raise BadInput("This review is closed." if review.round.closed_at else "You have reviewed this sample already.")
    if sample.status != Sample.Status.REVIEW:
        raise BadInput("This sample is no longer under review.")


def _check_verdict(verdict: str, points: dict[str, Any], note: str) -> None:
    """Raises BadInput for one that its points or its note do not bear out."""
    if verdict not in Verdict.values:
        raise BadInput("Choose fine, revise or reject.")
    failed = _failed(points)
    if verdict == Verdict.FINE:
        if failed:
            raise BadInput("A point does not hold, so the sample is not fine: ask for a revision, or reject it.")
    elif not note.strip() and not any(points[name].get("note") for name in failed):
        raise BadInput("Say what needs to change, or why the sample is rejected.")


def _failed(points: dict[str, Any]) -> list[str]:
    """The points of the guideline that do not hold. Raises BadInput if it is not said of each."""
    missing = [title for name, (title, _) in GUIDELINE.items() if not isinstance(points.get(name, {}).get("ok"), bool)]
    if missing:
        raise BadInput(f"Say for each point whether it holds. Missing: {', '.join(missing)}.")
    return [name for name in GUIDELINE if not points[name]["ok"]]


@transaction.atomic
def give_review(*, review: SampleReview, by: User, verdict: str, points: dict[str, Any], note: str = "") -> None:
    """Store a reviewer's verdict; after the sample's last review, update its status. Raises BadInput.

    ``points`` holds {"ok": bool, "note": str} for each point of the guideline.
    """
    review = SampleReview.objects.select_for_update(of=("self",)).select_related("round").get(pk=review.pk)
    sample = Sample.objects.select_for_update().get(pk=review.sample_id)
    _check_open(review, sample, by)
    _check_verdict(verdict, points, note)
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


OUTCOMES = ("waiting", Verdict.REJECT.value, Verdict.REVISE.value, Verdict.FINE.value)  # the first one counts


Place = tuple[int, int]  # a round and a sample in it


def _verdicts(benchmark: Benchmark) -> tuple[dict[Place, set[str]], set[Place]]:
    """The verdicts of the reviewers on each sample, and which samples were sent back and changed since."""
    verdicts: dict[Place, set[str]] = defaultdict(set)
    revised: set[Place] = set()
    rows = SampleReview.objects.filter(round__benchmark=benchmark).order_by()
    for round_id, sample, verdict, at in rows.values_list("round", "sample", "verdict", "revised_at"):
        verdicts[round_id, sample].add(verdict or "waiting")
        if verdict == Verdict.REVISE and at is not None:
            revised.add((round_id, sample))
    return verdicts, revised


def rounds_of(benchmark: Benchmark) -> list[tuple[ReviewRound, Counter[str]]]:
    """Every round, oldest first, with the number of its ``samples``, and of those by each outcome; ``revised`` were
    sent back and changed since.
    """
    verdicts, revised = _verdicts(benchmark)
    counts: dict[int, Counter[str]] = defaultdict(Counter)
    for place, of_sample in verdicts.items():
        outcome = next(outcome for outcome in OUTCOMES if outcome in of_sample)
        counts[place[0]].update(["samples", outcome])
        if outcome == Verdict.REVISE and place in revised:
            counts[place[0]]["revised"] += 1
    return [(round, counts[round.pk]) for round in benchmark.review_rounds.select_related("opened_by")]


def rounds_to_review(person: User) -> "QuerySet[Any]":
    """The open rounds that this person has reviews in, oldest first. Each carries how many: ``all``, ``done``,
    ``left``; and the id of the ``next`` review to give.
    """
    waiting = Q(reviews__verdict="")
    return (
        ReviewRound.objects.filter(where(person, "review-samples", "benchmark__"), closed_at=None)
        .filter(reviews__reviewer=person)
        .annotate(
            all=Count("reviews"),
            done=Count("reviews", filter=~waiting),
            left=Count("reviews", filter=waiting),
            next=Min("reviews", filter=waiting),
        )
        .select_related("benchmark")
        .order_by("pk")
    )


def to_revise(person: User) -> QuerySet[Sample]:
    """An author's samples that were sent back (``status_reason`` says why) and are unchanged since."""
    samples = Sample.objects.filter(where(person, "write-bank", "benchmark__"), author=person)
    samples = samples.filter(status=Sample.Status.DRAFT).exclude(status_reason="")
    return samples.select_related("benchmark").order_by("benchmark", "position")


def to_check(person: User, *, benchmark: Benchmark | None = None) -> QuerySet[Sample]:
    """Samples that wait for an expert check and that this person did not write."""
    samples = Sample.objects.filter(where(person, "review-samples", "benchmark__"), status=Sample.Status.EXPERT)
    samples = samples.exclude(author=person).select_related("benchmark")
    if benchmark is not None:
        samples = samples.filter(benchmark=benchmark)
    return samples.order_by("benchmark", "position", "pk")
