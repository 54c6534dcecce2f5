"""How far annotators agree beyond chance, and whether a judge says the same again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from stats.arrays import FloatArray, IntArray, check_lengths, dense_codes, ratio
from stats.proportions import mean, rate
from stats.resampling import bootstrap, distinct_rows
from stats.results import Estimate, StatisticsError, UnequalRaters

ONE_VALUE = "all labels are the same: agreement beyond chance is undefined"
UNIT_BOOTSTRAP = "bootstrap over units"

Metric = Literal["nominal", "ordinal", "interval"]


class UnknownMetric(StatisticsError):
    """A difference function other than nominal, ordinal or interval."""


def fleiss_kappa(
    *,
    unit: npt.ArrayLike,
    value: npt.ArrayLike,
    rng: np.random.Generator,
    replicates: int = 1000,
    level: float = 0.95,
) -> Estimate:
    """Fleiss' kappa of a long table (n,): `unit` what was labelled, `value` the label; rows with a missing
    value are dropped.

    Every unit needs the same number of labels, at least two, by whomever (Fleiss 1971): else UnequalRaters,
    and alpha is the number to take. Interval: bootstrap over units. `n` counts labels. Raises LengthMismatch.
    """
    counts, _ = _counts(unit, value)
    raters = counts.sum(axis=1)
    if len(counts) and (raters.min() != raters.max() or raters[0] < 2):
        raise UnequalRaters(f"units have {raters.min()} to {raters.max()} labels")
    rows, times = distinct_rows(counts)
    agreeing = (rows * (rows - 1)).sum(axis=1)

    def kappa(weights: FloatArray) -> FloatArray:
        totals = weights @ rows
        n = totals.sum(axis=1)
        chance = ratio((totals**2).sum(axis=1), n * n)
        observed = ratio(weights @ agreeing, n * (raters.max(initial=2) - 1))
        return ratio(observed - chance, 1 - chance)[:, None]

    (estimate,) = bootstrap(
        times=times,
        statistic=kappa,
        n=int(counts.sum()),
        rng=rng,
        replicates=replicates,
        level=level,
        method=UNIT_BOOTSTRAP,
        undefined=ONE_VALUE,
    )
    return estimate


def krippendorff_alpha(
    *,
    unit: npt.ArrayLike,
    value: npt.ArrayLike,
    metric: Metric,
    rng: np.random.Generator,
    replicates: int = 1000,
    level: float = 0.95,
) -> Estimate:
    """Krippendorff's alpha of a long table (n,): `unit` what was labelled, `value` the label; missing values
    are dropped.

    alpha = 1 - D_o / D_e on the counts of values per unit (Krippendorff 2011, "Computing Krippendorff's
    alpha-reliability"). `metric`: `nominal` for any labels, `ordinal` and `interval` for numbers. Units with
    one label are not pairable and do not count. Interval: bootstrap over units; `n` counts pairable labels.
    Raises LengthMismatch, UnknownMetric.
    """
    if metric not in ("nominal", "ordinal", "interval"):
        raise UnknownMetric(f"{metric!r} is none of nominal, ordinal, interval")
    counts, values = _counts(unit, value)
    rows, times = distinct_rows(counts[counts.sum(axis=1) > 1])
    rows = rows.astype(np.float64)
    labels = rows.sum(axis=1)
    # From the smallest value on: squares of large numbers would drown their differences.
    points = (values - values[0]).astype(np.float64) if metric == "interval" and len(values) else np.zeros(len(values))

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
        return (1 - ratio((n - 1) * observed, expected))[:, None]

    (estimate,) = bootstrap(
        times=times,
        statistic=alpha,
        n=int(times @ labels),
        rng=rng,
        replicates=replicates,
        level=level,
        method=UNIT_BOOTSTRAP,
        undefined=ONE_VALUE,
    )
    return estimate


def _counts(unit: npt.ArrayLike, value: npt.ArrayLike) -> tuple[IntArray, npt.NDArray[Any]]:
    """How often each unit got each value, (units, values), and the values in ascending order."""
    units, labels = pd.Series(unit), pd.Series(value)
    check_lengths(unit=units, value=labels)
    labelled = labels.notna().to_numpy()
    row, height = dense_codes(units[labelled])
    column, values = pd.factorize(labels[labelled], sort=True)
    table = np.bincount(row * len(values) + column, minlength=height * len(values))
    return table.reshape(height, len(values)), np.asarray(values)


# ---- Whether a judge says the same again: its verdicts on an item over repeats (MLLM-as-a-Judge, Table 4) ----


@dataclass(frozen=True, slots=True)
class Steadiness:
    """``consistency``: the mean share of an item's most frequent verdict; ``mcc``: the share of items on which more
    than half of the repeats are identical.
    """

    consistency: Estimate
    mcc: Estimate


def steadiness(verdicts: pd.DataFrame) -> Steadiness:
    """Of a table with the columns ``item``, ``verdict`` (of any kind) and ``group``, one row an item and repeat.

    Rows of one group (an image, a prompt) depend on one another; intervals are those of ``proportions.mean`` and
    ``rate``.
    """
    sizes = verdicts.groupby(["item", "verdict"], sort=False).size()
    most = sizes.groupby(level="item").max()
    modal = (most / verdicts.groupby("item").size().reindex(most.index)).to_numpy(np.float64)
    group = verdicts.groupby("item")["group"].first().reindex(most.index).to_numpy()
    return Steadiness(mean(values=modal, cluster=group), rate(hits=modal > 0.5, cluster=group))
