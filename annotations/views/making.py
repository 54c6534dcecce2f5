"""The form for a new campaign: its size and a preview as it is filled in, and the question before many get it."""

from typing import Any, cast

from django.contrib import messages
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from accounts.http import form_page, person
from accounts.models import User
from accounts.rules import ANYWHERE, requires, where
from annotations import ballots
from annotations.campaigns import sizing
from annotations.campaigns.actions import make_campaign, new_seed, open_campaign
from annotations.labels.own import usual_seconds
from annotations.models import Campaign
from annotations.views.forms import CHOSEN_PEOPLE, BallotForm, CampaignForm, people_who_label
from annotations.views.pages import OF_CAMPAIGN, back_on_refusal, row_number
from bank.errors import BadInput
from bank.models import Benchmark
from bank.views.common import faults_in, told

TAKEN = ("name", "benchmark", "protocol", "guidelines", "blind", "shows_criteria", "seed")  # as the form has them


@requires("write-campaigns", of=ANYWHERE)
@form_page
def campaign_new(request: HttpRequest) -> HttpResponse:
    """The form for a new campaign, which is made open or as a draft."""
    posted, data = request.method == "POST", request.POST.copy()
    if "show_criteria" in data:
        data["shows_criteria"] = "on"
    given: dict[str, Any] = {"data": data, "files": request.FILES} if posted else {"initial": _initial(request)}
    form = CampaignForm(**given, viewer=request.user)
    if "make_items" in data:
        _make_items(request, form)
    elif "show_criteria" in data:
        form.is_valid()  # a name may still be missing
        form.errors.clear()
    elif (
        posted
        and form.is_valid()
        and (campaign := _make_campaign(form, by=person(request), opened="draft" not in request.POST))
    ):
        return _after_making(request, campaign)
    context = {
        "section": "campaigns",
        "form": form,
        "has_benchmarks": Benchmark.objects.exists(),
        "scale": form.scale(_benchmark(form)),
    }
    return render(request, "annotations/campaign-new.html", context)


def _after_making(request: HttpRequest, campaign: Campaign) -> HttpResponse:
    """On to the campaign; to the question first if it was to be opened and is not yet."""
    if campaign.state == Campaign.State.DRAFT and "draft" not in request.POST:
        return redirect("annotations:campaign-open", campaign.pk)
    opened = campaign.state == Campaign.State.OPEN
    messages.success(request, f"{campaign.name} is {'open' if opened else 'a draft'}.")
    return redirect("annotations:campaign-detail", campaign.pk)


def _make_campaign(form: CampaignForm, *, by: User, opened: bool) -> Campaign | None:
    """The campaign of a valid form; a draft if so many items would go to everybody that it is asked about first."""
    data = form.cleaned_data
    annotators = list(data["annotators"]) if data["who"] == CHOSEN_PEOPLE else None
    with faults_in(form):
        campaign = make_campaign(
            annotators=annotators,
            plan=form.plan(),
            ballot=form.ballot(data["protocol"], data["benchmark"]),
            opened=False,
            by=by,
            **{name: data[name] for name in TAKEN},
            **form.settings(),
        )
        if opened and not _is_asked_about(campaign):
            open_campaign(campaign=campaign)
        return campaign
    return None


def _is_asked_about(campaign: Campaign) -> bool:
    """Whether opening it gives so many items to everybody that staff confirm it."""
    is_draft = campaign.open_to_all and campaign.state == Campaign.State.DRAFT
    return is_draft and campaign.campaign_items.count() >= sizing.MANY


@requires("write-campaigns", of=OF_CAMPAIGN)
@form_page
@back_on_refusal("annotations:campaign-detail")
def campaign_open(request: HttpRequest, pk: int) -> HttpResponse:
    """Open a campaign; one with very many items for everybody is confirmed on a page with the numbers."""
    campaign = get_object_or_404(Campaign, pk=pk)
    asked = _is_asked_about(campaign) and "confirmed" not in request.POST
    if not asked:
        if request.method == "POST":
            open_campaign(campaign=campaign, again="again" in request.POST, by=person(request))
        return redirect("annotations:campaign-detail", pk)
    counts = campaign.campaign_items.filter(practice=False).aggregate(
        items=Count("pk"), samples=Count("item__sample", distinct=True)
    )
    usual, timed = usual_seconds(campaign.protocol)
    size = sizing.Size(
        campaign.benchmark, campaign.protocol, **counts, overlap=campaign.overlap, usual=usual, timed=timed
    )
    context = {"section": "campaigns", "campaign": campaign, "size": size, "people": people_who_label().count()}
    return render(request, "annotations/campaign-confirm.html", context)


def _make_items(request: HttpRequest, form: CampaignForm) -> None:
    """Make the items that the chosen benchmark lacks; the form stays as it is filled in."""
    form.is_valid()  # a name may still be missing
    data = form.cleaned_data
    form.errors.clear()
    if not (data.get("benchmark") and data.get("protocol")):
        return
    with told(request):
        made = sizing.make_missing(benchmark=data["benchmark"], protocol=data["protocol"])
        messages.success(request, f"{made:,} items of {data['benchmark'].titled} were made.")


def _benchmark(form: CampaignForm) -> Benchmark | None:
    """The benchmark chosen in the form; in a new form, the first one."""
    if form.is_bound:
        chosen: Benchmark | None = form.cleaned_data.get("benchmark")
        return chosen
    initial = form.initial.get("benchmark")
    field: Any = form.fields["benchmark"]
    return field.queryset.filter(pk=row_number(str(initial))).first() if initial else field.queryset.first()


def _initial(request: HttpRequest) -> dict[str, Any]:
    """Initial values from a link to the form: ``?benchmark=1&how=run&run=3&reasons=differs``."""
    names = ("benchmark", "protocol", "how", "run")
    initial: dict[str, Any] = {name: request.GET[name] for name in names if request.GET.get(name)}
    return initial | ({"reasons": request.GET.getlist("reasons")} if request.GET.get("reasons") else {})


@requires("write-campaigns", of=ANYWHERE)
@require_POST
def campaign_count(request: HttpRequest) -> HttpResponse:
    """How many items the campaign in the form would have, and how long they take."""
    form = CampaignForm(request.POST, viewer=request.user)
    form.is_valid()  # a name may still be missing
    chosen = form.cleaned_data.get("protocol")
    context: dict[str, Any] = {
        "about": ballots.get(chosen).about if chosen else "",
        "lacks_guidelines": not form.cleaned_data.get("guidelines"),
    }
    try:
        context["size"] = _size(form)
    except BadInput as error:
        context["why"] = str(error)
    return render(request, "annotations/_campaign_count.html", context)


@requires("write-campaigns", of=ANYWHERE)
@require_POST
def campaign_preview(request: HttpRequest) -> HttpResponse:
    """The first item of the campaign in the form, as annotators will see it."""
    form = CampaignForm(request.POST, viewer=request.user)
    form.is_valid()
    data, context = form.cleaned_data, dict[str, Any](section="campaigns")
    try:
        if size := _size(form):
            ballot = form.ballot(data["protocol"], data["benchmark"])
            seen = {name: bool(data.get(name)) for name in ("blind", "shows_criteria")}
            context["preview"] = sizing.preview_of(size, ballot=ballot, **seen)
            context["why"] = size.why
    except BadInput as error:
        context["why"] = str(error)
    template = "_item_preview" if cast(Any, request).htmx else "item-preview"
    return render(request, f"annotations/{template}.html", context)


def _size(form: CampaignForm) -> sizing.Size | None:
    """Of the campaign in a form that may be incomplete. Raises BadInput."""
    data = form.cleaned_data
    if not (data.get("benchmark") and data.get("protocol")):
        return None
    seed = data.get("seed")
    return sizing.size_of(
        benchmark=data["benchmark"],
        protocol=data["protocol"],
        plan=form.plan(),
        seed=new_seed() if seed is None else seed,
        shows_criteria=bool(data.get("shows_criteria")),
        ballot=form.ballot(data["protocol"], data["benchmark"]),
        overlap=data.get("overlap") or 1,
        hides_gold=bool(data.get("gold_rate") and data.get("blind")),
        due=data.get("due"),
    )


@requires("write-campaigns", of=ANYWHERE)
@require_POST
def campaign_scale(request: HttpRequest) -> HttpResponse:
    """The marks of a custom scale, with the labels typed so far."""
    form = BallotForm(request.POST)
    form.is_valid()
    benchmarks = Benchmark.objects.filter(where(request.user, "write-campaigns"))
    benchmark = benchmarks.filter(pk=row_number(request.POST.get("benchmark", ""))).first()
    return render(request, "annotations/_scale.html", {"scale": form.scale(benchmark)})
