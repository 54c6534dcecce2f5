"""Single marks, and scores in full, are for keys that everybody may see; those of other keys go, and scores say which."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Exists, OuterRef

import accounts.crypto

LEAST = 10


def close(apps, schema_editor):
    criteria = apps.get_model("bank", "Criterion")._base_manager
    closed = criteria.filter(kind="answer_key").exclude(shown_to="public")
    marks = apps.get_model("bank", "ResponseMark")._base_manager
    marks.filter(Exists(closed.filter(sample=OuterRef("response__sample")))).delete()
    for benchmark in apps.get_model("bank", "Benchmark")._base_manager.exclude(hidden_splits=[]):
        of = {"response__sample__benchmark": benchmark.pk, "response__sample__split__in": benchmark.hidden_splits}
        marks.filter(**of).delete()
    for score in apps.get_model("bank", "SubmissionScore")._base_manager.filter(hidden=False).select_related("submission"):
        score.open = not closed.filter(
            sample__benchmark=score.submission.benchmark_id, sample__split=score.split
        ).exists()
        if not score.open:  # levels were of any size
            score.numbers.pop("levels", None)
            score.numbers = score.numbers if score.n >= LEAST else {}
        score.save(update_fields=["open", "numbers"])


class Migration(migrations.Migration):
    dependencies = [("bank", "0011_upload_secret")]
    operations = [
        migrations.AddField("submissionscore", "open", models.BooleanField(default=False)),
        migrations.CreateModel(
            "ScoredCells",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("cells", accounts.crypto.PackedJSONField()),
                ("at", models.DateTimeField(auto_now_add=True)),
                (
                    "submission",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="bank.submission"
                    ),
                ),
            ],
        ),
        migrations.RunPython(close, migrations.RunPython.noop),
    ]
