"""Drafts of labels are encrypted: their words can quote criteria that a campaign shows."""

import json

from django.db import connection, migrations

import accounts.crypto
from accounts import secrets
from accounts.crypto import cipher


def check(apps, schema_editor):
    secrets.check_keys(apps)


def hide(apps, schema_editor):
    with connection.cursor() as cursor:
        cursor.execute("SELECT id, draft FROM annotations_assignment")
        rows = [(text if json.loads(text or "{}") else "", pk) for pk, text in cursor.fetchall()]
        tokens = cipher().encrypt_all(text for text, _ in rows)
        changed = [(token, pk) for token, (_, pk) in zip(tokens, rows)]
        cursor.executemany("UPDATE annotations_assignment SET draft = %s WHERE id = %s", changed)


class Migration(migrations.Migration):
    dependencies = [("accounts", "0001_initial"), ("annotations", "0006_reviewed_verdicts_stay")]
    operations = [
        migrations.RunPython(check, migrations.RunPython.noop),
        migrations.AlterField("assignment", "draft", accounts.crypto.EncryptedJSONField(blank=True, default=dict)),
        migrations.RunPython(hide, migrations.RunPython.noop),
    ]
