"""Items that people label blind: the fact (``Item.blind``) by which single verdicts on them stay hidden, and with it
whether their labels may still be changed.
"""

from datetime import datetime

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery

from accounts import audit
from accounts.models import User
from annotations.assignment.errors import ItemOpened, Refused
from annotations.models import Assignment, Campaign, CampaignItem, Label
from bank import database
from bank.models import Benchmark, Item
from bank.samples.items import note_since_of_twins, twins


def note_blind_in(campaign: Campaign, *, item: int | None = None) -> None:
    """Note which items of a campaign, or whether this one, are labelled blind, by it or by another one.

    Call it after every write that opens or ends a campaign, changes its items or their slots, or opens what is
    finished; after that, when a label is stored, too.
    An item stays blind until the campaign ends. Where a curator opened what is finished, it does as long as it lacks
    labels; but practice items, which everybody gets, and all items of a campaign with hidden gold, which would be what
    stays blind. Items of other versions of the benchmark that have the same answers would tell of it, so they are
    blind with it.
    """
    places = CampaignItem.objects.filter(campaign=campaign)
    if item is None:
        _note_asked(campaign)
    items = Item.objects.filter(pk__in=(places if item is None else places.filter(item=item)).values("item"))
    of_slug = Benchmark.objects.filter(slug=campaign.benchmark.slug)
    versions = list(of_slug.order_by().values_list("pk", flat=True))
    if len(versions) < 2:
        _note(items, Q(Exists(_keeping_blind())))
        return
    keys = items.order_by().values("sample__key")
    others = Item.objects.filter(sample__benchmark__in=versions, sample__key__in=keys, kind__in=items.values("kind"))
    _note(others, Exists(_keeping_blind()) | Exists(twins(versions).filter(Exists(_keeping_blind()))))
    note_since_of_twins(others, versions)


def _note_asked(campaign: Campaign) -> None:
    """Write since when the round has been open on its items. One that is opened again is another round."""
    places = CampaignItem.objects.filter(campaign=campaign)
    if campaign.state in Campaign.GOING:
        places.filter(asked_since=None).update(asked_since=database.now())
    else:
        places.exclude(asked_since=None).update(asked_since=None)


def _note(items: QuerySet[Item], is_blind: Q | Exists) -> None:
    """Write the facts where they have changed, and at places in blind campaigns when their item was opened."""
    opened = items.filter(~Q(is_blind), blind=True)
    places = CampaignItem.objects.filter(campaign__blind=True).exclude(campaign__state=Campaign.State.DRAFT)
    places.filter(item__in=opened.values("pk")).update(opened_at=database.now())
    opened.update(blind=False, blind_since=None)
    items.filter(is_blind, blind=False).update(blind=True)
    # Of a round of which nobody knows when it was opened, nothing is known to have been said before it.
    since = _keeping_blind().order_by(F("asked_since").asc(nulls_first=True)).values("asked_since")[:1]
    moved = items.filter(is_blind).annotate(since=Subquery(since))
    moved.exclude(blind_since=F("since")).exclude(blind_since=None, since=None).update(blind_since=Subquery(since))


def _keeping_blind() -> QuerySet[CampaignItem]:
    """The places in campaigns that keep an item, of the outer query, blind."""
    gold = CampaignItem.objects.filter(campaign=OuterRef("campaign"), gold__isnull=False, practice=False)
    leased = Assignment.objects.filter(campaign_item=OuterRef("pk"), state=Assignment.State.LEASED)
    unfinished = Q(practice=True) | Exists(gold) | Q(taken__lt=F("campaign__overlap")) | Exists(leased)
    return CampaignItem.objects.filter(
        Q(campaign__finished_opened_at__isnull=True) | unfinished,
        item=OuterRef("pk"),
        campaign__blind=True,
        campaign__state__in=Campaign.GOING,
    )


def refuse_opened(label: Label) -> None:
    """Raise ItemOpened if the author of this label may have read what others, or judges, said of its item: every way
    of changing one's own label asks this.
    """
    if not Label.objects.filter(pk=label.pk).changeable().exists():
        raise ItemOpened


def why_not_opened(campaign: Campaign) -> str:
    """Why the finished items of a campaign cannot be opened, in words; "" if they can."""
    if not campaign.blind:
        return f"{campaign.name} is not blind: what is said of its items is shown already."
    if campaign.state not in Campaign.GOING:
        return f"{campaign.name} is {campaign.state}. Items are opened while a campaign is open or paused."
    if campaign.finished_opened_at:
        return "The finished items are open already."
    if campaign.campaign_items.filter(gold__isnull=False, practice=False).exists():
        return "There is hidden gold among the items. It would be what stays blind, so all items do until the end."
    return ""


@transaction.atomic
def open_finished(*, campaign: Campaign, by: User | None, now: datetime) -> None:
    """Show what is said of the items that have all their labels, and from now on of each that gets them, before the
    campaign ends. Their labels can no longer be changed by their authors. Raises Refused.
    """
    if words := why_not_opened(campaign):
        raise Refused(words)
    Campaign.objects.filter(pk=campaign.pk).update(finished_opened_at=now)
    campaign.finished_opened_at = now
    note_blind_in(campaign)
    audit.record("finished-opened", by=by, about=campaign.name)
