from django.db import migrations

from bank.migrations._names import rename_stored


def rename(apps, schema_editor):
    rename_stored(apps.get_model("bank", "EvaluatedModel")._base_manager.all())
    capabilities = apps.get_model("bank", "Capability")._base_manager.all()
    rename_stored(capabilities, "benchmark", "parent")
    paths = {}
    for pk, parent, name, path in sorted(
        capabilities.values_list("pk", "parent", "name", "path"), key=lambda row: row[3].count(" / ")
    ):
        paths[pk] = f"{paths[parent]} / {name}" if parent else name
        if paths[pk] != path:
            capabilities.filter(pk=pk).update(path=paths[pk])


class Migration(migrations.Migration):

    dependencies = [
        ("bank", "0001_initial"),
    ]

    operations = [migrations.RunPython(rename, migrations.RunPython.noop)]
