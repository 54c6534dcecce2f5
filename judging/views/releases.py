"""Pages of a run's analyses, on which two people release them."""

from collections.abc import Callable
from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from accounts.http import page_of
from accounts.rules import requires
from bank.errors import BadInput
from bank.forms.fields import whole_number
from bank.views.common import act
from judging.judgments import releases
from judging.models import Run
from judging.runs import queries
from judging.views import SignedInRequest, page

SHOWN = (*releases.STANDS, "all")


def _run(request: SignedInRequest, pk: int) -> Run:
    return get_object_or_404(queries.runs_for(request.user).filter(kind=Run.Kind.JUDGMENTS), pk=pk)


@requires("read-analyses")
@require_safe
def run_analyses(request: SignedInRequest, pk: int) -> HttpResponse:
    """The analyses that wait for a second person, 20 to a page, beside the hidden criteria. The reading is logged."""
    run, user = _run(request, pk), request.user
    show = request.GET.get("show", "waiting")
    if show not in SHOWN:
        raise Http404("unknown filter")
    listed = releases.listed(run, show).select_related(
        "judgment__item__sample", "judgment__run", "proposed_by", "confirmed_by"
    )
    shown = page_of(request, listed, releases.PAGE)
    rows = releases.rows_with_criteria(shown.object_list, reader=user) if shown.object_list else []
    try:
        releases.check_open(run)
        refused = ""
    except BadInput as error:
        refused = str(error)
    context = {
        "tab": "runs",
        "run": run,
        "standing": releases.release_counts(run),
        "show": show,
        "shows": SHOWN,
        "query": f"show={show}",
        "page": shown,
        "rows": rows,
        "refused": refused,
        "ready": [row for row in rows if row.is_ready and releases.may_confirm(row.release, user)],
        "own": any(row.is_waiting and row.release.proposed_by_id == user.pk for row in rows),
    }
    return page(request, "judging/run-analyses.html", context)


def _back(
    request: SignedInRequest, pk: int, action: Callable[..., Any], success: str = "{}", **values: Any
) -> HttpResponse:
    """Do it, say what happened, and go back to the page of analyses it was done from."""
    act(request, action, success, run=_run(request, pk), by=request.user, **values)
    show, number = request.POST.get("show"), whole_number(request.POST.get("page"))
    query = f"?show={show if show in SHOWN else SHOWN[0]}" + (f"&page={number}" if number else "")
    return redirect(reverse("judging:run-analyses", args=[pk]) + query)


@require_POST
@requires("write-judging")
def run_release(request: SignedInRequest, pk: int) -> HttpResponse:
    """Propose what is not proposed yet."""
    words = "{:,} analyses are proposed. Another person confirms them, page by page."
    return _back(request, pk, releases.propose, words)


@require_POST
@requires("write-judging")
def run_release_confirm(request: SignedInRequest, pk: int) -> HttpResponse:
    judgments = [number for text in request.POST.getlist("judgment") if (number := whole_number(text)) is not None]
    return _back(request, pk, releases.confirm, "{:,} analyses are released to researchers.", judgments=judgments)


@require_POST
@requires("write-judging")
def run_release_decide(request: SignedInRequest, pk: int) -> HttpResponse:
    """Keep one analysis back, or release it although it is held back."""
    judgment, decision = whole_number(request.POST.get("judgment")), request.POST.get("decision")
    if judgment is None or decision not in ("keep", "despite"):
        raise Http404("unknown decision")
    if decision == "keep":
        return _back(request, pk, releases.keep_back, "The analysis is kept back.", judgment=judgment)
    return _back(request, pk, _release_despite, judgment=judgment)


def _release_despite(**values: Any) -> str:
    if releases.release_despite(**values):
        return "The analysis is released: two people have agreed."
    return "Noted. The analysis is released once another person agrees."


@require_POST
@requires("write-judging")
def run_withhold(request: SignedInRequest, pk: int) -> HttpResponse:
    """Close all analyses again."""
    return _back(request, pk, releases.withdraw, "Only staff can read the analyses again.")
