"""How far annotators agree beyond chance, and whether a judge says the same again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from stats.agreement import MEASURES, beyond_gwets_chance, distances
from stats.arrays import FloatArray, IntArray, check_finite, check_lengths, dense_codes, ratio
from stats.jackknife import Blocks, Scale, jackknife
from stats.proportions import mean, rate
from stats.results import Estimate, StatisticsError, UnequalRaters

ONE_VALUE = "all labels are the same: agreement beyond chance is undefined"

Metric = Literal["nominal", "ordinal", "interval"]


class UnknownMetric(StatisticsError):
    """A difference function other than nominal, ordinal or interval."""


def fleiss_kappa(
    *,
    unit: npt.ArrayLike,
    value: npt.ArrayLike,
    cluster: npt.ArrayLike | None = None,
    level: float = 0.95,
) -> Estimate:
    """Fleiss' kappa of a long table (n,): `unit` what was labelled, `value` the label; rows with a missing
    value are dropped.

    Every unit needs the same number of labels, at least two, by whomever (Fleiss 1971): else UnequalRaters,
    and alpha is the number to take. `cluster` (n,) groups units (those of one image); without it each stands by
    itself. Interval: jackknife by group. `n` counts labels. Raises LengthMismatch.
    """
    counts, _, groups = _counts(unit, value, cluster)
    raters = counts.sum(axis=1)
    if len(counts) and (raters.min() != raters.max() or raters[0] < 2):
        raise UnequalRaters(f"units have {raters.min()} to {raters.max()} labels")
    rows, pattern = _patterns(counts)
    agreeing = (rows * (rows - 1)).sum(axis=1)

    def kappa(weights: FloatArray) -> FloatArray:
        totals = weights @ rows
        n = totals.sum(axis=1)
        chance = ratio((totals**2).sum(axis=1), n * n)
        observed = ratio(weights @ agreeing, n * (raters.max(initial=2) - 1))
        return ratio(observed - chance, 1 - chance)

    return _by_group(kappa, pattern, len(rows), groups, "fleiss", int(counts.sum()), level)


def gwet(
    *,
    unit: npt.ArrayLike,
    value: npt.ArrayLike,
    measure: Literal["ac1", "ac2"],
    categories: Sequence[Any] = (),
    cluster: npt.ArrayLike | None = None,
    level: float = 0.95,
) -> Estimate:
    """Gwet's AC1 (2008) of a long table (n,), as `fleiss_kappa` takes it, or of numbers his AC2 (2014) with quadratic
    weights, for any number of labels on a unit.

    What is observed are units with two labels or more; the shares of labels in what chance would give are over all
    units with one, each with the same weight. `categories`: all that could have been said; those that nobody said
    count in what chance would give, too. `n` counts labels on the former. Raises LengthMismatch.
    """
    counts, labels, groups = _counts(unit, value, cluster, categories)
    rows, pattern = _patterns(counts)
    size = rows.sum(axis=1)
    pairable = size > 1
    chosen = MEASURES[measure]
    apart = distances(labels, chosen.power)
    # Each label agrees with the others on its unit, with itself by 1.
    alike = ((rows @ (1 - apart) - 1) * rows).sum(axis=1) / np.where(pairable, size * (size - 1), 1)
    shares = rows / np.maximum(size, 1)[:, None]

    def coefficient(weights: FloatArray) -> FloatArray:
        observed = ratio(weights @ (alike * pairable), weights @ pairable.astype(np.float64))
        total = weights.sum(axis=1, keepdims=True)
        return beyond_gwets_chance(observed, weights @ shares / np.maximum(total, 1), apart)

    n = int(counts[counts.sum(axis=1) > 1].sum())
    return _by_group(coefficient, pattern, len(rows), groups, chosen.name, n, level)


def krippendorff_alpha(
    *,
    unit: npt.ArrayLike,
    value: npt.ArrayLike,
    metric: Metric,
    cluster: npt.ArrayLike | None = None,
    level: float = 0.95,
) -> Estimate:
    """Krippendorff's alpha of a long table (n,): `unit` what was labelled, `value` the label; missing values
    are dropped.

    alpha = 1 - D_o / D_e on the counts of values per unit (Krippendorff 2011, "Computing Krippendorff's
    alpha-reliability"). `metric`: `nominal` for any labels, `ordinal` and `interval` for numbers. Units with
    one label are not pairable and do not count. `cluster` and interval as `fleiss_kappa`; `n` counts pairable
    labels. Raises LengthMismatch, UnknownMetric, and NotFinite for an infinity on the interval scale.
    """
    if metric not in ("nominal", "ordinal", "interval"):
        raise UnknownMetric(f"{metric!r} is none of nominal, ordinal, interval")
    counts, values, groups = _counts(unit, value, cluster)
    pairable = counts.sum(axis=1) > 1
    patterns, pattern = _patterns(counts[pairable])
    rows = patterns.astype(np.float64)
    labels = rows.sum(axis=1)
    # From the smallest value on: squares of large numbers would drown their differences.
    points = (values - values[0]).astype(np.float64) if metric == "interval" and len(values) else np.zeros(len(values))
    check_finite(value=points)

    def alpha(weights: FloatArray) -> FloatArray:
        totals = weights @ rows
        n = totals.sum(axis=1)
        if metric == "nominal":
            observed = weights @ ((labels**2 - (rows**2).sum(axis=1)) / (labels - 1))
            expected = n * n - (totals**2).sum(axis=1)
        else:
            # Both differences are squares (x_c - x_k)²; for ranks, x is a value's middle rank among all labels.
            x = np.cumsum(totals, axis=1) - totals / 2 if metric == "ordinal" else np.broadcast_to(points, totals.shape)
            within = labels * (x**2 @ rows.T) - (x @ rows.T) ** 2
            observed = (weights * within * (2 / (labels - 1))).sum(axis=1)
            squares = n * (totals * x**2).sum(axis=1)
            expected = 2 * (squares - (totals * x).sum(axis=1) ** 2)
            expected[expected < 1e-12 * squares] = 0
        return 1 - ratio((n - 1) * observed, expected)

    n = int(counts[pairable].sum())
    return _by_group(alpha, pattern, len(rows), groups[pairable], f"alpha, {metric}", n, level)


def _by_group(
    statistic: Callable[[FloatArray], FloatArray],
    pattern: IntArray,
    patterns: int,
    groups: npt.NDArray[Any],
    method: str,
    n: int,
    level: float,
) -> Estimate:
    """`pattern` and `groups` (units,); the statistic takes how often each pattern occurs."""
    if not n:
        return Estimate(None, 0, None, method, "nothing has two labels")
    blocks = Blocks.of(groups)
    return jackknife(
        table=blocks.table(pattern, patterns),
        statistic=statistic,
        n=n,
        scale=Scale.FISHER,
        method=method,
        undefined=ONE_VALUE,
        level=level,
    )


def _counts(
    unit: npt.ArrayLike, value: npt.ArrayLike, cluster: npt.ArrayLike | None, categories: Sequence[Any] = ()
) -> tuple[IntArray, npt.NDArray[Any], IntArray]:
    """How often each unit got each value, (units, values); the values, and `categories` that nobody gave, in ascending
    order; the group of each unit.
    """
    units, labels = pd.Series(unit), pd.Series(value)
    clusters = units if cluster is None else pd.Series(cluster)
    check_lengths(unit=units, value=labels, cluster=clusters)
    labelled = labels.notna().to_numpy()
    row, height = dense_codes(units[labelled])
    known = [pd.Series(categories)] if len(categories) else []
    column, values = pd.factorize(pd.concat([labels[labelled], *known]), sort=True)
    table = np.bincount(row * len(values) + column[: len(row)], minlength=height * len(values))
    groups = np.zeros(height, dtype=np.int64)
    groups[row] = dense_codes(clusters[labelled])[0]
    return table.reshape(height, len(values)), np.asarray(values), groups


def _patterns(counts: IntArray) -> tuple[IntArray, IntArray]:
    """The distinct rows of a table of counts, and which of them each row is."""
    sizes = counts.max(axis=0, initial=0) + 1
    if np.log2(sizes.astype(np.float64)).sum() < 62:
        # One number per row: sorting whole rows is some twenty times slower.
        _, where, pattern = np.unique(counts @ (np.cumprod(sizes) // sizes), return_index=True, return_inverse=True)
        return counts[where], pattern
    rows, pattern = np.unique(counts, axis=0, return_inverse=True)
    return rows, pattern.reshape(-1)


# ---- Whether a judge says the same again: its verdicts on an item over repeats (MLLM-as-a-Judge, Table 4) ----


@dataclass(frozen=True, slots=True)
class Steadiness:
    """``consistency``: the mean share that an item's most frequent verdict has of the repeats asked for; ``mcc``: the
    share of items on which more than half of these repeats are identical.
    """

    consistency: Estimate
    mcc: Estimate


def most_alike(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Of the table that ``steadiness`` takes, by item: ``alike``, how often its most frequent verdict was given, and
    ``group``.
    """
    sizes = verdicts.groupby(["item", "verdict"], sort=False, observed=True).size()
    by_item = sizes.groupby(level="item").max().rename("alike").to_frame()
    return by_item.join(verdicts.groupby("item")["group"].first())


def steadiness(verdicts: pd.DataFrame, *, asked: int) -> Steadiness:
    """Of a table with the columns ``item``, ``verdict`` (of any kind) and ``group``, one row an item and repeat.

    Shares are of the repeats that were ``asked`` for: a repeat without a verdict is no agreement. Rows of one group (an
    image, a prompt) depend on one another; intervals are those of ``proportions.mean`` and ``rate``.
    """
    of_items = most_alike(verdicts)
    modal, group = of_items["alike"].to_numpy(np.float64) / asked, of_items["group"].to_numpy()
    return Steadiness(mean(values=modal, cluster=group, ends=(0.0, 1.0)), rate(hits=modal > 0.5, cluster=group))
