"""Pages of a run's analyses, on which two people release them."""

from collections.abc import Callable
from typing import cast

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from accounts.models import User
from accounts.rules import requires
from bank.errors import BadInput
from bank.forms.fields import whole_number
from judging.judgments import releases
from judging.models import Run
from judging.runs import queries
from judging.views import HERE

SHOWN = ("waiting", "confirmed", "kept", "all")


def _run(request: HttpRequest, pk: int) -> Run:
    return get_object_or_404(queries.runs_for(request.user).filter(kind=Run.Kind.JUDGMENTS), pk=pk)


@requires("read-analyses")
@require_safe
def run_analyses(request: HttpRequest, pk: int) -> HttpResponse:
    """What waits for a second person, 20 to a page, beside the hidden criteria. The reading is logged."""
    run, user = _run(request, pk), cast(User, request.user)
    show = request.GET.get("show", "waiting")
    if show not in SHOWN:
        raise Http404("unknown filter")
    listed = releases.listed(run, show).select_related(
        "judgment__item__sample", "judgment__run", "proposed_by", "confirmed_by"
    )
    page = Paginator(listed, releases.PAGE).get_page(request.GET.get("page"))
    rows = releases.rows_with_criteria(page.object_list, reader=user) if page.object_list else []
    try:
        releases.check_open(run)
        refused = ""
    except BadInput as error:
        refused = str(error)
    may_confirm = {row.release.pk for row in rows if releases.may_confirm(row.release, user)}
    context = {
        "tab": "runs",
        "run": run,
        "standing": releases.release_counts(run),
        "show": show,
        "shows": SHOWN,
        "query": f"show={show}",
        "page": page,
        "rows": rows,
        "refused": refused,
        "ready": [row for row in rows if row.is_waiting and not row.why and row.release.pk in may_confirm],
        "own": any(row.is_waiting and row.release.proposed_by_id == user.pk for row in rows),
    }
    return render(request, "judging/run-analyses.html", HERE | context)


def _back(request: HttpRequest, pk: int, act: Callable[[Run], str]) -> HttpResponse:
    """Do it, say what happened, and go back to the page of analyses it was done from."""
    run = _run(request, pk)
    try:
        messages.success(request, act(run))
    except BadInput as error:
        messages.error(request, str(error))
    show, page = request.POST.get("show"), whole_number(request.POST.get("page", ""))
    query = f"?show={show if show in SHOWN else SHOWN[0]}" + (f"&page={page}" if page else "")
    return redirect(reverse("judging:run-analyses", args=[pk]) + query)


@require_POST
@requires("write-judging")
def run_release(request: HttpRequest, pk: int) -> HttpResponse:
    """Propose what is not proposed yet."""
    by = cast(User, request.user)

    def act(run: Run) -> str:
        return (
            f"{releases.propose(run=run, by=by):,} analyses are proposed. Another person confirms them, page by page."
        )

    return _back(request, pk, act)


@require_POST
@requires("write-judging")
def run_release_confirm(request: HttpRequest, pk: int) -> HttpResponse:
    by = cast(User, request.user)
    judgments = [number for text in request.POST.getlist("judgment") if (number := whole_number(text)) is not None]

    def act(run: Run) -> str:
        return f"{releases.confirm(run=run, judgments=judgments, by=by):,} analyses are released to researchers."

    return _back(request, pk, act)


@require_POST
@requires("write-judging")
def run_release_decide(request: HttpRequest, pk: int) -> HttpResponse:
    """Keep one analysis back, or release it although it is held back."""
    by, judgment = cast(User, request.user), whole_number(request.POST.get("judgment", ""))
    decision = request.POST.get("decision")
    if judgment is None or decision not in ("keep", "despite"):
        raise Http404("unknown decision")

    def act(run: Run) -> str:
        if decision == "keep":
            releases.keep_back(run=run, judgment=judgment, by=by)
            return "The analysis is kept back."
        if releases.release_despite(run=run, judgment=judgment, by=by):
            return "The analysis is released: two people have agreed."
        return "Noted. The analysis is released once another person agrees."

    return _back(request, pk, act)


@require_POST
@requires("write-judging")
def run_withhold(request: HttpRequest, pk: int) -> HttpResponse:
    """Close all analyses again."""
    by = cast(User, request.user)

    def act(run: Run) -> str:
        releases.withdraw(run=run, by=by)
        return "Only staff can read the analyses again."

    return _back(request, pk, act)
