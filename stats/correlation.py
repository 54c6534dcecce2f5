"""How two columns of scores go together: Pearson and Spearman, and whether one judge follows people more closely."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import atanh, sqrt, tanh

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from scipy.special import ndtr, stdtr

from stats.arrays import FloatArray, IntArray, check_lengths, dense_codes, ratio
from stats.proportions import normal_quantile
from stats.resampling import BOOTSTRAP, bootstrap, distinct_rows
from stats.results import Estimate, Interval, InvalidCount, NotFinite

PEARSON = "pearson"
SPEARMAN = "spearman"
FISHER = "fisher z"
BONETT_WRIGHT = "fisher z, bonett-wright"
CONSTANT = "one of the columns is constant"
FEW = "fewer than four pairs"
FEW_POINTS = 32  # distinct pairs of scores up to which clusters are told apart by a dense table
KENDALL = "kendall"
PERFECT = "a perfect correlation has no interval"


@dataclass(frozen=True, slots=True)
class Correlation:
    """``p`` is two-sided against no correlation; None where ``estimate`` has no value or ``n`` is below three."""

    estimate: Estimate
    p: float | None


def pearson(
    *,
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    cluster: npt.ArrayLike,
    rng: np.random.Generator,
    replicates: int = 1000,
    level: float = 0.95,
) -> Correlation:
    """Pearson's r of two columns of shape (n,), whose rows may share a cluster (an image, a sample).

    One row per cluster: interval tanh(atanh r ± z / sqrt(n - 3)) (Fisher 1921), p by Student's t with n - 2 degrees of
    freedom. Several: percentile interval and p of the cluster bootstrap. Raises LengthMismatch, NotFinite.
    """
    return _correlation(x, y, cluster, rng, replicates, level, of=_pearson, name=PEARSON)


def spearman(
    *,
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    cluster: npt.ArrayLike,
    rng: np.random.Generator,
    replicates: int = 1000,
    level: float = 0.95,
) -> Correlation:
    """Spearman's rho, equal values sharing their mean rank; otherwise as ``pearson``.

    One row per cluster: Fisher's interval with the standard error sqrt((1 + rho² / 2) / (n - 3)) (Bonett and Wright
    2000). Every bootstrap replicate is ranked anew.
    """
    return _correlation(x, y, cluster, rng, replicates, level, of=_spearman, name=SPEARMAN)


def kendall(
    *,
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    cluster: npt.ArrayLike,
    rng: np.random.Generator,
    replicates: int = 1000,
    level: float = 0.95,
) -> Correlation:
    """Kendall's tau-b; otherwise as ``pearson``. Made for scores of a few values: work and memory grow with the square
    of the number of distinct pairs of values.

    One row per cluster: Fisher's interval with the standard error sqrt(0.437 / (n - 4)) (Bonett and Wright 2000), p
    from its normal approximation under no correlation, corrected for ties (Kendall 1970, chapter 4).
    """
    return _correlation(x, y, cluster, rng, replicates, level, of=tau_b, name=KENDALL)


def mean_over_sets(
    *,
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    dataset: npt.ArrayLike,
    cluster: npt.ArrayLike,
    rng: np.random.Generator,
    name: str = PEARSON,
    replicates: int = 1000,
) -> Estimate:
    """The unweighted mean, over the source data sets that have one, of ``name`` (pearson or spearman) within each.

    All columns have shape (n,). Pooling the sets instead would correlate their means (MLLM-as-a-Judge, Table 2). The
    bootstrap draws clusters, which may lie in several sets. Raises LengthMismatch.
    """
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    sets, _ = dense_codes(dataset)
    check_lengths(x=first, y=second, dataset=sets, cluster=np.asarray(cluster))
    codes, clusters = dense_codes(cluster)
    of = _pearson if name == PEARSON else _spearman
    rows = [np.flatnonzero(sets == code) for code in np.unique(sets)]
    values = [of(first[at], second[at], np.ones((1, len(at))))[0] for at in rows]
    rows = [at for at, value in zip(rows, values, strict=True) if np.isfinite(value)]
    if not rows:
        return Estimate(None, len(first), None, name, CONSTANT)

    def statistic(drawn: FloatArray) -> FloatArray:
        means: FloatArray = np.mean([of(first[at], second[at], drawn[:, codes[at]]) for at in rows], axis=0)
        return means[:, None]

    return bootstrap(
        times=np.ones(clusters, dtype=np.int64),
        statistic=statistic,
        n=len(first),
        rng=rng,
        replicates=replicates,
        method=f"mean {name} over data sets, {BOOTSTRAP}",
        undefined=CONSTANT,
    )[0]


def _correlation(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    cluster: npt.ArrayLike,
    rng: np.random.Generator,
    replicates: int,
    level: float,
    *,
    of: Callable[[FloatArray, FloatArray, FloatArray], FloatArray],
    name: str,
) -> Correlation:
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    check_lengths(x=first, y=second, cluster=np.asarray(cluster))
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise NotFinite("a score is not a finite number")
    n = len(first)
    codes, clusters = dense_codes(cluster)
    if n == 0:
        return Correlation(Estimate(None, 0, None, name, CONSTANT), None)
    columns, where = _points(first, second)
    a, b = first[columns], second[columns]
    sizes = np.bincount(where, minlength=len(columns)).astype(np.float64)
    value = float(of(a, b, sizes[None, :])[0])
    if not np.isfinite(value):
        return Correlation(Estimate(None, n, None, name, CONSTANT), None)
    value = max(-1.0, min(1.0, value))
    if clusters == n:
        return _by_fisher(value, n, level, name, _tau_p(a, b, sizes) if name == KENDALL else _student_p(value, n))
    times = _patterns(codes, clusters, where, len(columns))
    (estimate,) = bootstrap(
        times=times.counts,
        statistic=lambda drawn: of(a, b, np.asarray(drawn @ times.rows))[:, None],
        n=n,
        rng=rng,
        replicates=replicates,
        level=level,
        method=f"{name}, {BOOTSTRAP}",
        undefined=CONSTANT,
    )
    return Correlation(
        estimate, None if estimate.interval is None else _bootstrap_p(estimate.interval, value, clusters)
    )


def _student_p(value: float, n: int) -> float | None:
    if n < 3:
        return None
    return 0.0 if abs(value) == 1 else float(2 * stdtr(n - 2, -abs(value) * sqrt((n - 2) / (1 - value * value))))


def _by_fisher(value: float, n: int, level: float, name: str, p: float | None) -> Correlation:
    method = f"{name}, {FISHER if name == PEARSON else BONETT_WRIGHT}"
    if n < (5 if name == KENDALL else 4):
        return Correlation(Estimate(value, n, None, method, FEW), p)
    if abs(value) > 1 - 1e-12:
        return Correlation(Estimate(value, n, None, method, PERFECT), p)
    variance = {PEARSON: 1 / (n - 3), SPEARMAN: (1 + value * value / 2) / (n - 3), KENDALL: 0.437 / max(n - 4, 1)}
    error = sqrt(variance[name])
    margin = normal_quantile(level) * error
    interval = Interval(tanh(atanh(value) - margin), tanh(atanh(value) + margin), level, method)
    return Correlation(Estimate(value, n, interval, method), p)


def _bootstrap_p(interval: Interval, value: float, clusters: int) -> float:
    """The p that Fisher's z has with the bootstrap's standard error: the interval's width on the z scale."""
    low, high = (max(-1 + 1e-12, min(1 - 1e-12, end)) for end in (interval.low, interval.high))
    error = (atanh(high) - atanh(low)) / (2 * normal_quantile(interval.level))
    middle = atanh(max(-1 + 1e-12, min(1 - 1e-12, value)))
    return float(2 * stdtr(max(clusters - 1, 1), -abs(middle) / error)) if error > 0 else 0.0


@dataclass(frozen=True, eq=False, slots=True)
class _Times:
    rows: csr_matrix  # (P, U): how often each distinct (x, y) occurs in a cluster that looks like pattern p
    counts: IntArray  # (P,): how many clusters look like it


def _points(x: FloatArray, y: FloatArray) -> tuple[IntArray, IntArray]:
    """Rows that stand for the distinct (x, y), and which of them each row is."""
    (_, first), (many, second) = (np.unique(column, return_inverse=True) for column in (x, y))
    _, columns, where = np.unique(first * len(many) + second, return_index=True, return_inverse=True)
    return columns, where


def _patterns(codes: IntArray, clusters: int, where: IntArray, points: int) -> _Times:
    """The distinct clusters (n,), by how often each of the points ``where`` (n,) occurs in them."""
    if points <= FEW_POINTS:
        dense = np.bincount(codes * points + where, minlength=clusters * points).reshape(clusters, points)
        rows, times = distinct_rows(dense)
        return _Times(csr_matrix(rows), times)
    table = csr_matrix((np.ones(len(where)), (codes, where)), shape=(clusters, points))
    table.sum_duplicates()
    keys: dict[bytes, int] = {}
    columns_kept: list[int] = []
    counts: list[int] = []
    for row in range(clusters):
        begin, end = table.indptr[row], table.indptr[row + 1]
        key = table.indices[begin:end].tobytes() + b"|" + table.data[begin:end].tobytes()
        at = keys.setdefault(key, len(columns_kept))
        if at == len(columns_kept):
            columns_kept.append(row)
            counts.append(0)
        counts[at] += 1
    return _Times(table[columns_kept], np.asarray(counts, dtype=np.int64))


def _pearson(x: FloatArray, y: FloatArray, weights: FloatArray) -> FloatArray:
    """r for each row of ``weights`` (B, U) over the points (x, y) of shape (U,)."""
    total = weights.sum(axis=1)
    x, y = x - x.mean(), y - y.mean()  # for the digits
    mx, my = weights @ x / total, weights @ y / total
    xx, yy = weights @ (x * x) / total - mx * mx, weights @ (y * y) / total - my * my
    xy = weights @ (x * y) / total - mx * my
    return _quotient(xy, xx, yy, float(np.abs(x).max(initial=0)), float(np.abs(y).max(initial=0)))


def _spearman(x: FloatArray, y: FloatArray, weights: FloatArray) -> FloatArray:
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


def _tau_p(x: FloatArray, y: FloatArray, times: FloatArray) -> float | None:
    """Two-sided p of tau-b against no correlation; points (x, y) occur ``times``, all of shape (U,)."""
    n = float(times.sum())
    if n < 3:
        return None
    ties = [np.bincount(np.unique(values, return_inverse=True)[1], weights=times) for values in (x, y)]
    pairs = [float((t * (t - 1) / 2).sum()) for t in ties]
    triples = [float((t * (t - 1) * (t - 2)).sum()) for t in ties]
    spread = [float((t * (t - 1) * (2 * t + 5)).sum()) for t in ties]
    all_pairs = n * (n - 1)
    variance = (all_pairs * (2 * n + 5) - sum(spread)) / 18
    variance += 2 * pairs[0] * pairs[1] / all_pairs + triples[0] * triples[1] / (9 * all_pairs * (n - 2))
    agreeing = float(times @ (np.sign(x[:, None] - x) * np.sign(y[:, None] - y)) @ times) / 2
    return float(2 * ndtr(-abs(agreeing) / sqrt(variance)))


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
