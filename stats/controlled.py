"""What strengths and win rates would be if answers were alike in length and style.

Bradley-Terry with covariates (LMArena's style control) and the length-controlled win rate (arXiv 2404.04475), both with
standard errors clustered by group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.special import expit, log_expit, logit

from stats.arrays import FloatArray, check_finite, check_lengths, dense_codes
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
from stats.proportions import CLUSTERED_WILSON, FEWEST_GROUPS, NOTHING, mean, mean_with_error
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
        tested=False,
        islands=1,
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
NO_SUPPORT = "fewer than a tenth of its answers are as {} as the anchor's: no figure at equal length"
AS_LONG = 1 / 4  # standard deviations of the difference of lengths within which two answers count as equally long
SUPPORT = 1 / 10  # of a model's answers at least so long, and at most so long, as the anchor's
FAR = 0.1  # from the rate itself
RIDGE = 1e-4  # beside the mean log-loss: where every longer answer won, the fit still ends
_PARAMETERS = 3  # of one model


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
    anchor, `sample` and `cluster` any labels, `part` the model's code. log odds of a win = theta_m + phi tanh(d / sd) +
    psi_m g, and the rate is the mean of expit(theta_m + psi_m g) over the model's rows (after AlpacaEval 2, arXiv
    2404.04475, eq. 2 and 3). phi is the same for all models: one that gains nothing by length tells what length is
    worth for one that does. sd is that of d within models. g, the sample's difficulty, is by how much more the other
    models win on it than they do elsewhere at these lengths, shrunk by one row. Maximum likelihood, but for a ridge on
    phi and psi that only matters where longer answers always won.

    No value where fewer than a tenth of a model's answers are at least, or at most, as long as the anchor's: the rate
    would be extrapolated. Where it is more than .1 from the rate itself, `reason` says so. Standard error: influence of
    each cluster on the rate; interval by Wilson within 0 to 1, t. Raises LengthMismatch, NotFinite, InvalidOutcome.
    """
    y, d = np.asarray(won, dtype=np.float64), np.asarray(difference, dtype=np.float64)
    samples, clusters = np.asarray(sample), np.asarray(cluster)
    check_lengths(won=y, difference=d, sample=samples, cluster=clusters, part=part)
    check_finite(won=y, difference=d)
    if not ((y >= 0) & (y <= 1)).all():
        raise InvalidOutcome("an outcome lies between 0 and 1")
    n = np.bincount(part, minlength=parts)
    apart = d - (np.bincount(part, weights=d, minlength=parts) / np.maximum(n, 1))[part]
    sd = sqrt(float(apart @ apart) / max(len(d), 1))
    as_long = AS_LONG * sd + 1e-9
    longer, shorter = (
        np.bincount(part, weights=side, minlength=parts) >= SUPPORT * n for side in (d >= -as_long, d <= as_long)
    )
    rates = np.bincount(part, weights=y, minlength=parts) / np.maximum(n, 1)
    constant = np.array([not len(of) or (of.min() == of.max() != 0.5) for of in _by_part(y, part, parts)])
    rows = ~constant[part]
    found = _fit_of_lengths(
        y[rows], np.tanh(d[rows] / (sd or 1.0)), samples[rows], clusters[rows], part[rows], parts, level
    )
    estimates = []
    for model, of_model in enumerate(_by_part(np.arange(len(y)), part, parts)):
        groups = dense_codes(clusters[of_model])[1]
        if not longer[model] or not shorter[model]:
            reason = NO_SUPPORT.format("short" if longer[model] else "long")
            estimates.append(Estimate(None, int(n[model]), None, LC_METHOD, reason, groups=groups))
        elif constant[model]:
            estimates.append(mean(values=y[of_model], cluster=clusters[of_model], ends=(0.0, 1.0), level=level))
        else:
            estimates.append(_told_apart(found[model], float(rates[model])))
    return estimates


def _by_part(values: npt.NDArray[Any], part: npt.NDArray[Any], parts: int) -> list[npt.NDArray[Any]]:
    order = np.argsort(part, kind="stable")
    return np.split(values[order], np.searchsorted(part[order], np.arange(1, parts)))


def _told_apart(estimate: Estimate, rate: float) -> Estimate:
    """The estimate, which says so where it is far from the rate as it is."""
    if estimate.value is None or abs(estimate.value - rate) <= FAR:
        return estimate
    side = "above" if estimate.value > rate else "below"
    far = f"{abs(estimate.value - rate):.2f} {side} the raw rate, {rate:.2f} with ties as half"
    reason = f"{far}: it rests on what length is worth"
    return replace(estimate, reason="; ".join(filter(None, [estimate.reason, reason])))


def _fit_of_lengths(
    y: FloatArray,
    x: FloatArray,
    samples: npt.NDArray[Any],
    cluster: npt.NDArray[Any],
    part: npt.NDArray[Any],
    parts: int,
    level: float,
) -> list[Estimate]:
    """The rates at x = 0 of models that neither won nor lost everything; of others, without rows, nothing counted."""
    n = np.bincount(part, minlength=parts)
    w, phi = _fitted(y, x, np.zeros(len(y)), part, parts)
    excess = y - expit(w[part, 0] + phi * x)
    g = _difficulty(excess, samples, part, parts)
    g = g - (np.bincount(part, weights=g, minlength=parts) / np.maximum(n, 1))[part]
    scale = np.sqrt(np.bincount(part, weights=g * g, minlength=parts) / np.maximum(n, 1))[part]
    g = np.where(scale > 1e-9, g / np.where(scale > 1e-9, scale, 1.0), 0.0)
    w, phi = _fitted(y, x, g, part, parts)

    at_length = w[part, 0] + w[part, 1] * g
    p, q = expit(at_length + phi * x), expit(at_length)
    blocks, across, of_phi = _information(p * (1 - p), x, g, part, parts)
    design = np.stack([np.ones(len(y)), g], axis=1)
    # What a row says of phi that its model's own two parameters do not say.
    told = np.linalg.solve(blocks, across[:, :, None])[:, :, 0]
    left = of_phi - float((across * told).sum())
    on_phi = (y - p) * (x - (design * told[part]).sum(axis=1)) / left
    codes, count = dense_codes(cluster)
    by_phi = np.bincount(codes, weights=on_phi, minlength=count)
    estimates = []
    for model, rows in enumerate(_by_part(np.arange(len(y)), part, parts)):
        if not len(rows):
            estimates.append(Estimate(None, 0, None, LC_METHOD, NOTHING))
            continue
        size, of = len(rows), codes[rows]
        gradient = (q[rows] * (1 - q[rows])) @ design[rows] / size
        own = design[rows] @ np.linalg.solve(blocks[model], gradient) * (y - p)[rows]
        influence = np.bincount(of, weights=(q[rows] - q[rows].mean()) / size + own, minlength=count)
        influence = influence - float(gradient @ told[model]) * by_phi
        sizes = np.bincount(of, minlength=count)
        groups = int((sizes > 0).sum())
        deviations = influence - influence.mean()
        estimates.append(
            mean_with_error(
                float(q[rows].mean()),
                sqrt(groups / max(groups - _PARAMETERS, 1) * float(deviations @ deviations)),
                n=size,
                groups=groups,
                df=size * size / float(sizes @ sizes) - 1,
                ends=(0.0, 1.0),
                level=level,
                method=LC_METHOD,
            )
        )
    return estimates


def _difficulty(excess: FloatArray, samples: npt.NDArray[Any], part: npt.NDArray[Any], parts: int) -> FloatArray:
    """For each row, how much more than expected the other models win on its sample, (n,)."""
    codes, count = dense_codes(samples)
    own = codes * parts + part
    sums = np.bincount(codes, weights=excess, minlength=count)[codes]
    sums = sums - np.bincount(own, weights=excess, minlength=count * parts)[own]
    rows = np.bincount(codes, minlength=count)[codes] - np.bincount(own, minlength=count * parts)[own]
    return np.asarray(sums / (rows + 1))


def _information(
    spread: FloatArray, x: FloatArray, g: FloatArray, part: npt.NDArray[Any], parts: int
) -> tuple[FloatArray, FloatArray, float]:
    """Minus the second derivatives: of each model's theta and psi (M, 2, 2), between these and phi (M, 2), of phi."""
    n = np.bincount(part, minlength=parts)

    def of_model(weights: FloatArray) -> FloatArray:
        return np.bincount(part, weights=weights, minlength=parts).astype(np.float64)

    blocks = np.empty((parts, 2, 2))
    blocks[:, 0, 0] = of_model(spread) + 1e-9
    blocks[:, 0, 1] = blocks[:, 1, 0] = of_model(spread * g)
    blocks[:, 1, 1] = of_model(spread * g * g) + RIDGE * np.maximum(n, 1)
    across = np.stack([of_model(spread * x), of_model(spread * g * x)], axis=1)
    return blocks, across, float(spread @ (x * x)) + RIDGE * max(len(x), 1)


def _fitted(
    y: FloatArray, x: FloatArray, g: FloatArray, part: npt.NDArray[Any], parts: int
) -> tuple[FloatArray, float]:
    """theta and psi of each model, (M, 2), and phi, by Newton's method; see `length_controlled_rates`."""
    n = np.maximum(np.bincount(part, minlength=parts), 1)
    w, phi = np.zeros((parts, 2)), 0.0
    w[:, 0] = logit((np.bincount(part, weights=y, minlength=parts) + 0.5) / (n + 1))
    for _ in range(50):
        p = expit(w[part, 0] + w[part, 1] * g + phi * x)
        blocks, across, of_phi = _information(p * (1 - p), x, g, part, parts)
        of_theta, of_psi = (np.bincount(part, weights=left, minlength=parts) for left in (y - p, (y - p) * g))
        slope = np.stack([of_theta, of_psi - RIDGE * n * w[:, 1]], axis=1)
        own, told = np.moveaxis(np.linalg.solve(blocks, np.stack([slope, across], axis=2)), 2, 0)
        step = float((y - p) @ x - RIDGE * max(len(x), 1) * phi - (across * own).sum())
        step = float(np.clip(step / (of_phi - float((across * told).sum())), -2.0, 2.0))
        steps = np.clip(own - told * step, -2.0, 2.0)
        w, phi = w + steps, phi + step
        if max(abs(step), float(np.abs(steps).max(initial=0.0))) < 1e-9:
            break
    return w, phi
