"""Strengths of models from votes between them: Bradley-Terry, who can be rated, and how sure that is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.special import expit, log_expit, stdtr

from stats.arrays import BoolArray, FloatArray, IntArray, blocks, check_lengths, counted, dense_codes, ratio
from stats.proportions import NO_VARIATION, no_interval, t_quantile
from stats.ranks import degrees_of_freedom, may_be_best, rank_ranges, tiers
from stats.results import Estimate, Interval, InvalidCount, InvalidOutcome, StatisticsError

_LONGEST_STEP = 5.0  # natural log: beyond it the curvature at the old point says nothing
_SETTLED = 1e-10  # log-likelihood
_ROUNDING = 1e-13
_MOST_STEPS = 200


class NotConverged(StatisticsError):
    """Newton's method did not reach the maximum: the wins are all but separable."""


@dataclass(frozen=True, eq=False, slots=True)
class Votes:
    """Comparisons, one per row: model codes `a` and `b`, and `y` = 1 where a won, 0 where b did, 0.5 for a
    tie, or between these how far a was preferred.

    All of shape (n,); codes count from 0 into `models`. `weight` (n,) counts a vote more or less; None is 1
    for each. There may be millions: the columns are narrow, and what is computed of them goes block by block.
    """

    a: npt.NDArray[np.int32]
    b: npt.NDArray[np.int32]
    y: npt.NDArray[np.float32]
    models: tuple[str, ...]
    weight: FloatArray | None = None

    @classmethod
    def checked(
        cls,
        *,
        a: npt.ArrayLike,
        b: npt.ArrayLike,
        y: npt.ArrayLike,
        models: Sequence[str],
        weight: npt.ArrayLike | None = None,
    ) -> Votes:
        """Raises LengthMismatch; InvalidOutcome for an unknown code, a model against itself, a name given
        twice or another y; InvalidCount for a weight that is negative or not finite.
        """
        first, second = np.asarray(a, dtype=np.int32), np.asarray(b, dtype=np.int32)
        outcome = np.asarray(y, dtype=np.float32)
        weights = None if weight is None else np.asarray(weight, dtype=np.float64)
        check_lengths(a=first, b=second, y=outcome, weight=outcome if weights is None else weights)
        if len(set(models)) < len(models):
            raise InvalidOutcome("two models have the same name")
        for column in (first, second):
            if column.size and (column.min() < 0 or column.max() >= len(models)):
                raise InvalidOutcome(f"a model code lies outside 0 .. {len(models) - 1}")
        if (first == second).any():
            raise InvalidOutcome("a model is compared with itself")
        if not ((outcome >= 0) & (outcome <= 1)).all():
            raise InvalidOutcome("an outcome lies between 0 and 1")
        if weights is not None and not (np.isfinite(weights) & (weights >= 0)).all():
            raise InvalidCount("a weight is a finite number, at least 0")
        return cls(first, second, outcome, tuple(models), weights)

    def wins(self) -> FloatArray:
        """The table of wins, shape (models, models): [i, j] is how often i beat j, a tie half a win for each."""
        size = len(self.models)
        won, lost = np.zeros((size, size)), np.zeros((size, size))
        for rows in blocks(len(self.y)):
            pair = self.pair(rows)
            weight = None if self.weight is None else self.weight[rows]
            part = self.y[rows] if weight is None else self.y[rows] * weight
            gained = np.bincount(pair, weights=part, minlength=size * size)
            won += gained.reshape(size, size)
            lost += (np.bincount(pair, weights=weight, minlength=size * size) - gained).reshape(size, size)
        return won + lost.T

    def pair(self, rows: slice | IntArray) -> IntArray:
        """Each row's place in a table of models x models, row by row."""
        return self.a[rows].astype(np.int64) * len(self.models) + self.b[rows]

    def played(self) -> IntArray:
        """How many votes each model has, shape (models,)."""
        return counted(self.a, len(self.models)) + counted(self.b, len(self.models))

    def among(self, chosen: BoolArray) -> tuple[Votes, BoolArray]:
        """The votes between two of the chosen models (models,), their codes counted anew; and which rows (n,)
        those are.
        """
        if chosen.all():
            return self, np.ones(len(self.y), dtype=np.bool_)
        rows = chosen[self.a] & chosen[self.b]
        code = (np.cumsum(chosen) - 1).astype(np.int32)
        models = tuple(name for name, keep in zip(self.models, chosen, strict=True) if keep)
        weight = None if self.weight is None else self.weight[rows]
        return Votes(code[self.a[rows]], code[self.b[rows]], self.y[rows], models, weight), rows


def rateable(wins: FloatArray) -> BoolArray:
    """Which models have finite strengths relative to each other, shape (M,).

    A finite maximum of the likelihood exists for a set of models exactly if no split of it leaves one side
    without a win over the other (Ford 1957): the graph of wins is strongly connected. The answer is the
    strongly connected set with most models, and of equal ones that with most votes; all False where no two
    models have beaten each other.
    """
    _, label = connected_components(csr_array(wins > 0), directed=True, connection="strong")
    sizes = np.bincount(label)
    if sizes.max(initial=0) < 2:
        return np.zeros(len(wins), dtype=np.bool_)
    votes = np.bincount(label, weights=wins.sum(axis=1) + wins.sum(axis=0))
    best = np.lexsort((votes, sizes))[-1]
    return np.asarray(label == best, dtype=np.bool_)


def solve(wins: FloatArray) -> FloatArray:
    """Natural-log strengths with mean 0, shape (M,), for a strongly connected table of wins (see `rateable`).

    Newton's method on the (M, M) counts: they are sufficient, so votes are not looked at again. Steps are
    capped, and halved until the likelihood rises as much as its slope promises; the last one promised less
    than 1e-10, or than the rounding of the likelihood. Raises NotConverged.
    """
    theta = np.zeros(len(wins))
    if not len(wins):
        return theta
    played = wins + wins.T
    likelihood = _likelihood(theta, wins)
    for _ in range(_MOST_STEPS):
        slope, matrix = _derivatives(theta, wins, played)
        try:
            step = np.linalg.solve(matrix + _ridge(matrix), slope)
        except np.linalg.LinAlgError as error:
            raise NotConverged("the wins are all but separable") from error
        gain = float(slope @ step)
        step *= min(1.0, _LONGEST_STEP / max(float(np.abs(step).max()), 1.0))
        if gain < max(_SETTLED, _ROUNDING * abs(likelihood)):
            return np.asarray(theta + step - step.mean(), dtype=np.float64)
        while (risen := _likelihood(theta + step, wins)) < likelihood + 1e-4 * float(slope @ step):
            step /= 2
        theta, likelihood = theta + step - step.mean(), risen
    raise NotConverged(f"the strengths did not settle in {_MOST_STEPS} steps")


def information(theta: FloatArray, wins: FloatArray) -> FloatArray:
    """H = sum over pairs of n p q (e_i - e_j)(e_i - e_j)', shape (M, M): minus the second derivative at
    `theta`.
    """
    return _derivatives(theta, wins, wins + wins.T)[1]


def inverse_information(theta: FloatArray, wins: FloatArray) -> FloatArray:
    """The inverse of H among vectors with sum 0: the covariance of `theta` if every vote were independent.

    H has the null vector of ones, which a pseudo-inverse may mistake for a direction with information; adding
    it with weight c and taking it off again does not: inv(H + c 11'/M) - 11'/(cM), c = tr(H)/M.
    """
    matrix = information(theta, wins)
    ridge = _ridge(matrix)
    # c/M in every cell of the ridge, so 1/(cM) is the inverse of its cell over M².
    return np.asarray(np.linalg.inv(matrix + ridge) - 1 / (ridge * len(matrix) ** 2))


def _ridge(matrix: FloatArray) -> float:
    return float(np.trace(matrix)) / len(matrix) ** 2


def _likelihood(theta: FloatArray, wins: FloatArray) -> float:
    return float((wins * log_expit(theta[:, None] - theta[None, :])).sum())


def _derivatives(theta: FloatArray, wins: FloatArray, played: FloatArray) -> tuple[FloatArray, FloatArray]:
    p = expit(theta[:, None] - theta[None, :])
    slope = (wins - played * p).sum(axis=1)
    matrix = -played * p * p.T
    np.fill_diagonal(matrix, 0.0)
    np.fill_diagonal(matrix, -matrix.sum(axis=1))
    return slope, matrix


# ---- The clustered covariance of Bradley-Terry strengths ----


_BLOCK = 1_000_000  # cells of the clusters x models table at a time: 8 MB


def clustered_covariance(
    *, votes: Votes, theta: FloatArray, wins: FloatArray, cluster: npt.NDArray[Any], clusters: int
) -> FloatArray:
    """V = H^-1 J H^-1, shape (M, M), for `theta` (M,) fitted to `wins` (M, M) of `votes`.

    J = G/(G-1) sum_g s_g s_g', s_g = sum over the votes of cluster g of (y - p)(e_a - e_b); H is the
    information. White 1982; for rankings arXiv 2403.04132. It holds whatever the dependence within a cluster;
    the model-based H^-1 is 14% too wide with ties as half and too narrow where votes share a sample.
    `cluster` (n,) holds codes 0 .. clusters - 1, clusters >= 2.
    """
    bread = inverse_information(theta, wins)
    expected = expit(theta[:, None] - theta[None, :]).ravel()
    meat = _outer_products(votes, expected, cluster, clusters) * (clusters / (clusters - 1))
    return np.asarray(bread @ meat @ bread)


@dataclass(frozen=True, eq=False, slots=True)
class Spread:
    """How the votes of each model (M,) lie in clusters: in how many, `groups`, and the number of equal ones that would
    weigh the same, `effective` (Kish 1965, section 5.4). `df`: see `ranks.degrees_of_freedom`.
    """

    groups: IntArray
    effective: FloatArray
    df: FloatArray

    @classmethod
    def of(cls, votes: Votes, cluster: npt.NDArray[np.int32], clusters: int) -> Spread:
        def weight(rows: Any) -> FloatArray:
            return np.ones(len(votes.y[rows])) if votes.weight is None else votes.weight[rows]

        size = len(votes.models)
        groups, total, squares = np.zeros(size, dtype=np.int64), np.zeros(size), np.zeros(size)
        for table in _tables(votes, cluster, clusters, weight, sign=1):
            groups += (table > 0).sum(axis=0)
            total += table.sum(axis=0)
            squares += (table * table).sum(axis=0)
        effective = total**2 / np.maximum(squares, 1e-300)
        return cls(groups, effective, degrees_of_freedom(groups, effective))


def _outer_products(votes: Votes, expected: FloatArray, cluster: npt.NDArray[Any], clusters: int) -> FloatArray:
    """sum_g s_g s_g' of the scores s_g = sum (y - p)(e_a - e_b); `expected` holds p by pair."""
    size = len(votes.models)
    if clusters * size > _BLOCK and (matrix := _laplacian(votes, expected, cluster, clusters)) is not None:
        return matrix
    total = np.zeros((size, size))
    for table in _tables(votes, cluster, clusters, lambda rows: _residual(votes, expected, rows), sign=-1):
        total += table.T @ table
    return total


def _tables(
    votes: Votes, cluster: npt.NDArray[np.int32], clusters: int, numbers: Callable[[Any], FloatArray], *, sign: int
) -> Iterator[FloatArray]:
    """sum of x (e_a + `sign` e_b) over the votes of each cluster, some clusters at a time (., M); `numbers` gives the x
    of some rows.
    """
    size = len(votes.models)
    if not (clusters and size):
        return
    height = max(1, min(clusters, _BLOCK // size))
    order, ends = None, np.array([len(votes.y)])
    if clusters > height:
        block = cluster // height
        order, ends = np.argsort(block.astype(np.uint16), kind="stable"), np.cumsum(np.bincount(block))
    for first, begin, end in zip(range(0, clusters, height), np.concatenate(([0], ends[:-1])), ends, strict=True):
        score = np.zeros(height * size)
        for rows in blocks(end - begin):
            rows_of_block: Any = slice(begin + rows.start, begin + rows.stop)
            if order is not None:
                rows_of_block = order[rows_of_block]
            number = numbers(rows_of_block)
            cell = (cluster[rows_of_block].astype(np.int64) - first) * size
            np.add.at(score, cell + votes.a[rows_of_block], number)
            np.add.at(score, cell + votes.b[rows_of_block], sign * number)
        yield score.reshape(height, size)


def _residual(votes: Votes, expected: FloatArray, rows: Any) -> FloatArray:
    residual: FloatArray = votes.y[rows] - expected[votes.pair(rows)]
    return residual if votes.weight is None else residual * votes.weight[rows]


def _laplacian(votes: Votes, expected: FloatArray, cluster: npt.NDArray[Any], clusters: int) -> FloatArray | None:
    """The same where every cluster is an item of one pair: s_g is one number times (e_a - e_b), the sum a Laplacian.

    None where a cluster holds several pairs.
    """
    size = len(votes.models)
    of_cluster = np.full(clusters, -1, dtype=np.int64)
    score = np.zeros(clusters)
    for rows in blocks(len(votes.y)):
        forward, at = votes.a[rows] < votes.b[rows], cluster[rows]
        low, high = np.minimum(votes.a[rows], votes.b[rows]), np.maximum(votes.a[rows], votes.b[rows])
        pair = low.astype(np.int64) * size + high
        new = of_cluster[at] < 0
        of_cluster[at[new]] = pair[new]
        if (of_cluster[at] != pair).any():
            return None
        residual = _residual(votes, expected, rows)
        np.add.at(score, at, np.where(forward, residual, -residual))
    square = np.bincount(of_cluster, weights=score * score, minlength=size * size).reshape(size, size)
    square = square + square.T
    return np.asarray(np.diag(square.sum(axis=1)) - square)


# ---- The order of models when some of them have no finite strength, and the words that say why ----


NO_VOTES = "no comparisons"
APART = "not connected to the other models"
NEVER_MET = "{} groups of models that never met: nothing says who is first of all, so there are no ranks"
ONLY_WINS = "won every comparison: no finite rating"
ONLY_LOSSES = "lost every comparison: no finite rating"
ONE_WAY = "linked to the rated models by wins in one direction only: no finite rating"


@dataclass(frozen=True, slots=True)
class Standing:
    """`rank` counts from 1 and is None for models that are not connected to the ranked ones, of which there
    are `ranked`.

    `reason` is empty for rated models. `below`: the rated models lead to this one by wins, and not it to them. All are
    in the order of the models. `islands`: see `BradleyTerry`; of several there is no rank.
    """

    rank: tuple[int | None, ...]
    reason: tuple[str, ...]
    below: tuple[bool, ...]
    ranked: int
    islands: int
    warnings: tuple[str, ...]


def standings(*, models: Sequence[str], wins: FloatArray, rated: BoolArray, theta: FloatArray) -> Standing:
    """Order all models: `wins` (M, M), `rated` (M,), `theta` the strengths of the rated ones.

    An unrated model stands above those that it reaches by a chain of wins without being reached by them:
    where the strengths' likelihood has its maximum at infinity, that is their order. Where the graph has several
    parts with votes, no model is ranked: nothing compares one part with another.
    """
    islands = _islands(wins)
    ranked = _connected(wins, rated)
    strength = np.zeros(len(wins))
    strength[rated] = theta
    rank: list[int | None] = [None] * len(wins)
    if islands == 1:
        for place, model in enumerate(_order(wins, rated, ranked, strength), start=1):
            rank[model] = place
    reasons = tuple(_reason(wins, rated, ranked, model) for model in range(len(wins)))
    warnings = [
        f"{reason} ({', '.join(models[m] for m in range(len(wins)) if reasons[m] == reason)})"
        for reason in (APART, ONLY_WINS, ONLY_LOSSES, ONE_WAY)
        if reason in reasons
    ]
    if islands > 1:
        warnings.insert(0, NEVER_MET.format(islands))
    reach = _reach(wins)
    below = np.any(reach[rated], axis=0) & ~np.any(reach[:, rated], axis=1)
    return Standing(
        tuple(rank),
        reasons,
        tuple(bool(is_below) for is_below in below),
        int(ranked.sum()),
        islands,
        tuple(warnings),
    )


def _reach(wins: FloatArray) -> BoolArray:
    """Which models each one leads to by a chain of wins, itself among them, (M, M)."""
    reach = (wins > 0) | np.eye(len(wins), dtype=np.bool_)
    for _ in range(len(wins).bit_length()):
        reach = reach.astype(np.float32) @ reach.astype(np.float32) > 0
    return np.asarray(reach)


def _islands(wins: FloatArray) -> int:
    """How many parts with votes the comparison graph has."""
    _, label = connected_components(csr_array(wins + wins.T > 0), directed=False)
    return len(np.unique(label[(wins + wins.T).any(axis=1)]))


def _connected(wins: FloatArray, rated: BoolArray) -> BoolArray:
    """The part of the comparison graph that holds the rated models; without any, the part with most models,
    then votes.
    """
    _, label = connected_components(csr_array(wins + wins.T > 0), directed=False)
    if rated.any():
        return np.asarray(label == label[np.argmax(rated)], dtype=np.bool_)
    sizes, votes = np.bincount(label), np.bincount(label, weights=wins.sum(axis=1))
    if votes.max(initial=0) == 0:
        return np.zeros(len(wins), dtype=np.bool_)
    return np.asarray(label == np.lexsort((votes, sizes))[-1], dtype=np.bool_)


def _order(wins: FloatArray, rated: BoolArray, ranked: BoolArray, strength: FloatArray) -> IntArray:
    # Equal strengths differ by rounding: they keep the order of the models.
    keys = [-np.round(strength, 9)]
    if not rated[ranked].all():
        reach = _reach(wins)
        played = wins.sum(axis=1) + wins.sum(axis=0)
        share = np.nan_to_num(ratio(wins.sum(axis=1), played))
        _, label = connected_components(csr_array(wins > 0), directed=True, connection="strong")
        # Whoever reaches more models than reach it comes first; within one such set, strength or share of wins.
        keys = [np.where(rated, keys[0], -share), label, -(reach.sum(axis=1) - reach.sum(axis=0))]
    order = np.lexsort(keys)
    return np.asarray(order[ranked[order]], dtype=np.int64)


def _reason(wins: FloatArray, rated: BoolArray, ranked: BoolArray, model: int) -> str:
    won, lost = wins[model].sum(), wins[:, model].sum()
    if rated[model]:
        return ""
    if won + lost == 0:
        return NO_VOTES
    if not ranked[model]:
        return APART
    if lost == 0:
        return ONLY_WINS
    return ONLY_LOSSES if won == 0 else ONE_WAY


# ---- The primary rating: Bradley-Terry strengths with clustered intervals, rank ranges and tiers ----


METHOD = "bradley-terry, sandwich by group"
PROMPTS_FIXED = "bradley-terry, sandwich by item, prompts-fixed"
FEWEST_ITEMS = 30  # below which intervals by item are rough

_NO_VARIANCE = 1e-18


@dataclass(frozen=True, slots=True)
class Rating:
    """One model: `strength` in natural log, mean 0 over the rated models, n its votes; and its place.

    `rank` is the ordinal by strength, `rank_low <= rank <= rank_high` its range at the fit's level; `tier`: see
    `ranks.tiers_of`. All are None where they cannot be computed, `strength.reason` says why, and where some models
    never met the others: nothing says who is first of all.
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
    votes in `clusters` clusters made them, those of each model as `spread` (m,) says. `best` (m,) marks the models
    that may be the best of these, which together hold the one that is, at the fit's level; `tested`: whether they can
    be told apart. `islands`: how many groups of models there are of which none met one of another. `clustered_by` says
    whether votes were taken as dependent within the group (image, prompt) or, with too few groups, within the item.
    `notes` explain choices, `warnings` tell what is missing or doubtful.
    """

    ratings: dict[str, Rating]
    rated: tuple[str, ...]
    theta: FloatArray
    covariance: FloatArray
    spread: Spread
    best: BoolArray
    tested: bool
    islands: int
    n: int
    clusters: int
    clustered_by: Literal["group", "item"]
    method: str
    level: float
    notes: tuple[str, ...]
    warnings: tuple[str, ...]

    def contrast(self, first: str, second: str) -> Contrast:
        """`first` minus `second`: its interval from V_ii + V_jj - 2 V_ij, its p from t with the fewer degrees of
        freedom of the two.

        Two models differ if this interval excludes 0; whether their own intervals overlap says nothing. A
        model without a strength gives None. Raises KeyError for an unknown model.
        """
        for name in (first, second):
            strength = self.ratings[name].strength
            if strength.value is None:
                return Contrast(Estimate(None, self.n, None, self.method, f"{name}: {strength.reason}"), None)
        i, j = self.rated.index(first), self.rated.index(second)
        value = float(self.theta[i] - self.theta[j])
        variance = float(self.covariance[i, i] + self.covariance[j, j] - 2 * self.covariance[i, j])
        of = min(i, j, key=lambda model: float(self.spread.df[model]))
        difference = _estimate(value, variance, self.method, n=self.n, spread=self.spread, model=of, level=self.level)
        if difference.interval is None:
            return Contrast(difference, None)
        return Contrast(difference, float(2 * stdtr(self.spread.df[of], -abs(value) / sqrt(variance))))


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
    sandwich (`clustered_covariance`) over groups, if there are more of them than models; else over items, which
    the method `prompts-fixed` and `notes` say: another sample of prompts is not what its interval is about.
    Intervals use t with as many clusters, less one, as would weigh the same if all had equally many of the model's
    votes; as of win rates, there are none from fewer than eight, or where one has nearly all votes (`Spread`). Rank
    ranges are quantiles over `draws` draws (`ranks.rank_ranges`); tiers use Benjamini-Hochberg at rate `q` over all
    pairs of models (`ranks.tiers`).

    Strengths exist only among models that are linked by wins in both directions (`strengths.rateable`). The
    others' are None rather than infinite: a model that only won or only lost still has its place in the
    order, with the widest range, and one that is not connected has none; `warnings` names them. One that only lost to
    the rated models widens nobody else's range. Raises
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

    clustering = Clustering.of(groups[rows], items[rows], size)
    covariance = np.zeros((size, size))
    if clustering.count > 1:
        covariance = clustered_covariance(
            votes=core, theta=theta, wins=core_wins, cluster=clustering.codes, clusters=clustering.count
        )
    method = METHOD if clustering.by == "group" else PROMPTS_FIXED
    solution = Solution(votes, wins, rated, core, theta, covariance, clustering, method)
    return solution.rating(rng=rng, level=level, draws=draws, q=q)


@dataclass(frozen=True, eq=False, slots=True)
class Solution:
    """Strengths `theta` (m,) with `covariance` (m, m) of the `rated` (M,) of all models of `votes`, whose table of wins
    is `wins` (M, M); `core` are the votes between those.
    """

    votes: Votes
    wins: FloatArray
    rated: BoolArray
    core: Votes
    theta: FloatArray
    covariance: FloatArray
    clustering: Clustering
    method: str

    def rating(self, *, rng: np.random.Generator, level: float, draws: int, q: float) -> BradleyTerry:
        """Every model with its interval, rank range and tier, as `fit` describes them."""
        votes, theta, covariance, clusters = self.votes, self.theta, self.covariance, self.clustering.count
        standing = standings(models=votes.models, wins=self.wins, rated=self.rated, theta=theta)
        spread = Spread.of(self.core, self.clustering.codes, clusters)
        ranges: list[tuple[int, int, int]] = []
        best = np.ones(len(theta), dtype=np.bool_)
        if np.trace(covariance) > _NO_VARIANCE and (spread.df > 0).any():
            df = spread.df
            low, high = rank_ranges(theta=theta, covariance=covariance, df=df, rng=rng, draws=draws, level=level)
            tier = tiers(theta=theta, covariance=covariance, df=df, q=q)
            ranges = list(zip(low.tolist(), high.tolist(), tier.tolist(), strict=True))
            best = may_be_best(theta=theta, covariance=covariance, df=df, rng=rng, draws=draws, level=level)

        n = votes.played()
        place = np.cumsum(self.rated) - 1
        above = standing.ranked - len(theta) - sum(standing.below)
        ratings: dict[str, Rating] = {}
        for model, name in enumerate(votes.models):
            if not self.rated[model]:
                strength = Estimate(None, int(n[model]), None, self.method, standing.reason[model])
                ratings[name] = _rating(strength, standing, model, None, 0)
                continue
            i = place[model]
            strength = _estimate(
                float(theta[i]),
                float(covariance[i, i]),
                self.method,
                n=int(n[model]),
                spread=spread,
                model=int(i),
                level=level,
            )
            ratings[name] = _rating(strength, standing, model, ranges[i] if ranges else None, above)
        return BradleyTerry(
            ratings=ratings,
            rated=self.core.models,
            theta=theta,
            covariance=covariance,
            spread=spread,
            best=best,
            tested=bool(ranges),
            islands=standing.islands,
            n=len(self.core.y),
            clusters=clusters,
            clustered_by=self.clustering.by,
            method=self.method,
            level=level,
            notes=self.clustering.notes,
            warnings=(*self.clustering.warnings, *standing.warnings),
        )


@dataclass(frozen=True, eq=False, slots=True)
class Clustering:
    """Which votes depend on one another: `codes` (n,) of `count` clusters, `by` group or item."""

    codes: npt.NDArray[np.int32]
    count: int
    by: Literal["group", "item"]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, groups: npt.NDArray[Any], items: npt.NDArray[Any], models: int, *, covariates: int = 0) -> Clustering:
        """By group if there are more groups than models and covariates, else by item."""
        parameters = models + covariates
        codes, count = dense_codes(groups)
        if count > parameters or not models:
            return cls(codes.astype(np.int32), count, "group")
        beside = "" if not covariates else " and 1 covariate" if covariates == 1 else f" and {covariates} covariates"
        what = f"{models} models{beside}"
        note = f"{count} groups are too few for {what}: clustered by item, prompts are treated as fixed"
        codes, count = dense_codes(items)
        enough = count >= max(FEWEST_ITEMS, parameters + 1)
        rough = () if enough else (f"only {count} items for {what}: the intervals are rough",)
        return cls(codes.astype(np.int32), count, "item", (note,), rough)


def _rating(
    strength: Estimate, standing: Standing, model: int, drawn: tuple[int, int, int] | None, above: int
) -> Rating:
    """`above`: how many unrated models may stand above a rated one."""
    rank = standing.rank[model]
    if rank is None:
        return Rating(strength, None, None, None, None)
    if drawn is None:
        # The order is known, its certainty is not.
        lowest = standing.ranked if strength.value is None else standing.ranked - sum(standing.below)
        return Rating(strength, rank, 1, max(lowest, rank), None)
    low, high, tier = drawn
    # Any of those above, or none of them.
    return Rating(strength, rank, min(low, rank), max(high + above, rank), tier)


def _estimate(
    value: float, variance: float, method: str, *, n: int, spread: Spread, model: int, level: float
) -> Estimate:
    """The value with its interval by t with the degrees of freedom of this model's votes."""
    groups = int(spread.groups[model])
    if reason := no_interval(groups=groups, effective=float(spread.effective[model])):
        return Estimate(value, n, None, method, reason, groups=groups)
    if variance <= _NO_VARIANCE:
        return Estimate(value, n, None, method, NO_VARIATION, groups=groups)
    error = sqrt(variance)
    margin = t_quantile(level, float(spread.df[model])) * error
    interval = Interval(value - margin, value + margin, level, method)
    return Estimate(value, n, interval, method, se=error, groups=groups)
