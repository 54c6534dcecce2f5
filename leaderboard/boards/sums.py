"""Ranks of judges by scores and rankings, and their metrics by data set or level, from sums over clusters.

Every metric is a function of a few sums over the items (for Pearson n, x, y, xx, yy, xy), so a bootstrap draws clusters
once for all judges and adds their sums; what two judges share cancels in their difference. Spearman's ranks are taken
once, within each data set.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from leaderboard.boards.base import Cell
from leaderboard.boards.standing import REPLICATES, ranked
from leaderboard.methods import PROVISIONAL, SEED
from leaderboard.metrics import Metric
from stats.arrays import FloatArray, dense_codes, ratio
from stats.means import Place

MOST = 5_000  # clusters drawn: more are put together, which costs no precision at such numbers
AT_ONCE = 4_000_000  # numbers drawn


@dataclass(frozen=True, slots=True)
class _Judged:
    """One judge: by metric, the sums of each repeat by cluster and data set (R, clusters, sets, K), and by column
    (R, columns, K); ranks are taken within each.
    """

    sums: dict[str, FloatArray]
    cells: dict[str, FloatArray]
    items: int
    ranked: bool


class Sums:
    """The sums of all judges against one reference over the same clusters; ``columns`` are data sets or levels."""

    def __init__(self, metrics: Sequence[Metric], items: pd.DataFrame, columns: list[str]) -> None:
        codes, clusters = dense_codes(items["group"].to_numpy())
        self.clusters = min(clusters, MOST)
        self.cluster = pd.Series(codes % self.clusters if clusters else codes, index=items.index)
        self.measures = {one.name: one for one in metrics if one.terms and one.of_sums}
        self.columns = columns
        self.sets = sorted(items["dataset"].unique())
        self.judges: dict[int, _Judged] = {}

    def add(self, run: int, both: pd.DataFrame, *, ranked: bool) -> None:
        """``both`` as ``item, value, told, repeat, dataset, level``."""
        both = both[both["item"].isin(self.cluster.index)]
        repeats = [one for _, one in both.groupby("repeat")]
        sums: dict[str, FloatArray] = {}
        cells: dict[str, FloatArray] = {}
        for name, measure in self.measures.items() if repeats else ():
            sums[name] = np.stack([self._summed(one, measure, one["dataset"], self.sets) for one in repeats])
            column = "dataset" if len(self.sets) > 1 else "level"
            by = [self._summed(one, measure, one[column], self.columns).sum(axis=0) for one in repeats]
            cells[name] = np.stack(by)
        self.judges[run] = _Judged(sums, cells, int(both["item"].nunique()), ranked)

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
        each = _values(measure, sums)
        known = np.isfinite(each)
        return ratio(np.where(known, each, 0.0).sum(axis=-1), known.sum(axis=-1).astype(np.float64))

    def by_column(self) -> dict[str, dict[int, dict[str, Cell]]]:
        """By metric, run and column: ``value`` (the mean over repeats) and ``n``."""
        found: dict[str, dict[int, dict[str, Cell]]] = {name: {} for name in self.measures}
        for run, judged in self.judges.items():
            for name, cells in judged.cells.items():
                values = _values(self.measures[name], cells)
                found[name][run] = {
                    column: Cell(_known(values[:, at]), int(cells[:, at, 0].max(initial=0)))
                    for at, column in enumerate(self.columns)
                    if cells[:, at, 0].any()
                }
        return found

    def standing(self) -> dict[str, dict[int, Place]]:
        """By metric and run: ``rank``, ``rank_low``, ``rank_high``, ``tier`` among judges that are no baselines.

        A judge over fewer than 30 items is not ranked.
        """
        judges = {run: one for run, one in self.judges.items() if one.ranked and one.items >= PROVISIONAL and one.sums}
        found: dict[str, dict[int, Place]] = {name: {} for name in self.measures}
        if not judges:
            return found
        rng = np.random.default_rng(SEED)
        block = max(1, AT_ONCE // self.clusters)
        even = np.full(self.clusters, 1 / self.clusters)
        draws = [
            rng.multinomial(self.clusters, even, size=min(block, REPLICATES - begin))
            for begin in range(0, REPLICATES, block)
        ]
        for name, measure in self.measures.items():
            sign = -1.0 if measure.lower_is_better else 1.0
            value, drawn = [], []
            for judged in judges.values():
                sums = judged.sums[name]
                value.append(self._whole(measure, sums.sum(axis=1)).mean())
                flat = np.moveaxis(sums, 1, 0).reshape(self.clusters, -1)
                each = np.concatenate([part @ flat for part in draws]).reshape(REPLICATES, *np.delete(sums.shape, 1))
                drawn.append(self._whole(measure, each).mean(axis=1))
            found[name] = ranked(
                list(judges), sign * np.asarray(value), sign * np.stack(drawn, axis=1), clusters=self.clusters
            )
        return found


def _values(metric: Metric, sums: FloatArray) -> FloatArray:
    assert metric.of_sums
    return metric.of_sums(sums)


def _known(values: Any) -> float | None:
    return float(values.mean()) if len(values) and np.isfinite(values).all() else None
