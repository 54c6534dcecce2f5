"""Two judges or models on the same items: is one right more often?"""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

import numpy as np
import numpy.typing as npt
from scipy.special import bdtr

from stats.arrays import check_lengths, dense_codes
from stats.correlation import Test
from stats.proportions import mean, wilson
from stats.results import Estimate, Interval, InvalidCount

NEWCOMBE = "newcombe, paired"
MCNEMAR = "mcnemar, exact"
SIGN_FLIPS = "sign flips by cluster"


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
    random: p = (1 + #{|T*| >= |T|}) / (flips + 1) (Phipson and Smyth 2010). Raises LengthMismatch, InvalidCount.
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    check_lengths(first=a, second=b, cluster=np.asarray(cluster))
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
    *, before: npt.ArrayLike, after: npt.ArrayLike, cluster: npt.ArrayLike, level: float = 0.95, shares: bool = False
) -> Estimate:
    """The mean of ``after`` less ``before`` on the same rows (n,), with an interval.

    0 and 1 with one row per cluster: Newcombe's interval for paired proportions, which holds where all rows are alike,
    too. Otherwise the t interval on the clustered standard error of the differences; of ``shares``, which lie between 0
    and 1, cut to the differences that there can be. Raises LengthMismatch.
    """
    a, b = np.asarray(before, dtype=np.float64), np.asarray(after, dtype=np.float64)
    check_lengths(before=a, after=b, cluster=np.asarray(cluster))
    _, clusters = dense_codes(cluster)
    if len(a) and clusters == len(a) and np.isin(a, (0, 1)).all() and np.isin(b, (0, 1)).all():
        both_right, gained, lost = (int(n) for n in ((a * b).sum(), ((1 - a) * b).sum(), (a * (1 - b)).sum()))
        interval = newcombe(
            both=both_right, only_first=gained, only_second=lost, neither=len(a) - both_right - gained - lost
        )
        return Estimate(float((b - a).mean()), len(a), interval, NEWCOMBE)
    estimate = mean(values=b - a, cluster=cluster, level=level)
    if not shares or estimate.interval is None:
        return estimate
    ends = replace(estimate.interval, low=max(-1.0, estimate.interval.low), high=min(1.0, estimate.interval.high))
    return replace(estimate, interval=ends)


def newcombe(*, both: int, only_first: int, only_second: int, neither: int, level: float = 0.95) -> Interval:
    """The interval of the difference of two paired proportions, first less second (Newcombe 1998, Statistics in
    Medicine 17:2635, method 10): Wilson's limits of each, with the phi coefficient corrected for continuity. Raises
    InvalidCount where nothing was counted.
    """
    n = both + only_first + only_second + neither
    first, second = both + only_first, both + only_second
    interval_first, interval_second = (wilson(successes=hits, n=n, level=level) for hits in (first, second))
    down, up = first / n - interval_first.low, interval_first.high - first / n
    under, over = second / n - interval_second.low, interval_second.high - second / n
    product = both * neither - only_first * only_second
    cross = max(product - n / 2, 0.0) if product > 0 else float(product)
    spread = sqrt(first * (n - first) * second * (n - second))
    phi = cross / spread if spread else 0.0
    value = (only_first - only_second) / n
    low = value - sqrt(max(0.0, down**2 - 2 * phi * down * over + over**2))
    high = value + sqrt(max(0.0, up**2 - 2 * phi * up * under + under**2))
    return Interval(max(-1.0, low), min(1.0, high), level, NEWCOMBE)
