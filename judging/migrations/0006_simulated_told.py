from django.db import migrations, models
from django.db.models import F


def tell_nothing_old(apps, schema_editor):
    apps.get_model("judging", "Run").objects.update(told=F("state"))


class Migration(migrations.Migration):

    dependencies = [
        ("judging", "0005_recipes"),
    ]

    operations = [
        migrations.AddField(
            model_name="judge",
            name="simulated",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name="run",
            name="tryout",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name="run",
            name="told",
            field=models.CharField(blank=True, db_default="", max_length=9),
        ),
        migrations.RunPython(tell_nothing_old, migrations.RunPython.noop),
    ]
