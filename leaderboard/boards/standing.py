"""Ranks of judges, and their metrics by level, from confusion tables: one per judge, repeat and sample."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from leaderboard import votes
from leaderboard.boards.base import Cell
from leaderboard.methods import PROVISIONAL, SEED
from leaderboard.metrics import PAIRS, Metric
from stats.arrays import FloatArray, IntArray, dense_codes, ratio
from stats.classification import confusion_by_cluster
from stats.means import Place
from stats.ranks import rank_ranges, tiers
from stats.resampling import distinct_rows
from stats.verdicts import three_way

REPLICATES = 1000
AT_ONCE = 4_000_000  # numbers drawn
SIZE = 3  # first, second, tie


MEASURES = {one.name: one for one in PAIRS if one.of_sums}


@dataclass(frozen=True, slots=True)
class _Judged:
    """One judge: a confusion table per repeat and cluster (R, clusters, 9), and per repeat and level."""

    tables: IntArray
    levels: dict[str, IntArray]
    items: int
    ranked: bool


class Tables:
    """The confusion tables of all judges against one reference, over the same clusters."""

    def __init__(self, items: pd.DataFrame) -> None:
        codes, self.clusters = dense_codes(votes.clusters(items.reset_index()).to_numpy())
        self.cluster = pd.Series(codes, index=items.index)
        sets, _ = dense_codes(items["dataset"].to_numpy())
        self.dataset = np.zeros(self.clusters, dtype=np.int64)  # of each cluster; none lies in two
        self.dataset[codes] = sets
        self.judges: dict[int, _Judged] = {}

    def add(self, run: int, both: pd.DataFrame, *, ranked: bool) -> None:
        """``both`` as ``item, value, told, repeat, level``."""
        repeats = sorted(both["repeat"].unique().tolist())
        tables = [self._confusion(both[both["repeat"] == repeat]) for repeat in repeats]
        of_level = {str(name): part for name, part in both.groupby("level")}
        self.judges[run] = _Judged(
            np.stack(tables) if tables else np.zeros((0, self.clusters, SIZE * SIZE), dtype=np.int64),
            {
                level: np.stack([self._confusion(part[part["repeat"] == r]).sum(axis=0) for r in repeats])
                for level, part in of_level.items()
            },
            int(both["item"].nunique()),
            ranked,
        )

    def _confusion(self, frame: pd.DataFrame) -> IntArray:
        cluster = self.cluster.reindex(frame["item"]).to_numpy()
        first, second = three_way(frame["value"]), three_way(frame["told"])
        return confusion_by_cluster(first, second, size=SIZE, cluster=cluster, clusters=self.clusters)

    def by_level(self) -> dict[str, dict[int, dict[str, Cell]]]:
        """By metric, run and level: ``value`` and ``n``."""
        found: dict[str, dict[int, dict[str, Cell]]] = {name: {} for name in MEASURES}
        for run, judged in self.judges.items():
            for name, metric in MEASURES.items():
                found[name][run] = {
                    level: Cell(_mean(metric, tables), _counted(metric, tables))
                    for level, tables in judged.levels.items()
                }
        return found


def _square(tables: Any) -> FloatArray:
    return np.asarray(tables, dtype=np.float64).reshape(*tables.shape[:-1], SIZE, SIZE)


def _mean(metric: Metric, tables: IntArray) -> float | None:
    """The metric of each repeat's table (R, 9), averaged."""
    values = _values(metric, _square(tables))
    return float(values.mean()) if len(values) and np.isfinite(values).all() else None


def _values(metric: Metric, tables: FloatArray) -> FloatArray:
    assert metric.of_sums
    return metric.of_sums(tables)


def _counted(metric: Metric, tables: IntArray) -> int:
    square = _square(tables)
    return int((square[:, :2, :2] if metric.decided else square).sum(axis=(1, 2)).max(initial=0))


def standing_of(tables: Tables) -> dict[str, dict[int, Place]]:
    """By metric and run: ``rank``, ``rank_low``, ``rank_high``, ``tier`` among the judges that are no baselines.

    The covariance of the metrics comes from a bootstrap that draws the same clusters for all judges, so that what two
    of them share cancels; ranges and tiers are then those of ``stats.ranks``. A judge over fewer than 30
    items is not ranked.
    """
    judges = {run: judged for run, judged in tables.judges.items() if judged.ranked and judged.items >= PROVISIONAL}
    if not judges:
        return {name: {} for name in MEASURES}
    rng = np.random.default_rng(SEED)
    wide = np.concatenate([repeat for judged in judges.values() for repeat in judged.tables], axis=1)
    sets = [_drawn(wide[tables.dataset == one], rng) for one in np.unique(tables.dataset)]
    owner = np.repeat(np.arange(len(judges)), [len(judged.tables) for judged in judges.values()])
    found = {}
    for name, metric in MEASURES.items():
        value = _per_judge(_over_sets([_values(metric, point) for point, _ in sets]), owner)[0]
        draws = _per_judge(_over_sets([_values(metric, drawn) for _, drawn in sets]), owner)
        found[name] = ranked(list(judges), value, draws, clusters=tables.clusters)
    return found


def _drawn(wide: IntArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """The tables of all judges and repeats (C, 9 each) over one data set's clusters: as they are (1, C, 3, 3), and
    drawn (B, C, 3, 3).
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
    known = np.isfinite(stacked)
    return ratio(np.where(known, stacked, 0.0).sum(axis=0), known.sum(axis=0).astype(np.float64))


def _per_judge(values: FloatArray, owner: IntArray) -> FloatArray:
    """Columns (B, judge and repeat) averaged over each judge's repeats: (B, judges)."""
    times = np.bincount(owner)
    sums = np.stack([values[:, owner == judge].sum(axis=1) for judge in range(len(times))], axis=1)
    return np.asarray(sums / times)


def ranked(runs: list[int], value: FloatArray, draws: FloatArray, *, clusters: int) -> dict[int, Place]:
    known = np.flatnonzero(np.isfinite(value) & np.isfinite(draws).all(axis=0))
    if not len(known):
        return {}
    value, draws = value[known], draws[:, known]
    covariance = np.atleast_2d(np.cov(draws.T))
    low, high = rank_ranges(theta=value, covariance=covariance, rng=np.random.default_rng(SEED))
    tier = tiers(theta=value, covariance=covariance, clusters=max(clusters, 2))
    rank = np.empty(len(known), dtype=np.int64)
    rank[np.argsort(-value, kind="stable")] = np.arange(1, len(known) + 1)
    return {
        runs[judge]: Place(int(rank[i]), int(min(low[i], rank[i])), int(max(high[i], rank[i])), int(tier[i]))
        for i, judge in enumerate(known)
    }
