"""Rankings: how far two are apart, and how far they agree."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import atanh, factorial, sqrt, tanh

import numpy as np
import numpy.typing as npt
from rapidfuzz.distance import Levenshtein

from stats.arrays import FloatArray, check_lengths, mean_ranks
from stats.correlation import CONSTANT, tau_b
from stats.proportions import mean, normal_quantile
from stats.results import Estimate, Interval, InvalidCount, LengthMismatch, NotFinite


def distance(first: Sequence[Hashable], second: Sequence[Hashable]) -> float:
    """Edits to turn one sequence into the other, divided by the longer length: 0 is the same order, 1 the farthest.

    "ABCD" and "DCBA" give 1, "ABCD" and "BACD" 0.5 (MLLM-as-a-Judge, arXiv 2402.04788, 3.2). Raises InvalidCount for
    two empty sequences.
    """
    if not first and not second:
        raise InvalidCount("two empty rankings")
    return float(Levenshtein.normalized_distance(first, second))


def distances(*, first: Sequence[str], second: Sequence[str]) -> FloatArray:
    """The distance of each pair of rankings, shape (n,). The few distinct pairs are measured once each.

    Raises LengthMismatch.
    """
    if len(first) != len(second):
        raise LengthMismatch(f"first has {len(first)}, second has {len(second)}")
    cache: dict[tuple[str, str], float] = {}
    result = np.empty(len(first))
    for at, pair in enumerate(zip(first, second, strict=True)):
        value = cache.get(pair)
        if value is None:
            value = cache[pair] = distance(*pair)
        result[at] = value
    return result


def mean_distance(*, first: Sequence[str], second: Sequence[str], cluster: npt.ArrayLike) -> Estimate:
    """The mean distance with the interval of ``proportions.mean``; rows may share a cluster."""
    return mean(values=distances(first=first, second=second), cluster=cluster, ends=(0.0, 1.0))


# ---- How far two rankings of the same models agree, and whether chance would do as well ----


BONETT_WRIGHT = "fisher z, bonett-wright"
FEW = "fewer than four pairs"
PERFECT = "a perfect correlation has no interval"
MOST_EXACT = 8  # models whose permutations are all gone through: 40,320
DRAWS = 20_000
EXACT, DRAWN = "all permutations", "random permutations"


@dataclass(frozen=True, slots=True)
class RankCorrelation:
    """``p`` is the share of permutations with a correlation at least as far from 0; ``test`` says which were tried."""

    spearman: Estimate
    kendall: float | None
    p: float | None
    test: str


def rank_correlation(
    *, x: npt.ArrayLike, y: npt.ArrayLike, rng: np.random.Generator, level: float = 0.95
) -> RankCorrelation:
    """Spearman's rho of two boards' numbers for the same n models, equal numbers sharing their mean rank.

    p by permutation: exact, over all n! of them, up to 8 models; else (1 + #)/(B + 1) over 20,000 drawn ones (Phipson
    and Smyth 2010). Interval: Fisher's with the standard error of Bonett and Wright (2000). Kendall's tau-b beside it.
    None where a column is constant. Raises LengthMismatch, NotFinite.
    """
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    check_lengths(x=first, y=second)
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise NotFinite("a number of a board is not finite")
    n = len(first)
    a, b = _standardised(first), _standardised(second)
    if a is None or b is None:
        return RankCorrelation(Estimate(None, n, None, "spearman", CONSTANT), None, None, "")
    value = max(-1.0, min(1.0, float(a @ b)))
    if n <= MOST_EXACT:
        orders = np.asarray(list(permutations(range(n))), dtype=np.int64)
        reached = int((np.abs(b[orders] @ a) >= abs(value) - 1e-9).sum())
        p, test = reached / factorial(n), EXACT
    else:
        permuted = rng.permuted(np.tile(b, (DRAWS, 1)), axis=1)
        reached = int((np.abs(permuted @ a) >= abs(value) - 1e-9).sum())
        p, test = (1 + reached) / (DRAWS + 1), DRAWN
    kendall = float(tau_b(first, second, np.ones((1, n)))[0])
    return RankCorrelation(_with_interval(value, n, level), kendall, p, test)


def _standardised(values: FloatArray) -> FloatArray | None:
    """Ranks with mean 0 and length 1, so that a product of two is rho; None where all are equal."""
    ranks = mean_ranks(values)
    centred = ranks - ranks.mean() if len(values) else ranks
    length = float(np.sqrt(centred @ centred))
    return centred / length if length > 0 else None


def _with_interval(value: float, n: int, level: float) -> Estimate:
    method = f"spearman, {BONETT_WRIGHT}"
    if n < 4:
        return Estimate(value, n, None, method, FEW)
    if abs(value) > 1 - 1e-12:
        return Estimate(value, n, None, method, PERFECT)
    error = sqrt((1 + value * value / 2) / (n - 3))
    margin = normal_quantile(level) * error
    ends = Interval(tanh(atanh(value) - margin), tanh(atanh(value) + margin), level, method)
    return Estimate(value, n, ends, method, se=error * (1 - value * value), groups=n)
