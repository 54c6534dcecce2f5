"""Bradley-Terry strengths from a table of wins: which models can be rated, and the maximum of the likelihood."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.special import expit, log_expit

from stats.arrays import BoolArray, FloatArray, IntArray, blocks, check_lengths, counted
from stats.results import InvalidCount, InvalidOutcome, StatisticsError

_LONGEST_STEP = 5.0  # natural log: beyond it the curvature at the old point says nothing
_SETTLED = 1e-10  # log-likelihood
_ROUNDING = 1e-13
_MOST_STEPS = 200


class NotConverged(StatisticsError):
    """Newton's method did not reach the maximum: the wins are all but separable."""


@dataclass(frozen=True, eq=False, slots=True)
class Votes:
    """Comparisons, one per row: model codes `a` and `b`, and `y` = 1 where a won, 0 where b did, 0.5 for a
    tie.

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
        if not ((outcome == 1) | (outcome == 0) | (outcome == 0.5)).all():
            raise InvalidOutcome("an outcome is 1, 0.5 or 0")
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
