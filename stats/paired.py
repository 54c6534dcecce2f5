"""Two judges or models on the same items: is one right more often?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import sqrt

import numpy as np
import numpy.typing as npt
from scipy.special import bdtr

from stats.arrays import check_finite, check_lengths, dense_codes
from stats.correlation import Test
from stats.proportions import (
    NO_VARIATION,
    NOTHING,
    Clustered,
    mean_with_error,
    no_interval,
    rates,
    widened,
    wilson,
)
from stats.results import Estimate, Interval, InvalidCount

NEWCOMBE = "newcombe, paired"
CLUSTERED_NEWCOMBE = "newcombe, paired, effective n by group"
MCNEMAR = "mcnemar, exact"
SIGN_FLIPS = "sign flips by group"


def mcnemar(*, only_first: int, only_second: int) -> Test:
    """McNemar's exact test on the discordant items: 2 P(Bin(b + c, 1/2) <= min(b, c)), at most 1 (McNemar 1947).

    ``only_first`` and ``only_second`` count the items that one got right and the other did not. Raises InvalidCount.
    """
    if only_first < 0 or only_second < 0:
        raise InvalidCount(f"{only_first} and {only_second} discordant items")
    few, n = min(only_first, only_second), only_first + only_second
    p = min(1.0, 2 * float(bdtr(few, n, 0.5))) if n else 1.0
    return Test(float(only_first - only_second), None, p, MCNEMAR)


def difference(
    *,
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    cluster: npt.ArrayLike,
    rng: np.random.Generator,
    flips: int = 10_000,
) -> Test:
    """The mean difference of two columns on the same rows (n,), and its p when rows share clusters.

    0 and 1 with one row per cluster: McNemar's exact test. Otherwise the sign of each cluster's sum is flipped at
    random: p = (1 + #{|T*| >= |T|}) / (flips + 1) (Phipson and Smyth 2010). Raises LengthMismatch, NotFinite, and
    InvalidCount for no rows.
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    check_lengths(first=a, second=b, cluster=np.asarray(cluster))
    check_finite(first=a, second=b)
    if not len(a):
        raise InvalidCount("no items in common")
    codes, clusters = dense_codes(cluster)
    change = a - b
    value = float(change.mean())
    if clusters == len(a) and np.isin(a, (0, 1)).all() and np.isin(b, (0, 1)).all():
        exact = mcnemar(only_first=int((change > 0).sum()), only_second=int((change < 0).sum()))
        return Test(value, None, exact.p, MCNEMAR)
    sums = np.bincount(codes, weights=change, minlength=clusters)
    sums = sums[sums != 0]
    reached, block = 0, max(1, 4_000_000 // max(len(sums), 1))
    bound = abs(float(sums.sum())) - 1e-9
    for begin in range(0, flips, block):
        signs = rng.integers(0, 2, size=(min(block, flips - begin), len(sums)), dtype=np.int8) * 2 - 1
        reached += int((np.abs(signs @ sums) >= bound).sum())
    return Test(value, None, (1 + reached) / (flips + 1), SIGN_FLIPS)


def change(
    *,
    before: npt.ArrayLike,
    after: npt.ArrayLike,
    cluster: npt.ArrayLike,
    ends: tuple[float, float],
    level: float = 0.95,
) -> Estimate:
    """The mean of ``after`` less ``before`` on the same rows (n,), with an interval within what it can be.

    Both columns lie between ``ends``, 0 and 1 for shares; a scale is widened where a value lies beyond it. 0 and 1 with
    one row per group: Newcombe's interval for paired proportions (Statistics in Medicine 17:2635, method 10). Otherwise
    the same combination of the two means' intervals with the clustered correlation of the two. Raises LengthMismatch,
    NotFinite.
    """
    a, b = np.asarray(after, dtype=np.float64), np.asarray(before, dtype=np.float64)
    groups = np.asarray(cluster)
    check_lengths(before=b, after=a, cluster=groups)
    check_finite(before=b, after=a)
    n = len(a)
    if not n:
        return Estimate(None, 0, None, NEWCOMBE, NOTHING)
    ends = widened(ends, a, b)
    value = float((a - b).mean())
    clustered = Clustered.of(values=a - b, cluster=groups)
    count = clustered.groups.count
    binary = bool(np.isin(a, (0, 1)).all() and np.isin(b, (0, 1)).all()) and ends == (0.0, 1.0)
    if binary and count == n:
        both, gained, lost = (int(table.sum()) for table in (a * b, a * (1 - b), (1 - a) * b))
        neither = n - both - gained - lost
        interval = newcombe(both=both, only_first=gained, only_second=lost, neither=neither, level=level)
        return Estimate(value, n, interval, NEWCOMBE, se=clustered.error or None, groups=n)
    if reason := no_interval(groups=count, effective=clustered.groups.effective):
        return Estimate(value, n, None, CLUSTERED_NEWCOMBE, reason, se=clustered.error or None, groups=count)
    if not clustered.error and not binary:
        return Estimate(value, n, None, CLUSTERED_NEWCOMBE, NO_VARIATION, groups=count)
    of_a, of_b = Clustered.of(values=a, cluster=groups), Clustered.of(values=b, cluster=groups)
    estimates: Sequence[Estimate]
    if binary:
        estimates = rates(
            hits=np.r_[a, b], cluster=np.r_[groups, groups], part=np.repeat([0, 1], n), parts=2, level=level
        )
    else:
        estimates = [_bounded(side, n, ends, level) for side in (of_a, of_b)]
    sides = []
    for side, of_side in zip((of_a, of_b), estimates, strict=True):
        assert of_side.interval
        sides.append((side.value, of_side.interval))
    product = float(np.sqrt((of_a.influence @ of_a.influence) * (of_b.influence @ of_b.influence)))
    correlation = float(of_a.influence @ of_b.influence) / product if product else 0.0
    interval = _combined(sides[0], sides[1], correlation, level=level, most=ends[1] - ends[0])
    return Estimate(value, n, interval, CLUSTERED_NEWCOMBE, se=clustered.error or None, groups=count)


def _bounded(side: Clustered, n: int, ends: tuple[float, float], level: float) -> Estimate:
    """One of the two means; one that does not vary is known exactly beside the other."""
    estimate = mean_with_error(
        side.value, side.error, n=n, groups=side.groups.count, df=side.groups.effective - 1, ends=ends, level=level
    )
    if estimate.interval is None:
        estimate = replace(estimate, interval=Interval(side.value, side.value, level, estimate.method))
    return estimate


def newcombe(*, both: int, only_first: int, only_second: int, neither: int, level: float = 0.95) -> Interval:
    """The interval of the difference of two paired proportions, first less second (Newcombe 1998, Statistics in
    Medicine 17:2635, method 10): Wilson's limits of each, with the phi coefficient corrected for continuity. Raises
    InvalidCount where nothing was counted.
    """
    n = both + only_first + only_second + neither
    first, second = both + only_first, both + only_second
    sides = [(hits / n, wilson(successes=hits, n=n, level=level)) for hits in (first, second)]
    product = both * neither - only_first * only_second
    cross = max(product - n / 2, 0.0) if product > 0 else float(product)
    spread = sqrt(first * (n - first) * second * (n - second))
    interval = _combined(sides[0], sides[1], cross / spread if spread else 0.0, level=level, most=1.0)
    return replace(interval, method=NEWCOMBE)


def _combined(
    first: tuple[float, Interval], second: tuple[float, Interval], correlation: float, *, level: float, most: float
) -> Interval:
    """The interval of first less second from those of both (value, interval), and their correlation."""
    (a, of_a), (b, of_b) = first, second
    down, up, under, over = a - of_a.low, of_a.high - a, b - of_b.low, of_b.high - b
    low = a - b - sqrt(max(0.0, down**2 - 2 * correlation * down * over + over**2))
    high = a - b + sqrt(max(0.0, up**2 - 2 * correlation * up * under + under**2))
    return Interval(max(-most, low), min(most, high), level, CLUSTERED_NEWCOMBE)
