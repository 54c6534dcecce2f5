"""What strengths and win rates would be if answers were alike in length and style.

Bradley-Terry with covariates (LMArena's style control) and the length-controlled win rate (arXiv 2404.04475), both with
standard errors clustered by group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.special import expit, log_expit, logit

from stats.arrays import FloatArray, IntArray, check_finite, check_lengths, dense_codes
from stats.bradley_terry import (
    BradleyTerry,
    Clustering,
    NotConverged,
    Rating,
    Solution,
    Spread,
    Votes,
    rateable,
    solve,
)
from stats.proportions import CLUSTERED_WILSON, FEWEST_GROUPS, mean, mean_with_error
from stats.results import Estimate, Interval, InvalidOutcome

METHOD = "bradley-terry with covariates, sandwich by group"
PROMPTS_FIXED = "bradley-terry with covariates, sandwich by item, prompts-fixed"
FEW = f"fewer than {FEWEST_GROUPS} groups have answers that differ in it: not taken out"
NO_STRENGTHS = "no model has a finite strength"
INSEPARABLE = "length or style cannot be told from strength here: it goes with the models, or with every win"
DOUBLED = 1 / 3  # (a - b) / (a + b) of an answer with twice as much


def contrast(first: FloatArray, second: FloatArray) -> FloatArray:
    """(a - b) / (a + b) of counts (n,), at least 0: from -1 to 1; 0 where both are 0."""
    total = first + second
    return np.asarray((first - second) / np.where(total > 0, total, 1.0), dtype=np.float64)


# ---- Bradley-Terry with covariates ----


@dataclass(frozen=True, slots=True)
class Coefficient:
    """`value`: natural log of the odds per standard deviation `sd` of a covariate; `twice`: of an answer with twice as
    much as the other, 1 / (3 sd) of that.
    """

    value: Estimate
    twice: Estimate
    sd: float


@dataclass(frozen=True, eq=False, slots=True)
class Controlled:
    """The strengths of answers alike in the covariates, and what each of those is worth."""

    strengths: BradleyTerry
    coefficients: dict[str, Coefficient]


_FLAT = 1e-7  # information on a covariate beside that on all of it: below, there is no maximum, or a whole line of them
_SETTLED = 1e-10  # log-likelihood
_MOST_STEPS = 100
_LONGEST_STEP = 5.0


def fit(
    *,
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    y: npt.ArrayLike,
    covariates: Mapping[str, FloatArray],
    models: tuple[str, ...] | list[str],
    group: npt.ArrayLike,
    item: npt.ArrayLike,
    rng: np.random.Generator,
    weight: npt.ArrayLike | None = None,
    level: float = 0.95,
    draws: int = 1000,
    q: float = 0.05,
) -> Controlled:
    """Rate models from votes as `bradley_terry.fit` does, with `covariates` taken out: name -> (n,), `contrast` of what
    the first and the second answer have.

    log odds that a wins = theta_a - theta_b + sum_k beta_k x_k / sd_k. sd_k is the root mean square of x_k: who stands
    first is arbitrary, so its mean is 0. Maximum likelihood, ties as half ("Does style matter?", LMArena 2024); the
    covariance of strengths and coefficients together is the sandwich over groups, if there are more of them than models
    and covariates, else over items. t with clusters - 1; of coefficients with the effective number of clusters that
    differ in it. A covariate that differs in fewer than eight groups is not taken out. Which models can be rated
    depends on wins alone; but where covariates go with the models, or tell every winner, the likelihood has no single
    maximum and nothing is rated. Raises as `bradley_terry.fit`.
    """
    votes = Votes.checked(a=a, b=b, y=y, models=models, weight=weight)
    groups, items = np.asarray(group), np.asarray(item)
    check_lengths(y=votes.y, group=groups, item=items, **covariates)
    check_finite(**covariates)
    wins = votes.wins()
    rated = rateable(wins)
    core, rows = votes.among(rated)
    weights = np.ones(len(core.y)) if core.weight is None else core.weight
    used, sds, columns = [], {}, []
    for name, values in covariates.items():
        x = np.asarray(values, dtype=np.float64)[rows]
        sds[name] = sqrt(float(weights @ (x * x)) / max(float(weights.sum()), 1e-300)) if len(x) else 0.0
        if len(np.unique(groups[rows][np.abs(x) > 1e-9])) >= FEWEST_GROUPS:
            used.append(name)
            columns.append(x / sds[name])
    design = np.stack(columns, axis=1) if columns else np.zeros((len(core.y), 0))
    likelihood = _Likelihood(core, design, weights)
    size = int(rated.sum())
    try:
        theta, beta = likelihood.maximum(solve(wins[np.ix_(rated, rated)]))
    except _Inseparable:
        return _without_strengths(votes, covariates, sds, level)
    clustering = Clustering.of(groups[rows], items[rows], size, covariates=len(used))
    covariance = np.zeros((size + len(used),) * 2)
    if clustering.count > 1 and size:
        covariance = likelihood.covariance(theta, beta, clustering)
    method = METHOD if clustering.by == "group" else PROMPTS_FIXED
    solution = Solution(votes, wins, rated, core, theta, covariance[:size, :size], clustering, method)
    coefficients = {}
    for name in covariates:
        if name in used:
            value = likelihood.coefficient(used.index(name), beta, covariance, clustering, method, level)
        else:
            reason = FEW if size else NO_STRENGTHS
            value = Estimate(None, len(core.y), None, method, reason, groups=clustering.count)
        coefficients[name] = Coefficient(value, _times(value, DOUBLED / (sds[name] or 1.0)), sds[name])
    return Controlled(solution.rating(rng=rng, level=level, draws=draws, q=q), coefficients)


def _without_strengths(
    votes: Votes, covariates: Mapping[str, FloatArray], sds: Mapping[str, float], level: float
) -> Controlled:
    def nothing(n: int) -> Estimate:
        return Estimate(None, n, None, METHOD, INSEPARABLE)

    played = zip(votes.models, votes.played().tolist(), strict=True)
    strengths = BradleyTerry(
        ratings={name: Rating(nothing(n), None, None, None, None) for name, n in played},
        rated=(),
        theta=np.zeros(0),
        covariance=np.zeros((0, 0)),
        spread=Spread(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0)),
        best=np.zeros(0, dtype=np.bool_),
        n=len(votes.y),
        clusters=0,
        clustered_by="group",
        method=METHOD,
        level=level,
        notes=(),
        warnings=(INSEPARABLE,),
    )
    none = nothing(len(votes.y))
    return Controlled(strengths, {name: Coefficient(none, none, sds[name]) for name in covariates})


def _times(estimate: Estimate, factor: float) -> Estimate:
    """The estimate in a unit that is so many times smaller."""
    if estimate.value is None:
        return estimate
    ends = estimate.interval
    interval = ends and Interval(ends.low * factor, ends.high * factor, ends.level, ends.method)
    error = None if estimate.se is None else estimate.se * factor
    return Estimate(
        estimate.value * factor, estimate.n, interval, estimate.method, estimate.reason, error, estimate.groups
    )


class _Inseparable(Exception):
    """The likelihood has no single finite maximum."""


@dataclass(frozen=True, eq=False, slots=True)
class _Likelihood:
    """Of strengths (M,) and coefficients (K,) given votes (n,), a `design` (n, K) and weights (n,)."""

    votes: Votes
    design: FloatArray
    weights: FloatArray

    def odds(self, theta: FloatArray, beta: FloatArray) -> FloatArray:
        return np.asarray(theta[self.votes.a] - theta[self.votes.b] + self.design @ beta)

    def value(self, odds: FloatArray) -> float:
        return float(self.weights @ (log_expit(odds) - (1 - self.votes.y) * odds))

    def residuals(self, odds: FloatArray) -> FloatArray:
        return np.asarray(self.weights * (self.votes.y - expit(odds)))

    def slope(self, residuals: FloatArray) -> FloatArray:
        size = len(self.votes.models)
        of_models = np.bincount(self.votes.a, weights=residuals, minlength=size) - np.bincount(
            self.votes.b, weights=residuals, minlength=size
        )
        return np.concatenate([of_models, residuals @ self.design])

    def information(self, odds: FloatArray) -> FloatArray:
        """(M + K, M + K), with a ridge where nothing is known: a number added to all strengths changes no odds."""
        size, p = len(self.votes.models), expit(odds)
        spread = self.weights * p * (1 - p)
        pairs = np.bincount(self.votes.pair(slice(None)), weights=spread, minlength=size * size).reshape(size, size)
        pairs = pairs + pairs.T
        matrix = np.empty((size + self.design.shape[1],) * 2)
        matrix[:size, :size] = np.diag(pairs.sum(axis=1)) - pairs
        for k, column in enumerate((self.design * spread[:, None]).T):
            matrix[:size, size + k] = np.bincount(self.votes.a, weights=column, minlength=size) - np.bincount(
                self.votes.b, weights=column, minlength=size
            )
        matrix[size:, :size] = matrix[:size, size:].T
        matrix[size:, size:] = self.design.T @ (self.design * spread[:, None])
        matrix[:size, :size] += np.trace(matrix[:size, :size]) / size**2
        return matrix

    def refuse_flat(self, matrix: FloatArray) -> None:
        """Raise _Inseparable where the strengths explain a covariate, or all odds are so long that nothing is left."""
        size = len(self.votes.models)
        if matrix.shape[0] == size:
            return
        try:
            explained = matrix[size:, :size] @ np.linalg.solve(matrix[:size, :size], matrix[:size, size:])
        except np.linalg.LinAlgError:
            raise _Inseparable from None
        left = np.linalg.eigvalsh(matrix[size:, size:] - explained)
        if not left[0] > _FLAT * max(float(self.weights.sum()), 1.0):
            raise _Inseparable

    def maximum(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """By Newton's method from strengths without covariates. Raises _Inseparable, NotConverged."""
        size, beta = len(theta), np.zeros(self.design.shape[1])
        if not size or not len(beta):
            return theta, beta
        odds = self.odds(theta, beta)
        value = self.value(odds)
        for _ in range(_MOST_STEPS):
            matrix = self.information(odds)
            self.refuse_flat(matrix)
            slope = self.slope(self.residuals(odds))
            step = np.linalg.solve(matrix, slope)
            gain = float(slope @ step)
            step *= min(1.0, _LONGEST_STEP / max(float(np.abs(step).max()), 1.0))
            settled = gain < max(_SETTLED, 1e-13 * abs(value))
            for _ in range(60):
                risen_odds = self.odds(theta + step[:size], beta + step[size:])
                risen = self.value(risen_odds)
                if settled or risen >= value + 1e-4 * float(slope @ step):
                    break
                step /= 2
            theta, beta, odds, value = theta + step[:size], beta + step[size:], risen_odds, risen
            theta = theta - theta.mean()
            if settled:
                return theta, beta
        raise NotConverged(f"the strengths did not settle in {_MOST_STEPS} steps")

    def coefficient(
        self, at: int, beta: FloatArray, covariance: FloatArray, clustering: Clustering, method: str, level: float
    ) -> Estimate:
        """With t of as many clusters, less one, as would weigh the same if all differed alike in the covariate."""
        squares = np.bincount(clustering.codes, weights=self.weights * self.design[:, at] ** 2)
        effective = float(squares.sum()) ** 2 / float(squares @ squares)
        size = len(self.votes.models)
        return mean_with_error(
            float(beta[at]),
            sqrt(max(float(covariance[size + at, size + at]), 0.0)),
            n=len(self.votes.y),
            groups=clustering.count,
            df=effective - 1,
            level=level,
            method=method,
        )

    def covariance(self, theta: FloatArray, beta: FloatArray, clustering: Clustering) -> FloatArray:
        """H^-1 J H^-1 of strengths and coefficients together, J = G/(G-1) sum_g s_g s_g' (White 1982)."""
        odds, size, count = self.odds(theta, beta), len(theta), clustering.count
        residuals = self.residuals(odds)
        cluster = clustering.codes
        of_models = csr_array(
            (
                np.concatenate([residuals, -residuals]),
                (np.concatenate([cluster, cluster]), np.concatenate([self.votes.a, self.votes.b])),
            ),
            shape=(count, size),
        )
        columns = [np.bincount(cluster, weights=residuals * x, minlength=count) for x in self.design.T]
        of_design = np.stack(columns, axis=1) if columns else np.zeros((count, 0))
        across = of_models.T @ of_design
        meat = np.block([[(of_models.T @ of_models).toarray(), across], [across.T, of_design.T @ of_design]])
        bread = np.linalg.inv(self.information(odds))
        return np.asarray(bread @ (meat * (count / (count - 1))) @ bread)


# ---- the length-controlled win rate ----


LC_METHOD = f"length-controlled, {CLUSTERED_WILSON}"
SAME_DIFFERENCE = "its answers differ in length from the anchor's by the same everywhere"
RIDGES = np.logspace(-4, -2, 5)  # beside the mean log-loss; a stronger one would leave part of the effect in the rate
FOLDS = 5
_MANY = 2_000  # rows above which the choice among the ridges changes next to nothing: the weakest


def length_controlled_rates(
    *,
    won: npt.ArrayLike,
    difference: npt.ArrayLike,
    sample: npt.ArrayLike,
    cluster: npt.ArrayLike,
    part: npt.NDArray[Any],
    parts: int,
    level: float = 0.95,
) -> list[Estimate]:
    """The win rate against an anchor of each of `parts` models if its answers were as long as the anchor's.

    Of n rows, one a model and item: `won` 0 to 1 (a tie .5, repeats their mean), `difference` of lengths, model less
    anchor, `sample` and `cluster` any labels, `part` the model's code. log odds of a win = theta + phi tanh(d / sd d) +
    psi g, and the rate is the mean of expit(theta + psi g) over the model's rows (AlpacaEval 2, arXiv 2404.04475, eq. 2
    and 3). g, the sample's difficulty, is by how much the other models win more on it than on others, shrunk by one
    row. phi and psi have the ridge with the least log-loss in five folds of clusters; theta has none, so that without
    phi the rate is the raw one, ties as half. Standard error: influence of each cluster on the rate, at the chosen
    ridge; interval by Wilson within 0 to 1, t. Raises LengthMismatch, NotFinite, InvalidOutcome.
    """
    y, d = np.asarray(won, dtype=np.float64), np.asarray(difference, dtype=np.float64)
    samples, clusters = np.asarray(sample), np.asarray(cluster)
    check_lengths(won=y, difference=d, sample=samples, cluster=clusters, part=part)
    check_finite(won=y, difference=d)
    if not ((y >= 0) & (y <= 1)).all():
        raise InvalidOutcome("an outcome lies between 0 and 1")
    others = _difficulty(y, samples, part, parts)
    order = np.argsort(part, kind="stable")
    ends = np.searchsorted(part[order], np.arange(parts + 1))
    estimates = []
    for begin, end in pairwise(ends):
        rows = order[begin:end]
        estimates.append(_length_controlled(y[rows], d[rows], others[rows], clusters[rows], level))
    return estimates


def _difficulty(y: FloatArray, samples: npt.NDArray[Any], part: npt.NDArray[Any], parts: int) -> FloatArray:
    """For each row, how much more than elsewhere the other models win on its sample, (n,)."""
    means = np.bincount(part, weights=y, minlength=parts) / np.maximum(np.bincount(part, minlength=parts), 1)
    excess = y - means[part]
    codes, count = dense_codes(samples)
    own = codes * parts + part
    sums = np.bincount(codes, weights=excess, minlength=count)[codes]
    sums -= np.bincount(own, weights=excess, minlength=count * parts)[own]
    rows = np.bincount(codes, minlength=count)[codes] - np.bincount(own, minlength=count * parts)[own]
    return np.asarray(sums / (rows + 1))


def _length_controlled(
    y: FloatArray, d: FloatArray, difficulty: FloatArray, cluster: npt.NDArray[Any], level: float
) -> Estimate:
    n = len(y)
    codes, count = _in_order(cluster)
    if not n or y.min() == y.max() != 0.5:
        return mean(values=y, cluster=codes, ends=(0.0, 1.0), level=level)
    columns, rate_columns = [np.ones(n)], [np.ones(n)]
    spread = float(d.std())
    if spread > 1e-9:
        columns.append(np.tanh(d / spread))
        rate_columns.append(np.zeros(n))
    elif d.any():
        return Estimate(None, n, None, LC_METHOD, SAME_DIFFERENCE, groups=count)
    apart = difficulty - difficulty.mean()
    if (scale := float(apart.std())) > 1e-9:
        columns.append(apart / scale)
        rate_columns.append(apart / scale)
    design, at_length = np.stack(columns, axis=1), np.stack(rate_columns, axis=1)
    ridge = _ridge(design, y, codes)
    w = _fitted(design, y, np.ones((1, n)), np.array([ridge]))[0]
    p, q = expit(design @ w), expit(at_length @ w)
    penalty = np.diag([0.0] + [ridge] * (design.shape[1] - 1))
    information = (design * (p * (1 - p))[:, None]).T @ design / n + penalty
    gradient = (q * (1 - q)) @ at_length / n
    influence = (q - q.mean() + (design * (y - p)[:, None]) @ np.linalg.solve(information, gradient)) / n
    of_group = np.bincount(codes, weights=influence, minlength=count)
    of_group = of_group - of_group.mean()
    sizes = np.bincount(codes, minlength=count)
    free = max(count - design.shape[1], 1)
    return mean_with_error(
        float(q.mean()),
        sqrt(count / free * float(of_group @ of_group)),
        n=n,
        groups=count,
        df=n * n / float(sizes @ sizes) - 1,
        ends=(0.0, 1.0),
        level=level,
        method=LC_METHOD,
    )


def _in_order(labels: npt.NDArray[Any]) -> tuple[IntArray, int]:
    """Codes by the order of the labels, not of the rows, so that folds do not depend on it."""
    distinct, codes = np.unique(labels, return_inverse=True)
    return codes.astype(np.int64), len(distinct)


def _ridge(design: FloatArray, y: FloatArray, codes: IntArray) -> float:
    """The penalty with the least log-loss of rows in folds that were left out, clusters whole."""
    if design.shape[1] == 1 or len(y) > _MANY:
        return float(RIDGES[0])
    fold = codes % FOLDS
    left_out = np.stack([fold == k for k in range(FOLDS)])
    kept = np.repeat(~left_out, len(RIDGES), axis=0).astype(np.float64)
    w = _fitted(design, y, kept, np.tile(RIDGES, FOLDS))
    odds = w @ design.T
    loss = ((1 - y) * odds - log_expit(odds)) * (1 - kept)
    return float(RIDGES[np.argmin(loss.sum(axis=1).reshape(FOLDS, -1).sum(axis=0))])


def _fitted(design: FloatArray, y: FloatArray, kept: FloatArray, ridges: FloatArray) -> FloatArray:
    """Logistic regressions (B, k), each of its rows in `kept` (B, n); `ridges` (B,) are on all but the first column."""
    width = design.shape[1]
    total = np.maximum(kept.sum(axis=1), 1.0)
    penalty = np.outer(ridges, [0.0] + [1.0] * (width - 1))
    products = (design[:, :, None] * design[:, None, :]).reshape(len(y), width * width)
    share = np.clip((kept @ y + 0.5) / (total + 1), 1e-6, 1 - 1e-6)
    w = np.zeros((len(ridges), width))
    w[:, 0] = logit(share)
    for _ in range(40):
        p = expit(w @ design.T)
        slope = (kept * (y - p)) @ design / total[:, None] - penalty * w
        matrix = ((kept * p * (1 - p)) @ products / total[:, None]).reshape(-1, width, width)
        matrix[:, range(width), range(width)] += penalty + 1e-9
        step = np.linalg.solve(matrix, slope[:, :, None])[:, :, 0]
        step = np.clip(step, -2.0, 2.0)
        w = w + step
        if np.abs(step).max() < 1e-7:
            break
    return w
