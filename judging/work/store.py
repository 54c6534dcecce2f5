"""Writes of a worker to its run. Each one checks, in its own transaction, that the worker still holds the run."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from judging.models import LEASE, Attempt, Judge, Run
from judging.work import kinds


class LeaseLost(RuntimeError):
    """Another worker holds the run now: nothing was written."""


@dataclass
class Batch:
    """What a worker has to write at once."""

    rows: list[kinds.Row] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    calls: int = 0
    cached: int = 0
    spent: float = 0.0
    reported: list[dict[str, Any]] | None = None  # the whole list, when it changed
    live: dict[str, Any] | None = None

    def __bool__(self) -> bool:
        return bool(self.rows or self.calls or self.spent)


def commit(*, run: Run, batch: Batch) -> str:
    """Store a batch and hold the run for another lease; returns the run's state, which somebody may have changed.

    What is stored already stays as it is. Raises LeaseLost and stores nothing when the token is an old one:
    whoever holds the run now makes these calls again.
    """
    changes: dict[str, Any] = {"lease_until": timezone.now() + LEASE}
    if batch.live is not None:
        changes["live"] = batch.live
    if batch.calls or batch.spent or batch.cached:
        changes |= {
            "calls": F("calls") + batch.calls,
            "spent": F("spent") + batch.spent,
            "cached": F("cached") + batch.cached,
        }
    if batch.reported:
        changes |= {"reported": batch.reported, "reported_model": batch.reported[-1]["model"]}
    with transaction.atomic():
        # The row stays locked until the end of the transaction, so nobody takes the run between check and write.
        state = _held(run).select_for_update().values_list("state", flat=True).first()
        if state is None:
            raise LeaseLost(f"run {run.pk} is held by another worker")
        if batch.rows:
            # A row that somebody has stored stays as it is; nobody stores one meanwhile: the transaction holds the run.
            verdicts, failures, undecided = kinds.of(run).store(batch.rows)
            changes |= {
                "verdicts": F("verdicts") + verdicts,
                "failures": F("failures") + failures,
                "undecided": F("undecided") + undecided,
            }
        if batch.attempts:
            Attempt.objects.bulk_create(batch.attempts)
        _held(run).update(**changes)
    return str(state)


def note_batches(*, run: Run, batches: list[dict[str, Any]]) -> None:
    """Write down which batches of a run are out. Raises LeaseLost."""
    if not _held(run).update(batches=batches, lease_until=timezone.now() + LEASE):
        raise LeaseLost(f"run {run.pk} is held by another worker")


def recount(run: Run, *, planned: int) -> tuple[int, int]:
    """Count what the run has made anew, whatever its columns say; returns verdicts and failures."""
    with transaction.atomic():
        Run.objects.select_for_update().only("pk").get(pk=run.pk)
        counted = kinds.of(run).counted()
        Run.objects.filter(pk=run.pk).update(planned=planned, **counted)
    return counted["verdicts"], counted["failures"]


def leave(*, run: Run, state: str, reason: str = "", live: dict[str, Any] | None = None) -> bool:
    """Give the run back in another state; False when somebody else changed its state first."""
    changes: dict[str, Any] = {"state": state, "state_reason": reason}
    if state == Run.State.FINISHED:
        changes["finished_at"] = timezone.now()
    with transaction.atomic():
        left = _held(run).filter(state=Run.State.RUNNING).update(**changes)
        _held(run).update(lease_until=None, lease_token="", live=live or {})
    return bool(left)


def reserve(*, judge_id: int, each: timedelta, number: int) -> datetime:
    """Take a judge's next ``number`` starts, ``each`` apart, over all workers; returns the time of the first.

    A plan further ahead than its own length was made by a clock that has been set back since: it is forgotten.
    """
    with transaction.atomic():
        judge = Judge.objects.select_for_update().only("paced_until").get(pk=judge_id)
        now = timezone.now()
        start = max(now, judge.paced_until or now)
        if start - now > max(timedelta(minutes=10), 20 * number * each):
            start = now
        Judge.objects.filter(pk=judge_id).update(paced_until=start + number * each)
    return start


def _held(run: Run) -> Any:
    return Run.objects.filter(pk=run.pk, lease_token=run.lease_token).exclude(lease_token="")
