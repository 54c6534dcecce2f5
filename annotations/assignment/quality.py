"""Practice rounds and hidden gold items: when they come, and what follows from them."""

import hashlib
from datetime import datetime

from django.db import transaction
from django.db.models import F, QuerySet

from annotations.assignment.errors import Refused
from annotations.labels.verdicts import dispute, is_right, word
from annotations.models import Annotator, Assignment, Campaign, CampaignItem, Label, Membership


def has_practice(campaign: Campaign) -> bool:
    """Whether annotators begin with a practice round."""
    if campaign.practice_pass is None:
        return False
    return CampaignItem.objects.given_out().filter(campaign=campaign, practice=True).exists()


def block_of(campaign: Campaign) -> int:
    """Of so many items in a row one is hidden gold."""
    return max(2, round(1 / campaign.gold_rate))


def gold_place(campaign: Campaign, annotator_id: int, block: int) -> int:
    """Where in a block of items the gold one stands, from 0: by lot, and the same at every look."""
    digest = hashlib.sha256(f"gold:{campaign.seed}:{annotator_id}:{block}".encode()).digest()
    return int.from_bytes(digest[:4], "big") % block_of(campaign)


def gold_is_due(campaign: Campaign, annotator: Annotator) -> bool:
    """Whether the next item that this annotator gets for the first time should be hidden gold."""
    had = Assignment.objects.filter(annotator=annotator, campaign_item__campaign=campaign)
    block, place = divmod(had.exclude(campaign_item__practice=True).count(), block_of(campaign))
    return place == gold_place(campaign, annotator.pk, block)


def gold_ahead(campaign: Campaign, annotator_id: int, *, had: int, fresh: int, unseen: int) -> int:
    """How many gold items come among the next ``fresh`` others, of those that this annotator has not seen.

    Counted into their progress, so that no count tells which item was gold.
    """
    size, ahead = block_of(campaign), 0
    while ahead < unseen:
        block, place = divmod(had, size)
        gold = gold_place(campaign, annotator_id, block)
        before = gold - place if gold >= place else size - place  # others until the gold one, or the block's end
        if before <= fresh and gold >= place:
            ahead, had, fresh = ahead + 1, had + before + 1, fresh - before
        elif not fresh:  # gold that was due after the last of the others is counted above
            break
        else:
            had, fresh = had + min(before, fresh), fresh - min(before, fresh)
    return ahead


def of_annotator(gold: "QuerySet[CampaignItem]", campaign: Campaign, annotator: Annotator) -> "QuerySet[CampaignItem]":
    """One of these items, another for each annotator."""
    ids = list(gold.order_by("pk").values_list("pk", flat=True))
    if not ids:
        return gold.none()
    digest = hashlib.sha256(f"which:{campaign.seed}:{annotator.pk}".encode()).digest()
    return gold.filter(pk=ids[int.from_bytes(digest[:4], "big") % len(ids)])


def score(labels: "QuerySet[Label]") -> tuple[int, int]:
    """How many of these labels on items with a known verdict are right, and how many there are."""
    right = [
        is_right(label.verdict(), label.assignment.campaign_item.gold or {})
        for label in labels.select_related("assignment__campaign_item")
    ]
    return sum(right), len(right)


def look_at(*, label: Label, place: CampaignItem, member: Membership, now: datetime) -> None:
    """Hold a new or changed label against the right verdict where there is one; within the label's transaction."""
    if place.practice:
        _after_practice(label.campaign, member, now)
    elif place.gold is not None:
        _after_gold(label.campaign, member, now)
    elif label.campaign.order == Campaign.Order.DISPUTED:
        _rank(place)


def _rank(place: CampaignItem) -> None:
    """Put an item ahead by how much its annotators differ: thousandths of their pairs."""
    labels = Label.objects.filter(assignment__campaign_item=place, excluded=False)
    share = dispute(said for label in labels if (said := word(label.verdict())))
    if share is not None:
        CampaignItem.objects.filter(pk=place.pk).update(priority=round(1000 * share))


def is_practised(campaign: Campaign, annotator: Annotator) -> bool:
    """Whether this annotator has labelled every practice item."""
    mine = Assignment.objects.filter(annotator=annotator, state=Assignment.State.SUBMITTED)
    wanted = CampaignItem.objects.given_out().filter(campaign=campaign, practice=True)
    return not wanted.exclude(pk__in=mine.values("campaign_item")).exists()


def practice_labels(campaign: Campaign, annotator: Annotator) -> "QuerySet[Label]":
    return Label.objects.filter(campaign=campaign, annotator=annotator, assignment__campaign_item__practice=True)


def _after_practice(campaign: Campaign, member: Membership, now: datetime) -> None:
    """The round is over with its last item: in, or below the mark."""
    if campaign.practice_pass is None or member.qualified is not None:
        return
    if not is_practised(campaign, member.annotator):
        return
    right, done = score(practice_labels(campaign, member.annotator))
    member.qualified = right >= campaign.practice_pass * done - 1e-9
    member.tries = [*member.tries, {"right": right, "of": done, "at": now.isoformat()}]
    member.save(update_fields=["qualified", "tries"])


def _after_gold(campaign: Campaign, member: Membership, now: datetime) -> None:
    """Below the mark: a warning; below it again over as many gold items given since: nothing more is handed out."""
    mine = Label.objects.filter(
        campaign=campaign,
        annotator=member.annotator_id,
        assignment__campaign_item__gold__isnull=False,
        assignment__campaign_item__practice=False,
    )
    if member.warned_at:
        mine = mine.filter(created_at__gt=member.warned_at)
    right, done = score(mine)
    if done < campaign.gold_least or right >= campaign.gold_pass * done - 1e-9:
        return
    if member.warned_at is None:
        member.warned_at, member.warning_seen = now, False
    elif campaign.gold_stops:
        member.stopped_at = now
    member.save(update_fields=["warned_at", "warning_seen", "stopped_at"])


@transaction.atomic
def practise_again(*, member: Membership) -> None:
    """Another practice round. The labels of the last one go, its result stays. Raises Refused."""
    if member.qualified is None:
        raise Refused("The practice round is not over yet.")
    # Its assignments go with their labels: the same items are new again.
    mine = Assignment.objects.filter(campaign_item__campaign=member.campaign_id, annotator=member.annotator_id)
    had = mine.filter(campaign_item__practice=True)
    places = list(had.filter(slot__isnull=False).values_list("campaign_item", flat=True))
    had.delete()
    CampaignItem.objects.filter(pk__in=places).update(taken=F("taken") - 1)
    member.qualified = None
    member.save(update_fields=["qualified"])


def let_in(*, member: Membership) -> None:
    """Past the practice round, whatever its result."""
    member.qualified = True
    member.save(update_fields=["qualified"])


def let_go_on(*, member: Membership, now: datetime) -> None:
    """On after a stop; only gold items labelled from now on count."""
    member.stopped_at, member.warned_at, member.warning_seen = None, now, True
    member.save(update_fields=["stopped_at", "warned_at", "warning_seen"])
