import accounts.crypto
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('accounts', '__first__'),
        ('bank', '0001_initial'),
        ('judging', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='Edition',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(max_length=10)),
                ('split', models.CharField(blank=True, max_length=40)),
                ('number', models.PositiveIntegerField()),
                ('board', models.TextField()),
                ('cells', accounts.crypto.PackedJSONField()),
                ('published_at', models.DateTimeField(auto_now_add=True)),
                ('benchmark', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='editions', to='bank.benchmark')),
                ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('run', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='judging.run')),
            ],
            options={
                'ordering': ['benchmark_id', 'kind', 'split', 'number'],
                'constraints': [models.UniqueConstraint(fields=('benchmark', 'kind', 'split', 'number'), name='edition_number')],
            },
        ),
        migrations.CreateModel(
            name='Snapshot',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('code', models.CharField(max_length=12, unique=True)),
                ('what', models.CharField(max_length=12)),
                ('scope', models.JSONField(default=dict)),
                ('fingerprint', models.CharField(max_length=64)),
                ('tables', models.JSONField()),
                ('made_from', models.JSONField(default=dict)),
                ('computed_at', models.DateTimeField()),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('benchmark', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='snapshots', to='bank.benchmark')),
                ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['-pk'],
                'constraints': [models.UniqueConstraint(fields=('what', 'fingerprint'), name='snapshot_once')],
            },
        ),
    ]
