"""The pages of campaigns: list and overview for researchers; making, copying and changing them for staff."""

from typing import Any

from django.contrib import messages
from django.db.models import Q
from django.forms import model_to_dict
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from accounts import mail
from accounts.http import done, form_page, page_of, person, posted
from accounts.rules import ANYWHERE, admitted, allowed, requires, where
from annotations import ballots
from annotations.assignment.queries import annotator_of, campaigns_of
from annotations.campaigns import guidelines
from annotations.campaigns.actions import (
    change_ballot,
    change_campaign,
    close_campaign,
    copy_campaign,
    pause_campaign,
)
from annotations.campaigns.blinding import open_finished
from annotations.campaigns.inputs import SETTINGS
from annotations.campaigns.invitations import open_invitations
from annotations.campaigns.power import PLANNED, fits, outlooks
from annotations.campaigns.sizing import hides
from annotations.labels import provenance
from annotations.labels.agreement import LabelRow, label_rows
from annotations.labels.desk import board_link
from annotations.labels.monitor import counts_of, monitor_of, recent_labels, visible_campaigns
from annotations.models import Campaign, GuidelinePicture
from annotations.views.forms import (
    AddAnnotatorsForm,
    AssignmentForm,
    BallotForm,
    GuidelinesForm,
    InvitationForm,
    PowerForm,
    initial_of,
)
from annotations.views.pages import OF_CAMPAIGN, back_on_refusal, render_campaign, row_number
from bank.errors import BadInput
from bank.images import NotAnImage, image_response
from bank.models import Item
from bank.views.common import faults_in

PAGE = 50
MEMBERS = 20  # annotators that a campaign's page shows until all are asked for


@requires("read-judging")
@require_safe
def campaign_list(request: HttpRequest) -> HttpResponse:
    """All campaigns, newest first."""
    page = page_of(request, visible_campaigns(request.user), PAGE)
    counts = counts_of(page)
    context = {
        "section": "campaigns",
        "page": page,
        "rows": [(campaign, counts[campaign.pk]) for campaign in page],
        "ballots": ballots.BALLOTS,
        "may_write": admitted("write-campaigns", request.user, ANYWHERE, {}),
        "has_items": Item.objects.exists(),
    }
    return render(request, "annotations/campaigns.html", context)


@requires("read-judging", of=OF_CAMPAIGN)
@require_safe
def campaign_detail(request: HttpRequest, pk: int) -> HttpResponse:
    """The progress of a campaign, and how fast and how consistently its annotators label. What it can tell apart is
    computed where the address asks for it, which the page does as soon as its fold is opened.
    """
    viewer = request.user
    campaign = get_object_or_404(visible_campaigns(viewer), pk=pk)
    rows = label_rows(campaign, viewer, every=True)
    compared = [row for row in rows if not row.late]
    may_plan = fits(campaign)
    power = _power(request, campaign, compared) if may_plan and {"power", *PLANNED} & request.GET.keys() else None
    if power and "HX-Request" in request.headers:
        return render(request, "annotations/_power.html", {"power": power})
    show, monitor = request.GET.get("show"), monitor_of(campaign, rows, viewer)
    noted = show == "noted"
    context: dict[str, Any] = {
        "ballot": ballots.BALLOTS.get(campaign.protocol),
        "monitor": monitor,
        "members": monitor.members if show == "people" else monitor.members[:MEMBERS],
        "recent": recent_labels(campaign, viewer, noted=noted),
        "noted": noted,
        "all_recent": show == "all",
        "may_plan": may_plan,
        "power": power,
        "board": board_link(campaign.benchmark),
        "for_staff": provenance.for_staff(campaign) if allowed(viewer, "publish", of=campaign.benchmark) else 0,
        "rendered": guidelines.render_guidelines(campaign.guidelines, campaign),
    }
    if allowed(viewer, "write-campaigns", of=campaign.benchmark) and not campaign.imported:
        is_open, asked = campaign.state == Campaign.State.OPEN, "invite" in request.GET
        context |= {"inviting": InvitationForm(), "opened_invite": asked, "first": is_open and not monitor.labels}
        # A page has one solid button: the form's own where it is in sight, else the one that opens it.
        context["asks_for_people"] = is_open and bool(monitor.labels) and monitor.filled < monitor.slots and not asked
        context["lacks_guidelines"] = not campaign.guidelines and campaign.state != Campaign.State.CLOSED
        if allowed(viewer, "read-names"):
            context["adding"] = AddAnnotatorsForm(campaign=campaign)
        context |= {"invitations": open_invitations(campaign, request), "mail_is_set_up": mail.is_set_up()}
        said = campaign.memberships.exclude(message="").select_related("annotator").order_by("-message_at")
        context["said"] = [(member, member.annotator.shown(named=allowed(viewer, "read-names"))) for member in said]
    return render_campaign(request, "campaign", campaign, "overview", **context)


def _power(request: HttpRequest, campaign: Campaign, rows: list[LabelRow]) -> dict[str, Any]:
    """The power of the campaign, as it is or as the address plans it."""
    given = {name: request.GET[name] for name in PLANNED if request.GET.get(name)}
    try:
        found, refused = outlooks(campaign, rows, given), ""
    except BadInput as error:
        found, refused = outlooks(campaign, rows, {}), str(error)
    plan = found[0].plan
    as_planned = {"rate": plan.rate, "tie_rate": round(plan.ties, 3), "alike": round(plan.alike, 3)}
    as_planned |= {"items": plan.items, "labels": plan.labels, "difference": found[0].difference}
    return {"rows": found, "refused": refused, "form": PowerForm(initial=as_planned | given)}


@requires("write-campaigns", of=OF_CAMPAIGN)
@require_POST
@back_on_refusal("annotations:campaign-detail")
def campaign_pause(request: HttpRequest, pk: int) -> HttpResponse:
    pause_campaign(campaign=get_object_or_404(Campaign, pk=pk))
    return redirect("annotations:campaign-detail", pk)


@requires("write-campaigns", of=OF_CAMPAIGN)
@require_POST
@back_on_refusal("annotations:campaign-detail")
def campaign_close(request: HttpRequest, pk: int) -> HttpResponse:
    close_campaign(campaign=get_object_or_404(Campaign, pk=pk), now=timezone.now())
    return redirect("annotations:campaign-detail", pk)


@requires("publish", of=OF_CAMPAIGN)
@require_POST
@back_on_refusal("annotations:campaign-detail")
def campaign_saw_nothing(request: HttpRequest, pk: int) -> HttpResponse:
    """Note of the labels of a file that those who gave them saw nothing hidden."""
    campaign = get_object_or_404(Campaign, pk=pk)
    provenance.say_saw_nothing(campaign=campaign, by=person(request))
    return done(request, "Noted. These labels are for everybody now.", "annotations:campaign-detail", pk)


@requires("write-campaigns", of=OF_CAMPAIGN)
@require_POST
@back_on_refusal("annotations:campaign-detail")
def campaign_open_finished(request: HttpRequest, pk: int) -> HttpResponse:
    """Show what is said of the items that have all their labels before the campaign ends."""
    open_finished(campaign=get_object_or_404(Campaign, pk=pk), by=person(request), now=timezone.now())
    messages.success(request, "The items that have all their labels are open, and others will be when they have them.")
    return redirect("annotations:campaign-detail", pk)


@requires("write-campaigns", of=OF_CAMPAIGN)
@require_POST
@back_on_refusal("annotations:campaign-settings")
def campaign_ballot(request: HttpRequest, pk: int) -> HttpResponse:
    """Change the ballot while there are no labels."""
    campaign = get_object_or_404(Campaign, pk=pk, imported=False)
    form = BallotForm(request.POST)
    if not form.is_valid():
        raise BadInput(form.faults())
    change_ballot(campaign=campaign, ballot=form.ballot(campaign.protocol, campaign.benchmark))
    messages.success(request, "The ballot was changed.")
    return redirect("annotations:campaign-settings", pk)


@requires("write-campaigns")
@require_POST
def guidelines_preview(request: HttpRequest) -> HttpResponse:
    """Guidelines as annotators will read them. ``campaign`` says whose pictures they may show."""
    campaign = Campaign.objects.filter(pk=row_number(request.POST.get("campaign", ""))).first()
    html = guidelines.render_guidelines(request.POST.get("guidelines", "")[:50_000], campaign)
    return render(request, "annotations/_guidelines.html", {"html": html})


@requires("write-campaigns", of=OF_CAMPAIGN)
@form_page
def campaign_settings(request: HttpRequest, pk: int) -> HttpResponse:
    """How a campaign assigns items, its ballot, and its guidelines."""
    campaign = get_object_or_404(Campaign, pk=pk, imported=False)
    initial = model_to_dict(campaign, SETTINGS)
    form = AssignmentForm(posted(request), initial=initial)
    if form.is_valid():
        with faults_in(form):
            change_campaign(campaign=campaign, **form.settings())
            messages.success(request, "The settings were changed.")
            return redirect("annotations:campaign-settings", pk)
    ballot_form = BallotForm(initial=initial_of(campaign)) if campaign.protocol in ballots.BALLOTS else None
    context: dict[str, Any] = {
        "form": form,
        "ballot_form": ballot_form,
        "scale": ballot_form.scale(campaign.benchmark) if ballot_form else None,
        "fixed": campaign.labels.exists(),
        "hides": hides(campaign),
        "guidelines": GuidelinesForm(initial={"guidelines": campaign.guidelines}),
        "rendered": guidelines.render_guidelines(campaign.guidelines, campaign),
        "pictures": campaign.pictures.all(),
    }
    return render_campaign(request, "campaign-settings", campaign, "settings", **context)


@requires("write-campaigns", of=OF_CAMPAIGN)
@require_POST
@back_on_refusal("annotations:campaign-detail")
def campaign_copy(request: HttpRequest, pk: int) -> HttpResponse:
    """Make another campaign with the same items."""
    copied = copy_campaign(campaign=get_object_or_404(Campaign, pk=pk), name=request.POST.get("name", ""))
    messages.success(request, f"{copied.name} is a draft with the same items. Check it, then open it.")
    return redirect("annotations:campaign-detail", copied.pk)


@requires("write-campaigns", of=OF_CAMPAIGN)
@require_POST
@back_on_refusal("annotations:campaign-settings")
def campaign_guidelines(request: HttpRequest, pk: int) -> HttpResponse:
    """Change the guidelines and their pictures."""
    campaign = get_object_or_404(Campaign, pk=pk)
    form = GuidelinesForm(request.POST)
    if not form.is_valid():
        raise BadInput("The guidelines are too long.")
    data = form.cleaned_data
    guidelines.change_guidelines(campaign=campaign, text=data["guidelines"], about=data["about"], now=timezone.now())
    for file in request.FILES.getlist("pictures")[: guidelines.MAX_PICTURES]:
        try:
            guidelines.add_picture(campaign=campaign, name=file.name or "", data=file)
        except NotAnImage as error:
            messages.error(request, f"{file.name}: {error}.")
    campaign.pictures.filter(name__in=request.POST.getlist("remove")).delete()
    messages.success(request, "The guidelines were changed.")
    return redirect("annotations:campaign-settings", pk)


@requires("be-signed-in")
@require_safe
def guidelines_picture(request: HttpRequest, pk: int, name: str) -> HttpResponseBase:
    """A picture of the guidelines, for those who may label in the campaign or manage it."""
    viewer = person(request)
    run = where(viewer, "write-campaigns", "benchmark__")
    visible = Campaign.objects.filter(run | Q(pk__in=campaigns_of(annotator_of(viewer)).values("pk")))
    return image_response(get_object_or_404(GuidelinePicture, campaign__in=visible, campaign=pk, name=name), request)
