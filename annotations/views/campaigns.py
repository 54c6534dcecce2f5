"""The pages of campaigns: list and overview for researchers; making, copying and changing them for staff."""

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
    """All campaigns, newest first."""
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
    """The progress of a campaign, and how fast and how consistently its annotators label."""
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
        "board": _leaderboard_url(campaign),
        "tab": "overview",
        "rendered": guidelines.render_guidelines(campaign.guidelines, campaign),
    }
    if may_write and not campaign.imported:
        context |= {"adding": AddAnnotatorsForm(campaign=campaign), "inviting": InvitationForm()}
        context["invitations"] = open_invitations(campaign, request)
        context["said"] = campaign.memberships.exclude(message="").select_related("annotator").order_by("-message_at")
    return render(request, "annotations/campaign.html", context)


@requires("write-campaigns")
@require_POST
def campaign_open(request: HttpRequest, pk: int) -> HttpResponse:
    return _change_state(request, pk, open_campaign)


@requires("write-campaigns")
@require_POST
def campaign_pause(request: HttpRequest, pk: int) -> HttpResponse:
    return _change_state(request, pk, pause_campaign)


@requires("write-campaigns")
@require_POST
def campaign_close(request: HttpRequest, pk: int) -> HttpResponse:
    return _change_state(request, pk, close_campaign, now=timezone.now())


def _change_state(request: HttpRequest, pk: int, action: Callable[..., None], **options: Any) -> HttpResponse:
    try:
        action(campaign=get_object_or_404(Campaign, pk=pk), **options)
    except Refused as refusal:
        messages.error(request, str(refusal))
    return redirect("annotations:campaign-detail", pk)


def _leaderboard_url(campaign: Campaign) -> str:
    """The URL of the leaderboard these labels feed, or ""."""
    try:
        return reverse("leaderboard:benchmark", args=[campaign.benchmark])
    except NoReverseMatch:
        return ""


@requires("write-campaigns")
@require_http_methods(["GET", "HEAD", "POST"])
def campaign_new(request: HttpRequest) -> HttpResponse:
    """The form for a new campaign, which is made open or as a draft."""
    posted = request.method == "POST"
    form = CampaignForm(request.POST, request.FILES) if posted else CampaignForm(initial=_initial(request))
    if posted and form.is_valid():
        data = form.cleaned_data
        annotators = list(data["annotators"]) if data["who"] == CHOSEN_PEOPLE else None
        names = ("name", "benchmark", "protocol", "overlap", "lease_minutes", "guidelines", "blind", "shows_criteria")
        opened = "draft" not in request.POST
        try:
            campaign = make_campaign(
                annotators=annotators,
                plan=form.plan(),
                ballot=form.ballot(data["protocol"], data["benchmark"]),
                seed=data["seed"],
                opened=opened,
                **{name: data[name] for name in names},
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
    """The benchmark chosen in the form; in a new form, the first one."""
    if form.is_bound:
        chosen: Benchmark | None = form.cleaned_data.get("benchmark")
        return chosen
    initial = form.initial.get("benchmark")
    field: Any = form.fields["benchmark"]
    return field.queryset.filter(pk=_number(str(initial))).first() if initial else field.queryset.first()


def _initial(request: HttpRequest) -> dict[str, Any]:
    """Initial values from a link to the form: ``?benchmark=1&how=run&run=3&reasons=differs``."""
    names = ("benchmark", "protocol", "how", "run")
    initial: dict[str, Any] = {name: request.GET[name] for name in names if request.GET.get(name)}
    return initial | ({"reasons": request.GET.getlist("reasons")} if request.GET.get("reasons") else {})


@requires("write-campaigns")
@require_POST
def campaign_count(request: HttpRequest) -> HttpResponse:
    """How many items the campaign in the form would have."""
    form = CampaignForm(request.POST)
    form.is_valid()  # a name may still be missing
    data = form.cleaned_data
    context: dict[str, Any] = {}
    if data.get("benchmark") and data.get("protocol"):
        try:
            seed = data.get("seed")
            selection = select_items(
                benchmark=data["benchmark"],
                protocol=data["protocol"],
                plan=form.plan(),
                seed=new_seed() if seed is None else seed,
                shows_criteria=bool(data.get("shows_criteria")),
                ballot=form.ballot(data["protocol"], data["benchmark"]),
            )
            items = len(selection.candidates)
            if not items and not candidates_for(benchmark=data["benchmark"], protocol=data["protocol"]):
                raise BadInput(why_no_items(benchmark=data["benchmark"], ballot=ballots.get(data["protocol"])))
            context = {"items": items, "samples": selection.samples, "labels": items * (data.get("overlap") or 1)}
            if data["protocol"] == "review" and form.ballot("review", data["benchmark"]).get("analyses", True):
                judgments = Judgment.objects.filter(pk__in=[candidate.pk for candidate in selection.candidates])
                context["readable"] = analyses.open_count(judgments)
        except BadInput as error:
            kind = ballots.get(data["protocol"]).kind
            existing = Item.objects.filter(sample__benchmark=data["benchmark"], kind=kind) if kind else None
            context = {
                "why": str(error),
                "make_for": data["benchmark"] if existing is not None and not existing else None,
            }
    return render(request, "annotations/_campaign_count.html", context)


@requires("write-campaigns")
@require_POST
def campaign_scale(request: HttpRequest) -> HttpResponse:
    """The marks of a custom scale, with the labels typed so far."""
    form = BallotForm(request.POST)
    form.is_valid()
    benchmark = Benchmark.objects.filter(pk=_number(request.POST.get("benchmark", ""))).first()
    return render(request, "annotations/_scale.html", {"scale": form.scale(benchmark)})


@requires("write-campaigns")
@require_POST
def campaign_ballot(request: HttpRequest, pk: int) -> HttpResponse:
    """Change the ballot while there are no labels."""
    campaign = get_object_or_404(Campaign, pk=pk, imported=False)
    form = BallotForm(request.POST)
    try:
        if not form.is_valid():
            raise BadInput(form.faults())
        change_ballot(campaign=campaign, ballot=form.ballot(campaign.protocol, campaign.benchmark))
    except (BadInput, Refused) as error:
        messages.error(request, str(error))
    else:
        messages.success(request, "The ballot was changed.")
    return redirect("annotations:campaign-settings", pk)


@requires("write-campaigns")
@require_POST
def guidelines_preview(request: HttpRequest) -> HttpResponse:
    """Guidelines as annotators will read them. ``campaign`` says whose pictures they may show."""
    campaign = Campaign.objects.filter(pk=_number(request.POST.get("campaign", ""))).first()
    html = guidelines.render_guidelines(request.POST.get("guidelines", "")[:50_000], campaign)
    return render(request, "annotations/_guidelines.html", {"html": html})


@requires("write-campaigns")
@require_http_methods(["GET", "HEAD", "POST"])
def campaign_settings(request: HttpRequest, pk: int) -> HttpResponse:
    """How a campaign assigns items, its ballot, and its guidelines."""
    campaign = get_object_or_404(Campaign, pk=pk, imported=False)
    names = [name for name in AssignmentForm().fields if hasattr(campaign, name)]
    posted = request.method == "POST"
    form = (
        AssignmentForm(request.POST)
        if posted
        else AssignmentForm(initial={name: getattr(campaign, name) for name in names})
    )
    if posted and form.is_valid():
        sizes = {name: form.cleaned_data[name] for name in ("overlap", "lease_minutes")}
        try:
            change_campaign(campaign=campaign, **sizes, **form.options())
        except BadInput as error:
            form.add_error(error.field if error.field in form.fields else None, str(error))
        else:
            messages.success(request, "The settings were changed.")
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
    """Make another campaign with the same items."""
    campaign = get_object_or_404(Campaign, pk=pk)
    try:
        copied = copy_campaign(campaign=campaign, name=request.POST.get("name", ""))
    except (BadInput, Refused) as error:
        messages.error(request, str(error))
        return redirect("annotations:campaign-detail", pk)
    messages.success(request, f"{copied.name} is a draft with the same items. Check it, then open it.")
    return redirect("annotations:campaign-detail", copied.pk)


@requires("write-campaigns")
@require_POST
def campaign_guidelines(request: HttpRequest, pk: int) -> HttpResponse:
    """Change the guidelines and their pictures."""
    campaign = get_object_or_404(Campaign, pk=pk)
    form = GuidelinesForm(request.POST)
    if not form.is_valid():
        messages.error(request, "The guidelines are too long.")
        return redirect("annotations:campaign-settings", pk)
    text, about = (form.cleaned_data[name] for name in ("guidelines", "about"))
    guidelines.change_guidelines(campaign=campaign, text=text, about=about, now=timezone.now())
    for file in request.FILES.getlist("pictures")[: guidelines.MAX_PICTURES]:
        try:
            guidelines.add_picture(campaign=campaign, name=file.name or "", data=file)
        except NotAnImage as error:
            messages.error(request, f"{file.name}: {error}.")
    removed = [name for name in request.POST.getlist("remove") if name]
    campaign.pictures.filter(name__in=removed).delete()
    messages.success(request, "The guidelines were changed.")
    return redirect("annotations:campaign-settings", pk)


@requires("be-signed-in")
@require_safe
def guidelines_picture(request: HttpRequest, pk: int, name: str) -> HttpResponseBase:
    """A picture of the guidelines, for those who may label in the campaign or manage it."""
    viewer = cast(User, request.user)
    visible = Campaign.objects.all() if allowed(viewer, "write-campaigns") else campaigns_of(annotator_of(viewer))
    return image_response(get_object_or_404(GuidelinePicture, campaign__in=visible, campaign=pk, name=name), request)


def _number(text: str) -> int:
    return whole_number(text, below=10**9) or 0
