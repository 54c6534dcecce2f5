"""The mean of several parts, such as data sets of unequal size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt

import numpy as np

from stats.proportions import FEWEST_GROUPS
from stats.results import Estimate, Interval

MOVER = "MOVER over parts"
SHARED = "parts share groups: the wider of MOVER and"
MOST_NAMED = 3


def mover(
    values: Sequence[float],
    intervals: Sequence[Interval],
    shares: Sequence[float],
    *,
    method: str,
    level: float = 0.95,
) -> Interval:
    """The interval of sum w_i value_i from those of its independent parts, by MOVER (Zou and Donner 2008).

    value - sqrt(sum w_i² (value_i - low_i)²), and likewise above. `shares` are the weights w_i, which sum to 1.
    """
    weights, told = np.asarray(shares, dtype=np.float64), np.asarray(values, dtype=np.float64)
    value = float(weights @ told)
    below = weights * (told - np.array([interval.low for interval in intervals]))
    above = weights * (told - np.array([interval.high for interval in intervals]))
    return Interval(value - sqrt(float(below @ below)), value + sqrt(float(above @ above)), level, method)


def over_parts(whole: Estimate, parts: Mapping[str, Estimate], *, apart: bool) -> Estimate:
    """`whole`, the unweighted mean of those `parts` that have a value, with the interval that follows from theirs.

    A part counts as much as any other however few groups it has, so none has fewer than eight; else there is no
    interval, and the reason names the part. Where the parts are not `apart`, one and the same group is in several of
    them, and errors of parts are no longer independent: then the interval also holds that of `whole`, which leaves out
    a group with all its rows. The standard error is sqrt(sum w² se²).
    """
    told = {name: part for name, part in parts.items() if part.value is not None}
    if whole.value is None or len(told) < 2:
        return whole
    own = next(iter(told.values())).method
    method = f"{MOVER}, {own}" if apart else f"{SHARED} {whole.method}"
    reason = _why_not(told) or ("" if apart or whole.interval else whole.reason)
    if reason:
        return Estimate(whole.value, whole.n, None, method, reason, groups=whole.groups)
    share = 1 / len(told)
    values = [part.value for part in told.values() if part.value is not None]
    intervals = [part.interval for part in told.values() if part.interval]
    interval = mover(values, intervals, [share] * len(told), method=method)
    errors = [part.se for part in told.values() if part.se is not None]
    error = share * sqrt(sum(each * each for each in errors)) if len(errors) == len(told) else None
    if not apart and whole.interval:
        interval = Interval(
            min(interval.low, whole.interval.low), max(interval.high, whole.interval.high), interval.level, method
        )
        error = None if error is None or whole.se is None else max(error, whole.se)
    return Estimate(whole.value, whole.n, interval, method, se=error, groups=whole.groups)


def _why_not(parts: Mapping[str, Estimate]) -> str:
    """Why the mean of these parts has no interval; else empty."""
    small = [name for name, part in parts.items() if (part.groups or 0) < FEWEST_GROUPS]
    if small:
        named = ", ".join(f"{name} has {parts[name].groups or 0}" for name in small[:MOST_NAMED])
        more = f" and {len(small) - MOST_NAMED} more have few" if len(small) > MOST_NAMED else ""
        return f"each counts alike, and of fewer than {FEWEST_GROUPS} groups too little is known: {named}{more}"
    for name, part in parts.items():
        if part.interval is None:
            return f"{name} has no interval: {part.reason}"
    return ""
