"""Uploads lie encrypted, each under a key of its own. Those that were under way have none and are sent again."""

from django.db import migrations

import accounts.crypto

UNDER_WAY = ("receiving", "received", "checking", "checked", "importing")


def end(apps, schema_editor):
    apps.get_model("bank", "Upload").objects.filter(state__in=UNDER_WAY).update(
        state="failed", fault="This site was updated while it was under way. Send it again."
    )


class Migration(migrations.Migration):
    dependencies = [("bank", "0010_picture_storage")]
    operations = [
        migrations.AddField("upload", "secret", accounts.crypto.EncryptedTextField(default=""), preserve_default=False),
        migrations.RunPython(end, migrations.RunPython.noop),
    ]
