import accounts.crypto
import django.db.models.deletion
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [('accounts', '0004_tokens'), ('accounts', '0005_webhooks'), ('accounts', '0006_token_names'), ('accounts', '0007_erasing_and_signing_in'), ('accounts', '0008_jobs'), ('accounts', '0009_rights')]

    dependencies = [
        ('accounts', '0001_squashed_0003_sessions_hashed'),
        ('knox', '0009_extend_authtoken_field'),
    ]

    operations = [
        migrations.AddField(
            model_name='auditentry',
            name='erased',
            field=models.CharField(blank=True, db_default='', max_length=64),
        ),
        migrations.CreateModel(
            name='Job',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=40)),
                ('arguments', models.JSONField(default=dict)),
                ('not_before', models.DateTimeField(db_index=True)),
                ('once', models.CharField(max_length=200)),
                ('begun', models.BooleanField(default=False)),
            ],
            options={
                'ordering': ['not_before', 'pk'],
                'constraints': [models.UniqueConstraint(condition=models.Q(('begun', False)), fields=('once',), name='job_waits_once')],
            },
        ),
        migrations.CreateModel(
            name='SecondFactor',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('secret', accounts.crypto.EncryptedTextField()),
                ('step', models.PositiveBigIntegerField(default=0)),
                ('recovery', models.JSONField(default=list)),
                ('made_at', models.DateTimeField(null=True)),
                ('person', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='second_factor', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='Team',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=80, unique=True)),
                ('members', models.ManyToManyField(related_name='teams', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['name'],
            },
        ),
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
                    options={
                        'db_table': 'knox_authtoken',
                    },
                ),
            ],
        ),
        migrations.AddField(
            model_name='Token',
            name='name',
            field=models.CharField(blank=True, max_length=60),
        ),
        migrations.AddField(
            model_name='Token',
            name='scopes',
            field=models.JSONField(default=list),
        ),
        migrations.AddField(
            model_name='Token',
            name='last_used',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name='Token',
            name='tell_at',
            field=models.DateTimeField(null=True),
        ),
        migrations.CreateModel(
            name='Webhook',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('url', models.CharField(max_length=500)),
                ('events', models.JSONField(default=list)),
                ('secret', accounts.crypto.EncryptedTextField()),
                ('active', models.BooleanField(default=True)),
                ('failing_since', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['pk'],
            },
        ),
        migrations.CreateModel(
            name='SignOn',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('issuer', models.CharField(max_length=200)),
                ('subject', models.CharField(max_length=255)),
                ('made_at', models.DateTimeField(auto_now_add=True)),
                ('person', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='sign_ons', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('issuer', 'subject'), name='sign_on_once')],
            },
        ),
        migrations.CreateModel(
            name='Grant',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('benchmark', models.CharField(max_length=80)),
                ('right', models.CharField(choices=[('view', 'see it while it is private'), ('label', 'label in its campaigns'), ('curate', 'curate it, as curators do'), ('release', 'publish it and its boards')], max_length=7)),
                ('person', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='grants', to=settings.AUTH_USER_MODEL)),
                ('team', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='grants', to='accounts.team')),
            ],
            options={
                'ordering': ['benchmark', 'pk'],
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('person__isnull', False), ('team', None)), models.Q(('person', None), ('team__isnull', False)), _connector='OR'), name='grant_of_person_or_team'), models.CheckConstraint(condition=models.Q(('right__in', ['view', 'label', 'curate', 'release'])), name='grant_right_known'), models.UniqueConstraint(fields=('benchmark', 'person'), name='grant_of_person_once'), models.UniqueConstraint(fields=('benchmark', 'team'), name='grant_of_team_once')],
            },
        ),
        migrations.CreateModel(
            name='Delivery',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, primary_key=True, serialize=False)),
                ('event', models.CharField(max_length=40)),
                ('key', models.CharField(max_length=100)),
                ('body', models.TextField()),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('not_before', models.DateTimeField(db_index=True, null=True)),
                ('tries', models.PositiveSmallIntegerField(default=0)),
                ('tried_at', models.DateTimeField(null=True)),
                ('status', models.PositiveSmallIntegerField(null=True)),
                ('words', models.CharField(blank=True, max_length=200)),
                ('webhook', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='accounts.webhook')),
            ],
            options={
                'ordering': ['-created_at'],
                'constraints': [models.UniqueConstraint(fields=('webhook', 'key'), name='delivery_once')],
            },
        ),
    ]
