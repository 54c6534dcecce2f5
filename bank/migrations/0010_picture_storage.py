from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('bank', '0003_preferences'),
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
