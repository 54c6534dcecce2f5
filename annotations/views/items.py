"""The items of a campaign and their agreement; adjudication, gold and practice items, returned labels."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.defaultfilters import pluralize
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from accounts.http import page_of, person
from accounts.rules import allowed, requires
from annotations import ballots
from annotations.assignment import gold
from annotations.assignment.errors import Refused
from annotations.assignment.gold import mark_all_gold, mark_gold, unmark_gold
from annotations.campaigns.sizing import hides
from annotations.labels import adjudication
from annotations.labels.actions import return_label
from annotations.labels.adjudication import adjudicate, withdraw_adjudication
from annotations.labels.agreement import (
    IN_CELLS,
    Cell,
    agreement_of,
    label_rows,
    matching,
    one_by_one,
    pairwise_cells,
    parts_of,
)
from annotations.labels.monitor import visible_campaigns
from annotations.labels.provenance import offered_by
from annotations.labels.verdicts import describe
from annotations.models import Annotator, Campaign, CampaignItem, Label
from annotations.views.pages import OF_CAMPAIGN, back_on_refusal, render_campaign, row_number
from bank.errors import BadInput

PAGE = 50
MAX_IN_MATRIX = 30
MAX_FILE_SIZE = 5 * 2**20  # bytes
MAX_PROBLEMS = 5  # listed in one message


@requires("read-judging", of=OF_CAMPAIGN)
@require_safe
def campaign_agreement(request: HttpRequest, pk: int) -> HttpResponse:
    """How far the annotators agree, with intervals."""
    viewer = request.user
    campaign = get_object_or_404(visible_campaigns(viewer), pk=pk)
    labels = label_rows(campaign, viewer)
    decisions = one_by_one(labels)
    agreement = agreement_of(campaign, labels)
    figures = agreement.figures
    compared = ballots.words_of(campaign.protocol).compared if len(decisions) > len(labels) else ""
    if compared:
        about = f"of {{n:,}} {compared} on the same item are the same"
        figures = [matching(decisions, agreement.items, name="Matching, one by one", about=about), *figures]
    named = allowed(viewer, "read-names")
    names = {
        annotator.pk: annotator.shown(named=named) for annotator in Annotator.objects.filter(pk__in=agreement.people)
    }
    shown, cells = agreement.people[:MAX_IN_MATRIX], pairwise_cells(decisions, offered_by(campaign))
    measures = {"": "", **next(iter(cells.values())).beyond_chance} if cells else {"": ""}
    measure = show if (show := request.GET.get("show", "")) in measures else ""
    context: dict[str, Any] = {
        "agreement": agreement,
        "figures": figures,
        "compared": compared,
        "matrix": [(names[a], [_in_cell(cells.get((min(a, b), max(a, b))), measure) for b in shown]) for a in shown],
        "parts": parts_of(labels),
        "left_out": len(agreement.people) - len(shown),
        "measures": [(name, words, name == measure) for name, words in IN_CELLS.items() if name in measures],
        "query": urlencode({"benchmark": str(campaign.benchmark), "campaign": campaign.name}),
    }
    return render_campaign(request, "campaign-agreement", campaign, "agreement", **context)


def _in_cell(cell: Cell | None, measure: str) -> tuple[Cell | None, str]:
    """The agreement of two people, and this measure of it as text."""
    return cell, cell.shown(measure) if cell else ""


@requires("write-campaigns", of=OF_CAMPAIGN)
@require_safe
def campaign_items(request: HttpRequest, pk: int) -> HttpResponse:
    """The items, least agreement first."""
    campaign = get_object_or_404(Campaign, pk=pk)
    show = request.GET.get("show", "")
    show = show if show in adjudication.FILTERS else ""
    search = request.GET.get("q", "").replace("\x00", "").strip()[:200]
    items = adjudication.list_items(campaign, show=show, search=search)
    context: dict[str, Any] = {
        "page": page_of(request, items, PAGE),
        "shows": adjudication.FILTERS,
        "show": show,
        "search": search,
        "query": urlencode({name: value for name, value in (("show", show), ("q", search)) if value}),
        "hides": hides(campaign),
        "sources": Campaign.objects.filter(benchmark=campaign.benchmark_id, protocol=campaign.protocol).exclude(pk=pk),
    }
    return render_campaign(request, "campaign-items", campaign, "items", **context)


@requires("write-campaigns", of=OF_CAMPAIGN)
@require_safe
def item_detail(request: HttpRequest, pk: int, place: int) -> HttpResponse:
    """One item with its labels, and a form to adjudicate it or mark it as gold."""
    return _item_page(request, _campaign_item(pk, place))


def _item_page(request: HttpRequest, campaign_item: CampaignItem, error: str = "", status: int = 200) -> HttpResponse:
    campaign = campaign_item.campaign
    labels = adjudication.labels_on(campaign_item, request.user)
    verdicts = [row.label.verdict() for row in labels if not row.label.excluded]
    before, after = adjudication.neighbours(campaign, campaign_item)
    initial = adjudication.initial_verdict(campaign_item, verdicts)
    adjudicated = getattr(campaign_item, "adjudication", None)
    context = {
        "campaign_item": campaign_item,
        "sample": campaign_item.item.sample,
        "images": campaign_item.item.sample.images.all(),
        "answers": adjudication.answers_to(campaign_item),
        "labels": labels,
        "entry": adjudication.verdict_input(campaign_item, verdicts, initial),
        "adjudication": adjudicated,
        "note": adjudicated.comment if adjudicated else campaign_item.note,
        "adjudicated": describe(adjudicated.verdict(), campaign.protocol) if adjudicated else "",
        "gold": describe(campaign_item.gold, campaign.protocol) if campaign_item.gold else "",
        "untouched": not campaign_item.assignments.exists() and not campaign.imported,
        "before": before,
        "after": after,
        "question": ballots.of(campaign).question if campaign.protocol in ballots.BALLOTS else "",
        "error": error,
    }
    return render_campaign(request, "campaign-item", campaign, "items", status=status, **context)


@requires("write-campaigns", of=OF_CAMPAIGN)
@require_POST
def item_decide(request: HttpRequest, pk: int, place: int) -> HttpResponse:
    """Adjudicate an item, or mark it as gold or practice."""
    campaign_item, by = _campaign_item(pk, place), person(request)
    labels = Label.objects.filter(assignment__campaign_item=campaign_item, excluded=False)
    note, action = request.POST.get("note", ""), request.POST.get("do", "")
    try:
        match action:
            case "withdraw":
                withdraw_adjudication(campaign_item=campaign_item)
            case "ordinary":
                unmark_gold(campaign_item=campaign_item)
            case _:
                question = adjudication.verdict_input(campaign_item, [label.verdict() for label in labels], {})
                verdict = adjudication.read_verdict(question, request.POST)
                if action in ("gold", "practice"):
                    practice = action == "practice"
                    mark_gold(campaign_item=campaign_item, verdict=verdict, note=note, practice=practice)
                else:
                    adjudicate(campaign_item=campaign_item, by=by, verdict=verdict, comment=note)
    except (BadInput, Refused) as refusal:
        return _item_page(request, campaign_item, str(refusal), 400)
    messages.success(request, "Saved. The labels stay as they are." if action == "adjudicate" else "Saved.")
    after = adjudication.neighbours(campaign_item.campaign, campaign_item)[1] if action == "adjudicate" else None
    return redirect("annotations:item-detail", pk, after or place)


@requires("write-campaigns", of=OF_CAMPAIGN)
@require_POST
@back_on_refusal("annotations:campaign-items")
def items_known(request: HttpRequest, pk: int) -> HttpResponse:
    """Mark many items as hidden gold or practice, with verdicts from a file or from another campaign."""
    campaign = get_object_or_404(Campaign, pk=pk, imported=False)
    practice = request.POST.get("kind") == "practice"
    marked = _gold_verdicts(request, campaign)
    if marked.problems and "skip_bad" not in request.POST:
        raise BadInput(_summary(marked.problems) + " Nothing was marked.")
    count = mark_all_gold(marked.verdicts, practice=practice, alike=marked.alike)
    problems = f" {_summary(marked.problems)}" if marked.problems else ""
    kind = "practice" if practice else "hidden gold"
    messages.success(request, f"{count:,} item{pluralize(count, ' is,s are')} now {kind}.{problems}")
    return redirect(reverse("annotations:campaign-items", args=[pk]) + f"?show={'practice' if practice else 'gold'}")


def _gold_verdicts(request: HttpRequest, campaign: Campaign) -> gold.GoldVerdicts:
    file = request.FILES.get("file")
    if file is not None:
        if (file.size or 0) > MAX_FILE_SIZE:
            raise BadInput(f"{file.name} is larger than {MAX_FILE_SIZE // 2**20} MB: use manage.py mark_items.")
        with TemporaryDirectory() as folder:
            # The suffix gives the format; the rest of the name is not trusted.
            path = Path(folder) / f"verdicts{Path(file.name or '').suffix.lower()[:10]}"
            path.write_bytes(file.read())
            return gold.gold_from_file(campaign, path)
    others = Campaign.objects.filter(benchmark=campaign.benchmark_id)
    source = others.filter(pk=row_number(request.POST.get("source", ""))).first()
    if source is None:
        raise BadInput("Choose a file or a campaign.")
    return gold.gold_from_campaign(campaign, source, most=row_number(request.POST.get("most", "")) or None)


def _summary(problems: list[str]) -> str:
    more = f" And {len(problems) - MAX_PROBLEMS:,} more." if len(problems) > MAX_PROBLEMS else ""
    return " ".join(f"{problem.rstrip('.')}." for problem in problems[:MAX_PROBLEMS]) + more


@requires("write-campaigns", of=OF_CAMPAIGN)
@require_POST
def label_return(request: HttpRequest, pk: int, label: int) -> HttpResponse:
    """Return a label to its annotator with a note."""
    labels = Label.objects.select_related("campaign", "assignment__campaign_item", "annotator")
    returned = get_object_or_404(labels, pk=label, campaign=pk)
    campaign_item = returned.assignment.campaign_item_id
    try:
        note = request.POST.get("note", "")
        return_label(label=returned, by=person(request), note=note, now=timezone.now())
    except (BadInput, Refused) as refusal:
        return _item_page(request, _campaign_item(pk, campaign_item), str(refusal), 400)
    name = returned.annotator.shown(named=allowed(request.user, "read-names"))
    messages.success(request, f"{name} will see the item with your note before anything else.")
    return redirect("annotations:item-detail", pk, campaign_item)


def _campaign_item(campaign: int, pk: int) -> CampaignItem:
    related = ("campaign__benchmark", "item__sample", "adjudication__by", "reviewed")
    return get_object_or_404(CampaignItem.objects.select_related(*related), pk=pk, campaign=campaign)
