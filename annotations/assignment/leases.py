"""Which annotator holds which item: exact on SQLite and PostgreSQL.

A conditional update (``taken < overlap``) takes a slot of a campaign item. Two unique constraints back it up: one
holder per slot, and one assignment per item and annotator. Requests of the same annotator are serialized by locking
their membership; on SQLite the transaction itself (IMMEDIATE) does that. The SQL of every step is in ``slots``.
"""

import random
from datetime import UTC, datetime, timedelta

from django.db import transaction
from django.db.models import Exists, F, OuterRef, QuerySet
from django.urls import reverse
from django.utils.translation import gettext as _

from accounts import notices
from accounts.installation_key import keyed
from annotations.assignment import quality, slots
from annotations.assignment.errors import (
    AlreadyLabelled,
    CampaignNotOpen,
    ConsentNeeded,
    DayIsFull,
    NotInvited,
    PracticeFailed,
    SlotTaken,
    Stopped,
)
from annotations.campaigns.announcements import announce_campaign
from annotations.models import Annotator, Assignment, Campaign, CampaignItem, Label, Membership
from bank import guard
from bank.models import Item, ItemResponse
from judging.models import Judgment

LEASED, SUBMITTED = Assignment.State.LEASED, Assignment.State.SUBMITTED
SKIPPED, EXPIRED = Assignment.State.SKIPPED, Assignment.State.EXPIRED
LABELLED = (SUBMITTED, Assignment.State.WITHDRAWN)  # states with a label
MAX_OPEN = 2  # open assignments per annotator and campaign: the current one and the prefetched one


@guard.working()
def next_assignment(
    *, campaign: Campaign, annotator: Annotator, now: datetime, prefetch: bool = False
) -> Assignment | None:
    """The annotator's open assignment, or a new one. None when there is nothing left for them.

    With ``prefetch``, leases one more in addition to the open one and returns that. The order is: practice items, one
    at a time; expired assignments, which may have a draft; hidden gold and decoys where they are due; new items in the
    campaign's order; skipped items, oldest first. Items of withdrawn samples are left out. The result has its item,
    sample, campaign and annotator loaded.
    Raises NotInvited, ConsentNeeded, CampaignNotOpen, Stopped, PracticeFailed, DayIsFull.
    """
    release_expired(now=now)
    with transaction.atomic():
        member = lock_membership(campaign=campaign, annotator=annotator)
        if campaign.state in Campaign.GOING and campaign.asks_consent_of(annotator):
            raise ConsentNeeded
        unfinished = slots.unfinished(campaign, annotator)
        leased = [assignment.pk for assignment in unfinished if assignment.state == LEASED]
        if leased and not prefetch:
            return _with_related(leased[0], campaign, annotator)
        if len(leased) >= MAX_OPEN:
            return _with_related(leased[1], campaign, annotator)
        if campaign.state != Campaign.State.OPEN:
            raise CampaignNotOpen(campaign.state)
        if member.stopped_at:
            raise Stopped
        practice = quality.has_practice(campaign) and not member.qualified
        if practice and member.qualified is False:
            raise PracticeFailed
        if practice and leased:
            return None  # they see the feedback on the open item first
        if not practice:
            _check_daily_cap(campaign, annotator, len(leased), now)
            if campaign.share is not None and _labels_of(campaign, annotator).count() + len(leased) >= campaign.share:
                return None
        # After the practice round, unfinished practice items are not handed out again.
        unfinished = [assignment for assignment in unfinished if assignment.practice == practice]
        assignment = (
            _lease_again([a for a in unfinished if a.state == EXPIRED], campaign, annotator, now)
            or _lease_new(campaign, annotator, now, practice=practice)
            or _lease_again([a for a in unfinished if a.state == SKIPPED], campaign, annotator, now)
        )
        if assignment is None and not leased:
            _tell_if_complete(campaign)
        return assignment


def _tell_if_complete(campaign: Campaign) -> None:
    """Tell whoever made the campaign, and webhooks, that every item has its labels; once for the items that it has."""
    if not Campaign.objects.complete().filter(pk=campaign.pk).exists():
        return
    announce_campaign("campaign.finished", campaign, key=f"{campaign.pk}:{campaign.campaign_items.count()}")
    if campaign.by is None:
        return
    key = f"campaign-{campaign.pk}-complete-{campaign.campaign_items.count()}"
    text = f"{campaign.name} is complete: every item has its labels. Closing it opens its rows."
    notices.tell(campaign.by, key=key, text=text, link=reverse("annotations:campaign-detail", args=[campaign.pk]))


@guard.working()
def skip(*, assignment: Assignment, now: datetime) -> datetime | None:
    """Give the item back; this annotator gets it again at the end. Skipping twice changes nothing.

    Returns when the lease of the prefetched item ends. Raises AlreadyLabelled, NotInvited.
    """
    with transaction.atomic():
        campaign = assignment.campaign_item.campaign
        lock_membership(campaign=campaign, annotator=assignment.annotator)
        assignment.refresh_from_db(fields=["state", "draft"])
        if assignment.state in LABELLED:
            raise AlreadyLabelled
        _release(assignment.pk, assignment.campaign_item_id, now=now, state=SKIPPED)
        Assignment.objects.filter(pk=assignment.pk, state=EXPIRED).update(state=SKIPPED, lease_until=now)
        Assignment.objects.filter(pk=assignment.pk).update(draft=assignment.draft | {"skipped": True})
        return start_next_lease(campaign=campaign, annotator=assignment.annotator, now=now)


@guard.working()
def take_back(*, assignment: Assignment, now: datetime) -> None:
    """Undo a skip: the item is theirs again, before the prefetched one and with a whole lease.

    Raises AlreadyLabelled, CampaignNotOpen, DayIsFull, NotInvited, SlotTaken, Stopped.
    """
    with transaction.atomic():
        campaign, annotator = assignment.campaign_item.campaign, assignment.annotator
        member = lock_membership(campaign=campaign, annotator=annotator)
        assignment.refresh_from_db(fields=["state", "draft", "leased_at"])
        if assignment.state in LABELLED:
            raise AlreadyLabelled
        if campaign.state != Campaign.State.OPEN:
            raise CampaignNotOpen(campaign.state)
        if member.stopped_at:
            raise Stopped
        if assignment.state != LEASED:
            unfinished = slots.unfinished(campaign, annotator)
            held = [each for each in unfinished if each.state == LEASED]
            if len(held) >= MAX_OPEN:
                last = held.pop()
                _release(last.pk, last.campaign_item_id, now=now, state=EXPIRED)
            if not assignment.campaign_item.practice:
                _check_daily_cap(campaign, annotator, len(held), now)
            if (
                _lease_again([each for each in unfinished if each.pk == assignment.pk], campaign, annotator, now)
                is None
            ):
                raise SlotTaken(_("Another annotator has taken this item meanwhile."))
        draft = {name: value for name, value in assignment.draft.items() if name != "skipped"}
        Assignment.objects.filter(pk=assignment.pk).update(
            leased_at=assignment.leased_at,  # earlier than that of the items they hold: it comes first
            lease_until=lease_end(campaign=campaign, now=now),
            draft=draft,
        )


def release_expired(*, now: datetime) -> int:
    """Free the slots of expired leases in every campaign. Returns how many."""
    freed = 0
    for pk, campaign_item_id in slots.expired_leases(now):
        with transaction.atomic():
            freed += _release(pk, campaign_item_id, now=now, state=EXPIRED, only_before=now)
    return freed


def release_all(*, campaign: Campaign, now: datetime, annotator: Annotator | None = None) -> None:
    """Free every lease of the campaign, or of one annotator in it."""
    leased = Assignment.objects.filter(state=LEASED, campaign_item__campaign=campaign)
    if annotator is not None:
        leased = leased.filter(annotator=annotator)
    for pk, campaign_item_id in leased.values_list("pk", "campaign_item_id"):
        _release(pk, campaign_item_id, now=now, state=EXPIRED)


def lock_membership(*, campaign: Campaign, annotator: Annotator) -> Membership:
    """Lock the annotator's membership, so that their requests run one after another. Raises NotInvited."""
    member = Membership.objects.select_for_update(no_key=True).filter(campaign=campaign, annotator=annotator).first()
    if member is None:
        if not campaign.open_to_all or campaign.state != Campaign.State.OPEN:
            raise NotInvited(f"{annotator} is not a member of {campaign}.")
        Campaign.objects.select_for_update(no_key=True).get(pk=campaign.pk)  # see wait_for_annotators
        Membership.objects.get_or_create(campaign=campaign, annotator=annotator)
        return lock_membership(campaign=campaign, annotator=annotator)
    if member.withdrawn_at:
        raise NotInvited(f"{annotator} was removed from {campaign}.")
    return member


def wait_for_annotators(campaign: Campaign) -> Campaign:
    """Lock the campaign and all its memberships, and return the campaign as it is now.

    Whatever annotators had started is stored by then; new requests wait until the transaction ends.
    """
    current = Campaign.objects.select_for_update(no_key=True).get(pk=campaign.pk)
    members = Membership.objects.select_for_update().filter(campaign=campaign, withdrawn_at=None)
    list(members.order_by("pk").values_list("pk"))
    return current


def take_slot(*, campaign_item_id: int, unlimited: bool) -> int | None:
    """Take a slot and return its number, or None if all are held. ``unlimited`` items always have a free one."""
    campaign_item = CampaignItem.objects.filter(pk=campaign_item_id)
    if not unlimited:  # compare with the current overlap, which may have shrunk since the campaign was loaded
        overlap = Campaign.objects.filter(pk=OuterRef("campaign")).values("overlap")
        campaign_item = campaign_item.filter(taken__lt=overlap)
    return slots.free_slot(campaign_item_id) if campaign_item.update(taken=F("taken") + 1) else None


def start_next_lease(*, campaign: Campaign, annotator: Annotator, now: datetime) -> datetime | None:
    """Restart the lease of the prefetched item, which is the current one now. Returns its end, None without one."""
    until = lease_end(campaign=campaign, now=now)
    return until if slots.restart_leases(campaign, annotator, now=now, until=until) else None


def lease_end(*, campaign: Campaign, now: datetime) -> datetime:
    """When a lease that starts now ends."""
    return now + timedelta(minutes=campaign.lease_minutes)


def presented_order(*, seed: int, item_id: int, annotator_id: int, size: int) -> str:
    """Canonical positions in presented order: random across annotators, always the same for one annotator. Drawn with
    the installation's key: nobody can work it out from the seed.
    """
    order = list(range(max(size, 1)))
    random.Random(keyed("presented", f"{seed}:{item_id}:{annotator_id}")).shuffle(order)
    return "".join(map(str, order))


def _release(pk: int, campaign_item_id: int, *, now: datetime, state: str, only_before: datetime | None = None) -> int:
    leased = Assignment.objects.filter(pk=pk, state=LEASED)
    if only_before is not None:
        leased = leased.filter(lease_until__lt=only_before)
    freed = leased.update(state=state, slot=None, lease_until=now)
    if freed:
        CampaignItem.objects.filter(pk=campaign_item_id).update(taken=F("taken") - 1)
    return freed


def _with_related(pk: int, campaign: Campaign, annotator: Annotator) -> Assignment:
    assignment = Assignment.objects.select_related("campaign_item__item__sample").get(pk=pk)
    assignment.campaign_item.campaign, assignment.annotator = campaign, annotator
    return assignment


def _lease_new(campaign: Campaign, annotator: Annotator, now: datetime, *, practice: bool = False) -> Assignment | None:
    campaign_item = _take_new_item(campaign, annotator, practice=practice)
    if campaign_item is None:
        return None
    campaign_item.campaign = campaign
    campaign_item.item = Item.objects.select_related("sample").get(pk=campaign_item.item_id)
    return Assignment.objects.create(
        campaign_item=campaign_item,
        annotator=annotator,
        order=_order_for(campaign, campaign_item, annotator),
        slot=slots.free_slot(campaign_item.pk),
        leased_at=now,
        lease_until=lease_end(campaign=campaign, now=now),
    )


def _take_new_item(campaign: Campaign, annotator: Annotator, *, practice: bool) -> CampaignItem | None:
    """Take a slot of an item that this annotator has not had yet."""
    if practice:
        return _take_unlimited(_unseen(campaign, annotator).filter(practice=True).order_by("position"))
    known = None
    if due := quality.due_now(campaign, annotator):
        unseen = quality.of_kind(due, _unseen(campaign, annotator))
        known = _take_unlimited(quality.pick_for(unseen, campaign, annotator, due))
    return known or slots.take_next_item(campaign, annotator)


def _unseen(campaign: Campaign, annotator: Annotator) -> "QuerySet[CampaignItem]":
    seen = Assignment.objects.filter(campaign_item=OuterRef("pk"), annotator=annotator)
    return CampaignItem.objects.assignable().filter(~Exists(seen), campaign=campaign)


def _take_unlimited(candidates: "QuerySet[CampaignItem]") -> CampaignItem | None:
    """The first of these items, which have unlimited slots."""
    campaign_item = candidates.first()
    if campaign_item is not None:
        CampaignItem.objects.filter(pk=campaign_item.pk).update(taken=F("taken") + 1)
    return campaign_item


def _check_daily_cap(campaign: Campaign, annotator: Annotator, open_count: int, now: datetime) -> None:
    """Raise DayIsFull if today's labels and the open assignments reach the daily cap."""
    if campaign.daily_cap is None:
        return
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    today = _labels_of(campaign, annotator).filter(created_at__gte=midnight)
    if today.count() + open_count >= campaign.daily_cap:
        raise DayIsFull(campaign.daily_cap)


def _labels_of(campaign: Campaign, annotator: Annotator) -> QuerySet[Label]:
    """Their labels besides those of practice."""
    labels = Label.objects.filter(campaign=campaign, annotator=annotator)
    return labels.exclude(assignment__campaign_item__practice=True)


def _order_for(campaign: Campaign, campaign_item: CampaignItem, annotator: Annotator) -> str:
    """The presented order. Reviewers get the judge's own, because its analysis refers to the answers in that order. Two
    analyses that are compared stand in an order of their own.
    """
    item = campaign_item.item
    if campaign_item.against_id is not None:
        place = campaign_item.pk
        return presented_order(seed=campaign.seed, item_id=place, annotator_id=annotator.pk, size=2)
    if campaign_item.reviewed_id is not None:
        return Judgment.objects.values_list("order", flat=True).get(pk=campaign_item.reviewed_id)
    size = 2 if item.kind == Item.Kind.PAIR else ItemResponse.objects.filter(item=item).count()
    return presented_order(seed=campaign.seed, item_id=item.pk, annotator_id=annotator.pk, size=size)


def _lease_again(
    unfinished: list[slots.Unfinished], campaign: Campaign, annotator: Annotator, now: datetime
) -> Assignment | None:
    """Lease the oldest of these assignments whose item still has a free slot."""
    for assignment in unfinished:
        if not assignment.unlimited and assignment.taken >= campaign.overlap:
            continue
        slot = take_slot(campaign_item_id=assignment.campaign_item_id, unlimited=assignment.unlimited)
        if slot is not None:
            until = lease_end(campaign=campaign, now=now)
            row = Assignment.objects.filter(pk=assignment.pk)
            row.update(state=LEASED, slot=slot, leased_at=now, lease_until=until)
            return _with_related(assignment.pk, campaign, annotator)
    return None
