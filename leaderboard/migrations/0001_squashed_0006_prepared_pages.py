import accounts.crypto
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [('leaderboard', '0001_initial'), ('leaderboard', '0002_recipes'), ('leaderboard', '0003_editions_of_judges_and_pairs'), ('leaderboard', '0004_changes'), ('leaderboard', '0005_held_out_releases'), ('leaderboard', '0006_prepared_pages')]

    initial = True

    dependencies = [
        ('bank', '0001_squashed_0013_held_out_half'),
        ('judging', '0001_squashed_0015_routes'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Change',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('benchmark', models.BigIntegerField(db_index=True)),
                ('hides', models.BooleanField(db_default=False, default=False)),
                ('number', models.BigIntegerField()),
            ],
        ),
        migrations.CreateModel(
            name='PreparedPage',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.CharField(max_length=64, unique=True)),
                ('asked', models.JSONField()),
                ('asked_at', models.DateTimeField(auto_now_add=True)),
                ('version', models.CharField(max_length=100)),
                ('hiding', models.CharField(max_length=100)),
                ('status', models.PositiveSmallIntegerField(null=True)),
                ('content', accounts.crypto.PackedJSONField()),
                ('sealed', models.BooleanField(default=False)),
                ('made_at', models.DateTimeField(null=True)),
                ('benchmark', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='bank.benchmark')),
            ],
        ),
        migrations.CreateModel(
            name='Edition',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('what', models.CharField(choices=[('models', 'Models'), ('judges', 'Judges')], db_default='models', default='models', max_length=6)),
                ('kind', models.CharField(max_length=10)),
                ('split', models.CharField(blank=True, max_length=40)),
                ('number', models.PositiveIntegerField()),
                ('board', models.TextField()),
                ('cells', accounts.crypto.PackedJSONField()),
                ('inputs', models.PositiveIntegerField(db_default=0, default=0)),
                ('published_at', models.DateTimeField(auto_now_add=True)),
                ('benchmark', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='editions', to='bank.benchmark')),
                ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('run', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='judging.run')),
            ],
            options={
                'ordering': ['benchmark_id', 'what', 'kind', 'split', 'number'],
                'constraints': [models.UniqueConstraint(fields=('benchmark', 'what', 'kind', 'split', 'number'), name='edition_number')],
            },
        ),
        migrations.CreateModel(
            name='HeldOutRelease',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('board', models.TextField()),
                ('at', models.DateTimeField(auto_now_add=True)),
                ('benchmark', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='held_out_releases', to='bank.benchmark')),
                ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='judging.run')),
            ],
            options={
                'ordering': ['benchmark_id', 'number'],
                'constraints': [models.UniqueConstraint(fields=('benchmark', 'number'), name='held_out_release_number')],
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
                ('at', models.DateTimeField(auto_now=True)),
                ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
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
                ('number', models.PositiveIntegerField()),
                ('board', models.TextField()),
                ('cells', accounts.crypto.PackedJSONField()),
                ('published_at', models.DateTimeField(auto_now_add=True)),
                ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('recipe', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='editions', to='bank.recipe')),
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
