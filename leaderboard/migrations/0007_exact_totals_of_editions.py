import hashlib
import json

from django.db import migrations


def note_editions(apps, schema_editor):
    """What editions told exactly of submitted models, each total once."""
    Edition = apps.get_model("leaderboard", "Edition")
    Submission, ExactTotal = apps.get_model("bank", "Submission"), apps.get_model("bank", "ExactTotal")
    for edition in Edition.objects.filter(what="models").order_by("pk"):
        submissions = Submission.objects.filter(benchmark=edition.benchmark_id, model__isnull=False)
        for submission in submissions.filter(name__in=list(edition.cells)):
            for number, cell in edition.cells[submission.name].items():
                values = {sample: fact.partition(":")[0] for sample, fact in cell.items()}
                digest = hashlib.sha256(json.dumps(sorted(values.items())).encode()).hexdigest()
                of = f"edition {edition.number} of {edition.kind}{number and ', '}{number}"[:200]
                told = {"of": of, "samples": len(cell)}
                ExactTotal.objects.get_or_create(submission=submission, digest=digest, defaults=told)


class Migration(migrations.Migration):

    dependencies = [
        ('leaderboard', '0006_prepared_pages'),
        ('bank', '0017_exact_totals'),
    ]

    operations = [
        migrations.RunPython(note_editions, migrations.RunPython.noop),
    ]
