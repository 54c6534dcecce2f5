"""The project as an app: commands, template tags, checks."""

from django.apps import AppConfig


class EvalsiteConfig(AppConfig):
    name = "evalsite"

    def ready(self) -> None:
        from django.conf import settings

        from evalsite import checks, keys  # noqa: F401 (registers them)

        keys.keep_private(settings.DATA)
