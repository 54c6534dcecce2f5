from collections import defaultdict
from datetime import timedelta

from django.db import migrations, models
from django.db.models import Exists, F, OuterRef
from django.utils import timezone

GOING = ("open", "paused")
AT_ONCE = 1000  # rows
GRACE = timedelta(hours=1)


def note_opened(apps, schema_editor):
    """Which places of blind campaigns have been open to be read by now, so that their labels stay as they are."""
    Campaign, CampaignItem = apps.get_model("annotations", "Campaign"), apps.get_model("annotations", "CampaignItem")
    now = timezone.now()
    for campaign in Campaign.objects.filter(blind=True).exclude(state="draft"):
        CampaignItem.objects.filter(campaign=campaign, item__blind=False).update(opened_at=now)


def note_blind(apps, schema_editor):
    """Items of blind campaigns are blind until these end, also those that have their labels; and with them those with
    the same answers in other versions of the benchmark.
    """
    Campaign, CampaignItem = apps.get_model("annotations", "Campaign"), apps.get_model("annotations", "CampaignItem")
    Benchmark, Item = apps.get_model("bank", "Benchmark"), apps.get_model("bank", "Item")
    ItemResponse = apps.get_model("bank", "ItemResponse")
    for campaign in Campaign.objects.filter(blind=True, state__in=GOING):
        items = Item.objects.filter(pk__in=CampaignItem.objects.filter(campaign=campaign).values("item"))
        items.filter(blind=False).update(blind=True)
        others = Benchmark.objects.filter(slug=campaign.benchmark.slug).exclude(pk=campaign.benchmark_id)
        if not others.exists():
            continue
        text, twin, outer = OuterRef("response__text"), OuterRef(OuterRef("pk")), OuterRef(OuterRef(OuterRef("pk")))
        answers = ItemResponse.objects.all()
        theirs_alone = answers.filter(~Exists(answers.filter(item=outer, response__text=text)), item=OuterRef("pk"))
        ours_alone = answers.filter(~Exists(answers.filter(item=twin, response__text=text)), item=twin)
        twins = items.filter(
            ~Exists(theirs_alone), ~Exists(ours_alone), sample__key=OuterRef("sample__key"), kind=OuterRef("kind")
        )
        Item.objects.filter(Exists(twins), sample__benchmark__in=others.values("pk"), blind=False).update(blind=True)


def note_changed_late(apps, schema_editor):
    """Labels that people changed more than an hour after their item had the labels it needed, and with that was open to
    be read.
    """
    Label = apps.get_model("annotations", "Label")
    changed = Label.objects.filter(
        campaign__blind=True, campaign__imported=False, annotator__person__isnull=False, changed_at__gt=F("created_at")
    ).exclude(assignment__campaign_item__practice=True)
    columns = ("pk", "assignment__campaign_item", "campaign__overlap", "changed_at")
    rows = list(changed.order_by("pk").values_list(*columns))
    for start in range(0, len(rows), AT_ONCE):
        batch = rows[start : start + AT_ONCE]
        given = defaultdict(list)
        labels = Label.objects.filter(assignment__campaign_item__in={place for _, place, _, _ in batch}, excluded=False)
        for place, at in labels.order_by("created_at").values_list("assignment__campaign_item", "created_at"):
            given[place].append(at)
        late = [
            pk
            for pk, place, overlap, changed_at in batch
            if len(given[place]) >= overlap and changed_at > given[place][overlap - 1] + GRACE
        ]
        Label.objects.filter(pk__in=late).update(changed_late=True)


class Migration(migrations.Migration):

    dependencies = [
        ('annotations', '0011_guests'),
        ('bank', '0001_squashed_0013_held_out_half'),
    ]

    operations = [
        migrations.AddField(
            model_name='campaign',
            name='finished_opened_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='campaignitem',
            name='opened_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='label',
            name='changed_late',
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.RunPython(note_opened, migrations.RunPython.noop),
        migrations.RunPython(note_blind, migrations.RunPython.noop),
        migrations.RunPython(note_changed_late, migrations.RunPython.noop),
    ]
