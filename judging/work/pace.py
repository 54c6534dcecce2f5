"""How many calls of a judge may be in flight, and when the next one may start."""

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta

from judging.models import Judge

INFINITE = math.inf
LATEST, MANY = 20, 0.25  # calls that are looked back upon, and the share of limits among them at which all pause
SLOWED_FOR, SLOWER = 1.0, 0.9
# Limits by the minute are spread over what is left of it; of longer ones only the end is heeded.
SPREAD_OVER, SLOWEST = 120.0, 60.0  # seconds
LONGEST_PAUSE = 10.0  # seconds between two tries of an endpoint that is away, until its runs wait


class Limiter:
    """The calls of one judge in this process, over all its runs.

    Nobody waits inside: ``wait`` says how long it would be, so that a waiting run holds no slot. A second with a rate
    limit takes a tenth of the calls in flight, each success lets them grow again by a little. Where many of the latest
    calls met one, all pause. What an endpoint says it takes yet is spread over the time until it takes more. As many
    failures in a row as calls may be in flight take half of these, down to one that tries now and then, of several
    workers for all of them; the first answer gives them back. Of the judge's concurrency other workers may have their
    ``share``, too.
    """

    def __init__(self, concurrency: int) -> None:
        self.most = concurrency
        self.share = 0  # of them, for this process
        self.limit = float(concurrency)
        self.in_flight = 0
        self.closed_until = 0.0
        self.renewed_at = -INFINITE
        self.spacing = 0.0  # seconds between starts
        self.spaced_until = self._entered = -INFINITE
        self._slowed_at = -INFINITE
        self._latest: deque[bool] = deque(maxlen=LATEST)  # whether they met a limit
        self._wants: dict[asyncio.Event, bool] = {}
        self._failed = 0  # calls in a row
        self._tries = 0  # in vain, one at a time
        self._before: float | None = None  # the limit before nothing but failures came
        self.another_tries = False  # a worker that the endpoint fails as well

    @property
    def allowed(self) -> int:
        """Calls that may be in flight."""
        return min(int(self.limit), self.share)

    @property
    def is_limited(self) -> bool:
        """Whether the endpoint says that it takes fewer calls than it might get."""
        return self.limit < self.share and self._before is None

    @property
    def is_failing(self) -> bool:
        """Whether the endpoint has failed so many calls in a row that it is tried by one at a time."""
        return self._before is not None and self.allowed <= 1

    @property
    def wanted(self) -> bool:
        """Whether a run has calls to make."""
        return any(self._wants.values())

    def want(self, event: asyncio.Event, wants: bool) -> None:
        """A run that is woken by this event has calls to make, or has none now."""
        self._wants[event] = wants

    def leave_to_others(self, event: asyncio.Event) -> bool:
        """A run has ended; whether it was the last one, so that nothing of the share is needed any more."""
        self._wants.pop(event, None)
        if self._wants:
            return False
        self.share, self.renewed_at = 0, -INFINITE
        return True

    def set_share(self, share: int, *, of: int) -> None:
        """What the workers have agreed upon, and the judge's concurrency as it is now."""
        if of != self.most:
            self.most, self.limit = of, float(of)
        self.share = share
        self.wake()

    def wake(self) -> None:
        for event in self._wants:
            event.set()

    def wait(self, now: float) -> float:
        """Seconds until a call may start; INFINITE while others must end first."""
        if self.in_flight >= self.allowed or (self.another_tries and self.is_failing):
            return INFINITE
        spaced = self._entered + self.spacing - now if now < self.spaced_until else 0.0
        return max(0.0, self.closed_until - now, spaced)

    def enter(self, now: float) -> None:
        self.in_flight += 1
        self._entered = now

    def leave(self) -> None:
        self.in_flight -= 1
        self.wake()

    def failed(self, now: float, wait_after: Callable[[int], float]) -> None:
        """The endpoint failed a call, which was no limit. ``wait_after``: seconds after so many tries in vain."""
        self._failed += 1
        if self._failed < self.allowed:
            return
        self._failed = 0
        if self._before is None:
            self._before = self.limit
        if self.allowed > 1:
            self.limit = max(1.0, min(self.limit, self.share) / 2)
        else:
            self._tries += 1
            self.closed_until = max(self.closed_until, now + min(wait_after(self._tries), LONGEST_PAUSE))

    def answered(self) -> None:
        """The endpoint had an answer, whatever it was."""
        self._failed = self._tries = 0
        if self._before is not None:
            self.limit, self._before = min(self._before, float(self.most)), None
            self.wake()

    def succeeded(self) -> None:
        self.answered()
        self._latest.append(False)
        self.limit = min(float(self.most), self.limit + 1 / self.limit)

    def told(self, now: float, allowed: Sequence[tuple[float, float]]) -> None:
        """The endpoint takes so many calls more, in so many seconds; of several limits the narrowest counts.

        Other workers, which are told the same, have their share of it. A limit that refills as it goes lies half empty
        where calls come as fast as it refills.
        """
        share = max(1, self.share) / self.most
        spread = [
            (seconds / max(1.0, left * share), seconds)
            for left, seconds in allowed
            if seconds <= SPREAD_OVER or left * share <= self.in_flight
        ]
        spacing, seconds = max(spread, default=(0.0, 0.0))
        self.spacing, self.spaced_until = min(spacing, SLOWEST), now + min(seconds, SLOWEST)

    def limited(self, now: float, seconds: float) -> None:
        """The endpoint asked for a pause. Calls that were in flight together count as one sign."""
        self._latest.append(True)
        if now >= self._slowed_at + SLOWED_FOR:
            self.limit = max(1.0, min(self.limit, self.share) * SLOWER)
            self._slowed_at = now
        if sum(self._latest) >= MANY * len(self._latest):
            self.closed_until = max(self.closed_until, now + seconds)


class Pacer:
    """Keeps a judge's calls and tokens a minute below its limits, over all workers.

    Starts are reserved in the database, about a second's worth at a time, and given out one by one.
    """

    def __init__(self, judge: Judge, reserve: Callable[[timedelta, int], Awaitable[float]]) -> None:
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
            first = now + await self._reserve(timedelta(seconds=each), count)
            self._starts.extend(first + n * each for n in range(count))
        return self._starts.popleft()
