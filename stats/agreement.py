"""How far two annotators, or an annotator and a judge, agree; and every pair of many."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.sparse import csr_array
from scipy.special import stdtrit

from stats.arrays import FloatArray, IntArray, check_lengths, dense_codes, ratio
from stats.jackknife import JACKKNIFE, PERFECT, PERFECT_FROM, Blocks, Scale, jackknife, mean_over
from stats.proportions import FEW_GROUPS, FEWEST_GROUPS, rate
from stats.results import DuplicateVerdict, Estimate
from stats.verdicts import MISSING, decided, three_way

KAPPA = f"kappa, {Scale.FISHER.value}, {JACKKNIFE}"  # the method of a kappa, of one pair of columns or of many
NO_ROWS = "no rows with both labels"
CHANCE_IS_CERTAIN = "all labels are the same: agreement beyond chance is undefined"
WITHOUT_ONE = "perfect, undefined or the same without one of the items"


@dataclass(frozen=True, slots=True)
class Agreement:
    """`share` = agree / n, the matching percentage as a fraction; `agree` the count above the line, `share.n`
    below it.
    """

    share: Estimate
    agree: int


def agreement(
    *,
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    cluster: npt.ArrayLike,
    stratum: npt.ArrayLike | None = None,
    level: float = 0.95,
) -> Agreement:
    """The share of pairs with the same verdict, `undecided` counting as a tie.

    `first`, `second` and `cluster` have shape (n,): words of `verdicts.VERDICTS` on the same pairs, and any
    labels. A pair without one of the verdicts is not counted. `stratum` and interval as `proportions.rate`.
    Raises LengthMismatch, UnknownVerdict.
    """
    return _matching(three_way(first), three_way(second), cluster, stratum, level)


def agreement_decided(
    *,
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    cluster: npt.ArrayLike,
    stratum: npt.ArrayLike | None = None,
    level: float = 0.95,
) -> Agreement:
    """As `agreement`, over the pairs on which both decided for a side (MLLM-Bench, Tables 14 and 15: 147/167
    = 88.02%).
    """
    return _matching(decided(first), decided(second), cluster, stratum, level)


def _matching(
    first: IntArray, second: IntArray, cluster: npt.ArrayLike, stratum: npt.ArrayLike | None, level: float
) -> Agreement:
    groups = np.asarray(cluster)
    check_lengths(first=first, second=second, cluster=groups)
    valid = (first != MISSING) & (second != MISSING)
    hits = first[valid] == second[valid]
    strata = None if stratum is None else np.asarray(stratum)[valid]
    return Agreement(rate(hits=hits, cluster=groups[valid], stratum=strata, level=level), int(hits.sum()))


def cohen_kappa(
    *,
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    cluster: npt.ArrayLike,
    stratum: npt.ArrayLike | None = None,
    level: float = 0.95,
) -> Estimate:
    """Cohen's kappa of two columns of labels, shape (n,), of any kind; rows where one is missing (None, NaN)
    are dropped.

    kappa = (p_o - p_e) / (1 - p_e) (Cohen 1960). With `stratum` (data sets, repeats), the unweighted mean of
    kappa within each. Interval: jackknife by group, also where each row is a group of its own: the asymptotic
    error of Fleiss, Cohen and Everitt (1969) covers .87 where labels are unevenly used. Value None where both use
    one and the same label only. Raises LengthMismatch.
    """
    a, b, groups = pd.Series(first), pd.Series(second), np.asarray(cluster)
    strata = np.zeros(len(a)) if stratum is None else np.asarray(stratum)
    check_lengths(first=a, second=b, cluster=groups, stratum=strata)
    labelled = (a.notna() & b.notna()).to_numpy()
    codes, labels = pd.factorize(pd.concat([a[labelled], b[labelled]]), sort=True)
    n, size = int(labelled.sum()), len(labels)
    cell = codes[:n] * size + codes[n:]
    blocks, (part, parts) = Blocks.of(groups[labelled]), dense_codes(strata[labelled])
    return jackknife(
        table=blocks.table(part * size * size + cell, parts * size * size),
        statistic=mean_over(lambda tables: kappa_of(tables.reshape(-1, size, size)), parts),
        n=n,
        scale=Scale.FISHER,
        method="kappa",
        undefined=CHANCE_IS_CERTAIN if n else NO_ROWS,
        level=level,
    )


def kappa_of(tables: FloatArray) -> FloatArray:
    """Cohen's kappa of confusion tables (..., K, K); NaN where chance agreement is certain."""
    n = tables.sum(axis=(-2, -1))
    observed = n * np.trace(tables, axis1=-2, axis2=-1)
    expected = (tables.sum(axis=-1) * tables.sum(axis=-2)).sum(axis=-1)
    return ratio(observed - expected, n * n - expected)


def pairwise_agreement(*, annotator: npt.ArrayLike, item: npt.ArrayLike, verdict: npt.ArrayLike) -> pd.DataFrame:
    """Agreement counts of every two annotators that share an item, by a sparse product.

    A long table as three columns of shape (n,), one row per label; `verdict` is any label, and a missing one
    (None, NaN) is not counted: `words(three_way(choices))` and `words(decided(choices))` of `verdicts` give
    the two agreements of pairs. Returns the columns `a`, `b` (a before b in the order of names), `agree` and
    `n`. Intervals: `proportions.proportion` per row where no two items share a group, else `agreement` on the
    two annotators' labels. Raises LengthMismatch, DuplicateVerdict where an annotator labelled an item twice.
    """
    people, items, labels = pd.Series(annotator), pd.Series(item), pd.Series(verdict)
    check_lengths(annotator=people, item=items, verdict=labels)
    labelled = labels.notna().to_numpy()
    person, names = pd.factorize(people[labelled], sort=True)
    where, columns = dense_codes(items[labelled])
    label, kinds = dense_codes(labels[labelled])
    ones = np.ones(len(person), dtype=np.int64)
    by_item = csr_array((ones, (person, where)), shape=(len(names), columns))
    if by_item.nnz and by_item.max() > 1:
        raise DuplicateVerdict("an annotator has two labels on the same item")
    by_label = csr_array((ones, (person, where * kinds + label)), shape=(len(names), columns * kinds))
    together, agreeing = (by_item @ by_item.T).toarray(), (by_label @ by_label.T).toarray()
    a, b = np.nonzero(np.triu(together, k=1))
    return pd.DataFrame({"a": names[a], "b": names[b], "agree": agreeing[a, b], "n": together[a, b]})


def pairwise_kappa(
    *, annotator: npt.ArrayLike, item: npt.ArrayLike, verdict: npt.ArrayLike, level: float = 0.95
) -> pd.DataFrame:
    """`cohen_kappa` of every two annotators that share an item, each item a cluster of its own, by sparse products.

    Columns as `pairwise_agreement` takes them. Returns `a`, `b`, `n`, `kappa`, `low`, `high`, `se`, `reason`; NaN where
    the two use one and the same label only, or where there is no interval; `reason` then says why. Raises
    LengthMismatch, DuplicateVerdict.
    """
    people, items, labels = pd.Series(annotator), pd.Series(item), pd.Series(verdict)
    check_lengths(annotator=people, item=items, verdict=labels)
    labelled = labels.notna().to_numpy()
    person, names = pd.factorize(people[labelled], sort=True)
    where, columns = dense_codes(items[labelled])
    label, kinds = pd.factorize(labels[labelled], sort=True)
    shape = (len(names), columns)
    by_item = csr_array((np.ones(len(person), dtype=np.int64), (person, where)), shape=shape)
    if by_item.nnz and by_item.max() > 1:
        raise DuplicateVerdict("an annotator has two labels on the same item")
    a, b = np.nonzero(np.triu((by_item @ by_item.T).toarray(), k=1))
    size = len(kinds)
    by_label = [
        csr_array((np.ones(int(rows.sum()), dtype=np.int64), (person[rows], where[rows])), shape=shape)
        for rows in (label == kind for kind in range(size))
    ]
    tables = np.zeros((len(a), size, size), dtype=np.int64)
    for i, first in enumerate(by_label):
        for j, second in enumerate(by_label):
            tables[:, i, j] = (first @ second.T).toarray()[a, b]
    kappa, low, high, error = _kappas(tables, level)
    n = tables.sum(axis=(1, 2))
    reason = np.select(
        [~np.isnan(low), np.isnan(kappa), n < FEWEST_GROUPS, np.abs(kappa) > 1 - PERFECT_FROM],
        ["", CHANCE_IS_CERTAIN, FEW_GROUPS, PERFECT],
        WITHOUT_ONE,
    )
    return pd.DataFrame(
        {
            "a": names[a],
            "b": names[b],
            "n": n,
            "kappa": kappa,
            "low": low,
            "high": high,
            "se": error,
            "reason": reason,
        }
    )


def _kappas(tables: IntArray, level: float) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """The jackknife of tables (P, K, K) whose rows are groups of their own: values, ends of intervals and standard
    errors, (P,) each.
    """
    n, trace = tables.sum(axis=(1, 2)), np.trace(tables, axis1=1, axis2=2)
    rows, columns = tables.sum(axis=2), tables.sum(axis=1)
    kappa = kappa_of(tables.astype(np.float64))
    # Of each cell, (P, K, K): kappa without one of its rows, in the terms of `kappa_of`.
    same = np.eye(tables.shape[1], dtype=np.int64)
    fewer = (n - 1)[:, None, None]
    expected = (rows * columns).sum(axis=1)[:, None, None] - columns[:, :, None] - rows[:, None, :] + same
    observed = fewer * (trace[:, None, None] - same)
    without = ratio((observed - expected).astype(np.float64), (fewer * fewer - expected).astype(np.float64))
    inside = (np.abs(without) < 1 - PERFECT_FROM) | (tables == 0)  # not so where it is undefined
    known = inside.all(axis=(1, 2)) & (np.abs(kappa) < 1 - PERFECT_FROM) & (n >= FEWEST_GROUPS)
    value = np.where(known, kappa, 0.0)[:, None, None]
    left = np.where((tables > 0) & known[:, None, None], without, value)
    scale = (n - 1) / np.maximum(n, 1)
    error, on_fisher = (
        np.sqrt(scale * (tables * moved**2).sum(axis=(1, 2)))
        for moved in (left - value, np.arctanh(left) - np.arctanh(value))
    )
    error = np.where(known & (error > PERFECT_FROM), error, np.nan)
    margin = stdtrit(np.maximum(n - 1, 1), 0.5 + level / 2) * np.where(np.isnan(error), np.nan, on_fisher)
    z = np.arctanh(value[:, 0, 0])
    return kappa, np.tanh(z - margin), np.tanh(z + margin), error
