"""Intervals of proportions and means, with or without several rows per sample."""

from __future__ import annotations

from functools import lru_cache
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, stdtrit

from stats.arrays import FloatArray, IntArray, blocks, check_lengths, dense_codes, narrow_codes
from stats.results import Estimate, Interval, InvalidCount, InvalidOutcome

WILSON = "wilson"
CLUSTER_T = "cluster-t"
STUDENT_T = "t"
WILSON_ON_CLUSTERS = "wilson on clusters (all clusters alike)"
WILSON_ON_SIZES = "wilson, clusters as if alike"

_CELLS = 2_000_000  # parts x clusters counted at a time: 16 MB

NOTHING = "nothing was counted"
ONE_CLUSTER = "one cluster only: how much clusters differ is unknown"
NO_VARIATION = "all clusters alike: no variation to estimate an error from"


@lru_cache(maxsize=64)
def normal_quantile(level: float) -> float:
    """The z of a two-sided interval: 1.96 for level 0.95."""
    return float(ndtri(0.5 + level / 2))


def t_quantile(level: float, df: int) -> float:
    """The t of a two-sided interval with `df` degrees of freedom."""
    return float(stdtrit(df, 0.5 + level / 2))


def wilson(*, successes: float, n: float, level: float = 0.95, method: str = WILSON) -> Interval:
    """Wilson's score interval of successes / n, within [0, 1].

    [p + z²/2n ± z sqrt(pq/n + z²/4n²)] / (1 + z²/n): Wilson 1927; Newcombe 1998, method 3. `successes` and
    `n` may be fractional (effective counts). Raises InvalidCount unless 0 <= successes <= n and n > 0.
    """
    if not 0 <= successes <= n or n <= 0:
        raise InvalidCount(f"{successes} successes of {n}")
    z = normal_quantile(level)
    p = successes / n
    centre = p + z * z / (2 * n)
    margin = z * sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    # Rounding may miss p by 1e-17 at the ends, where the interval touches it.
    return Interval(
        max(0.0, min((centre - margin) / scale, p)), min(1.0, max((centre + margin) / scale, p)), level, method
    )


def proportion(*, successes: int, n: int, level: float = 0.95) -> Estimate:
    """successes / n with Wilson's interval; value None for n = 0. Raises InvalidCount as `wilson` does."""
    if n == 0 and successes == 0:
        return Estimate(None, 0, None, WILSON, NOTHING)
    return Estimate(successes / n if n else None, n, wilson(successes=successes, n=n, level=level), WILSON)


def rate(*, hits: npt.ArrayLike, cluster: npt.ArrayLike, level: float = 0.95) -> Estimate:
    """The share of hits among rows that may share a cluster (a sample, an image, a prompt).

    `hits` and `cluster` have shape (n,); hits are 0 or 1, clusters any labels. One row per cluster: Wilson.
    Several: t interval on the clustered standard error (Miller 2024, arXiv 2411.00640), cut to
    [0, 1]. Where all clusters are alike that error is 0 and would claim certainty: then Wilson on the number
    of clusters, and `method` says so. One cluster with several rows: no interval. Raises LengthMismatch,
    InvalidOutcome.
    """
    values = np.asarray(hits, dtype=np.float64)
    return rates(hits=values, cluster=cluster, part=np.zeros(len(values), dtype=np.int64), parts=1, level=level)[0]


def rates(
    *,
    hits: npt.ArrayLike,
    cluster: npt.ArrayLike,
    part: npt.NDArray[Any],
    parts: int,
    finer: npt.NDArray[Any] | None = None,
    fewest: int = 0,
    level: float = 0.95,
) -> list[Estimate]:
    """`rate` of each part of the rows in one pass: `part` (n,) holds codes 0 .. parts - 1. Errors as `rate`.

    A part with fewer clusters than `fewest` is clustered by `finer` (n,) instead; without it each of its rows stands by
    itself.
    """
    values = np.asarray(hits)
    check_lengths(hits=values, cluster=np.asarray(cluster), part=part)
    if values.dtype != np.bool_:
        if not ((values == 0) | (values == 1)).all():
            raise InvalidOutcome("a hit is 0 or 1")
        values = values.astype(np.bool_)
    codes, clusters = narrow_codes(cluster)
    height = max(1, min(parts, _CELLS // max(clusters, 1)))
    estimates: list[Estimate] = []
    few = np.zeros(parts, dtype=np.bool_)
    for begin in range(0, parts, height):
        rows_of, hits_of = np.zeros((2, height * clusters), dtype=np.int32)
        for rows in blocks(len(part)):
            if parts <= height:
                at, won = part[rows].astype(np.int64) * clusters + codes[rows], values[rows]
            else:
                in_block = (part[rows] >= begin) & (part[rows] < begin + height)
                at = (part[rows][in_block].astype(np.int64) - begin) * clusters + codes[rows][in_block]
                won = values[rows][in_block]
            np.add.at(rows_of, at, np.int32(1))
            np.add.at(hits_of, at[won], np.int32(1))
        tables = zip(rows_of.reshape(height, -1), hits_of.reshape(height, -1), strict=True)
        for number, (n, hit) in enumerate(tables, begin):
            if number < parts:
                few[number] = (nonempty := int(np.count_nonzero(n))) < fewest
                estimates.append(_rate(int(n.sum()), int(hit.sum()), nonempty, _root(n, hit), level=level))
    if (rows_of_few := few[part]).any():
        hits_left = values[rows_of_few]
        by = finer[rows_of_few] if finer is not None else np.arange(len(hits_left))
        recomputed = rates(hits=hits_left, cluster=by, part=part[rows_of_few], parts=parts, level=level)
        estimates = [recomputed[number] if few[number] else estimate for number, estimate in enumerate(estimates)]
    return estimates


def _root(n: npt.NDArray[np.int32], hit: npt.NDArray[np.int32]) -> float:
    """The root of the sum over clusters of (hits - n share)², in whole numbers up to the last step: where all clusters
    are alike it is 0, not a rounding of it.
    """
    wide_n, wide_hit = n.astype(np.int64), hit.astype(np.int64)
    rows, hits = int(wide_n.sum()), int(wide_hit.sum())
    squares = (
        int(wide_hit @ wide_hit) * rows**2 - 2 * int(wide_hit @ wide_n) * rows * hits + int(wide_n @ wide_n) * hits**2
    )
    return sqrt(squares) / rows if rows else 0.0


def _rate(n: int, hits: int, clusters: int, root: float, *, level: float) -> Estimate:
    """`root`: of the sum over clusters of (hits - n share)²."""
    if clusters == n:
        return proportion(successes=hits, n=n, level=level)
    value = hits / n
    if clusters == 1:
        return Estimate(value, n, None, CLUSTER_T, ONE_CLUSTER)
    error = sqrt(clusters / (clusters - 1)) * root / n
    if error < 1e-12:
        interval = wilson(successes=value * clusters, n=clusters, level=level, method=WILSON_ON_CLUSTERS)
        return Estimate(value, n, interval, WILSON_ON_CLUSTERS)
    margin = t_quantile(level, clusters - 1) * error
    interval = Interval(max(0.0, value - margin), min(1.0, value + margin), level, CLUSTER_T)
    return Estimate(value, n, interval, CLUSTER_T)


def rate_by_sizes(*, hits: int, n: int, cluster: npt.ArrayLike, level: float = 0.95) -> Estimate:
    """The share hits / n, with an interval that depends on nothing else but the sizes of the clusters.

    `cluster` (m,) holds the labels of the rows; where they are not the n rows of the share, rows like them. Wilson on
    n / (sum of squared sizes / m), the effective number if rows of a cluster are all alike (Kish 1965, section 5.4):
    never too narrow. For shares whose single hits must not be told. Raises InvalidCount.
    """
    if n == 0:
        return proportion(successes=hits, n=n, level=level)
    sizes = np.bincount(dense_codes(cluster)[0]).astype(np.float64)
    alike = float(sizes @ sizes / sizes.sum())
    if alike == 1:
        return proportion(successes=hits, n=n, level=level)
    effective = n / alike
    interval = wilson(successes=hits / n * effective, n=effective, level=level, method=WILSON_ON_SIZES)
    return Estimate(hits / n, n, interval, WILSON_ON_SIZES)


def mean(*, values: npt.ArrayLike, cluster: npt.ArrayLike, level: float = 0.95) -> Estimate:
    """The mean of real values (scores, points) whose rows may share a cluster; both of shape (n,).

    t interval with G - 1 degrees of freedom on SE² = G/(G-1) sum_g (sum_{i in g}(s_i - mean))² / n² (Miller
    2024, arXiv 2411.00640); with one row per cluster it is Student's. No interval from one
    cluster, or where all clusters are alike. Raises LengthMismatch.
    """
    numbers = np.asarray(values, dtype=np.float64)
    check_lengths(values=numbers, cluster=np.asarray(cluster))
    codes, clusters = dense_codes(cluster)
    n = len(numbers)
    method = STUDENT_T if clusters == n else CLUSTER_T
    if n == 0:
        return Estimate(None, 0, None, method, NOTHING)
    value = float(numbers.mean())
    if clusters == 1:
        return Estimate(value, n, None, method, ONE_CLUSTER)
    error = _clustered_error(numbers, codes, clusters)
    if error <= 1e-12 * max(1.0, abs(value)):
        return Estimate(value, n, None, method, NO_VARIATION)
    margin = t_quantile(level, clusters - 1) * error
    return Estimate(value, n, Interval(value - margin, value + margin, level, method), method)


def _clustered_error(values: FloatArray, codes: IntArray, clusters: int) -> float:
    sums = np.bincount(codes, weights=values - values.mean(), minlength=clusters)
    return sqrt(clusters / (clusters - 1) * float(sums @ sums)) / len(values)
