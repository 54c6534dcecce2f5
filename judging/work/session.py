"""Sessions of endpoint judges: one dispatcher, a task per call in flight, one writer."""

import asyncio
import heapq
import math
from collections import deque
from dataclasses import replace
from typing import Any

from django.conf import settings
from django.db import Error as DatabaseError
from django.utils import timezone

from accounts.loop import comes, db
from bank import images
from bank.objects import Away
from judging.endpoints.judges import KeyMissing, host_allowed, key_of
from judging.endpoints.messages import encode
from judging.models import Run
from judging.protocols import CannotAsk
from judging.protocols.replies import Reading
from judging.runs import requests
from judging.runs.requests import CallRequest
from judging.work import leases, run_kinds
from judging.work.pace import INFINITE
from judging.work.results import CallResults, PendingCall
from judging.work.writer import Ended

ROUNDING = 0.001  # seconds, of differences of the clock
LACKS = "cannot read the pictures: its media folder is not the one that they are in"
SEEDS_APART = 1_000  # more than repeats
# In ticks. A worker that renewed its hold for so long without a gap: by then all that live have renewed theirs.
GAP, IN_TOUCH = 5, 12
FEW = 8  # jobs that are read ahead at the least
MISSING_PICTURE = "the file of a picture of the sample is gone"


class Session(CallResults):
    def __init__(self, run: Run, **rest: Any) -> None:
        super().__init__(run, **rest)
        self.start_at: float | None = None  # from when the pacer lets the next call go
        self.ready: deque[PendingCall] = deque()
        self.calls: set[asyncio.Task[None]] = set()
        self.fetching: asyncio.Task[None] | None = None
        self.after = 0
        self.exhausted = False
        self.renewed_at = self.renewed_since = -math.inf  # the hold: last, and from when on without a gap
        self.open_jobs = 0  # read and not yet committed
        self.over = False

    def in_flight(self) -> int:
        """Places taken: those of results that are being stored are filled again at once, while there is with what."""
        return len(self.calls) + min(len(self.unstored), len(self.ready))

    def live(self) -> dict[str, Any]:
        waiting: dict[str, int] = {}
        for _, _, pending in self.later:
            waiting[pending.why] = waiting.get(pending.why, 0) + 1
        pause = round(self.limiter.closed_until - asyncio.get_running_loop().time()) if "rate" in waiting else 0
        return super().live() | {
            "limit": self.limiter.allowed,
            "limited": self.limiter.is_limited,
            "retrying": waiting,
            "pause": max(0, pause),
        }

    async def session(self) -> None:
        self.template = await db(self.kind.template)
        self.key = self._key()
        if not (self.judge.any_host or host_allowed(self.judge.base_url, settings.JUDGE_HOSTS)):
            words = f"The host of {self.judge.name} is not among JUDGE_HOSTS any more."
            raise Ended(Run.State.PAUSED, words, alone=True)
        try:
            if await db(run_kinds.needs_pictures, self.run) and not await db(images.media_matches_database):
                self._without_pictures()
                return
        except Away as error:
            self.wait(f"its pictures: {error}")
            return
        self.endpoint = self.shared.endpoints.at(self.judge.route)
        self.limiter.want(self.wake, True)
        writer, sharing = asyncio.create_task(self._write()), asyncio.create_task(self._keep_share())
        sharing.add_done_callback(self._crashed)
        try:
            await self._flush()  # tells what others have in flight
            await self.count_unread()
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
            if self.limiter.leave_to_others(self.wake):
                await db(leases.give_back, judge_id=self.judge.pk, holder=self.shared.holder)

    # -- the judge's calls at once, among all workers -----------------------------------------------------------

    async def _keep_share(self) -> None:
        while True:
            try:
                await self._renew_share()
                await self._free_rows()
            except leases.LeaseLost:
                self.lease_lost()
                return
            except DatabaseError as error:
                self.log.warning("Run %s: the database renews no share (%s)", self.run.pk, type(error).__name__)
            await asyncio.sleep(self.patience.tick)

    async def _renew_share(self) -> None:
        """Tell other workers what this one has of the judge, and hear what it may have; for all its runs at once."""
        loop, limiter = asyncio.get_running_loop(), self.limiter
        self._say_whether_there_are_calls()
        if loop.time() - limiter.renewed_at < self.patience.tick / 2:
            return
        limiter.renewed_at = now = loop.time()
        agreed = await db(
            leases.share,
            judge_id=self.judge.pk,
            holder=self.shared.holder,
            wants=limiter.wanted,
            used=max(limiter.in_flight, limiter.share),
            closed_for=max(0.0, limiter.closed_until - now),
            failing=limiter.is_failing,
        )
        limiter.another_tries = agreed.another_tries
        if agreed.closed_for:
            limiter.closed_until = max(limiter.closed_until, loop.time() + agreed.closed_for)
        limiter.set_share(agreed.calls, of=agreed.of)

    async def _free_rows(self) -> None:
        """Free the rows that silent workers had claimed, and read from the first again: they may lie behind.

        After an outage of the database every hold is over: those who live renew theirs first.
        """
        tick, now = self.patience.tick, asyncio.get_running_loop().time()
        in_touch = now - self.renewed_at <= GAP * tick and now - self.renewed_since > IN_TOUCH * tick
        if in_touch and await db(lambda: leases.silent(self.run, but=self.run.hold).exists()):
            await db(leases.end_silent, self.run)
            self.after, self.exhausted = 0, False

    def _say_whether_there_are_calls(self) -> None:
        self.limiter.want(self.wake, bool(self.ready or self.later or self.calls or not self.exhausted))

    async def calling(self) -> None:
        """Make the calls, until the session is asked to end."""
        await self._dispatch()
        if self.calls and not self.lost:  # they are paid for: let them end, for a while
            await asyncio.wait(set(self.calls), timeout=self.patience.drain)

    def _key(self) -> str:
        try:
            return key_of(self.judge)
        except KeyMissing as missing:
            raise Ended(
                Run.State.PAUSED,
                f"The key of {self.judge.name} is missing: the environment variable {missing} is empty where the "
                "worker runs. Set it, start the worker again, then resume.",
                alone=True,
            ) from None

    def _without_pictures(self) -> None:
        """Leave the run to workers that can read its pictures."""
        words = f"The worker that took it {LACKS}. Give that one the same EVALSITE_DATA as the others, then resume."
        self.end(Run.State.PAUSED, words, alone=True)

    # -- the dispatcher -----------------------------------------------------------------------------------------

    async def _dispatch(self) -> None:
        loop = asyncio.get_running_loop()
        while self.ending is None:
            if self.stop.is_set():
                self.ending = self.stopped
                return
            now = loop.time()
            self._refill()
            too_long = self.patience.longest_wait + ROUNDING
            if not (self.calls or self.unstored) and (pause := self._pause(now)) > too_long:
                self.wait(self.health.words or "it asked for a pause", retry_after=pause)
            elif not self._due(now) and not self.ready:
                if self.exhausted and not (self.later or self.calls or self.fetching):
                    await self._finish()
                else:
                    await self._sleep(self.later[0][0] - now if self.later else INFINITE)
            elif len(self.calls) + len(self.unstored) >= self.limiter.allowed:
                await self._sleep(INFINITE)  # a call is over when its result is stored: a kill costs no more than these
            elif wait := self.limiter.wait(now) or await self._wait_for_pace(now):
                await self._sleep(wait)
            elif self.spending.has_room(len(self.calls)):
                self._start(heapq.heappop(self.later)[2] if self._due(now) else self.ready.popleft())
            elif self.calls or self.unstored or self.spending.elsewhere:
                await self._sleep(INFINITE)  # they may cost less than was reckoned
            else:
                self.end_without_budget()

    def _pause(self, now: float) -> float:
        """Seconds until a call may be made, as far as the endpoint has asked for a pause."""
        pause = self.limiter.closed_until - now if self.ready or self.later else 0.0
        if self.later and self.exhausted and not (self.ready or self.fetching):
            pause = max(pause, self.later[0][0] - now)
        return pause

    def is_last(self, pending: PendingCall) -> bool:
        return self.exhausted and not self.ready

    def _due(self, now: float) -> bool:
        return bool(self.later) and self.later[0][0] <= now

    async def _sleep(self, seconds: float) -> None:
        """Wait until something happened, at most half a second: the process may have been asked to stop."""
        self.wake.clear()
        await comes(self.wake, min(seconds, 0.5))

    async def _rest(self, seconds: float) -> None:
        """Wait so long, but no longer than it takes to notice an end or a stop."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while self.ending is None and not self.stop.is_set() and (left := until - loop.time()) > 0:
            await self._sleep(left)

    async def _wait_for_pace(self, now: float) -> float:
        if not self.pacer.active:
            return 0.0
        if self.start_at is None:
            self.start_at = await self.pacer.next_start(now)
        return max(0.0, self.start_at - now)

    def _refill(self) -> None:
        room = self.open_jobs < 4 * self.limiter.share + 2 * self.patience.batch
        low = len(self.ready) < max(self.limiter.share, FEW) and room and self.limiter.share > 0
        if low and not self.exhausted and self.fetching is None:
            self.fetching = asyncio.create_task(self._fetch())
            self.fetching.add_done_callback(self._crashed)

    async def _fetch(self) -> None:
        after = self.after
        try:
            page = await self._next_page()
        except leases.LeaseLost:
            self.lease_lost()
            return
        except DatabaseError as error:
            self.log.warning(
                "Run %s: the database does not answer (%s), trying again", self.run.pk, type(error).__name__
            )
            await asyncio.sleep(self.patience.wait_after(1))
            return
        finally:
            self.fetching = None
            self.wake.set()
        if page is None:
            self.exhausted = True
            return
        if self.after == after:  # else rows are read from the first again
            self.after = page.last
        self.open_jobs += len(page.jobs)
        if page.claim and page.jobs:
            self.claimed[page.claim] = len(page.jobs)
        self.ready.extend(PendingCall(job, page.claim) for job in page.jobs)

    async def _next_page(self) -> run_kinds.Page | None:
        """The next jobs for this worker: few enough that others find some, too."""
        most = math.ceil(max(2 * self.limiter.share, 2 * FEW) / self.kind.per_row)
        return await db(
            leases.next_claim, self.run, kind=self.kind, after=self.after, most=max(1, min(run_kinds.PAGE, most))
        )

    async def _finish(self) -> None:
        """Nothing is left to claim or to call. Others may be at the rest; and there may be more to do again: a worker
        fell silent, or somebody asked for a retry."""
        await self._flush()
        if self.ending:
            return
        loop = asyncio.get_running_loop()
        began = loop.time()
        if await db(leases.finish, self.run, kind=self.kind):
            self.end(None)
            return
        self.after = 0
        await self._fetch()
        if self.ready:
            self.exhausted = False
            return
        # A run of a million is not looked through all the time.
        await self._rest(min(max(self.patience.tick, 5 * (loop.time() - began)), 30.0))

    def followed(self, pending: PendingCall) -> None:
        self.open_jobs += 1
        self.repeated(pending)

    def repeated(self, pending: PendingCall) -> None:
        self.ready.appendleft(pending)
        self.wake.set()

    # -- calls --------------------------------------------------------------------------------------------------

    def _start(self, pending: PendingCall) -> None:
        self.start_at = None
        self.limiter.enter(asyncio.get_running_loop().time())
        call = asyncio.create_task(self._call(pending))
        self.calls.add(call)
        call.add_done_callback(self._left)
        if self.in_flight() > self.told_in_flight:
            self.fresh.set()  # whoever counts what a dead worker had in flight reads its last commit

    def _left(self, call: "asyncio.Task[None]") -> None:
        self.calls.discard(call)
        self.limiter.leave()
        self._crashed(call)

    def _crashed(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (error := task.exception()):
            self.crash(error)

    async def _call(self, pending: PendingCall) -> None:
        prepared = await self._prepared(pending)
        if prepared is None:
            return
        request, body = prepared
        at = timezone.now()
        answer = await self.endpoint.complete(body, key=self.key, timeout=self.judge.timeout)
        await self.take(pending, request, at, answer)

    async def _prepared(self, pending: PendingCall) -> tuple[CallRequest, bytes] | None:
        """The request of a job; None where it needs no call, and its row is made already."""
        try:
            request = self.kind.request(pending.job, template=self.template)
            row = self.kind.row_without_call(pending.job, request)
        except CannotAsk as error:
            self._done(pending, self.kind.row(pending.job, Reading("error", reason=str(error))))
            return None
        if row is not None:
            self._done(pending, row)
            return None
        if pending.asked and "seed" in request.parameters:  # the same seed would bring the same reply
            seed = request.parameters["seed"] + SEEDS_APART * pending.asked
            request = replace(request, parameters={**request.parameters, "seed": seed})
        if self.run.reuse and not pending.asked and not pending.said and await self._reused(pending, request):
            return None
        if steps := requests.steps_of(self.run.settings):
            request = requests.stepped(request, steps, pending.said)
        try:
            messages = [
                (message.role, message.text, [await self._part(picture) for picture in message.pictures])
                for message in request.messages
            ]
        except Away as error:
            self.wait(f"its pictures: {error}")
            return None
        except OSError as error:
            # No number: it was read, and is no picture. Then, as where it is gone from the right folder, nobody has it.
            if (error.errno is None or isinstance(error, FileNotFoundError)) and await db(
                images.media_matches_database
            ):
                self._done(pending, self.kind.row(pending.job, Reading("error", reason=MISSING_PICTURE)))
            else:
                self.log.error("Run %s: a picture cannot be read here (%s)", self.run.pk, error)
                self._without_pictures()
            return None
        if "system" in self.run.settings:
            messages.insert(0, ("system", self.run.settings["system"], []))
        return request, encode(model=self.judge.model, messages=messages, parameters=request.parameters)

    async def _part(self, picture: requests.Picture) -> bytes:
        image = picture.image
        return await self.shared.pictures.part(
            sha256=image.sha256,
            kind=image.kind,
            name=image.path,
            longest=self.run.settings.get("image_size"),
            detail=self.run.settings.get("detail"),
            overlay=picture.overlay,
            corruption=picture.corruption,
            seed=picture.seed,
        )

    # -- the writer ---------------------------------------------------------------------------------------------

    async def _write(self) -> None:
        """Commit results as they come, a moment's together, and at each tick: the same statement keeps the lease."""
        while not self.over:
            if await comes(self.fresh, self.patience.tick):
                await asyncio.sleep(self.patience.gather)
            try:
                await self._flush()
            except leases.LeaseLost:
                self.lease_lost()
                return
            except Exception as error:
                self.crash(error)
                return

    async def _flush(self) -> None:
        self.fresh.clear()
        stored = await self.flush()  # others add to open_jobs meanwhile
        now = asyncio.get_running_loop().time()
        if now - self.renewed_at > GAP * self.patience.tick:
            self.renewed_since = now
        self.renewed_at = now
        self.open_jobs -= len(stored)
        self.unstored.difference_update(map(id, stored))
        self.wake.set()
