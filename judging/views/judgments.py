"""Pages of judgments: the list of all, and each one with what was asked and answered."""

import re
from typing import cast

from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_http_methods, require_safe

from accounts import audit
from accounts.http import PageRequest
from accounts.models import User
from accounts.rules import Viewer, allowed, requires
from bank.intake.exports import TYPES
from bank.intake.exports import pieces as table_pieces
from judging import protocols
from judging.forms import SelectionForm
from judging.judgments import analyses, browse, exports, filters
from judging.models import Attempt, Judgment
from judging.protocols import prompts
from judging.runs import requests
from judging.views import HERE

BETTER = {"first": 0, "second": 1}  # the place of the answer that a pair's verdict prefers
STEPS = 20  # pages that "Previous" leads back through; pages only know where the next one begins
OTHERS = 12  # verdicts of other runs beside a judgment


@requires("read-judging")
@require_safe
def judgment_list(request: HttpRequest) -> HttpResponse:
    """Judgments of all runs under filters, in an order; both stand in the address."""
    chosen = filters.Chosen.of(request.GET, request.user)
    after, trail = request.GET.get("after", "")[:60], _trail(request.GET.get("trail"))
    listing = browse.listing(chosen, request.user, after=after)
    context = {
        "tab": "judgments",
        "chosen": chosen,
        "listing": listing,
        "onward": _page(chosen, after=listing.after, trail=[*trail, after][-STEPS:]),
        "previous": _page(chosen, after=trail[-1], trail=trail[:-1]) if trail else "",
        "choices": filters.choices(chosen, request.user),
        "shows": filters.SHOWS,
        "differs": filters.DIFFERS,
        "orders": filters.orders_for(request.user),
        "query": chosen.address(),
        "without_run": chosen.address(run=None),
        "without_item": chosen.address(item=None),
        "first_page": "after" not in request.GET,
    }
    return render(request, "judging/judgments.html", HERE | context)


def _page(chosen: filters.Chosen, *, after: str, trail: list[str]) -> str:
    """The address of the page that begins after a place; the first page's where it begins at none."""
    place = f"after={after}&trail={'~'.join(trail)}" if after else ""
    return "?" + "&".join(part for part in (chosen.address(), place) if part)


def _trail(given: str | None) -> list[str]:
    """Where the pages before this one began, oldest first; the first page of all begins at ""."""
    places = [] if given is None else given[: 60 * STEPS].split("~")
    return places if all(re.fullmatch(r"[0-9._e-]{0,60}", place) for place in places) else []


@requires("read-judging")
@require_http_methods(["GET", "HEAD", "POST"])
def judgment_export(request: HttpRequest) -> HttpResponseBase:
    """A selection as a file. What the judges wrote leaves only for staff, with a reason, and is logged."""
    chosen = filters.Chosen.of(request.GET, request.user)
    whole = allowed(request.user, "read-analyses")
    form = SelectionForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        given, user = form.cleaned_data, cast(User, request.user)
        if given["analyses"] and not whole:
            raise PermissionDenied
        read = analyses.read_for_person(user, reason=given["reason"]) if given["analyses"] else None
        if read:
            audit.record("criteria-exported", by=user, about="judgments", reason=given["reason"])
        records = exports.selected(pieces=browse.everything(chosen, user), viewer=user, read=read)
        pieces = table_pieces(records=records, what="judgments", shape=given["shape"])
        answer = StreamingHttpResponse(pieces, content_type=TYPES[given["shape"]])
        answer["Content-Disposition"] = f'attachment; filename="judgments.{given["shape"]}"'
        answer["Cache-Control"] = "no-store"
        return answer
    context = {"tab": "judgments", "chosen": chosen, "form": form, "whole": whole, "query": chosen.address()}
    status = 422 if form.errors else 200
    return render(request, "judging/judgments-export.html", HERE | context, status=status)


@requires("read-judging")
def judgment_detail(request: HttpRequest, pk: int) -> HttpResponse:
    """One judgment. What the judge said, and the calls that were made, are for staff; an analysis may be released."""
    whole = allowed(request.user, "read-analyses")
    rows = Judgment.objects.visible_to(request.user).select_related("run__judge", "run__benchmark", "item__sample")
    if not whole:
        rows = rows.defer("analysis", "raw")  # what is released of it is asked for by itself
    judgment = get_object_or_404(rows.prefetch_related("item__sample__images", "item__places__response__model"), pk=pk)
    analyses.as_seen([judgment], request.user)
    responses = judgment.item.ordered_responses()
    places = [int(place) for place in judgment.order]
    same_job = {"run": judgment.run, "item": judgment.item, "order": judgment.order, "repeat": judgment.repeat}
    attempts = list(Attempt.objects.filter(**same_job)) if whole else []
    context = {
        "judgment": judgment,
        "run": judgment.run,
        "sample": judgment.item.sample,
        "answers": [
            ("ABCDEFGHIJ"[place], responses[place], place == BETTER.get(judgment.choice or ""))
            for place in places
            if place < len(responses)
        ],
        "others": analyses.as_seen(_others(judgment, request.user), request.user),
        "whole": whole,
        "reason": judgment.reason if whole or not judgment.run.imported else "",
        "analysis": _beside_reply(judgment) if whole else "",
        "released": None if whole else analyses.released(judgment, reader=cast(User, request.user)),
        "attempts": attempts,
        # The call that brought a verdict is told by the judgment, the others by the log.
        "calls": len(attempts) + (judgment.status == Judgment.Status.OK and bool(judgment.prompt_sha256)),
        "elsewhere": analyses.as_seen(_elsewhere(judgment, request.user), request.user),
    }
    return render(request, "judging/judgment.html", HERE | context)


def _beside_reply(judgment: Judgment) -> str:
    """The analysis, where the reply does not hold it as it is."""
    analysis = judgment.analysis or ""
    return "" if analysis in (judgment.raw or "") else analysis


def _others(judgment: Judgment, viewer: Viewer) -> QuerySet[Judgment]:
    """The judgments of the same item in other orders and repeats."""
    rows = Judgment.objects.visible_to(viewer).filter(run=judgment.run, item=judgment.item).exclude(pk=judgment.pk)
    return rows.select_related("item", "run").order_by("repeat", "order").defer("analysis", "raw")


def _elsewhere(judgment: Judgment, viewer: Viewer) -> QuerySet[Judgment]:
    """What other runs say about the same item in the same order, the first repeat of each."""
    rows = Judgment.objects.visible_to(viewer).filter(item=judgment.item, order=judgment.order, repeat=0)
    rows = rows.exclude(run=judgment.run).select_related("item", "run__judge").defer("analysis", "raw")
    return rows.order_by("run__judge__name", "-run")[:OTHERS]


@requires("read-analyses")
def judgment_prompt(request: PageRequest, pk: int) -> HttpResponse:
    """The prompt of a judgment, with criteria; the access log gets one record in the reader's name."""
    rows = Judgment.objects.select_related("run__judge", "item__sample").defer("analysis", "raw")
    judgment = get_object_or_404(rows, pk=pk)
    try:
        asked = requests.request_of_judgment(judgment, user=cast(User, request.user))
    except (prompts.UnknownPrompt, protocols.UnknownProtocol, protocols.CannotAsk):
        raise Http404("no prompt of ours made this judgment") from None
    context = {
        "judgment": judgment,
        "run": judgment.run,
        "asked": asked,
        "same": asked.sha256 == judgment.prompt_sha256,
    }
    template = "judging/_judgment_prompt.html" if request.htmx else "judging/prompt.html"
    return render(request, template, HERE | context)
