"""The cluster bootstrap on counts: clusters that look alike are drawn together.

A statistic sees its data as distinct rows of counts and how often each occurs, so a replicate is one
multinomial draw of those frequencies (Efron 1979) and rows of the raw table are never copied.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from stats.arrays import FloatArray, IntArray
from stats.results import Estimate, Interval

BOOTSTRAP = "cluster bootstrap"
ALIKE = "every resample gives the same value"
UNDEFINED = "undefined in most resamples"

_BLOCK = 4_000_000  # numbers drawn at a time: 32 MB


def distinct_rows(rows: IntArray) -> tuple[IntArray, IntArray]:
    """The distinct rows of a table of counts (G, K) and how often each occurs: (U, K), (U,)."""
    sizes = rows.max(axis=0, initial=0) + 1
    if np.log2(sizes.astype(np.float64)).sum() < 62:
        # One number per row: sorting whole rows is some twenty times slower.
        _, where, times = np.unique(rows @ (np.cumprod(sizes) // sizes), return_index=True, return_counts=True)
        return rows[where], times
    return np.unique(rows, axis=0, return_counts=True)


def bootstrap(
    *,
    times: IntArray,
    statistic: Callable[[FloatArray], FloatArray],
    n: int,
    rng: np.random.Generator,
    replicates: int = 1000,
    level: float = 0.95,
    method: str = BOOTSTRAP,
    undefined: str,
) -> list[Estimate]:
    """Estimates with percentile intervals from resampled clusters.

    `times` (U,) says how many clusters look like pattern u. `statistic` takes frequencies (B, U) and gives
    (B, K) values, NaN where a value is undefined; the estimates, one per column, are its values at `times`.
    An interval is widened to hold its estimate. There is none from one cluster, or where every replicate is
    the same; `undefined` is the reason given where the value itself does not exist. `n` is the number of rows
    behind the values.
    """
    clusters = int(times.sum())
    values = statistic(times[None, :].astype(np.float64))[0]
    if clusters < 2:
        reason = "one cluster only: how much clusters differ is unknown"
        return [_without_interval(value, n, method, undefined, reason) for value in values]
    block = max(1, _BLOCK // len(times))
    draws = np.concatenate(
        [
            statistic(
                rng.multinomial(clusters, times / clusters, size=min(block, replicates - begin)).astype(np.float64)
            )
            for begin in range(0, replicates, block)
        ]
    )
    return [
        _percentiles(value, column, n=n, level=level, method=method, undefined=undefined)
        for value, column in zip(values, draws.T, strict=True)
    ]


def _percentiles(
    value: float, draws: npt.NDArray[np.float64], *, n: int, level: float, method: str, undefined: str
) -> Estimate:
    defined = draws[np.isfinite(draws)]
    if not np.isfinite(value) or defined.size <= draws.size / 2:
        return _without_interval(value, n, method, undefined, UNDEFINED)
    low, high = np.quantile(defined, [0.5 - level / 2, 0.5 + level / 2])
    if defined.max() - defined.min() < 1e-12:
        return _without_interval(value, n, method, undefined, ALIKE)
    value = float(value)
    interval = Interval(min(float(low), value), max(float(high), value), level, method)
    return Estimate(value, n, interval, method)


def _without_interval(value: float, n: int, method: str, undefined: str, reason: str) -> Estimate:
    if not np.isfinite(value):
        return Estimate(None, n, None, method, undefined)
    return Estimate(float(value), n, None, method, reason)
