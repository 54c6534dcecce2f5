"""Cross-review: rounds of a benchmark, a reviewer's queue, the review beside the sample, the expert's check."""

from collections.abc import Sequence
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.defaultfilters import pluralize
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST, require_safe

import bank.criteria
from accounts.http import done, form_page, person
from accounts.rules import ANYWHERE, BY_NAME, requires, through
from bank.forms.reviews import Check, OpenRound, Review
from bank.models import ReviewRound, Sample, SampleReview
from bank.samples import quality
from bank.samples import reviews as actions
from bank.samples.benchmarks import by_status
from bank.samples.listing import Filter, chosen_samples
from bank.samples.reviews import rounds_of, rounds_to_review, to_check, to_revise
from bank.views.common import OF_SAMPLE, bank_page, benchmark_named, faults_in

# The bar chart of rounds, in pixels.
STEP = 56  # per round
BAR = 24
HEIGHT = 112
TOP = 20
LEFT = 8


def revised_per_round(rows: Sequence[tuple[int, int, int]]) -> SafeString:
    """SVG bars of (round, samples revised, sent back and not yet revised), with the pending ones outlined on top."""
    most = max([revised + waiting for _, revised, waiting in rows], default=0) or 1
    floor = TOP + HEIGHT
    scale = HEIGHT / most
    parts = []
    for place, (number, revised, waiting) in enumerate(rows):
        x = LEFT + place * STEP + (STEP - BAR) // 2
        full, open_ = round(revised * scale, 1), round(waiting * scale, 1)
        parts.append(
            format_html(
                '<rect class="w" x="{}" y="{}" width="{}" height="{}"/>'
                '<rect class="open" x="{}" y="{}" width="{}" height="{}"/>'
                '<text class="lab" x="{}" y="{}" text-anchor="middle">{}</text>'
                '<text x="{}" y="{}" text-anchor="middle">{}</text>',
                *(x, floor - full, BAR, full),
                *(x + 0.5, round(floor - full - open_, 1) + 0.5, BAR - 1, max(0, open_ - 1)),
                *(x + BAR // 2, round(floor - full - open_ - 5, 1), revised if not waiting else f"{revised}+{waiting}"),
                *(x + BAR // 2, floor + 16, number),
            )
        )
    width = LEFT * 2 + max(3, len(rows)) * STEP
    body = format_html_join("", "{}", ((part,) for part in parts))
    return format_html(
        '<svg class="vp" width="{}" height="{}" viewBox="0 0 {} {}" role="img" aria-label="{}">'
        '<path class="gl" d="M0 {}H{}"/>{}</svg>',
        *(width, floor + 22, width, floor + 22),
        "Samples revised in each round; the table beside it has the numbers",
        *(floor + 0.5, width),
        body,
    )


@requires("review-samples", of=BY_NAME)
@form_page
def benchmark_reviews(request: HttpRequest, name: str) -> HttpResponse:
    """The rounds in numbers, and a form that opens the next one over drafts."""
    benchmark = benchmark_named(name)
    chosen = Filter.from_query(request.GET)
    drafts = chosen_samples(benchmark, chosen).filter(status=Sample.Status.DRAFT)
    form = OpenRound(request.POST or None, benchmark=benchmark)
    if form.is_valid():
        with faults_in(form):
            made = actions.open_round(
                by=person(request),
                benchmark=benchmark,
                samples=list(drafts),
                reviewers=list(form.cleaned_data["reviewers"]),
                per_sample=form.cleaned_data["per_sample"],
            )
            count = made.reviews.values("sample").distinct().count()
            return done(
                request,
                f"Round {made.number} is open over {count:,} sample{pluralize(count)}.",
                "bank:benchmark-reviews",
                benchmark,
            )
    lines, statuses = rounds_of(benchmark), by_status(benchmark)
    viewer = person(request)
    context = {
        "benchmark": benchmark,
        "lines": lines,
        "plot": revised_per_round([(x.number, n["revised"], n["revise"] - n["revised"]) for x, n in lines])
        if any(counts["revise"] for _, counts in lines)
        else "",
        "form": form,
        "chosen": chosen,
        "query": chosen.address(),
        "drafts": drafts.count() if chosen.active else statuses["draft"],
        "checks": to_check(viewer, benchmark=benchmark).count(),
        "first_check": to_check(viewer, benchmark=benchmark).first(),
        "expert": statuses["expert"],
        "mine": rounds_to_review(viewer).filter(benchmark=benchmark),
    }
    return bank_page(request, "bank/reviews.html", context)


@requires("review-samples", of=through(ReviewRound, "benchmark__slug"))
@require_POST
def round_close(request: HttpRequest, pk: int) -> HttpResponse:
    """End a round before every review is given."""
    review_round = get_object_or_404(ReviewRound.objects.select_related("benchmark"), pk=pk)
    back = actions.close_round(round=review_round, by=person(request))
    returned_drafts = f" {back} without a review are drafts again." if back else ""
    return done(
        request,
        f"Round {review_round.number} is closed.{returned_drafts}",
        "bank:benchmark-reviews",
        review_round.benchmark,
    )


@requires("review-samples", of=ANYWHERE)
@require_safe
def queue(request: HttpRequest) -> HttpResponse:
    """The tasks of this person: reviews, revisions, checks."""
    viewer = person(request)
    context = {
        "shares": rounds_to_review(viewer),
        "revisions": to_revise(viewer)[:100],
        "checks": to_check(viewer).select_related("author")[:100],
        "checks_count": to_check(viewer).count(),
    }
    return bank_page(request, "bank/queue.html", context)


def _sample_context(request: HttpRequest, sample: Sample, how: str) -> dict[str, Any]:
    """The sample as a reviewer sees it, criteria included; reading them is logged."""
    texts = bank.criteria.for_staff(user=person(request), samples=[sample], how=how)
    earlier = sample.reviews.exclude(verdict="").select_related("round", "reviewer").order_by("-pk")
    return {
        "sample": sample,
        "criteria": texts.get(sample.pk, []),
        "hints": quality.hints_in(sample.quality_hints),
        "earlier": [(review, actions.words_of(review)) for review in earlier],
    }


@requires("review-samples", of=through(SampleReview, "round__benchmark__slug"))
@form_page
def review(request: HttpRequest, pk: int) -> HttpResponse:
    """One review of one's own: the guideline's six points and a verdict, beside the sample."""
    assigned = get_object_or_404(
        SampleReview.objects.select_related("round__benchmark", "sample__benchmark", "sample__capability"),
        pk=pk,
        reviewer=person(request),
    )
    form = Review(request.POST or None)
    if form.is_valid():
        values = form.cleaned_data
        with faults_in(form):
            actions.give_review(
                review=assigned,
                by=person(request),
                verdict=values["verdict"],
                points=form.points(),
                note=values["note"],
            )
            share = rounds_to_review(person(request)).filter(pk=assigned.round_id).first()
            if share is not None and share.next is not None:
                return redirect("bank:review", share.next)
            return done(request, f"That was your last one in round {assigned.round.number}.", "bank:review-queue")
    if assigned.verdict or assigned.round.closed_at:
        messages.info(request, "This review is given already.")
        return redirect("bank:review-queue")
    share = rounds_to_review(person(request)).get(pk=assigned.round_id)
    context = _sample_context(request, assigned.sample, "review") | {"review": assigned, "form": form, "share": share}
    return bank_page(request, "bank/review.html", context)


@requires("review-samples", of=OF_SAMPLE)
@form_page
def sample_check(request: HttpRequest, pk: int) -> HttpResponse:
    """The expert's check of one sample."""
    sample = get_object_or_404(Sample.objects.select_related("benchmark", "capability", "author"), pk=pk)
    viewer = person(request)
    form = Check(request.POST or None)
    if form.is_valid():
        values = form.cleaned_data
        with faults_in(form, None if values["decision"] == "approve" else "reason"):
            actions.decide(sample=sample, by=viewer, decision=values["decision"], reason=values["reason"])
            following = to_check(viewer, benchmark=sample.benchmark).first()
            if following is not None:
                return redirect("bank:sample-check", following.pk)
            return done(
                request,
                "That was the last sample to check in this benchmark.",
                "bank:benchmark-reviews",
                sample.benchmark,
            )
    if sample.status != Sample.Status.EXPERT or sample.author_id == viewer.pk:
        messages.info(request, "This sample does not wait for your check.")
        return redirect("bank:sample-detail", sample.pk)
    left = to_check(viewer, benchmark=sample.benchmark).count()
    context = _sample_context(request, sample, "check") | {"form": form, "left": left}
    return bank_page(request, "bank/check.html", context)
