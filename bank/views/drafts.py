"""The drafts of endpoints for a benchmark's samples, to be read by people."""

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

import bank.criteria
from accounts.http import form_page, page_of, person
from accounts.rules import BY_NAME, requires
from bank.forms.fields import whole_number
from bank.models import Draft
from bank.models.drafts import REWRITINGS
from bank.samples import drafts
from bank.views.common import bank_page, benchmark_named, told

PAGE = 25


@requires("write-bank", of=BY_NAME)
@form_page
def benchmark_drafts(request: HttpRequest, name: str) -> HttpResponse:
    """The drafts that wait. Questions in other words are taken here, instructions and criteria in the editor."""
    benchmark = benchmark_named(name)
    waiting = drafts.waiting(benchmark)
    if request.method == "POST":
        _take_or_dismiss(request, waiting)
        return redirect("bank:benchmark-drafts", benchmark)
    page = page_of(request, waiting, PAGE)
    if proposed := [draft.sample_id for draft in page if draft.part == Draft.SAMPLE]:  # they may become criteria
        bank.criteria.record(who=person(request), how="drafts", sample_ids=proposed)
    taken = Draft.objects.filter(sample__benchmark=benchmark, state=Draft.State.TAKEN)
    context = {
        "tab": "drafts",
        "benchmark": benchmark,
        "page": page,
        "rows": [(draft, None if draft.part in REWRITINGS else drafts.proposal(draft)) for draft in page],
        "taken": taken.count(),
    }
    return bank_page(request, "bank/drafts.html", context)


def _take_or_dismiss(request: HttpRequest, waiting: QuerySet[Draft]) -> None:
    """Carry out what was chosen for the drafts that were ticked."""
    chosen = waiting.filter(pk__in=[pk for text in request.POST.getlist("draft") if (pk := whole_number(text))])
    with told(request):
        if "take" in request.POST:
            messages.success(request, f"{drafts.take(drafts=chosen, by=person(request)):,} drafts are taken.")
        else:
            messages.success(request, f"{drafts.dismiss(drafts=chosen, by=person(request)):,} drafts are dismissed.")
