"""Intervals of smooth statistics of counts (kappa, F1, alpha, correlations): one group left out at a time.

A statistic sees its data as how often each kind of row occurs, so leaving a group out is a subtraction. Values of the
other groups give the standard error, clustered by group, without a random number (Efron and Stein 1981).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from math import atanh, sqrt, tanh
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from stats.arrays import FloatArray, IntArray, dense_codes
from stats.proportions import no_interval, t_quantile, wilson, within
from stats.results import Estimate, Interval

JACKKNIFE = "jackknife by group"
ALIKE = "the same whichever group is left out"
UNDEFINED = "undefined without one of the groups"
PERFECT = "a perfect value has no interval"
MOST = 500  # groups left out one at a time; of more, as many blocks of groups, which costs a thousandth of the width
BEYOND = "below -1, raters disagree more than this coefficient can measure: it has no interval"
BEYOND_SOME = "without one of the groups it is below -1, where this coefficient has no interval"
PERFECT_FROM = 1e-12  # below 1
ROUNDING = 1e-9
_AT_ONCE = 4_000_000  # numbers: 32 MB


class Scale(Enum):
    """Where a statistic lives, and so the shape of its interval.

    `FISHER`: -1 to 1, tanh(atanh v ± t SE). `SHARE`: 0 to 1, Wilson's on the effective number v (1 - v) / SE².
    """

    FISHER = "fisher z"
    SHARE = "wilson, effective n"


@dataclass(frozen=True, eq=False, slots=True)
class Blocks:
    """The group of each row as codes (n,) of `count` blocks to leave out; `groups` is how many groups there are."""

    codes: IntArray
    count: int
    groups: int

    @classmethod
    def of(cls, cluster: npt.ArrayLike) -> Blocks:
        codes, groups = dense_codes(cluster)
        return cls(codes % MOST if groups > MOST else codes, min(groups, MOST), groups)

    def table(self, kind: npt.NDArray[np.integer[Any]], kinds: int) -> Table:
        """What can be left out, of rows of these kinds: `kind` (n,) holds codes 0 .. kinds - 1."""
        if self.groups == len(kind):  # each row by itself: those of one kind are alike
            times = np.bincount(kind, minlength=kinds)
            present = np.flatnonzero(times)
            if len(present) <= MOST:
                rows = csr_array((np.ones(len(present)), (np.arange(len(present)), present)), (len(present), kinds))
                return Table(rows, times[present], self.groups, np.ones(len(present)))
        rows = csr_array((np.ones(len(kind)), (self.codes, kind)), shape=(self.count, kinds))
        rows.sum_duplicates()
        return Table(rows, np.ones(self.count, dtype=np.int64), self.groups, rows.sum(axis=1))

    def sums(self, terms: csr_array) -> Table:
        """What can be left out of sums over the rows: ``terms`` (n, K) holds what each row adds to each of them."""
        n = len(self.codes)
        member = csr_array((np.ones(n), (self.codes, np.arange(n))), shape=(self.count, n))
        sizes = np.bincount(self.codes, minlength=self.count).astype(np.float64)
        return Table(csr_array(member @ terms), np.ones(self.count, dtype=np.int64), self.groups, sizes)


@dataclass(frozen=True, eq=False, slots=True)
class Table:
    """How often each kind of row occurs in what is left out at once, or what it adds to each sum, (B, kinds); how many
    look like it, and of how many rows it is, (B,).
    """

    rows: csr_array
    times: IntArray
    groups: int
    sizes: FloatArray

    @property
    def df(self) -> float:
        """Degrees of freedom: the number of equal blocks that would weigh the same (Kish 1965, section 5.4), less 1."""
        return float(self.times @ self.sizes) ** 2 / max(float(self.times @ (self.sizes * self.sizes)), 1.0) - 1


def jackknife(
    *,
    table: Table,
    statistic: Callable[[FloatArray], FloatArray],
    n: int,
    scale: Scale,
    method: str,
    undefined: str,
    level: float = 0.95,
) -> Estimate:
    """The statistic of all rows, with an interval from leaving out each block of `table` (see `Blocks.table`).

    `statistic` takes frequencies (B, kinds) and gives B values, NaN where one is undefined; `undefined` is then the
    reason. SE² = (B-1)/B sum_b (v_b - v)², on the scale of the interval; t with the table's degrees of freedom. Where
    each row is a group of its own, the interval depends on how often each kind occurs and on nothing else. No interval
    from fewer than eight groups, where one has nearly all rows, for a perfect value on Fisher's scale or one below -1
    (which an intraclass correlation of few raters may be; it is told as it is), or where a value without one of the
    blocks is undefined or below -1. `n` is the number of rows behind the value.
    """
    method = f"{method}, {scale.value}, {JACKKNIFE}"
    if not table.groups:
        return Estimate(None, n, None, method, undefined, groups=0)
    total = np.asarray(table.times @ table.rows, dtype=np.float64)
    value = float(statistic(total[None])[0])
    if not np.isfinite(value):
        return Estimate(None, n, None, method, undefined, groups=table.groups)
    lowest = -1.0 if scale is Scale.FISHER else 0.0
    value = min(1.0, max(lowest, value)) if value > lowest - ROUNDING else value
    if value < lowest:
        return Estimate(value, n, None, method, BEYOND, groups=table.groups)
    df = table.df
    if reason := no_interval(groups=table.groups, effective=df + 1):
        return Estimate(value, n, None, method, reason, groups=table.groups)
    height = max(1, _AT_ONCE // max(len(total), 1))
    without = np.concatenate(
        [
            statistic(total - table.rows[begin : begin + height].toarray())
            for begin in range(0, len(table.times), height)
        ]
    )
    if not np.isfinite(without).all():
        return Estimate(value, n, None, method, UNDEFINED, groups=table.groups)
    if (without < lowest - ROUNDING).any():
        return Estimate(value, n, None, method, BEYOND_SOME, groups=table.groups)
    without = np.clip(without, lowest, 1.0)
    error = _error(without - value, table.times)
    if error < 1e-12:
        return _alike(value, n, table, scale, method, level)
    if scale is Scale.SHARE:
        if value in (0.0, 1.0):
            return _alike(value, n, table, scale, method, level)
        interval = within(value, error, ends=(0.0, 1.0), df=df, level=level, method=method)
    else:
        if abs(value) > 1 - PERFECT_FROM or (np.abs(without) > 1 - PERFECT_FROM).any():
            return Estimate(value, n, None, method, PERFECT, groups=table.groups)
        margin = t_quantile(level, df) * _error(np.arctanh(without) - atanh(value), table.times)
        interval = Interval(tanh(atanh(value) - margin), tanh(atanh(value) + margin), level, method)
    return Estimate(value, n, interval, method, se=error, groups=table.groups)


def _error(deviations: FloatArray, times: IntArray) -> float:
    count = int(times.sum())
    return sqrt((count - 1) / count * float(times @ (deviations * deviations)))


def _alike(value: float, n: int, table: Table, scale: Scale, method: str, level: float) -> Estimate:
    """All right, or all wrong, shows no doubt; the number of groups still leaves some, of those that weigh much."""
    if scale is Scale.SHARE and value in (0.0, 1.0):
        effective = table.groups * (table.df + 1) / int(table.times.sum())
        interval = wilson(successes=value * effective, n=effective, level=level, method=method, df=effective - 1)
        return Estimate(value, n, interval, method, groups=table.groups)
    reason = PERFECT if scale is Scale.FISHER and abs(value) > 1 - PERFECT_FROM else ALIKE
    return Estimate(value, n, None, method, reason, groups=table.groups)


def mean_over(statistic: Callable[[FloatArray], FloatArray], strata: int) -> Callable[[FloatArray], FloatArray]:
    """The statistic of tables whose kinds are `stratum * kinds + kind`: its unweighted mean over the strata with a
    value (data sets, as in MLLM-as-a-Judge, Table 2; repeats of a judge)."""
    if strata == 1:
        return statistic

    def averaged(weights: FloatArray) -> FloatArray:
        kinds = weights.shape[1] // strata
        values = statistic(weights.reshape(len(weights) * strata, kinds)).reshape(len(weights), strata)
        defined = np.isfinite(values)
        count = defined.sum(axis=1)
        sums = np.where(defined, values, 0.0).sum(axis=1)
        return np.where(count > 0, sums / np.maximum(count, 1), np.nan)

    return averaged
