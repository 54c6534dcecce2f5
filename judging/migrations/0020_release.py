"""Analyses are released one by one, by two people: what one person had released becomes a proposal."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models import F, Q

BATCH = 2_000


def propose(apps, schema_editor):
    Release = apps.get_model("judging", "AnalysisRelease")
    Judgment = apps.get_model("judging", "Judgment")
    for run in apps.get_model("judging", "Run").objects.filter(analyses_released_at__isnull=False):
        if run.analyses_released_by_id is None:
            continue  # nobody is known to have proposed it
        said = {"run": run, "proposed_by_id": run.analyses_released_by_id, "proposed_at": run.analyses_released_at}
        keys = list(Judgment.objects.filter(run=run, analysis__isnull=False).order_by("pk").values_list("pk", flat=True))
        for start in range(0, len(keys), BATCH):
            Release.objects.bulk_create([Release(judgment_id=pk, **said) for pk in keys[start : start + BATCH]])


def person(**options):
    return models.ForeignKey(
        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL, **options
    )


class Migration(migrations.Migration):
    dependencies = [migrations.swappable_dependency(settings.AUTH_USER_MODEL), ("judging", "0010_runner")]
    operations = [
        migrations.CreateModel(
            name="AnalysisRelease",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "decision",
                    models.CharField(
                        choices=[("release", "Release"), ("despite", "Despite"), ("keep", "Keep")],
                        default="release",
                        max_length=7,
                    ),
                ),
                ("held", models.CharField(blank=True, max_length=200)),
                ("proposed_at", models.DateTimeField()),
                ("confirmed_at", models.DateTimeField(blank=True, null=True)),
                ("confirmed_by", person(blank=True, null=True)),
                ("proposed_by", person()),
                (
                    "judgment",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="release", to="judging.judgment"
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="releases", to="judging.run"
                    ),
                ),
            ],
            options={
                "ordering": ["judgment"],
                "indexes": [models.Index(fields=["run", "decision", "confirmed_at"], name="release_of_run")],
                "constraints": [
                    models.CheckConstraint(
                        condition=Q(confirmed_by=None) | ~Q(confirmed_by=F("proposed_by")),
                        name="release_by_two_people",
                    ),
                    models.CheckConstraint(
                        condition=Q(confirmed_by=None, confirmed_at=None)
                        | Q(confirmed_by__isnull=False, confirmed_at__isnull=False),
                        name="release_confirmed_by_somebody",
                    ),
                ],
            },
        ),
        migrations.RunPython(propose, migrations.RunPython.noop),
        migrations.RemoveField(model_name="run", name="analyses_released_at"),
        migrations.RemoveField(model_name="run", name="analyses_released_by"),
    ]
