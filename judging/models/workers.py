"""Workers: which runs they hold, which rows they have claimed, and their shares of a judge's concurrent calls."""

from datetime import timedelta
from typing import Any

from django.db import models
from django.db.models.functions import Now

from judging.models.judges import Judge
from judging.models.runs import Run

# How long a hold lasts after its worker stops renewing it. Workers renew every second.
LEASE = timedelta(seconds=30)
SHARE_LEASE = timedelta(seconds=10)  # the same for its share of a judge's calls


class LeasedQuerySet(models.QuerySet[Any]):
    def live(self) -> "LeasedQuerySet":
        """Those renewed in time. An end further ahead than any lease was written by a clock that has been set back
        since. Only the database's clock counts, because the workers' clocks may differ."""
        return self.filter(until__range=(Now(), Now() + 2 * LEASE))


class RunHold(models.Model):
    """A worker's lease of a run. The row is its permission to write: without it, what the worker sends is refused.

    Its primary key is never reused, so it is the fencing token.
    """

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="holds")
    worker = models.CharField(max_length=100, blank=True)
    until = models.DateTimeField()
    in_flight = models.PositiveIntegerField(default=0)  # calls, at its last commit
    batch = models.PositiveIntegerField(default=0, db_default=0)  # the number of the last one that it committed
    live = models.JSONField(default=dict)  # its reports: limit, limited, rate, retrying, pause, curve

    objects = LeasedQuerySet.as_manager()

    class Meta:
        ordering = ["pk"]


class RunClaim(models.Model):
    """Neighbouring rows (RunItem, RunTask) of a run whose calls one worker makes. Deleted with the last result."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="claims")
    hold = models.ForeignKey(RunHold, on_delete=models.CASCADE, related_name="claims")
    first = models.BigIntegerField()
    last = models.BigIntegerField()

    class Meta:
        ordering = ["pk"]


class JudgeShare(models.Model):
    """How many calls of a judge one worker may have in flight. All shares together never exceed its concurrency."""

    judge = models.ForeignKey(Judge, on_delete=models.CASCADE, related_name="shares", db_index=False)
    holder = models.CharField(max_length=32)  # token of a worker process
    calls = models.PositiveIntegerField(default=0)
    wants = models.BooleanField(default=True)  # has calls to make
    closed_until = models.DateTimeField(null=True, blank=True)  # the endpoint asked this worker for a pause
    failing = models.BooleanField(default=False, db_default=False)  # it fails every call: one worker tries for all
    until = models.DateTimeField()

    objects = LeasedQuerySet.as_manager()

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["judge", "holder"], name="judge_share_once")]


class BeatQuerySet(models.QuerySet[Any]):
    def living(self) -> "BeatQuerySet":
        """Those of workers that were seen a moment ago."""
        return self.filter(seen_at__gt=Now() - WorkerBeat.SILENT_AFTER)


class WorkerBeat(models.Model):
    """When each worker was last seen, for /readyz and the run page. A worker that stops deletes its row."""

    SILENT_AFTER = timedelta(minutes=1)  # then something is wrong with it
    FORGOTTEN_AFTER = timedelta(minutes=10)  # for workers that were killed

    name = models.CharField(max_length=100, unique=True)
    seen_at = models.DateTimeField()
    lacks_pictures = models.BooleanField(default=False, db_default=False)  # its media folder is a different one

    objects = BeatQuerySet.as_manager()
