import accounts.crypto
import bank.criteria.tables
import bank.models.submissions
import django.db.models.deletion
import django.db.models.functions.datetime
import django.db.models.manager
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [('bank', '0001_initial'), ('bank', '0002_names'), ('bank', '0003_recipes'), ('bank', '0004_cards'), ('bank', '0005_item_indexes'), ('bank', '0006_sealing'), ('bank', '0007_submissions_follow_the_ladder'), ('bank', '0008_sealed_to_the_row'), ('bank', '0009_access_log_by_person_and_way'), ('bank', '0010_simulated_models'), ('bank', '0011_model_parts'), ('bank', '0012_maps_of_columns'), ('bank', '0013_held_out_half')]

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Benchmark',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slug', models.SlugField(db_index=False, max_length=80)),
                ('version', models.CharField(default='1', max_length=40)),
                ('title', models.CharField(max_length=200)),
                ('description', models.TextField(blank=True)),
                ('licence', models.CharField(blank=True, max_length=200)),
                ('visibility', models.CharField(choices=[('public', 'Public'), ('private', 'Private')], default='private', max_length=8)),
                ('majority', models.CharField(choices=[('plurality', 'Plurality'), ('mllm-bench', 'Mllm Bench')], default='plurality', max_length=12)),
                ('score_scale', models.JSONField(blank=True, default=list)),
                ('hidden_splits', models.JSONField(blank=True, default=list)),
                ('source_format', models.CharField(blank=True, max_length=24)),
                ('checked_at', models.DateTimeField(blank=True, null=True)),
                ('edition', models.PositiveIntegerField(default=1)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={
                'ordering': ['title', 'pk'],
                'constraints': [models.UniqueConstraint(fields=('slug', 'version'), name='benchmark_slug_version'), models.CheckConstraint(condition=models.Q(('slug__contains', '@'), _negated=True), name='benchmark_slug_without_at')],
            },
        ),
        migrations.CreateModel(
            name='EvaluatedModel',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=200, unique=True)),
                ('organisation', models.CharField(blank=True, max_length=200)),
                ('open', models.BooleanField(blank=True, null=True)),
                ('family', models.CharField(blank=True, max_length=100)),
                ('licence', models.CharField(blank=True, max_length=200)),
                ('parameters', models.CharField(blank=True, max_length=60)),
                ('architecture', models.CharField(blank=True, db_default='', max_length=200)),
                ('vision', models.CharField(blank=True, db_default='', max_length=200)),
                ('language', models.CharField(blank=True, db_default='', max_length=200)),
                ('released', models.DateField(blank=True, null=True)),
                ('homepage', models.URLField(blank=True, max_length=500)),
                ('price_in', models.FloatField(blank=True, null=True)),
                ('price_out', models.FloatField(blank=True, null=True)),
                ('simulated', models.BooleanField(db_default=False, default=False)),
            ],
            options={
                'ordering': ['name'],
            },
        ),
        migrations.CreateModel(
            name='PictureStorage',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('token', models.CharField(max_length=32)),
            ],
        ),
        migrations.CreateModel(
            name='Capability',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=200)),
                ('path', models.CharField(max_length=700)),
                ('position', models.PositiveIntegerField(default=0)),
                ('quota', models.PositiveIntegerField(blank=True, null=True)),
                ('benchmark', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='capabilities', to='bank.benchmark')),
                ('owner', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('parent', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='children', to='bank.capability')),
            ],
            options={
                'ordering': ['position', 'pk'],
                'constraints': [models.UniqueConstraint(fields=('benchmark', 'path'), name='capability_path')],
            },
        ),
        migrations.CreateModel(
            name='CriteriaAccess',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('by_command', models.CharField(blank=True, max_length=100)),
                ('at', models.DateTimeField(auto_now_add=True, db_index=True)),
                ('how', models.CharField(max_length=40)),
                ('about', models.CharField(blank=True, max_length=100)),
                ('sample_count', models.PositiveIntegerField()),
                ('reason', models.TextField(blank=True)),
                ('who', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'indexes': [models.Index(fields=['who', 'id'], name='access_of_person'), models.Index(fields=['how', 'id'], name='access_how'), models.Index(fields=['who', 'how', 'id'], name='access_way_of_person')],
            },
        ),
        migrations.CreateModel(
            name='AccessedSample',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('sample_id', models.BigIntegerField()),
                ('access', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='accessed', to='bank.criteriaaccess')),
            ],
            options={
                'indexes': [models.Index(fields=['sample_id', 'access'], name='access_to_sample')],
            },
        ),
        migrations.AddField(
            model_name='benchmark',
            name='anchor',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='bank.evaluatedmodel'),
        ),
        migrations.CreateModel(
            name='FileLease',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('until', models.DateTimeField()),
                ('person', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='HeldOutHalf',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('below', models.CharField(max_length=64)),
                ('drawn_at', models.DateTimeField(auto_now_add=True)),
                ('benchmark', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='held_out_half', to='bank.benchmark')),
                ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='Import',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('state', models.CharField(choices=[('writing', 'Writing'), ('done', 'Done')], default='writing', max_length=7)),
                ('holder', models.CharField(max_length=32)),
                ('until', models.DateTimeField()),
                ('folder', models.CharField(blank=True, max_length=40)),
                ('spans', models.JSONField(default=dict)),
                ('started_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('done_at', models.DateTimeField(null=True)),
            ],
            options={
                'constraints': [models.UniqueConstraint(condition=models.Q(('state', 'writing')), fields=('state',), name='import_one_at_a_time')],
            },
        ),
        migrations.CreateModel(
            name='ImportRange',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('table', models.CharField(max_length=63, unique=True)),
                ('first', models.BigIntegerField()),
                ('last', models.BigIntegerField()),
                ('of', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='ranges', to='bank.import')),
            ],
            options={
                'ordering': ['pk'],
            },
        ),
        migrations.CreateModel(
            name='KeptMap',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('digest', models.CharField(max_length=64, unique=True)),
                ('map', models.JSONField()),
                ('changed_at', models.DateTimeField(auto_now=True)),
                ('by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='Recipe',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.SlugField(db_index=False, max_length=80)),
                ('version', models.PositiveIntegerField(default=1)),
                ('spec', models.JSONField()),
                ('sha256', models.CharField(max_length=64)),
                ('built_in', models.BooleanField(default=False)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['name', '-version'],
                'constraints': [models.UniqueConstraint(fields=('name', 'version'), name='recipe_version')],
            },
        ),
        migrations.CreateModel(
            name='Item',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('score', 'Score'), ('pair', 'Pair'), ('batch', 'Batch')], max_length=5)),
                ('content_hash', models.CharField(max_length=64, unique=True)),
                ('outside', models.BooleanField(db_default=False, default=False)),
                ('blind', models.BooleanField(db_default=False, default=False)),
                ('recipe', models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='bank.recipe')),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('recipe__isnull', False)), fields=['recipe'], name='item_of_recipe')],
            },
        ),
        migrations.CreateModel(
            name='Response',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('variant', models.CharField(blank=True, max_length=60)),
                ('text', models.TextField(blank=True)),
                ('status', models.CharField(choices=[('ok', 'Ok'), ('refused', 'Refused'), ('filtered', 'Filtered'), ('truncated', 'Truncated'), ('empty', 'Empty'), ('error', 'Error'), ('skipped', 'Skipped')], default='ok', max_length=10)),
                ('reason', models.TextField(blank=True)),
                ('option_order', models.JSONField(blank=True, null=True)),
                ('tokens', models.PositiveIntegerField(blank=True, null=True)),
                ('origin', models.CharField(choices=[('staff', 'Staff'), ('submission', 'Submission'), ('untrusted', 'Untrusted')], db_default='staff', default='staff', max_length=10)),
                ('repeat', models.PositiveSmallIntegerField(db_default=0, default=0)),
                ('turn', models.PositiveSmallIntegerField(db_default=0, default=0)),
                ('likelihoods', models.JSONField(blank=True, null=True)),
                ('model', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='responses', to='bank.evaluatedmodel')),
                ('recipe', models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='bank.recipe')),
            ],
        ),
        migrations.CreateModel(
            name='ItemResponse',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('position', models.PositiveSmallIntegerField()),
                ('item', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='places', to='bank.item')),
                ('response', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='places', to='bank.response')),
            ],
            options={
                'ordering': ['position'],
                'constraints': [models.UniqueConstraint(fields=('item', 'position'), name='item_position'), models.UniqueConstraint(fields=('item', 'response'), name='item_response')],
            },
        ),
        migrations.AddField(
            model_name='item',
            name='responses',
            field=models.ManyToManyField(related_name='items', through='bank.ItemResponse', to='bank.response'),
        ),
        migrations.CreateModel(
            name='ResponseMark',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('option', models.CharField(blank=True, max_length=60)),
                ('right', models.BooleanField()),
                ('response', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='mark', to='bank.response')),
            ],
        ),
        migrations.CreateModel(
            name='ReviewRound',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('opened_at', models.DateTimeField(auto_now_add=True)),
                ('closed_at', models.DateTimeField(blank=True, null=True)),
                ('benchmark', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='review_rounds', to='bank.benchmark')),
                ('closed_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('opened_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['number'],
                'constraints': [models.UniqueConstraint(fields=('benchmark', 'number'), name='review_round_number')],
            },
        ),
        migrations.CreateModel(
            name='Sample',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.CharField(max_length=200)),
                ('instruction', models.TextField()),
                ('hint', models.TextField(blank=True)),
                ('language', models.CharField(blank=True, max_length=16)),
                ('question_type', models.CharField(blank=True, max_length=40)),
                ('options', models.JSONField(blank=True, default=dict)),
                ('split', models.CharField(blank=True, max_length=40)),
                ('source', models.CharField(blank=True, max_length=200)),
                ('group', models.CharField(blank=True, max_length=200)),
                ('metadata', accounts.crypto.OncePlainJSONField(blank=True, default=dict)),
                ('closed', models.PositiveSmallIntegerField(db_default=0, default=0)),
                ('absent_images', models.JSONField(blank=True, default=list)),
                ('status', models.CharField(choices=[('draft', 'Draft'), ('review', 'Review'), ('expert', 'Expert'), ('approved', 'Approved'), ('rejected', 'Rejected')], default='approved', max_length=10)),
                ('status_reason', models.TextField(blank=True, db_default='')),
                ('edition', models.PositiveIntegerField(db_default=1, default=1)),
                ('quality_hints', models.PositiveSmallIntegerField(db_default=0, default=0)),
                ('retired_in', models.CharField(blank=True, max_length=40)),
                ('position', models.PositiveIntegerField(default=0)),
                ('author', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='samples', to=settings.AUTH_USER_MODEL)),
                ('benchmark', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='samples', to='bank.benchmark')),
                ('capability', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='samples', to='bank.capability')),
            ],
            options={
                'ordering': ['position', 'pk'],
                'indexes': [models.Index(fields=['benchmark', 'position', 'id'], name='sample_in_order'), models.Index(fields=['benchmark', 'capability', 'question_type', 'split', 'status', 'quality_hints', 'position', 'id'], name='sample_facets'), models.Index(condition=models.Q(('status', 'expert')), fields=['status'], name='sample_to_check')],
                'constraints': [models.UniqueConstraint(fields=('benchmark', 'key'), name='sample_key')],
            },
        ),
        migrations.AddField(
            model_name='response',
            name='sample',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='responses', to='bank.sample'),
        ),
        migrations.AddField(
            model_name='item',
            name='sample',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='items', to='bank.sample'),
        ),
        migrations.CreateModel(
            name='Draft',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('part', models.CharField(max_length=20)),
                ('text', accounts.crypto.EncryptedTextField()),
                ('origin', models.CharField(max_length=240)),
                ('state', models.CharField(choices=[('waiting', 'Waiting'), ('taken', 'Taken'), ('dismissed', 'Dismissed')], default='waiting', max_length=9)),
                ('decided_at', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('sample', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='drafts', to='bank.sample')),
            ],
            options={
                'ordering': ['pk'],
                'indexes': [models.Index(fields=['state', 'part'], name='draft_state')],
            },
        ),
        migrations.CreateModel(
            name='CriterionRevision',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', accounts.crypto.EncryptedTextField(row=('sample_id', 'key'))),
                ('version', models.PositiveIntegerField()),
                ('at', models.DateTimeField(auto_now_add=True)),
                ('old', accounts.crypto.EncryptedTextField(null=True, row=('sample_id', 'key'))),
                ('new', accounts.crypto.EncryptedTextField(null=True, row=('sample_id', 'key'))),
                ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('sample', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='bank.sample')),
            ],
            options={
                'ordering': ['-pk'],
                'default_manager_name': 'unguarded',
            },
            managers=[
                ('unguarded', django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name='Criterion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', accounts.crypto.EncryptedTextField(row=('sample_id', 'key'))),
                ('key_hash', bank.criteria.tables.KeyHashField(editable=False, max_length=64)),
                ('position', models.PositiveSmallIntegerField(default=0)),
                ('kind', models.CharField(choices=[('exact_reference', 'Exact Reference'), ('soft_reference', 'Soft Reference'), ('range', 'Range'), ('guideline', 'Guideline'), ('component', 'Component'), ('answer_key', 'Answer Key')], default='guideline', max_length=16)),
                ('category', accounts.crypto.EncryptedTextField(blank=True, default='', row=('sample_id', 'key'))),
                ('weight', accounts.crypto.EncryptedFloatField(blank=True, null=True, row=('sample_id', 'key'))),
                ('shown_to', models.CharField(choices=[('staff', 'Staff'), ('campaign', 'Campaign'), ('public', 'Public')], default='staff', max_length=8)),
                ('version', models.PositiveIntegerField(default=1)),
                ('text', accounts.crypto.EncryptedTextField(row=('sample_id', 'key'))),
                ('sample', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='bank.sample')),
            ],
            options={
                'ordering': ['sample_id', 'position'],
                'default_manager_name': 'unguarded',
                'constraints': [models.UniqueConstraint(fields=('sample', 'key_hash'), name='criterion_key'), models.CheckConstraint(condition=models.Q(('shown_to__in', ['staff', 'campaign', 'public'])), name='criterion_shown_to_known')],
            },
            managers=[
                ('unguarded', django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name='SampleImage',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('position', models.PositiveSmallIntegerField(default=0)),
                ('sha256', models.CharField(db_index=True, max_length=64)),
                ('original_sha256', models.CharField(max_length=64)),
                ('phash', models.CharField(blank=True, db_default='', max_length=16)),
                ('kind', models.CharField(max_length=4)),
                ('width', models.PositiveIntegerField()),
                ('height', models.PositiveIntegerField()),
                ('description', models.TextField(blank=True)),
                ('described_by', models.CharField(blank=True, db_default='', max_length=240)),
                ('objects_found', models.JSONField(blank=True, default=list)),
                ('source_url', models.TextField(blank=True)),
                ('sample', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='images', to='bank.sample')),
            ],
            options={
                'ordering': ['position'],
                'constraints': [models.UniqueConstraint(fields=('sample', 'position'), name='sample_image_position')],
            },
        ),
        migrations.CreateModel(
            name='SampleReview',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('verdict', models.CharField(blank=True, choices=[('fine', 'Fine'), ('revise', 'Revise'), ('reject', 'Reject')], max_length=6)),
                ('points', models.JSONField(blank=True, default=dict)),
                ('note', models.TextField(blank=True)),
                ('at', models.DateTimeField(blank=True, null=True)),
                ('revised_at', models.DateTimeField(blank=True, null=True)),
                ('reviewer', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='sample_reviews', to=settings.AUTH_USER_MODEL)),
                ('round', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='reviews', to='bank.reviewround')),
                ('sample', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='reviews', to='bank.sample')),
            ],
            options={
                'ordering': ['pk'],
                'indexes': [models.Index(fields=['reviewer', 'verdict', 'id'], name='sample_review_queue')],
                'constraints': [models.UniqueConstraint(fields=('round', 'sample', 'reviewer'), name='sample_review_once'), models.CheckConstraint(condition=models.Q(models.Q(('at__isnull', True), ('verdict', '')), models.Q(models.Q(('verdict', ''), _negated=True), ('at__isnull', False)), _connector='OR'), name='sample_review_verdict_has_time')],
            },
        ),
        migrations.CreateModel(
            name='SampleRevision',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('edition', models.PositiveIntegerField()),
                ('at', models.DateTimeField(auto_now_add=True)),
                ('changes', models.JSONField(default=dict)),
                ('note', models.TextField(blank=True)),
                ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('sample', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='revisions', to='bank.sample')),
            ],
            options={
                'ordering': ['-pk'],
            },
        ),
        migrations.CreateModel(
            name='Submission',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=200)),
                ('file_name', models.CharField(blank=True, max_length=200)),
                ('file_sha256', models.CharField(max_length=64)),
                ('counts', models.JSONField(default=dict)),
                ('problems', models.JSONField(default=dict)),
                ('state', models.CharField(choices=[('checked', 'Checked'), ('scored', 'Scored'), ('failed', 'Failed'), ('withdrawn', 'Withdrawn')], default='checked', max_length=10)),
                ('reason', models.TextField(blank=True)),
                ('changed_at', models.DateTimeField(null=True)),
                ('released_at', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('benchmark', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='submissions', to='bank.benchmark')),
                ('by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='submissions', to=settings.AUTH_USER_MODEL)),
                ('changed_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('model', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='submissions', to='bank.evaluatedmodel')),
            ],
            options={
                'ordering': ['-pk'],
            },
        ),
        migrations.AddField(
            model_name='response',
            name='submission',
            field=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='responses', to='bank.submission'),
        ),
        migrations.CreateModel(
            name='SubmissionCount',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('period', models.CharField(max_length=24)),
                ('used', models.PositiveIntegerField(default=0)),
                ('benchmark', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='bank.benchmark')),
                ('person', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('benchmark', 'person', 'period'), name='submission_count_once')],
            },
        ),
        migrations.CreateModel(
            name='SubmissionRules',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('open', models.BooleanField(default=False)),
                ('per_day', models.PositiveIntegerField(blank=True, default=5, null=True)),
                ('in_all', models.PositiveIntegerField(blank=True, default=50, null=True)),
                ('count_failed', models.BooleanField(default=False)),
                ('required_splits', models.JSONField(blank=True, default=list)),
                ('private_half', models.BooleanField(default=True)),
                ('seed', accounts.crypto.EncryptedTextField(default=bank.models.submissions.new_seed, editable=False)),
                ('notes', models.TextField(blank=True)),
                ('changed_at', models.DateTimeField(auto_now=True)),
                ('benchmark', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='submission_rules', to='bank.benchmark')),
                ('changed_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='SubmissionScore',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('split', models.CharField(blank=True, max_length=40)),
                ('hidden', models.BooleanField()),
                ('part', models.CharField(choices=[('whole', 'Whole'), ('shown', 'Shown'), ('kept', 'Kept')], max_length=5)),
                ('kind', models.CharField(choices=[('choice', 'Choice'), ('yes_no', 'Yes No')], max_length=6)),
                ('open', models.BooleanField(default=False)),
                ('n', models.PositiveIntegerField()),
                ('numbers', accounts.crypto.EncryptedJSONField()),
                ('at', models.DateTimeField(auto_now_add=True)),
                ('submission', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='bank.submission')),
            ],
            options={
                'ordering': ['split', 'part', 'kind'],
                'constraints': [models.UniqueConstraint(fields=('submission', 'split', 'part', 'kind', 'open'), name='score_once_each')],
            },
        ),
        migrations.CreateModel(
            name='ToldScore',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('split', models.CharField(blank=True, max_length=40)),
                ('kind', models.CharField(choices=[('choice', 'Choice'), ('yes_no', 'Yes No')], max_length=6)),
                ('kept', models.BooleanField(default=False)),
                ('value', models.FloatField(null=True)),
                ('best', models.FloatField(null=True)),
                ('at', models.DateTimeField(auto_now_add=True)),
                ('submission', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='told_scores', to='bank.submission')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('submission', 'split', 'kind', 'kept'), name='told_once')],
            },
        ),
        migrations.CreateModel(
            name='Upload',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=255)),
                ('files', models.JSONField()),
                ('size', models.BigIntegerField()),
                ('received', models.BigIntegerField(default=0)),
                ('sha256', models.CharField(blank=True, max_length=64)),
                ('folder', models.CharField(max_length=32, unique=True)),
                ('secret', accounts.crypto.EncryptedTextField()),
                ('state', models.CharField(choices=[('receiving', 'Receiving'), ('received', 'Waiting for the check'), ('checking', 'Checking'), ('mapping', 'Name its columns'), ('checked', 'Waits for you'), ('importing', 'Importing'), ('done', 'Imported'), ('failed', 'Failed'), ('cancelled', 'Cancelled')], default='receiving', max_length=9)),
                ('tries', models.PositiveSmallIntegerField(default=0)),
                ('fault', models.TextField(blank=True)),
                ('found', models.JSONField(blank=True, default=dict)),
                ('choices', models.JSONField(blank=True, default=dict)),
                ('map', models.JSONField(blank=True, default=dict)),
                ('keeps_map', models.BooleanField(default=True)),
                ('report', models.JSONField(blank=True, default=dict)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('changed_at', models.DateTimeField(auto_now=True)),
                ('by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['-pk'],
                'indexes': [models.Index(fields=['state', 'id'], name='upload_waiting')],
                'constraints': [models.CheckConstraint(condition=models.Q(('received__gte', 0), ('received__lte', models.F('size'))), name='upload_received_in_size')],
            },
        ),
        migrations.AddIndex(
            model_name='item',
            index=models.Index(condition=models.Q(('recipe', None)), fields=['sample', 'kind'], name='item_of_sample'),
        ),
        migrations.AddIndex(
            model_name='item',
            index=models.Index(condition=models.Q(('outside', True), ('blind', True), _connector='OR'), fields=['sample'], name='item_sealed'),
        ),
        migrations.AddIndex(
            model_name='response',
            index=models.Index(condition=models.Q(('submission__isnull', False)), fields=['submission'], name='response_submitted'),
        ),
        migrations.AddIndex(
            model_name='response',
            index=models.Index(condition=models.Q(('origin', 'staff'), _negated=True), fields=['sample'], name='response_from_outside'),
        ),
        migrations.AddConstraint(
            model_name='response',
            constraint=models.UniqueConstraint(condition=models.Q(('recipe', None)), fields=('sample', 'model', 'variant'), name='response_once'),
        ),
        migrations.AddConstraint(
            model_name='response',
            constraint=models.UniqueConstraint(condition=models.Q(('recipe__isnull', False)), fields=('recipe', 'sample', 'model', 'variant', 'repeat', 'turn'), name='response_of_recipe_once'),
        ),
    ]
