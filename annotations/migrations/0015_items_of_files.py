from django.db import migrations
from django.db.models import Exists, OuterRef, Q

UNKNOWN = 2**15 - 1  # as in bank.exposure


def close(apps, schema_editor):
    """Items that only files of verdicts name, of which nobody said that nothing hidden was seen."""
    item, label = apps.get_model("bank", "Item"), apps.get_model("annotations", "Label")
    judgment, asked = apps.get_model("judging", "Judgment"), apps.get_model("judging", "RunItem")
    placed = apps.get_model("annotations", "CampaignItem").objects.filter(item=OuterRef("pk"))
    labels, judgments = label.objects.filter(item=OuterRef("pk")), judgment.objects.filter(item=OuterRef("pk"))
    of_files = Q(Exists(labels.filter(campaign__imported=True, campaign__held=UNKNOWN))) | Q(
        Exists(judgments.filter(run__imported=True, run__held=UNKNOWN))
    )
    named_here = (
        Q(Exists(placed.filter(Q(campaign__imported=False) | ~Q(campaign__held=UNKNOWN))))
        | Q(Exists(asked.objects.filter(item=OuterRef("pk"), run__imported=False)))
        | Q(Exists(judgments.exclude(run__held=UNKNOWN)))
    )
    item.objects.filter(of_files).exclude(named_here).update(held=UNKNOWN)


class Migration(migrations.Migration):
    dependencies = [
        ("annotations", "0014_unknown_provenance"),
        ("bank", "0018_item_held"),
        ("judging", "0017_unknown_provenance"),
    ]

    operations = [
        migrations.RunPython(close, migrations.RunPython.noop),
    ]
