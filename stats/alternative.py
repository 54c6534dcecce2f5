"""May a judge stand in for annotators? The alternative annotator test (Calderon et al., arXiv 2501.10970)."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
import pandas as pd
from scipy.special import stdtr

from stats.arrays import FloatArray
from stats.ranks import benjamini_yekutieli
from stats.results import StatisticsError

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
    Benjamini-Yekutieli. Annotators with fewer than ``fewest`` shared items are told and not tested.
    """
    if measure not in ("equality", "distance"):
        raise UnknownMeasure(f"{measure!r} is neither equality nor distance")
    table = labels.pivot(index="item", columns="annotator", values="value")
    judged = judge.set_index("item")["value"].reindex(table.index).to_numpy(dtype=np.float64)
    values = table.to_numpy(dtype=np.float64)
    results = [_left_out(str(name), values, judged, at, measure, epsilon) for at, name in enumerate(table.columns)]
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


def _left_out(name: str, values: FloatArray, judged: FloatArray, at: int, measure: str, epsilon: float) -> Annotator:
    left_out, rest = values[:, at], np.delete(values, at, axis=1)
    shared = np.isfinite(left_out) & np.isfinite(judged) & np.isfinite(rest).any(axis=1)
    n = int(shared.sum())
    if n == 0:
        return Annotator(name, 0, 0.0, 0.0, None, False)
    person, machine = (_closeness(candidate[shared], rest[shared], measure) for candidate in (left_out, judged))
    person_wins, machine_wins = person >= machine, machine >= person
    change = person_wins.astype(np.float64) - machine_wins.astype(np.float64)
    p = None
    if n > 1:
        spread = float(change.std(ddof=1))
        over = float(change.mean()) - epsilon
        p = float(stdtr(n - 1, over / (spread / sqrt(n)))) if spread > 0 else float(over >= 0)
    return Annotator(name, n, float(machine_wins.mean()), float(person_wins.mean()), p, False)


def _closeness(values: FloatArray, others: FloatArray, measure: str) -> FloatArray:
    present = np.isfinite(others)
    differences = np.where(present, others - values[:, None], 0.0)
    count = present.sum(axis=1)
    if measure == "equality":
        close: FloatArray = (present & (differences == 0)).sum(axis=1) / count
        return close
    distance: FloatArray = np.sqrt((differences * differences).sum(axis=1) / count)
    return -distance
