"""Announcements of benchmarks to webhooks, and the rule for them.

A delivery leaves the installation, so it says no more than everybody may know: an id, a state, the address of a page,
which checks its readers as ever, and names where the benchmark is public. Never a figure, a reason, an answer, its
model or its sender. A moment that tells something is announced when it no longer does (``judging.runs.notices``).
"""

from typing import Any

from accounts import webhooks
from accounts.mail import full_address
from bank.models import Benchmark


def announce(
    event: str, *, key: str, number: int, state: str, page: str, benchmark: Benchmark | None = None, **names: str
) -> None:
    """Tell webhooks of something about a benchmark; ``names`` are those of public things."""
    told: dict[str, Any] = {"id": number, "state": state, "url": full_address(page)}
    if benchmark and benchmark.visibility == Benchmark.Visibility.PUBLIC:
        told |= {"benchmark": str(benchmark), **names}
    webhooks.tell(event, key=key, **told)
