"""Ranks of judges, and their metrics by level.

Every metric is a function of a few sums over the items: confusion tables of votes on pairs; for Pearson n, x, y, xx,
yy, xy. So each group of items is left out once for all judges, by a subtraction, and what two judges share cancels in
their difference. Spearman's ranks are computed once, within each data set.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd

from leaderboard.methods import PROVISIONAL, SEED
from leaderboard.metrics import Metric
from stats.arrays import FloatArray, ratio
from stats.jackknife import Blocks
from stats.ranks import Place, degrees_of_freedom, places


@dataclass(frozen=True, slots=True)
class LevelValue:
    """A metric within a level or data set, and the number of rows behind it."""

    value: float | None
    n: int


@dataclass(frozen=True, slots=True)
class _Summed:
    """One judge: by metric, the sums of each repeat by block of groups and data set (R, blocks, sets, K), and by level
    (R, levels, K); ranks are taken within each.
    """

    sums: dict[str, FloatArray]
    cells: dict[str, FloatArray]
    items: int
    ranked: bool


class ItemSums:
    """The sums of all judges against one reference, over the same blocks of groups."""

    def __init__(self, metrics: Sequence[Metric], items: pd.DataFrame) -> None:
        self.blocks = Blocks.of(items["group"].to_numpy())
        self.block = pd.Series(self.blocks.codes, index=items.index)
        self.metrics = {metric.name: metric for metric in metrics if metric.terms and metric.of_sums}
        self.levels = sorted(items["level"].dropna().unique())  # an item of which no part may tell has none
        self.sets = sorted(items["dataset"].unique())
        self.judges: dict[int, _Summed] = {}

    def add(self, run: int, paired: pd.DataFrame, *, ranked: bool) -> None:
        """Add a judge; ``paired`` has ``item, value, judged, repeat, dataset, level``."""
        paired = paired[paired["item"].isin(self.block.index)]
        repeats = [rows for _, rows in paired.groupby("repeat")]
        by_set = [self._summed(rows, rows["dataset"], self.sets) for rows in repeats]
        by_level = [self._summed(rows, rows["level"], self.levels) for rows in repeats]
        names = self.metrics if repeats else ()
        sums = {name: np.stack([summed[name] for summed in by_set]) for name in names}
        cells = {name: np.stack([summed[name].sum(axis=0) for summed in by_level]) for name in names}
        self.judges[run] = _Summed(sums, cells, int(paired["item"].nunique()), ranked)

    def _summed(self, frame: pd.DataFrame, part: "pd.Series[str]", parts: list[str]) -> dict[str, FloatArray]:
        """By metric, the sums (blocks, parts, K) of the rows that lie in one of ``parts``."""
        frame = frame.assign(part=pd.Index(parts).get_indexer(part.astype(object)))
        frame = frame[frame["part"] >= 0]
        size = max(len(parts), 1)
        at = self.block.reindex(frame["item"]).to_numpy(np.int64) * size + frame["part"].to_numpy(np.int64)

        @cache  # several metrics are functions of the same terms
        def sums_of(terms: Callable[[pd.DataFrame], FloatArray]) -> FloatArray:
            columns = np.ascontiguousarray(terms(frame).T)
            table = [np.bincount(at, weights=column, minlength=self.blocks.count * size) for column in columns]
            return np.stack(table, axis=1).reshape(self.blocks.count, size, len(columns)).astype(np.float64)

        return {name: sums_of(metric.terms) for name, metric in self.metrics.items() if metric.terms}

    def cells(self) -> dict[str, dict[int, dict[str, LevelValue]]]:
        """By metric, run and level: the mean over repeats, and of how many rows."""
        by_metric: dict[str, dict[int, dict[str, LevelValue]]] = {name: {} for name in self.metrics}
        for run, judge in self.judges.items():
            for name, cells in judge.cells.items():
                values = _values(self.metrics[name], cells)
                by_metric[name][run] = {
                    level: LevelValue(_known(values[:, at]), int(cells[:, at, 0].max(initial=0)))
                    for at, level in enumerate(self.levels)
                    if cells[:, at].any()
                }
        return by_metric

    def standing(self) -> dict[str, dict[int, Place]]:
        """By metric and run, the place among the judges that are not baselines.

        The covariance of the metrics comes from leaving the same groups out for all judges; ranges and tiers from
        ``stats.ranks``. A judge with fewer than 30 items is not ranked.
        """
        judges = {
            run: judge
            for run, judge in self.judges.items()
            if judge.ranked and judge.items >= PROVISIONAL and judge.sums
        }
        standing: dict[str, dict[int, Place]] = {}
        for name, measure in self.metrics.items():
            sign = -1.0 if measure.lower_is_better else 1.0
            values, without, groups, effective = [], [], [], []
            for judge in judges.values():
                sums = judge.sums[name]
                total = sums.sum(axis=1, keepdims=True)
                values.append(sign * _over_sets(measure, total).mean())
                without.append(sign * _over_sets(measure, total - sums).mean(axis=0))
                least, equal = _groups(sums[..., 0].sum(axis=0))
                groups.append(least)
                effective.append(equal)
            df = degrees_of_freedom(np.array(groups), np.array(effective))
            standing[name] = _ranked(list(judges), np.array(values), np.array(without), df) if judges else {}
        return standing


def _groups(rows: FloatArray) -> tuple[int, float]:
    """Of rows (blocks, sets) where each data set counts alike: how many groups the smallest set has, and how many equal
    groups would weigh the same (Kish 1965).
    """
    of_set = rows.sum(axis=0)
    rows, of_set = rows[:, of_set > 0], of_set[of_set > 0]
    if not len(of_set):
        return 0, 0.0
    weights = (rows / of_set).sum(axis=1)
    return int((rows > 0).sum(axis=0).min()), float(weights.sum() ** 2 / (weights @ weights))


def _over_sets(measure: Metric, sums: FloatArray) -> FloatArray:
    """The mean (...) over the data sets that have a value, of sums (..., sets, K)."""
    values = _values(measure, sums)
    finite = np.isfinite(values)
    return ratio(np.where(finite, values, 0.0).sum(axis=-1), finite.sum(axis=-1).astype(np.float64))


def _values(metric: Metric, sums: FloatArray) -> FloatArray:
    assert metric.of_sums
    return metric.of_sums(sums)


def _known(values: FloatArray) -> float | None:
    return float(values.mean()) if len(values) and np.isfinite(values).all() else None


def _ranked(runs: list[int], value: FloatArray, without: FloatArray, df: FloatArray) -> dict[int, Place]:
    """The places of judges by values (J,), higher is better; ``without`` (J, blocks) has them without each block, and
    ``df`` (J,) the degrees of freedom. Only judges with all of these, and only the order where these are 0.
    """
    ranked = np.flatnonzero(np.isfinite(value) & np.isfinite(without).all(axis=1))
    if not len(ranked):
        return {}
    value, deviations = value[ranked], without[ranked] - value[ranked, None]
    count = without.shape[1]
    covariance = (count - 1) / count * (deviations @ deviations.T)
    in_order = places(theta=value, covariance=covariance, df=df[ranked], rng=np.random.default_rng(SEED))
    return {runs[judge]: place for judge, place in zip(ranked, in_order, strict=True)}
