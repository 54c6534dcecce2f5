"""Keys, categories and weights of criteria are encrypted, as their texts are."""

from django.db import connection, migrations, models

import accounts.crypto
import bank.criteria.tables
from accounts import secrets
from accounts.crypto import cipher
from bank.criteria.tables import hash_of

BATCH = 2_000


def check(apps, schema_editor):
    secrets.check_keys(apps)


def hide(apps, schema_editor):
    for rows in _batches("bank_criterion", "id, sample_id, key, category, weight"):
        _write(
            "UPDATE bank_criterion SET key_hash = %s, key = %s, category = %s, sealed_weight = %s WHERE id = %s",
            [
                (
                    hash_of(sample, secrets.keyed("criterion", key)),
                    *cipher().encrypt_all([key, category, None if weight is None else repr(float(weight))]),
                    pk,
                )
                for pk, sample, key, category, weight in rows
            ],
        )
    for rows in _batches("bank_criterionrevision", "id, key"):
        changed = [(*cipher().encrypt_all([key]), pk) for pk, key in rows]
        _write("UPDATE bank_criterionrevision SET key = %s WHERE id = %s", changed)


def _batches(table, names):
    last = 0
    while True:
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {names} FROM {table} WHERE id > %s ORDER BY id LIMIT {BATCH}", [last])
            rows = cursor.fetchall()
        if not rows:
            return
        yield rows
        last = rows[-1][0]


def _write(statement, rows):
    with connection.cursor() as cursor:
        cursor.executemany(statement, rows)


class Migration(migrations.Migration):
    dependencies = [("accounts", "0001_initial"), ("bank", "0003_preferences")]
    operations = [
        migrations.RunPython(check, migrations.RunPython.noop),
        migrations.RemoveConstraint("criterion", "criterion_key"),
        migrations.AddField(
            "criterion", "key_hash", bank.criteria.tables.KeyHashField(default="", editable=False, max_length=64),
            preserve_default=False,
        ),
        migrations.AddField("criterion", "sealed_weight", accounts.crypto.EncryptedFloatField(blank=True, null=True)),
        migrations.AlterField("criterion", "key", accounts.crypto.EncryptedTextField()),
        migrations.AlterField("criterion", "category", accounts.crypto.EncryptedTextField(blank=True, default="")),
        migrations.AlterField("criterionrevision", "key", accounts.crypto.EncryptedTextField()),
        migrations.RunPython(hide, migrations.RunPython.noop),
        migrations.RemoveField("criterion", "weight"),
        migrations.RenameField("criterion", "sealed_weight", "weight"),
        migrations.AddConstraint(
            "criterion", models.UniqueConstraint(fields=("sample", "key_hash"), name="criterion_key")
        ),
        migrations.AlterModelOptions("criterion", {"default_manager_name": "unguarded", "ordering": ["sample_id", "position"]}),
        migrations.AlterModelOptions("criterionrevision", {"default_manager_name": "unguarded", "ordering": ["-pk"]}),
        *(
            migrations.AlterModelManagers(name, [("unguarded", models.Manager())])
            for name in ("criterion", "criterionrevision")
        ),
        migrations.AlterField(
            "benchmark",
            "visibility",
            models.CharField(choices=[("public", "Public"), ("private", "Private")], default="private", max_length=8),
        ),
    ]
