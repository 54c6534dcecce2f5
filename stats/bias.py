"""What sways a judge beside the answers' quality: their place, their length, their maker, and a soft heart."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
import numpy.typing as npt

from stats.arrays import FloatArray, check_finite, check_lengths, dense_codes
from stats.correlation import Test
from stats.paired import mcnemar
from stats.proportions import (
    CLUSTER_T,
    CLUSTERED_WILSON,
    Clustered,
    mean,
    mean_with_error,
    no_interval,
    rate,
    t_quantile,
)
from stats.results import Estimate, Interval
from stats.verdicts import FIRST, MISSING, SECOND, encode

SEPARATED = "every longer answer won, or every one lost: no slope can be fitted"
NO_LENGTHS = "the answers do not differ in length"
NOTHING = "no decided pair"
SLOPE = "slope within samples, jackknife by group"


@dataclass(frozen=True, slots=True)
class Position:
    """Shares of the pairs judged in both orders: the same verdict, the first place preferred, the second preferred.

    ``test`` asks whether the changed ones prefer one place (sign test).
    """

    consistent: Estimate
    first: Estimate
    second: Estimate
    test: Test


def position(*, straight: npt.ArrayLike, turned: npt.ArrayLike, cluster: npt.ArrayLike | None = None) -> Position:
    """Position bias (MLLM-Bench, Figure 2) of verdicts on the same pairs in both orders, each of shape (n,).

    Verdicts are words in canonical order; in ``turned`` the second answer stood in the first place. The same verdict in
    both is consistent, undecided twice included. The same place twice, or one place and one undecided or tie, is biased
    to that place. Pairs without a verdict in either order do not count. Rows may share a ``cluster``. Raises
    LengthMismatch, UnknownVerdict.
    """
    in_order, swapped = encode(straight), encode(turned)
    check_lengths(straight=in_order, turned=swapped)
    valid = (in_order != MISSING) & (swapped != MISSING)
    in_order, swapped = in_order[valid], swapped[valid]
    # The places that were voted for: +1 the first, -1 the second, 0 neither.
    placed = np.select([in_order == FIRST, in_order == SECOND], [1, -1], 0) + np.select(
        [swapped == SECOND, swapped == FIRST], [1, -1], 0
    )
    groups = np.arange(len(placed)) if cluster is None else np.asarray(cluster)[valid]
    sides = (placed == 0, placed > 0, placed < 0)
    consistent, first, second = (rate(hits=side, cluster=groups) for side in sides)
    test = mcnemar(only_first=int((placed > 0).sum()), only_second=int((placed < 0).sum()))
    return Position(consistent, first, second, test)


@dataclass(frozen=True, slots=True)
class Length:
    """``longer`` is how often the longer answer of a decided pair won; ``slope`` the log-odds per unit of length."""

    longer: Estimate
    slope: Estimate


def length(*, won: npt.ArrayLike, tokens: npt.ArrayLike, cluster: npt.ArrayLike, level: float = 0.95) -> Length:
    """Length bias of n decided pairs: ``won`` 1 where the first answer won, ``tokens`` (n, 2) the answers' lengths.

    Logistic regression of the win on tanh(d / sd(d)), d the token difference (Dubois et al., arXiv 2404.04475), with an
    intercept and standard errors clustered by sample; t with as many equal groups as weigh the same, less
    one. Raises LengthMismatch, NotFinite.
    """
    outcome, lengths = np.asarray(won, dtype=np.float64), np.asarray(tokens, dtype=np.float64).reshape(-1, 2)
    check_lengths(won=outcome, tokens=lengths, cluster=np.asarray(cluster))
    check_finite(won=outcome, tokens=lengths)
    change = lengths[:, 0] - lengths[:, 1]
    differ = change != 0
    groups = np.asarray(cluster)
    longer = rate(hits=outcome[differ] == (change[differ] > 0), cluster=groups[differ])
    n, spread = len(outcome), float(change.std()) if len(change) else 0.0
    if not n or spread == 0:
        return Length(longer, Estimate(None, n, None, CLUSTER_T, NO_LENGTHS if n else NOTHING))
    design = np.stack([np.ones(n), np.tanh(change / spread)], axis=1)
    return Length(longer, _slope(design, outcome, cluster, level))


def _slope(design: FloatArray, outcome: FloatArray, cluster: npt.ArrayLike, level: float) -> Estimate:
    n, beta = len(outcome), np.zeros(design.shape[1])
    for _ in range(50):
        fitted = 1 / (1 + np.exp(-np.clip(design @ beta, -40, 40)))
        information = design.T @ (design * (fitted * (1 - fitted))[:, None])
        if np.linalg.cond(information) > 1e10 or np.abs(beta).max() > 25:
            return Estimate(None, n, None, CLUSTER_T, SEPARATED)
        step = np.linalg.solve(information, design.T @ (outcome - fitted))
        beta = beta + step
        if np.abs(step).max() < 1e-10:
            break
    codes, clusters = dense_codes(cluster)
    sizes = np.bincount(codes)
    effective = n * n / float(sizes @ sizes)  # Kish 1965, section 5.4
    if reason := no_interval(groups=clusters, effective=effective):
        return Estimate(float(beta[1]), n, None, CLUSTER_T, reason, groups=clusters)
    residual = design * (outcome - fitted)[:, None]
    scores = np.stack([np.bincount(codes, weights=column, minlength=clusters) for column in residual.T], axis=1)
    bread = np.linalg.inv(information)
    error = float(np.sqrt((clusters / (clusters - 1) * bread @ scores.T @ scores @ bread)[1, 1]))
    margin = t_quantile(level, effective - 1) * error
    value = float(beta[1])
    ends = Interval(value - margin, value + margin, level, CLUSTER_T)
    return Estimate(value, n, ends, CLUSTER_T, se=error, groups=clusters)


@dataclass(frozen=True, slots=True)
class Bin:
    """Rows with a difference of lengths from ``low`` to ``high``: the mean difference, and the mean of the value."""

    low: float
    high: float
    difference: float
    value: Estimate


def by_difference(
    *, difference: npt.ArrayLike, value: npt.ArrayLike, cluster: npt.ArrayLike, ends: tuple[float, float], most: int = 8
) -> list[Bin]:
    """A value against the difference of lengths (MLLM-Bench, Figure 3), in up to ``most`` bins of about as many rows.

    ``difference``, ``value`` and ``cluster`` have shape (n,), the value lies within ``ends``. Equal differences share a
    bin. The means as ``proportions.mean``. Raises LengthMismatch, NotFinite.
    """
    lengths, values, groups = np.asarray(difference, np.float64), np.asarray(value, np.float64), np.asarray(cluster)
    check_lengths(difference=lengths, value=values, cluster=groups)
    check_finite(difference=lengths, value=values)
    if not len(lengths):
        return []
    edges = np.unique(np.quantile(lengths, np.linspace(0, 1, most + 1)[1:-1], method="inverted_cdf"))
    of_bin = np.searchsorted(edges, lengths, side="left")
    bins = []
    for rows in (of_bin == at for at in range(len(edges) + 1)):
        if rows.any():
            estimate = mean(values=values[rows], cluster=groups[rows], ends=ends)
            here = lengths[rows]
            bins.append(Bin(float(here.min()), float(here.max()), float(here.mean()), estimate))
    return bins


def within_samples(values: npt.ArrayLike, sample: npt.ArrayLike) -> FloatArray:
    """Values (n,) less the mean of their sample's."""
    numbers, (codes, samples) = np.asarray(values, np.float64), dense_codes(sample)
    sums = np.bincount(codes, weights=numbers, minlength=samples)
    return np.asarray(numbers - (sums / np.bincount(codes, minlength=samples))[codes])


def length_of_scores(
    *, score: npt.ArrayLike, tokens: npt.ArrayLike, cluster: npt.ArrayLike, level: float = 0.95
) -> Estimate:
    """By how much a score rises when its answer is longer by one standard deviation (MLLM-as-a-Judge, Figure 6).

    ``score`` and ``tokens`` (n,) are as ``within_samples`` gives them, so that what is asked drops out: the slope
    through the origin, times the standard deviation of ``tokens``, with the error of leaving one ``cluster`` out at a
    time and t. Raises LengthMismatch, NotFinite.
    """
    y, x = np.asarray(score, np.float64), np.asarray(tokens, np.float64)
    check_lengths(score=y, tokens=x, cluster=np.asarray(cluster))
    check_finite(score=y, tokens=x)
    n, (codes, groups) = len(y), dense_codes(cluster)
    spread = float(np.sqrt((x * x).mean())) if n else 0.0
    if spread == 0:
        return Estimate(None, n, None, SLOPE, NO_LENGTHS if n else NOTHING, groups=groups)
    xy, xx, sizes = (np.bincount(codes, weights=column, minlength=groups) for column in (x * y, x * x, np.ones(n)))
    value = float(spread * xy.sum() / xx.sum())
    effective, rest = float(xx.sum() ** 2 / (xx @ xx)), xx.sum() - xx  # groups count by how far their lengths differ
    if (reason := no_interval(groups=groups, effective=effective)) or not (rest > 0).all():
        return Estimate(value, n, None, SLOPE, reason or NO_LENGTHS, groups=groups)
    without = np.sqrt(rest / (n - sizes)) * (xy.sum() - xy) / rest
    error = sqrt((groups - 1) / groups * float(((without - value) ** 2).sum()))
    margin = t_quantile(level, effective - 1) * error
    return Estimate(value, n, Interval(value - margin, value + margin, level, SLOPE), SLOPE, se=error, groups=groups)


def own_family(
    *,
    judge: npt.ArrayLike,
    people: npt.ArrayLike,
    own: npt.ArrayLike,
    cluster: npt.ArrayLike,
    width: float,
) -> Estimate:
    """Egocentric bias: mean(judge - people) on answers of the judge's own family, minus the same on the others'.

    ``judge`` and ``people`` (n,) are scores, or 1 and 0 for a win and a loss, on a scale of this ``width``; ``own``
    (n,) marks the family. Standard error clustered by group over both means, interval within what the difference can
    be; ``groups`` and t are those of the mean with fewer groups. No value unless both kinds of answers are there.
    Raises LengthMismatch, NotFinite.
    """
    change = np.asarray(judge, dtype=np.float64) - np.asarray(people, dtype=np.float64)
    is_own = np.asarray(own, dtype=bool)
    check_lengths(judge=change, own=is_own, cluster=np.asarray(cluster))
    check_finite(judge=change)
    if not is_own.any() or is_own.all():
        undefined = "there are no answers of the judge's own family, or no others"
        return Estimate(None, len(change), None, CLUSTERED_WILSON, undefined)
    return difference_of_means(values=change, first=is_own, cluster=cluster, most=2 * width)


def difference_of_means(
    *, values: npt.ArrayLike, first: npt.ArrayLike, cluster: npt.ArrayLike, most: float
) -> Estimate:
    """The mean of the rows (n,) that ``first`` marks less the mean of the others, where both share groups.

    Standard error clustered by group over both means, so that what moves both cancels; interval within what the
    difference can be, ``most`` either way; ``groups`` and t are those of the mean with fewer groups. Both kinds of rows
    are there. Raises LengthMismatch, NotFinite.
    """
    numbers, is_first = np.asarray(values, dtype=np.float64), np.asarray(first, dtype=bool)
    check_lengths(values=numbers, first=is_first, cluster=np.asarray(cluster))
    check_finite(values=numbers)
    codes, groups = dense_codes(cluster)
    sides = [Clustered.of(values=numbers[side], cluster=codes[side]) for side in (is_first, ~is_first)]
    means = [side.value for side in sides]
    weight = np.where(is_first, 1 / is_first.sum(), -1 / (~is_first).sum())
    influence = np.bincount(codes, weights=weight * (numbers - np.where(is_first, *means)), minlength=groups)
    error = sqrt(groups / max(groups - 1, 1) * float(influence @ influence))
    value = means[0] - means[1]
    most = max(most, abs(value))  # values may lie beyond their scale
    return mean_with_error(
        value,
        error if error > 1e-12 else 0.0,
        n=len(numbers),
        groups=min(side.groups.count for side in sides),
        df=min(side.groups.effective for side in sides) - 1,
        ends=(-most, most),
    )


@dataclass(frozen=True, slots=True)
class Scores:
    """The share of each score of the scale, judge beside people, and the mean difference."""

    scale: tuple[float, ...]
    judge: tuple[float, ...]
    people: tuple[float, ...]
    n: int


def high_scores(*, judge: npt.ArrayLike, people: npt.ArrayLike) -> Scores:
    """Distributions of scores on the same items (MLLM-as-a-Judge, Figure 5); people's may be means, rounded half up.

    The mean difference with its interval is ``proportions.mean`` of judge - people. Raises LengthMismatch, NotFinite.
    """
    judge_scores, people_scores = (
        np.asarray(judge, dtype=np.float64),
        np.floor(np.asarray(people, dtype=np.float64) + 0.5),
    )
    check_lengths(judge=judge_scores, people=people_scores)
    check_finite(judge=judge_scores, people=people_scores)
    scale = np.unique(np.concatenate([judge_scores, people_scores]))
    n = len(judge_scores)
    shares = (
        [tuple(float((column == step).sum() / n) for step in scale) for column in (judge_scores, people_scores)]
        if n
        else [(), ()]
    )
    return Scores(tuple(float(step) for step in scale), shares[0], shares[1], n)
