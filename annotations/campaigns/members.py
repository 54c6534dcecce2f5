"""Who labels in a campaign: annotators, members, and labels that are excluded."""

from collections.abc import Iterable
from datetime import datetime
from hashlib import sha256
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import rights
from accounts.models import User
from accounts.rules import allowed, where
from annotations import ballots
from annotations.assignment.errors import NotInvited
from annotations.assignment.leases import lock_membership, release_all
from annotations.campaigns.blinding import note_blind_in
from annotations.labels.actions import clean_note
from annotations.models import (
    Annotator,
    Assignment,
    Campaign,
    CampaignItem,
    Consent,
    Invitation,
    Label,
    Membership,
    new_pseudonym,
)
from bank.errors import BadInput


def make_annotator(person: User) -> Annotator:
    """The annotator of an account, created if there is none yet."""
    annotator, _made = Annotator.objects.get_or_create(
        person=person, defaults={"name": person.username, "origin": "account", "pseudonym": new_pseudonym()}
    )
    return annotator


def enter(*, person: User, **lookup: Any) -> tuple[Campaign, Annotator]:
    """A campaign (by ``id`` or ``name``) and this person's annotator in it, as a member or as somebody who may join.

    Raises NotInvited.
    """
    memberships = Membership.objects.filter(
        where(person, "label", "campaign__benchmark__"),
        annotator__person=person,
        **{f"campaign__{name}": value for name, value in lookup.items()},
    )
    member = next(iter(memberships.select_related("campaign", "annotator")), None)
    joinable = Campaign.objects.filter(where(person, "label", "benchmark__"), **lookup)
    campaign = member.campaign if member else joinable.first()
    if campaign is None or campaign.state == Campaign.State.DRAFT or campaign.protocol not in ballots.BALLOTS:
        raise NotInvited(f"{person} cannot label in any such campaign.")
    if member:
        if member.withdrawn_at:
            raise NotInvited(f"{person} was removed from {campaign}.")
        return campaign, member.annotator
    if not campaign.open_to_all or campaign.state != Campaign.State.OPEN:
        raise NotInvited(f"{person} is not a member of {campaign}.")
    return campaign, make_annotator(person)


def is_prepared(*, campaign: Campaign, annotator: Annotator) -> bool:
    """Whether they have read the guidelines, or have begun without: nobody meets the first item unprepared."""
    read = Membership.objects.filter(campaign=campaign, annotator=annotator, guidelines_read__isnull=False)
    return read.exists() or Assignment.objects.filter(campaign_item__campaign=campaign, annotator=annotator).exists()


@transaction.atomic
def mark_guidelines_read(*, campaign: Campaign, annotator: Annotator) -> None:
    """Record that they have read the guidelines as they are; who may join becomes a member. Raises NotInvited."""
    member = lock_membership(campaign=campaign, annotator=annotator)
    member.guidelines_read = campaign.guidelines_version
    member.save(update_fields=["guidelines_read"])


def digest_of(text: str) -> str:
    """By what somebody says which text they agree to: it may change while they read."""
    return sha256(text.encode()).hexdigest()


@transaction.atomic
def agree(*, campaign: Campaign, annotator: Annotator, digest: str, now: datetime) -> None:
    """Record that they agree to the campaign's text, which has this digest. Raises BadInput, NotInvited."""
    lock_membership(campaign=campaign, annotator=annotator)
    if not campaign.asks_consent_of(annotator):
        return
    if digest != digest_of(campaign.consent):
        raise BadInput(_("Read the text, and agree to it first."))
    Consent.objects.create(campaign=campaign, annotator=annotator, text=campaign.consent, at=now)


def tell_curators(*, campaign: Campaign, annotator: Annotator, text: str, now: datetime) -> None:
    """Keep a member's message about the round, in place of an earlier one. Raises BadInput, NotInvited."""
    text = clean_note(text)
    members = Membership.objects.filter(campaign=campaign, annotator=annotator, withdrawn_at__isnull=True)
    if not members.update(message=text, message_at=now if text else None):
        raise NotInvited(f"{annotator} is not a member of {campaign}.")


@transaction.atomic
def add_annotators(*, campaign: Campaign, people: Iterable[User], by: User | None = None) -> int:
    """Let these people label in the campaign; guests get the right to, for its benchmark. Returns how many are new.
    Raises BadInput for somebody who may not label there.
    """
    added = 0
    for person in people:
        rights.let_in(person=person, benchmark=campaign.benchmark.slug, by=by)
        if not allowed(person, "label", of=campaign.benchmark):
            raise BadInput(f"{person.username} is a {person.role} and cannot label.")
        member, created = Membership.objects.get_or_create(campaign=campaign, annotator=make_annotator(person))
        readmitted = Membership.objects.filter(pk=member.pk, withdrawn_at__isnull=False).update(withdrawn_at=None)
        added += created or bool(readmitted)
    return added


@transaction.atomic
def remove_annotator(
    *, campaign: Campaign, annotator: Annotator, now: datetime, exclude: bool = False, by: User | None = None
) -> int:
    """Remove an annotator and free what they hold. They cannot rejoin on their own. With their last campaign on the
    benchmark ends what an invitation gave them there.

    Their labels stay and count. With ``exclude`` the labels stay but do not count, and their slots are free for others.
    Returns how many labels were excluded.
    """
    member, _made = Membership.objects.select_for_update().get_or_create(campaign=campaign, annotator=annotator)
    release_all(campaign=campaign, annotator=annotator, now=now)
    member.withdrawn_at = now
    member.save(update_fields=["withdrawn_at"])
    slug = campaign.benchmark.slug
    others = annotator.memberships.filter(campaign__benchmark__slug=slug, withdrawn_at=None)
    if annotator.person is not None and not others.exists():
        rights.end_invited(person=annotator.person, benchmark=slug, by=by)
    return exclude_labels(campaign=campaign, annotator=annotator) if exclude else 0


@transaction.atomic
def erase_annotator(person: User) -> None:
    """Call a person's annotator by the pseudonym alone, give back what they hold, and end what invites their address.
    Their labels stay and count.
    """
    now = timezone.now()
    annotator = Annotator.objects.filter(person=person).first()
    if annotator is not None:
        for member in annotator.memberships.filter(withdrawn_at=None).select_related("campaign"):
            remove_annotator(campaign=member.campaign, annotator=annotator, now=now)
        Assignment.objects.filter(annotator=annotator, label=None).update(draft={}, draft_at=None)
        annotator.memberships.update(outside_id="")
        Annotator.objects.filter(pk=annotator.pk).update(name=annotator.pseudonym)
    if person.email:
        invited = Invitation.objects.filter(email__iexact=person.email)
        invited.filter(revoked_at=None).update(revoked_at=now)
        invited.update(email="")


@transaction.atomic
def exclude_labels(*, campaign: Campaign, annotator: Annotator) -> int:
    """Stop counting this annotator's labels and let others label those items. Returns how many labels."""
    counted = Label.objects.filter(campaign=campaign, annotator=annotator, excluded=False)
    campaign_items = list(counted.values_list("assignment__campaign_item", flat=True))
    held = Assignment.objects.filter(label__in=counted, slot__isnull=False)
    # The label keeps its assignment, and the assignment gives up its slot.
    held.update(state=Assignment.State.WITHDRAWN, slot=None)
    for pk in campaign_items:
        CampaignItem.objects.filter(pk=pk).update(taken=F("taken") - 1)
    note_blind_in(campaign)
    return Label.objects.filter(campaign=campaign, annotator=annotator, excluded=False).update(excluded=True)
