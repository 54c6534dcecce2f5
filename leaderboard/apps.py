"""The app of boards."""

from django.apps import AppConfig


class LeaderboardConfig(AppConfig):
    name = "leaderboard"

    def ready(self) -> None:
        from bank.intake import registry
        from judging.models.submissions import WHEN_TOLD

        registry.AFTER_LARGE.append("leaderboard.pages.home.compute")  # so that no visitor waits for it
        WHEN_TOLD.append("leaderboard.submissions.publish_next")
