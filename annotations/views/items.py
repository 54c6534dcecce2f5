"""A campaign's items and how far their labels agree; adjudication, gold and practice items, labels given back."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast
from urllib.parse import urlencode

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from accounts.models import User
from accounts.rules import allowed, requires
from annotations import ballots
from annotations.assignment import gold
from annotations.assignment.errors import Refused
from annotations.assignment.gold import mark_all_gold, mark_gold, unmark_gold
from annotations.labels import adjudication
from annotations.labels.actions import return_label
from annotations.labels.adjudication import adjudicate, withdraw_adjudication
from annotations.labels.agreement import agreement_of, label_rows
from annotations.labels.monitor import visible_campaigns
from annotations.labels.verdicts import describe
from annotations.models import Annotator, Campaign, CampaignItem, Label
from bank.errors import BadInput
from bank.forms.fields import whole_number

PAGE = 50
MOST_IN_MATRIX = 30
LARGEST_FILE = 5 * 2**20  # bytes
MOST_NAMED = 5  # problems in one message


@requires("read-judging")
@require_safe
def campaign_agreement(request: HttpRequest, pk: int) -> HttpResponse:
    """How far the annotators agree, with intervals."""
    viewer = cast(User, request.user)
    campaign = get_object_or_404(visible_campaigns(viewer), pk=pk)
    agreement = agreement_of(campaign, label_rows(campaign))
    people = {one.pk: one for one in Annotator.objects.filter(pk__in=agreement.people)}
    shown = agreement.people[:MOST_IN_MATRIX]
    cells = agreement.cells
    matrix = [
        (
            people[a].name if allowed(viewer, "read-names") else people[a].pseudonym,
            [None if a == b else cells.get((min(a, b), max(a, b))) for b in shown],
        )
        for a in shown
    ]
    context = {
        "section": "campaigns",
        "campaign": campaign,
        "agreement": agreement,
        "matrix": matrix,
        "left_out": len(agreement.people) - len(shown),
        "kappa": request.GET.get("show") == "kappa",
        "tab": "agreement",
        "may_write": allowed(viewer, "write-campaigns"),
    }
    return render(request, "annotations/campaign-agreement.html", context)


@requires("write-campaigns")
@require_safe
def campaign_items(request: HttpRequest, pk: int) -> HttpResponse:
    """The items, the least agreed first."""
    campaign = get_object_or_404(Campaign, pk=pk)
    show = request.GET.get("show", "")
    show = show if show in adjudication.FILTERS else ""
    search = request.GET.get("q", "").strip()[:200]
    context = {
        "section": "campaigns",
        "campaign": campaign,
        "page": Paginator(adjudication.list_items(campaign, show=show, search=search), PAGE).get_page(
            request.GET.get("page")
        ),
        "shows": adjudication.FILTERS,
        "show": show,
        "search": search,
        "query": urlencode({name: value for name, value in (("show", show), ("q", search)) if value}),
        "sources": Campaign.objects.filter(benchmark=campaign.benchmark_id, protocol=campaign.protocol).exclude(pk=pk),
        "tab": "items",
        "may_write": True,
    }
    return render(request, "annotations/campaign-items.html", context)


@requires("write-campaigns")
@require_safe
def item_detail(request: HttpRequest, pk: int, place: int) -> HttpResponse:
    """One item with every label; a verdict beside them, or what is right about it."""
    found = _place(pk, place)
    return _page(request, found)


def _page(request: HttpRequest, place: CampaignItem, error: str = "", status: int = 200) -> HttpResponse:
    campaign = place.campaign
    labels = adjudication.labels_on(place)
    verdicts = [said.label.verdict() for said in labels if not said.label.excluded]
    before, after = adjudication.neighbours(campaign, place)
    context = {
        "section": "campaigns",
        "campaign": campaign,
        "place": place,
        "sample": place.item.sample,
        "images": place.item.sample.images.all(),
        "answers": adjudication.answers_to(place),
        "labels": labels,
        "entry": adjudication.verdict_input(place, verdicts, adjudication.initial_verdict(place, verdicts)),
        "adjudication": getattr(place, "adjudication", None),
        "adjudicated": describe(place.adjudication.verdict()) if hasattr(place, "adjudication") else "",
        "gold": describe(place.gold) if place.gold else "",
        "untouched": not place.assignments.exists() and not campaign.imported,
        "before": before,
        "after": after,
        "question": ballots.BALLOTS[campaign.protocol].question if campaign.protocol in ballots.BALLOTS else "",
        "error": error,
        "tab": "items",
        "may_write": True,
    }
    return render(request, "annotations/campaign-item.html", context, status=status)


@requires("write-campaigns")
@require_POST
def item_decide(request: HttpRequest, pk: int, place: int) -> HttpResponse:
    """Adjudicate an item, or say that its verdict is known."""
    found, by = _place(pk, place), cast(User, request.user)
    verdicts = [label.verdict() for label in Label.objects.filter(assignment__campaign_item=found, excluded=False)]
    note, do = request.POST.get("note", ""), request.POST.get("do", "")
    try:
        match do:
            case "withdraw":
                withdraw_adjudication(campaign_item=found)
            case "ordinary":
                unmark_gold(campaign_item=found)
            case _:
                verdict = adjudication.read_verdict(adjudication.verdict_input(found, verdicts, {}), request.POST)
                if do in ("gold", "practice"):
                    mark_gold(campaign_item=found, verdict=verdict, note=note, practice=do == "practice")
                else:
                    adjudicate(campaign_item=found, by=by, verdict=verdict, comment=note)
    except (BadInput, Refused) as refusal:
        return _page(request, found, str(refusal), 400)
    messages.success(request, "Saved. The labels stay as they are." if do == "adjudicate" else "Saved.")
    after = adjudication.neighbours(found.campaign, found)[1] if do == "adjudicate" else None
    return redirect("annotations:item-detail", pk, after or place)


@requires("write-campaigns")
@require_POST
def items_known(request: HttpRequest, pk: int) -> HttpResponse:
    """Many items at once as hidden gold or practice, their verdicts from a file or from another campaign."""
    campaign = get_object_or_404(Campaign, pk=pk, imported=False)
    practice = request.POST.get("kind") == "practice"
    try:
        found = _known_in(request, campaign)
        if found.problems and "skip_bad" not in request.POST:
            raise BadInput(_first_of(found.problems) + " Nothing was marked.")
        done = mark_all_gold(found.verdicts, practice=practice)
    except (BadInput, Refused) as refusal:
        messages.error(request, str(refusal))
        return redirect("annotations:campaign-items", pk)
    left = f" {_first_of(found.problems)}" if found.problems else ""
    kind = "practice" if practice else "hidden gold"
    messages.success(request, f"{done:,} item{' is' if done == 1 else 's are'} {kind} now.{left}")
    return redirect(reverse("annotations:campaign-items", args=[pk]) + f"?show={'practice' if practice else 'gold'}")


def _known_in(request: HttpRequest, campaign: Campaign) -> gold.GoldVerdicts:
    file = request.FILES.get("file")
    if file is not None:
        if (file.size or 0) > LARGEST_FILE:
            raise BadInput(f"{file.name} is larger than {LARGEST_FILE // 2**20} MB: use manage.py mark_items.")
        with TemporaryDirectory() as folder:
            # Its ending says what it is; its name is not trusted.
            path = Path(folder) / f"verdicts{Path(file.name or '').suffix.lower()[:10]}"
            path.write_bytes(file.read())
            return gold.gold_from_file(campaign, path)
    source = Campaign.objects.filter(pk=_number(request.POST.get("source", ""))).first()
    if source is None:
        raise BadInput("Choose a file or a campaign.")
    return gold.gold_from_campaign(campaign, source, most=_number(request.POST.get("most", "")) or None)


def _first_of(problems: list[str]) -> str:
    more = f" And {len(problems) - MOST_NAMED:,} more." if len(problems) > MOST_NAMED else ""
    return " ".join(f"{problem.rstrip('.')}." for problem in problems[:MOST_NAMED]) + more


def _number(text: str) -> int:
    return whole_number(text, below=10**9) or 0


@requires("write-campaigns")
@require_POST
def label_return(request: HttpRequest, pk: int, label: int) -> HttpResponse:
    """Give a label back to its annotator with a note."""
    labels = Label.objects.select_related("campaign", "assignment__campaign_item", "annotator")
    found = get_object_or_404(labels, pk=label, campaign=pk)
    place = found.assignment.campaign_item_id
    try:
        note = request.POST.get("note", "")
        return_label(label=found, by=cast(User, request.user), note=note, now=timezone.now())
    except (BadInput, Refused) as refusal:
        return _page(request, _place(pk, place), str(refusal), 400)
    messages.success(request, f"{found.annotator.name} will be shown the item with your note before anything else.")
    return redirect("annotations:item-detail", pk, place)


def _place(campaign: int, place: int) -> CampaignItem:
    related = ("campaign__benchmark", "item__sample", "adjudication__by", "reviewed")
    return get_object_or_404(CampaignItem.objects.select_related(*related), pk=place, campaign=campaign)
