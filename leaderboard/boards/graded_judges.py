"""The boards of judges by scores, points, rankings and readings of answers, beside how well people match each other."""

from typing import Any

import numpy as np
import pandas as pd

from judging.models import Run
from leaderboard import grades, points
from leaderboard.boards.base import SEED, Board, Row, averaged, level_names, number, share
from leaderboard.boards.running import running
from leaderboard.boards.sources import judge_groups
from leaderboard.boards.sums import Sums
from leaderboard.scope import KEYED, Scope
from stats.agreement import cohen_kappa
from stats.correlation import PEARSON, SPEARMAN, Correlation, mean_over_sets, pearson, spearman
from stats.proportions import mean, rate
from stats.rankings import distances
from stats.results import Estimate
from stats.steadiness import steadiness

NO_LABELS = "No labels by people yet, so no judge can be compared with them."
CORRELATIONS = {PEARSON: pearson, SPEARMAN: spearman}
ALL = "all"
PEOPLE = 0  # where runs are told apart by number: people against people
REFERENCES = ("majority", "individuals")
Metric = tuple[str, Estimate, float | None]  # its name, its value, and p where there is one


def judges(scope: Scope) -> Board:
    """How each judge's scores, rankings or readings compare with people's (MLLM-as-a-Judge, Tables 2 and 9).

    Scores, and components in percent of their weights: Pearson with p, and Spearman; rankings: the normalized
    Levenshtein distance; readings of what an answer chose: agreement and kappa (MMBench, Figure 5). Within each source
    data set, and ``all``: the unweighted mean over the sets that have a value. The reference ``majority`` is the mean
    of the annotators (the most frequent word); ``individuals`` takes every label by itself.

    ``extra`` is that of the board of pairs; its ``levels`` are the data sets where there are several.
    """
    items = grades.items_of(scope)
    labels = numbers_of(scope, grades.labels_of(scope), items)
    labels = labels[labels["item"].isin(items.index)]
    if labels.empty:
        return Board([], [NO_LABELS])
    references = {
        "majority": labels.groupby("item")["value"].agg(grades.mean_of).reset_index(),
        "individuals": labels[["item", "value"]],
    }
    columns = columns_of(scope, items.loc[items.index.isin(labels["item"])])
    sums = {name: Sums(scope.kind, items.loc[items.index.isin(labels["item"])], columns) for name in REFERENCES}
    rows: list[Row] = []
    used: list[Run] = []
    for runs in judge_groups(scope):
        found = numbers_of(scope, grades.of_runs(scope, runs), items)
        used += runs
        for reference, truth in references.items():
            both = truth.merge(found.rename(columns={"value": "told"}), on="item").join(items, on="item", how="inner")
            rows += _judge_rows(scope, runs[-1], reference, truth, both)
            sums[reference].add(runs[-1].pk, both, ranked=not runs[0].judge.baseline)
    ceilings = {}
    for name in REFERENCES:
        against = _against_others(labels) if name == "majority" else _against_each(labels)
        both = against.assign(repeat=0).join(items, on="item", how="inner")
        sums[name].add(PEOPLE, both, ranked=False)
        ceilings[name] = _ceiling(scope, both, twice=name == "individuals")
    extra = {
        "labels": len(labels),
        "annotators": int(labels["annotator"].nunique()),
        "items": len(references["majority"]),
        "ceiling": ceilings,
        "standing": {name: sums[name].standing() for name in REFERENCES},
        "levels": {name: sums[name].by_column() for name in REFERENCES},
        "level_order": columns,
        "running": running(used),
    }
    return Board(rows, [], tuple(run.pk for run in used), extra)


def columns_of(scope: Scope, items: pd.DataFrame) -> list[str]:
    """What the cells of a judge are by: source data sets where there are several, else the levels."""
    datasets = sorted(items["dataset"].unique())
    return datasets if len(datasets) > 1 else [name for name in level_names(scope) if name in set(items["level"])]


def numbers_of(scope: Scope, frame: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
    """With points by component as percentages of their weights, and yes or no as words."""
    if scope.kind == "yes-no":
        return frame.assign(value=frame["value"].map({True: "yes", False: "no"}))
    if scope.kind != "components" or frame.empty:
        return frame
    told = frame[frame["item"].isin(items.index)]
    whole, _, _ = points.shares_of(scope, told.join(items[["sample", "group"]], on="item").assign(model=""))
    return whole[list(frame.columns)].astype({"value": float})


# ---- rows ----


def _judge_rows(scope: Scope, run: Run, reference: str, truth: pd.DataFrame, both: pd.DataFrame) -> list[Row]:
    coverage = share(int(both["item"].nunique()), int(truth["item"].nunique()))
    base: Row = {"judge": run.judge.name, "run": run.pk, "settings": run.settings}
    rows = []
    datasets = sorted(str(name) for name in both["dataset"].unique())
    for dataset in (*datasets, ALL):
        mine = both if dataset == ALL else both[both["dataset"] == dataset]
        whole = dataset == ALL and len(datasets) > 1
        for metric, (numbers, p) in _metrics(scope, mine, whole=whole).items():
            row = base | {"source_dataset": dataset, "kind": scope.kind, "reference": reference, "metric": metric}
            rows.append(row | numbers | {"p": p, "coverage": coverage})
    return rows


def _metrics(scope: Scope, both: pd.DataFrame, *, whole: bool) -> dict[str, tuple[Row, float | None]]:
    """By metric its numbers, computed for each repeat and averaged, and p of the first repeat where there is one."""
    found: dict[str, list[Estimate]] = {}
    p: dict[str, float | None] = {}
    for _, one in both.groupby("repeat"):
        for name, estimate, chance in of_repeat(scope.kind, one, whole=whole):
            found.setdefault(name, []).append(estimate)
            p.setdefault(name, chance)
    if both["repeat"].nunique() > 1:
        told = both.drop_duplicates(["item", "repeat"]).drop(columns="value").rename(columns={"told": "verdict"})
        steady = steadiness(told)
        found |= {"consistency": [steady.consistency], "mcc": [steady.mcc]}
    return {name: (averaged(estimates), p.get(name)) for name, estimates in found.items()}


def of_repeat(kind: str, both: pd.DataFrame, *, whole: bool) -> list[Metric]:
    """The metrics of ``told`` against ``value``; ``whole``: the mean over several data sets."""
    if kind in KEYED:
        return _of_words(both, whole=whole)
    cluster = both["group"].to_numpy()
    if kind != "batch":
        x, y = both["told"].to_numpy(np.float64), both["value"].to_numpy(np.float64)
        if whole:
            dataset = both["dataset"].to_numpy()
            given: Any = {"x": x, "y": y, "dataset": dataset, "cluster": cluster}
            return [
                (name, mean_over_sets(**given, rng=np.random.default_rng(SEED), name=name), None)
                for name in CORRELATIONS
            ]
        each: dict[str, Correlation] = {
            name: of(x=x, y=y, cluster=cluster, rng=np.random.default_rng(SEED)) for name, of in CORRELATIONS.items()
        }
        return [(name, one.estimate, one.p) for name, one in each.items()]
    apart = far_apart(both)
    if whole:
        apart = apart * _even(both)
    return [("levenshtein", mean(values=apart, cluster=cluster), None)]


def far_apart(both: pd.DataFrame) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The distance of each judged ranking (``told``) from people's (``value``)."""
    letters = [[grades.as_letters(places) for places in both[column]] for column in ("told", "value")]
    return distances(first=letters[0], second=letters[1])


def _even(both: pd.DataFrame) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Weights under which each data set counts the same, however many items it has."""
    size = both.groupby("dataset")["item"].transform("size").to_numpy(np.float64)
    return np.asarray(len(both) / (size * both["dataset"].nunique()))


def _of_words(both: pd.DataFrame, *, whole: bool) -> list[Metric]:
    cluster, hits = both["group"].to_numpy(), (both["told"] == both["value"]).to_numpy(np.float64)
    if whole:
        return [("agreement", mean(values=hits * _even(both), cluster=cluster), None)]
    beyond = cohen_kappa(
        first=both["told"].to_numpy(object),
        second=both["value"].to_numpy(object),
        cluster=cluster,
        rng=np.random.default_rng(SEED),
    )
    return [("agreement", rate(hits=hits, cluster=cluster), None), ("kappa", beyond, None)]


# ---- how well people match each other ----


def _ceiling(scope: Scope, both: pd.DataFrame, *, twice: bool) -> dict[str, Row]:
    """The metrics of people against people, as judges are held against them; see ``boards.judges.ceiling``."""
    if both.empty:
        return {}
    whole = both["dataset"].nunique() > 1
    return {
        name: number("value", estimate) | {"n": estimate.n // 2 if twice else estimate.n}
        for name, estimate, _ in of_repeat(scope.kind, both, whole=whole)
    }


def _against_others(labels: pd.DataFrame) -> pd.DataFrame:
    """Each label (``told``) beside the aggregate of the other people on its item (``value``)."""
    many = labels[labels.groupby("item")["item"].transform("size") > 1]
    if many.empty:
        return many.assign(told=many["value"])[["item", "told", "value"]]
    if pd.api.types.is_numeric_dtype(many["value"]):
        by_item = many.groupby("item")["value"]
        others = (by_item.transform("sum") - many["value"]) / (by_item.transform("size") - 1)
        return many[["item"]].assign(told=many["value"], value=others)
    rows = [
        (item, value, grades.mean_of(mine["value"].drop(index)))
        for item, mine in many.groupby("item")
        for index, value in mine["value"].items()
    ]
    return pd.DataFrame(rows, columns=["item", "told", "value"])


def _against_each(labels: pd.DataFrame) -> pd.DataFrame:
    """Each label beside each other label on its item: every two of them twice."""
    both = labels.merge(labels, on="item", suffixes=("", "_other"))
    both = both[both["annotator"] != both["annotator_other"]]
    return both.rename(columns={"value_other": "told"})[["item", "told", "value"]]
