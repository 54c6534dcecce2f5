from typing import Any

from django.db import migrations, models


def drop_function(apps: Any, schema_editor: Any) -> None:
    """The one that took a boolean: the triggers that called it are gone before a migration, and come back new."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("DROP FUNCTION IF EXISTS counted_draw(bigint, boolean)")


def from_hides(apps: Any, schema_editor: Any) -> None:
    apps.get_model("leaderboard", "Change").objects.filter(hides=True).update(effect=1)


def to_hides(apps: Any, schema_editor: Any) -> None:
    changes = apps.get_model("leaderboard", "Change").objects
    changes.filter(effect=2).delete()
    changes.filter(effect=1).update(hides=True)


class Migration(migrations.Migration):
    dependencies = [("leaderboard", "0008_indexes_said_once")]

    operations = [
        migrations.AddField(
            model_name="change",
            name="effect",
            field=models.PositiveSmallIntegerField(
                choices=[(0, "Adds"), (1, "Hides"), (2, "Votes")], db_default=0, default=0
            ),
        ),
        migrations.RunPython(from_hides, to_hides),
        migrations.RunPython(drop_function, migrations.RunPython.noop),
        migrations.RemoveField(model_name="change", name="hides"),
    ]
