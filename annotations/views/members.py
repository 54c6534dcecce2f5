"""Who labels in a campaign: adding, inviting and removing annotators, and letting them continue."""

from collections.abc import Sequence
from typing import cast

from django.contrib import messages
from django.contrib.auth import login
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.defaultfilters import pluralize
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from accounts import audit, mail
from accounts.http import client_address, form_page
from accounts.models import User
from accounts.rules import allowed, requires
from annotations.assignment.quality import lift_stop, qualify, repeat_practice
from annotations.campaigns import invitations
from annotations.campaigns.members import add_annotators, exclude_labels, remove_annotator
from annotations.models import Campaign, Invitation, Membership
from annotations.views.forms import AddAnnotatorsForm, InvitationForm, JoinForm
from annotations.views.pages import OF_CAMPAIGN, back_on_refusal
from bank.errors import BadInput


@requires("write-campaigns")
@require_POST
def campaign_add(request: HttpRequest, pk: int) -> HttpResponse:
    """Add annotators."""
    campaign = get_object_or_404(Campaign, pk=pk)
    form = AddAnnotatorsForm(request.POST, campaign=campaign)
    if form.is_valid():
        by = cast(User, request.user)
        added = add_annotators(campaign=campaign, people=form.cleaned_data["people"], by=by)
        messages.success(request, f"Added {added} annotator{pluralize(added)}.")
    else:
        messages.warning(request, "Choose at least one person.")
    return redirect("annotations:campaign-detail", pk)


@requires("write-campaigns", of=OF_CAMPAIGN)
@require_POST
def campaign_remove(request: HttpRequest, pk: int, annotator: int) -> HttpResponse:
    """Remove an annotator. Their labels stay; ``exclude`` stops them from counting."""
    campaign = get_object_or_404(Campaign, pk=pk)
    member = get_object_or_404(campaign.memberships.select_related("annotator"), annotator=annotator)
    exclude = bool(request.POST.get("exclude"))
    excluded = remove_annotator(
        campaign=campaign, annotator=member.annotator, now=timezone.now(), exclude=exclude, by=cast(User, request.user)
    )
    labels = f"{excluded:,} labels are excluded and their items free again" if exclude else "Their labels still count"
    name = member.annotator.shown(named=allowed(request.user, "read-names"))
    messages.success(request, f"{name} was removed. {labels}.")
    return redirect("annotations:campaign-detail", pk)


@requires("write-campaigns", of=OF_CAMPAIGN)
@require_POST
@back_on_refusal("annotations:campaign-detail")
def annotator_change(request: HttpRequest, pk: int, annotator: int) -> HttpResponse:
    """Repeat or skip the practice round, lift a stop, or exclude labels."""
    member = get_object_or_404(Membership, campaign=pk, annotator=annotator)
    match request.POST.get("do"):
        case "practise-again":
            repeat_practice(member=member)
        case "let-in":
            qualify(member=member)
        case "let-go-on":
            lift_stop(member=member, now=timezone.now())
        case "exclude":
            exclude_labels(campaign=member.campaign, annotator=member.annotator)
        case _:
            raise Http404("no such change")
    return redirect("annotations:campaign-detail", pk)


@requires("write-campaigns", of=OF_CAMPAIGN)
@require_POST
@back_on_refusal("annotations:campaign-detail")
def campaign_invite(request: HttpRequest, pk: int) -> HttpResponse:
    """Create a link to pass on, or send mails."""
    campaign = get_object_or_404(Campaign, pk=pk, imported=False)
    form, by = InvitationForm(request.POST), cast(User, request.user)
    if not form.is_valid():
        raise BadInput(" ".join(str(error) for errors in form.errors.values() for error in errors))
    data = form.cleaned_data | {"emails": form.cleaned_data["emails"].split()}
    _send(request, invitations.invite(campaign=campaign, by=by, now=timezone.now(), **data))
    return redirect(f"{reverse('annotations:campaign-detail', args=[pk])}?invite=1#invitations")


def _send(request: HttpRequest, created: Sequence[Invitation]) -> None:
    """Mail the invitations that have an address, and say what is left to do."""
    addresses = [row.email for row in created if row.email]
    if not addresses:
        messages.success(request, "The link is under Invite. Pass it on.")
    elif not mail.is_set_up():
        messages.warning(request, "Mail is not set up, so nothing was sent. Pass on the links under Invite.")
    elif unsent := [row.email for row in created if not invitations.send(row, request)]:
        messages.error(request, f"The mail to {', '.join(unsent)} could not be sent. Pass their links on yourself.")
    else:
        messages.success(request, f"{len(addresses)} mail{pluralize(len(addresses), ' was,s were')} sent.")


@requires("write-campaigns", of=OF_CAMPAIGN)
@require_POST
def invitation_revoke(request: HttpRequest, pk: int, invitation: int) -> HttpResponse:
    """Revoke a link. Those who already joined stay."""
    invitations.revoke(get_object_or_404(Invitation, pk=invitation, campaign=pk), now=timezone.now())
    messages.success(request, "The invitation was revoked.")
    return redirect("annotations:campaign-detail", pk)


@requires("read-public")
@form_page
def invitation(request: HttpRequest, token: str) -> HttpResponse:
    """The page of an invitation: join with the current account or with a new one, or from outside with an id."""
    outside_id = invitations.outside_id_in(request.GET)
    invite = invitations.find(token, now=timezone.now(), outside_id=outside_id)
    if invite is None:
        is_closed = invitations.waits(token, now=timezone.now())
        return render(request, "annotations/invitation.html", {"is_closed": is_closed}, status=404)
    if invite.outside:
        return _from_outside(request, invite, outside_id)
    person = request.user if isinstance(request.user, User) else None
    form = JoinForm(request.POST if request.method == "POST" and person is None else None)
    may_join = person is None or invitations.may_accept(person, invite)
    if request.method == "POST" and may_join and _join(request, invite, person, form):
        return redirect("annotations:work", invite.campaign_id)
    context = {"invitation": invite, "form": form, "may_join": may_join}
    return render(request, "annotations/invitation.html", context)


def _from_outside(request: HttpRequest, invite: Invitation, outside_id: str) -> HttpResponse:
    """Somebody whom Prolific or MTurk sends is signed in by their id once they press the button."""
    if request.method == "POST" and outside_id:
        try:
            person = invitations.come_from_outside(invitation=invite, outside_id=outside_id, now=timezone.now())
        except BadInput as error:
            messages.error(request, str(error))
        else:
            login(request, person)
            audit.record("sign-in", by=person, address=client_address(request))
            return redirect("annotations:work", invite.campaign_id)
    return render(request, "annotations/invitation.html", {"invitation": invite, "outside_id": outside_id})


def _join(request: HttpRequest, invite: Invitation, person: User | None, form: JoinForm) -> bool:
    """Accept an invitation as this person, or with the new account in the form, which is signed in. False, and the
    reason is said, if that cannot be.
    """
    if not (person or form.is_valid()):
        return False
    try:
        if person is None:
            person = invitations.sign_up(invitation=invite, now=timezone.now(), **form.cleaned_data)
            login(request, person)
            audit.record("sign-in", by=person, address=client_address(request))
        else:
            invitations.accept(invitation=invite, person=person, now=timezone.now())
    except BadInput as error:
        form.add_error(None, str(error)) if form.is_bound else messages.error(request, str(error))
        return False
    return True
