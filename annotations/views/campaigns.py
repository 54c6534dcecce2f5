"""Campaigns, for staff and researchers."""

from collections.abc import Callable
from typing import Any, cast

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.models import User
from accounts.rules import allowed, requires
from annotations import ballots
from annotations.assignment.errors import Refused
from annotations.assignment.queries import annotator_of, campaigns_of
from annotations.campaigns import guidelines
from annotations.campaigns.actions import (
    change_ballot,
    change_campaign,
    close_campaign,
    copy_campaign,
    make_campaign,
    new_seed,
    open_campaign,
    pause_campaign,
)
from annotations.campaigns.candidates import candidates_for, why_no_items
from annotations.campaigns.invitations import open_invitations
from annotations.campaigns.sampling import select_items
from annotations.labels.monitor import monitor_of, recent_labels, visible_campaigns, with_counts
from annotations.models import Campaign, GuidelinePicture
from annotations.views.forms import (
    CHOSEN_PEOPLE,
    AddAnnotatorsForm,
    AssignmentForm,
    BallotForm,
    CampaignForm,
    GuidelinesForm,
    InvitationForm,
    initial_of,
)
from bank.errors import BadInput
from bank.forms.fields import whole_number
from bank.images import NotAnImage, image_response
from bank.models import Benchmark, Item
from judging.judgments import analyses
from judging.models import Judgment

PAGE = 50


@requires("read-judging")
@require_safe
def campaign_list(request: HttpRequest) -> HttpResponse:
    """The campaigns, newest first."""
    viewer = cast(User, request.user)
    page = Paginator(with_counts(visible_campaigns(viewer)), PAGE).get_page(request.GET.get("page"))
    context = {
        "section": "campaigns",
        "page": page,
        "ballots": ballots.BALLOTS,
        "may_write": allowed(viewer, "write-campaigns"),
        "has_items": Item.objects.exists(),
    }
    return render(request, "annotations/campaigns.html", context)


@requires("read-judging")
@require_safe
def campaign_detail(request: HttpRequest, pk: int) -> HttpResponse:
    """How far the campaign is, who labels how fast and how consistently."""
    viewer = cast(User, request.user)
    campaign = get_object_or_404(visible_campaigns(viewer), pk=pk)
    may_write = allowed(viewer, "write-campaigns")
    noted = request.GET.get("show") == "noted"
    context: dict[str, Any] = {
        "section": "campaigns",
        "campaign": campaign,
        "ballot": ballots.BALLOTS.get(campaign.protocol),
        "monitor": monitor_of(campaign, viewer),
        "recent": recent_labels(campaign, viewer, noted=noted),
        "noted": noted,
        "may_write": may_write,
        "board": _board(campaign),
        "tab": "overview",
        "rendered": guidelines.render_guidelines(campaign.guidelines, campaign),
    }
    if may_write and not campaign.imported:
        context |= {"adding": AddAnnotatorsForm(campaign=campaign), "inviting": InvitationForm()}
        context["invitations"] = open_invitations(campaign, request)
    return render(request, "annotations/campaign.html", context)


@requires("write-campaigns")
@require_POST
def campaign_open(request: HttpRequest, pk: int) -> HttpResponse:
    return _act(request, pk, open_campaign)


@requires("write-campaigns")
@require_POST
def campaign_pause(request: HttpRequest, pk: int) -> HttpResponse:
    return _act(request, pk, pause_campaign)


@requires("write-campaigns")
@require_POST
def campaign_close(request: HttpRequest, pk: int) -> HttpResponse:
    return _act(request, pk, close_campaign, now=timezone.now())


def _act(request: HttpRequest, pk: int, action: Callable[..., None], **given: Any) -> HttpResponse:
    try:
        action(campaign=get_object_or_404(Campaign, pk=pk), **given)
    except Refused as refusal:
        messages.error(request, str(refusal))
    return redirect("annotations:campaign-detail", pk)


def _board(campaign: Campaign) -> str:
    """The address of the leaderboard that these labels feed, where there is one."""
    try:
        return reverse("leaderboard:models", args=[campaign.benchmark])
    except NoReverseMatch:
        return ""


@requires("write-campaigns")
@require_http_methods(["GET", "HEAD", "POST"])
def campaign_new(request: HttpRequest) -> HttpResponse:
    """A form for a campaign, which is open as soon as it is made, or a draft."""
    posted = request.method == "POST"
    form = CampaignForm(request.POST, request.FILES) if posted else CampaignForm(initial=_wanted(request))
    if posted and form.is_valid():
        given = form.cleaned_data
        these = list(given["annotators"]) if given["who"] == CHOSEN_PEOPLE else None
        names = ("name", "benchmark", "protocol", "overlap", "lease_minutes", "guidelines", "blind", "shows_criteria")
        opened = "draft" not in request.POST
        try:
            campaign = make_campaign(
                annotators=these,
                plan=form.plan(),
                ballot=form.ballot(given["protocol"], given["benchmark"]),
                seed=given["seed"],
                opened=opened,
                **{name: given[name] for name in names},
                **form.options(),
            )
        except BadInput as error:
            form.add_error(error.field if error.field in form.fields else None, str(error))
        else:
            messages.success(request, f"{campaign.name} is {'open' if opened else 'a draft'}.")
            return redirect("annotations:campaign-detail", campaign.pk)
    context: dict[str, Any] = {"section": "campaigns", "form": form, "has_items": Item.objects.exists()}
    context["scale"] = form.scale(_benchmark(form))
    return render(request, "annotations/campaign-new.html", context)


def _benchmark(form: CampaignForm) -> Benchmark | None:
    """The benchmark that is chosen in the form: the first one of a new form."""
    if form.is_bound:
        found: Benchmark | None = form.cleaned_data.get("benchmark")
        return found
    wanted = form.initial.get("benchmark")
    offered: Any = form.fields["benchmark"]
    return offered.queryset.filter(pk=_number(str(wanted))).first() if wanted else offered.queryset.first()


def _wanted(request: HttpRequest) -> dict[str, Any]:
    """What a link to the form asks for: ``?benchmark=1&how=run&run=3&reasons=differs``."""
    names = ("benchmark", "protocol", "how", "run")
    found: dict[str, Any] = {name: request.GET[name] for name in names if request.GET.get(name)}
    return found | ({"reasons": request.GET.getlist("reasons")} if request.GET.get("reasons") else {})


@requires("write-campaigns")
@require_POST
def campaign_count(request: HttpRequest) -> HttpResponse:
    """What the campaign that is being put together would be made of."""
    form = CampaignForm(request.POST)
    form.is_valid()  # a name may still be missing
    given = form.cleaned_data
    context: dict[str, Any] = {}
    if given.get("benchmark") and given.get("protocol"):
        try:
            seed = given.get("seed")
            chosen = select_items(
                benchmark=given["benchmark"],
                protocol=given["protocol"],
                plan=form.plan(),
                seed=new_seed() if seed is None else seed,
                shows_criteria=bool(given.get("shows_criteria")),
                ballot=form.ballot(given["protocol"], given["benchmark"]),
            )
            items = len(chosen.candidates)
            if not items and not candidates_for(benchmark=given["benchmark"], protocol=given["protocol"]):
                raise BadInput(why_no_items(benchmark=given["benchmark"], ballot=ballots.get(given["protocol"])))
            context = {"items": items, "samples": chosen.samples, "labels": items * (given.get("overlap") or 1)}
            if given["protocol"] == "review" and form.ballot("review", given["benchmark"]).get("analyses", True):
                judged = Judgment.objects.filter(pk__in=[candidate.pk for candidate in chosen.candidates])
                context["readable"] = analyses.open_count(judged)
        except BadInput as error:
            lacks = ballots.get(given["protocol"]).kind
            there = Item.objects.filter(sample__benchmark=given["benchmark"], kind=lacks) if lacks else None
            context = {"why": str(error), "make_for": given["benchmark"] if there is not None and not there else None}
    return render(request, "annotations/_campaign_count.html", context)


@requires("write-campaigns")
@require_POST
def campaign_scale(request: HttpRequest) -> HttpResponse:
    """The marks of a scale of its own, with the words typed so far."""
    form = BallotForm(request.POST)
    form.is_valid()
    benchmark = Benchmark.objects.filter(pk=_number(request.POST.get("benchmark", ""))).first()
    return render(request, "annotations/_scale.html", {"scale": form.scale(benchmark)})


@requires("write-campaigns")
@require_POST
def campaign_ballot(request: HttpRequest, pk: int) -> HttpResponse:
    """Set up anew what annotators may answer, while there are no labels."""
    campaign = get_object_or_404(Campaign, pk=pk, imported=False)
    form = BallotForm(request.POST)
    try:
        if not form.is_valid():
            raise BadInput(form.faults())
        change_ballot(campaign=campaign, ballot=form.ballot(campaign.protocol, campaign.benchmark))
    except (BadInput, Refused) as error:
        messages.error(request, str(error))
    else:
        messages.success(request, "The ballot is set up anew.")
    return redirect("annotations:campaign-settings", pk)


@requires("write-campaigns")
@require_POST
def guidelines_preview(request: HttpRequest) -> HttpResponse:
    """Guidelines as annotators will read them; ``campaign`` says whose pictures they may show."""
    campaign = Campaign.objects.filter(pk=_number(request.POST.get("campaign", ""))).first()
    html = guidelines.render_guidelines(request.POST.get("guidelines", "")[:50_000], campaign)
    return render(request, "annotations/_guidelines.html", {"html": html})


@requires("write-campaigns")
@require_http_methods(["GET", "HEAD", "POST"])
def campaign_settings(request: HttpRequest, pk: int) -> HttpResponse:
    """How a campaign hands out its items, and its guidelines."""
    campaign = get_object_or_404(Campaign, pk=pk, imported=False)
    names = [name for name in AssignmentForm().fields if hasattr(campaign, name)]
    posted = request.method == "POST"
    form = (
        AssignmentForm(request.POST)
        if posted
        else AssignmentForm(initial={name: getattr(campaign, name) for name in names})
    )
    if posted and form.is_valid():
        shape = {name: form.cleaned_data[name] for name in ("overlap", "lease_minutes")}
        try:
            change_campaign(campaign=campaign, **shape, **form.options())
        except BadInput as error:
            form.add_error(error.field if error.field in form.fields else None, str(error))
        else:
            messages.success(request, "The settings are changed.")
            return redirect("annotations:campaign-settings", pk)
    ballot_form = BallotForm(initial=initial_of(campaign)) if campaign.protocol in ballots.BALLOTS else None
    context = {
        "section": "campaigns",
        "campaign": campaign,
        "form": form,
        "ballot_form": ballot_form,
        "scale": ballot_form.scale(campaign.benchmark) if ballot_form else None,
        "fixed": campaign.labels.exists(),
        "guidelines": GuidelinesForm(initial={"guidelines": campaign.guidelines}),
        "rendered": guidelines.render_guidelines(campaign.guidelines, campaign),
        "pictures": campaign.pictures.all(),
        "tab": "settings",
        "may_write": True,
    }
    return render(request, "annotations/campaign-settings.html", context)


@requires("write-campaigns")
@require_POST
def campaign_copy(request: HttpRequest, pk: int) -> HttpResponse:
    """Another campaign over the same items."""
    campaign = get_object_or_404(Campaign, pk=pk)
    try:
        copied = copy_campaign(campaign=campaign, name=request.POST.get("name", ""))
    except (BadInput, Refused) as error:
        messages.error(request, str(error))
        return redirect("annotations:campaign-detail", pk)
    messages.success(request, f"{copied.name} is a draft with the same items. Look at it, then open it.")
    return redirect("annotations:campaign-detail", copied.pk)


@requires("write-campaigns")
@require_POST
def campaign_guidelines(request: HttpRequest, pk: int) -> HttpResponse:
    """Change what annotators read under Guidelines, and its pictures."""
    campaign = get_object_or_404(Campaign, pk=pk)
    form = GuidelinesForm(request.POST)
    if not form.is_valid():
        messages.error(request, "The guidelines are too long.")
        return redirect("annotations:campaign-settings", pk)
    campaign.guidelines = form.cleaned_data["guidelines"].strip()
    campaign.save(update_fields=["guidelines"])
    for file in request.FILES.getlist("pictures")[: guidelines.MAX_PICTURES]:
        try:
            guidelines.add_picture(campaign=campaign, name=file.name or "", data=file)
        except NotAnImage as error:
            messages.error(request, f"{file.name}: {error}.")
    gone = [name for name in request.POST.getlist("remove") if name]
    campaign.pictures.filter(name__in=gone).delete()
    messages.success(request, "The guidelines are changed.")
    return redirect("annotations:campaign-settings", pk)


@requires("be-signed-in")
@require_safe
def guidelines_picture(request: HttpRequest, pk: int, name: str) -> HttpResponseBase:
    """A picture of the guidelines, for those who may label in the campaign or read it."""
    viewer = cast(User, request.user)
    seen = Campaign.objects.all() if allowed(viewer, "write-campaigns") else campaigns_of(annotator_of(viewer))
    return image_response(get_object_or_404(GuidelinePicture, campaign__in=seen, campaign=pk, name=name), request)


def _number(text: str) -> int:
    return whole_number(text, below=10**9) or 0
