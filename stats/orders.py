"""One verdict per item and repeat from a judge that saw the pair in several orders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from stats.arrays import BoolArray, blocks
from stats.results import DuplicateVerdict
from stats.verdicts import FIRST, MISSING, SECOND, TIE, encode, words


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many of the asked (item, repeat) have a verdict in every order; only those count."""

    counted: int
    asked: int


@dataclass(frozen=True, eq=False, slots=True)
class CombinedOrders:
    """`outcomes`: one row per counted item and repeat, columns `item`, `repeat`, `choice` (first, second or
    tie) and the number of votes for each side, `first` and `second`.
    """

    outcomes: pd.DataFrame
    coverage: Coverage


def combine_orders(*, judgments: pd.DataFrame, orders: int) -> CombinedOrders:
    """Combine the verdicts of one judge over the presented orders (MLLM-Bench, Table 5), vectorised.

    `judgments` has the columns `item`, `repeat`, `order` and `choice`, the choice in canonical item order and
    missing where the judge gave none; one row per judgment asked for. `orders` is how many orders each item
    and repeat should have: 2 for both, else 1.

    More votes for a side win. Equal votes are a tie: one each, none with every order undecided or a tie. One
    vote and one undecided are a win for that side. An item and repeat with a missing order is not counted,
    and `coverage` says how many are. Raises DuplicateVerdict where an item, repeat and order occurs twice;
    UnknownVerdict.
    """
    codes = encode(judgments["choice"])
    if judgments.duplicated(["item", "repeat", "order"]).any():
        raise DuplicateVerdict("an item has two judgments in the same order and repeat")
    unit = judgments.groupby(["item", "repeat"], sort=False, dropna=False).ngroup().to_numpy()
    asked = int(unit.max(initial=-1)) + 1
    found = combine(unit=unit, units=asked, choice=codes, orders=orders)
    outcomes = judgments.drop_duplicates(["item", "repeat"])[["item", "repeat"]]
    outcomes = outcomes.assign(choice=words(found.choice), first=found.first, second=found.second)
    return CombinedOrders(outcomes[found.complete].reset_index(drop=True), Coverage(int(found.complete.sum()), asked))


@dataclass(frozen=True, eq=False, slots=True)
class Combined:
    """By unit, all of shape (units,): the outcome as a code of `verdicts`, the votes for each side, and whether
    every order has a verdict.
    """

    choice: npt.NDArray[np.int8]
    first: npt.NDArray[np.int16]
    second: npt.NDArray[np.int16]
    complete: BoolArray


def combine(*, unit: npt.NDArray[Any], units: int, choice: npt.NDArray[Any], orders: int) -> Combined:
    """What `combine_orders` does, on codes: `unit` (n,) numbers the item and repeat of each judgment, 0 .. units - 1;
    `choice` (n,) is its verdict, or MISSING.
    """
    first, second, given = (np.zeros(units, dtype=np.int16) for _ in range(3))
    for rows in blocks(len(unit)):
        at, said = unit[rows], choice[rows]
        for count, wanted in ((first, said == FIRST), (second, said == SECOND), (given, said != MISSING)):
            np.add.at(count, at[wanted], np.int16(1))
    outcome = np.full(units, TIE, dtype=np.int8)
    outcome[first > second] = FIRST
    outcome[first < second] = SECOND
    return Combined(outcome, first, second, given >= orders)
