"""The project as an app: commands, template tags, checks."""

from django.apps import AppConfig


class EvalsiteConfig(AppConfig):
    name = "evalsite"

    def ready(self) -> None:
        from evalsite import checks  # noqa: F401 (registers them)
