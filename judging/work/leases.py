"""Which workers are at a run, and who makes which of its calls.

A worker takes a hold of a run, then claims rows of it, a few at a time, and makes their calls. Each function that
changes this locks the run's row first, as every commit does: what happens to a run happens one after the other. Rows
whose calls are all stored are claimed no more; those of a worker that fell silent are free again with its hold.
"""

import os
import socket
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce, Now

from accounts.jobs import defer
from bank import database
from judging.models import LEASE, SHARE_LEASE, Judge, JudgeShare, Run, RunClaim, RunHold
from judging.work import curve, run_kinds
from judging.work.budget import typical_call

TAKEN = (Run.State.QUEUED, Run.State.RUNNING)
SPAN = 1_000  # rows that one claim may reach over: what lies between belongs to it


def worker_name() -> str:
    """By which people know this process."""
    return f"{socket.gethostname()[:80]}:{os.getpid()}"


class LeaseLost(RuntimeError):
    """The worker's hold is gone: nothing was written."""


def waiting() -> QuerySet[Any]:
    """Runs that a worker may take, those with the fewest workers first. ``workers`` counts them."""
    live = RunHold.objects.live().filter(run=OuterRef("pk")).order_by().values("run")
    workers = Coalesce(Subquery(live.annotate(n=Count("pk")).values("n")), 0)
    alone = Q(batched=True) | ~Q(judge__baseline="")
    # What is still being made of its pictures is waited for: without it, its items could only fail.
    going = Run.objects.filter(state__in=Run.GOING, benchmark=OuterRef("benchmark"))
    captions = Q(settings__context__in=("caption", "caption+objects")) & Exists(going.filter(kind=Run.Kind.CAPTIONS))
    objects = Q(settings__context__in=("objects", "caption+objects")) & Exists(going.filter(kind=Run.Kind.OBJECTS))
    ready = unfinished().exclude(pk__in=unfinished().filter(captions | objects).order_by().values("pk"))
    return ready.annotate(workers=workers).exclude(alone, workers__gt=0).order_by("workers", "pk")


def unfinished() -> QuerySet[Any]:
    """Runs that workers are at or may take now."""
    due = Q(state=Run.State.WAITING, next_try_at__lte=database.now())
    return Run.objects.filter(Q(state__in=TAKEN) | due).select_related("judge")


@transaction.atomic
def take(run: Run, *, worker: str = "") -> bool:
    """Join the workers of a run; False when it does not go on, or one is at it that must be alone.

    The object then holds the run, and is what the other functions and ``store.commit`` are given.
    """
    locked = lock(run)
    others = sweep(locked)
    is_due = locked.state == Run.State.WAITING and locked.next_try_at and locked.next_try_at <= database.now()
    if not (locked.state in TAKEN or is_due) or (others and locked.works_alone):
        return False
    hold = RunHold.objects.create(run=locked, worker=worker[:100], until=database.now() + LEASE)
    Run.objects.filter(pk=run.pk).update(
        state=Run.State.RUNNING,
        state_reason="",
        next_try_at=None,
        started_at=Coalesce(F("started_at"), Now()),
        live={"curve": locked.live.get("curve") or {}},
    )
    run.refresh_from_db(from_queryset=Run.objects.select_related("judge", "benchmark"))
    run.hold = hold
    return True


def lock(run: Run) -> Run:
    """The run as it is now; until the end of the transaction nobody else changes it, its holds or its claims.

    Raises LeaseLost when it is gone.
    """
    try:
        return Run.objects.select_for_update(no_key=True).get(pk=run.pk)
    except Run.DoesNotExist:
        raise LeaseLost(f"run {run.pk} is no more") from None


def held(run: Run) -> QuerySet[RunHold]:
    """The hold of this worker, if it still has it."""
    return RunHold.objects.filter(pk=run.hold.pk if run.hold else 0)


def renew(run: Run, **changes: Any) -> None:
    """Keep the hold for another lease; ``changes`` to its columns. The caller has locked the run. Raises LeaseLost."""
    if not held(run).update(until=database.now() + LEASE, **changes):
        raise LeaseLost(f"run {run.pk} is held by others")


def sweep(locked: Run, *, but: RunHold | None = None) -> list[RunHold]:
    """End the holds of workers that fell silent; returns the other ones. The caller has locked the run.

    A worker that died had calls in flight, for which the provider may charge: they were made, are lost, and count as
    spent at what a call takes.
    """
    for hold in silent(locked, but=but):
        if hold.in_flight and not locked.batched:  # batches are collected from where they wait
            each = typical_call(locked)
            locked.calls += hold.in_flight
            locked.lost += hold.in_flight
            locked.priced += hold.in_flight if each else 0
            locked.spent += hold.in_flight * each
        locked.live = locked.live | {"curve": curve.merged(locked.live.get("curve"), hold.live.get("curve"))}
        locked.save(update_fields=["calls", "priced", "lost", "spent", "live"])
        hold.delete()
    return list(locked.holds.exclude(pk=but.pk if but else 0).live())


def silent(run: Run, *, but: RunHold | None = None) -> QuerySet[RunHold]:
    """The holds of workers that fell silent and that nobody has ended yet."""
    return run.holds.exclude(pk__in=RunHold.objects.live().values("pk")).exclude(pk=but.pk if but else 0)


def end_left() -> None:
    """End the holds that workers who died still have of runs that have ended since."""
    ended = RunHold.objects.filter(run__state__in=Run.ENDED).exclude(pk__in=RunHold.objects.live().values("pk"))
    for run in Run.objects.filter(pk__in=ended.values("run")):
        with suppress(LeaseLost):
            end_silent(run)


@transaction.atomic
def end_silent(run: Run) -> None:
    """Free the rows that silent workers had claimed. Raises LeaseLost when the run is gone."""
    sweep(lock(run), but=run.hold)


def next_claim(run: Run, *, kind: run_kinds.RunKind[Any], after: int, most: int) -> run_kinds.Page | None:
    """Claim up to ``most`` rows of the run that lack something and that nobody has claimed; None when there are none.

    Raises LeaseLost.
    """
    # Out of the lock, for it may be a long way in a large run.
    rows = _near(_free(run, kind, after)[:most])
    if not rows:
        return None
    with transaction.atomic():
        lock(run)
        if not run.hold or not held(run).exists():
            raise LeaseLost(f"run {run.pk} is held by others")
        first, last = rows[0].pk, rows[-1].pk
        if RunClaim.objects.filter(run=run, first__lte=last, last__gte=first).exists():  # others were quicker
            rows = _near(_free(run, kind, first - 1)[:most])
            if not rows:
                return None
        claim = RunClaim.objects.create(run=run, hold_id=run.hold.pk, first=rows[0].pk, last=rows[-1].pk)
    jobs = kind.jobs(rows)
    if not jobs:
        claim.delete()
    return run_kinds.Page(rows[-1].pk, jobs, claim.pk)


def _free(run: Run, kind: run_kinds.RunKind[Any], after: int) -> Any:
    claims = RunClaim.objects.filter(run=run, first__lte=OuterRef("pk"), last__gte=OuterRef("pk"))
    return kind.missing(after=after).filter(~Exists(claims))


def _near(rows: Iterable[Any]) -> list[Any]:
    """Rows as far as one claim reaches."""
    leases = list(rows)
    return [row for row in leases if row.pk < leases[0].pk + SPAN]


def finish(run: Run, *, kind: run_kinds.RunKind[Any]) -> bool:
    """Finish the run if nothing is missing; False when something is, be it that another worker is at it.

    Raises LeaseLost.
    """
    seen = Run.objects.values_list("verdicts", "failures").get(pk=run.pk)
    missing = kind.page(read_criteria=False) is not None  # out of the lock, as above
    with transaction.atomic():
        locked = lock(run)
        if not held(run).exists():
            raise LeaseLost(f"run {run.pk} is held by others")
        sweep(locked, but=run.hold)
        # Somebody may have asked for a retry since: that changes the counts.
        if missing or (locked.verdicts, locked.failures) != seen:
            return False
        if locked.state == Run.State.RUNNING:
            Run.objects.filter(pk=run.pk).update(state=Run.State.FINISHED, finished_at=Now())
            defer("follow_runs")
    return True


@transaction.atomic
def leave(
    *,
    run: Run,
    state: str | None,
    reason: str = "",
    live: dict[str, Any] | None = None,
    alone: bool = False,
    next_try: Mapping[str, Any] | None = None,
) -> bool:
    """Give the hold back, and put the run into another state if there is one; False when the hold was gone.

    While others are at it, the run goes on where it would wait for another worker, and where the ``reason`` is this
    worker's ``alone``. A state that somebody else has set stays. ``next_try``: of a run that waits, when it is tried
    again, how often it was in vain, and since when.
    """
    locked = lock(run)
    if not held(run).exists():
        return False
    others = sweep(locked, but=run.hold)
    counts = dict(live or {})
    past = curve.merged(locked.live.get("curve"), counts.pop("curve", None))
    changes: dict[str, Any] = {"live": locked.live | {"curve": past} | counts}
    if state and locked.state == Run.State.RUNNING and not (others and (alone or state == Run.State.QUEUED)):
        changes |= {"state": state, "state_reason": reason} | dict(next_try or {})
        defer("follow_runs")
    Run.objects.filter(pk=run.pk).update(**changes)
    held(run).delete()
    return True


@dataclass(frozen=True, slots=True)
class Share:
    """What a worker may have of a judge."""

    calls: int
    of: int  # the judge's concurrency as it is now
    closed_for: float  # seconds for which the endpoint wants none
    another_tries: bool = False  # whether an endpoint that fails every call answers again


@transaction.atomic
def share(
    *, judge_id: int, holder: str, wants: bool, used: int, closed_for: float = 0.0, failing: bool = False
) -> Share:
    """Renew a worker's share of a judge's calls at once. All shares together never exceed the judge's concurrency.

    The workers that have calls to make get the same each, as far as the others have given theirs back. ``used`` is
    what this one may have in flight until it hears the answer; it stays its own until it asks for less. ``closed_for``
    are the seconds for which the endpoint asked it to pause: a span, because the clocks of two machines may differ. Of
    the workers for which it is ``failing`` every call the first one tries for all.
    """
    judge = Judge.objects.select_for_update(no_key=True).only("concurrency").get(pk=judge_id)
    now = database.now()
    rows = JudgeShare.objects.filter(judge=judge)
    live = rows.live()
    rows.exclude(pk__in=live.values("pk")).exclude(holder=holder).delete()
    others = [row for row in rows if row.holder != holder]
    own = next((row for row in rows if row.holder == holder), None)
    wanting = [row for row in others if row.wants]
    before = sum(own is None or row.pk < own.pk for row in wanting)
    fair, rest = divmod(judge.concurrency, len(wanting) + 1)
    free = max(0, judge.concurrency - sum(row.calls for row in others))
    calls = min(fair + (before < rest), free) if wants else 0
    if wants and used:
        calls = max(1, calls)  # who has begun goes on, be it that the judge's concurrency was set lower
    JudgeShare.objects.update_or_create(
        judge=judge,
        holder=holder,
        defaults={
            "calls": max(calls, used),
            "wants": wants,
            "closed_until": now + timedelta(seconds=closed_for) if closed_for > 0 else None,
            "failing": failing,
            "until": now + SHARE_LEASE,
        },
    )
    pauses = [(row.closed_until - now).total_seconds() for row in others if row.closed_until]
    another_tries = failing and any(row.failing and own is not None and row.pk < own.pk for row in wanting)
    return Share(calls, judge.concurrency, max(0.0, *pauses) if pauses else 0.0, another_tries)


def give_back(*, judge_id: int, holder: str) -> None:
    """End a worker's share of a judge's calls."""
    JudgeShare.objects.filter(judge=judge_id, holder=holder).delete()
