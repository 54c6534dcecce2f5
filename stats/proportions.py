"""Intervals of shares and means whose rows may depend on each other (several rows of one sample, image or prompt)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, stdtrit

from stats.arrays import FloatArray, IntArray, blocks, check_finite, check_lengths, dense_codes, narrow_codes
from stats.results import Estimate, Interval, InvalidCount, InvalidOutcome

WILSON = "wilson"
CLUSTERED_WILSON = "wilson by group, effective n"
CLUSTER_T = "t by group"
WILSON_ON_SIZES = "wilson, rows of a group as if alike"

FEWEST_GROUPS = 8  # with fewer, how much groups differ is not known well enough for an interval that covers
_CELLS = 2_000_000  # parts x groups counted at a time: 16 MB

NOTHING = "nothing was counted"
FEW_GROUPS = f"fewer than {FEWEST_GROUPS} groups: no interval"
ONE_OUTWEIGHS = "one group has nearly all of the weight: no interval"
NO_VARIATION = "all groups alike: no variation to estimate an error from"


@lru_cache(maxsize=64)
def normal_quantile(level: float) -> float:
    """The z of a two-sided interval: 1.96 for level 0.95."""
    return float(ndtri(0.5 + level / 2))


def t_quantile(level: float, df: float) -> float:
    """The t of a two-sided interval with `df` degrees of freedom."""
    return float(stdtrit(df, 0.5 + level / 2))


def wilson(
    *, successes: float, n: float, level: float = 0.95, method: str = WILSON, df: float | None = None
) -> Interval:
    """Wilson's score interval of successes / n, within [0, 1].

    [p + z²/2n ± z sqrt(pq/n + z²/4n²)] / (1 + z²/n): Wilson 1927; Newcombe 1998, method 3. `successes` and
    `n` may be fractional (effective counts); with `df`, z is the quantile of t. Raises InvalidCount unless
    0 <= successes <= n and n > 0.
    """
    if not 0 <= successes <= n or n <= 0:
        raise InvalidCount(f"{successes} successes of {n}")
    z = normal_quantile(level) if df is None else t_quantile(level, df)
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
    interval = wilson(successes=successes, n=n, level=level)
    p = successes / n
    return Estimate(p, n, interval, WILSON, se=_known(sqrt(p * (1 - p) / n)), groups=n)


def _known(error: float) -> float | None:
    """A standard error of 0 is one that the data cannot show."""
    return error or None


def no_interval(*, groups: int, effective: float) -> str:
    """Why so many groups, which weigh as much as an `effective` number of equal ones, give no interval; else empty."""
    if groups < FEWEST_GROUPS:
        return FEW_GROUPS
    return ONE_OUTWEIGHS if effective < 2 else ""


# ---- one share or mean ----


USUAL_LIKENESS = 0.18  # of rows of one group where nothing is known of it, see `likeness`
DOUBTED = 10.0  # how much more groups may differ than those on the rarer side show, by how many fewer these are


@dataclass(frozen=True, slots=True)
class _Groups:
    """What an interval needs to know of the groups: how many there are, the number of equal groups that would weigh the
    same (Kish 1965, section 5.4), on the rarer side of a share how many have a row, and the variance of the mean of
    rows of variance 1 if those of a group are not alike at all, `apart`; it is 1 / `effective` if they are all alike.
    """

    count: int
    effective: float
    rarer: int = 0
    apart: float = 0.0


@dataclass(frozen=True, slots=True)
class _Share:
    """A share of `n` rows with its clustered standard error; `single`: each of them is a group of its own."""

    value: float
    n: int
    error: float
    groups: _Groups
    single: bool

    @property
    def variation(self) -> float:
        return self.value * (1 - self.value)

    @property
    def evenness(self) -> float:
        """1 for a share of a half, less the rarer it is; never 0, as one row more may be on the rarer side."""
        p = (self.value * self.n + 1) / (self.n + 2)
        return float(2 * sqrt(p * (1 - p)))


def _doubt(rarer: int) -> float:
    """How little is known from so many groups with a row on the rarer side of a share; with one of them, its error is
    that of independent rows whatever the truth is.
    """
    return 1 / max(rarer, 1)


def _likeness(shares: Sequence[_Share]) -> float:
    """See `likeness`: what the errors of the shares add to those of rows that are not alike."""
    known = [share for share in shares if share.variation > 0]
    added = sum(share.n**2 * (share.error**2 - share.groups.apart * share.variation) for share in known)
    most = sum(
        share.n**2 * share.variation * share.evenness * (1 / share.groups.effective - share.groups.apart)
        for share in known
    )
    doubt = _doubt(sum(share.groups.rarer for share in known))
    found = min(max(added / most, 0.0), 1.0) if most > 0 else USUAL_LIKENESS
    return float((1 - doubt) * found + doubt * USUAL_LIKENESS)


def rate(
    *,
    hits: npt.ArrayLike,
    cluster: npt.ArrayLike,
    stratum: npt.ArrayLike | None = None,
    item: npt.ArrayLike | None = None,
    likeness: float | None = None,
    level: float = 0.95,
) -> Estimate:
    """The share of hits among rows that may share a group (a sample, an image, a prompt); all columns of shape (n,).

    `hits` are 0 or 1, `cluster` and `stratum` any labels. With `stratum` (data sets, repeats) the value is the
    unweighted mean of the shares within each. One row per group: Wilson. Several: Wilson on the effective number of
    rows p (1 - p) / SE², SE clustered by group (Miller 2024, arXiv 2411.00640), with t. As far as the share is rare,
    its place is taken by the error of rows with this `likeness` (see the function of this name; None: of these rows
    alone); rows of one `item`, or of one group in several strata, may be the same again, and count as one there. Fewer
    than eight groups, or one with nearly all rows: no interval. Raises LengthMismatch, InvalidOutcome.
    """
    values = np.asarray(hits, dtype=np.float64)
    check_lengths(hits=values, cluster=np.asarray(cluster))
    if not ((values == 0) | (values == 1)).all():
        raise InvalidOutcome("a hit is 0 or 1")
    if (stratum is None and item is None) or not len(values):
        (share,) = _shares(hits=values == 1, cluster=cluster, part=np.zeros(len(values), dtype=np.int64), parts=1)
    else:
        share = _share_over_strata(values, cluster, stratum, item)
    return _estimate(share, _likeness([share]) if likeness is None else likeness, level=level)


def rates(
    *, hits: npt.ArrayLike, cluster: npt.ArrayLike, part: npt.NDArray[Any], parts: int, level: float = 0.95
) -> list[Estimate]:
    """`rate` of each part of the rows in one pass, with the likeness of all of them: `part` (n,) holds codes 0 .. parts
    - 1. Errors as `rate`.
    """
    shares = _shares(hits=hits, cluster=cluster, part=part, parts=parts)
    known = _likeness(shares)
    return [_estimate(share, known, level=level) for share in shares]


def likeness(*, hits: npt.ArrayLike, cluster: npt.ArrayLike, part: npt.NDArray[Any], parts: int) -> float:
    """How alike rows of one group are: the intraclass correlation of a share of a half, from all parts together, such
    as the models of a board; columns as `rates`. That of a share p is taken as 2 sqrt(p (1 - p)) times it. The fewer
    groups have a row on the rarer side, the nearer to .18.
    """
    return _likeness(_shares(hits=hits, cluster=cluster, part=part, parts=parts))


def _shares(*, hits: npt.ArrayLike, cluster: npt.ArrayLike, part: npt.NDArray[Any], parts: int) -> list[_Share]:
    values = np.asarray(hits)
    check_lengths(hits=values, cluster=np.asarray(cluster), part=part)
    if values.dtype != np.bool_:
        if not ((values == 0) | (values == 1)).all():
            raise InvalidOutcome("a hit is 0 or 1")
        values = values.astype(np.bool_)
    codes, clusters = narrow_codes(cluster)
    height = max(1, min(parts, _CELLS // max(clusters, 1)))
    shares: list[_Share] = []
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
        shares += [_of_counts(n, hit) for n, hit in tables]
    return shares[:parts]


def _of_counts(rows: npt.NDArray[np.int32], hits: npt.NDArray[np.int32]) -> _Share:
    """The share of hits from the rows and hits of each group, both of shape (groups,)."""
    used = rows > 0
    rows, hits = rows[used].astype(np.int64), hits[used].astype(np.int64)
    n, hit = int(rows.sum()), int(hits.sum())
    if not n:
        return _Share(0.0, 0, 0.0, _Groups(0, 0.0), single=True)
    groups = _Groups(
        len(rows),
        n * n / float(rows @ rows),
        int(min(np.count_nonzero(hits), np.count_nonzero(hits < rows))),
        1 / n,
    )
    # In whole numbers up to the last step: where all groups are alike it is 0, not a rounding of it.
    squares = int(hits @ hits) * n**2 - 2 * int(hits @ rows) * n * hit + int(rows @ rows) * hit**2
    error = sqrt(len(rows) / max(len(rows) - 1, 1)) * sqrt(squares) / n / n
    return _Share(hit / n, n, error, groups, single=len(rows) == n)


def _share_over_strata(
    values: FloatArray, cluster: npt.ArrayLike, stratum: npt.ArrayLike | None, item: npt.ArrayLike | None
) -> _Share:
    clustered = Clustered.of(values=values, cluster=cluster, stratum=stratum)
    codes, found = clustered.codes, clustered.groups
    hit, missed = (len(np.unique(codes[values == side])) for side in (1, 0))
    strata, number = dense_codes(np.zeros(len(values), dtype=np.int64) if stratum is None else stratum)
    if item is not None:
        _, first = np.unique(dense_codes(item)[0], return_index=True)
        different = np.bincount(codes[first], minlength=found.count)
    else:
        different = np.bincount(codes * number + strata, minlength=found.count * number)
        different = different.reshape(found.count, number).max(axis=1)
    of_row = 1 / (number * np.bincount(strata)[strata])
    of_group = np.bincount(codes, weights=of_row, minlength=found.count)
    groups = _Groups(found.count, found.effective, min(hit, missed), float((of_group**2 / different).sum()))
    single = found.count == len(values) and number == 1
    return _Share(clustered.value, len(values), clustered.error, groups, single)


def _estimate(share: _Share, alike: float, *, level: float) -> Estimate:
    """Wilson on the effective number of rows, p (1 - p) / SE².

    The error of a rare share is hardly known, and easily too small. So 1 / n_eff is a mean of the estimate and of what
    it is where rows of a group are as `alike`; the latter with the weight 1 / k, k of the groups on the rarer side.
    What groups add to the error of independent rows is raised by 10 / k - 10 / groups, at most to that of rows all
    alike; simulated in ``tests/stats/test_coverage.py``.
    """
    value, n, groups = share.value, share.n, share.groups
    if share.single:
        return proportion(successes=round(value * n), n=n, level=level)
    if reason := no_interval(groups=groups.count, effective=groups.effective):
        return Estimate(value, n, None, CLUSTERED_WILSON, reason, groups=groups.count, se=_known(share.error))
    variation, rarer, doubt = share.variation, max(groups.rarer, 1), _doubt(groups.rarer)
    estimated = share.error**2 / variation if variation > 0 else 0.0
    raised = estimated + DOUBTED * (1 / rarer - 1 / groups.count) * (estimated - groups.apart)
    estimated = max(estimated, min(raised, 1 / groups.effective))
    correlation = min(alike * share.evenness, 1.0)
    expected = (1 - correlation) * groups.apart + correlation / groups.effective
    effective = 1 / ((1 - doubt) * estimated + doubt * expected)
    interval = wilson(
        successes=value * effective, n=effective, level=level, method=CLUSTERED_WILSON, df=groups.effective - 1
    )
    return Estimate(value, n, interval, CLUSTERED_WILSON, se=_known(sqrt(variation / effective)), groups=groups.count)


def rate_by_sizes(*, hits: int, n: int, cluster: npt.ArrayLike, level: float = 0.95) -> Estimate:
    """The share hits / n, with an interval that depends on nothing else but the sizes of the groups.

    `cluster` (m,) holds the labels of the rows; where they are not the n rows of the share, rows like them. Wilson on
    n / (sum of squared sizes / m), the effective number if rows of a group are all alike (Kish 1965, section 5.4):
    never too narrow. No interval from fewer than eight groups, or where one has nearly all rows. For shares whose
    single hits must stay secret. Raises InvalidCount.
    """
    if n == 0:
        return proportion(successes=hits, n=n, level=level)
    sizes = np.bincount(dense_codes(cluster)[0]).astype(np.float64)
    alike = float(sizes @ sizes / sizes.sum())
    if alike == 1:
        return proportion(successes=hits, n=n, level=level)
    p, effective = hits / n, n / alike
    if reason := no_interval(groups=len(sizes), effective=float(sizes.sum()) / alike):
        return Estimate(p, n, None, WILSON_ON_SIZES, reason, groups=len(sizes))
    interval = wilson(successes=p * effective, n=effective, level=level, method=WILSON_ON_SIZES)
    error = _known(sqrt(p * (1 - p) / effective))
    return Estimate(p, n, interval, WILSON_ON_SIZES, se=error, groups=len(sizes))


@dataclass(frozen=True, eq=False, slots=True)
class Clustered:
    """A mean of rows, its clustered standard error, and what each group adds to the mean's deviation, (groups,).

    SE² = G/(G-1) sum_g u_g², u_g = sum_{i in g} w_i (s_i - mean), w_i = 1 / (strata x rows of the row's stratum), the
    mean within the stratum (Miller 2024, arXiv 2411.00640).
    """

    value: float
    error: float
    influence: FloatArray
    codes: IntArray
    groups: _Groups
    strata: int

    @classmethod
    def of(cls, *, values: FloatArray, cluster: npt.ArrayLike, stratum: npt.ArrayLike | None = None) -> Clustered:
        """Of at least one row; all columns of shape (n,)."""
        codes, count = dense_codes(cluster)
        strata, number = dense_codes(np.zeros(len(values), dtype=np.int64) if stratum is None else stratum)
        sizes = np.bincount(strata)
        means = np.bincount(strata, weights=values) / sizes
        weights = 1 / (number * sizes[strata])
        deviations = weights * (values - means[strata])
        influence = np.bincount(codes, weights=deviations, minlength=count).astype(np.float64)
        error = sqrt(count / max(count - 1, 1) * float(influence @ influence))
        of_group = np.bincount(codes, weights=weights, minlength=count)
        groups = _Groups(count, 1 / float(of_group @ of_group))
        value = float(means.mean())
        return cls(value, 0.0 if error <= 1e-12 * max(1.0, abs(value)) else error, influence, codes, groups, number)


def mean(
    *,
    values: npt.ArrayLike,
    cluster: npt.ArrayLike,
    stratum: npt.ArrayLike | None = None,
    ends: tuple[float, float] | None = None,
    level: float = 0.95,
) -> Estimate:
    """The mean of real values (scores, points) whose rows may share a group; columns of shape (n,).

    `stratum` as in `rate`. `ends`: the least and greatest value of the scale, widened where a value lies beyond; the
    interval is then Wilson's on this scale, with the effective number x (1 - x) / SE², and never leaves it. Without:
    value ± t SE. No interval from fewer than eight groups, where one has nearly all rows, or where all groups are
    alike; but zeros and ones between the ends 0 and 1 are a share, see `rate`. Raises LengthMismatch, NotFinite.
    """
    numbers = np.asarray(values, dtype=np.float64)
    check_lengths(values=numbers, cluster=np.asarray(cluster))
    check_finite(values=numbers)
    if ends == (0.0, 1.0) and ((numbers == 0) | (numbers == 1)).all():
        return rate(hits=numbers, cluster=cluster, stratum=stratum, level=level)
    method = CLUSTER_T if ends is None else CLUSTERED_WILSON
    if not len(numbers):
        return Estimate(None, 0, None, method, NOTHING)
    clustered = Clustered.of(values=numbers, cluster=cluster, stratum=stratum)
    return mean_with_error(
        clustered.value,
        clustered.error,
        n=len(numbers),
        groups=clustered.groups.count,
        df=clustered.groups.effective - 1,
        ends=ends and widened(ends, numbers),
        level=level,
    )


def widened(ends: tuple[float, float], *columns: FloatArray) -> tuple[float, float]:
    """The ends of a scale, moved outwards where a value lies beyond them."""
    return min(ends[0], *(float(c.min()) for c in columns)), max(ends[1], *(float(c.max()) for c in columns))


def mean_with_error(
    value: float,
    error: float,
    *,
    n: int,
    groups: int,
    df: float,
    ends: tuple[float, float] | None = None,
    level: float = 0.95,
    method: str = "",
) -> Estimate:
    """A mean with this standard error over so many groups; see `mean`."""
    method = method or (CLUSTER_T if ends is None else CLUSTERED_WILSON)
    if reason := no_interval(groups=groups, effective=df + 1):
        return Estimate(value, n, None, method, reason, se=_known(error), groups=groups)
    if not error:
        return Estimate(value, n, None, method, NO_VARIATION, groups=groups)
    if ends is None:
        margin = t_quantile(level, df) * error
        interval = Interval(value - margin, value + margin, level, method)
    else:
        interval = within(value, error, ends=ends, df=df, level=level, method=method)
    return Estimate(value, n, interval, method, se=error, groups=groups)


def within(
    value: float, error: float, *, ends: tuple[float, float], df: float, level: float = 0.95, method: str = ""
) -> Interval:
    """Wilson's interval on the scale from `ends[0]` to `ends[1]`, for a value with this standard error (not 0).

    As if the variance were proportional to x (1 - x) along the scale: it narrows towards the ends and stays between
    them. Raises InvalidCount for a value beyond them.
    """
    low, high = ends
    x = (value - low) / (high - low)
    if not (isfinite(x) and -1e-9 <= x <= 1 + 1e-9):
        raise InvalidCount(f"{value} is not between {low} and {high}")
    x = min(1.0, max(0.0, x))
    effective = x * (1 - x) / (error / (high - low)) ** 2
    if effective < 1e-9:  # an estimate at an end although its rows vary
        margin = t_quantile(level, df) * error
        return Interval(max(low, min(high, value) - margin), min(high, max(low, value) + margin), level, method)
    scaled = wilson(successes=x * effective, n=effective, level=level, method=method, df=df)
    return Interval(
        min(low + (high - low) * scaled.low, value), max(low + (high - low) * scaled.high, value), level, method
    )


def jackknifed(
    value: float, without: FloatArray, *, n: int, effective: float, level: float = 0.95, method: str = ""
) -> Estimate:
    """A number between 0 and 1 over n rows with an interval from what it is ``without`` each group (groups,).

    ``effective`` is how many equal groups these are worth.
    """
    groups, deviations = len(without), without - without.mean()
    error = sqrt((groups - 1) / groups * float(deviations @ deviations))
    if error < 1e-12:
        return Estimate(value, n, None, method, "the same whichever group is left out", groups=groups)
    interval = within(value, error, ends=(0.0, 1.0), df=effective - 1, level=level, method=method)
    return Estimate(value, n, interval, method, se=error, groups=groups)
