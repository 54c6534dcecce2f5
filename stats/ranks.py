"""Ranges of ranks and tiers from strengths and their covariance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import stdtr

from stats.arrays import BoolArray, FloatArray, IntArray, check_finite, check_lengths, dense_codes
from stats.results import StatisticsError


def rank_ranges(
    *, theta: FloatArray, covariance: FloatArray, rng: np.random.Generator, draws: int = 1000, level: float = 0.95
) -> tuple[IntArray, IntArray]:
    """Quantiles of each model's rank (1 is best) over `draws` draws of N(theta, covariance): (low, high),
    both of shape (M,).

    `theta` (M,), `covariance` (M, M), singular or not. arXiv 2403.04132.
    """
    size = len(theta)
    # Not a Cholesky factor: the strengths sum to 0, and with few clusters the rank is lower still.
    scale, axes = np.linalg.eigh(covariance)
    normal = rng.standard_normal((draws, size))
    drawn = theta + normal @ (axes * np.sqrt(np.maximum(scale, 0.0))).T
    order = np.argsort(-drawn, axis=1)
    times = np.bincount((order * size + np.arange(size)).ravel(), minlength=size * size).reshape(size, size)
    share = np.cumsum(times, axis=1) / draws
    # 1e-12: 0.025 of 1,000 draws is 25 draws, whatever the rounding of the level.
    low = (share < 0.5 - level / 2 - 1e-12).sum(axis=1) + 1
    high = (share < 0.5 + level / 2 - 1e-12).sum(axis=1) + 1
    return low, high


def tiers(*, theta: FloatArray, covariance: FloatArray, clusters: int, q: float = 0.05) -> IntArray:
    """1 + the number of models significantly better, shape (M,).

    Each pair is tested by t = (theta_i - theta_j) / sqrt(V_ii + V_jj - 2 V_ij) with clusters - 1 degrees of
    freedom; which of all M(M-1)/2 count is Benjamini and Hochberg's (1995) choice at false discovery rate
    `q`. A pair without variance is never significant.
    """
    i, j = np.triu_indices(len(theta), k=1)
    difference = theta[i] - theta[j]
    diagonal = np.diag(covariance)
    variance = diagonal[i] + diagonal[j] - 2 * covariance[i, j]
    reliable = variance > 1e-12 * np.maximum(diagonal[i], diagonal[j])
    p = np.ones(len(difference))
    p[reliable] = 2 * stdtr(clusters - 1, -np.abs(difference[reliable]) / np.sqrt(variance[reliable]))
    significant = benjamini_hochberg(p=p, q=q)
    worse = np.where(difference > 0, j, i)[significant]
    return np.asarray(1 + np.bincount(worse, minlength=len(theta)), dtype=np.int64)


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
    """``rank`` is the ordinal by mean and lies within ``rank_low`` to ``rank_high``; ``tier`` = 1 + the models that are
    significantly better. Range and tier are None where no variance can be told.
    """

    rank: int
    rank_low: int | None
    rank_high: int | None
    tier: int | None


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
    theta, covariance, clusters = clustered_means(values=numbers, model=owner, models=models, cluster=cluster)
    rank = np.empty(models, dtype=np.int64)
    rank[np.argsort(-theta, kind="stable")] = np.arange(1, models + 1)
    if clusters < 2:
        return [Place(int(position), None, None, None) for position in rank]
    low, high = rank_ranges(theta=theta, covariance=covariance, rng=rng)
    tier = tiers(theta=theta, covariance=covariance, clusters=clusters)
    return [
        Place(int(rank[m]), int(min(low[m], rank[m])), int(max(high[m], rank[m])), int(tier[m])) for m in range(models)
    ]


def clustered_means(
    *, values: FloatArray, model: npt.ArrayLike, models: int, cluster: npt.ArrayLike
) -> tuple[FloatArray, FloatArray, int]:
    """Means (M,), their clustered covariance (M, M) and the number of clusters."""
    owner = np.asarray(model)
    codes, clusters = dense_codes(cluster)
    n = np.bincount(owner, minlength=models).astype(np.float64)
    theta: FloatArray = np.bincount(owner, weights=values, minlength=models) / n
    change = (values - theta[owner]) / n[owner]
    table = np.bincount(codes * models + owner, weights=change, minlength=clusters * models).reshape(clusters, models)
    scale = clusters / (clusters - 1) if clusters > 1 else 0.0
    covariance: FloatArray = np.asarray(scale * (table.T @ table), dtype=np.float64)
    return theta, covariance, clusters
