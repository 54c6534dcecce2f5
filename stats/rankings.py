"""How far a judge's ranking is from people's: the normalized Levenshtein distance."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt
from rapidfuzz.distance import Levenshtein

from stats.arrays import FloatArray
from stats.proportions import mean
from stats.results import Estimate, InvalidCount, LengthMismatch


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
    known: dict[tuple[str, str], float] = {}
    found = np.empty(len(first))
    for at, pair in enumerate(zip(first, second, strict=True)):
        value = known.get(pair)
        if value is None:
            value = known[pair] = distance(*pair)
        found[at] = value
    return found


def mean_distance(*, first: Sequence[str], second: Sequence[str], cluster: npt.ArrayLike) -> Estimate:
    """The mean distance with the interval of ``proportions.mean``; rows may share a cluster."""
    return mean(values=distances(first=first, second=second), cluster=cluster)
