"""How long the answers of pairs are and how they are written: what verdicts may have followed instead of quality."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bank.models import Benchmark
from leaderboard import votes
from leaderboard.definitions import LENGTH, NO_CONTROL
from leaderboard.votes import verdict_cache
from stats.arrays import BoolArray, FloatArray
from stats.controlled import contrast

UNITS = ("tokens", "words")


def lengths(benchmark: Benchmark, items: Any) -> tuple[tuple[FloatArray, FloatArray], str]:
    """The lengths of the first and the second answer of ``items`` (ids (n,)), NaN where unknown, and their unit: tokens
    if all are known, otherwise words.
    """
    for unit in UNITS:
        item, first, second = verdict_cache.lengths(benchmark, unit)
        known, place = votes.locate(item, items)
        if len(item):
            unknown = ~known | (first[place] < 0) | (second[place] < 0)
            sides = tuple(np.where(unknown, np.nan, side[place]) for side in (first, second))
            if unit == UNITS[-1] or not unknown.any():
                return (sides[0], sides[1]), unit
    nothing = np.full(len(items), np.nan)
    return (nothing, nothing), UNITS[-1]


@dataclass(frozen=True, eq=False, slots=True)
class Covariates:
    """For n rows, by name: (a - b) / (a + b) of what the two answers have. ``known`` (n,) marks the rows of which both
    texts are there; ``units`` says what was counted.
    """

    values: dict[str, FloatArray]
    known: BoolArray
    units: dict[str, str]


def covariates(benchmark: Benchmark, items: Any, control: str) -> Covariates:
    """What ``control`` takes out, of the ``items`` (ids (n,)). A text without a word is none."""
    values: dict[str, FloatArray] = {}
    known, units = np.ones(len(items), dtype=np.bool_), {}
    for name in control.split(",") if control != NO_CONTROL else ():
        if name == LENGTH:
            (first, second), units[LENGTH] = lengths(benchmark, items)
            known &= (first > 0) & (second > 0)
            values[LENGTH] = contrast(first, second)
            continue
        item, *sides = verdict_cache.styles(benchmark)
        there, place = votes.locate(item, items)
        first, second = (side[place] if len(item) else np.full(len(items), -1) for side in sides)
        known &= there & (first >= 0) & (second >= 0)
        of_second = verdict_cache.style_counts(second)
        for mark, of_first in verdict_cache.style_counts(first).items():
            values[mark], units[mark] = contrast(of_first, of_second[mark]), mark
    return Covariates({name: np.where(known, column, 0.0) for name, column in values.items()}, known, units)
