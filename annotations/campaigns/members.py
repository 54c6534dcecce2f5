"""Campaigns: made, opened, paused, closed; who belongs to them."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F

from accounts.models import User
from accounts.rules import RULES
from annotations.assignment.errors import NotInvited
from annotations.assignment.leases import release_all
from annotations.models import Annotator, Assignment, Campaign, CampaignItem, Label, Membership, new_pseudonym
from bank.errors import BadInput

MAY_LABEL = RULES["label"]


def make_annotator(person: User) -> Annotator:
    """The annotator behind an account, made when there is none yet."""
    annotator, _ = Annotator.objects.get_or_create(
        person=person, defaults={"name": person.username, "origin": "account", "pseudonym": new_pseudonym()}
    )
    return annotator


def enter(*, person: User, **campaign: Any) -> tuple[Campaign, Annotator]:
    """A campaign (by ``id`` or ``name``) and this person as an annotator in it: a member, or somebody who may join.

    Raises NotInvited.
    """
    of_campaign = {f"campaign__{name}": value for name, value in campaign.items()}
    members = Membership.objects.filter(annotator__person=person, **of_campaign)
    member = next(iter(members.select_related("campaign", "annotator")), None)
    found = member.campaign if member else Campaign.objects.filter(**campaign).first()
    if found is None or found.state == Campaign.State.DRAFT:
        raise NotInvited(f"{person} labels in no such campaign.")
    if member:
        if member.withdrawn_at:
            raise NotInvited(f"{person} was taken out of {found}.")
        return found, member.annotator
    if not found.open_to_all or found.state != Campaign.State.OPEN:
        raise NotInvited(f"{person} is no member of {found}.")
    return found, make_annotator(person)


@transaction.atomic
def add_annotators(*, campaign: Campaign, people: Iterable[User]) -> int:
    """Let these people label in the campaign; how many are new to it. Raises BadInput for a role that cannot label."""
    added = 0
    for person in people:
        if person.role not in MAY_LABEL:
            raise BadInput(f"{person.username} is a {person.role} and cannot label.")
        member, fresh = Membership.objects.get_or_create(campaign=campaign, annotator=make_annotator(person))
        back = Membership.objects.filter(pk=member.pk, withdrawn_at__isnull=False).update(withdrawn_at=None)
        added += fresh or bool(back)
    return added


@transaction.atomic
def remove_annotator(*, campaign: Campaign, annotator: Annotator, now: datetime, exclude: bool = False) -> int:
    """Take somebody out: what they hold is free again, and they cannot come back by asking.

    Their labels stay and count; with ``exclude`` they stay, count nowhere, and their slots are free for others.
    How many labels were excluded.
    """
    member, _ = Membership.objects.select_for_update().get_or_create(campaign=campaign, annotator=annotator)
    release_all(campaign=campaign, annotator=annotator, now=now)
    member.withdrawn_at = now
    member.save(update_fields=["withdrawn_at"])
    return exclude_labels(campaign=campaign, annotator=annotator) if exclude else 0


@transaction.atomic
def exclude_labels(*, campaign: Campaign, annotator: Annotator) -> int:
    """Count this annotator's labels of the campaign no more, and let others label those items; how many."""
    counted = Label.objects.filter(campaign=campaign, annotator=annotator, excluded=False)
    places = list(counted.values_list("assignment__campaign_item", flat=True))
    held = Assignment.objects.filter(label__in=counted, slot__isnull=False)
    # The label keeps its assignment, which gives its slot back.
    held.update(state=Assignment.State.WITHDRAWN, slot=None)
    for place in places:
        CampaignItem.objects.filter(pk=place).update(taken=F("taken") - 1)
    return Label.objects.filter(campaign=campaign, annotator=annotator, excluded=False).update(excluded=True)
