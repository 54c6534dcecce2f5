import accounts.crypto
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [('leaderboard', '0001_initial'), ('leaderboard', '0002_recipes')]

    initial = True

    dependencies = [
        ('accounts', '__first__'),
        ('bank', '0001_squashed_0005_item_indexes'),
        ('judging', '0001_squashed_0006_simulated_told'),
    ]

    operations = [
        migrations.CreateModel(
            name='Edition',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('benchmark', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='editions', to='bank.benchmark')),
                ('kind', models.CharField(max_length=10)),
                ('split', models.CharField(blank=True, max_length=40)),
                ('number', models.PositiveIntegerField()),
                ('run', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='judging.run')),
                ('board', models.TextField()),
                ('cells', accounts.crypto.PackedJSONField()),
                ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('published_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={
                'ordering': ['benchmark_id', 'kind', 'split', 'number'],
                'constraints': [models.UniqueConstraint(fields=('benchmark', 'kind', 'split', 'number'), name='edition_number')],
            },
        ),
        migrations.CreateModel(
            name='OutsideScore',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('board', models.CharField(max_length=120)),
                ('model', models.CharField(max_length=200)),
                ('score', models.FloatField()),
                ('lower_is_better', models.BooleanField(default=False)),
                ('source', models.CharField(max_length=500)),
                ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('at', models.DateTimeField(auto_now=True)),
            ],
            options={
                'ordering': ['board', 'model'],
                'constraints': [models.UniqueConstraint(fields=('board', 'model'), name='outside_score_once')],
            },
        ),
        migrations.CreateModel(
            name='RecipeEdition',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('recipe', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='editions', to='bank.recipe')),
                ('number', models.PositiveIntegerField()),
                ('board', models.TextField()),
                ('cells', accounts.crypto.PackedJSONField()),
                ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('published_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={
                'ordering': ['recipe_id', 'number'],
                'constraints': [models.UniqueConstraint(fields=('recipe', 'number'), name='recipe_edition_number')],
            },
        ),
        migrations.CreateModel(
            name='Snapshot',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('code', models.CharField(max_length=12, unique=True)),
                ('benchmark', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='snapshots', to='bank.benchmark')),
                ('what', models.CharField(max_length=12)),
                ('scope', models.JSONField(default=dict)),
                ('fingerprint', models.CharField(max_length=64)),
                ('tables', models.JSONField()),
                ('made_from', models.JSONField(default=dict)),
                ('computed_at', models.DateTimeField()),
                ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={
                'ordering': ['-pk'],
                'constraints': [models.UniqueConstraint(fields=('what', 'fingerprint'), name='snapshot_once')],
            },
        ),
    ]
