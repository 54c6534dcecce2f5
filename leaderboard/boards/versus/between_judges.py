"""Two judges' runs, held against the same people."""

from typing import Any

import numpy as np
import pandas as pd

from judging.models import Run
from leaderboard import votes
from leaderboard.boards.base import Row
from leaderboard.boards.versus.measures import (
    Versus,
    by_level_of,
    clusters_of,
    fixed,
    measure,
    of_rows,
    tested_together,
)
from leaderboard.methods import SEED
from leaderboard.metrics import distance_of_rankings
from leaderboard.scope import BadScope, Scope
from leaderboard.votes import scores
from stats.arrays import FloatArray, dense_codes
from stats.correlation import pearson, spearman, williams
from stats.resampling import BOOTSTRAP
from stats.results import Estimate, Interval, StatisticsError
from stats.verdicts import decided, majority, three_way

REPLICATES = 1000


def judges(scope: Scope, a: int, b: int) -> Versus:
    """Two judges' runs against people, on the items that both judged. Raises BadScope where one has nothing."""
    first, second = _group(scope, a), _group(scope, b)
    if first[-1].pk == second[-1].pk:
        raise BadScope("Choose two different judges, or two settings of one.")
    return tested_together(scope.kind.compare_judges(scope, first, second))


def named(runs: list[Run], other: list[Run]) -> str:
    """The judge, with its run where the other has the same name."""
    run = runs[-1]
    return f"{run.judge.name}, run {run.pk}" if other[-1].judge_id == run.judge_id else run.judge.name


def _group(scope: Scope, pk: int) -> list[Run]:
    """The runs that count together with this one."""
    runs = votes.judged_runs(scope)
    chosen = runs.filter(pk=pk).first()
    if chosen is None:
        raise BadScope(f"There is no run {pk} of this kind on {scope.benchmark}.")
    same = runs.filter(judge=chosen.judge, protocol=chosen.protocol, settings_hash=chosen.settings_hash)
    return list(same)


def by_pairs(scope: Scope, first: list[Run], second: list[Run]) -> Versus:
    items = votes.pairs(scope)
    labels = votes.labels_of(scope)
    labels = labels[labels["item"].isin(items.index)]
    people = majority(labels=labels, rule=scope.rule)[["choice"]].rename(columns={"choice": "people"})
    told = [votes.of_runs(runs).frame for runs in (first, second)]
    both = people
    for name, frame in zip(("told_a", "told_b"), told, strict=True):
        # Of several repeats the first: a paired test takes one verdict an item.
        one = frame[frame["repeat"] == 0].set_index("item")["choice"].rename(name)
        both = both.join(one, how="inner")
    both = both.join(items[["level", "group", "dataset"]], how="inner")
    truth = three_way(both["people"])
    hits = {name: (three_way(both[f"told_{name}"]) == truth).astype(float) for name in ("a", "b")}
    accuracy = both.assign(**hits)
    sided = decided(both["people"])
    told_a, told_b = decided(both["told_a"]), decided(both["told_b"])
    known = (sided >= 0) & (told_a >= 0) & (told_b >= 0)
    decisions = both[known].assign(a=(told_a == sided)[known].astype(float), b=(told_b == sided)[known].astype(float))
    measures = [
        of_rows("Accuracy", accuracy),
        of_rows("Accuracy, where all three chose a side", decisions),
    ]
    table = pd.DataFrame(
        {"a": both["told_a"], "b": both["told_b"], "people": both["people"], "apart": np.abs(hits["a"] - hits["b"])},
        index=both.index,
    )
    notes = ["Of several repeats the first counts here."] if any(frame["repeat"].max() > 0 for frame in told) else []
    notes += fixed(both)
    runs = tuple(run.pk for run in (*first, *second))
    a, b = named(first, second), named(second, first)
    return Versus(a, b, "points", measures, by_level_of(scope, accuracy), table, notes=notes, runs=runs)


def _beside(scope: Scope, first: list[Run], second: list[Run]) -> pd.DataFrame:
    """What people (``people``) and the two judges (``told_a``, ``told_b``) say of the items that all have."""
    items = scores.items_of(scope)
    labels = scope.kind.numbers(scope, scores.labels_of(scope), items)
    people = labels[labels["item"].isin(items.index)].groupby("item")["value"].agg(scores.mean_of).rename("people")
    both = people.to_frame()
    for name, group in (("told_a", first), ("told_b", second)):
        told = scope.kind.numbers(scope, scores.of_runs(scope, group), items)
        both = both.join(told.groupby("item")["value"].agg(scores.mean_of).rename(name), how="inner")
    return both.join(items[["level", "group", "dataset"]], how="inner")


def _versus(
    first: list[Run],
    second: list[Run],
    unit: str,
    measures: list[Row],
    levels: list[Row],
    table: pd.DataFrame,
    **more: Any,
) -> Versus:
    runs = tuple(run.pk for run in (*first, *second))
    return Versus(named(first, second), named(second, first), unit, measures, levels, table, runs=runs, **more)


def by_readings(scope: Scope, first: list[Run], second: list[Run]) -> Versus:
    """By whether each reads an answer as most people do."""
    both = _beside(scope, first, second)
    hits = both.assign(**{name: (both[f"told_{name}"] == both["people"]).astype(float) for name in ("a", "b")})
    table, levels = _told(both, hits["a"] - hits["b"]), by_level_of(scope, hits)
    return _versus(first, second, "points", [of_rows("Agreement", hits)], levels, table, notes=fixed(both))


def by_rankings(scope: Scope, first: list[Run], second: list[Run]) -> Versus:
    """By the distance from people's order."""
    both = _beside(scope, first, second)
    far = both.assign(**{name: _distances(both, f"told_{name}") for name in ("a", "b")})
    table, levels = _told(both, far["a"] - far["b"]), by_level_of(scope, far)
    row = of_rows("Distance from people's order (lower is better)", far)
    return _versus(first, second, "distance", [row], levels, table, notes=fixed(both))


def by_scores(scope: Scope, first: list[Run], second: list[Run]) -> Versus:
    """By the correlation with people's scores, and the distance from them."""
    both = _beside(scope, first, second)
    measures = [_correlations(name, both) for name in ("Pearson", "Spearman")]
    near = both.assign(**{name: (both[f"told_{name}"] - both["people"]).abs() for name in ("a", "b")})
    measures.append(of_rows("Distance from people's score (lower is better)", near, shares=False))
    table = _told(both, both["told_a"].astype(float) - both["told_b"].astype(float))
    return _versus(
        first,
        second,
        "correlation",
        measures,
        by_level_of(scope, near, shares=False),
        table,
        notes=fixed(both),
        by_level=measures[-1]["measure"],
        of_sets=near["dataset"].nunique() > 1,
    )


def _told(both: pd.DataFrame, change: "pd.Series[Any]") -> pd.DataFrame:
    columns = {"a": both["told_a"], "b": both["told_b"], "people": both["people"], "apart": change.abs()}
    return pd.DataFrame(columns, index=both.index)


def _distances(both: pd.DataFrame, name: str) -> FloatArray:
    return distance_of_rankings(both.rename(columns={name: "told", "people": "value"})[["told", "value"]])


def _correlations(name: str, both: pd.DataFrame) -> Row:
    """The difference of two correlations with people: the mean over data sets, by bootstrap of clusters; with one data
    set and one item a cluster, p by Williams' t.
    """
    if len(both) < 4:
        return measure(name, None, None, Estimate(None, len(both), None, "", "too few items in common"), None, "")
    x, y, people = (both[column].to_numpy(np.float64) for column in ("told_a", "told_b", "people"))
    codes, clusters = dense_codes(clusters_of(both))
    sets, _ = dense_codes(both["dataset"].to_numpy())
    parts = [np.flatnonzero(sets == one) for one in np.unique(sets)]
    rng = np.random.default_rng(SEED)

    def value(one: FloatArray, at: Any) -> float | None:
        of = pearson if name == "Pearson" else spearman
        return of(x=one[at], y=people[at], cluster=np.arange(len(at)), rng=rng).estimate.value

    known = [(value(x, at), value(y, at)) for at in parts]
    pairs = [(one, other) for one, other in known if one is not None and other is not None]
    if not pairs:
        empty = Estimate(None, len(both), None, "", "a column is constant")
        return measure(name, None, None, empty, None, "")
    a, b = (float(np.mean([pair[side] for pair in pairs])) for side in (0, 1))
    drawn = _drawn_differences(name, both, codes, clusters, parts, rng)
    apart = Estimate(a - b, len(both), None, BOOTSTRAP)
    p, method = None, BOOTSTRAP
    if len(drawn) > REPLICATES / 2:
        low, high = np.quantile(drawn, [0.025, 0.975])
        ends = Interval(min(float(low), a - b), max(float(high), a - b), 0.95, BOOTSTRAP)
        apart = Estimate(a - b, len(both), ends, BOOTSTRAP)
        p = min(1.0, 2 * (1 + min(int((drawn <= 0).sum()), int((drawn >= 0).sum()))) / (len(drawn) + 1))
    if len(parts) == 1 and clusters == len(both) and name == "Pearson":
        between = pearson(x=x, y=y, cluster=np.arange(len(x)), rng=rng).estimate.value
        try:
            test = williams(r_first=a, r_second=b, r_between=between or 0.0, n=len(both))
            p, method = test.p, test.method
        except StatisticsError:
            p = None
    return measure(name, a, b, apart, p, method)


def _drawn_differences(
    name: str, both: pd.DataFrame, codes: Any, clusters: int, parts: list[Any], rng: np.random.Generator
) -> FloatArray:
    """Bootstrap replicates of the difference, clusters drawn for both judges at once; ranks are taken once."""
    columns = {column: both[column].to_numpy(np.float64) for column in ("told_a", "told_b", "people")}
    if name == "Spearman":
        sets = both["dataset"].to_numpy()
        columns = {key: pd.Series(one).groupby(sets).rank().to_numpy() for key, one in columns.items()}
    found = []
    block = max(1, 2_000_000 // max(len(both), 1))
    even = np.full(clusters, 1 / clusters)
    for begin in range(0, REPLICATES, block):
        weights = rng.multinomial(clusters, even, size=min(block, REPLICATES - begin))[:, codes].astype(np.float64)
        each = [
            _weighted(columns["told_a"][at], columns["people"][at], weights[:, at])
            - _weighted(columns["told_b"][at], columns["people"][at], weights[:, at])
            for at in parts
        ]
        found.append(np.nanmean(np.stack(each), axis=0) if len(each) > 1 else each[0])
    drawn = np.concatenate(found)
    return np.asarray(drawn[np.isfinite(drawn)])


def _weighted(x: FloatArray, y: FloatArray, weights: FloatArray) -> FloatArray:
    total = weights.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        mx, my = weights @ x / total, weights @ y / total
        xx, yy = weights @ (x * x) / total - mx * mx, weights @ (y * y) / total - my * my
        found: FloatArray = (weights @ (x * y) / total - mx * my) / np.sqrt(xx * yy)
    return found
