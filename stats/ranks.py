"""Ranges of ranks and tiers from strengths and their covariance."""

from __future__ import annotations

import numpy as np
from scipy.special import stdtr

from stats.arrays import FloatArray, IntArray
from stats.multiple import benjamini_hochberg


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
    known = variance > 1e-12 * np.maximum(diagonal[i], diagonal[j])
    p = np.ones(len(difference))
    p[known] = 2 * stdtr(clusters - 1, -np.abs(difference[known]) / np.sqrt(variance[known]))
    significant = benjamini_hochberg(p=p, q=q)
    worse = np.where(difference > 0, j, i)[significant]
    return np.asarray(1 + np.bincount(worse, minlength=len(theta)), dtype=np.int64)
