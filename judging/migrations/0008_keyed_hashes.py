"""Hashes over prompts become keyed, and a judge's reasons are encrypted: stored rows change without their prompts."""

from django.db import connection, migrations, models

import accounts.crypto
from accounts import secrets
from accounts.crypto import cipher

BATCH = 2_000
HASHES = {"prompt_sha256": "prompt", "call_key": "call"}


def hide(apps, schema_editor):
    secrets.check_keys(apps)
    for name in ("Judgment", "Trial", "Collected"):
        _hide(apps.get_model("judging", name)._meta.db_table)


def _hide(table):
    names = ", ".join(["id", "status", "reason", *HASHES])
    last = 0
    with connection.cursor() as cursor:
        while True:
            cursor.execute(f'SELECT {names} FROM "{table}" WHERE id > %s ORDER BY id LIMIT {BATCH}', [last])
            rows = cursor.fetchall()
            if not rows:
                return
            last = rows[-1][0]
            cursor.executemany(
                f'UPDATE "{table}" SET reason = %s, reason_hash = %s, prompt_sha256 = %s, call_key = %s WHERE id = %s',
                [_hidden(*row) for row in rows],
            )


def _hidden(pk, status, reason, prompt, call):
    told = "" if status == "ok" or not reason else secrets.keyed("reason", reason)
    keyed = [value and secrets.keyed(what, value) for value, what in zip((prompt, call), HASHES.values())]
    return (reason and cipher().encrypt(reason.encode()).decode(), told, *keyed, pk)


def alter(model):
    field = accounts.crypto.EncryptedTextField(blank=True, default="")
    return migrations.AlterField(model_name=model, name="reason", field=field)


def add(model):
    field = models.CharField(blank=True, db_default="", max_length=64)
    return migrations.AddField(model_name=model, name="reason_hash", field=field)


class Migration(migrations.Migration):
    dependencies = [("accounts", "0001_initial"), ("judging", "0007_shared_runs")]
    operations = [
        *(add(model) for model in ("judgment", "trial", "collected")),
        migrations.RunPython(hide, migrations.RunPython.noop),
        *(alter(model) for model in ("judgment", "trial", "collected")),
    ]
