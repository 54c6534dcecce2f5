"""Items that people still label blind: the fact (``Item.blind``) by which single verdicts on them stay hidden."""

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from annotations.models import Assignment, Campaign, CampaignItem
from bank.models import Item


def note_blind(items: QuerySet[Item]) -> None:
    """Note which of these items still lack labels in a blind campaign that goes on.

    Call it after every write that opens or ends a campaign, changes its items or their slots, or stores a label.
    Practice items lack labels as long as the campaign goes on: everybody gets them. Where gold is hidden among the
    items, all of them do: it would be what stays blind.
    """
    gold = CampaignItem.objects.filter(campaign=OuterRef("campaign"), gold__isnull=False, practice=False)
    leased = Assignment.objects.filter(campaign_item=OuterRef("pk"), state=Assignment.State.LEASED)
    places = CampaignItem.objects.filter(
        Q(practice=True) | Exists(gold) | Q(taken__lt=F("campaign__overlap")) | Exists(leased),
        item=OuterRef("pk"),
        campaign__blind=True,
        campaign__state__in=Campaign.GOING,
    )
    items.filter(Exists(places), blind=False).update(blind=True)
    items.filter(~Exists(places), blind=True).update(blind=False)


def note_blind_in(campaign: Campaign) -> None:
    """The same for all items of a campaign, those of closed ones included."""
    note_blind(Item.objects.filter(pk__in=CampaignItem.objects.filter(campaign=campaign).values("item")))
