"""How two columns of scores go together: Pearson and Spearman, and whether one judge follows people more closely."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import atanh, sqrt

import numpy as np
import numpy.typing as npt
from scipy.special import stdtr

from stats.arrays import FloatArray, IntArray, check_finite, check_lengths, dense_codes, ratio
from stats.jackknife import Blocks, Scale, jackknife
from stats.proportions import t_quantile
from stats.results import Estimate, InvalidCount, NotFinite

PEARSON = "pearson"
SPEARMAN = "spearman"
CONSTANT = "one of the columns is constant"

Measure = Callable[[FloatArray, FloatArray, FloatArray], FloatArray]


@dataclass(frozen=True, slots=True)
class Correlation:
    """``p`` is two-sided against no correlation; None where ``estimate`` has no interval."""

    estimate: Estimate
    p: float | None


def pearson(
    *,
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    cluster: npt.ArrayLike,
    stratum: npt.ArrayLike | None = None,
    level: float = 0.95,
) -> Correlation:
    """Pearson's r of two columns of shape (n,), whose rows may share a group (an image, a sample).

    With ``stratum`` (data sets, repeats), the unweighted mean of r within each that has one: pooling data sets would
    correlate their means (MLLM-as-a-Judge, Table 2). Interval tanh(atanh r ± t SE) (Fisher 1921) with the jackknife's
    standard error by group, also where each row is a group of its own: scores at the end of their scale are far from
    normal. p by t on the same scale. Raises LengthMismatch, NotFinite.
    """
    return _correlation(x, y, cluster, stratum, level, of=pearson_of, name=PEARSON)


def spearman(
    *,
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    cluster: npt.ArrayLike,
    stratum: npt.ArrayLike | None = None,
    level: float = 0.95,
) -> Correlation:
    """Spearman's rho, equal values sharing their mean rank; otherwise as ``pearson``. Each part is ranked anew."""
    return _correlation(x, y, cluster, stratum, level, of=spearman_of, name=SPEARMAN)


def _correlation(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    cluster: npt.ArrayLike,
    stratum: npt.ArrayLike | None,
    level: float,
    *,
    of: Measure,
    name: str,
) -> Correlation:
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    check_lengths(x=first, y=second, cluster=np.asarray(cluster))
    check_finite(x=first, y=second)
    n = len(first)
    if n == 0:
        return Correlation(Estimate(None, 0, None, name, CONSTANT), None)
    blocks = Blocks.of(cluster)
    columns, where, starts = _points(first, second, np.zeros(n) if stratum is None else stratum)
    table = blocks.table(where, len(columns))
    estimate = jackknife(
        table=table,
        statistic=lambda weights: mean_within(of, first[columns], second[columns], weights, starts),
        n=n,
        scale=Scale.FISHER,
        method=name,
        undefined=CONSTANT,
        level=level,
    )
    return Correlation(estimate, _p(estimate, table.df))


@dataclass(frozen=True, slots=True)
class PairedCorrelations:
    """The correlations of two columns with a third, and the first less the second with its two-sided ``p``."""

    first: float | None
    second: float | None
    difference: Estimate
    p: float | None


def correlation_difference(
    *,
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    reference: npt.ArrayLike,
    cluster: npt.ArrayLike,
    stratum: npt.ArrayLike,
    name: str,
    level: float = 0.95,
) -> PairedCorrelations:
    """Whether one judge (``first``) follows people (``reference``) more closely than another, on the same n rows.

    ``name`` is pearson or spearman. Columns, ``stratum`` and standard error as ``pearson``; half the difference lies
    between -1 and 1 and has its interval on Fisher's scale. What makes an item hard for both cancels. Raises
    LengthMismatch, NotFinite.
    """
    columns = [np.asarray(values, dtype=np.float64) for values in (first, second, reference)]
    strata, number = dense_codes(stratum)
    check_lengths(first=columns[0], second=columns[1], reference=columns[2], stratum=strata)
    check_finite(first=columns[0], second=columns[1], reference=columns[2])
    order = np.argsort(strata, kind="stable")
    a, b, c = (column[order] for column in columns)
    starts = np.searchsorted(strata[order], np.arange(number)).tolist()
    blocks = Blocks.of(np.asarray(cluster)[order])
    of = {PEARSON: pearson_of, SPEARMAN: spearman_of}[name]

    def correlations(weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        return mean_within(of, a, c, weights, starts), mean_within(of, b, c, weights, starts)

    def half(weights: FloatArray) -> FloatArray:
        one, other = correlations(weights)
        return (one - other) / 2

    n = len(a)
    table = blocks.table(np.arange(n), n)
    estimate = jackknife(
        table=table,
        statistic=half,
        n=n,
        scale=Scale.FISHER,
        method=f"difference of two {name}",
        undefined=CONSTANT,
        level=level,
    )
    values = [float(value[0]) if np.isfinite(value[0]) else None for value in correlations(np.ones((1, n)))]
    return PairedCorrelations(values[0], values[1], _doubled(estimate), _p(estimate, table.df))


def _doubled(estimate: Estimate) -> Estimate:
    if estimate.value is None:
        return estimate
    ends = estimate.interval
    return replace(
        estimate,
        value=2 * estimate.value,
        se=None if estimate.se is None else 2 * estimate.se,
        interval=ends and replace(ends, low=2 * ends.low, high=2 * ends.high),
    )


def _p(estimate: Estimate, df: float) -> float | None:
    """Two-sided, by t on Fisher's scale, where the interval's half-width is t times the standard error."""
    if estimate.interval is None or estimate.value is None:
        return None
    width = atanh(estimate.interval.high) - atanh(estimate.interval.low)
    t = 2 * t_quantile(estimate.interval.level, df) * atanh(estimate.value) / width
    return float(2 * stdtr(df, -abs(t)))


def mean_within(of: Measure, x: FloatArray, y: FloatArray, weights: FloatArray, starts: Sequence[int]) -> FloatArray:
    """The unweighted mean of a measure over the strata with a value: points (x, y), (U,), are sorted by stratum, and
    stratum s begins at ``starts[s]``; ``weights`` (B, U)."""
    if not len(x):
        return np.full(len(weights), np.nan)
    ends = [*starts[1:], len(x)]
    values = np.stack([of(x[a:b], y[a:b], weights[:, a:b]) for a, b in zip(starts, ends, strict=True)], axis=1)
    defined = np.isfinite(values)
    return ratio(np.where(defined, values, 0.0).sum(axis=1), defined.sum(axis=1).astype(np.float64))


def _points(x: FloatArray, y: FloatArray, stratum: npt.ArrayLike) -> tuple[IntArray, IntArray, list[int]]:
    """Rows that stand for the distinct (stratum, x, y), sorted by stratum; which of them each row is; and where each
    stratum begins."""
    (_, first), (many, second) = (np.unique(column, return_inverse=True) for column in (x, y))
    strata, number = dense_codes(stratum)
    point = (strata * (int(first.max()) + 1) + first) * len(many) + second
    _, columns, where = np.unique(point, return_index=True, return_inverse=True)
    return columns, where, np.searchsorted(strata[columns], np.arange(number)).tolist()


def pearson_of(x: FloatArray, y: FloatArray, weights: FloatArray) -> FloatArray:
    """r for each row of ``weights`` (B, U) over the points (x, y) of shape (U,)."""
    total = weights.sum(axis=1)
    x, y = x - x.mean(), y - y.mean()  # for the digits
    mx, my = weights @ x / total, weights @ y / total
    xx, yy = weights @ (x * x) / total - mx * mx, weights @ (y * y) / total - my * my
    xy = weights @ (x * y) / total - mx * my
    return _quotient(xy, xx, yy, float(np.abs(x).max(initial=0)), float(np.abs(y).max(initial=0)))


def spearman_of(x: FloatArray, y: FloatArray, weights: FloatArray) -> FloatArray:
    """rho as ``pearson_of``; each row of ``weights`` is ranked anew."""
    total = weights.sum(axis=1)
    rx, ry = _midranks(x, weights), _midranks(y, weights)
    mx, my = (weights * rx).sum(axis=1) / total, (weights * ry).sum(axis=1) / total
    xx = (weights * rx * rx).sum(axis=1) / total - mx * mx
    yy = (weights * ry * ry).sum(axis=1) / total - my * my
    xy = (weights * rx * ry).sum(axis=1) / total - mx * my
    size = float(total.max(initial=1))
    return _quotient(xy, xx, yy, size, size)


def tau_b(x: FloatArray, y: FloatArray, weights: FloatArray) -> FloatArray:
    """Kendall's tau-b (1945) for each row of ``weights`` (B, U) over the points (x, y) of shape (U,)."""
    across, up = (np.sign(values[:, None] - values[None, :]) for values in (x, y))
    agreeing, x_differ, y_differ = (
        ((weights @ signs) * weights).sum(axis=1) for signs in (across * up, across * across, up * up)
    )
    return ratio(agreeing, np.sqrt(x_differ * y_differ))


def _quotient(xy: FloatArray, xx: FloatArray, yy: FloatArray, x_size: float, y_size: float) -> FloatArray:
    """xy / sqrt(xx yy); NaN where a column does not vary beyond rounding."""
    flat = (xx <= 1e-12 * x_size * x_size) | (yy <= 1e-12 * y_size * y_size)
    quotient = ratio(xy, np.sqrt(np.maximum(xx, 0) * np.maximum(yy, 0)))
    return np.where(flat, np.nan, quotient)


def _midranks(values: FloatArray, weights: FloatArray) -> FloatArray:
    """The rank (B, U) of each value when value u occurs weights[b, u] times; equal values share the mean rank."""
    _, level = np.unique(values, return_inverse=True)
    level = level.reshape(-1)
    order = np.argsort(level, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(level[order]) > 0])
    of_level = np.add.reduceat(weights[:, order], starts, axis=1)
    return (np.cumsum(of_level, axis=1) - of_level / 2 + 0.5)[:, level]


@dataclass(frozen=True, slots=True)
class Test:
    """A test statistic, its degrees of freedom (None where it has none) and the two-sided p."""

    statistic: float
    df: int | None
    p: float
    method: str


def williams(*, r_first: float, r_second: float, r_between: float, n: int) -> Test:
    """Whether two judges correlate equally with the same people (Williams 1959; Steiger 1980, equation 7).

    ``r_first`` and ``r_second`` are the judges' correlations with people on the same ``n`` items, ``r_between`` that of
    the judges with each other. Raises InvalidCount for n < 4, NotFinite where the three cannot go together.
    """
    if n < 4:
        raise InvalidCount(f"{n} items are too few to compare correlations")
    determinant = 1 - r_first**2 - r_second**2 - r_between**2 + 2 * r_first * r_second * r_between
    mean = (r_first + r_second) / 2
    below = 2 * (n - 1) / (n - 3) * determinant + mean**2 * (1 - r_between) ** 3
    if below <= 0:
        raise NotFinite("these three correlations cannot go together, or the judges are one")
    statistic = (r_first - r_second) * sqrt((n - 1) * (1 + r_between) / below)
    return Test(statistic, n - 3, float(2 * stdtr(n - 3, -abs(statistic))), "williams t")
