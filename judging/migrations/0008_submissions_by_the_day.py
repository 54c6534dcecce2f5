from django.db import migrations, models


def tell_without_figures(apps, schema_editor):
    """Whoever submitted was told of what has ended; what it cost leaves the reasons."""
    queued = apps.get_model("judging", "QueuedSubmission").objects
    queued.filter(state__in=["judged", "stopped"]).update(told=True)
    dear = queued.filter(reason__startswith="judging it would cost about $")
    dear.update(reason="it would cost more than a submission may")
    used = queued.filter(reason__startswith="a submission may cost $")
    used.update(reason="what a submission may cost is used up. A curator can allow more")


class Migration(migrations.Migration):

    dependencies = [
        ('judging', '0007_sealing'),
    ]

    operations = [
        migrations.AddField(
            model_name='queuedsubmission',
            name='ordinary_cost',
            field=models.FloatField(null=True),
        ),
        migrations.AddField(
            model_name='queuedsubmission',
            name='told',
            field=models.BooleanField(default=False),
        ),
        migrations.RunPython(tell_without_figures, migrations.RunPython.noop),
    ]
