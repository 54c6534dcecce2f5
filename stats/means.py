"""Places of models by their means (scores, accuracies), from rows that share clusters across models."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stats.arrays import FloatArray, check_lengths, dense_codes
from stats.ranks import rank_ranges, tiers


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
    LengthMismatch.
    """
    numbers, owner = np.asarray(values, dtype=np.float64), np.asarray(model)
    check_lengths(values=numbers, model=owner, cluster=np.asarray(cluster))
    theta, covariance, clusters = clustered_means(values=numbers, model=owner, models=models, cluster=cluster)
    rank = np.empty(models, dtype=np.int64)
    rank[np.argsort(-theta, kind="stable")] = np.arange(1, models + 1)
    if clusters < 2:
        return [Place(int(one), None, None, None) for one in rank]
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
