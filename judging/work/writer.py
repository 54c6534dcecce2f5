"""What every session does: hold the run, commit batches, leave the run in the right state."""

import asyncio
import logging
import math
import random
import secrets
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db import Error as DatabaseError
from django.db import IntegrityError, InterfaceError, OperationalError
from django.utils import timezone

from accounts.installation_key import WrongKeys, check_keys
from accounts.loop import comes, db
from bank.models.imports import import_in_progress
from judging.endpoints.messages import Pictures
from judging.models import Run
from judging.protocols import prompts
from judging.runs import plan
from judging.work import curve, leases, run_kinds, store
from judging.work.pace import Limiter

LONGEST_PAUSE = 10.0  # seconds before the database is given a batch again
CRASHED = "The worker met an error of its own; its log says which. Nothing stored is lost: resume to go on."
HELD_KEYS = (
    "Its judge was shown answer keys or exact references that are not public. Only protocols that mark against them "
    "are shown these now: start a new run."
)
CRITERIA_CHANGED = (
    "The criteria of these samples have changed since the run started. Verdicts by old and by new criteria are not "
    "mixed: start a new run."
)


@dataclass(frozen=True)
class Patience:
    """How often and how long to try. Times are in seconds."""

    failures: int = 6  # calls for one judgment that the endpoint fails while it answers others
    odd: int = 3  # calls for one judgment whose replies are empty, or none
    backoff: float = 1.0  # at most, before the second call, or before the database is asked again; doubles
    longest_wait: float = 60.0  # between calls; where Retry-After asks for more, the run waits
    outage: float = 60.0  # of nothing but errors, before the run waits
    try_for: float = 5.0  # the same, when it has waited, or never had a connection
    limited: float = 900.0  # of nothing but rate limits, before it waits
    give_up_after: float | None = None  # of nothing but errors, all waiting included; None: as its judge has it
    altogether: float = 900.0  # for one judgment, from its first call that failed, all waiting included
    refusals: int = 10  # calls in a row that will never do
    unread: int = 20  # replies without a verdict, none with one before
    drain: float = 5.0  # for calls in flight when the run stops
    tick: float = 1.0  # between commits where there is nothing to store: they keep the lease
    gather: float = 0.002  # from a result to its commit, for others to come along
    poll: float = 20.0  # between looks at batches that are out
    batch: int = 100  # jobs that are read ahead, beside those of the calls

    def wait_after(self, times: int) -> float:
        """Seconds before the next try after so many that failed."""
        longest = min(self.longest_wait, self.backoff * 2 ** min(max(times - 1, 0), 16))
        return longest * random.uniform(0.5, 1.0)


@dataclass(frozen=True, slots=True)
class Progress:
    """What a worker knows about its run at this moment."""

    total: int
    stored: int
    failed: int
    in_flight: int
    rate: float  # judgments a second, over the last minute


Watch = Callable[[Progress], None]


class Shared:
    """What all runs of one process share: a client per endpoint, encoded pictures, a limiter per judge."""

    def __init__(self) -> None:
        from judging.endpoints.client import Endpoints

        self.holder = secrets.token_hex(16)  # by which other workers know this one
        self.endpoints = Endpoints()
        self.pictures = Pictures()
        self._limiters: dict[int, Limiter] = {}

    def limiter(self, judge_id: int, concurrency: int) -> Limiter:
        return self._limiters.setdefault(judge_id, Limiter(concurrency))


@dataclass(eq=False)
class Ended(Exception):
    """Why a session ends, and the ``state`` in which it leaves its run: None where somebody else has decided, or the
    run is finished.

    ``alone``: the reason is this worker's; others that are at the run go on with it. ``next_try``: of a run that waits,
    see ``leases.leave``.
    """

    state: str | None
    reason: str = ""
    alone: bool = False
    next_try: Mapping[str, Any] | None = None


class Writer(ABC):
    """The base of a session: the batch, its commits, the end."""

    def __init__(
        self,
        run: Run,
        *,
        shared: Shared,
        stop: asyncio.Event,
        stopped: Ended,
        patience: Patience,
        watch: Watch | None,
    ) -> None:
        self.run = run
        self.log = logging.LoggerAdapter(logging.getLogger(type(self).__module__), {"run": run.pk})
        self.judge = run.judge
        self.shared = shared
        self.stop = stop
        self.stopped = stopped
        self.patience = patience
        self.watch = watch
        self.kind = run_kinds.run_kind(run)
        self.batch = store.Batch()
        self.wake = asyncio.Event()
        self.ending: Ended | None = None
        self.lost = False
        self.total = self.stored = self.failed = 0
        self.recent: deque[tuple[float, int]] = deque()
        self.curve: dict[str, Any] = {}
        self.left_word: dict[str, Any] = {}  # for the run's page, after the end
        self.told_at = -math.inf  # when the run's page was last told how it goes
        self.told_in_flight = 0  # by the last commit
        self.batches = 0
        self._committing = asyncio.Lock()

    # -- the session --------------------------------------------------------------------------------------------

    async def work(self) -> bool:
        """Work until the end; whether the reason for it was this worker's own, so that others may go on."""
        try:
            await db(_check, self.run)
            self.total, self.stored, self.failed = await db(counts, self.run)
            self.curve = curve.new(timezone.now())
            await self.session()
        except Ended as ended:
            self.ending = self.ending or ended
        except leases.LeaseLost:
            self.lease_lost()
        except (OperationalError, InterfaceError) as error:
            self.log.warning(
                "Run %s: the database does not answer (%s), left for now", self.run.pk, type(error).__name__
            )
            self.end(Run.State.QUEUED)
        except Exception as error:
            self.crash(error)
        try:
            await self._close(self.ending or self.stopped)
        except leases.LeaseLost:
            self.lease_lost()
        if self.lost:
            self.log.warning("Run %s is no longer this worker's; what was not stored is dropped", self.run.pk)
        return self.lost or bool(self.ending and self.ending.alone)

    @abstractmethod
    async def session(self) -> None: ...

    def end(self, state: str | None, reason: str = "", **more: Any) -> None:
        """Ask the session to end. The first reason stands."""
        if self.ending is None:
            self.ending = Ended(state, reason, **more)
        self.wake.set()

    def crash(self, error: BaseException) -> None:
        """Pause the run over an error of our own."""
        self.log.error("Run %s stops", self.run.pk, exc_info=error)
        self.end(Run.State.PAUSED, CRASHED)

    def lease_lost(self) -> None:
        self.lost = True
        self.end(None)

    async def _close(self, ended: Ended) -> None:
        if self.lost:
            return
        if self.batch:
            await self.flush()
        await db(
            leases.leave,
            run=self.run,
            state=ended.state,
            reason=ended.reason,
            alone=ended.alone,
            next_try=ended.next_try,
            live={"curve": self.curve} | self.left_word,
        )
        if ended.state in Run.HALTED:
            self.log.warning("Run %s is %s: %s", self.run.pk, ended.state, ended.reason)

    # -- results ------------------------------------------------------------------------------------------------

    async def flush(self) -> list[run_kinds.Row]:
        """Commit what there is and keep the hold; returns what was stored.

        A database that does not answer is waited for: results are kept, and no new calls are made beyond a bound. A
        worker that is to stop waits as long as for calls in flight, then leaves its results: others make these calls
        again. Raises LeaseLost.
        """
        async with self._committing:
            batch, self.batch = self.batch, store.Batch()
            self.batches += 1
            batch.number = self.batches
            batch.in_flight = self.told_in_flight = self.in_flight()
            now = asyncio.get_running_loop().time()
            if now - self.told_at >= self.patience.tick:
                batch.live, self.told_at = self.live(), now
            seen = await self._commit(batch)
            self.look(batch, seen)
        return batch.rows

    def look(self, batch: store.Batch, seen: store.Seen) -> None:
        """Go by what a commit said of the run."""
        self._count(len(batch.rows), seen)
        if seen.state != Run.State.RUNNING:
            self.end(None)

    async def _commit(self, batch: store.Batch) -> store.Seen:
        loop = asyncio.get_running_loop()
        tries, until = 0, math.inf
        while True:
            try:
                return await db(store.commit, run=self.run, batch=batch, again=tries > 0)
            except DatabaseError as error:
                if isinstance(error, IntegrityError) and not await db(import_in_progress, error):
                    raise
                self.log.warning(
                    "Run %s: the database takes no batch (%s), trying again", self.run.pk, type(error).__name__
                )
                tries += 1
                if not self.stop.is_set():
                    await comes(self.stop, min(LONGEST_PAUSE, self.patience.wait_after(tries)))
                    continue
                until = min(until, loop.time() + self.patience.drain)
                if loop.time() >= until:
                    raise leases.LeaseLost(f"run {self.run.pk}: the database stayed away") from None
                await asyncio.sleep(min(self.patience.tick, self.patience.drain))

    def _count(self, number: int, seen: store.Seen) -> None:
        now = asyncio.get_running_loop().time()
        self.stored, self.failed = seen.stored, seen.failed
        self.recent.append((now, number))
        while self.recent[0][0] < now - 60:
            self.recent.popleft()
        curve.extend(self.curve, number, now=timezone.now())
        if self.watch:
            self.watch(Progress(self.total, self.stored, self.failed, self.in_flight(), self.rate()))

    def rate(self) -> float:
        """Judgments a second over the last minute, or since the start when that is less."""
        if len(self.recent) < 2:
            return 0.0
        return sum(number for _, number in self.recent) / max(1.0, self.recent[-1][0] - self.recent[0][0])

    def in_flight(self) -> int:
        return 0

    def live(self) -> dict[str, Any]:
        """What the run's page shows of the worker."""
        return {"rate": round(self.rate(), 3), "curve": self.curve}


def _check(run: Run) -> None:
    """Raise Ended when the run cannot go on as it was started."""
    try:
        check_keys()  # what calls are hashed with is read here: the loop may not ask the database
    except WrongKeys as error:
        raise Ended(Run.State.PAUSED, str(error), alone=True) from None
    if not run.judge.can_run:
        raise Ended(Run.State.PAUSED, f"{run.judge.name} has no endpoint: its judgments were imported.")
    if not run.judge.is_baseline:
        try:
            run_kinds.run_kind(run).template()
        except prompts.UnknownPrompt as error:
            raise Ended(Run.State.PAUSED, str(error)) from None
    if run.judges and run.criteria_fingerprint != plan.criteria_fingerprint(run):
        raise Ended(Run.State.PAUSED, CRITERIA_CHANGED)
    if run.judges and plan.held_more(run):
        raise Ended(Run.State.PAUSED, HELD_KEYS)


def counts(run: Run) -> tuple[int, int, int]:
    """Count what a run is made of: judgments in all, stored, stored without a verdict. Its columns say so from then.

    Where others are at it, they have counted.
    """
    if None not in (run.planned, run.verdicts, run.failures) and run.holds.count() > 1:
        run.refresh_from_db(fields=["planned", "verdicts", "failures"])
        return run.planned or 0, (run.verdicts or 0) + (run.failures or 0), run.failures or 0
    planned = run_kinds.run_kind(run).planned()
    verdicts, failures = store.recount(run, planned=planned)
    return planned, verdicts + failures, failures
