"""Several comparisons on one page."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from stats.arrays import BoolArray, FloatArray
from stats.results import StatisticsError


class InvalidProbability(StatisticsError):
    """A p-value outside [0, 1], or NaN."""


def benjamini_hochberg(*, p: npt.ArrayLike, q: float = 0.05) -> BoolArray:
    """Which hypotheses to reject at false discovery rate q; `p` and the answer have shape (m,).

    Step-up: all p up to the largest p_(i) <= i q / m (Benjamini and Hochberg 1995). Holds for independent
    or positively dependent tests. Raises InvalidProbability.
    """
    return _step_up(p, q)


def benjamini_yekutieli(*, p: npt.ArrayLike, q: float = 0.05) -> BoolArray:
    """As benjamini_hochberg, under any dependence: q is divided by 1 + 1/2 + ... + 1/m (Benjamini and
    Yekutieli 2001).
    """
    values = np.asarray(p, dtype=np.float64)
    return _step_up(values, q / float((1 / np.arange(1, len(values) + 1)).sum()) if len(values) else q)


def _step_up(p: npt.ArrayLike, q: float) -> BoolArray:
    values: FloatArray = np.asarray(p, dtype=np.float64)
    if not ((values >= 0) & (values <= 1)).all():
        raise InvalidProbability("p-values lie in [0, 1]")
    ordered = np.sort(values)
    passed = np.flatnonzero(ordered <= q * np.arange(1, len(values) + 1) / max(len(values), 1))
    # Equal p-values share one verdict: the comparison is with the threshold, not with positions.
    return values <= ordered[passed[-1]] if passed.size else np.zeros(len(values), dtype=np.bool_)
