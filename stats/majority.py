"""One verdict per item from several annotators, under a named rule."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from stats.arrays import IntArray
from stats.results import StatisticsError
from stats.verdicts import FIRST, MISSING, SECOND, TIE, UNDECIDED, VERDICTS, encode, words


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


RULES: dict[str, Callable[[IntArray], IntArray]] = {"mllm-bench": _mllm_bench, "plurality": _plurality}
