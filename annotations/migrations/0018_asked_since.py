from typing import Any

from django.db import migrations, models
from django.db.models import Min, OuterRef, Subquery

GOING = ("open", "paused")


def note_since(apps: Any, schema_editor: Any) -> None:
    """When rounds that go on were opened was not kept: it is when they were made, at the latest then."""
    Campaign, CampaignItem = apps.get_model("annotations", "Campaign"), apps.get_model("annotations", "CampaignItem")
    Item = apps.get_model("bank", "Item")
    going = Campaign.objects.filter(state__in=GOING)
    made = Subquery(Campaign.objects.filter(pk=OuterRef("campaign")).values("created_at"))
    CampaignItem.objects.filter(campaign__in=going).update(asked_since=made)
    places = CampaignItem.objects.filter(item=OuterRef("pk"), campaign__blind=True, campaign__state__in=GOING)
    first = places.order_by("campaign__created_at").values("campaign__created_at")[:1]
    Item.objects.filter(blind=True).update(blind_since=Subquery(first))
    # Those without a place have the answers of one that has, in another version of the benchmark.
    alone = Item.objects.filter(blind=True, blind_since=None).order_by()
    for slug in set(alone.values_list("sample__benchmark__slug", flat=True)):
        of_slug = going.filter(blind=True, benchmark__slug=slug).aggregate(first=Min("created_at"))
        alone.filter(sample__benchmark__slug=slug).update(blind_since=of_slug["first"])


class Migration(migrations.Migration):
    dependencies = [("annotations", "0017_indexes_said_once"), ("bank", "0022_blind_since")]

    operations = [
        migrations.AddField(
            model_name="campaignitem",
            name="asked_since",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.RunPython(note_since, migrations.RunPython.noop),
    ]
