"""Ranks of judges, and their metrics by level.

Every metric is a function of a few sums over the items. A bootstrap therefore draws clusters once for all judges and
adds up their sums, and what two judges share cancels in their difference. Votes on pairs sum confusion tables; scores,
rankings and readings sum the terms of their metrics (for Pearson n, x, y, xx, yy, xy). Spearman's ranks are computed
once, within each data set.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from leaderboard import votes
from leaderboard.methods import PROVISIONAL, SEED
from leaderboard.metrics import Metric
from stats.arrays import FloatArray, IntArray, dense_codes, ratio
from stats.classification import confusion_by_cluster
from stats.ranks import Place, rank_ranges, tiers
from stats.resampling import distinct_rows
from stats.verdicts import three_way

REPLICATES = 1000
AT_ONCE = 4_000_000  # numbers drawn
SIZE = 3  # first, second, tie
MOST = 5_000  # clusters drawn for sums: more are merged, which costs no precision at such numbers


@dataclass(frozen=True, slots=True)
class Cell:
    """A metric within a level or data set, and the number of rows behind it."""

    value: float | None
    n: int


# ---- votes on pairs ----


@dataclass(frozen=True, slots=True)
class _Tabled:
    """One judge: a confusion table per repeat and cluster (R, clusters, 9), and per repeat and level."""

    tables: IntArray
    levels: dict[str, IntArray]
    items: int
    ranked: bool


class ConfusionTables:
    """The confusion tables of all judges against one reference, over the same clusters."""

    def __init__(self, metrics: Sequence[Metric], items: pd.DataFrame) -> None:
        self.metrics = {metric.name: metric for metric in metrics if metric.of_sums}
        codes, self.clusters = dense_codes(votes.clusters(items.reset_index()).to_numpy())
        self.cluster = pd.Series(codes, index=items.index)
        sets, _ = dense_codes(items["dataset"].to_numpy())
        self.dataset = np.zeros(self.clusters, dtype=np.int64)  # of each cluster; none lies in two
        self.dataset[codes] = sets
        self.judges: dict[int, _Tabled] = {}

    def add(self, run: int, paired: pd.DataFrame, *, ranked: bool) -> None:
        """Add a judge; ``paired`` has ``item, value, told, repeat, level``."""
        repeats = sorted(paired["repeat"].unique().tolist())
        tables = [self._confusion(paired[paired["repeat"] == repeat]) for repeat in repeats]
        of_level = {str(name): part for name, part in paired.groupby("level")}
        self.judges[run] = _Tabled(
            np.stack(tables) if tables else np.zeros((0, self.clusters, SIZE * SIZE), dtype=np.int64),
            {
                level: np.stack([self._confusion(part[part["repeat"] == r]).sum(axis=0) for r in repeats])
                for level, part in of_level.items()
            },
            int(paired["item"].nunique()),
            ranked,
        )

    def _confusion(self, frame: pd.DataFrame) -> IntArray:
        cluster = self.cluster.reindex(frame["item"]).to_numpy()
        first, second = three_way(frame["value"]), three_way(frame["told"])
        return confusion_by_cluster(first, second, size=SIZE, cluster=cluster, clusters=self.clusters)

    def cells(self) -> dict[str, dict[int, dict[str, Cell]]]:
        """By metric, run and level: the mean over repeats, and of how many rows."""
        return {
            name: {
                run: {
                    level: Cell(_mean(metric, tables), _counted(metric, tables))
                    for level, tables in judge.levels.items()
                }
                for run, judge in self.judges.items()
            }
            for name, metric in self.metrics.items()
        }

    def standing(self) -> dict[str, dict[int, Place]]:
        """By metric and run, the place among the judges that are not baselines.

        The covariance of the metrics comes from a bootstrap that draws the same clusters for all judges, so that what
        two of them share cancels. Ranges and tiers come from ``stats.ranks``. A judge with fewer than 30 items is not
        ranked.
        """
        judges = {run: judge for run, judge in self.judges.items() if judge.ranked and judge.items >= PROVISIONAL}
        if not judges:
            return {name: {} for name in self.metrics}
        rng = np.random.default_rng(SEED)
        wide = np.concatenate([repeat for judge in judges.values() for repeat in judge.tables], axis=1)
        sets = [_drawn(wide[self.dataset == dataset], rng) for dataset in np.unique(self.dataset)]
        owner = np.repeat(np.arange(len(judges)), [len(judge.tables) for judge in judges.values()])
        standing = {}
        for name, metric in self.metrics.items():
            value = _per_judge(_over_sets([_values(metric, point) for point, _ in sets]), owner)[0]
            draws = _per_judge(_over_sets([_values(metric, replicates) for _, replicates in sets]), owner)
            standing[name] = _ranked(list(judges), value, draws, clusters=self.clusters)
        return standing


def _square(tables: Any) -> FloatArray:
    return np.asarray(tables, dtype=np.float64).reshape(*tables.shape[:-1], SIZE, SIZE)


def _mean(metric: Metric, tables: IntArray) -> float | None:
    """The metric of each repeat's table (R, 9), averaged."""
    values = _values(metric, _square(tables))
    return float(values.mean()) if len(values) and np.isfinite(values).all() else None


def _counted(metric: Metric, tables: IntArray) -> int:
    square = _square(tables)
    return int((square[:, :2, :2] if metric.decided else square).sum(axis=(1, 2)).max(initial=0))


def _drawn(wide: IntArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """The tables of all judges and repeats (C, 9 each) over one data set's clusters: observed (1, C, 3, 3), and
    bootstrapped (B, C, 3, 3).
    """
    rows, times = distinct_rows(wide)
    clusters, block = len(wide), max(1, AT_ONCE // len(times))
    counts = [
        rng.multinomial(clusters, times / clusters, size=min(block, REPLICATES - begin)) @ rows
        for begin in range(0, REPLICATES, block)
    ]
    point = _square((times @ rows).reshape(1, -1, SIZE * SIZE))
    return point, _square(np.concatenate(counts).reshape(REPLICATES, -1, SIZE * SIZE))


def _over_sets(values: list[FloatArray]) -> FloatArray:
    """The mean of arrays (B, C) over the data sets in which there is a value."""
    stacked = np.stack(values)
    finite = np.isfinite(stacked)
    return ratio(np.where(finite, stacked, 0.0).sum(axis=0), finite.sum(axis=0).astype(np.float64))


def _per_judge(values: FloatArray, owner: IntArray) -> FloatArray:
    """Columns (B, judge and repeat) averaged over each judge's repeats: (B, judges)."""
    times = np.bincount(owner)
    sums = np.stack([values[:, owner == judge].sum(axis=1) for judge in range(len(times))], axis=1)
    return np.asarray(sums / times)


# ---- scores, rankings and readings ----


@dataclass(frozen=True, slots=True)
class _Summed:
    """One judge: by metric, the sums of each repeat by cluster and data set (R, clusters, sets, K), and by level
    (R, levels, K); ranks are taken within each.
    """

    sums: dict[str, FloatArray]
    cells: dict[str, FloatArray]
    items: int
    ranked: bool


class ItemSums:
    """The sums of all judges against one reference, over the same clusters."""

    def __init__(self, metrics: Sequence[Metric], items: pd.DataFrame) -> None:
        codes, clusters = dense_codes(items["group"].to_numpy())
        self.clusters = min(clusters, MOST)
        self.cluster = pd.Series(codes % self.clusters if clusters else codes, index=items.index)
        self.metrics = {metric.name: metric for metric in metrics if metric.terms and metric.of_sums}
        self.levels = sorted(items["level"].unique())
        self.sets = sorted(items["dataset"].unique())
        self.judges: dict[int, _Summed] = {}

    def add(self, run: int, paired: pd.DataFrame, *, ranked: bool) -> None:
        """Add a judge; ``paired`` has ``item, value, told, repeat, dataset, level``."""
        paired = paired[paired["item"].isin(self.cluster.index)]
        repeats = [rows for _, rows in paired.groupby("repeat")]
        sums: dict[str, FloatArray] = {}
        cells: dict[str, FloatArray] = {}
        for name, measure in self.metrics.items() if repeats else ():
            sums[name] = np.stack([self._summed(rows, measure, rows["dataset"], self.sets) for rows in repeats])
            level_sums = [self._summed(rows, measure, rows["level"], self.levels).sum(axis=0) for rows in repeats]
            cells[name] = np.stack(level_sums)
        self.judges[run] = _Summed(sums, cells, int(paired["item"].nunique()), ranked)

    def _summed(self, frame: pd.DataFrame, measure: Metric, part: "pd.Series[str]", parts: list[str]) -> FloatArray:
        """The sums (clusters, parts, K) of the rows that lie in one of ``parts``."""
        frame = frame.assign(part=pd.Categorical(part, parts).codes)
        frame = frame[frame["part"] >= 0]
        assert measure.terms
        terms = measure.terms(frame)
        size = max(len(parts), 1)
        at = self.cluster.reindex(frame["item"]).to_numpy(np.int64) * size + frame["part"].to_numpy(np.int64)
        table = [np.bincount(at, weights=term, minlength=self.clusters * size) for term in terms.T]
        return np.stack(table, axis=1).reshape(self.clusters, size, terms.shape[1]).astype(np.float64)

    def _whole(self, measure: Metric, sums: FloatArray) -> FloatArray:
        """The mean (...) over the data sets that have a value, of sums (..., sets, K)."""
        values = _values(measure, sums)
        finite = np.isfinite(values)
        return ratio(np.where(finite, values, 0.0).sum(axis=-1), finite.sum(axis=-1).astype(np.float64))

    def cells(self) -> dict[str, dict[int, dict[str, Cell]]]:
        """By metric, run and level: the mean over repeats, and of how many rows."""
        by_metric: dict[str, dict[int, dict[str, Cell]]] = {name: {} for name in self.metrics}
        for run, judge in self.judges.items():
            for name, cells in judge.cells.items():
                values = _values(self.metrics[name], cells)
                by_metric[name][run] = {
                    level: Cell(_known(values[:, at]), int(cells[:, at, 0].max(initial=0)))
                    for at, level in enumerate(self.levels)
                    if cells[:, at, 0].any()
                }
        return by_metric

    def standing(self) -> dict[str, dict[int, Place]]:
        """By metric and run, the place among the judges that are not baselines.

        A judge with fewer than 30 items is not ranked.
        """
        judges = {
            run: judge
            for run, judge in self.judges.items()
            if judge.ranked and judge.items >= PROVISIONAL and judge.sums
        }
        standing: dict[str, dict[int, Place]] = {name: {} for name in self.metrics}
        if not judges:
            return standing
        rng = np.random.default_rng(SEED)
        block = max(1, AT_ONCE // self.clusters)
        even = np.full(self.clusters, 1 / self.clusters)
        draws = [
            rng.multinomial(self.clusters, even, size=min(block, REPLICATES - begin))
            for begin in range(0, REPLICATES, block)
        ]
        for name, measure in self.metrics.items():
            sign = -1.0 if measure.lower_is_better else 1.0
            values, replicates = [], []
            for judge in judges.values():
                sums = judge.sums[name]
                values.append(self._whole(measure, sums.sum(axis=1)).mean())
                flat = np.moveaxis(sums, 1, 0).reshape(self.clusters, -1)
                drawn_sums = np.concatenate([part @ flat for part in draws]).reshape(
                    REPLICATES, *np.delete(sums.shape, 1)
                )
                replicates.append(self._whole(measure, drawn_sums).mean(axis=1))
            standing[name] = _ranked(
                list(judges), sign * np.asarray(values), sign * np.stack(replicates, axis=1), clusters=self.clusters
            )
        return standing


# ---- both ----


def _values(metric: Metric, sums: FloatArray) -> FloatArray:
    assert metric.of_sums
    return metric.of_sums(sums)


def _known(values: Any) -> float | None:
    return float(values.mean()) if len(values) and np.isfinite(values).all() else None


def _ranked(runs: list[int], value: FloatArray, draws: FloatArray, *, clusters: int) -> dict[int, Place]:
    """The places of judges by values (J,), higher is better, with replicates (B, J); only judges with all of them."""
    ranked = np.flatnonzero(np.isfinite(value) & np.isfinite(draws).all(axis=0))
    if not len(ranked):
        return {}
    value, draws = value[ranked], draws[:, ranked]
    covariance = np.atleast_2d(np.cov(draws.T))
    low, high = rank_ranges(theta=value, covariance=covariance, rng=np.random.default_rng(SEED))
    tier = tiers(theta=value, covariance=covariance, clusters=max(clusters, 2))
    rank = np.empty(len(ranked), dtype=np.int64)
    rank[np.argsort(-value, kind="stable")] = np.arange(1, len(ranked) + 1)
    return {
        runs[judge]: Place(int(rank[i]), int(min(low[i], rank[i])), int(max(high[i], rank[i])), int(tier[i]))
        for i, judge in enumerate(ranked)
    }
