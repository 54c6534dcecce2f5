"""Whoever started a run is told when it ends or stands still; so are webhooks, of what everybody may know."""

from django.db import transaction
from django.db.models import F
from django.urls import reverse
from django.utils import timezone

from accounts import notices
from accounts.models import User
from bank import guard
from bank.announcements import announce
from judging.models import Run, table_of
from judging.models.runs import JURY, untold
from judging.runs import queries


def tell_of_runs() -> None:
    """Tell of what has changed since the last look. Called by workers; asked again it tells nothing new."""
    for run in Run.objects.exclude(told=F("state")).filter(by__isnull=False).select_related("by", "judge", "benchmark"):
        with transaction.atomic():
            if run.by and Run.objects.filter(pk=run.pk, told=run.told).update(told=run.state):
                _tell(run, run.by)


def announce_runs() -> None:
    """Tell webhooks of what has changed, of a run that holds closed inputs once the day of its end is over: the moment
    would tell how long its calls took.
    """
    changed = Run.objects.exclude(announced=F("state")).exclude(untold()).select_related("judge", "benchmark")
    for run in changed:
        with transaction.atomic():
            if Run.objects.filter(pk=run.pk, announced=run.announced).update(announced=run.state):
                _announce(run)


def _announce(run: Run) -> None:
    if run.judge.is_baseline or run.imported or JURY in run.settings:
        return  # made at once
    failed = run.state_reason and not run.is_out_of_budget
    events = {Run.State.FINISHED: "run.finished", Run.State.PAUSED: "run.failed" if failed else "run.paused"}
    if event := events.get(Run.State(run.state)):
        announce(
            event,
            key=f"{run.pk}:{run.calls}",
            number=run.pk,
            state=run.state,
            page=reverse("judging:run-detail", args=[run.pk]),
            benchmark=run.benchmark,
            judge=str(run.judge),
            protocol=run.protocol,
        )


def _tell(run: Run, person: User) -> None:
    with guard.serving(lambda: person):
        text = _text(run)
    if text:
        of_outage = run.failing_since if run.state == Run.State.WAITING else None
        key = f"run-{run.pk}-{run.state}-{of_outage or run.calls}"
        page = "leaderboard:run-tryout" if run.tryout else "judging:run-detail"
        notices.tell(person, key=key, text=text, link=reverse(page, args=[run.pk]))


def _counts(run: Run) -> str:
    unasked = queries.unasked([run.pk]).get(run.pk, 0)
    failed, planned = (run.failures or 0) - unasked, run.planned or 0
    if failed and not run.verdicts:
        replied = table_of(run).objects.filter(run=run).exclude(status__in=("ok", "error")).exists()
        why = "no reply could be read" if replied else "every call failed"
        return f", and {why}: none of {planned:,} results"
    if run.verdicts is None:
        return ""
    without = f"; {failed:,} failed" if failed else ""
    without += f"; {unasked:,} not asked, since an answer is none" if unasked else ""
    return f": {run.verdicts:,} of {planned:,} results{without}"


def _text(run: Run) -> str:
    """Empty for what nobody has to be told: a run that goes on, that somebody paused or cancelled, or that a built-in
    judge does at once.
    """
    if run.judge.is_baseline:
        return ""
    of = f"{run.judge} on {run.benchmark.titled},"
    name = f"The trial of {of} run {run.pk}," if run.tryout else f"Run {run.pk}, {of}"
    match run.state:
        case Run.State.FINISHED:
            return f"{name} is finished{_counts(run)}."
        case Run.State.PAUSED if run.state_reason:
            return f"{name} is paused: {run.state_reason.removesuffix('.')}."
        case Run.State.WAITING if run.next_try_at:
            at = timezone.localtime(run.next_try_at)
            return f"{name} waits: {run.state_reason} It is tried again by itself, next at {at:%H:%M %Z}."
    return ""
