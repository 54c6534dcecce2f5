"""Practice rounds and hidden gold items: when annotators get them, and what the results lead to."""

from datetime import datetime

from django.db import transaction
from django.db.models import F, QuerySet

from accounts.installation_key import keyed
from annotations.assignment.errors import Refused
from annotations.campaigns import choosing
from annotations.labels.verdicts import disagreement, is_right, verdict_key
from annotations.models import Annotator, Assignment, Campaign, CampaignItem, Label, Membership
from bank import guard


def has_practice(campaign: Campaign) -> bool:
    """Whether annotators start with a practice round."""
    if campaign.practice_pass is None:
        return False
    return CampaignItem.objects.assignable().filter(campaign=campaign, practice=True).exists()


def needed_to_pass(campaign: Campaign, items: int) -> int:
    """How many of the items of a practice round must be right."""
    share = campaign.practice_pass or 0
    return next(n for n in range(items + 1) if n >= share * items - 1e-9)


def gold_block_size(campaign: Campaign) -> int:
    """One item in each block of this many is hidden gold."""
    return max(2, round(1 / campaign.gold_rate))


def gold_position(campaign: Campaign, annotator_id: int, block: int) -> int:
    """Position of the gold item within a block, from 0: random, but always the same for one annotator. Drawn with the
    installation's key: nobody can work it out from the seed.
    """
    return int(keyed("gold", f"{campaign.seed}:{annotator_id}:{block}"), 16) % gold_block_size(campaign)


def gold_is_due(campaign: Campaign, annotator: Annotator) -> bool:
    """Whether the next new item for this annotator should be hidden gold."""
    assigned = Assignment.objects.filter(annotator=annotator, campaign_item__campaign=campaign)
    block, position = divmod(assigned.exclude(campaign_item__practice=True).count(), gold_block_size(campaign))
    return position == gold_position(campaign, annotator.pk, block)


def gold_ahead(campaign: Campaign, annotator_id: int, *, assigned: int, new: int, unseen: int) -> int:
    """How many gold items come among the next ``new`` ordinary ones, of ``unseen`` gold items that are left.

    The annotator's progress counts them in, so that the counts do not reveal which item was gold.
    """
    size, ahead = gold_block_size(campaign), 0
    while ahead < unseen:
        block, position = divmod(assigned, size)
        gold = gold_position(campaign, annotator_id, block)
        # ordinary items before the gold one, or until the end of the block
        before = gold - position if gold >= position else size - position
        if before <= new and gold >= position:
            ahead, assigned, new = ahead + 1, assigned + before + 1, new - before
        elif not new:  # gold due after the last ordinary item has been counted above
            break
        else:
            assigned, new = assigned + min(before, new), new - min(before, new)
    return ahead


def pick_for(gold: "QuerySet[CampaignItem]", campaign: Campaign, annotator: Annotator) -> "QuerySet[CampaignItem]":
    """One of these items, a different one for each annotator."""
    ids = list(gold.order_by("pk").values_list("pk", flat=True))
    if not ids:
        return gold.none()
    return gold.filter(pk=ids[int(keyed("which", f"{campaign.seed}:{annotator.pk}"), 16) % len(ids)])


def count_right(labels: "QuerySet[Label]") -> tuple[int, int]:
    """How many of these labels on gold items are right, and how many labels there are."""
    correct = [
        is_right(label.verdict(), label.assignment.campaign_item.gold or {})
        for label in labels.select_related("assignment__campaign_item")
    ]
    return sum(correct), len(correct)


def check_quality(*, label: Label, campaign_item: CampaignItem, member: Membership, now: datetime) -> None:
    """Follow up on a new or changed label, in its transaction: compare it with gold, or update the item's priority."""
    if campaign_item.practice:
        _after_practice(label.campaign, member, now)
    elif campaign_item.gold is not None:
        _after_gold(label.campaign, member, now)
    elif label.campaign.order == Campaign.Order.DISPUTED:
        _update_priority(campaign_item)


def _update_priority(campaign_item: CampaignItem) -> None:
    """Set the item's priority to the share of label pairs that differ, in thousandths: of labels that may choose."""
    labels = choosing.labels().filter(assignment__campaign_item=campaign_item, excluded=False)
    share = disagreement(key for label in labels if (key := verdict_key(label.verdict())))
    CampaignItem.objects.filter(pk=campaign_item.pk).update(priority=round(1000 * (share or 0)))


def finished_practice(campaign: Campaign, annotator: Annotator) -> bool:
    """Whether this annotator has labelled every practice item."""
    submitted = Assignment.objects.filter(annotator=annotator, state=Assignment.State.SUBMITTED)
    practice = CampaignItem.objects.assignable().filter(campaign=campaign, practice=True)
    return not practice.exclude(pk__in=submitted.values("campaign_item")).exists()


@guard.working()
def practice_labels(campaign: Campaign, annotator: Annotator) -> "QuerySet[Label]":
    return Label.objects.filter(campaign=campaign, annotator=annotator, assignment__campaign_item__practice=True)


def _after_practice(campaign: Campaign, member: Membership, now: datetime) -> None:
    """After the last practice item, record whether the annotator passed."""
    if campaign.practice_pass is None or member.qualified is not None:
        return
    if not finished_practice(campaign, member.annotator):
        return
    right, done = count_right(practice_labels(campaign, member.annotator))
    member.qualified = right >= needed_to_pass(campaign, done)
    member.tries = [*member.tries, {"right": right, "of": done, "at": now.isoformat()}]
    member.save(update_fields=["qualified", "tries"])


def _after_gold(campaign: Campaign, member: Membership, now: datetime) -> None:
    """Warn an annotator below the gold mark; stop them if they are below it again on gold labelled since."""
    gold_labels = Label.objects.filter(
        campaign=campaign,
        annotator=member.annotator_id,
        assignment__campaign_item__gold__isnull=False,
        assignment__campaign_item__practice=False,
    )
    if member.warned_at:
        gold_labels = gold_labels.filter(created_at__gt=member.warned_at)
    right, done = count_right(gold_labels)
    if done < campaign.gold_least or right >= campaign.gold_pass * done - 1e-9:
        return
    if member.warned_at is None:
        member.warned_at, member.warning_seen = now, False
    elif campaign.gold_stops:
        member.stopped_at = now
    member.save(update_fields=["warned_at", "warning_seen", "stopped_at"])


@transaction.atomic
def repeat_practice(*, member: Membership) -> None:
    """Start another practice round. Deletes the labels of the last one and keeps its result. Raises Refused."""
    if member.qualified is None:
        raise Refused("The practice round is not finished yet.")
    # Deleting the assignments with their labels makes the items new again.
    assignments = Assignment.objects.filter(
        annotator=member.annotator_id, campaign_item__campaign=member.campaign_id, campaign_item__practice=True
    )
    held = list(assignments.filter(slot__isnull=False).values_list("campaign_item", flat=True))
    assignments.delete()
    CampaignItem.objects.filter(pk__in=held).update(taken=F("taken") - 1)
    member.qualified = None
    member.save(update_fields=["qualified"])


def qualify(*, member: Membership) -> None:
    """Let the annotator past the practice round, whatever the result."""
    member.qualified = True
    member.save(update_fields=["qualified"])


def lift_stop(*, member: Membership, now: datetime) -> None:
    """Let a stopped annotator continue. Only gold items labelled from now on count."""
    member.stopped_at, member.warned_at, member.warning_seen = None, now, True
    member.save(update_fields=["stopped_at", "warned_at", "warning_seen"])
