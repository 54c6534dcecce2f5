"""A few labels by people and many by a judge, as one number; and a judge's share corrected for its known errors."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
import numpy.typing as npt

from stats.arrays import check_lengths
from stats.proportions import normal_quantile
from stats.results import Estimate, Interval, InvalidCount

PPI = "ppi++"
ROGAN_GLADEN = "rogan-gladen"


@dataclass(frozen=True, slots=True)
class PowerTuned:
    """``weight`` is lambda: 0 uses people's labels alone, 1 trusts the judge as far as its labels allow."""

    estimate: Estimate
    weight: float


def prediction_powered(
    *,
    labels: npt.ArrayLike,
    judged: npt.ArrayLike,
    unlabelled: npt.ArrayLike,
    weight: float | None = None,
    level: float = 0.95,
) -> PowerTuned:
    """The mean of people's labels, made sharper by a judge (Angelopoulos et al., arXiv 2301.09633 and 2311.01453).

    ``labels`` and ``judged`` (n,) are people's and the judge's verdicts on the same items, ``unlabelled`` (N,) the
    judge's on further ones. theta = weight mean(F_U) + mean(Y - weight F); SE² = weight² var(F_U) / N +
    var(Y - weight F) / n, variances with divisor n. Without ``weight`` it is cov(Y, F) / ((1 + n / N) var F), cut to
    [0, 1]. Raises LengthMismatch, and InvalidCount for fewer than two labels or no further items.
    """
    y, f, u = (np.asarray(values, dtype=np.float64) for values in (labels, judged, unlabelled))
    check_lengths(labels=y, judged=f)
    n, further = len(y), len(u)
    if n < 2 or not further:
        raise InvalidCount(f"{n} labels and {further} further items")
    if weight is None:
        # The variance over all that the judge said, as the estimator's authors pool it.
        spread = float(np.concatenate([f, u]).var())
        together = float(np.mean((y - y.mean()) * (f - f.mean())))
        weight = max(0.0, min(1.0, together / ((1 + n / further) * spread))) if spread > 0 else 0.0
    value = weight * float(u.mean()) + float((y - weight * f).mean())
    error = sqrt(weight**2 * float(u.var()) / further + float((y - weight * f).var()) / n)
    margin = normal_quantile(level) * error
    return PowerTuned(Estimate(value, n + further, Interval(value - margin, value + margin, level, PPI), PPI), weight)


def rogan_gladen(
    *, positive: int, n: int, sensitivity: tuple[int, int], specificity: tuple[int, int], level: float = 0.95
) -> Estimate:
    """The true share behind a judge's share, given how often the judge is right on each side.

    (p + Sp - 1) / (Se + Sp - 1) (Rogan and Gladen 1978), cut to [0, 1]; ``sensitivity`` and ``specificity`` are counts
    (right, of). Delta-method interval over all three shares. No value where the judge is no better than chance. Raises
    InvalidCount.
    """
    for right, of in ((positive, n), sensitivity, specificity):
        if of < 1 or not 0 <= right <= of:
            raise InvalidCount(f"{right} of {of}")
    p, se, sp = positive / n, sensitivity[0] / sensitivity[1], specificity[0] / specificity[1]
    youden = se + sp - 1
    if youden <= 0:
        return Estimate(None, n, None, ROGAN_GLADEN, "the judge is no better than chance")
    raw = (p + sp - 1) / youden
    variance = (
        p * (1 - p) / n + raw**2 * se * (1 - se) / sensitivity[1] + (1 - raw) ** 2 * sp * (1 - sp) / specificity[1]
    ) / youden**2
    value, margin = max(0.0, min(1.0, raw)), normal_quantile(level) * sqrt(variance)
    low, high = max(0.0, min(raw - margin, value)), min(1.0, max(raw + margin, value))
    return Estimate(value, n, Interval(low, high, level, ROGAN_GLADEN), ROGAN_GLADEN)
