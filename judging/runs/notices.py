"""Whoever started a run is told when it ends or stands still."""

from django.db import transaction
from django.db.models import F
from django.urls import reverse
from django.utils import timezone

from accounts import notices
from accounts.models import User
from bank import guard
from judging.models import Run


def tell_of_runs() -> None:
    """Tell of what has changed since the last look. Called by workers; asked again it tells nothing new."""
    for run in Run.objects.exclude(told=F("state")).filter(by__isnull=False).select_related("by", "judge", "benchmark"):
        with transaction.atomic():
            if run.by and Run.objects.filter(pk=run.pk, told=run.told).update(told=run.state):
                _tell(run, run.by)


def _tell(run: Run, person: User) -> None:
    with guard.serving(lambda: person):
        text = _text(run)
    if text:
        of_outage = run.failing_since if run.state == Run.State.WAITING else None
        key = f"run-{run.pk}-{run.state}-{of_outage or run.calls}"
        notices.tell(person, key=key, text=text, link=reverse("judging:run-detail", args=[run.pk]))


def _text(run: Run) -> str:
    """Empty for what nobody has to be told: a run that goes on, that somebody paused or cancelled, or that a built-in
    judge does at once.
    """
    if run.judge.is_baseline:
        return ""
    name = f"Run {run.pk}, {run.judge} on {run.benchmark.titled},"
    match run.state:
        case Run.State.FINISHED:
            if run.failures and not run.verdicts:
                return f"{name} is finished, and every call failed: none of {run.planned or 0:,} results."
            failed = f"; {run.failures:,} failed" if run.failures else ""
            verdicts = "" if run.verdicts is None else f": {run.verdicts:,} of {run.planned or 0:,} results{failed}"
            return f"{name} is finished{verdicts}."
        case Run.State.PAUSED if run.state_reason:
            return f"{name} is paused: {run.state_reason.removesuffix('.')}."
        case Run.State.WAITING if run.next_try_at:
            at = timezone.localtime(run.next_try_at)
            return f"{name} waits: {run.state_reason} It is tried again by itself, next at {at:%H:%M %Z}."
    return ""
