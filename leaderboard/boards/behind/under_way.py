"""Single verdicts that a viewer may not read, where others still label the same."""

from django.db.models import QuerySet

from accounts.rules import Viewer, allowed
from annotations.models import Campaign, CampaignItem
from bank.models import Benchmark, Item


def sees_labels(viewer: Viewer) -> bool:
    """Whether the viewer may see single labels, and those of running campaigns."""
    return allowed(viewer, "read-labels")


def items_under_way(benchmark: Benchmark) -> QuerySet[CampaignItem]:
    """Items of campaigns that have not ended: their votes would influence those who still label them."""
    return CampaignItem.objects.filter(campaign__benchmark=benchmark, campaign__state__in=Campaign.GOING)


def is_under_way(item: Item) -> bool:
    return CampaignItem.objects.filter(item=item, campaign__state__in=Campaign.GOING).exists()
