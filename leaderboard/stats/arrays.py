"""Array types, and the few array steps that every statistic shares."""

from __future__ import annotations

from collections.abc import Sized
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from leaderboard.stats.results import LengthMismatch

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


def check_lengths(**columns: Sized) -> None:
    """Raise LengthMismatch, naming the columns, unless all of them have the same length."""
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise LengthMismatch(", ".join(f"{name} has {length}" for name, length in lengths.items()))


def dense_codes(values: npt.ArrayLike) -> tuple[IntArray, int]:
    """Number the distinct values of one column 0 .. count-1; returns (codes, count).

    Values of any type that pandas can hash; which number a value gets is not promised. A missing value
    (None, NaN) is a value of its own, so that no row is lost.
    """
    column = values if isinstance(values, pd.Series | pd.Index | pd.Categorical) else np.asarray(values)
    if isinstance(column, np.ndarray) and _is_coded(column):
        used = np.bincount(column) > 0
        count = int(used.sum())
        column = column.astype(np.int64, copy=False)
        return (column, count) if used.all() else ((np.cumsum(used) - 1)[column], count)
    codes, distinct = pd.factorize(column, use_na_sentinel=False)
    return codes.astype(np.int64, copy=False), len(distinct)


def _is_coded(column: npt.NDArray[Any]) -> bool:
    """Whether the values are codes already, perhaps with gaps: a table is then several times faster than
    hashing.
    """
    small = column.dtype.kind in "iu" and column.size > 0
    return bool(small and column.min() >= 0 and column.max() < 2 * column.size)


def ratio(part: FloatArray, whole: FloatArray) -> FloatArray:
    """part / whole, element by element; NaN where the whole is 0 up to rounding."""
    quotient = np.full(part.shape, np.nan)
    np.divide(part, whole, out=quotient, where=np.abs(whole) > 1e-12)
    return quotient
