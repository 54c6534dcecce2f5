"""Ranges of ranks and tiers from strengths and their covariance."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, stdtr, stdtrit

from stats.arrays import BoolArray, FloatArray, IntArray, check_finite, check_lengths, dense_codes
from stats.proportions import no_interval
from stats.results import StatisticsError

_NO_VARIANCE = 1e-12  # of a difference, beside the variances of both


def degrees_of_freedom(groups: IntArray, effective: FloatArray) -> FloatArray:
    """Of each model (M,), from how many groups it has and how many equal ones would weigh the same (Kish 1965): the
    latter less 1, and 0 where they are too few for an interval.
    """
    few = [bool(no_interval(groups=int(g), effective=float(e))) for g, e in zip(groups, effective, strict=True)]
    return np.where(few, 0.0, effective - 1)


def rank_ranges(
    *,
    theta: FloatArray,
    covariance: FloatArray,
    rng: np.random.Generator,
    df: npt.ArrayLike = np.inf,
    draws: int = 1000,
    level: float = 0.95,
) -> tuple[IntArray, IntArray]:
    """Quantiles of each model's rank (1 is best) over `draws` draws around `theta`: (low, high), both of shape (M,).

    `theta` (M,), `covariance` (M, M), singular or not, `df` as in `tiers`: a model's draws are as wide as its interval
    by t, and one without an interval may stand anywhere. arXiv 2403.04132. Each range holds for its model by itself,
    not for all models together.
    """
    size = len(theta)
    of_model = np.broadcast_to(np.asarray(df, dtype=np.float64), (size,))
    order = np.argsort(-(theta + _deviations(covariance, of_model, rng, draws, level)), axis=1)
    times = np.bincount((order * size + np.arange(size)).ravel(), minlength=size * size).reshape(size, size)
    share = np.cumsum(times, axis=1) / draws
    # 1e-12: 0.025 of 1,000 draws is 25 draws, whatever the rounding of the level.
    low = (share < 0.5 - level / 2 - 1e-12).sum(axis=1) + 1
    high = (share < 0.5 + level / 2 - 1e-12).sum(axis=1) + 1
    return np.where(of_model < 1, 1, low), np.where(of_model < 1, size, high)


def may_be_best(
    *,
    theta: FloatArray,
    covariance: FloatArray,
    rng: np.random.Generator,
    df: npt.ArrayLike = np.inf,
    draws: int = 1000,
    level: float = 0.95,
) -> BoolArray:
    """Which models may be the best, shape (M,): together they hold the one that is, with probability `level` or more.

    Model i is among them unless another is better by more than chance allows the best of all others to seem: the
    largest of (theta_j - theta_i) / SE_ij over j is within its quantile where all are alike (Hsu 1981, Annals of
    Statistics 9:1026), from `draws` draws; at (1 + level) / 2, so that of two models it says what the interval of their
    difference says. Columns as in `rank_ranges`; a model without degrees of freedom is always
    among them.
    """
    size = len(theta)
    of_model = np.broadcast_to(np.asarray(df, dtype=np.float64), (size,))
    deviations = _deviations(covariance, of_model, rng, draws, level)
    diagonal = np.diag(covariance)
    among = np.ones(size, dtype=np.bool_)
    # The quantile lies between that of one other model and what Bonferroni's inequality allows; draws tell the rest.
    least = ndtri(0.5 + level / 2)
    most = ndtri(1 - (0.5 - level / 2) / max(size - 1, 1)) * _wider(of_model, level).max(initial=1.0)
    for i in np.flatnonzero(of_model >= 1):
        variance = diagonal + diagonal[i] - 2 * covariance[i]
        others = (variance > _NO_VARIANCE * np.maximum(diagonal, diagonal[i])) & (of_model >= 1)
        error = np.sqrt(variance[others])
        seen = ((theta[others] - theta[i]) / error).max(initial=0.0)
        among[i] = seen <= least
        if least < seen <= most:
            by_chance = ((deviations[:, others] - deviations[:, [i]]) / error).max(axis=1)
            among[i] = seen <= np.quantile(by_chance, 0.5 + level / 2)
    return among


def _deviations(
    covariance: FloatArray, df: FloatArray, rng: np.random.Generator, draws: int, level: float
) -> FloatArray:
    """Draws (draws, M) of N(0, covariance), each model's as much wider as its quantile of t is than the normal's."""
    # Not a Cholesky factor: the strengths sum to 0, and with few clusters the rank is lower still.
    scale, axes = np.linalg.eigh(covariance)
    normal = rng.standard_normal((draws, len(covariance))) @ (axes * np.sqrt(np.maximum(scale, 0.0))).T
    return np.asarray(normal * _wider(df, level))


def _wider(df: FloatArray, level: float) -> FloatArray:
    """The quantiles of t beside the normal's."""
    return np.asarray(stdtrit(np.maximum(df, 1.0), 0.5 + level / 2) / ndtri(0.5 + level / 2))


def significantly_better(*, theta: FloatArray, covariance: FloatArray, df: npt.ArrayLike, q: float = 0.05) -> BoolArray:
    """Which models are told apart, shape (M, M): [i, j] where j is significantly better than i.

    Each pair is tested by t = (theta_i - theta_j) / sqrt(V_ii + V_jj - 2 V_ij). `df` (M,), or one for all: the degrees
    of freedom of a model's own error, of which a pair has the fewer; below 1 nothing is significant. Which of all
    M(M-1)/2 count is Benjamini and Hochberg's (1995) choice at false discovery rate `q`. A pair without variance is
    never significant.
    """
    size = len(theta)
    i, j = np.triu_indices(size, k=1)
    difference = theta[i] - theta[j]
    diagonal = np.diag(covariance)
    variance = diagonal[i] + diagonal[j] - 2 * covariance[i, j]
    of_model = np.broadcast_to(np.asarray(df, dtype=np.float64), (size,))
    of_pair = np.minimum(of_model[i], of_model[j])
    told = (variance > _NO_VARIANCE * np.maximum(diagonal[i], diagonal[j])) & (of_pair >= 1)
    p = np.ones(len(difference))
    p[told] = 2 * stdtr(of_pair[told], -np.abs(difference[told]) / np.sqrt(variance[told]))
    significant = benjamini_hochberg(p=p, q=q)
    better = np.zeros((size, size), dtype=np.bool_)
    better[np.where(difference > 0, j, i)[significant], np.where(difference > 0, i, j)[significant]] = True
    return better


@dataclass(frozen=True, slots=True)
class Behind:
    """A model beside the next stronger one, ``other``: by how much that is stronger, the standard error of this
    difference, and its degrees of freedom, the fewer of the two.
    """

    other: int
    difference: float
    error: float
    df: float


def behind(*, theta: FloatArray, covariance: FloatArray, df: npt.ArrayLike) -> list[Behind | None]:
    """Each model (M,) beside the next stronger one, in the terms of `significantly_better`; None of the strongest, and
    where the difference has no variance or either has no degrees of freedom.
    """
    of_model = np.broadcast_to(np.asarray(df, dtype=np.float64), (len(theta),))
    order = np.argsort(-theta, kind="stable").tolist()
    found: list[Behind | None] = [None] * len(theta)
    for other, model in pairwise(order):
        variances = covariance[model, model], covariance[other, other]
        variance = float(sum(variances) - 2 * covariance[model, other])
        least = float(min(of_model[model], of_model[other]))
        if variance > _NO_VARIANCE * max(variances) and least >= 1:
            found[model] = Behind(other, float(theta[other] - theta[model]), sqrt(variance), least)
    return found


def tiers(*, theta: FloatArray, covariance: FloatArray, df: npt.ArrayLike, q: float = 0.05) -> IntArray:
    """The tier of each model, shape (M,), see `tiers_of` and `significantly_better`."""
    better = significantly_better(theta=theta, covariance=covariance, df=df, q=q)
    return tiers_of(better, np.argsort(-theta, kind="stable"))


def tiers_of(better: BoolArray, order: Iterable[int]) -> IntArray:
    """1 for the first model of the order, strongest first, and one more wherever at least one model of an earlier tier
    is significantly better, shape (M,). `better` (M, M): [i, j] where j is better than i.

    No two models of a tier are told apart, and no tier rises with strength. How many are better than a model is not
    told by it: with few votes it may be fewer than the tiers above.
    """
    tier, reached = np.ones(len(better), dtype=np.int64), 1
    for model in order:
        reached = max(reached, 1 + int(tier[better[model]].max(initial=0)))
        tier[model] = reached
    return tier


# ---- several tests at once ----


class InvalidProbability(StatisticsError):
    """A p-value outside [0, 1], or NaN."""


def benjamini_hochberg(*, p: npt.ArrayLike, q: float = 0.05) -> BoolArray:
    """Which hypotheses to reject at false discovery rate q; `p` and the answer have shape (m,).

    Step-up: all p up to the largest p_(i) <= i q / m (Benjamini and Hochberg 1995). Holds for independent
    or positively dependent tests. Raises InvalidProbability.
    """
    return _step_up(p, q)


def benjamini_yekutieli(*, p: npt.ArrayLike, q: float = 0.05) -> BoolArray:
    """As benjamini_hochberg, under any dependence: q is divided by 1 + 1/2 + ... + 1/m (Benjamini and
    Yekutieli 2001).
    """
    values = np.asarray(p, dtype=np.float64)
    return _step_up(values, q / float((1 / np.arange(1, len(values) + 1)).sum()) if len(values) else q)


def _step_up(p: npt.ArrayLike, q: float) -> BoolArray:
    values: FloatArray = np.asarray(p, dtype=np.float64)
    if not ((values >= 0) & (values <= 1)).all():
        raise InvalidProbability("p-values lie in [0, 1]")
    ordered = np.sort(values)
    passed = np.flatnonzero(ordered <= q * np.arange(1, len(values) + 1) / max(len(values), 1))
    # Equal p-values share one verdict: the comparison is with the threshold, not with positions.
    return values <= ordered[passed[-1]] if passed.size else np.zeros(len(values), dtype=np.bool_)


# ---- places by means ----


@dataclass(frozen=True, slots=True)
class Place:
    """``rank`` is the ordinal by mean and lies within ``rank_low`` to ``rank_high``; ``tier``: see `tiers_of`;
    ``best``: see `may_be_best`. All three are None where no variance can be told. ``behind``: see the function of this
    name.
    """

    rank: int
    rank_low: int | None
    rank_high: int | None
    tier: int | None
    best: bool | None = None
    behind: Behind | None = None


def places(*, theta: FloatArray, covariance: FloatArray, df: FloatArray, rng: np.random.Generator) -> list[Place]:
    """The place of each model by `theta` (M,), higher is better. Without degrees of freedom, `df` (M,) 0, a model may
    stand anywhere; where none has any, there is the order alone.
    """
    size = len(theta)
    rank = np.empty(size, dtype=np.int64)
    rank[np.argsort(-theta, kind="stable")] = np.arange(1, size + 1)
    if not (df > 0).any():
        return [Place(int(position), None, None, None) for position in rank]
    low, high = rank_ranges(theta=theta, covariance=covariance, df=df, rng=rng)
    tier = tiers(theta=theta, covariance=covariance, df=df)
    best = may_be_best(theta=theta, covariance=covariance, df=df, rng=rng)
    of_next = behind(theta=theta, covariance=covariance, df=df)
    return [
        Place(
            int(rank[m]), int(min(low[m], rank[m])), int(max(high[m], rank[m])), int(tier[m]), bool(best[m]), of_next[m]
        )
        for m in range(size)
    ]


def places_of_means(
    *, values: npt.ArrayLike, model: npt.ArrayLike, models: int, cluster: npt.ArrayLike, rng: np.random.Generator
) -> list[Place]:
    """The place of each of ``models`` by the mean of its rows; all columns have shape (n,), ``model`` is 0 .. M - 1.

    Rows of one cluster (a sample that every model answered) depend on one another, so the means' covariance is the
    clustered one, V = G/(G-1) sum_g u_g u_g' with u_gm = sum over the rows of g of (s - mean_m) / n_m (Miller 2024,
    arXiv 2411.00640, over models); what two models share cancels in their difference. Every model needs a row. Raises
    LengthMismatch, NotFinite.
    """
    numbers, owner = np.asarray(values, dtype=np.float64), np.asarray(model)
    check_lengths(values=numbers, model=owner, cluster=np.asarray(cluster))
    check_finite(values=numbers)
    codes, clusters = dense_codes(cluster)
    cell = codes * models + owner
    rows = np.bincount(cell, minlength=clusters * models).reshape(clusters, models)
    n = rows.sum(axis=0).astype(np.float64)
    theta: FloatArray = np.bincount(owner, weights=numbers, minlength=models) / n
    change = (numbers - theta[owner]) / n[owner]
    table = np.bincount(cell, weights=change, minlength=clusters * models).reshape(clusters, models)
    covariance: FloatArray = np.asarray(clusters / max(clusters - 1, 1) * (table.T @ table), dtype=np.float64)
    df = degrees_of_freedom((rows > 0).sum(axis=0), n * n / (rows.astype(np.float64) ** 2).sum(axis=0))
    return places(theta=theta, covariance=covariance, df=df, rng=rng)
