from django.db import migrations

UNKNOWN = 2**15 - 1  # as in bank.exposure


def close(apps, schema_editor):
    """Nobody said of labels from files what was seen; ``manage.py migrate`` says what closes, and how it is opened."""
    apps.get_model("annotations", "Campaign").objects.filter(imported=True).update(held=UNKNOWN)


class Migration(migrations.Migration):

    dependencies = [
        ('annotations', '0013_decoys'),
    ]

    operations = [
        migrations.RunPython(close, migrations.RunPython.noop),
    ]
