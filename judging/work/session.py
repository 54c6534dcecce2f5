"""Sessions of endpoint judges: one dispatcher, a task per call in flight, one writer."""

import asyncio
import heapq
import itertools
import logging
import math
from collections import deque
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import Error as DatabaseError
from django.utils import timezone

from judging import client, plan, verdicts
from judging.client import Answer, Outcome
from judging.models import Attempt, Run
from judging.protocols import CannotAsk
from judging.requests import Asked
from judging.verdicts import Reading
from judging.work import holds, kinds, store
from judging.work.health import Health
from judging.work.identity import Reported
from judging.work.loop import db
from judging.work.money import Purse
from judging.work.pace import INFINITE, Pacer
from judging.work.writer import CRASHED, Ended, Writer

log = logging.getLogger(__name__)

FEW = 8  # jobs that are read ahead at the least
MISSING_PICTURE = "a picture of the sample is missing where the worker runs"
FINAL = {Outcome.GARBAGE, Outcome.PERMANENT, Outcome.FILTERED}  # no use in calling again
PASSING = {Outcome.RATE, Outcome.TRANSIENT, Outcome.TIMEOUT, Outcome.UNREACHABLE}


@dataclass(slots=True)
class Try:
    """A job on its way to a judgment."""

    job: Any  # a plan.Job or a collecting.Task
    claim: int = 0  # under which it is this worker's
    failures: int = 0
    limits: int = 0
    why: str = ""  # the outcome it waits after


class Session(Writer):
    def __init__(self, run: Run, **rest: Any) -> None:
        super().__init__(run, **rest)
        self.gate = self.shared.gate(self.judge.pk, self.judge.concurrency)
        self.health = Health(self.judge, self.patience)
        self.purse = Purse(run)
        self.reported = Reported(run)
        self.claimed: dict[int, int] = {}  # results that each claim still lacks
        self.pacer = Pacer(self.judge, self._reserve)
        self.start_at: float | None = None  # from when the pacer lets the next call go
        self.ready: deque[Try] = deque()
        self.later: list[tuple[float, int, Try]] = []
        self.numbers = itertools.count()
        self.calls: set[asyncio.Task[None]] = set()
        self.unstored: set[int] = set()  # results of calls that wait for their commit
        self.fetching: asyncio.Task[None] | None = None
        self.after = 0
        self.exhausted = False
        self.open_jobs = 0  # read and not yet committed
        self.fresh = asyncio.Event()
        self.over = False

    def in_flight(self) -> int:
        return len(self.calls)

    def live(self) -> dict[str, Any]:
        waiting: dict[str, int] = {}
        for _, _, tried in self.later:
            waiting[tried.why] = waiting.get(tried.why, 0) + 1
        pause = round(self.gate.closed_until - asyncio.get_running_loop().time()) if "rate" in waiting else 0
        return super().live() | {
            "limit": self.gate.allowed,
            "limited": self.gate.is_limited,
            "retrying": waiting,
            "pause": max(0, pause),
        }

    async def session(self) -> None:
        self.template = await db(plan.template_of, self.run)
        self.key = self._key()
        if not (self.judge.any_host or client.host_allowed(self.judge.base_url, settings.JUDGE_HOSTS)):
            words = f"The host of {self.judge.name} is not among JUDGE_HOSTS any more."
            raise Ended(Run.State.PAUSED, words, alone=True)
        self.endpoint = self.shared.endpoints.at(self.judge.base_url)
        self.gate.want(self.wake, True)
        await self._renew_share()
        await self._flush()  # tells what others have in flight
        writer, sharing = asyncio.create_task(self._write()), asyncio.create_task(self._keep_share())
        try:
            await self.calling()
        finally:
            sharing.cancel()
            doomed = [task for task in (*self.calls, self.fetching) if task]
            for task in doomed:
                task.cancel()
            await asyncio.gather(*doomed, return_exceptions=True)
            self.over = True
            self.fresh.set()
            await writer
            if self.gate.leave_to_others(self.wake):
                await db(holds.give_back, judge_id=self.judge.pk, holder=self.shared.holder)

    # -- the judge's calls at once, among all workers -----------------------------------------------------------

    async def _keep_share(self) -> None:
        while True:
            await asyncio.sleep(self.patience.tick)
            try:
                await self._renew_share()
            except DatabaseError as error:
                log.warning("Run %s: the database renews no share (%s)", self.run.pk, type(error).__name__)

    async def _renew_share(self) -> None:
        """Tell other workers what this one has of the judge, and hear what it may have; for all its runs at once."""
        loop, gate = asyncio.get_running_loop(), self.gate
        self._say_whether_there_are_calls()
        if loop.time() - gate.renewed_at < self.patience.tick / 2:
            return
        gate.renewed_at = now = loop.time()
        at = timezone.now()
        agreed = await db(
            holds.share,
            judge_id=self.judge.pk,
            holder=self.shared.holder,
            wants=gate.wanted,
            used=max(gate.in_flight, gate.share),
            closed_until=at + timedelta(seconds=gate.closed_until - now) if gate.closed_until > now else None,
        )
        if agreed.closed_until:
            gate.closed_until = max(gate.closed_until, now + (agreed.closed_until - at).total_seconds())
        gate.set_share(agreed.calls, of=agreed.of)

    def _say_whether_there_are_calls(self) -> None:
        self.gate.want(self.wake, bool(self.ready or self.later or self.calls or not self.exhausted))

    async def calling(self) -> None:
        """Make the calls, until the session is asked to end."""
        await self._dispatch()
        if self.calls and not self.lost:  # they are paid for: let them end, for a while
            await asyncio.wait(set(self.calls), timeout=self.patience.drain)

    def _key(self) -> str:
        try:
            return client.key_from(self.judge.key_env)
        except client.KeyMissing as missing:
            raise Ended(
                Run.State.PAUSED,
                f"The key of {self.judge.name} is missing: the environment variable {missing} is empty where the "
                "worker runs. Set it, start the worker again, then resume.",
                alone=True,
            ) from None

    # -- the dispatcher -----------------------------------------------------------------------------------------

    async def _dispatch(self) -> None:
        loop = asyncio.get_running_loop()
        while self.ending is None:
            if self.stop.is_set():
                self.end(self.stopped.state, self.stopped.reason)
                return
            now = loop.time()
            self._refill()
            if not self._due(now) and not self.ready:
                if self.exhausted and not (self.later or self.calls or self.fetching):
                    await self._finish()
                else:
                    await self._sleep(self.later[0][0] - now if self.later else INFINITE)
            elif len(self.calls) + len(self.unstored) >= self.gate.allowed:
                await self._sleep(INFINITE)  # a call is over when its result is stored: a kill costs no more than these
            elif wait := self.gate.wait(now) or await self._wait_for_pace(now):
                await self._sleep(wait)
            elif self.purse.has_room(len(self.calls)):
                self._start(heapq.heappop(self.later)[2] if self._due(now) else self.ready.popleft())
            elif self.calls or self.unstored or self.purse.elsewhere:
                await self._sleep(INFINITE)  # they may cost less than was reckoned
            else:
                self.end(
                    Run.State.PAUSED,
                    f"The budget is used up: ${self.purse.spent:.2f} of ${self.purse.budget:.2f} spent. "
                    "Start the run again with a higher one to go on.",
                )

    async def _reserve(self, each: timedelta, number: int) -> datetime:
        return await db(store.reserve, judge_id=self.judge.pk, each=each, number=number)

    def _due(self, now: float) -> bool:
        return bool(self.later) and self.later[0][0] <= now

    async def _sleep(self, seconds: float) -> None:
        """Wait until something happened, at most half a second: the process may have been asked to stop."""
        self.wake.clear()
        try:
            async with asyncio.timeout(min(seconds, 0.5)):
                await self.wake.wait()
        except TimeoutError:
            pass

    async def _wait_for_pace(self, now: float) -> float:
        if not self.pacer.active:
            return 0.0
        if self.start_at is None:
            self.start_at = await self.pacer.next_start(now)
        return max(0.0, self.start_at - now)

    def _refill(self) -> None:
        room = self.open_jobs < 4 * self.gate.share + 2 * self.patience.batch
        low = len(self.ready) < max(self.gate.share, FEW) and room and self.gate.share > 0
        if low and not self.exhausted and self.fetching is None:
            self.fetching = asyncio.create_task(self._fetch())
            self.fetching.add_done_callback(self._crashed)

    async def _fetch(self) -> None:
        try:
            page = await self._next_page()
        except holds.LeaseLost:
            self.lease_lost()
            return
        except DatabaseError as error:
            log.warning("Run %s: the database does not answer (%s), trying again", self.run.pk, type(error).__name__)
            await asyncio.sleep(1)
            return
        finally:
            self.fetching = None
            self.wake.set()
        if page is None:
            self.exhausted = True
            return
        self.after = page.last
        self.open_jobs += len(page.jobs)
        claim = page.pk if isinstance(page, holds.Claim) else 0
        if claim and page.jobs:
            self.claimed[claim] = len(page.jobs)
        self.ready.extend(Try(job, claim) for job in page.jobs)

    async def _next_page(self) -> holds.Claim | kinds.Page | None:
        """The next jobs for this worker: few enough that others find some, too."""
        most = math.ceil(max(2 * self.gate.share, 2 * FEW) / self.kind.per_row)
        return await db(
            holds.next_claim, self.run, kind=self.kind, after=self.after, most=max(1, min(kinds.PAGE, most))
        )

    async def _finish(self) -> None:
        """Nothing is left to claim or to call. Others may be at the rest; and there may be more to do again: a worker
        fell silent, or somebody asked for a retry."""
        await self._flush()
        if self.ending:
            return
        loop = asyncio.get_running_loop()
        began = loop.time()
        if await db(holds.finish, self.run, kind=self.kind):
            self.end(None)
            return
        self.after = 0
        await self._fetch()
        if self.ready:
            self.exhausted = False
            return
        # A run of a million is not looked through all the time.
        until = loop.time() + min(max(self.patience.tick, 5 * (loop.time() - began)), 30.0)
        while self.ending is None and not self.stop.is_set() and (left := until - loop.time()) > 0:
            await self._sleep(left)

    # -- calls --------------------------------------------------------------------------------------------------

    def _start(self, tried: Try) -> None:
        self.start_at = None
        self.gate.enter()
        call = asyncio.create_task(self._call(tried))
        self.calls.add(call)
        call.add_done_callback(self._left)

    def _left(self, call: "asyncio.Task[None]") -> None:
        self.calls.discard(call)
        self.gate.leave()
        self._crashed(call)

    def _crashed(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (error := task.exception()):
            log.error("Run %s stops", self.run.pk, exc_info=error)
            self.end(Run.State.PAUSED, CRASHED)

    async def _call(self, tried: Try) -> None:
        prepared = await self._prepared(tried)
        if prepared is None:
            return
        asked, body = prepared
        at = timezone.now()
        answer = await self.endpoint.complete(body, key=self.key, timeout=self.judge.timeout)
        self._take(tried, asked, at, answer)

    async def _prepared(self, tried: Try) -> tuple[Asked, bytes] | None:
        """The request of a job; None where it needs no call, and its row is made already."""
        try:
            asked = self.kind.asked(tried.job, template=self.template)
            told = self.kind.told(tried.job, asked)
        except CannotAsk as error:
            self._done(tried, self.kind.without(tried.job, Reading("error", reason=str(error))))
            return None
        if told is not None:
            self._done(tried, told)
            return None
        if self.run.reuse and await self._reused(tried, asked):
            return None
        try:
            pictures = [
                await self.shared.pictures.part(
                    sha256=image.sha256,
                    kind=image.kind,
                    path=settings.MEDIA_ROOT / image.path,
                    longest=self.run.settings.get("image_size"),
                    detail=self.run.settings.get("detail"),
                    overlay=asked.overlay,
                )
                for image in asked.images
            ]
        except OSError:
            self._done(tried, self.kind.without(tried.job, Reading("error", reason=MISSING_PICTURE)))
            return None
        body = client.encode(model=self.judge.model, text=asked.text, pictures=pictures, parameters=asked.parameters)
        return asked, body

    async def _reused(self, tried: Try, asked: Asked) -> bool:
        """Answer a job from an identical call that is stored, if there is one."""
        known = await db(self.kind.known, asked.key)
        if known is None or not self.reported.holds(known.model):
            return False
        row = self.kind.read(tried.job, asked, known.reply)
        if row.status != "ok":
            return False
        self._accepted(Answer(Outcome.OK, model=known.model))
        for name, value in known.columns.items():
            setattr(row, name, value)
        row.prompt_sha256, row.call_key, row.reported_model = asked.sha256, asked.key, known.model
        row.prompt_tokens, row.completion_tokens = known.prompt_tokens, known.completion_tokens
        row.cost, row.cached = 0.0, True
        self.batch.cached += 1
        self._done(tried, row)
        return True

    def _take(self, tried: Try, asked: Asked, at: datetime, answer: Answer) -> None:
        """Decide what the end of a call means for its job and for the run."""
        now = asyncio.get_running_loop().time()
        cost = self._pay(answer)
        pause = self.health.note(answer, now=now, gate=self.gate)
        row: kinds.Row | None = None
        if answer.outcome == Outcome.OK:
            self.gate.succeeded()
            if self._accepted(answer):
                row = self.kind.read(tried.job, asked, answer.reply or verdicts.Reply())
            else:
                pause = self._other_model(answer.model, self.reported.newest)
        elif answer.outcome in FINAL or (answer.outcome in PASSING and not self._again(tried, answer, now)):
            status: verdicts.Status = "filtered" if answer.outcome == Outcome.FILTERED else "error"
            row = self.kind.without(tried.job, Reading(status, reason=answer.words))
        if row:
            row.prompt_sha256, row.call_key, row.reported_model = asked.sha256, asked.key, answer.model
            row.prompt_tokens, row.completion_tokens = answer.prompt_tokens, answer.completion_tokens
            row.cost, row.latency = cost, answer.seconds or None  # a batch tells none
            self.unstored.add(id(row))
            self._done(tried, row)
        if row is None or row.status != "ok":
            self._log(tried.job, at, answer, cost)
        if pause:
            self.end(Run.State.PAUSED, f"{self.judge.name} at {self.judge.host}: {pause}")

    def _accepted(self, answer: Answer) -> bool:
        """Count a reply of a model that the run may hold; False for another one's."""
        if not self.reported.accepts(answer):
            return False
        self.batch.replies[answer.model, answer.fingerprint] += 1
        self.batch.opened = self.reported.opened
        return True

    def _other_model(self, model: str, newest: str) -> str:
        self.left_word = {"other_model": model}
        return (
            f"it now says that {model or 'a model without a name'} answers, not {newest}. "
            "Its verdicts are not mixed in. Resume to accept them in this run, or start a new run."
        )

    def _again(self, tried: Try, answer: Answer, now: float) -> bool:
        """Put a job back for another call; False when it has had its share."""
        if answer.outcome == Outcome.UNREACHABLE:
            if now >= self.gate.closed_until:
                self.gate.closed_until = now + min(self.patience.wait_after(self.health.rounds), 10.0)
            at = self.gate.closed_until
        else:
            limited = answer.outcome == Outcome.RATE
            tried.limits += limited
            tried.failures += not limited
            if tried.limits >= self.patience.limits or tried.failures >= self.patience.failures:
                return False
            wait = self.patience.wait_after(tried.limits if limited else tried.failures)
            if answer.retry_after is not None:
                wait = min(answer.retry_after, self.patience.longest_wait)
            at = now + wait
            if limited:
                self.gate.limited(now, at - now)
        tried.why = answer.outcome
        heapq.heappush(self.later, (at, next(self.numbers), tried))
        return True

    def _pay(self, answer: Answer) -> float | None:
        """Count a call and what it cost; returns that, None where nobody knows."""
        cost, counted = self.purse.pay(answer)
        self.batch.calls += 1
        self.batch.spent += counted
        if answer.prompt_tokens:
            self.pacer.used(answer.prompt_tokens + (answer.completion_tokens or 0))
        return cost

    def _log(self, job: Any, at: datetime, answer: Answer, cost: float | None) -> None:
        """Keep a call that brought no verdict."""
        self.batch.attempts.append(
            Attempt(
                run=self.run,
                at=at,
                outcome=answer.outcome,
                http_status=answer.http_status,
                seconds=answer.seconds,
                prompt_tokens=answer.prompt_tokens,
                completion_tokens=answer.completion_tokens,
                cost=cost,
                detail=answer.detail,
                **self.kind.key(job),
            )
        )

    def _done(self, tried: Try, row: kinds.Row) -> None:
        self.batch.rows.append(row)
        if tried.claim in self.claimed:
            self.claimed[tried.claim] -= 1
            if not self.claimed[tried.claim]:
                del self.claimed[tried.claim]
                self.batch.claims.append(tried.claim)
        self.fresh.set()

    # -- the writer ---------------------------------------------------------------------------------------------

    async def _write(self) -> None:
        """Commit results as they come, a moment's together, and at each tick: the same statement keeps the lease."""
        while not self.over:
            try:
                async with asyncio.timeout(self.patience.tick):
                    await self.fresh.wait()
                await asyncio.sleep(self.patience.gather)
            except TimeoutError:
                pass
            try:
                await self._flush()
            except holds.LeaseLost:
                self.lease_lost()
                return
            except Exception:
                log.exception("Run %s stops", self.run.pk)
                self.end(Run.State.PAUSED, CRASHED)
                return

    async def _flush(self) -> None:
        self.fresh.clear()
        stored = await self.flush()  # others add to open_jobs meanwhile
        self.open_jobs -= len(stored)
        self.unstored.difference_update(map(id, stored))
        self.wake.set()

    def look(self, batch: store.Batch, seen: store.Seen) -> None:
        self.purse.see(spent=seen.spent + self.batch.spent, budget=seen.budget, elsewhere=seen.elsewhere)
        if seen.other_model and batch.opened:
            words = self._other_model(batch.opened.model, "the model that answered first")
            self.end(Run.State.PAUSED, f"{self.judge.name} at {self.judge.host}: {words}")
        elif batch.opened is self.reported.opened:
            self.reported.opened = None
        super().look(batch, seen)
