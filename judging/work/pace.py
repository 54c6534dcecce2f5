"""How many calls of a judge may be in flight, and when the next one may start."""

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

from django.utils import timezone

from judging.models import Judge

INFINITE = math.inf


class Gate:
    """The calls of one judge in this process, over all its runs.

    Nobody waits inside: ``wait`` says how long it would be, so that a waiting run holds no slot. After a rate limit all
    calls pause and the number in flight is halved; each success lets it grow again by a little.
    """

    def __init__(self, concurrency: int) -> None:
        self.most = max(1, concurrency)
        self.limit = float(self.most)
        self.in_flight = 0
        self.closed_until = 0.0
        self._listeners: set[asyncio.Event] = set()

    def listen(self, event: asyncio.Event) -> None:
        self._listeners.add(event)

    def unlisten(self, event: asyncio.Event) -> None:
        self._listeners.discard(event)

    def wait(self, now: float) -> float:
        """Seconds until a call may start; INFINITE while others must end first."""
        if self.in_flight >= int(self.limit):
            return INFINITE
        return max(0.0, self.closed_until - now)

    def enter(self) -> None:
        self.in_flight += 1

    def leave(self) -> None:
        self.in_flight -= 1
        for event in self._listeners:
            event.set()

    def succeeded(self) -> None:
        self.limit = min(float(self.most), self.limit + 1 / self.limit)

    def limited(self, now: float, seconds: float) -> None:
        """The endpoint asked for a pause. Calls that were in flight together count as one sign."""
        if now >= self.closed_until:
            self.limit = max(1.0, self.limit / 2)
        self.closed_until = max(self.closed_until, now + seconds)


class Pacer:
    """Keeps a judge's calls and tokens a minute below its limits, over all workers.

    Starts are reserved in the database, about a second's worth at a time, and given out one by one.
    """

    def __init__(self, judge: Judge, reserve: Callable[[timedelta, int], Awaitable[datetime]]) -> None:
        self._rpm = judge.rpm
        self._tpm = judge.tpm
        self._reserve = reserve
        self._starts: deque[float] = deque()
        self.tokens_each = 2_000.0  # until replies tell

    @property
    def active(self) -> bool:
        return bool(self._rpm or self._tpm)

    def used(self, tokens: int) -> None:
        """Learn from a reply how many tokens a call takes."""
        self.tokens_each += 0.1 * (tokens - self.tokens_each)

    async def next_start(self, now: float) -> float:
        """The time of the loop's clock from which one more call may start. Each answer is good for one call."""
        if not self._starts:
            each = max(60 / self._rpm if self._rpm else 0.0, 60 * self.tokens_each / self._tpm if self._tpm else 0.0)
            count = max(1, int(1 / each)) if each else 1
            first = await self._reserve(timedelta(seconds=each), count)
            offset = now + max(0.0, (first - timezone.now()).total_seconds())
            self._starts.extend(offset + n * each for n in range(count))
        return self._starts.popleft()
