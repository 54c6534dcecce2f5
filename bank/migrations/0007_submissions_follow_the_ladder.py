import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

MAIN = ("circular", "vanilla", "accuracy")


def keep_what_was_told(apps, schema_editor):
    """What submitters have seen of keys that are not open stays told: of the shown part, and of released kept halves."""
    scores = apps.get_model("bank", "SubmissionScore").objects.filter(open=False).select_related("submission")
    told = apps.get_model("bank", "ToldScore").objects
    best = {}
    for score in scores.order_by("submission_id", "pk").iterator(chunk_size=500):
        sent = score.submission
        kept = score.part == "kept"
        number = next((score.numbers[name] for name in MAIN if score.numbers.get(name)), None)
        if number is None or number["value"] is None or (kept and sent.released_at is None):
            continue
        value, ladder = round(number["value"], 2), (sent.by_id, sent.benchmark_id, score.split, score.kind)
        if not kept:
            best[ladder] = max(value, best.get(ladder, value))
        told.get_or_create(
            submission=sent,
            split=score.split,
            kind=score.kind,
            kept=kept,
            defaults={"value": value, "best": value if kept else best[ladder]},
        )


class Migration(migrations.Migration):

    dependencies = [
        ('bank', '0006_sealing'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='FileLease',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('person', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('until', models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name='ToldScore',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('submission', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='told_scores', to='bank.submission')),
                ('split', models.CharField(blank=True, max_length=40)),
                ('kind', models.CharField(choices=[('choice', 'Choice'), ('yes_no', 'Yes No')], max_length=6)),
                ('kept', models.BooleanField(default=False)),
                ('value', models.FloatField(null=True)),
                ('best', models.FloatField(null=True)),
                ('at', models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.RemoveConstraint(
            model_name='submissionscore',
            name='score_once',
        ),
        migrations.AddConstraint(
            model_name='submissionscore',
            constraint=models.UniqueConstraint(fields=('submission', 'split', 'part', 'kind', 'open'), name='score_once_each'),
        ),
        migrations.DeleteModel(
            name='ScoredCells',
        ),
        migrations.AddConstraint(
            model_name='toldscore',
            constraint=models.UniqueConstraint(fields=('submission', 'split', 'kind', 'kept'), name='told_once'),
        ),
        migrations.RunPython(keep_what_was_told, migrations.RunPython.noop),
    ]
