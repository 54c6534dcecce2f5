"""How much of what ratings differ by is the item, the rater, and the rest: intraclass correlations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from stats.arrays import FloatArray, IntArray, check_finite, check_lengths, dense_codes, ratio
from stats.jackknife import Blocks, Scale, jackknife, mean_over
from stats.results import Estimate

NO_PAIRS = "no two raters have an item in common, or all ratings are the same"
ICC = ("ICC(1)", "ICC(A,1)", "ICC(C,1)")


@dataclass(frozen=True, slots=True)
class Intraclass:
    """The reliability of a single rating, by the names of McGraw and Wong (1996); in Shrout and Fleiss (1979) these are
    ICC(1,1), ICC(2,1) and ICC(3,1).

    ``one_way``: raters differ by item; ``agreement``: how high a rater rates counts as error; ``consistency``: it does
    not.
    """

    one_way: Estimate
    agreement: Estimate
    consistency: Estimate


def intraclass(
    *,
    item: npt.ArrayLike,
    rater: npt.ArrayLike,
    value: npt.ArrayLike,
    cluster: npt.ArrayLike,
    stratum: npt.ArrayLike | None = None,
    level: float = 0.95,
) -> Intraclass:
    """Intraclass correlations of a long table (n,), a row for each rating, of which any may be missing.

    From half the mean squared difference of two ratings of one item (W), by one rater (R), with neither in common (B),
    and of two items, whoever rated them (T): ICC(1) = 1 - W / T, ICC(A,1) = 1 - W / B, ICC(C,1) = (B - W) / R. Where
    every rater rates every item, these are the mean squares of the analysis of variance in other words; where ratings
    are missing, each pair of ratings that is there counts once (Koch 1968, Technometrics 10:551). ``stratum`` as in
    ``cohen_kappa``. Interval: jackknife by group, on Fisher's scale; it is about other items and these raters. Raises
    LengthMismatch, NotFinite.
    """
    numbers = np.asarray(value, dtype=np.float64)
    strata, parts = dense_codes(np.zeros(len(numbers)) if stratum is None else stratum)
    of_item, of_rater, groups = np.asarray(item), np.asarray(rater), np.asarray(cluster)
    check_lengths(item=of_item, rater=of_rater, value=numbers, cluster=groups, stratum=strata)
    check_finite(value=numbers)
    people, count = dense_codes(of_rater)
    units, _ = dense_codes(dense_codes(of_item)[0] * parts + strata)
    numbers = numbers - (numbers.mean() if len(numbers) else 0.0)  # for the digits
    terms, first = _terms(units, people, count, numbers, strata, parts)
    table = Blocks.of(groups[first]).sums(terms)

    def estimate(at: int) -> Estimate:
        return jackknife(
            table=table,
            statistic=mean_over(lambda sums: _coefficients(sums, count)[at], parts),
            n=len(numbers),
            scale=Scale.FISHER,
            method=ICC[at],
            undefined=NO_PAIRS,
            level=level,
        )

    return Intraclass(estimate(0), estimate(1), estimate(2))


def _terms(
    units: IntArray, people: IntArray, count: int, numbers: FloatArray, strata: IntArray, parts: int
) -> tuple[csr_array, IntArray]:
    """What each unit adds to the sums of its stratum: pairs within it and their squared differences, then how many
    ratings, their sum and their sum of squares by each rater. And a row of each unit.
    """
    _, first, sizes = np.unique(units, return_index=True, return_counts=True)
    sums, squares = (np.bincount(units, weights=column, minlength=len(first)) for column in (numbers, numbers**2))
    within = np.stack([sizes * (sizes - 1), sizes * squares - sums**2], axis=1)
    width = 2 + 3 * count
    start = strata * width
    by_rater = [np.ones(len(numbers)), numbers, numbers**2]
    rated = csr_array(
        (
            np.concatenate(by_rater),
            (np.tile(units, 3), np.concatenate([start + 2 + part * count + people for part in range(3)])),
        ),
        shape=(len(first), parts * width),
    )
    at = (strata[first] * width)[:, None] + np.arange(2)
    pairs = csr_array(
        (within.ravel(), (np.repeat(np.arange(len(first)), 2), at.ravel())), shape=(len(first), parts * width)
    )
    return csr_array(rated + pairs), first


def _coefficients(sums: FloatArray, count: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    pairs, differences = sums[:, 0], sums[:, 1]
    n, total, squares = (sums[:, 2 + part * count : 2 + (part + 1) * count] for part in range(3))
    same_rater = (n * (n - 1)).sum(axis=1), (n * squares - total**2).sum(axis=1)
    all_n, all_total = n.sum(axis=1), total.sum(axis=1)
    others = all_n * (all_n - 1) - pairs, all_n * squares.sum(axis=1) - all_total**2 - differences
    neither = others[0] - same_rater[0], others[1] - same_rater[1]
    within, by_rater = ratio(differences, pairs), ratio(same_rater[1], same_rater[0])
    between, apart = ratio(others[1], others[0]), ratio(neither[1], neither[0])
    return 1 - ratio(within, between), 1 - ratio(within, apart), ratio(apart - within, by_rater)
