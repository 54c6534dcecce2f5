"""The vocabulary of a pair's verdict, in canonical item order, and two ways to read it.

Functions on labels of any kind take words, with None where one is missing: `words(three_way(choices))`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from stats.arrays import IntArray
from stats.results import UnknownVerdict

VERDICTS = ("first", "second", "tie", "undecided")
FIRST, SECOND, TIE, UNDECIDED = range(4)
MISSING = -1


def encode(choices: npt.ArrayLike | pd.Series[Any]) -> IntArray:
    """Codes of a column of verdicts (n,): 0 .. 3 in the order of VERDICTS, -1 where it is None or NaN.

    Raises UnknownVerdict for any other word.
    """
    if isinstance(choices, pd.Series) and isinstance(choices.dtype, pd.CategoricalDtype):
        return encode(choices.cat.categories)[choices.cat.codes.to_numpy()] if len(choices) else np.zeros(0, np.int64)
    column = pd.Series(choices, dtype=object)
    codes: IntArray = pd.Index(VERDICTS, dtype=object).get_indexer(column).astype(np.int64)
    unknown = (codes == MISSING) & column.notna().to_numpy()
    if unknown.any():
        raise UnknownVerdict(f"{column[unknown].iloc[0]!r} is none of {', '.join(VERDICTS)}")
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
    said: npt.NDArray[np.object_] = np.array([*VERDICTS, None], dtype=object)[codes]
    return said
