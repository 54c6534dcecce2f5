"""Verdicts on pairs: their codes, one verdict over presented orders, and what most people say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from stats.arrays import BoolArray, IntArray, blocks
from stats.results import DuplicateVerdict, StatisticsError, UnknownVerdict

VERDICTS = ("first", "second", "tie", "undecided")
FIRST, SECOND, TIE, UNDECIDED = range(4)
MISSING = -1
UNASKED = -2  # no verdict because nobody asked
_INDEX = pd.Index(VERDICTS, dtype=object)


def encode(choices: npt.ArrayLike | pd.Series[Any]) -> IntArray:
    """Codes of a column of verdicts (n,): 0 .. 3 in the order of VERDICTS, -1 where it is None or NaN.

    Raises UnknownVerdict for any other word.
    """
    if isinstance(choices, pd.Series) and isinstance(choices.dtype, pd.CategoricalDtype):
        of_category: IntArray = np.append(encode(choices.cat.categories), MISSING)
        return np.asarray(of_category[choices.cat.codes.to_numpy()])  # -1, no category, is the last
    column = np.asarray(choices, dtype=object)
    codes: IntArray = _INDEX.get_indexer(column).astype(np.int64)
    uncoded = column[codes == MISSING]
    if len(unknown := uncoded[pd.notna(uncoded)]):
        raise UnknownVerdict(f"{unknown[0]!r} is none of {', '.join(VERDICTS)}")
    return codes


def three_way(choices: npt.ArrayLike | pd.Series[Any]) -> IntArray:
    """Codes as `encode` gives them, with `undecided` read as a tie."""
    codes = encode(choices)
    return np.where(codes == UNDECIDED, TIE, codes)


def decided(choices: npt.ArrayLike | pd.Series[Any]) -> IntArray:
    """Codes as `encode` gives them, with everything but a decision for one side read as missing."""
    codes = encode(choices)
    return np.where(codes > SECOND, MISSING, codes)


def words(codes: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.object_]:
    """The verdicts of a column of codes (n,) as words, None where one is missing."""
    result: npt.NDArray[np.object_] = np.array([*VERDICTS, None], dtype=object)[codes]
    return result


# ---- One verdict per item and repeat from a judge that saw the pair in several orders ----


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
    units = int(unit.max(initial=-1)) + 1
    combined = combine(unit=unit, units=units, choice=codes, orders=orders)
    outcomes = judgments.drop_duplicates(["item", "repeat"])[["item", "repeat"]]
    outcomes = outcomes.assign(choice=words(combined.choice), first=combined.first, second=combined.second)
    return CombinedOrders(
        outcomes[combined.complete].reset_index(drop=True), Coverage(int(combined.complete.sum()), units)
    )


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
    `choice` (n,) is its verdict, MISSING or UNASKED.
    """
    first, second, counted = (np.zeros(units, dtype=np.int16) for _ in range(3))
    for rows in blocks(len(unit)):
        at, codes = unit[rows], choice[rows]
        for count, mask in ((first, codes == FIRST), (second, codes == SECOND), (counted, codes >= FIRST)):
            np.add.at(count, at[mask], np.int16(1))
    outcome = np.full(units, TIE, dtype=np.int8)
    outcome[first > second] = FIRST
    outcome[first < second] = SECOND
    return Combined(outcome, first, second, counted >= orders)


# ---- One verdict per item from several annotators, under a named rule ----


class UnknownRule(StatisticsError):
    """A majority rule that has no definition here."""


def majority(*, labels: pd.DataFrame, rule: str) -> pd.DataFrame:
    """The aggregate of each item's labels, vectorised.

    `labels` is a long table with the columns `item` and `choice` (a word of `verdicts.VERDICTS`, or missing:
    not counted). `rule`:

    * `mllm-bench`: the side with more votes wins; equal sides, or more `undecided` and `tie` together than
      votes for the leading side, give `undecided` (MLLM-Bench, arXiv 2311.13951, section 6.1).
    * `plurality`: the most frequent of the four verdicts; a draw at the top is a `tie`.

    Returns one row per item that has a verdict, in order of appearance: index `item`, columns `choice` and
    the counts `first`, `second`, `tie`, `undecided`. Raises UnknownRule, UnknownVerdict.
    """
    if rule not in RULES:
        raise UnknownRule(f"{rule!r} is none of {', '.join(RULES)}")
    codes = encode(labels["choice"])
    counted = codes != MISSING
    item, items = pd.factorize(labels["item"].to_numpy()[counted])
    size = len(VERDICTS)
    counts = np.bincount(item * size + codes[counted], minlength=len(items) * size).reshape(-1, size)
    table = pd.DataFrame(counts, columns=list(VERDICTS), index=pd.Index(items, name="item"))
    table.insert(0, "choice", words(RULES[rule](counts)))
    return table


def _mllm_bench(counts: IntArray) -> IntArray:
    first, second = counts[:, FIRST], counts[:, SECOND]
    unable = counts[:, TIE] + counts[:, UNDECIDED]
    winner = np.where(first > second, FIRST, SECOND)
    return np.where((first == second) | (unable > np.maximum(first, second)), UNDECIDED, winner)


def _plurality(counts: IntArray) -> IntArray:
    draw = (counts == counts.max(axis=1, keepdims=True)).sum(axis=1) > 1
    return np.where(draw, TIE, counts.argmax(axis=1))


def without_majority(
    *, verdict: npt.ArrayLike | pd.Series[Any], first: npt.ArrayLike, even: npt.ArrayLike, second: npt.ArrayLike
) -> BoolArray:
    """Where a rule of `majority` says tie or undecided for want of a majority: no more votes are ties and undecided,
    `even`, than are for one of the sides.
    """
    most: IntArray = np.maximum(np.asarray(first), np.asarray(second))
    neither = np.isin(encode(verdict), (TIE, UNDECIDED))
    return np.asarray(neither & (np.asarray(even) <= most))


RULES: dict[str, Callable[[IntArray], IntArray]] = {"mllm-bench": _mllm_bench, "plurality": _plurality}
