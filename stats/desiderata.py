"""ChEF's desiderata (arXiv 2311.02692, Appendix C): calibration, gain from examples, robustness, and their means.

The text of the paper that circulates lost its equations; docs/statistics.md states the definitions used here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, sqrt

import numpy as np
import numpy.typing as npt

from stats.arrays import FloatArray, check_finite, check_lengths, dense_codes
from stats.parts import mover
from stats.proportions import Clustered, jackknifed, no_interval, t_quantile
from stats.results import Estimate, Interval, InvalidCount

BINS = 10
PROVISIONAL = 100  # questions: with fewer, an ECE says little
DRAWS = 1000
ECE = "ECE, bins of equal mass, delete-a-group jackknife"
FIELLER = "fieller by group"
MOVER = "weighted mean, MOVER"
NOTHING = "nothing was counted"
AT_CHANCE = "the accuracy's own interval reaches chance: a share of what lies above it means nothing"
_ROUNDING = 1e-12


# ---- calibration ----


@dataclass(frozen=True, slots=True)
class Bin:
    """Questions of neighbouring confidence: their mean confidence, the share that is right, and how many there are."""

    confidence: float
    accuracy: float
    n: int


@dataclass(frozen=True, slots=True)
class Calibration:
    """``score`` is 1 - ECE with its interval. ``calibrated`` and ``calibrated_high``: mean and 95th percentile of the
    ECE that a perfectly calibrated model would show at the same confidences: it is above 0, too.
    """

    score: Estimate
    bins: tuple[Bin, ...]
    calibrated: float | None
    calibrated_high: float | None


def softmax(log_likelihoods: Sequence[float]) -> list[float]:
    """Confidences from log-likelihoods; minus infinity gives 0. Raises InvalidCount if all are."""
    highest = max(log_likelihoods, default=float("-inf"))
    if highest == float("-inf"):
        raise InvalidCount("no candidate has a likelihood")
    weights = [exp(value - highest) for value in log_likelihoods]
    total = sum(weights)
    return [weight / total for weight in weights]


def calibration(
    *,
    confidence: npt.ArrayLike,
    right: npt.ArrayLike,
    key: Sequence[str],
    cluster: npt.ArrayLike,
    rng: np.random.Generator,
    level: float = 0.95,
) -> Calibration:
    """Expected calibration error over ten bins of equal mass (C.1), of n answers; every column has shape (n,).

    ``confidence`` in [0, 1] of the chosen answer, ``right`` 0 or 1, ``key`` breaks ties of confidence so that the bins
    are the same on every machine. Bins are those of ``numpy.array_split``, weighted by size. The interval leaves out
    each group with the bins held fixed; it is about the ECE of so many questions in such bins, which is above the one
    of endlessly many. Raises LengthMismatch, NotFinite.
    """
    confidences, hits = np.asarray(confidence, dtype=np.float64), np.asarray(right, dtype=np.float64)
    check_lengths(confidence=confidences, right=hits, key=key, cluster=np.asarray(cluster))
    check_finite(confidence=confidences, right=hits)
    n = len(confidences)
    if not n:
        return Calibration(Estimate(None, 0, None, ECE, NOTHING, groups=0), (), None, None)
    bin_of = np.empty(n, dtype=np.int64)
    for number, rows in enumerate(bins_of(confidences, key)):
        bin_of[rows] = number
    sizes = np.bincount(bin_of, minlength=BINS)
    bins = tuple(
        Bin(float(confidences[bin_of == at].mean()), float(hits[bin_of == at].mean()), int(sizes[at]))
        for at in range(BINS)
        if sizes[at]
    )
    gaps = np.bincount(bin_of, weights=confidences - hits, minlength=BINS)
    ece = float(np.abs(gaps).sum()) / n
    draws = rng.random((DRAWS, n)) < confidences
    drawn = np.abs(_sums((confidences - draws), bin_of)).sum(axis=1) / n
    return Calibration(
        _calibration_score(ece, confidences - hits, bin_of, gaps.astype(np.float64), cluster, level),
        bins,
        float(drawn.mean()),
        float(np.quantile(drawn, 0.95)),
    )


def bins_of(confidence: npt.ArrayLike, key: Sequence[str]) -> list[npt.NDArray[np.int64]]:
    """The rows of each of ten bins of equal mass, from the least confidence to the most; see ``calibration``."""
    confidences = np.asarray(confidence, dtype=np.float64)
    return np.array_split(np.lexsort((np.asarray(key, dtype=object).astype(str), confidences)), BINS)


def _sums(rows: FloatArray, bin_of: npt.NDArray[np.int64]) -> FloatArray:
    """Sums by bin of each row of (m, n): (m, BINS)."""
    member = np.zeros((len(bin_of), BINS))
    member[np.arange(len(bin_of)), bin_of] = 1.0
    return rows @ member


def _calibration_score(
    ece: float,
    gap: FloatArray,
    bin_of: npt.NDArray[np.int64],
    gaps: FloatArray,
    cluster: npt.ArrayLike,
    level: float,
) -> Estimate:
    n = len(gap)
    codes, groups = dense_codes(cluster)
    sizes = np.bincount(codes, minlength=groups).astype(np.float64)
    effective = n * n / float(sizes @ sizes)
    if reason := no_interval(groups=groups, effective=effective):
        return Estimate(1 - ece, n, None, ECE, reason, groups=groups)
    of_group = np.bincount(codes * BINS + bin_of, weights=gap, minlength=groups * BINS).reshape(groups, BINS)
    without = np.abs(gaps - of_group).sum(axis=1) / (n - sizes)
    return jackknifed(1 - ece, without, n=n, effective=effective, level=level, method=ECE)


# ---- what lies above chance ----


def relative(
    *, part: npt.ArrayLike, whole: npt.ArrayLike, cluster: npt.ArrayLike, method: str, level: float = 0.95
) -> Estimate:
    """mean(part) / mean(whole) of n paired rows, columns of shape (n,), with Fieller's interval by group.

    For RIAM ``part`` is the change of a question's accuracy and ``whole`` its accuracy without examples less chance;
    for RRM its accuracy when corrupted less chance, and its accuracy less chance. All r with
    (A - rB)² <= t² Var(A - rB), variances and covariance clustered by group (Fieller 1954). No value where the interval
    of the whole reaches 0 (the ratio could then be anything), no interval from fewer than eight groups. Raises
    LengthMismatch, NotFinite.
    """
    method = f"{method}, {FIELLER}"
    above, below = np.asarray(part, dtype=np.float64), np.asarray(whole, dtype=np.float64)
    check_lengths(part=above, whole=below, cluster=np.asarray(cluster))
    check_finite(part=above, whole=below)
    n = len(above)
    if not n:
        return Estimate(None, 0, None, method, NOTHING, groups=0)
    a, b = (Clustered.of(values=values, cluster=cluster) for values in (above, below))
    groups = a.groups.count
    reason = no_interval(groups=groups, effective=a.groups.effective)
    if reason:
        value = a.value / b.value if abs(b.value) > _ROUNDING else None
        return Estimate(value, n, None, method, reason, groups=groups)
    scale = groups / (groups - 1)
    aa, ab, bb = (
        scale * float(first @ second)
        for first, second in (
            (a.influence, a.influence),
            (a.influence, b.influence),
            (b.influence, b.influence),
        )
    )
    t2 = t_quantile(level, a.groups.effective - 1) ** 2
    leading = b.value**2 - t2 * bb
    if leading <= _ROUNDING or b.value <= 0:
        return Estimate(None, n, None, method, AT_CHANCE, groups=groups)
    value = a.value / b.value
    half = a.value * b.value - t2 * ab
    root = sqrt(max(0.0, half**2 - leading * (a.value**2 - t2 * aa)))
    se = sqrt(max(0.0, aa - 2 * value * ab + value**2 * bb)) / b.value
    if se < _ROUNDING:
        return Estimate(value, n, None, method, "the same in every group", groups=groups)
    low, high = (half - root) / leading, (half + root) / leading
    return Estimate(value, n, Interval(min(low, value), max(high, value), level, method), method, se=se, groups=groups)


# ---- several scenarios, several queries ----


def weighted(estimates: Sequence[Estimate], weights: Sequence[float]) -> Estimate:
    """The mean of independent estimates (scenarios) weighted by their samples, as ChEF's overalls are.

    The interval is that of MOVER over the parts, see ``stats.parts``; it needs an interval of each. No value where one
    is missing: it would be the mean of others.
    """
    n = sum(estimate.n for estimate in estimates)
    groups = sum(estimate.groups or 0 for estimate in estimates)
    method = estimates[0].method if len(estimates) == 1 else MOVER
    missing = next((estimate.reason or NOTHING for estimate in estimates if estimate.value is None), "")
    if not estimates or missing:
        return Estimate(None, n, None, method, missing or NOTHING, groups=groups)
    if len(estimates) == 1:
        return estimates[0]
    shares = np.asarray(weights, dtype=np.float64) / sum(weights)
    values = [estimate.value for estimate in estimates if estimate.value is not None]
    value = float(shares @ np.array(values))
    intervals = [estimate.interval for estimate in estimates if estimate.interval]
    if len(intervals) < len(estimates):
        reason = next(estimate.reason for estimate in estimates if estimate.interval is None)
        return Estimate(value, n, None, method, reason, groups=groups)
    return Estimate(value, n, mover(values, intervals, shares.tolist(), method=method), method, groups=groups)


@dataclass(frozen=True, slots=True)
class Spread:
    """How far a result depends on what should not matter (Figures 6 and 21): the mean of several values, their standard
    deviation, and the largest distance of one from the mean.
    """

    mean: float
    sd: float
    largest: float
    n: int


def spread(values: Sequence[float]) -> Spread | None:
    """The spread of at least two values; None for fewer."""
    if len(values) < 2:
        return None
    numbers = np.asarray(values, dtype=np.float64)
    deviations = numbers - numbers.mean()
    return Spread(float(numbers.mean()), float(numbers.std(ddof=1)), float(np.abs(deviations).max()), len(numbers))


def tree_credit(said: Sequence[str], key: Sequence[str]) -> float:
    """How much of the way down a tree of classes is right: the depth of the deepest right ancestor / the key's depth.

    ``said`` and ``key`` are paths from the top. (ChEF's weighted accuracy prints no weights; these are ours.)
    """
    right = 0
    for mine, true in zip(said, key, strict=False):
        if mine != true:
            break
        right += 1
    return right / len(key) if key else 0.0
