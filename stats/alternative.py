"""May a judge stand in for annotators? The alternative annotator test (Calderon et al., arXiv 2501.10970)."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
import pandas as pd
from scipy.special import stdtr

from stats.arrays import BoolArray, FloatArray, IntArray
from stats.ranks import benjamini_yekutieli
from stats.results import DuplicateVerdict, StatisticsError

FEWEST = 30  # items of an annotator below which the test has too little power (2501.10970, section 3)


class UnknownMeasure(StatisticsError):
    """Labels are compared by equality or by distance, nothing else."""


@dataclass(frozen=True, slots=True)
class Annotator:
    """One annotator left out. ``advantage`` is the share of items on which the judge is at least as close as they are.

    ``p`` tests that the judge is worse than this annotator by ``epsilon`` or more; a small one speaks for the judge.
    """

    annotator: str
    n: int
    advantage: float
    annotator_advantage: float
    p: float | None
    rejected: bool


@dataclass(frozen=True, slots=True)
class Alternative:
    """``winning_rate`` is the share of annotators that the judge may replace; 0.5 or more passes.

    None, with the reason, where no annotator shares enough items with others.
    """

    annotators: tuple[Annotator, ...]
    winning_rate: float | None
    advantage: float | None
    passes: bool | None
    epsilon: float
    reason: str = ""


def alternative_annotator_test(
    *,
    labels: pd.DataFrame,
    judge: pd.DataFrame,
    measure: str = "equality",
    epsilon: float = 0.2,
    q: float = 0.05,
    fewest: int = FEWEST,
) -> Alternative:
    """Leave each annotator out, and ask whether the judge or the annotator is closer to the others.

    ``labels`` has the columns ``annotator``, ``item``, ``value`` (numbers or codes), one row per annotator and item;
    ``judge`` ``item`` and ``value``. Closeness on an item is the share of the others' labels that are the same
    (``equality``) or minus the root mean square distance to them (``distance``). Per annotator a one-sided t-test of
    mean(annotator at least as close) - mean(judge at least as close) < epsilon; false discovery rate q by
    Benjamini-Yekutieli. Annotators with fewer than ``fewest`` shared items are told and not tested. Raises
    UnknownMeasure, DuplicateVerdict.
    """
    if measure not in ("equality", "distance"):
        raise UnknownMeasure(f"{measure!r} is neither equality nor distance")
    if labels.duplicated(["annotator", "item"]).any():
        raise DuplicateVerdict("an annotator has two labels on one item")
    of_annotator, names = pd.factorize(labels["annotator"], sort=True)
    of_item, items = pd.factorize(labels["item"], sort=True)
    value = labels["value"].to_numpy(dtype=np.float64)
    judged = judge.set_index("item")["value"].reindex(items).to_numpy(dtype=np.float64)[of_item]
    said = np.isfinite(value)
    others = np.bincount(of_item[said], minlength=len(items))[of_item] - 1
    rows = np.flatnonzero(said & np.isfinite(judged) & (others > 0))
    rows = rows[np.lexsort((of_item[rows], of_annotator[rows]))]
    closeness = _by_counts if measure == "equality" else _by_squares
    person, machine = closeness(of_item, value, said, judged, others, rows)
    ends = np.searchsorted(of_annotator[rows], np.arange(len(names) + 1)).tolist()
    results = [
        _left_out(str(name), person[begin:end], machine[begin:end], epsilon)
        for name, begin, end in zip(names, ends, ends[1:], strict=False)
    ]
    tested = [result for result in results if result.p is not None and result.n >= fewest]
    if not tested:
        return Alternative(tuple(results), None, None, None, epsilon, f"no annotator shares {fewest} items with others")
    rejected = benjamini_yekutieli(p=[result.p for result in tested if result.p is not None], q=q)
    wins = {result.annotator: bool(won) for result, won in zip(tested, rejected, strict=True)}
    winning = sum(wins.values()) / len(wins)
    return Alternative(
        annotators=tuple(
            Annotator(
                result.annotator,
                result.n,
                result.advantage,
                result.annotator_advantage,
                result.p if result.annotator in wins else None,
                wins.get(result.annotator, False),
            )
            for result in results
        ),
        winning_rate=winning,
        advantage=float(np.mean([result.advantage for result in tested])),
        passes=winning >= 0.5,
        epsilon=epsilon,
    )


def _left_out(name: str, person: FloatArray, machine: FloatArray, epsilon: float) -> Annotator:
    """Of one annotator's shared items (n,): how close they are to the others, and how close the judge is."""
    n = len(person)
    if n == 0:
        return Annotator(name, 0, 0.0, 0.0, None, False)
    person_wins, machine_wins = person >= machine, machine >= person
    change = person_wins.astype(np.float64) - machine_wins.astype(np.float64)
    p = None
    if n > 1:
        spread = float(change.std(ddof=1))
        over = float(change.mean()) - epsilon
        p = float(stdtr(n - 1, over / (spread / sqrt(n)))) if spread > 0 else float(over >= 0)
    return Annotator(name, n, float(machine_wins.mean()), float(person_wins.mean()), p, False)


# How close an annotator and the judge are to the others' labels, of these ``rows`` of the long table, each (rows,). The
# others are all labels of the item without the annotator's own, so that nothing is as large as people times items.


def _by_counts(
    item: IntArray, value: FloatArray, said: BoolArray, judged: FloatArray, others: IntArray, rows: IntArray
) -> tuple[FloatArray, FloatArray]:
    """The share of the others' labels that are the same."""
    values = np.unique(value[said])
    key = item * len(values) + np.searchsorted(values, value)
    keys, times = np.unique(key[said], return_counts=True)

    def same(of: FloatArray) -> FloatArray:
        """How often each item got this value, 0 where it is nobody's."""
        code = np.minimum(np.searchsorted(values, of), len(values) - 1)
        wanted = item[rows] * len(values) + code
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.where((values[code] == of) & (keys[at] == wanted), times[at], 0.0)

    own = value[rows] == judged[rows]
    by_person: FloatArray = (same(value[rows]) - 1) / others[rows]
    by_judge: FloatArray = (same(judged[rows]) - own) / others[rows]
    return by_person, by_judge


def _by_squares(
    item: IntArray, value: FloatArray, said: BoolArray, judged: FloatArray, others: IntArray, rows: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Minus the root mean square distance, from the others' sum and sum of squares; whole numbers lose no digit."""
    middle = np.round(value[said].mean()) if said.any() else 0.0
    near = np.where(said, value - middle, 0.0)
    sums, squares = (np.bincount(item, weights=column)[item[rows]] for column in (near, near * near))
    own, n = near[rows], others[rows]
    sums, squares = sums - own, squares - own * own

    def distance(of: FloatArray) -> FloatArray:
        apart: FloatArray = np.maximum(squares - 2 * of * sums + n * (of * of), 0.0) / n
        return np.sqrt(apart)

    return -distance(own), -distance(judged[rows] - middle)
