"""Pages of judgments: the list of all, and each one with what was asked and answered."""

import re
from collections.abc import Sequence
from functools import partial
from itertools import accumulate
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_safe

from accounts.http import form_page, posted
from accounts.models import User
from accounts.rules import Viewer, admitted, allowed, requires, through
from bank.intake import export_files
from bank.intake.export_files import Download
from bank.intake.exports import ExportRequest, noted
from bank.intake.exports import pieces as table_pieces
from bank.intake.registry import SHAPES
from bank.views.common import faults_in
from bank.views.exports import answer_of
from judging import protocols
from judging.forms import SelectionForm
from judging.judgments import analyses, browse, exports, filters
from judging.models import Judgment, Run
from judging.protocols import prompts
from judging.runs import requests
from judging.templatetags.judgments import answer_name, how_asked
from judging.views import SignedInRequest, page

OF_JUDGMENT = through(Judgment, "run__benchmark__slug")
BETTER = {"first": 0, "second": 1}  # position of the answer that the verdict of a pair prefers
STEPS = 20  # pages that "Previous" can go back; a page only knows where the next one starts
READ_FROM = {
    "label": "the answer itself, no call",
    "judge": "the judge",
    "random": "drawn at random with a seed: the reply had none",
}
MOST_ELSEWHERE = 12  # verdicts of other runs beside a judgment


@requires("read-judging")
@require_safe
def judgment_list(request: SignedInRequest) -> HttpResponse:
    """Judgments of all runs, filtered and sorted as the URL says."""
    selection = filters.JudgmentFilters.from_query(request.GET, request.user)
    after, trail = request.GET.get("after", "")[:60], _trail(request.GET.get("trail"))
    listing = browse.listing(selection, request.user, after=after)
    context = {
        "tab": "judgments",
        "chosen": selection,
        "listing": listing,
        "onward": _page(selection, after=listing.after, trail=[*trail, after][-STEPS:]),
        "previous": _page(selection, after=trail[-1], trail=trail[:-1]) if trail else "",
        "choices": filters.choices(selection, request.user),
        "shows": filters.SHOWS,
        "differs": filters.DIFFERS,
        "orders": filters.orders_for(request.user),
        "query": selection.query_string(),
        "without_run": selection.query_string(run=None),
        "without_item": selection.query_string(item=None),
        "first_page": "after" not in request.GET,
    }
    return page(request, "judging/judgments.html", context)


def _page(selection: filters.JudgmentFilters, *, after: str, trail: list[str]) -> str:
    """The link to the page that starts after a position, or to the first page."""
    position = f"after={after}&trail={'~'.join(trail)}" if after else ""
    return "?" + "&".join(part for part in (selection.query_string(), position) if part)


def _trail(text: str | None) -> list[str]:
    """Where the pages before this one started, oldest first; the first page starts at ""."""
    places = [] if text is None else text[: 60 * STEPS].split("~")
    return places if all(re.fullmatch(r"[0-9._e-]{0,60}", place) for place in places) else []


@requires("read-judging")
@form_page
def judgment_export(request: SignedInRequest) -> HttpResponseBase:
    """A selection as a file. Only staff get what the judges wrote, with a reason, and it is logged."""
    selection = filters.JudgmentFilters.from_query(request.GET, request.user)
    may_read_analyses = allowed(request.user, "read-analyses")
    form = SelectionForm(posted(request))
    if form.is_valid():
        asked = form.cleaned_data | {"query": request.GET.urlencode()}
        with faults_in(form):
            return answer_of(request, export_files.give("judgments", request.user, asked))
    context = {
        "tab": "judgments",
        "chosen": selection,
        "form": form,
        "whole": may_read_analyses,
        "query": selection.query_string(),
    }
    return page(request, "judging/judgments-export.html", context, refused=bool(form.errors))


def judgments_file(viewer: User, asked: dict[str, Any]) -> Download:
    """The judgments of a selection as a file: ``asked`` is what a valid form has, and the ``query`` of the selection.
    What the judges wrote is only for staff, and logged. Raises PermissionDenied.
    """
    if not allowed(viewer, "read-judging") or (asked["analyses"] and not allowed(viewer, "read-analyses")):
        raise PermissionDenied
    selection = filters.JudgmentFilters.from_query(QueryDict(asked["query"]), viewer)
    read = analyses.read_for_person(viewer, reason=asked["reason"]) if asked["analyses"] else None
    records = exports.selected(pieces=browse.all_keys(selection, viewer), viewer=viewer, read=read)
    if read:
        records = noted(records, "judgments", ExportRequest(user=viewer, reason=asked["reason"]))

    def is_large() -> bool:
        # Below staff, rows are shown as may be seen when they leave; a file would keep what was seen before.
        counted = accumulate(map(len, browse.all_keys(selection, viewer)))
        return allowed(viewer, "read-hidden") and any(count > export_files.MANY for count in counted)

    return Download(
        f"judgments.{asked['shape']}",
        SHAPES[asked["shape"]].content,
        partial(table_pieces, records=records, what="judgments", shape=asked["shape"]),
        is_large,
        reason=asked["reason"] if read else "",
    )


def _answers(judgment: Judgment, responses: Sequence[Any]) -> list[tuple[str, Any, bool]]:
    """Name and response in the order in which the judge saw them, and whether it chose this one."""
    places = [int(place) for place in judgment.order]
    return [
        (answer_name(judgment.item, place), responses[place], place == BETTER.get(judgment.choice or ""))
        for place in places
        if place < len(responses)
    ]


@requires("read-judging", of=OF_JUDGMENT)
def judgment_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """One judgment. The judge's words and the calls are for staff; an analysis may be released."""
    may_read_analyses = admitted("read-analyses", request.user, OF_JUDGMENT, {"pk": pk})
    rows = Judgment.objects.seen_by(request.user).select_related("run__judge", "run__benchmark", "item__sample")
    if not may_read_analyses:
        rows = rows.defer("analysis", "raw")  # a released analysis is fetched on its own
    judgment = get_object_or_404(rows.prefetch_related("item__sample__images"), pk=pk)
    analyses.as_seen([judgment], request.user)
    responses = judgment.item.readable_responses(request.user)
    attempts = list(judgment.attempts) if may_read_analyses else []
    about = [judgment.run.judge.titled, f"sample {judgment.item.sample.key}", how_asked(judgment)]
    reason = judgment.reason if may_read_analyses or not judgment.run.imported else ""
    context = {
        "about": ", ".join(filter(None, about)),
        "judgment": judgment,
        "run": judgment.run,
        "sample": judgment.item.sample,
        "answers": _answers(judgment, responses),
        "others": analyses.as_seen(_same_item(judgment, request.user), request.user),
        "whole": may_read_analyses,
        "failure": judgment.get_status_display().capitalize(),
        "because": f": {reason}" if reason else "",
        "why_no_reply": _why_no_reply(judgment.run),
        "read_from": READ_FROM.get(judgment.extraction, ""),
        "analysis": _analysis_beside_reply(judgment) if may_read_analyses else "",
        "released": None if may_read_analyses else analyses.released(judgment, reader=request.user),
        "attempts": attempts,
        # The judgment itself records the call that brought a verdict, the log the others.
        "calls": len(attempts) + (judgment.status == Judgment.Status.OK and bool(judgment.prompt_sha256)),
        "elsewhere": analyses.as_seen(_other_runs(judgment, request.user), request.user),
    }
    return page(request, "judging/judgment.html", context)


def _why_no_reply(run: Run) -> str:
    if run.judge.is_baseline:
        return "built-in judges give no reasons"
    return "the file held no reply" if run.imported else "no reply came"


def _analysis_beside_reply(judgment: Judgment) -> str:
    """The analysis, unless the raw reply contains it word for word."""
    analysis = judgment.analysis or ""
    return "" if analysis in (judgment.raw or "") else analysis


def _same_item(judgment: Judgment, viewer: Viewer) -> QuerySet[Judgment]:
    """The judgments of the same item in other orders and repeats."""
    rows = Judgment.objects.seen_by(viewer).filter(run=judgment.run, item=judgment.item).exclude(pk=judgment.pk)
    return rows.select_related("item", "run").order_by("repeat", "order").defer("analysis", "raw")


def _other_runs(judgment: Judgment, viewer: Viewer) -> QuerySet[Judgment]:
    """The verdicts of other runs on the same item in the same order, first repeats only."""
    rows = Judgment.objects.seen_by(viewer).filter(item=judgment.item, order=judgment.order, repeat=0)
    rows = rows.exclude(run=judgment.run).select_related("item", "run__judge").defer("analysis", "raw")
    return rows.order_by("run__judge__name", "-run")[:MOST_ELSEWHERE]


@requires("read-analyses", of=OF_JUDGMENT)
def judgment_prompt(request: SignedInRequest, pk: int) -> HttpResponse:
    """The prompt of a judgment, with criteria; the access log gets one record in the reader's name."""
    return prompt_page(request, Judgment.objects.defer("analysis", "raw"), pk)


def prompt_page(request: SignedInRequest, rows: QuerySet[Any], pk: int) -> HttpResponse:
    """The prompt of a judgment or trial."""
    row = get_object_or_404(rows.select_related("run__judge", "run__benchmark", "item__sample"), pk=pk)
    try:
        call = requests.request_of_judgment(row, user=request.user)
    except (prompts.UnknownPrompt, protocols.UnknownProtocol, protocols.CannotAsk):
        raise Http404("this was not made from one of our prompts") from None
    context: dict[str, Any] = {
        row._meta.model_name: row,
        "run": row.run,
        "asked": call,
        "same": call.sha256 == row.prompt_sha256,
    }
    return page(request, "judging/_judgment_prompt.html" if request.htmx else "judging/prompt.html", context)
