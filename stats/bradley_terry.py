"""The primary rating: Bradley-Terry strengths with clustered intervals, rank ranges and tiers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.special import stdtr

from stats.arrays import FloatArray, check_lengths, dense_codes
from stats.proportions import NO_VARIATION, ONE_CLUSTER, t_quantile
from stats.ranks import rank_ranges, tiers
from stats.results import Estimate, Interval
from stats.sandwich import clustered_covariance
from stats.standing import Standing, standings
from stats.strengths import Votes, rateable, solve

METHOD = "bradley-terry, clustered sandwich"
FEWEST_CLUSTERS = 30

_NO_VARIANCE = 1e-18


@dataclass(frozen=True, slots=True)
class Rating:
    """One model: `strength` in natural log, mean 0 over the rated models, n its votes; and its place.

    `rank` is the ordinal by strength, `rank_low <= rank <= rank_high` its range at the fit's level. `tier` is
    1 + the number of models significantly better. All are None where they cannot be computed;
    `strength.reason` says why.
    """

    strength: Estimate
    rank: int | None
    rank_low: int | None
    rank_high: int | None
    tier: int | None


@dataclass(frozen=True, slots=True)
class Contrast:
    """The difference of two strengths (natural log) and the two-sided p of "there is none"."""

    difference: Estimate
    p: float | None


@dataclass(frozen=True, eq=False, slots=True)
class BradleyTerry:
    """A fit: a rating for every model, and what has to be said about it.

    `rated` names the models with finite strengths, in the order of `theta` (m,) and `covariance` (m, m); `n`
    votes in `clusters` clusters made them. `clustered_by` says whether votes were taken as dependent within
    the group (image, prompt) or, with too few groups, within the item. `notes` explain choices, `warnings`
    tell what is missing or doubtful.
    """

    ratings: dict[str, Rating]
    rated: tuple[str, ...]
    theta: FloatArray
    covariance: FloatArray
    n: int
    clusters: int
    clustered_by: Literal["group", "item"]
    level: float
    notes: tuple[str, ...]
    warnings: tuple[str, ...]

    def contrast(self, first: str, second: str) -> Contrast:
        """`first` minus `second`: its interval from V_ii + V_jj - 2 V_ij, its p from t with clusters - 1.

        Two models differ if this interval excludes 0; whether their own intervals overlap says nothing. A
        model without a strength gives None. Raises KeyError for an unknown model.
        """
        for name in (first, second):
            strength = self.ratings[name].strength
            if strength.value is None:
                return Contrast(Estimate(None, self.n, None, METHOD, f"{name}: {strength.reason}"), None)
        i, j = self.rated.index(first), self.rated.index(second)
        value = float(self.theta[i] - self.theta[j])
        variance = float(self.covariance[i, i] + self.covariance[j, j] - 2 * self.covariance[i, j])
        difference = _estimate(value, variance, n=self.n, clusters=self.clusters, level=self.level)
        if difference.interval is None:
            return Contrast(difference, None)
        return Contrast(difference, float(2 * stdtr(self.clusters - 1, -abs(value) / sqrt(variance))))


def fit(
    *,
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    y: npt.ArrayLike,
    models: Sequence[str],
    group: npt.ArrayLike,
    item: npt.ArrayLike,
    rng: np.random.Generator,
    weight: npt.ArrayLike | None = None,
    level: float = 0.95,
    draws: int = 1000,
    q: float = 0.05,
) -> BradleyTerry:
    """Rate models from pairwise votes.

    `a`, `b` (n,) are positions in `models`; `y` is 1 where a won, 0 where b did, 0.5 for a tie; `group` (the
    image or prompt that several items share) and `item` are any labels; `weight` >= 0 counts a vote more or
    less.

    Strengths maximise the likelihood on the counts per pair with ties as half (Hunter 2004). Covariance: the
    sandwich (`sandwich.clustered_covariance`) over groups; with fewer groups than max(30, models + 1), over
    items, which `clustered_by` and `notes` say: prompts are then treated as fixed. Intervals use t with
    clusters - 1. Rank ranges are quantiles over `draws` draws (`ranks.rank_ranges`); tiers use
    Benjamini-Hochberg at rate `q` over all pairs of models (`ranks.tiers`).

    Strengths exist only among models that are linked by wins in both directions (`strengths.rateable`). The
    others' are None rather than infinite: a model that only won or only lost still has its place in the
    order, with the widest range, and one that is not connected has none; `warnings` names them. Raises
    LengthMismatch, InvalidOutcome, InvalidCount, NotConverged.
    """
    votes = Votes.checked(a=a, b=b, y=y, models=models, weight=weight)
    groups, items = np.asarray(group), np.asarray(item)
    check_lengths(y=votes.y, group=groups, item=items)
    wins = votes.wins()
    rated = rateable(wins)
    core, rows = votes.among(rated)
    core_wins = wins[np.ix_(rated, rated)]
    theta = solve(core_wins)
    size = len(theta)

    clustering = _clustering(groups[rows], items[rows], size)
    clusters = clustering.count
    covariance = np.zeros((size, size))
    if clusters > 1:
        covariance = clustered_covariance(
            votes=core, theta=theta, wins=core_wins, cluster=clustering.codes, clusters=clusters
        )
    standing = standings(models=votes.models, wins=wins, rated=rated, theta=theta)
    ranges: list[tuple[int, int, int]] = []
    if np.trace(covariance) > _NO_VARIANCE:
        low, high = rank_ranges(theta=theta, covariance=covariance, rng=rng, draws=draws, level=level)
        tier = tiers(theta=theta, covariance=covariance, clusters=clusters, q=q)
        ranges = list(zip(low.tolist(), high.tolist(), tier.tolist(), strict=True))

    n = votes.played()
    place = np.cumsum(rated) - 1
    ratings: dict[str, Rating] = {}
    for model, name in enumerate(votes.models):
        if not rated[model]:
            strength = Estimate(None, int(n[model]), None, METHOD, standing.reason[model])
            ratings[name] = _rating(strength, standing, model, None, size)
            continue
        i = place[model]
        strength = _estimate(float(theta[i]), float(covariance[i, i]), n=int(n[model]), clusters=clusters, level=level)
        ratings[name] = _rating(strength, standing, model, ranges[i] if ranges else None, size)
    return BradleyTerry(
        ratings=ratings,
        rated=core.models,
        theta=theta,
        covariance=covariance,
        n=len(core.y),
        clusters=clusters,
        clustered_by=clustering.by,
        level=level,
        notes=clustering.notes,
        warnings=(*clustering.warnings, *standing.warnings),
    )


@dataclass(frozen=True, eq=False, slots=True)
class _Clustering:
    codes: npt.NDArray[np.int32]
    count: int
    by: Literal["group", "item"]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def _clustering(groups: npt.NDArray[Any], items: npt.NDArray[Any], models: int) -> _Clustering:
    codes, count = dense_codes(groups)
    fewest = max(FEWEST_CLUSTERS, models + 1)
    if count >= fewest or not models:
        return _Clustering(codes.astype(np.int32), count, "group")
    note = f"{count} groups are too few for {models} models: clustered by item, prompts are treated as fixed"
    codes, count = dense_codes(items)
    rough = () if count >= fewest else (f"only {count} items for {models} models: the intervals are rough",)
    return _Clustering(codes.astype(np.int32), count, "item", (note,), rough)


def _rating(
    strength: Estimate, standing: Standing, model: int, drawn: tuple[int, int, int] | None, rated: int
) -> Rating:
    rank = standing.rank[model]
    if rank is None:
        return Rating(strength, None, None, None, None)
    if drawn is None:
        # The order is known, its certainty is not.
        return Rating(strength, rank, 1, standing.ranked, None)
    low, high, tier = drawn
    # Any unrated model may stand above this one, or none of them.
    return Rating(strength, rank, min(low, rank), max(high + standing.ranked - rated, rank), tier)


def _estimate(value: float, variance: float, *, n: int, clusters: int, level: float) -> Estimate:
    if clusters < 2:
        return Estimate(value, n, None, METHOD, ONE_CLUSTER)
    if variance <= _NO_VARIANCE:
        return Estimate(value, n, None, METHOD, NO_VARIATION)
    margin = t_quantile(level, clusters - 1) * sqrt(variance)
    return Estimate(value, n, Interval(value - margin, value + margin, level, METHOD), METHOD)
