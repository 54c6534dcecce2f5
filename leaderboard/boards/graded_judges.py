"""The boards of judges by scores, points, rankings and readings of answers, beside how well people match each other."""

import pandas as pd

from judging.models import Run
from leaderboard.boards.base import Against, Board, OfJudges, Row, averaged, level_names, number, share
from leaderboard.boards.running import running
from leaderboard.boards.sources import judge_groups
from leaderboard.boards.sums import Sums
from leaderboard.metrics import CONSISTENCY, MCC, OfGrades
from leaderboard.scope import Scope
from leaderboard.votes import scores
from stats.reliability import steadiness
from stats.results import Estimate

NO_LABELS = "No labels by people yet, so no judge can be compared with them."
ALL = "all"
PEOPLE = 0  # where runs are told apart by number: people against people
REFERENCES = ("majority", "individuals")


def judges(scope: Scope) -> Board:
    """How each judge's scores, rankings or readings compare with people's (MLLM-as-a-Judge, Tables 2 and 9).

    Scores, and components in percent of their weights: Pearson with p, and Spearman; rankings: the normalized
    Levenshtein distance; readings of what an answer chose: agreement and kappa (MMBench, Figure 5). Within each source
    data set, and ``all``: the unweighted mean over the sets that have a value. The reference ``majority`` is the mean
    of the annotators (the most frequent word); ``individuals`` takes every label by itself.

    Cells are by data set where there are several.
    """
    items = scores.items_of(scope)
    labels = scope.kind.numbers(scope, scores.labels_of(scope), items)
    labels = labels[labels["item"].isin(items.index)]
    if labels.empty:
        return Board([], [NO_LABELS])
    references = {
        "majority": labels.groupby("item")["value"].agg(scores.mean_of).reset_index(),
        "individuals": labels[["item", "value"]],
    }
    columns = columns_of(scope, items.loc[items.index.isin(labels["item"])])
    sums = {name: Sums(scope.kind.metrics, items.loc[items.index.isin(labels["item"])], columns) for name in REFERENCES}
    rows: list[Row] = []
    used: list[Run] = []
    for runs in judge_groups(scope):
        found = scope.kind.numbers(scope, scores.of_runs(scope, runs), items)
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
    }
    against = {name: Against(ceilings[name], sums[name].standing(), sums[name].by_column()) for name in REFERENCES}
    return Board(rows, [], tuple(run.pk for run in used), extra, OfJudges(against, columns, running(used)))


def columns_of(scope: Scope, items: pd.DataFrame) -> list[str]:
    """What the cells of a judge are by: source data sets where there are several, else the levels."""
    datasets = sorted(items["dataset"].unique())
    return datasets if len(datasets) > 1 else [name for name in level_names(scope) if name in set(items["level"])]


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
            row = base | {"source_dataset": dataset, "kind": scope.kind.name, "reference": reference, "metric": metric}
            rows.append(row | numbers | {"p": p, "coverage": coverage})
    return rows


def _metrics(scope: Scope, both: pd.DataFrame, *, whole: bool) -> dict[str, tuple[Row, float | None]]:
    """By metric its numbers, computed for each repeat and averaged, and p of the first repeat where there is one."""
    found: dict[str, list[Estimate]] = {}
    p: dict[str, float | None] = {}
    for _, one in both.groupby("repeat"):
        for name, (estimate, chance) in measured(scope, one, whole=whole).items():
            found.setdefault(name, []).append(estimate)
            p.setdefault(name, chance)
    if both["repeat"].nunique() > 1:
        told = both.drop_duplicates(["item", "repeat"]).drop(columns="value").rename(columns={"told": "verdict"})
        steady = steadiness(told)
        found |= {CONSISTENCY.name: [steady.consistency], MCC.name: [steady.mcc]}
    return {name: (averaged(estimates), p.get(name)) for name, estimates in found.items()}


def measured(scope: Scope, both: pd.DataFrame, *, whole: bool) -> dict[str, tuple[Estimate, float | None]]:
    """By metric of ``told`` against ``value``; ``whole``: the mean over several data sets."""
    rows = OfGrades(both, whole=whole)
    known = ((one.name, one.compute(rows)) for one in scope.kind.metrics if one.compute)
    return {name: found for name, found in known if found is not None}


# ---- how well people match each other ----


def _ceiling(scope: Scope, both: pd.DataFrame, *, twice: bool) -> dict[str, Row]:
    """The metrics of people against people, as judges are held against them; see ``boards.judges.ceiling``."""
    if both.empty:
        return {}
    whole = both["dataset"].nunique() > 1
    return {
        name: number("value", estimate) | {"n": estimate.n // 2 if twice else estimate.n}
        for name, (estimate, _) in measured(scope, both, whole=whole).items()
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
        (item, value, scores.mean_of(mine["value"].drop(index)))
        for item, mine in many.groupby("item")
        for index, value in mine["value"].items()
    ]
    return pd.DataFrame(rows, columns=["item", "told", "value"])


def _against_each(labels: pd.DataFrame) -> pd.DataFrame:
    """Each label beside each other label on its item: every two of them twice."""
    both = labels.merge(labels, on="item", suffixes=("", "_other"))
    both = both[both["annotator"] != both["annotator_other"]]
    return both.rename(columns={"value_other": "told"})[["item", "told", "value"]]
