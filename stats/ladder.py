"""The Ladder: which score of a public test set is told, so that many scores together say little about single answers.

Blum and Hardt 2015, arXiv 1502.04585: a score is told only where it beats the best that was told by a step, rounded to
that step. Whoever changes a few answers and looks at the score learns nothing until a whole step is won.
"""

import math
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from stats.proportions import Clustered

LEAST = 10  # samples: the smallest step
ERRORS = 3  # standard errors of the paired difference


def step(*, hits: npt.ArrayLike, base: npt.ArrayLike, cluster: npt.ArrayLike) -> int:
    """By how many samples a score must beat the best one: a multiple of ten, so that it says little by itself.

    The larger of ten samples and three standard errors of the paired difference, rounded up to tens. ``hits`` are the
    new marks, 0 or 1, ``base`` those of the best that was told, or each sample's chance; ``cluster`` names the samples
    that share a picture. All of shape (n,), n > 0.
    """
    differences = np.asarray(hits, dtype=np.float64) - np.asarray(base, dtype=np.float64)
    error = len(differences) * Clustered.of(values=differences, cluster=cluster).error
    return LEAST * max(1, math.ceil(ERRORS * error / LEAST - 1e-9))


def told(*, hits: npt.ArrayLike, base: npt.ArrayLike, best: float, cluster: npt.ArrayLike) -> float | None:
    """The share that is told of a new score, None where it does not beat ``best`` (a share) by more than the ``step``.

    Rounded down to a whole number of steps, counted from no sample: it is more than ``best``, and at most the score.
    """
    marks = np.asarray(hits, dtype=np.float64)
    if not len(marks):
        return None
    size, right = step(hits=marks, base=base, cluster=cluster), int(marks.sum())
    if right <= best * len(marks) + size + 1e-9:
        return None
    return size * (right // size) / len(marks)


def step_of(n: int) -> int:
    """By how many of n samples a score must beat another of which nothing but the share is known: the larger of ten and
    three standard errors of the difference of two independent shares, in tens.
    """
    return LEAST * max(1, math.ceil(ERRORS * math.sqrt(n / 2) / LEAST))


def told_in_turn(shares: Iterable[float], n: int) -> list[float | None]:
    """What is told of each of somebody's scores over n samples, in the order in which they came: the share, rounded
    down to whole steps (``step_of``); None where it is no better than one before, or n is below ten.
    """
    found: list[float | None] = []
    best = -math.inf
    for share in shares:
        size = step_of(n) / n if n >= LEAST else math.inf
        is_better = share > best + size
        if is_better:
            best = size * math.floor(share / size + 1e-9)
        found.append(best if is_better else None)
    return found
