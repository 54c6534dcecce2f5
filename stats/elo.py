"""Elo as Chatbot Arena computes it: by the order of the votes, or by the bootstrap of that.

Elo follows the last votes: its interval is the noise of the step size, some 62 points at K = 4 however many
votes there are. It is shown beside the Bradley-Terry rating, never in its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, exp, log

import numpy as np
import numpy.typing as npt

from stats.arrays import FloatArray
from stats.bradley_terry import Votes, information, rateable, solve
from stats.proportions import NOTHING
from stats.results import Estimate, Interval

ONLINE = "online"
ONLINE_BOOTSTRAP = "online-bootstrap"

ALIKE = "every resample gives the same rating"
_TOLERANCE = 1.0  # Elo points left of a start that was `scale` points off
_CHUNK = 64  # votes drawn at a time for each replicate


def online(
    *,
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    y: npt.ArrayLike,
    models: Sequence[str],
    k: float = 4,
    scale: float = 400,
    base: float = 10,
    start: float = 1000,
) -> dict[str, Estimate]:
    """Elo after one pass over the votes in the order given, by model; no interval.

    `a`, `b` (n,) are positions in `models`; `y` is 1 where a won, 0 where b did, 0.5 for a tie. After each
    vote r_a += k (y - 1 / (1 + base^((r_b - r_a) / scale))), and r_b loses as much (Elo 1978; FastChat). A
    model without votes is None. Raises LengthMismatch, InvalidOutcome.
    """
    votes = Votes.checked(a=a, b=b, y=y, models=models)
    unit = log(base) / scale
    ratings = [float(start)] * len(votes.models)
    for i, j, outcome in zip(votes.a.tolist(), votes.b.tolist(), votes.y.tolist(), strict=True):
        change = k * (outcome - 1 / (1 + exp((ratings[j] - ratings[i]) * unit)))
        ratings[i] += change
        ratings[j] -= change
    return {
        name: Estimate(rating, n, None, ONLINE) if n else Estimate(None, 0, None, ONLINE, NOTHING)
        for name, rating, n in zip(votes.models, ratings, _counts(votes), strict=True)
    }


def online_bootstrap(
    *,
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    y: npt.ArrayLike,
    models: Sequence[str],
    rng: np.random.Generator,
    k: float = 4,
    scale: float = 400,
    base: float = 10,
    start: float = 1000,
    replicates: int = 1000,
    level: float = 0.95,
) -> dict[str, Estimate]:
    """Median and percentile interval of `online` over resampled votes, by model (FastChat's bootstrap Elo).

    A replicate draws n votes with replacement and passes over them in the order drawn. The draws are
    independent and the chain forgets its past at the rate k ln(base)/scale lambda2 per vote, lambda2 being
    the smallest eigenvalue above 0 of the information per vote. So of many votes only the last T = ln(scale/1
    point) / rate matter, started at the Bradley-Terry strengths on Elo's scale; where n <= T, or those
    strengths do not exist, every replicate is a whole resample from `start`. Arguments and errors as
    `online`.
    """
    votes = Votes.checked(a=a, b=b, y=y, models=models)
    unit = log(base) / scale
    counts = _counts(votes)
    origin, steps = np.zeros(len(counts)), len(votes.y)
    voted = np.array(counts, dtype=np.int64) > 0
    wins = votes.wins()
    if voted.any() and rateable(wins)[voted].all():
        theta, needed = _truncation(wins[np.ix_(voted, voted)], k * unit, scale)
        if needed < steps:
            origin[voted] = theta
            steps = needed
    chains = _chains(votes, origin, steps=steps, step_size=k * unit, replicates=replicates, rng=rng)
    quantiles = np.quantile(start + chains / unit, [0.5 - level / 2, 0.5, 0.5 + level / 2], axis=0).T.tolist()
    return {
        name: _estimate(n, low, median, high, level)
        for name, n, (low, median, high) in zip(votes.models, counts, quantiles, strict=True)
    }


def _estimate(n: int, low: float, median: float, high: float, level: float) -> Estimate:
    if not n:
        return Estimate(None, 0, None, ONLINE_BOOTSTRAP, NOTHING)
    if high - low < 1e-6:
        return Estimate(median, n, None, ONLINE_BOOTSTRAP, ALIKE)
    return Estimate(median, n, Interval(low, high, level, ONLINE_BOOTSTRAP), ONLINE_BOOTSTRAP)


def _counts(votes: Votes) -> list[int]:
    return [int(n) for n in votes.played()]


def _truncation(wins: FloatArray, step_size: float, scale: float) -> tuple[FloatArray, int]:
    """The strengths, and the number of votes after which a chain has forgotten its start."""
    theta = solve(wins)
    slowest = float(np.linalg.eigvalsh(information(theta, wins))[1]) / float(wins.sum())
    return theta, ceil(log(scale / _TOLERANCE) / (step_size * slowest))


def _chains(
    votes: Votes, origin: FloatArray, *, steps: int, step_size: float, replicates: int, rng: np.random.Generator
) -> FloatArray:
    """Ratings in natural log from `start` on, (replicates, models), after `steps` votes drawn for each
    replicate.

    All replicates take a step together; ratings are one flat array, so that a step is two gathers and two
    scatters. Single precision: its rounding is a hundredth of a point, and the work is bound by memory.
    """
    size = len(origin)
    bits = size.bit_length()
    # A vote in one number is one look-up. Sorted, so that the same votes in another order give the same draws.
    packed = np.sort((votes.a.astype(np.int64) << bits | votes.b) << 2 | (2 * votes.y).astype(np.int64))
    flat = np.tile(origin, replicates).astype(np.float32)
    offset = np.arange(replicates) * size
    for begin in range(0, steps, _CHUNK):
        drawn = packed[rng.integers(len(packed), size=(min(_CHUNK, steps - begin), replicates))]
        first = (drawn >> bits + 2) + offset
        second = (drawn >> 2 & (1 << bits) - 1) + offset
        gain = ((drawn & 3) * (step_size / 2)).astype(np.float32)
        for i, j, won in zip(first, second, gain, strict=True):
            rating_a, rating_b = flat[i], flat[j]
            change = np.exp(rating_b - rating_a)
            change += 1
            np.divide(np.float32(step_size), change, out=change)
            np.subtract(won, change, out=change)
            rating_a += change
            rating_b -= change
            flat[i], flat[j] = rating_a, rating_b
    return flat.reshape(replicates, size).astype(np.float64)
