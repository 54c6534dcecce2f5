"""The pages on which annotators label. Nothing on them reveals which model answered.

The full page and the fragment that its script swaps in share one template. Without the script every step is a form
and a redirect.
"""

from datetime import datetime
from typing import Any, cast

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy
from django.views.decorators.http import require_POST, require_safe

from accounts.http import PageRequest
from accounts.models import User
from accounts.rules import ANYWHERE, requires
from annotations import ballots
from annotations.assignment import material, notices
from annotations.assignment.errors import Refused
from annotations.assignment.leases import next_assignment, skip, take_back
from annotations.assignment.notices import mark_notices_read
from annotations.assignment.queries import annotator_of, assignment_of, load_work, progress_of, submitted_values
from annotations.ballots import BadVerdict
from annotations.campaigns.auto_enqueue import enqueue_new_items
from annotations.campaigns.guidelines import render_guidelines
from annotations.campaigns.members import agree, digest_of, enter, is_prepared, mark_guidelines_read, tell_curators
from annotations.labels.actions import change_label, save_draft, submit_label
from annotations.labels.desk import Desk, card_of, desk_of
from annotations.labels.result import result_of
from annotations.models import Annotator, Assignment, Campaign
from bank import database
from bank.images import image_response
from bank.models import SampleImage
from bank.views.common import told

CONFIDENCES = (
    ("0.25", lazy("A guess")),
    ("0.5", lazy("Not very")),
    ("0.75", lazy("Fairly")),
    ("1.0", lazy("Certain")),
)


@requires("label", of=ANYWHERE)
@require_safe
def index(request: PageRequest) -> HttpResponse:
    """The campaigns this person labels in."""
    return render(request, "annotations/index.html", {"section": "annotate", "desk": desk_for(request)})


def desk_for(request: HttpRequest) -> Desk:
    """Everything that waits for the person who asks."""
    person = cast(User, request.user)
    return desk_of(annotator_of(person), person, name=person.first_name or person.username)


@requires("label", of=ANYWHERE)
@require_safe
def prepare(request: PageRequest, pk: int) -> HttpResponse:
    """The guidelines and the keys of a campaign; nobody meets the first item without."""
    campaign, annotator = _campaign(request, pk)
    context = {
        "section": "annotate",
        "campaign": campaign,
        "ballot": ballots.of(campaign),
        "card": card_of(campaign, annotator, request.user),
        "guidelines": render_guidelines(campaign.guidelines, campaign),
    }
    if campaign.asks_consent_of(annotator):
        context |= {"consent": render_guidelines(campaign.consent, campaign), "digest": digest_of(campaign.consent)}
    return render(request, "annotations/prepare.html", context)


@requires("label", of=ANYWHERE)
@require_POST
def begin(request: PageRequest, pk: int) -> HttpResponse:
    """They have read the guidelines, agree to what the campaign asks them to, and go on to the items."""
    campaign, annotator = _campaign(request, pk)
    with told(request):
        agree(campaign=campaign, annotator=annotator, digest=request.POST.get("agreed", ""), now=database.now())
        mark_guidelines_read(campaign=campaign, annotator=annotator)
        return redirect("annotations:work", pk)
    return redirect("annotations:prepare", pk)


@requires("label", of=ANYWHERE)
@require_safe
def done(request: PageRequest, pk: int) -> HttpResponse:
    """How the campaign went for this annotator, and where to go on."""
    campaign, annotator = _campaign(request, pk)
    result = result_of(campaign, annotator, request.user)
    person = cast(User, request.user)
    context = {"section": "annotate", "result": result, "name": person.first_name or person.username}
    return render(request, "annotations/done.html", context)


@requires("label", of=ANYWHERE)
@require_POST
def say(request: PageRequest, pk: int) -> HttpResponse:
    """A message to the curators about the whole round."""
    campaign, annotator = _campaign(request, pk)
    with told(request):
        tell_curators(campaign=campaign, annotator=annotator, text=request.POST.get("message", ""), now=database.now())
        messages.success(request, _("The curators see it on the campaign's page."))
    return redirect("annotations:done", pk)


@requires("label", of=ANYWHERE)
@require_safe
def work(request: PageRequest, pk: int) -> HttpResponse:
    """The annotator's open item in this campaign, or the next one."""
    campaign, annotator = _campaign(request, pk)
    if campaign.state in Campaign.GOING and campaign.asks_consent_of(annotator):
        return redirect("annotations:prepare", pk)
    if campaign.state == Campaign.State.OPEN and not is_prepared(campaign=campaign, annotator=annotator):
        return redirect("annotations:prepare", pk)
    if returned := notices.open_returns(annotator, campaigns=[campaign]).select_related("label").first():
        return redirect("annotations:assignment-detail", returned.label.assignment_id)
    if (notice := notices.pending_notice(campaign=campaign, annotator=annotator)) is not None:
        progress = progress_of(campaign=campaign, annotator=annotator)
        return _render(request, campaign, annotator, {"work": None, "between": notice, "progress": progress})
    enqueue_new_items(campaign)
    try:
        assignment = next_assignment(campaign=campaign, annotator=annotator, now=database.now())
    except Refused as refusal:
        return _no_work(request, campaign, annotator, str(refusal))
    if assignment is None:
        return _no_work(request, campaign, annotator)
    return _show_work(request, assignment)


@requires("label", of=ANYWHERE)
@require_POST
def go_on(request: PageRequest, pk: int) -> HttpResponse:
    """The annotator has read the notice between two items."""
    campaign, annotator = _campaign(request, pk)
    mark_notices_read(campaign=campaign, annotator=annotator)
    return redirect("annotations:work", campaign.pk)


@requires("label", of=ANYWHERE)
@require_POST
def ahead(request: PageRequest, pk: int) -> HttpResponse:
    """Prefetch the item after the open one and lease it. 204 if there is none."""
    campaign, annotator = _campaign(request, pk)
    try:
        assignment = next_assignment(campaign=campaign, annotator=annotator, now=database.now(), prefetch=True)
    except Refused:
        assignment = None
    if assignment is None:
        return HttpResponse(status=204)
    return _show_work(request, assignment, ahead=True)


@requires("label", of=ANYWHERE)
@require_safe
def assignment_detail(request: PageRequest, pk: int) -> HttpResponse:
    """One of the annotator's own items: open, expired, or labelled and to be changed."""
    return _show_work(request, _assignment(request, pk))


@requires("label", of=ANYWHERE)
@require_POST
def assignment_submit(request: PageRequest, pk: int) -> HttpResponse:
    """Store the label or its change, and continue."""
    assignment, now = _assignment(request, pk), database.now()
    posted = _form_values(request, assignment)
    label = submitted_values(posted)
    until: datetime | None = None
    try:
        if request.POST.get("editing"):
            if assignment.state != Assignment.State.SUBMITTED:
                raise Http404("no label to change")
            change_label(assignment=assignment, now=now, seen=_parse_time(request.POST.get("seen", "")), **label)
        else:
            key = request.POST.get("key", "")
            until = submit_label(assignment=assignment, now=now, idempotency_key=key, **label).next_until
    except (BadVerdict, Refused) as error:
        return _show_refusal(request, assignment, posted, error)
    return _to_next_item(request, assignment, until)


@requires("label", of=ANYWHERE)
@require_POST
def assignment_skip(request: PageRequest, pk: int) -> HttpResponse:
    """Skip the item and continue; with ``undo`` take it back."""
    assignment, now = _assignment(request, pk), database.now()
    try:
        if request.POST.get("undo"):
            take_back(assignment=assignment, now=now)
            return JsonResponse({"saved": True})
        until = skip(assignment=assignment, now=now)
    except Refused as refusal:
        return _show_refusal(request, assignment, _form_values(request, assignment), refusal)
    return _to_next_item(request, assignment, until)


def _to_next_item(request: PageRequest, assignment: Assignment, until: datetime | None) -> HttpResponse:
    """The script has the next item already, and is told when the lease of it ends."""
    if request.htmx:
        return JsonResponse({"saved": True, "lease_until": until.isoformat() if until else None})
    return redirect("annotations:work", assignment.campaign_item.campaign_id)


@requires("label", of=ANYWHERE)
@require_POST
def assignment_draft(request: PageRequest, pk: int) -> HttpResponse:
    """Store what has been typed so far."""
    assignment, now = _assignment(request, pk), database.now()
    try:
        editing = bool(request.POST.get("editing"))
        save_draft(assignment=assignment, draft=_form_values(request, assignment), now=now, editing=editing)
    except (BadVerdict, Refused) as error:
        return _refusal_as_json(error)
    return JsonResponse({"saved": now.isoformat()})


@requires("label", of=ANYWHERE)
@require_safe
def assignment_image(request: PageRequest, pk: int, position: int) -> HttpResponseBase:
    """A picture of the item, at an address that reveals nothing."""
    sample = _assignment(request, pk).campaign_item.item.sample_id
    return image_response(get_object_or_404(SampleImage, sample=sample, position=position), request)


def _campaign(request: PageRequest, pk: int) -> tuple[Campaign, Annotator]:
    return enter(person=cast(User, request.user), id=pk)


def _assignment(request: PageRequest, pk: int) -> Assignment:
    return assignment_of(cast(User, request.user), pk)


def _show_work(
    request: PageRequest,
    assignment: Assignment,
    *,
    ahead: bool = False,
    typed: dict[str, Any] | None = None,
    notice: str = "",
    code: str = "",
    status: int = 200,
) -> HttpResponse:
    page = load_work(assignment, ahead=ahead, typed=typed)
    context = {
        "work": page,
        "progress": page.progress,
        "notice": notice,
        "code": code,
        "confidences": CONFIDENCES,
        "flags": tuple((name, words, name in page.values.get("flags", ())) for name, words in ballots.FLAGS.items()),
    }
    return _render(request, page.campaign, assignment.annotator, context, status=status)


def _no_work(request: PageRequest, campaign: Campaign, annotator: Annotator, why: str = "") -> HttpResponse:
    progress = progress_of(campaign=campaign, annotator=annotator)
    if progress.done and (not why or campaign.state == Campaign.State.CLOSED):
        return redirect("annotations:done", campaign.pk)
    return _render(request, campaign, annotator, {"work": None, "why": why, "progress": progress})


def _render(
    request: PageRequest, campaign: Campaign, annotator: Annotator, context: dict[str, Any], status: int = 200
) -> HttpResponse:
    context |= {"campaign": campaign, "ballot": ballots.of(campaign), "me": annotator.pk}
    if not request.htmx:
        context["guidelines"] = render_guidelines(campaign.guidelines, campaign)
    template = "annotations/_work.html" if request.htmx else "annotations/work.html"
    return render(request, template, context, status=status)


def _refusal_code(error: BadVerdict | Refused) -> tuple[str, int]:
    """The code of a refusal for the script, and the HTTP status."""
    return (error.field, 400) if isinstance(error, BadVerdict) else (error.code, 409)


def _refusal_as_json(error: BadVerdict | Refused) -> JsonResponse:
    code, status = _refusal_code(error)
    return JsonResponse({"error": str(error), "code": code}, status=status)


def _show_refusal(
    request: PageRequest, assignment: Assignment, posted: dict[str, Any], error: BadVerdict | Refused
) -> HttpResponse:
    """Show why it was refused, and keep what was typed."""
    if request.htmx:
        return _refusal_as_json(error)
    code, status = _refusal_code(error)
    assignment = _assignment(request, assignment.pk)
    return _show_work(request, assignment, typed=posted, notice=str(error), code=code, status=status)


def _form_values(request: PageRequest, assignment: Assignment) -> dict[str, Any]:
    """The form's fields in presented terms. Invalid values are left for the ballot to reject."""
    form, ballot = ballots.PostedForm(request.POST), ballots.of(assignment.campaign_item.campaign)
    return ballot.from_form(form, material.material_for(assignment, ballot)) | {
        "comment": form.text("comment"),
        "flags": [flag for flag in form.texts("flags") if flag in ballots.FLAGS],
        "seconds": form.number("seconds"),
        "confidence": form.number("confidence") if ballot.asks_confidence else None,
    }


def _parse_time(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else None
