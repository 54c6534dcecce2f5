"""Practice rounds and hidden gold items: when annotators get them, and what the results lead to."""

from collections.abc import Collection
from datetime import datetime

from django.db import transaction
from django.db.models import Exists, F, OuterRef, QuerySet

from accounts.installation_key import keyed
from annotations.assignment.errors import Refused
from annotations.campaigns import choosing
from annotations.labels.verdicts import disagreement, is_right, verdict_key
from annotations.models import Annotator, Assignment, Campaign, CampaignItem, Label, Membership
from bank import guard
from bank.database import chunks


def has_practice(campaign: Campaign) -> bool:
    """Whether annotators start with a practice round."""
    if campaign.practice_pass is None:
        return False
    return CampaignItem.objects.assignable().filter(campaign=campaign, practice=True).exists()


def needed_to_pass(campaign: Campaign, items: int) -> int:
    """How many of the items of a practice round must be right."""
    share = campaign.practice_pass or 0
    return next(n for n in range(items + 1) if n >= share * items - 1e-9)


GOLD, DECOY = KINDS = ("gold", "decoy")


def of_kind(kind: str, items: "QuerySet[CampaignItem]") -> "QuerySet[CampaignItem]":
    """Those of these items that are hidden gold, or decoys."""
    return items.filter(decoy=True) if kind == DECOY else items.filter(practice=False, gold__isnull=False)


def draw_decoys(campaign: Campaign, alike: Collection[int] = ()) -> int:
    """As many decoys as hidden gold, drawn among the ordinary items with the installation's key, those ``alike`` first;
    returns how many are missing where there are too few of these. Decoys that somebody has had stay, more of them than
    needed as well.
    """
    places = CampaignItem.objects.assignable().filter(campaign=campaign)
    gold, decoys = (of_kind(kind, CampaignItem.objects.filter(campaign=campaign)) for kind in KINDS)
    missing = gold.count() - decoys.count()
    if missing < 0:
        had = Assignment.objects.filter(campaign_item=OuterRef("pk"))
        spare = decoys.filter(~Exists(had), taken=0).order_by("pk").values_list("pk", flat=True)[:-missing]
        CampaignItem.objects.filter(pk__in=list(spare)).update(decoy=False)
    if missing <= 0:
        return 0
    ordinary = list(
        places.filter(practice=False, gold__isnull=True, decoy=False).order_by("pk").values_list("pk", flat=True)
    )
    ordinary.sort(key=lambda pk: (pk not in alike, keyed("decoys", f"{campaign.seed}:{pk}")))
    for ids in chunks(ordinary[:missing]):
        CampaignItem.objects.filter(pk__in=ids).update(decoy=True)
    return max(0, missing - len(ordinary))


def gold_block_size(campaign: Campaign) -> int:
    """One item in each block of this many is hidden gold, and another one a decoy."""
    return max(2, round(1 / campaign.gold_rate))


def places_in_block(campaign: Campaign, annotator_id: int, block: int) -> dict[int, str]:
    """The positions of the gold item and of the decoy within a block, from 0: any two with the same chance, but always
    the same for one annotator. Drawn with the installation's key: nobody can work them out from the seed.
    """
    size, of_block = gold_block_size(campaign), f"{campaign.seed}:{annotator_id}:{block}"
    gold = int(keyed(GOLD, of_block), 16) % size
    decoy = int(keyed(DECOY, of_block), 16) % (size - 1)  # of the others
    return {gold: GOLD, decoy + (decoy >= gold): DECOY}


def due_now(campaign: Campaign, annotator: Annotator) -> str:
    """Whether the next new item for this annotator should be hidden gold or a decoy; else ""."""
    if not campaign.gold_rate:
        return ""
    assigned = Assignment.objects.filter(annotator=annotator, campaign_item__campaign=campaign)
    count = assigned.exclude(campaign_item__practice=True).count()
    block, position = divmod(count, gold_block_size(campaign))
    return places_in_block(campaign, annotator.pk, block).get(position, "")


def ahead_of(
    campaign: Campaign, annotator_id: int, *, assigned: int, new: int, unseen: dict[str, int], lacking: int
) -> int:
    """How many gold items and decoys come besides the next ``new`` ordinary ones, of those left of each kind; of these,
    ``lacking`` decoys come after the ordinary ones because they lack labels.

    The annotator's progress counts them in, so that the counts do not reveal which item was gold.
    """
    size, ahead, left = gold_block_size(campaign), 0, dict(unseen)
    while any(left.values()):
        block, position = divmod(assigned, size)
        for place, kind in [*sorted(places_in_block(campaign, annotator_id, block).items()), (size, "")]:
            between = place - position
            if between < 0 or (kind and not left[kind]):
                continue
            if between > new + lacking:
                return ahead + lacking
            at_end = max(0, between - new)  # decoys in place of ordinary items
            new, lacking, left[DECOY] = new - between + at_end, lacking - at_end, left[DECOY] - at_end
            ahead += at_end
            if kind and left[kind]:
                ahead, position, left[kind] = ahead + 1, place + 1, left[kind] - 1
                lacking = min(lacking, left[DECOY])
            else:
                position = place
        assigned = (block + 1) * size
    return ahead


def pick_for(
    items: "QuerySet[CampaignItem]", campaign: Campaign, annotator: Annotator, kind: str
) -> "QuerySet[CampaignItem]":
    """One of these items of a kind, a different one for each annotator."""
    ids = list(items.order_by("pk").values_list("pk", flat=True))
    if not ids:
        return items.none()
    return items.filter(pk=ids[int(keyed(f"which {kind}", f"{campaign.seed}:{annotator.pk}"), 16) % len(ids)])


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
    labels = choosing.labels(in_own_round=True).filter(assignment__campaign_item=campaign_item, excluded=False)
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
