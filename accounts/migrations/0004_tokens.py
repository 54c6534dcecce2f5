import datetime

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models import Q
from django.utils import timezone

LASTS = datetime.timedelta(days=90)


def give_ends(apps, schema_editor):
    """Tokens of before may do everything that their owner may, and end in 90 days: their owners are told."""
    now = timezone.now()
    tokens = apps.get_model('accounts', 'Token').objects
    tokens.filter(Q(expiry=None) | Q(expiry__gt=now + LASTS)).update(expiry=now + LASTS)
    tokens.update(scopes=['read', 'label', 'submit', 'run'], tell_at=now)


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0003_sessions_hashed'),
        ('knox', '0009_extend_authtoken_field'),
    ]

    operations = [
        # The table is the one that knox made: what it holds stays.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name='Token',
                    fields=[
                        ('digest', models.CharField(max_length=128, primary_key=True, serialize=False)),
                        ('token_key', models.CharField(db_index=True, max_length=25)),
                        ('created', models.DateTimeField(auto_now_add=True)),
                        ('expiry', models.DateTimeField(blank=True, null=True)),
                        ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='auth_token_set', to=settings.AUTH_USER_MODEL)),
                    ],
                    options={'db_table': 'knox_authtoken'},
                ),
            ],
        ),
        migrations.AddField('Token', 'scopes', models.JSONField(default=list)),
        migrations.AddField('Token', 'last_used', models.DateTimeField(null=True)),
        migrations.AddField('Token', 'tell_at', models.DateTimeField(null=True)),
        migrations.RunPython(give_ends, migrations.RunPython.noop),
    ]
