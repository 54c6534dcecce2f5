"""Invitations into a campaign: a signed link that ends, can be revoked, and lets in so many people."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from smtplib import SMTPException

from django.core import signing
from django.core.exceptions import ValidationError
from django.core.mail import send_mail
from django.core.validators import validate_email
from django.db import transaction
from django.db.models import F, Q
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.actions import make_account
from accounts.models import Role, User
from annotations.campaigns.members import add_annotators
from annotations.models import Campaign, Invitation, Membership
from bank.errors import BadInput

SALT = "annotations.invitation"

MAX_MAILS = 200


@dataclass(frozen=True, slots=True)
class OpenInvitation:
    """An invitation that still opens, with its link."""

    invitation: Invitation
    link: str


def token_of(invitation: Invitation) -> str:
    """What stands in the link: the invitation's number, signed."""
    return signing.Signer(salt=SALT).sign(str(invitation.pk))


def link_of(invitation: Invitation, request: HttpRequest) -> str:
    return request.build_absolute_uri(reverse("annotations:invitation", args=[token_of(invitation)]))


def find(token: str, *, now: datetime) -> Invitation | None:
    """The invitation behind a link; None for one that was forged, revoked, used up or is over."""
    try:
        pk = signing.Signer(salt=SALT).unsign(token)
    except signing.BadSignature:
        return None
    return _usable(now).filter(pk=pk).select_related("campaign__benchmark").first()


def _usable(now: datetime):  # type: ignore[no-untyped-def]
    room = Q(most__isnull=True) | Q(used__lt=F("most"))
    closed = Q(campaign__state=Campaign.State.CLOSED) | Q(campaign__imported=True)
    return Invitation.objects.filter(room, revoked_at__isnull=True, expires_at__gt=now).exclude(closed)


def open_invitations(campaign: Campaign, request: HttpRequest) -> list[OpenInvitation]:
    found = _usable(timezone.now()).filter(campaign=campaign).select_related("by")
    return [OpenInvitation(invitation, link_of(invitation, request)) for invitation in found]


@transaction.atomic
def invite(
    *, campaign: Campaign, by: User, days: int, now: datetime, most: int | None = None, emails: Sequence[str] = ()
) -> list[Invitation]:
    """One invitation for each address, each for one person; without addresses one to pass on. Raises BadInput."""
    if len(emails) > MAX_MAILS:
        raise BadInput(f"At most {MAX_MAILS} mails at once.")
    for email in emails:
        try:
            validate_email(email)
        except ValidationError:
            raise BadInput(f"{email[:100]!r} is no e-mail address.") from None
    until = now + timedelta(days=days)
    made = [("", most)] if not emails else [(email, 1) for email in dict.fromkeys(emails)]
    return [
        Invitation.objects.create(campaign=campaign, by=by, created_at=now, expires_at=until, email=email, most=people)
        for email, people in made
    ]


def send(invitation: Invitation, request: HttpRequest) -> bool:
    """Send the mail of an invitation; whether it went off."""
    until = timezone.localtime(invitation.expires_at)
    text = (
        f"{invitation.by.get_full_name() or invitation.by.username} invites you to label answers in "
        f"“{invitation.campaign.name}”.\n\n{link_of(invitation, request)}\n\n"
        f"The link is for you alone and works until {until:%d %B %Y, %H:%M} {until.tzname()}."
    )
    try:
        return bool(send_mail(f"Label answers in {invitation.campaign.name}", text, None, [invitation.email]))
    except (OSError, SMTPException):
        return False


def revoke(invitation: Invitation, *, now: datetime) -> None:
    Invitation.objects.filter(pk=invitation.pk, revoked_at__isnull=True).update(revoked_at=now)


@transaction.atomic
def accept(*, invitation: Invitation, person: User, now: datetime) -> None:
    """Make somebody a member by an invitation; who is one already uses nothing up. Raises BadInput."""
    here = Membership.objects.filter(campaign=invitation.campaign_id, annotator__person=person)
    member = here.first()
    if member and member.withdrawn_at:
        raise BadInput(_("You were taken out of this campaign. Ask the curator who invited you."))
    if member:
        return
    # The one condition that decides is in the update itself.
    if not _usable(now).filter(pk=invitation.pk).update(used=F("used") + 1):
        raise BadInput(_("This invitation is used up or over. Ask for another one."))
    add_annotators(campaign=invitation.campaign, people=[person])


@transaction.atomic
def sign_up(*, invitation: Invitation, username: str, password: str, now: datetime) -> User:
    """A new account of an annotator, in the campaign. Raises BadInput."""
    try:
        person, _password = make_account(
            name=username.strip(), role=Role.ANNOTATOR, password=password, email=invitation.email, how="invitation"
        )
    except ValidationError as error:
        raise BadInput(" ".join(error.messages)) from None
    accept(invitation=invitation, person=person, now=now)
    return person
