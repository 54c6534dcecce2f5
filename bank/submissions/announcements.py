"""Announcements of submissions to webhooks."""

from django.urls import reverse

from bank.announcements import announce
from bank.models import Submission


def announce_submission(event: str, submission: Submission, *, key: str) -> None:
    """Tell webhooks what became of a submission, and nothing of whose it is, of its model and its score."""
    announce(
        event,
        key=key,
        number=submission.pk,
        state=event.partition(".")[2],
        page=reverse("leaderboard:submission-detail", args=[submission.pk]),
        benchmark=submission.benchmark,
    )
