from django.db import migrations

from bank.migrations._names import rename_stored


def rename(apps, schema_editor):
    rename_stored(apps.get_model("annotations", "Campaign")._base_manager.all())
    rename_stored(apps.get_model("annotations", "Annotator")._base_manager.all(), "origin")


class Migration(migrations.Migration):

    dependencies = [
        ("annotations", "0001_initial"),
    ]

    operations = [migrations.RunPython(rename, migrations.RunPython.noop)]
