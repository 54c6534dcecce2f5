"""How far two annotators, or an annotator and a judge, agree; and every pair of many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

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

NO_ROWS = "no rows with both labels"
CHANCE_IS_CERTAIN = "all labels are the same: agreement beyond chance is undefined"
MOST_LABELS = 100
TOO_MANY_LABELS = f"more than {MOST_LABELS} different numbers: agreement beyond chance says nothing of so many"
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
    return beyond_chance(measure="kappa", first=first, second=second, cluster=cluster, stratum=stratum, level=level)


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure of agreement beyond chance: its method's ``name``, and how far labels are apart where it is ``of``
    confusion tables (B, K, K) and of these distances (K, K): see `distances` of ``power``.
    """

    name: str
    of: Callable[[FloatArray, FloatArray], FloatArray]
    power: int

    def of_table(self, tables: FloatArray, labels: npt.NDArray[Any]) -> FloatArray:
        return self.of(tables, distances(labels, self.power))


def beyond_chance(
    *,
    measure: str,
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    cluster: npt.ArrayLike,
    categories: Sequence[Any] = (),
    stratum: npt.ArrayLike | None = None,
    level: float = 0.95,
) -> Estimate:
    """One of `MEASURES` of two columns of labels, numbers where some are further apart than others; as `cohen_kappa`
    otherwise.

    `categories`: all that could have been said; those that nobody said count in Gwet's chance, too. Value None for
    more than `MOST_LABELS` different numbers.
    """
    chosen = MEASURES[measure]
    a, b, groups = pd.Series(first), pd.Series(second), np.asarray(cluster)
    strata = np.zeros(len(a)) if stratum is None else np.asarray(stratum)
    check_lengths(first=a, second=b, cluster=groups, stratum=strata)
    labelled = (a.notna() & b.notna()).to_numpy()
    known = [pd.Series(categories)] if len(categories) else []
    codes, labels = pd.factorize(pd.concat([a[labelled], b[labelled], *known]), sort=True)
    n, size = int(labelled.sum()), len(labels)
    if chosen.power and size > MOST_LABELS:
        return Estimate(None, n, None, chosen.name, TOO_MANY_LABELS)
    cell = codes[:n] * size + codes[n : 2 * n]
    blocks, (part, parts) = Blocks.of(groups[labelled]), dense_codes(strata[labelled])
    return jackknife(
        table=blocks.table(part * size * size + cell, parts * size * size),
        statistic=mean_over(lambda tables: chosen.of_table(tables.reshape(-1, size, size), np.asarray(labels)), parts),
        n=n,
        scale=Scale.FISHER,
        method=chosen.name,
        undefined=CHANCE_IS_CERTAIN if n else NO_ROWS,
        level=level,
    )


def distances(labels: npt.NDArray[Any], power: int) -> FloatArray:
    """How far every two labels are apart, (K, K), from 0 to 1: with `power` 0 all alike, else |a - b| to this power."""
    if not power:
        return 1 - np.eye(len(labels))
    numbers = labels.astype(np.float64)
    apart = np.abs(numbers[:, None] - numbers) ** power
    return np.asarray(apart / apart.max(initial=1e-300))


def weighted_kappa_of(tables: FloatArray, apart: FloatArray) -> FloatArray:
    """Weighted kappa of confusion tables (..., K, K) whose labels are `apart` (K, K): 1 - D_o / D_e (Cohen 1968,
    Psychological Bulletin 70:213). Apart by squares, it is an intraclass correlation (Fleiss and Cohen 1973).
    """
    n = tables.sum(axis=(-2, -1))
    expected = ((tables.sum(axis=-1) @ apart) * tables.sum(axis=-2)).sum(axis=-1)
    return 1 - ratio(n * (tables * apart).sum(axis=(-2, -1)), expected)


def gwet_of(tables: FloatArray, apart: FloatArray) -> FloatArray:
    """Gwet's AC1 (2008), or where some labels are further `apart` than others (K, K) his AC2 (2014), of confusion
    tables (..., K, K): see `beyond_gwets_chance`; a label's share is the mean of both columns'.
    """
    n = tables.sum(axis=(-2, -1))
    observed = 1 - ratio((tables * apart).sum(axis=(-2, -1)), n)
    share = ratio(tables.sum(axis=-1) + tables.sum(axis=-2), np.broadcast_to(2 * n[..., None], tables.shape[:-1]))
    return beyond_gwets_chance(observed, share, apart)


def beyond_gwets_chance(observed: FloatArray, share: FloatArray, apart: FloatArray) -> FloatArray:
    """(p_o - p_e) / (1 - p_e) of the agreement `observed` (...,) with labels of these shares (..., K), with p_e =
    T / (K (K - 1)) times the sum of share (1 - share), T the sum of how alike every two labels are.
    """
    size = len(apart)
    if size < 2:
        return np.full(observed.shape, np.nan)
    chance = (1 - apart).sum() / (size * (size - 1)) * (share * (1 - share)).sum(axis=-1)
    return ratio(observed - chance, 1 - chance)


def kappa_of(tables: FloatArray) -> FloatArray:
    """Cohen's kappa of confusion tables (..., K, K); NaN where chance agreement is certain."""
    n = tables.sum(axis=(-2, -1))
    observed = n * np.trace(tables, axis1=-2, axis2=-1)
    expected = (tables.sum(axis=-1) * tables.sum(axis=-2)).sum(axis=-1)
    return ratio(observed - expected, n * n - expected)


MEASURES = {
    "kappa": Measure("kappa", lambda tables, apart: kappa_of(tables), 0),
    "kappa_linear": Measure("weighted kappa, linear", weighted_kappa_of, 1),
    "kappa_quadratic": Measure("weighted kappa, quadratic", weighted_kappa_of, 2),
    "ac1": Measure("AC1", gwet_of, 0),
    "ac2": Measure("AC2, quadratic", gwet_of, 2),
}


def method_of(measure: str) -> str:
    """Of a number by one of `MEASURES`, of one pair of columns or of many."""
    return f"{MEASURES[measure].name}, {Scale.FISHER.value}, {JACKKNIFE}"


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
    *,
    annotator: npt.ArrayLike,
    item: npt.ArrayLike,
    verdict: npt.ArrayLike,
    measure: str = "kappa",
    categories: Sequence[Any] = (),
    level: float = 0.95,
) -> pd.DataFrame:
    """`cohen_kappa` of every two annotators that share an item, each item a cluster of its own, by sparse products.

    Columns as `pairwise_agreement` takes them. Returns `a`, `b`, `n`, `kappa`, `low`, `high`, `se`, `reason`; NaN where
    the two use one and the same label only, or where there is no interval; `reason` then says why. `of`: another
    statistic of confusion tables (P, K, K), and of the labels (K,) of their rows and columns, in its place. Raises
    LengthMismatch, DuplicateVerdict.
    """
    people, items, labels = pd.Series(annotator), pd.Series(item), pd.Series(verdict)
    check_lengths(annotator=people, item=items, verdict=labels)
    labelled = labels.notna().to_numpy()
    person, names = pd.factorize(people[labelled], sort=True)
    where, columns = dense_codes(items[labelled])
    known = [pd.Series(categories)] if len(categories) else []
    label, kinds = pd.factorize(pd.concat([labels[labelled], *known]), sort=True)
    label, statistic = label[: len(person)], partial(MEASURES[measure].of_table, labels=np.asarray(kinds))
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
    kappa, low, high, error = _jackknifed(tables, statistic, level)
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


def _jackknifed(
    tables: IntArray, statistic: Callable[[FloatArray], FloatArray], level: float
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """The jackknife of tables (P, K, K) whose rows are groups of their own: values, ends of intervals and standard
    errors, (P,) each.
    """
    n, counts = tables.sum(axis=(1, 2)), tables.astype(np.float64)
    kappa = statistic(counts)
    without = np.zeros(tables.shape)  # of each cell: the statistic without one of its rows
    for row, column in np.argwhere(tables.any(axis=0)):
        counts[:, row, column] -= 1
        without[:, row, column] = statistic(counts)
        counts[:, row, column] += 1
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
