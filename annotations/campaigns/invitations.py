"""Invitations to a campaign: a signed link that expires, can be revoked, and admits a limited number of people.

Whoever makes an account by one is a guest: the role gives nothing, and a grant lets them label in this benchmark alone
(ADR 42). It works as long as whoever made it may run the campaign.

A link for people from outside, of Prolific or MTurk, takes who they are from the address: whoever has the link and the
id of one of them is taken for that person. So it opens only accounts of guests without a password, who can only label.
"""

import re
import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from smtplib import SMTPException

from django.conf import settings
from django.core import signing
from django.core.exceptions import ValidationError
from django.core.mail import send_mail
from django.core.validators import validate_email
from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import override

from accounts.actions import make_account
from accounts.models import Role, User
from accounts.rules import allowed, granted
from annotations.campaigns.members import add_annotators
from annotations.models import Campaign, Invitation, Membership
from bank.errors import BadInput

SALT = "annotations.invitation"

MAX_MAILS = 200
OUTSIDE_IDS = ("PROLIFIC_PID", "workerId")  # parameters of the address
OUTSIDE_ID = re.compile(r"[A-Za-z0-9_-]{4,64}")


def token_of(invitation: Invitation) -> str:
    """The token in the link: the invitation's id, signed."""
    return signing.Signer(salt=SALT).sign(str(invitation.pk))


def link_of(invitation: Invitation, request: HttpRequest) -> str:
    return request.build_absolute_uri(reverse("annotations:invitation", args=[token_of(invitation)]))


def find(token: str, *, now: datetime, outside_id: str = "") -> Invitation | None:
    """The invitation of a link. None if it was forged, revoked, used up or has expired, or the campaign is closed. Who
    came by it from outside comes again when it is used up.
    """
    usable = _usable(now, outside_id).filter(pk=_key_of(token))
    found = usable.select_related("campaign__benchmark", "by").first()
    if found is None or _is_backed(found):
        return found
    known = Membership.objects.filter(campaign=found.campaign_id, outside_id=outside_id)
    return found if outside_id and known.exists() else None


def outside_id_in(parameters: Mapping[str, str]) -> str:
    """How Prolific or MTurk calls somebody, of the address's parameters; "" if they do not say."""
    found = next((parameters[name] for name in OUTSIDE_IDS if name in parameters), "")
    return found if OUTSIDE_ID.fullmatch(found) else ""


def waits(token: str, *, now: datetime) -> bool:
    """Whether the invitation of a link works again as soon as its campaign is opened again."""
    return _valid(now).filter(pk=_key_of(token), campaign__state=Campaign.State.CLOSED).exists()


def _key_of(token: str) -> str:
    """The id in a token; of a forged one that of no invitation."""
    try:
        return signing.Signer(salt=SALT).unsign(token)
    except signing.BadSignature:
        return "0"


def _valid(now: datetime, outside_id: str = "") -> "QuerySet[Invitation]":
    room = Q(most__isnull=True) | Q(used__lt=F("most"))
    if outside_id:
        known = Membership.objects.filter(campaign=OuterRef("campaign"), outside_id=outside_id)
        room |= Q(Exists(known), outside=True)
    return Invitation.objects.filter(room, revoked_at__isnull=True, expires_at__gt=now, campaign__imported=False)


def _usable(now: datetime, outside_id: str = "") -> "QuerySet[Invitation]":
    return _valid(now, outside_id).exclude(campaign__state=Campaign.State.CLOSED)


def _is_backed(invitation: Invitation) -> bool:
    """Whether whoever made it may still let people in: what was granted and ended is not handed on."""
    return allowed(invitation.by, "write-campaigns", of=invitation.campaign.benchmark)


def open_invitations(campaign: Campaign, request: HttpRequest) -> list[tuple[Invitation, str]]:
    """The invitations that still work, each with its link."""
    usable = _usable(timezone.now()).filter(campaign=campaign).select_related("by", "campaign__benchmark")
    return [(invitation, link_of(invitation, request)) for invitation in usable if _is_backed(invitation)]


@transaction.atomic
def invite(
    *,
    campaign: Campaign,
    by: User,
    days: int,
    now: datetime,
    most: int | None = None,
    emails: Sequence[str] = (),
    outside: bool = False,
) -> list[Invitation]:
    """One invitation per address, each for one person; without addresses one to pass on, ``outside`` to Prolific or
    MTurk. Raises BadInput.
    """
    if outside and (emails or not most):
        raise BadInput("A link for people from outside says how many may come, and goes to no address.")
    if len(emails) > MAX_MAILS:
        raise BadInput(f"Send at most {MAX_MAILS} mails at once.")
    for email in emails:
        try:
            validate_email(email)
        except ValidationError:
            raise BadInput(f"{email[:100]!r} is not an e-mail address.") from None
    until = now + timedelta(days=days)
    recipients = [("", most)] if not emails else [(email, 1) for email in dict.fromkeys(emails)]
    return [
        Invitation.objects.create(
            campaign=campaign, by=by, created_at=now, expires_at=until, email=email, most=people, outside=outside
        )
        for email, people in recipients
    ]


def send(invitation: Invitation, request: HttpRequest) -> bool:
    """Send an invitation by mail, in every language: nobody knows which one they read. Returns whether it was sent."""
    by, campaign = invitation.by.get_full_name() or invitation.by.username, invitation.campaign.name
    paragraphs = []
    for language, _name in settings.LANGUAGES:
        with override(language):
            until = date_format(timezone.localtime(invitation.expires_at), "DATETIME_FORMAT")
            words = _("{person} invites you to label answers in “{campaign}”. The link is yours alone, until {until}.")
            paragraphs.append(words.format(person=by, campaign=campaign, until=until))
    text = "\n\n".join([paragraphs[0], link_of(invitation, request), *paragraphs[1:]])
    try:
        return bool(send_mail(f"Label answers in {campaign}", text, None, [invitation.email]))
    except (OSError, SMTPException):
        return False


def revoke(invitation: Invitation, *, now: datetime) -> None:
    Invitation.objects.filter(pk=invitation.pk, revoked_at__isnull=True).update(revoked_at=now)


def may_accept(person: User, invitation: Invitation) -> bool:
    """Whether somebody who has an account may label where the invitation leads; guests may once they accept it."""
    return person.role == Role.GUEST or allowed(person, "label", of=invitation.campaign.benchmark)


@transaction.atomic
def accept(*, invitation: Invitation, person: User, now: datetime) -> None:
    """Make somebody a member through an invitation; a guest may label in its benchmark from then on. Members do not use
    it up. Raises BadInput.
    """
    member = Membership.objects.filter(campaign=invitation.campaign_id, annotator__person=person).first()
    if member and member.withdrawn_at:
        raise BadInput(_("You were removed from this campaign. Ask the curator who invited you."))
    if member:
        return
    # The update checks and counts in one step, so two people cannot take the last place.
    if not _usable(now).filter(pk=invitation.pk).update(used=F("used") + 1):
        raise BadInput(_("This invitation has been used up or has expired. Ask for a new one."))
    add_annotators(campaign=invitation.campaign, people=[person], by=invitation.by)


@transaction.atomic
def sign_up(*, invitation: Invitation, username: str, password: str, now: datetime) -> User:
    """Make a guest's account through an invitation, as a member of the campaign. Raises BadInput."""
    try:
        person, _password = make_account(
            name=username.strip(), role=Role.GUEST, password=password, email=invitation.email, how="invitation"
        )
    except ValidationError as error:
        raise BadInput(" ".join(error.messages)) from None
    accept(invitation=invitation, person=person, now=now)
    return person


@transaction.atomic
def come_from_outside(*, invitation: Invitation, outside_id: str, now: datetime) -> User:
    """The account of a person from outside, made when they come first: it has no password. Raises BadInput."""
    Invitation.objects.select_for_update().get(pk=invitation.pk)  # twice at once is one person
    member = Membership.objects.filter(campaign=invitation.campaign_id, outside_id=outside_id).first()
    if member is None:
        name = f"guest-{secrets.token_hex(5)}"
        person, _password = make_account(name=name, role=Role.GUEST, no_password=True, how="invitation")
        accept(invitation=invitation, person=person, now=now)
        members = Membership.objects.filter(campaign=invitation.campaign_id, annotator__person=person)
        members.update(outside_id=outside_id)
        return person
    found = User.objects.filter(annotator=member.annotator_id, is_active=True, role=Role.GUEST).first()
    if member.withdrawn_at or found is None or found.has_usable_password() or granted(found, "write-campaigns"):
        raise BadInput(_("You were removed from this campaign. Ask the curator who invited you."))
    return found
