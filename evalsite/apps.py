"""The project as an app: commands, template tags, checks."""

from datetime import timedelta

from django.apps import AppConfig


class EvalsiteConfig(AppConfig):
    name = "evalsite"

    def ready(self) -> None:
        from django.conf import settings

        from accounts import jobs
        from evalsite import checks, keys  # noqa: F401 (registers them)

        jobs.register("tidy", "evalsite.tidying.clear", lane=jobs.HEAVY, every=timedelta(days=1))
        if settings.BACKUP_FOLDER:
            jobs.register("back_up", "evalsite.backups.nightly.back_up", lane=jobs.HEAVY, every=timedelta(days=1))
        keys.keep_private(settings.DATA)
