from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('bank', '0006_no_failed_sign_in'),
    ]

    operations = [
        migrations.CreateModel(
            name='PictureStorage',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('token', models.CharField(max_length=32)),
            ],
        ),
    ]
