"""Who holds what: exact assignment on SQLite and PostgreSQL.

A slot of a campaign item is taken by a conditional update (``taken < overlap``); two unique constraints, one holder a
slot and one assignment an item and annotator, hold even if this code were wrong. What one annotator does is put in a
row by locking their membership; on SQLite the transaction (IMMEDIATE) does that by itself. The statements of every step
are in ``slots``.
"""

import hashlib
import random
from datetime import UTC, datetime, timedelta

from django.db import transaction
from django.db.models import Exists, F, OuterRef, QuerySet

from annotations.assignment import quality, slots
from annotations.assignment.errors import (
    AlreadyLabelled,
    CampaignNotOpen,
    DayIsFull,
    NotInvited,
    PracticeFailed,
    Stopped,
)
from annotations.models import Annotator, Assignment, Campaign, CampaignItem, Label, Membership
from bank.models import Item, ItemResponse
from judging.models import Judgment

LEASED, SUBMITTED = Assignment.State.LEASED, Assignment.State.SUBMITTED

SKIPPED, EXPIRED = Assignment.State.SKIPPED, Assignment.State.EXPIRED

GIVEN = (SUBMITTED, Assignment.State.WITHDRAWN)  # there is a label

AT_MOST = 2  # open assignments of one annotator in a campaign: the one at hand and the next


def next_assignment(
    *, campaign: Campaign, annotator: Annotator, now: datetime, prefetch: bool = False
) -> Assignment | None:
    """The annotator's open assignment, or a new one; None when nothing is left for them.

    ``prefetch`` leases one more beside the open one, and answers it. Practice comes first, one item at a time. Then
    whatever ran out (it may hold a draft), hidden gold where it is due, fresh items in the campaign's order, and last
    what this annotator skipped, oldest first. Items of samples that were withdrawn are left out. What comes back has
    its item, sample, campaign and annotator loaded.
    Raises NotInvited, CampaignNotOpen, Stopped, PracticeFailed, DayIsFull.
    """
    release_expired(now=now)
    with transaction.atomic():
        member = lock(campaign=campaign, annotator=annotator)
        begun = slots.begun(campaign, annotator)
        open_ones = [had.pk for had in begun if had.state == LEASED]
        if open_ones and not prefetch:
            return _loaded(open_ones[0], campaign, annotator)
        if len(open_ones) >= AT_MOST:
            return _loaded(open_ones[1], campaign, annotator)
        if campaign.state != Campaign.State.OPEN:
            raise CampaignNotOpen(campaign.state)
        if member.stopped_at:
            raise Stopped
        practice = quality.has_practice(campaign) and not member.qualified
        if practice and member.qualified is False:
            raise PracticeFailed
        if practice and open_ones:
            return None  # the feedback comes first
        if not practice:
            _within_the_day(campaign, annotator, len(open_ones), now)
        # What was begun in practice stays there when somebody is let in by hand.
        begun = [had for had in begun if had.practice == practice]
        return (
            _lease_again([had for had in begun if had.state == EXPIRED], campaign, annotator, now)
            or _lease_fresh(campaign, annotator, now, practice=practice)
            or _lease_again([had for had in begun if had.state == SKIPPED], campaign, annotator, now)
        )


def skip(*, assignment: Assignment, now: datetime) -> datetime | None:
    """Give the item back; it returns to this annotator last. Twice is once.

    Answers when the time for the item leased ahead ends. Raises AlreadyLabelled, NotInvited.
    """
    with transaction.atomic():
        campaign = assignment.campaign_item.campaign
        lock(campaign=campaign, annotator=assignment.annotator)
        assignment.refresh_from_db(fields=["state", "draft"])
        if assignment.state in GIVEN:
            raise AlreadyLabelled
        _release(assignment.pk, assignment.campaign_item_id, now=now, state=SKIPPED)
        Assignment.objects.filter(pk=assignment.pk, state=EXPIRED).update(state=SKIPPED, lease_until=now)
        Assignment.objects.filter(pk=assignment.pk).update(draft=assignment.draft | {"skipped": True})
        return start_time_of_next(campaign=campaign, annotator=assignment.annotator, now=now)


def release_expired(*, now: datetime) -> int:
    """Free the slots whose lease ran out, in every campaign; how many."""
    freed = 0
    for pk, item_id in slots.run_out(now):
        with transaction.atomic():
            freed += _release(pk, item_id, now=now, state=EXPIRED, only_before=now)
    return freed


def release_all(*, campaign: Campaign, now: datetime, annotator: Annotator | None = None) -> None:
    """Free every lease of the campaign, or of one annotator in it."""
    leased = Assignment.objects.filter(state=LEASED, campaign_item__campaign=campaign)
    if annotator is not None:
        leased = leased.filter(annotator=annotator)
    for pk, item_id in leased.values_list("pk", "campaign_item_id"):
        _release(pk, item_id, now=now, state=EXPIRED)


def lock(*, campaign: Campaign, annotator: Annotator) -> Membership:
    """Make this annotator's requests wait for one another; their membership as it is now. Raises NotInvited."""
    member = Membership.objects.select_for_update(no_key=True).filter(campaign=campaign, annotator=annotator).first()
    if member is None:
        if not campaign.open_to_all or campaign.state != Campaign.State.OPEN:
            raise NotInvited(f"{annotator} is no member of {campaign}.")
        Campaign.objects.select_for_update(no_key=True).get(pk=campaign.pk)  # see wait_for_annotators
        Membership.objects.get_or_create(campaign=campaign, annotator=annotator)
        return lock(campaign=campaign, annotator=annotator)
    if member.withdrawn_at:
        raise NotInvited(f"{annotator} was taken out of {campaign}.")
    return member


def wait_for_annotators(campaign: Campaign) -> Campaign:
    """Lock the campaign, and what its annotators lock to take or fill a slot; the campaign as it is now.

    What was begun is stored by then, and counted by whoever looks; what begins waits for the end of the transaction.
    """
    now = Campaign.objects.select_for_update(no_key=True).get(pk=campaign.pk)
    members = Membership.objects.select_for_update().filter(campaign=campaign, withdrawn_at=None)
    list(members.order_by("pk").values_list("pk"))
    return now


def take_slot(*, item_id: int, endless: bool) -> int | None:
    """The number of a slot that is now ours, or None when all are held; ``endless``: there is always one more."""
    free = CampaignItem.objects.filter(pk=item_id)
    if not endless:  # the overlap as it is now, which may be less than when the campaign was read
        free = free.filter(taken__lt=Campaign.objects.filter(pk=OuterRef("campaign")).values("overlap"))
    return slots.free_slot(item_id) if free.update(taken=F("taken") + 1) else None


def start_time_of_next(*, campaign: Campaign, annotator: Annotator, now: datetime) -> datetime | None:
    """The assignment that was leased ahead is at hand now: its time starts. When it ends; None without one."""
    until = lease_end(campaign=campaign, now=now)
    return until if slots.restart(campaign, annotator, now=now, until=until) else None


def lease_end(*, campaign: Campaign, now: datetime) -> datetime:
    """When a lease that starts now is over."""
    return now + timedelta(minutes=campaign.lease_minutes)


def presented_order(*, seed: int, item_id: int, annotator_id: int, size: int) -> str:
    """Canonical positions in the order this annotator sees them: random over annotators, the same at every look."""
    digest = hashlib.sha256(f"{seed}:{item_id}:{annotator_id}".encode()).digest()
    order = list(range(max(size, 1)))
    random.Random(digest).shuffle(order)
    return "".join(map(str, order))


def _release(pk: int, item_id: int, *, now: datetime, state: str, only_before: datetime | None = None) -> int:
    held = Assignment.objects.filter(pk=pk, state=LEASED)
    if only_before is not None:
        held = held.filter(lease_until__lt=only_before)
    freed = held.update(state=state, slot=None, lease_until=now)
    if freed:
        CampaignItem.objects.filter(pk=item_id).update(taken=F("taken") - 1)
    return freed


def _loaded(pk: int, campaign: Campaign, annotator: Annotator) -> Assignment:
    found = Assignment.objects.select_related("campaign_item__item__sample").get(pk=pk)
    found.campaign_item.campaign, found.annotator = campaign, annotator
    return found


def _lease_fresh(
    campaign: Campaign, annotator: Annotator, now: datetime, *, practice: bool = False
) -> Assignment | None:
    place = _take_fresh(campaign, annotator, practice=practice)
    if place is None:
        return None
    place.campaign = campaign
    place.item = Item.objects.select_related("sample").get(pk=place.item_id)
    return Assignment.objects.create(
        campaign_item=place,
        annotator=annotator,
        order=_order(campaign, place, annotator),
        slot=slots.free_slot(place.pk),
        leased_at=now,
        lease_until=lease_end(campaign=campaign, now=now),
    )


def _take_fresh(campaign: Campaign, annotator: Annotator, *, practice: bool) -> CampaignItem | None:
    """Take a slot of an item that is new to this annotator."""
    if practice:
        return _take_any(_unseen(campaign, annotator).filter(practice=True).order_by("position"))
    gold = None
    if campaign.gold_rate and quality.gold_is_due(campaign, annotator):
        unseen = _unseen(campaign, annotator).filter(practice=False, gold__isnull=False)
        gold = _take_any(quality.of_annotator(unseen, campaign, annotator))
    return gold or slots.take_first(campaign, annotator)


def _unseen(campaign: Campaign, annotator: Annotator) -> "QuerySet[CampaignItem]":
    seen = Assignment.objects.filter(campaign_item=OuterRef("pk"), annotator=annotator)
    return CampaignItem.objects.given_out().filter(~Exists(seen), campaign=campaign)


def _take_any(candidates: "QuerySet[CampaignItem]") -> CampaignItem | None:
    """The first of items whose slots are without limit."""
    place = candidates.first()
    if place is not None:
        CampaignItem.objects.filter(pk=place.pk).update(taken=F("taken") + 1)
    return place


def _within_the_day(campaign: Campaign, annotator: Annotator, open_ones: int, now: datetime) -> None:
    """Raise DayIsFull when what was labelled today and what is open make up the day's cap."""
    if campaign.daily_cap is None:
        return
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    today = Label.objects.filter(campaign=campaign, annotator=annotator, created_at__gte=midnight)
    today = today.exclude(assignment__campaign_item__practice=True)
    if today.count() + open_ones >= campaign.daily_cap:
        raise DayIsFull(campaign.daily_cap)


def _order(campaign: Campaign, place: CampaignItem, annotator: Annotator) -> str:
    """A judge's analysis speaks of the answers in the order it saw them, so its reviewers see the same."""
    item = place.item
    if place.reviewed_id is not None:
        return Judgment.objects.values_list("order", flat=True).get(pk=place.reviewed_id)
    size = 2 if item.kind == Item.Kind.PAIR else ItemResponse.objects.filter(item=item).count()
    return presented_order(seed=campaign.seed, item_id=item.pk, annotator_id=annotator.pk, size=size)


def _lease_again(had: list[slots.Begun], campaign: Campaign, annotator: Annotator, now: datetime) -> Assignment | None:
    """Lease one of these again: the oldest that has a slot left."""
    for begun in had:
        if not begun.endless and begun.taken >= campaign.overlap:
            continue
        slot = take_slot(item_id=begun.item_id, endless=begun.endless)
        if slot is not None:
            until = lease_end(campaign=campaign, now=now)
            again = Assignment.objects.filter(pk=begun.pk)
            again.update(state=LEASED, slot=slot, leased_at=now, lease_until=until)
            return _loaded(begun.pk, campaign, annotator)
    return None
