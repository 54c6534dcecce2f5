from datetime import timedelta
from typing import Any

from django.apps import AppConfig
from django.apps import apps as installed
from django.apps.registry import Apps
from django.db.models.signals import post_migrate


class JudgingConfig(AppConfig):
    name = "judging"

    def ready(self) -> None:
        from accounts import jobs
        from bank.intake import registry

        jobs.register("follow_runs", "judging.runs.following.follow", every=timedelta(minutes=1))
        jobs.register("deliver", "judging.work.deliveries.deliver", every=timedelta(minutes=1))
        registry.register("judgments", "judging.judgments.imports.Judgments")
        registry.EXPORTED["judgments"] = "judging.judgments.exports.judgments"
        registry.ROWS["judgments"] = ("judging.Judgment", "run__benchmark")
        registry.DOWNLOADS["judgments"] = "judging.views.judgments.judgments_file"
        # The only signal in the project: a new or flushed database gets its built-in judges and recipes, whoever
        # created it.
        post_migrate.connect(_built_in, sender=self)


def _built_in(apps: Apps = installed, **_: Any) -> None:
    from bank.recipes.store import ensure_defaults
    from judging.endpoints.judges import ensure_baselines

    try:
        apps.get_model("judging", "Evaluation")
    except LookupError:  # only another app's tables were created
        return
    ensure_baselines()
    ensure_defaults()
