from django.db import migrations

from bank.migrations._names import rename_stored


def rename(apps, schema_editor):
    rename_stored(apps.get_model("judging", "Judge")._base_manager.all())


class Migration(migrations.Migration):

    dependencies = [
        ("judging", "0001_initial"),
    ]

    operations = [migrations.RunPython(rename, migrations.RunPython.noop)]
