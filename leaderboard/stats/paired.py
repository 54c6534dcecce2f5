"""Two judges or models on the same items: is one right more often?"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.stats import binom

from leaderboard.stats.arrays import check_lengths, dense_codes
from leaderboard.stats.correlation import Test
from leaderboard.stats.results import InvalidCount

MCNEMAR = "mcnemar, exact"
SIGN_FLIPS = "sign flips by cluster"


def mcnemar(*, only_first: int, only_second: int) -> Test:
    """McNemar's exact test on the discordant items: 2 P(Bin(b + c, 1/2) <= min(b, c)), at most 1 (McNemar 1947).

    ``only_first`` and ``only_second`` count the items that one got right and the other did not. Raises InvalidCount.
    """
    if only_first < 0 or only_second < 0:
        raise InvalidCount(f"{only_first} and {only_second} discordant items")
    few, n = min(only_first, only_second), only_first + only_second
    p = min(1.0, 2 * float(binom.cdf(few, n, 0.5))) if n else 1.0
    return Test(float(only_first - only_second), None, p, MCNEMAR)


def difference(
    *,
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    cluster: npt.ArrayLike,
    rng: np.random.Generator,
    flips: int = 10_000,
) -> Test:
    """The mean difference of two columns on the same rows (n,), and its p when rows share clusters.

    0 and 1 with one row per cluster: McNemar's exact test. Otherwise the sign of each cluster's sum is flipped at
    random: p = (1 + #{|T*| >= |T|}) / (flips + 1) (Phipson and Smyth 2010). Raises LengthMismatch, InvalidCount.
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    check_lengths(first=a, second=b, cluster=np.asarray(cluster))
    if not len(a):
        raise InvalidCount("no items in common")
    codes, clusters = dense_codes(cluster)
    change = a - b
    value = float(change.mean())
    if clusters == len(a) and np.isin(a, (0, 1)).all() and np.isin(b, (0, 1)).all():
        exact = mcnemar(only_first=int((change > 0).sum()), only_second=int((change < 0).sum()))
        return Test(value, None, exact.p, MCNEMAR)
    sums = np.bincount(codes, weights=change, minlength=clusters)
    sums = sums[sums != 0]
    reached, block = 0, max(1, 4_000_000 // max(len(sums), 1))
    bound = abs(float(sums.sum())) - 1e-9
    for begin in range(0, flips, block):
        signs = rng.integers(0, 2, size=(min(block, flips - begin), len(sums)), dtype=np.int8) * 2 - 1
        reached += int((np.abs(signs @ sums) >= bound).sum())
    return Test(value, None, (1 + reached) / (flips + 1), SIGN_FLIPS)
