from django.db import migrations, models
from django.db.models import F


def go_on(apps, schema_editor):
    """What was made before goes on as it did: judges keep their addresses, and a run's mean is over all its calls."""
    apps.get_model("judging", "Judge").objects.exclude(base_url="").update(any_address=True)
    apps.get_model("judging", "Run").objects.filter(spent__gt=0).update(priced=F("calls"))


class Migration(migrations.Migration):

    dependencies = [
        ('judging', '0008_keyed_hashes'),
    ]

    operations = [
        migrations.AddField(
            model_name='judge',
            name='any_address',
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name='run',
            name='lost',
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name='run',
            name='priced',
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name='run',
            name='reading',
            field=models.CharField(blank=True, db_default='', default='', max_length=6),
        ),
        migrations.AddField(
            model_name='workerbeat',
            name='lacks_pictures',
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.RunPython(go_on, migrations.RunPython.noop),
    ]
