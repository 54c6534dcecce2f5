import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("bank", "0004_hidden_columns"),
    ]

    operations = [
        migrations.CreateModel(
            name="Import",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "state",
                    models.CharField(
                        choices=[("writing", "Writing"), ("done", "Done")], default="writing", max_length=7
                    ),
                ),
                ("holder", models.CharField(max_length=32)),
                ("until", models.DateTimeField()),
                ("folder", models.CharField(blank=True, max_length=40)),
                ("spans", models.JSONField(default=dict)),
                ("started_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("done_at", models.DateTimeField(null=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("state", "writing")), fields=("state",), name="import_one_at_a_time"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ImportRange",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("table", models.CharField(max_length=63, unique=True)),
                ("first", models.BigIntegerField()),
                ("last", models.BigIntegerField()),
                (
                    "of",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="ranges", to="bank.import"
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
            },
        ),
    ]
