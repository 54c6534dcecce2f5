"""How often a judge's verdict is the reference's: confusion table, accuracy, macro F1, recall and precision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from stats.arrays import FloatArray, IntArray, check_lengths, dense_codes, ratio
from stats.jackknife import Blocks, Scale, jackknife, mean_over
from stats.proportions import rate
from stats.results import Estimate
from stats.verdicts import MISSING, TIE, VERDICTS, decided, three_way

NO_PAIRS = "no pair has a verdict of both that counts"
FEWEST_OF_CLASS = 10  # rows with a class, below which no error of a macro score can be told
FEW_OF_CLASS = f"one of the classes occurs fewer than {FEWEST_OF_CLASS} times: no interval"


@dataclass(frozen=True, eq=False, slots=True)
class ClassScores:
    """`confusion` (L, L) counts rows: rows are the reference's verdict, columns the judge's, both in the
    order of `labels`.
    """

    accuracy: Estimate
    f1: Estimate
    recall: Estimate
    precision: Estimate
    confusion: IntArray
    labels: tuple[str, ...]


def pair_scores(
    *,
    reference: npt.ArrayLike,
    prediction: npt.ArrayLike,
    cluster: npt.ArrayLike,
    ties: bool,
    stratum: npt.ArrayLike | None = None,
    level: float = 0.95,
) -> ClassScores:
    """Compare verdicts on the same pairs (MLLM-as-a-Judge, arXiv 2402.04788, Table 2).

    `reference`, `prediction` and `cluster` have shape (n,): words of `verdicts.VERDICTS`, and any labels.
    With `ties`, three classes (first, second, tie), `undecided` counting as a tie. Without, two: a pair is
    dropped where either is a tie or undecided. A missing verdict drops the pair in both.

    With `stratum` (data sets, repeats) each score is the unweighted mean of the scores within each. Accuracy has the
    interval of `proportions.rate`; macro F1, recall and precision Wilson's on the effective number that the jackknife
    by group gives, unless one of the classes (a tie only if there is any) has fewer than ten pairs, of the
    reference's or the judge's, in a stratum on average: a class counts as much as the others however rare it is, and
    what a handful of pairs says of it is too little for an interval that covers. Raises LengthMismatch, UnknownVerdict.
    """
    read = three_way if ties else decided
    labels = VERDICTS[:3] if ties else VERDICTS[:2]
    true, guess, groups = read(reference), read(prediction), np.asarray(cluster)
    strata = np.zeros(len(true)) if stratum is None else np.asarray(stratum)
    check_lengths(reference=true, prediction=guess, cluster=groups, stratum=strata)
    valid = (true != MISSING) & (guess != MISSING)
    codes = _Codes(true[valid], guess[valid], groups[valid], strata[valid])
    return _scores(codes, labels, always=TIE, level=level)


def class_scores(
    *,
    reference: npt.ArrayLike,
    prediction: npt.ArrayLike,
    cluster: npt.ArrayLike,
    stratum: npt.ArrayLike | None = None,
    level: float = 0.95,
) -> ClassScores:
    """Compare labels of any kind, shape (n,), as `pair_scores` compares verdicts; rows where one is missing (None, NaN)
    are dropped.

    The classes are the labels that occur, in their order; a class that occurs fewer than ten times in a stratum on
    average leaves the macro scores without an interval. Raises LengthMismatch.
    """
    true, guess, groups = pd.Series(reference), pd.Series(prediction), np.asarray(cluster)
    strata = np.zeros(len(true)) if stratum is None else np.asarray(stratum)
    check_lengths(reference=true, prediction=guess, cluster=groups, stratum=strata)
    valid = (true.notna() & guess.notna()).to_numpy()
    both, labels = pd.factorize(pd.concat([true[valid], guess[valid]]), sort=True)
    n = int(valid.sum())
    codes = _Codes(both[:n], both[n:], groups[valid], strata[valid])
    return _scores(codes, tuple(map(str, labels)), always=0, level=level)


class _Codes(NamedTuple):
    """Rows with both labels, as codes of classes, with their cluster and stratum; shape (n,) each."""

    true: IntArray
    guess: IntArray
    groups: npt.NDArray[Any]
    strata: npt.NDArray[Any]


def _scores(codes: _Codes, labels: tuple[str, ...], *, always: int, level: float) -> ClassScores:
    """The first ``always`` classes must occur often enough for an interval, the others if they occur at all."""
    true, guess, groups, strata = codes
    size, blocks, (part, parts) = len(labels), Blocks.of(groups), dense_codes(strata)
    cells = size * size
    table = blocks.table((part * size + true) * size + guess, parts * cells)
    confusion = np.bincount(true * size + guess, minlength=cells).reshape(size, size)
    times = (confusion.sum(axis=0) + confusion.sum(axis=1) - np.diag(confusion)) / max(parts, 1)
    needed = (np.arange(size) < always) | (times > 0)
    too_few = bool((times[needed] < FEWEST_OF_CLASS).any())

    def macro(score: Callable[[FloatArray], FloatArray], name: str) -> Estimate:
        estimate = jackknife(
            table=table,
            statistic=mean_over(lambda tables: score(tables.reshape(-1, size, size)), parts),
            n=len(true),
            scale=Scale.SHARE,
            method=f"macro {name}",
            undefined=NO_PAIRS,
            level=level,
        )
        return replace(estimate, interval=None, reason=FEW_OF_CLASS) if too_few and estimate.interval else estimate

    return ClassScores(
        accuracy=rate(hits=true == guess, cluster=groups, stratum=strata if parts > 1 else None, level=level),
        f1=macro(macro_f1, "F1"),
        recall=macro(macro_recall, "recall"),
        precision=macro(macro_precision, "precision"),
        confusion=confusion,
        labels=labels,
    )


def macro_f1(tables: FloatArray) -> FloatArray:
    """Mean over classes of 2 TP / (2 TP + FP + FN) for tables (..., L, L), rows the reference; NaN for an
    empty table.

    A class counts if the reference or the prediction has it; one that neither has does not exist for the
    mean.
    """
    support = tables.sum(axis=-1) + tables.sum(axis=-2)
    hits = 2 * np.diagonal(tables, axis1=-2, axis2=-1)
    return _macro(hits, support, support > 0)


def macro_recall(tables: FloatArray) -> FloatArray:
    """Mean over classes of TP / (TP + FN) for tables (..., L, L), rows the reference; NaN for an empty table.

    The same classes count as for `macro_f1`: one that only the prediction has counts with recall 0, as in
    scikit-learn.
    """
    reference = tables.sum(axis=-1)
    return _macro(np.diagonal(tables, axis1=-2, axis2=-1), reference, reference + tables.sum(axis=-2) > 0)


def macro_precision(tables: FloatArray) -> FloatArray:
    """Mean over classes of TP / (TP + FP) for tables (..., L, L), rows the reference; NaN for an empty table.

    The same classes count as for `macro_f1`: one that only the reference has counts with precision 0, as in
    scikit-learn.
    """
    return macro_recall(np.swapaxes(tables, -1, -2))


def _macro(hits: FloatArray, support: FloatArray, present: npt.NDArray[np.bool_]) -> FloatArray:
    scores = np.nan_to_num(ratio(hits, support))
    return ratio(scores.sum(axis=-1), present.sum(axis=-1).astype(np.float64))
