"""When a run whose endpoint fails is tried again. Nothing here knows what works the runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

DAY = timedelta(hours=24)  # the longest pause that an endpoint may ask for
WAITS = tuple(timedelta(minutes=minutes) for minutes in (1, 5, 15, 30, 60))


@dataclass(frozen=True, slots=True)
class Errors:
    """What has gone wrong since a call last succeeded: from when on, how many tries were in vain, and for how long the
    endpoint wants none. ``waits``: before the first try, the second one and so on; the last is that of all others.
    """

    since: datetime
    tries: int = 0
    retry_after: timedelta | None = None
    waits: Sequence[timedelta] = WAITS
    give_up_after: timedelta = DAY


def next_try(now: datetime, errors: Errors) -> datetime | None:
    """When to try again; None to give up."""
    last = errors.since + errors.give_up_after
    if now >= last:
        return None
    wait = errors.waits[min(errors.tries, len(errors.waits) - 1)]
    if errors.retry_after is not None and wait < errors.retry_after <= DAY:
        wait = errors.retry_after
    return min(now + wait, last)
