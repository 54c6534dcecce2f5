"""Cross-review: rounds of a benchmark, a reviewer's queue, the review beside the sample, the expert's check."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

import bank.criteria
from accounts.rules import requires
from bank import plots, quality
from bank.actions import reviews as actions
from bank.actions.errors import BadInput
from bank.forms.reviews import Check, OpenRound, Review
from bank.models import ReviewRound, Sample, SampleReview
from bank.queries import Filter, by_status, chosen_samples
from bank.queries.reviews import rounds_of, shares_of, to_check, to_revise
from bank.views.common import benchmark_named, person


@requires("review-samples")
@require_http_methods(["GET", "HEAD", "POST"])
def benchmark_reviews(request: HttpRequest, name: str) -> HttpResponse:
    """The rounds in numbers, and a form that opens the next one over drafts."""
    benchmark = benchmark_named(name)
    chosen = Filter.of(request.GET)
    drafts = chosen_samples(benchmark, chosen).filter(status=Sample.Status.DRAFT)
    form = OpenRound(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        try:
            made = actions.open_round(
                by=person(request),
                benchmark=benchmark,
                samples=list(drafts),
                reviewers=list(form.cleaned_data["reviewers"]),
                per_sample=form.cleaned_data["per_sample"],
            )
        except BadInput as error:
            form.add_error(None, str(error))
        else:
            count = made.reviews.values("sample").distinct().count()
            messages.success(request, f"Round {made.number} is open over {count:,} sample{'' if count == 1 else 's'}.")
            return redirect("bank:benchmark-reviews", benchmark)
    lines, statuses = rounds_of(benchmark), by_status(benchmark)
    viewer = person(request)
    context = {
        "section": "bank",
        "benchmark": benchmark,
        "lines": lines,
        "plot": plots.revised_per_round([(x.round.number, x.revised, x.sent_back - x.revised) for x in lines])
        if any(line.sent_back for line in lines)
        else "",
        "form": form,
        "chosen": chosen,
        "query": chosen.address(),
        "drafts": drafts.count() if chosen.active else statuses["draft"],
        "checks": to_check(viewer, benchmark=benchmark).count(),
        "first_check": to_check(viewer, benchmark=benchmark).first(),
        "expert": statuses["expert"],
        "mine": [share for share in shares_of(viewer) if share.round.benchmark_id == benchmark.pk],
    }
    return render(request, "bank/reviews.html", context)


@requires("review-samples")
@require_POST
def round_close(request: HttpRequest, pk: int) -> HttpResponse:
    """End a round before every review is given."""
    found = get_object_or_404(ReviewRound.objects.select_related("benchmark"), pk=pk)
    back = actions.close_round(round=found, by=person(request))
    said = f" {back} without a review are drafts again." if back else ""
    messages.success(request, f"Round {found.number} is closed.{said}")
    return redirect("bank:benchmark-reviews", found.benchmark)


@requires("review-samples")
@require_safe
def queue(request: HttpRequest) -> HttpResponse:
    """What waits for this person: reviews, revisions, checks."""
    viewer = person(request)
    context = {
        "section": "bank",
        "shares": shares_of(viewer),
        "revisions": to_revise(viewer)[:100],
        "checks": to_check(viewer).select_related("author")[:100],
        "checks_count": to_check(viewer).count(),
    }
    return render(request, "bank/queue.html", context)


def _shown(request: HttpRequest, sample: Sample, how: str) -> dict[str, Any]:
    """The sample as a reviewer sees it, criteria included; reading them is logged."""
    texts = bank.criteria.for_staff(user=person(request), samples=[sample], how=how)
    earlier = sample.reviews.exclude(verdict="").select_related("round", "reviewer").order_by("-pk")
    return {
        "section": "bank",
        "sample": sample,
        "criteria": texts.get(sample.pk, []),
        "hints": quality.hints_in(sample.quality_hints),
        "earlier": [(review, actions.words_of(review)) for review in earlier],
    }


@requires("review-samples")
@require_http_methods(["GET", "HEAD", "POST"])
def review(request: HttpRequest, pk: int) -> HttpResponse:
    """One review of one's own: the guideline's six points and a verdict, beside the sample."""
    found = get_object_or_404(
        SampleReview.objects.select_related("round__benchmark", "sample__benchmark", "sample__capability"),
        pk=pk,
        reviewer=person(request),
    )
    form = Review(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        given = form.cleaned_data
        try:
            actions.give_review(
                review=found, by=person(request), verdict=given["verdict"], points=form.points(), note=given["note"]
            )
        except BadInput as error:
            form.add_error(None, str(error))
        else:
            share = next(iter(shares_of(person(request), round=found.round)), None)
            if share is not None and share.next is not None:
                return redirect("bank:review", share.next)
            messages.success(request, f"That was your last one in round {found.round.number}.")
            return redirect("bank:review-queue")
    if found.verdict or found.round.closed_at:
        messages.info(request, "This review is given already.")
        return redirect("bank:review-queue")
    share = next(iter(shares_of(person(request), round=found.round)))
    context = _shown(request, found.sample, "review") | {"review": found, "form": form, "share": share}
    return render(request, "bank/review.html", context)


@requires("review-samples")
@require_http_methods(["GET", "HEAD", "POST"])
def sample_check(request: HttpRequest, pk: int) -> HttpResponse:
    """The expert's check of one sample."""
    sample = get_object_or_404(Sample.objects.select_related("benchmark", "capability", "author"), pk=pk)
    viewer = person(request)
    form = Check(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        given = form.cleaned_data
        try:
            actions.decide(sample=sample, by=viewer, decision=given["decision"], reason=given["reason"])
        except BadInput as error:
            form.add_error(None if given["decision"] == "approve" else "reason", str(error))
        else:
            following = to_check(viewer, benchmark=sample.benchmark).first()
            if following is not None:
                return redirect("bank:sample-check", following.pk)
            messages.success(request, "That was the last sample to check in this benchmark.")
            return redirect("bank:benchmark-reviews", sample.benchmark)
    if sample.status != Sample.Status.EXPERT or sample.author_id == viewer.pk:
        messages.info(request, "This sample does not wait for your check.")
        return redirect("bank:sample-detail", sample.pk)
    left = to_check(viewer, benchmark=sample.benchmark).count()
    context = _shown(request, sample, "check") | {"form": form, "left": left}
    return render(request, "bank/check.html", context)
