"""What endpoints say in headers of how much they will take yet, before they refuse anything."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

# OpenAI's, which many use, Azure without the last; and Anthropic's.
SHAPES = (
    (False, "x-ratelimit-{}-requests"),
    (True, "x-ratelimit-{}-tokens"),
    (False, "anthropic-ratelimit-requests-{}"),
    (True, "anthropic-ratelimit-tokens-{}"),
)
LIMIT_HEADERS = tuple(shape.format(part) for _, shape in SHAPES for part in ("remaining", "reset"))
UNSAID = 10.0  # seconds: Azure counts requests by so many, and does not say when they are over
_NUMBER = r"(\d{1,12}(?:\.\d{1,12})?)"
_COUNT = re.compile(_NUMBER, re.ASCII)
_DURATION = re.compile(rf"(?:{_NUMBER}d)?(?:{_NUMBER}h)?(?:{_NUMBER}m)?(?:{_NUMBER}s)?(?:{_NUMBER}ms)?", re.ASCII)
_SECONDS = (86_400.0, 3_600.0, 60.0, 1.0, 0.001)


class Allowance(NamedTuple):
    """So many requests, or tokens, until so many seconds from now."""

    of_tokens: bool
    left: float
    seconds: float


def allowances(headers: Mapping[str, str], *, now: datetime) -> Iterator[Allowance]:
    """Those that the headers of a reply tell. What cannot be read counts as not told."""
    for of_tokens, shape in SHAPES:
        left = _COUNT.fullmatch(headers.get(shape.format("remaining"), "").strip())
        reset = headers.get(shape.format("reset"))
        seconds = UNSAID if reset is None else seconds_until(reset.strip(), now)
        if left and seconds is not None:
            yield Allowance(of_tokens, float(left[0]), seconds)


def seconds_until(said: str, now: datetime) -> float | None:
    """Of "6m0s", "12ms", "1.5" or a moment as RFC 3339 has it; None for anything else, and for the past."""
    if _COUNT.fullmatch(said):
        return float(said)
    if said and (found := _DURATION.fullmatch(said)):
        return sum(float(part) * unit for part, unit in zip(found.groups(), _SECONDS, strict=True) if part)
    try:
        moment = datetime.fromisoformat(said)
        seconds = (moment.replace(tzinfo=moment.tzinfo or UTC) - now).total_seconds()
    except (ValueError, OverflowError):
        return None
    return seconds if seconds >= 0 else None
