"""Array types, and the few array steps that every statistic shares."""

from __future__ import annotations

from collections.abc import Iterator, Sized
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from stats.results import LengthMismatch, NotFinite

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


AT_ONCE = 131_072  # rows


def blocks(n: int) -> Iterator[slice]:
    """Slices that go through ``n`` rows: what is computed of so many at a time never weighs more than a megabyte."""
    return (slice(begin, min(begin + AT_ONCE, n)) for begin in range(0, n, AT_ONCE))


def check_lengths(**columns: Sized) -> None:
    """Raise LengthMismatch, naming the columns, unless all of them have the same length."""
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise LengthMismatch(", ".join(f"{name} has {length}" for name, length in lengths.items()))


def check_finite(**columns: FloatArray) -> None:
    """Raise NotFinite, naming the column, for a NaN or an infinity in one of them."""
    for name, column in columns.items():
        if not np.isfinite(column).all():
            raise NotFinite(f"{name} holds what is not a finite number")


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


def narrow_codes(values: npt.ArrayLike) -> tuple[npt.NDArray[Any], int]:
    """As `dense_codes`, but of codes that are there already none is changed, so that some may not occur, and the column
    stays as narrow as it is.
    """
    column = values if isinstance(values, np.ndarray) else None
    if column is not None and _is_coded(column):
        return column, int(column.max()) + 1
    return dense_codes(values)


def counted(codes: npt.NDArray[Any], size: int, *, where: BoolArray | None = None) -> IntArray:
    """How often each of the codes 0 .. size - 1 occurs, shape (size,), among the rows `where` (n,) or all."""
    total = np.zeros(size, dtype=np.int64)
    for rows in blocks(len(codes)):
        part = codes[rows] if where is None else codes[rows][where[rows]]
        total += np.bincount(part, minlength=size)
    return total


def mean_ranks(values: npt.NDArray[Any]) -> FloatArray:
    """The rank of each value of one column, 1 for the least; equal values share the mean of theirs."""
    _, place, times = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(times) - (times - 1) / 2)[place], dtype=np.float64)


def _is_coded(column: npt.NDArray[Any]) -> bool:
    """Whether the values are codes already, perhaps with gaps: a table is then several times faster than
    hashing.
    """
    small = column.dtype.kind in "iu" and column.size > 0
    return bool(small and column.min() >= 0 and column.max() < 2 * column.size)


def ratio(part: FloatArray, total: FloatArray) -> FloatArray:
    """part / whole, element by element; NaN where the whole is 0 up to rounding."""
    quotient = np.full(part.shape, np.nan)
    np.divide(part, total, out=quotient, where=np.abs(total) > 1e-12)
    return quotient
