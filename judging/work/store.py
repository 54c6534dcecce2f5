"""Writes of a worker to its run. Each one checks, in its own transaction, that the worker still holds the run."""

import logging
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.db import transaction

from bank import database
from judging.models import Attempt, Judge, Run, RunClaim
from judging.models.judgments import table_of
from judging.work import identity, leases, run_kinds
from judging.work.identity import Opened, Replies

log = logging.getLogger(__name__)


@dataclass
class Batch:
    """What a worker has to write at once."""

    rows: list[run_kinds.Row] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    claims: list[int] = field(default_factory=list)  # whose last rows are among these
    calls: int = 0
    priced: int = 0  # of them, those that cost something
    cached: int = 0
    spent: float = 0.0
    replies: Replies = field(default_factory=Counter)
    opened: Opened | None = None  # the model that is the first to answer the run, as far as this worker knows
    in_flight: int = 0
    number: int = 0  # of the batches of its hold
    live: dict[str, Any] | None = None

    def __bool__(self) -> bool:
        return bool(self.rows or self.calls or self.spent)


@dataclass(frozen=True, slots=True)
class Seen:
    """The run as a commit leaves it, whoever else is at it."""

    state: str
    stored: int
    failed: int  # of them
    spent: float
    budget: float | None
    elsewhere: int  # calls in flight of other workers; counted where there is a budget
    other_model: bool  # another worker's calls were answered first, by another model: these were not stored


def commit(*, run: Run, batch: Batch, again: bool = False) -> Seen:
    """Store a batch and keep the hold for another lease.

    What is stored already stays as it is; a batch that is tried ``again`` may be, though its worker never heard of it.
    Raises LeaseLost and stores nothing when the hold is gone: others make these calls again.
    """
    live = {} if batch.live is None else {"live": batch.live}
    with transaction.atomic():
        locked = leases.lock(run)
        is_stored = again and leases.held(run).filter(batch=batch.number).exists()
        leases.renew(run, in_flight=batch.in_flight, batch=batch.number, **live)
        other = batch.opened.model if batch.opened and not identity.may_open(locked, batch.opened) else None
        if not is_stored:
            _write(run, locked, batch, without=other)
        elsewhere = 0
        if locked.budget is not None:  # those of a worker that fell silent count until its hold is ended, then as spent
            others = locked.holds.exclude(pk__in=leases.held(run))
            elsewhere = sum(others.values_list("in_flight", flat=True))
    failed = locked.failures or 0
    stored = (locked.verdicts or 0) + failed
    return Seen(locked.state, stored, failed, locked.spent, locked.budget, elsewhere, other is not None)


def _write(run: Run, locked: Run, batch: Batch, *, without: str | None) -> None:
    """Write a batch down, but for what another model answered than the run's: ``without`` is its name."""
    rows, replies = batch.rows, batch.replies
    if without is not None:
        rows = [row for row in rows if row.reported_model != without]
        replies = Counter({key: number for key, number in replies.items() if key[0] != without})
    changes: dict[str, Any] = {}
    if batch.calls or batch.spent or batch.cached:
        locked.spent += batch.spent
        changes |= {
            "calls": locked.calls + batch.calls,
            "priced": locked.priced + batch.priced,
            "spent": locked.spent,
            "cached": locked.cached + batch.cached,
        }
    if replies:
        changes |= identity.counted(locked, replies)
        if locked.tries:
            changes |= {"tries": 0, "failing_since": None}
    if rows:
        # A row that somebody has stored stays as it is; nobody stores one meanwhile: the run is locked.
        verdicts, failures, undecided = run_kinds.run_kind(run).store(rows)
        locked.verdicts = (locked.verdicts or 0) + verdicts
        locked.failures = (locked.failures or 0) + failures
        changes |= {
            "verdicts": locked.verdicts,
            "failures": locked.failures,
            "undecided": (locked.undecided or 0) + undecided,
        }
    if batch.attempts:
        Attempt.objects.bulk_create(batch.attempts)
    if batch.claims:
        RunClaim.objects.filter(pk__in=batch.claims).delete()
    if changes:
        Run.objects.filter(pk=run.pk).update(**changes)
    if log.isEnabledFor(logging.DEBUG):
        _log(run, batch, stored=len(rows))


def _log(run: Run, batch: Batch, *, stored: int) -> None:
    """A line for each result that was just stored, and for each call that brought none."""
    newest = table_of(run).objects.filter(run=run).order_by("-pk")[:stored]
    for pk, status in newest.values_list("pk", "status"):
        log.debug("Run %s: result %s is stored: %s", run.pk, pk, status, extra={"run": run.pk, "judgment": pk})
    for attempt in batch.attempts:
        said = {"run": run.pk, "item": attempt.item_id}
        log.debug("Run %s: a call ended: %s (%s)", run.pk, attempt.outcome, attempt.http_status, extra=said)


@transaction.atomic
def drop_parameter(*, run: Run, name: str, ability: dict[str, Any]) -> dict[str, Any] | None:
    """Send a parameter no more, that the endpoint does not take; returns the run's abilities from now on.

    None where replies are stored already: verdicts with and without it are not mixed.
    """
    locked = leases.lock(run)
    abilities: dict[str, Any] = Run.objects.values_list("abilities", flat=True).get(pk=run.pk)
    dropped = abilities.get("dropped", [])
    if name in dropped:  # another worker was told, too
        return abilities
    if locked.reported:
        return None
    abilities |= ability | {"dropped": [*dropped, name]}
    Run.objects.filter(pk=run.pk).update(abilities=abilities)
    return abilities


@transaction.atomic
def note_batches(*, run: Run, batches: list[dict[str, Any]]) -> None:
    """Write down which batches of a run are out. Raises LeaseLost."""
    leases.lock(run)
    leases.renew(run)
    Run.objects.filter(pk=run.pk).update(batches=batches)


def recount(run: Run, *, planned: int) -> tuple[int, int]:
    """Count what the run has made anew, whatever its columns say; returns verdicts and failures."""
    with transaction.atomic():
        leases.lock(run)
        counts = run_kinds.run_kind(run).counts()
        Run.objects.filter(pk=run.pk).update(planned=planned, **counts)
    return counts["verdicts"], counts["failures"]


def reserve(*, judge_id: int, each: timedelta, number: int) -> float:
    """Take a judge's next ``number`` starts, ``each`` apart, over all workers; returns the seconds until the first.

    A plan further ahead than its own length was made by a clock that has been set back since: it is forgotten.
    """
    with transaction.atomic():
        judge = Judge.objects.select_for_update().only("paced_until").get(pk=judge_id)
        now = database.now()
        start = max(now, judge.paced_until or now)
        if start - now > max(timedelta(minutes=10), 20 * number * each):
            start = now
        Judge.objects.filter(pk=judge_id).update(paced_until=start + number * each)
    return (start - now).total_seconds()
