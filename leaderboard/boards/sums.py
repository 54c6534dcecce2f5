"""Ranks of judges by scores and rankings, and their metrics by data set or level, from sums over clusters.

Every metric is a function of a few sums over the items (for Pearson n, x, y, xx, yy, xy), so a bootstrap draws clusters
once for all judges and adds their sums; what two judges share cancels in their difference. Spearman's ranks are taken
once, within each data set.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from leaderboard import grades
from leaderboard.boards.base import PROVISIONAL, SEED, Row
from leaderboard.boards.standing import REPLICATES, ranked
from leaderboard.scope import KEYED
from stats.arrays import FloatArray, dense_codes, mean_ranks, ratio
from stats.rankings import distances

MOST = 5_000  # clusters drawn: more are put together, which costs no precision at such numbers
AT_ONCE = 4_000_000  # numbers drawn
LOWER = ("levenshtein",)  # is better


def _correlation(sums: FloatArray) -> FloatArray:
    """r of (..., 6) sums n, x, y, xx, yy, xy; NaN where a column does not vary."""
    n, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    vx, vy, cov = n * xx - x * x, n * yy - y * y, n * xy - x * y
    flat = (vx <= 1e-9 * n * n) | (vy <= 1e-9 * n * n)
    return np.where(flat, np.nan, ratio(cov, np.sqrt(np.maximum(vx, 0) * np.maximum(vy, 0))))


def _mean(sums: FloatArray) -> FloatArray:
    return ratio(sums[..., 1], sums[..., 0])


@dataclass(frozen=True, slots=True)
class Measure:
    """``terms`` turns rows into the columns that are summed, ``of`` the sums (..., K) into values."""

    terms: Callable[[pd.DataFrame], FloatArray]
    of: Callable[[FloatArray], FloatArray]


def _products(x: FloatArray, y: FloatArray) -> FloatArray:
    return np.stack([np.ones(len(x)), x, y, x * x, y * y, x * y], axis=1)


def _scores(frame: pd.DataFrame) -> FloatArray:
    x, y = frame["told"].to_numpy(np.float64), frame["value"].to_numpy(np.float64)
    return _products(x - x.mean(), y - y.mean()) if len(x) else np.zeros((0, 6))


def _ranks(frame: pd.DataFrame) -> FloatArray:
    columns = []
    for name in ("told", "value"):
        within = frame.groupby("part")[name].transform(lambda values: mean_ranks(values.to_numpy()) / len(values))
        columns.append(within.to_numpy(np.float64) - 0.5)
    return _products(columns[0], columns[1]) if len(frame) else np.zeros((0, 6))


def _distance(frame: pd.DataFrame) -> FloatArray:
    letters = [[grades.as_letters(places) for places in frame[column]] for column in ("told", "value")]
    return np.stack([np.ones(len(frame)), distances(first=letters[0], second=letters[1])], axis=1)


def _hits(frame: pd.DataFrame) -> FloatArray:
    return np.stack([np.ones(len(frame)), (frame["told"] == frame["value"]).to_numpy(np.float64)], axis=1)


def measures_of(kind: str) -> dict[str, Measure]:
    """The metrics of a kind that judges are ranked by."""
    if kind == "batch":
        return {"levenshtein": Measure(_distance, _mean)}
    if kind in KEYED:
        return {"agreement": Measure(_hits, _mean)}
    return {"pearson": Measure(_scores, _correlation), "spearman": Measure(_ranks, _correlation)}


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

    def __init__(self, kind: str, items: pd.DataFrame, columns: list[str]) -> None:
        codes, clusters = dense_codes(items["group"].to_numpy())
        self.clusters = min(clusters, MOST)
        self.cluster = pd.Series(codes % self.clusters if clusters else codes, index=items.index)
        self.measures = measures_of(kind)
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

    def _summed(self, frame: pd.DataFrame, measure: Measure, part: "pd.Series[str]", parts: list[str]) -> FloatArray:
        """The sums (clusters, parts, K) of the rows that lie in one of ``parts``."""
        frame = frame.assign(part=pd.Categorical(part, parts).codes)
        frame = frame[frame["part"] >= 0]
        terms = measure.terms(frame)
        size = max(len(parts), 1)
        at = self.cluster.reindex(frame["item"]).to_numpy(np.int64) * size + frame["part"].to_numpy(np.int64)
        table = [np.bincount(at, weights=term, minlength=self.clusters * size) for term in terms.T]
        return np.stack(table, axis=1).reshape(self.clusters, size, terms.shape[1]).astype(np.float64)

    def _whole(self, measure: Measure, sums: FloatArray) -> FloatArray:
        """The mean (...) over the data sets that have a value, of sums (..., sets, K)."""
        each = measure.of(sums)
        known = np.isfinite(each)
        return ratio(np.where(known, each, 0.0).sum(axis=-1), known.sum(axis=-1).astype(np.float64))

    def by_column(self) -> dict[str, dict[int, dict[str, Row]]]:
        """By metric, run and column: ``value`` (the mean over repeats) and ``n``."""
        found: dict[str, dict[int, dict[str, Row]]] = {name: {} for name in self.measures}
        for run, judged in self.judges.items():
            for name, cells in judged.cells.items():
                values = self.measures[name].of(cells)
                found[name][run] = {
                    column: {"value": _known(values[:, at]), "n": int(cells[:, at, 0].max(initial=0))}
                    for at, column in enumerate(self.columns)
                    if cells[:, at, 0].any()
                }
        return found

    def standing(self) -> dict[str, dict[int, Row]]:
        """By metric and run: ``rank``, ``rank_low``, ``rank_high``, ``tier`` among judges that are no baselines.

        A judge over fewer than 30 items is not ranked.
        """
        judges = {run: one for run, one in self.judges.items() if one.ranked and one.items >= PROVISIONAL and one.sums}
        found: dict[str, dict[int, Row]] = {name: {} for name in self.measures}
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
            sign = -1.0 if name in LOWER else 1.0
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


def _known(values: Any) -> float | None:
    return float(values.mean()) if len(values) and np.isfinite(values).all() else None
