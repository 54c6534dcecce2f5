"""How long the answers of pairs are and how they are written: what verdicts may have followed instead of quality."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from leaderboard import votes
from leaderboard.hidden import unmeasured_items
from leaderboard.scope import LENGTH, NO_CONTROL, Scope
from leaderboard.votes import arrays
from stats.arrays import BoolArray, FloatArray
from stats.controlled import contrast

UNITS = ("tokens", "words")


def lengths(scope: Scope, items: Any) -> tuple[tuple[FloatArray, FloatArray], str]:
    """The lengths of the first and the second answer of ``items`` (ids (n,)), NaN where unknown or not to be told, and
    their unit: tokens if all are known, otherwise words.
    """
    untold = np.isin(items, unmeasured_items(scope))
    for unit in UNITS:
        item, first, second = arrays.lengths(scope.benchmark, unit)
        known, place = votes.locate(item, items)
        if len(item):
            unknown = ~known | (first[place] < 0) | (second[place] < 0)
            sides = tuple(np.where(unknown | untold, np.nan, side[place]) for side in (first, second))
            if unit == UNITS[-1] or not unknown.any():
                return (sides[0], sides[1]), unit
    nothing = np.full(len(items), np.nan)
    return (nothing, nothing), UNITS[-1]


@dataclass(frozen=True, eq=False, slots=True)
class Covariates:
    """For n rows, by name: (a - b) / (a + b) of what the two answers have. ``known`` (n,) marks the rows of which both
    texts are there, and may be told of; ``units`` says what was counted.
    """

    values: dict[str, FloatArray]
    known: BoolArray
    units: dict[str, str]


def covariates(scope: Scope, items: Any, control: str) -> Covariates:
    """What ``control`` takes out, of the ``items`` (ids (n,)). A text without a word is none."""
    values: dict[str, FloatArray] = {}
    known, units = ~np.isin(items, unmeasured_items(scope)), {}
    for name in control.split(",") if control != NO_CONTROL else ():
        if name == LENGTH:
            (first, second), units[LENGTH] = lengths(scope, items)
            known &= (first > 0) & (second > 0)
            values[LENGTH] = contrast(first, second)
            continue
        item, *sides = arrays.styles(scope.benchmark)
        there, place = votes.locate(item, items)
        first, second = (side[place] if len(item) else np.full(len(items), -1) for side in sides)
        known &= there & (first >= 0) & (second >= 0)
        of_second = arrays.style_counts(second)
        for mark, of_first in arrays.style_counts(first).items():
            values[mark], units[mark] = contrast(of_first, of_second[mark]), mark
    return Covariates({name: np.where(known, column, 0.0) for name, column in values.items()}, known, units)
