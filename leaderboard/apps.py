"""The app of boards."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate, pre_migrate


class LeaderboardConfig(AppConfig):
    name = "leaderboard"

    def ready(self) -> None:
        from accounts import jobs
        from judging.models.submissions import WHEN_TOLD
        from leaderboard.kept import counters

        jobs.register("prepare_page", "leaderboard.kept.pages.prepare", lane=jobs.PAGES)
        jobs.register("draw_anew", "leaderboard.kept.pages.draw_anew", lane=jobs.HEAVY)
        jobs.register("freeze", "leaderboard.views.snapshots.freeze", lane=jobs.PAGES)
        jobs.register("prepare_again", "leaderboard.kept.pages.prepare_again")
        # No work of ours: Django's way of making what is in the database and no table.
        pre_migrate.connect(counters.remove, sender=self)
        post_migrate.connect(counters.install, sender=self)
        WHEN_TOLD.append("leaderboard.submissions.publish_next")
