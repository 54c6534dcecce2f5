"""Exports of labels, and items that judges' runs leave in doubt."""

from collections.abc import Mapping
from functools import partial
from typing import Any, cast

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.defaultfilters import pluralize
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from accounts.http import attached
from accounts.models import User
from accounts.rules import Viewer, allowed, requires
from annotations.assignment.errors import Refused
from annotations.campaigns import auto_enqueue
from annotations.campaigns.actions import add_items
from annotations.campaigns.candidates import candidates_of
from annotations.campaigns.run_doubts import REASONS, SUBSETS, doubts_of, subset_of, withheld_doubts
from annotations.labels.monitor import visible_campaigns
from annotations.models import Campaign, Label
from annotations.views.pages import OF_CAMPAIGN, back_on_refusal, render_campaign, row_number
from bank import guard
from bank.database import chunks
from bank.forms.fields import whole_number
from bank.intake import export_files, exports, parquet
from bank.intake.export_files import Download
from bank.intake.registry import SHAPES
from bank.models import ExportFile
from bank.views.common import told
from bank.views.exports import answer_of
from judging.judgments.exports import by_keys
from judging.models import Judgment, Run
from judging.views.runs import OF_RUN

MAX_CHOSEN = 10_000


@requires("read-labels", of=OF_CAMPAIGN)
@require_safe
def campaign_data(request: HttpRequest, pk: int) -> HttpResponse:
    """Downloads of the labels, and the rule that adds items automatically."""
    viewer = request.user
    campaign = get_object_or_404(visible_campaigns(viewer), pk=pk)
    with guard.working():
        labels = Label.objects.filter(campaign=campaign)
    context: dict[str, Any] = {
        "shapes": campaign_shapes(campaign, viewer),
        "labels": labels.count(),
        "changed": labels.filter(revisions__isnull=False).distinct().count(),
        "staff": allowed(viewer, "read-names"),
    }
    if allowed(viewer, "write-campaigns", of=campaign.benchmark) and not campaign.imported:
        auto_enqueue.enqueue_new_items(campaign)
        chosen = campaign.rule.get("runs")
        every, reasons = chosen == auto_enqueue.ALL, campaign.rule.get("reasons", ())
        context |= {
            "reasons": [(name, words, name in reasons) for name, words in REASONS.items()],
            "runs": [(run, not every and run.pk in (chosen or ())) for run in auto_enqueue.runs_for(campaign)[:100]],
            "all_runs": every,
        }
    return render_campaign(request, "campaign-data", campaign, "data", **context)


@requires("read-labels", of=OF_CAMPAIGN)
@require_safe
def campaign_download(request: HttpRequest, pk: int) -> HttpResponseBase:
    """The labels of a campaign as a file. Staff may ask for annotators' names."""
    campaign = get_object_or_404(visible_campaigns(request.user), pk=pk)
    with told(request):
        return answer_of(request, download(campaign, request.user, request.GET))
    return redirect("annotations:campaign-data", pk)


PREFERENCES = "preferences"  # asked for like a shape; the table of that name


def campaign_shapes(campaign: Campaign, viewer: Viewer, *, installed: bool = True) -> dict[str, str]:
    """The files that this viewer may have of a campaign, with their words: what it asks is for those who run it.
    ``installed``: only those that can be written here.
    """
    shapes = exports.shapes(of_campaign=True) if installed else SHAPES
    runs_it = allowed(viewer, "write-campaigns", of=campaign.benchmark)
    words = {name: shape.title for name, shape in shapes.items() if runs_it or not shape.of_campaign}
    return words | {PREFERENCES: "Preference pairs for DPO, JSON Lines"}


def download(campaign: Campaign, viewer: Viewer, query: Any) -> HttpResponseBase | ExportFile:
    """A file in the shape ``as``, or for staff, where it is large, what a worker will write. 501 without the package it
    needs. Raises Http404 for an unknown shape, BadInput.
    """
    name = query.get("as", "jsonl")
    if name not in campaign_shapes(campaign, viewer, installed=False):
        raise Http404("no such file")
    if name not in campaign_shapes(campaign, viewer):
        return parquet.refusal()
    asked = {"campaign": campaign.pk, "as": name, "names": query.get("names"), "model": query.get("model", "")}
    return export_files.give("campaign", cast(User, viewer), asked)


def campaign_file(viewer: User, asked: dict[str, Any]) -> Download:
    """The labels of a campaign, or what it asks, as a file. Raises PermissionDenied, Http404, BadInput."""
    campaign = get_object_or_404(visible_campaigns(viewer), pk=asked["campaign"])
    name = asked["as"]
    if not allowed(viewer, "read-labels", of=campaign.benchmark) or name not in campaign_shapes(campaign, viewer):
        raise PermissionDenied
    what = PREFERENCES if name == PREFERENCES else "items" if SHAPES[name].of_campaign else "labels"
    shape = "jsonl" if name == PREFERENCES else name
    wanted = exports.ExportRequest(
        names=allowed(viewer, "read-names") and asked["names"] == "1",
        viewer=viewer,
        campaign=campaign.pk,
        model=asked["model"],
    )
    body = partial(exports.file_pieces, what=what, shape=shape, benchmark=campaign.benchmark, asked=wanted)
    kind = "" if name in ("jsonl", "csv", "parquet", "label-studio") else f"-{name}"

    def is_large() -> bool:
        # Below staff, rows are shown as may be seen when they leave; a file would keep what was seen before.
        if not allowed(viewer, "read-hidden", of=campaign.benchmark):
            return False
        if SHAPES[shape].of_campaign:
            return export_files.has_many(campaign.campaign_items.all(), export_files.MANY_PICTURES)
        return export_files.has_many(Label.objects.filter(campaign=campaign), export_files.MANY)

    ending, content = SHAPES[shape].ending, SHAPES[shape].content
    return Download(f"campaign-{campaign.pk}{kind}.{ending}", content, body, is_large)


@requires("write-campaigns", of=OF_CAMPAIGN)
@require_POST
@back_on_refusal("annotations:campaign-data")
def campaign_rule(request: HttpRequest, pk: int) -> HttpResponse:
    """Change the rule that adds items automatically."""
    campaign = get_object_or_404(Campaign, pk=pk, imported=False)
    chosen = [number for run in request.POST.getlist("runs") if (number := whole_number(run)) is not None]
    runs = auto_enqueue.ALL if request.POST.get("all_runs") else chosen
    added = auto_enqueue.set_rule(campaign=campaign, runs=runs, reasons=request.POST.getlist("reasons"))
    effect = "No items are added automatically any more."
    if campaign.rule:
        effect = f"It added {added:,} item{pluralize(added)}."
    messages.success(request, f"The rule was changed. {effect}")
    return redirect("annotations:campaign-data", pk)


@requires("write-campaigns", of=OF_RUN)
@require_safe
def run_doubts(request: HttpRequest, pk: int) -> HttpResponse:
    """The judgments of a run that people should look at, and its HQ and HARD subsets."""
    run = get_object_or_404(Run.objects.select_related("judge", "benchmark"), pk=pk)
    doubts, withheld = doubts_of(run), withheld_doubts(run)
    reasons = [(name, words, _with(name, doubts), _with(name, withheld)) for name, words in REASONS.items()]
    parameters: list[tuple[str, Any]] = [("benchmark", run.benchmark_id), ("protocol", run.protocol), ("how", "run")]
    parameters += [("run", run.pk), *(("reasons", name) for name, _, count, _ in reasons if count)]
    context = {
        "section": "judging",
        "run": run,
        "reasons": reasons,
        "new_campaign": reverse("annotations:campaign-new", query=parameters),
        "subsets": [(name, words, len(subset_of(run, name))) for name, words in SUBSETS.items()],
        "campaigns": Campaign.objects.filter(benchmark=run.benchmark, imported=False).exclude(state="closed"),
        "doubted": len(doubts),
        "withheld": len(withheld),
    }
    return render(request, "annotations/run-doubts.html", context)


def _with(reason: str, doubts: Mapping[int, set[str]]) -> int:
    return sum(reason in why for why in doubts.values())


@requires("read-analyses", of=OF_RUN)
@require_safe
def run_subset(request: HttpRequest, pk: int, subset: str) -> HttpResponseBase:
    """The HQ or HARD judgments of a run in the generic format, without analyses."""
    run = get_object_or_404(Run.objects.select_related("benchmark"), pk=pk)
    if subset not in SUBSETS:
        raise Http404("no such subset")
    records = by_keys(chunks(subset_of(run, subset)))
    body = exports.pieces(records=records, what="judgments", shape="jsonl")
    return attached(StreamingHttpResponse(body, content_type="application/x-ndjson"), f"run-{pk}-{subset}.jsonl")


@requires("write-campaigns", of=OF_RUN)
@require_POST
@back_on_refusal("annotations:run-doubts")
def doubts_add(request: HttpRequest, pk: int) -> HttpResponse:
    """Add the doubtful items of a run to an existing campaign."""
    run = get_object_or_404(Run.objects.select_related("benchmark"), pk=pk)
    campaign = get_object_or_404(_chosen_campaign(request), benchmark=run.benchmark)
    reasons = [name for name in request.POST.getlist("reasons") if name in REASONS]
    candidates = candidates_of(campaign)
    added = auto_enqueue.add_doubtful_items(campaign=campaign, run=run, reasons=reasons, candidates=candidates)
    messages.success(request, f"{added:,} item{pluralize(added)} added. The others were there already.")
    return redirect("annotations:campaign-detail", campaign.pk)


@requires("write-campaigns")
@require_POST
def judgments_add(request: HttpRequest) -> HttpResponse:
    """Add the items of chosen judgments (``judgment``, repeated) to ``campaign``, or ask which campaign."""
    texts = request.POST.getlist("judgment")[:MAX_CHOSEN]
    ids = sorted({number for text in texts if (number := whole_number(text)) is not None})
    if "campaign" not in request.POST:
        return _which_campaign(request, ids)
    campaign = get_object_or_404(_chosen_campaign(request), imported=False)
    with told(request, Refused):
        selection = auto_enqueue.select_judged_items(campaign=campaign, ids=ids)
        added = add_items(campaign=campaign, selection=selection)
        left = max(0, len(ids) - len(selection.candidates) - selection.withheld)
        more = f" {left:,} are on items that this campaign cannot take, or on the same item." if left else ""
        if withheld := selection.withheld:
            more += f" {withheld:,} may not choose items for annotators, so {pluralize(withheld, 'it was,they were')}"
            more += " left out: which items they get would tell verdicts that they may not know."
        messages.success(request, f"{added:,} item{pluralize(added)} added to {campaign.name}.{more}")
    return redirect("annotations:campaign-items", campaign.pk)


def _which_campaign(request: HttpRequest, ids: list[int]) -> HttpResponse:
    judgments = Judgment.objects.filter(pk__in=ids)
    benchmarks = judgments.order_by().values("run__benchmark")
    campaigns = Campaign.objects.filter(benchmark__in=benchmarks, imported=False).exclude(state=Campaign.State.CLOSED)
    context = {
        "section": "judging",
        "judgments": judgments.values_list("pk", flat=True).order_by("pk"),
        "items": judgments.values("item").distinct().count(),
        "campaigns": campaigns.select_related("benchmark").order_by("-pk"),
        "benchmark": judgments.values_list("run__benchmark", flat=True).first(),
    }
    return render(request, "annotations/judgments-add.html", context)


def _chosen_campaign(request: HttpRequest) -> QuerySet[Campaign]:
    return Campaign.objects.filter(pk=row_number(request.POST.get("campaign", ""))).select_related("benchmark")
