from functools import reduce
from operator import or_

from django.db import migrations

UNKNOWN = 2**15 - 1  # as in bank.exposure


def close(apps, schema_editor):
    """Nobody but the file said of judgments from files what was seen; ``manage.py migrate`` says what closes."""
    runs = apps.get_model("judging", "Run").objects.filter(imported=True)
    juries = dict(runs.filter(settings__has_key="jury").values_list("pk", "settings__jury"))
    runs.exclude(pk__in=juries).update(held=UNKNOWN)
    for jury, members in juries.items():
        held = apps.get_model("judging", "Run").objects.filter(pk__in=members).values_list("held", flat=True)
        runs.filter(pk=jury).update(held=reduce(or_, held, 0))


class Migration(migrations.Migration):

    dependencies = [
        ('judging', '0016_batch_of_hold'),
    ]

    operations = [
        migrations.RunPython(close, migrations.RunPython.noop),
    ]
