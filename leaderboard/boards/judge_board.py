"""The board of judges: how well each one's verdicts match people's, beside how well people match each other."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from django.db.models import Avg, Count, Sum

from annotations.models import Label
from judging.models import Judgment, Run
from leaderboard import votes
from leaderboard.boards.base import Board, level_names, share
from leaderboard.boards.judge_ranks import Cell, ConfusionTables, ItemSums
from leaderboard.metrics import CONSISTENCY, MCC, Metric, OfGrades, OfPairs
from leaderboard.rows import JSON, UNKNOWN, Number, Row, number
from leaderboard.scope import Scope
from leaderboard.votes import scores
from stats.proportions import mean, rate
from stats.ranks import Place
from stats.reliability import steadiness
from stats.results import Estimate
from stats.verdicts import RULES, VERDICTS, encode, majority, words

NO_LABELS = "No labels by people yet, so no judge can be compared with them."
ALL = "all"  # data sets
PEOPLE = 0  # where runs are told apart by number: people against people
MAJORITY, INDIVIDUALS = REFERENCES = ("majority", "individuals")
PER = 1000
Estimates = dict[str, tuple[Estimate, float | None]]  # by metric, with p where there is a test


@dataclass(frozen=True, kw_only=True)
class JudgeRow(Row):
    """A judge by one metric against one reference, within a data set or over ``all``."""

    judge: str
    run: int
    settings: JSON
    source_dataset: str
    kind: str
    reference: str
    metric: str
    value: Number
    n: int
    p: float | None
    coverage: float | None


@dataclass(frozen=True, slots=True)
class MetricValue:
    """A metric, how many rows it is of, and p where there is a test."""

    number: Number
    n: int
    p: float | None = None


@dataclass(frozen=True, slots=True)
class Against:
    """Judges beside people by one reference: what is no row, since it ranks them or is about people alone.

    ``ceiling`` by metric: people against people. ``standing`` by metric and run, of judges that are no baselines.
    ``cells`` by metric, run and level or data set; people's own are those of run ``PEOPLE``.
    """

    ceiling: dict[str, MetricValue]
    standing: dict[str, dict[int, Place]]
    cells: dict[str, dict[int, dict[str, Cell]]]


@dataclass(frozen=True, slots=True)
class Running:
    """What a run's judge costs (US dollars per 1,000 judgments), how long a call takes (mean seconds), and how many
    judgments it was asked for. Of people's reviews: the shares that agree and that find a hallucination, and the mean
    grade, 1 to 5.

    None where nothing is known: a judgment that was imported without its cost is not one that cost nothing.
    """

    cost: float | None = None
    seconds: float | None = None
    asked: int = 0
    reviews: int = 0
    agree: Number = UNKNOWN
    grade: Number = UNKNOWN
    hallucination: Number = UNKNOWN


@dataclass(frozen=True, eq=False, kw_only=True)
class JudgesBoard(Board):
    """``labels``, ``annotators`` and ``items`` of the reference; by reference what stands ``against`` it; the order of
    cells; and by run what its judge costs.
    """

    rows: Sequence[JudgeRow] = field(default=(), kw_only=False)
    labels: int = 0
    annotators: int = 0
    items: int = 0
    against: dict[str, Against] = field(default_factory=dict)
    cell_order: list[str] = field(default_factory=list)
    running: dict[int, Running] = field(default_factory=dict)

    @property
    def counted(self) -> dict[str, int]:
        return {"items": self.items, "labels": self.labels, "annotators": self.annotators}


def board(scope: Scope, comparison: type["Comparison"]) -> JudgesBoard:
    """How each judge's verdicts compare with people's (MLLM-as-a-Judge, Tables 2 and 9; MLLM-Bench, Table 6).

    Within each source data set, and ``all``: the unweighted mean over the sets that have a value. The reference
    ``majority`` is one verdict an item, ``individuals`` takes every label by itself. Metrics by level are by data set
    where there are several.
    """
    people = comparison(scope)
    labels, items = people.labels, people.items
    if labels.empty:
        return JudgesBoard([], [NO_LABELS])
    labelled = items.loc[items.index.isin(labels["item"])]
    levels = level_names(scope)
    if labelled["dataset"].nunique() > 1:
        items, labelled = (frame.assign(level=frame["dataset"].astype(str)) for frame in (items, labelled))
        levels = sorted(labelled["level"].unique())
    references = {MAJORITY: people.aggregated(), INDIVIDUALS: labels[["item", "value"]]}
    tables = {name: people.tables(scope.kind.metrics, labelled) for name in REFERENCES}
    rows: list[JudgeRow] = []
    used: list[Run] = []
    for runs in votes.judge_groups(scope):
        told = people.told_by(runs)
        used += runs
        for reference, truth in references.items():
            both = truth.merge(told, on="item").join(items, on="item", how="inner")
            rows += _rows(scope, runs[-1], reference, truth, both, people.by_dataset(both, told, reference))
            tables[reference].add(runs[-1].pk, both, ranked=not runs[0].judge.baseline)
    against = {}
    for name in REFERENCES:
        beside = people.beside_others() if name == MAJORITY else _beside_each(labels)
        both = beside.assign(repeat=0).join(items, on="item", how="inner")
        tables[name].add(PEOPLE, both, ranked=False)
        ceiling = people.ceiling(both, twice=name == INDIVIDUALS)
        against[name] = Against(ceiling, tables[name].standing(), tables[name].cells())
    there = set(labelled["level"])
    return JudgesBoard(
        rows,
        people.notes,
        tuple(run.pk for run in used),
        labels=len(labels),
        annotators=int(labels["annotator"].nunique()),
        items=int(labels["item"].nunique()),
        against=against,
        cell_order=[name for name in levels if name in there],
        running=_running(used),
    )


def _rows(
    scope: Scope,
    run: Run,
    reference: str,
    truth: pd.DataFrame,
    both: pd.DataFrame,
    by_dataset: dict[str, dict[str, MetricValue]],
) -> list[JudgeRow]:
    coverage = share(int(both["item"].nunique()), int(truth["item"].nunique()))
    return [
        JudgeRow(
            judge=run.judge.name,
            run=run.pk,
            settings=run.settings,
            source_dataset=dataset,
            kind=scope.kind.name,
            reference=reference,
            metric=name,
            value=found.number,
            n=found.n,
            p=found.p,
            coverage=coverage,
        )
        for dataset, metrics in by_dataset.items()
        for name, found in metrics.items()
    ]


def _averaged(estimates: Sequence[Estimate], p: float | None = None) -> MetricValue:
    """Metrics are computed per repeat, then averaged; so are the ends of their intervals."""
    known = [number(estimate) for estimate in estimates if estimate.value is not None]
    ends = [None if None in side else float(np.mean(side)) for side in zip(*(one.ends for one in known), strict=True)]
    n = max((estimate.n for estimate in estimates), default=0)
    return MetricValue(Number(*ends), n, p)


def _per_repeat(both: pd.DataFrame, measured: Callable[[pd.DataFrame], Estimates]) -> dict[str, MetricValue]:
    """By metric the mean of what ``measured`` gives for each repeat, and p of the first repeat that has one."""
    estimates: dict[str, list[Estimate]] = {}
    p: dict[str, float | None] = {}
    for _, rows in both.groupby("repeat"):
        for name, (estimate, chance) in measured(rows).items():
            estimates.setdefault(name, []).append(estimate)
            p.setdefault(name, chance)
    return {name: _averaged(found, p[name]) for name, found in estimates.items()}


def _of_repeats(told: pd.DataFrame) -> dict[str, MetricValue]:
    """How steady a judge is over its repeats, of ``item, repeat, told, group``."""
    steady = steadiness(told.rename(columns={"told": "verdict"}))
    return {CONSISTENCY.name: _averaged([steady.consistency]), MCC.name: _averaged([steady.mcc])}


class Comparison:
    """People and judges by scores, points, rankings or readings of answers.

    Scores, and components in percent of their weights: Pearson with p, and Spearman; rankings: the normalized
    Levenshtein distance; readings of what an answer chose: agreement and kappa (MMBench, Figure 5). The majority is the
    mean of the annotators, of words the most frequent.
    """

    notes: Sequence[str] = ()
    tables: type[ItemSums] | type[ConfusionTables] = ItemSums
    items: pd.DataFrame  # index item; columns level, group, dataset
    labels: pd.DataFrame  # item, annotator, value

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.items = scores.items_of(scope)
        labels = scope.kind.numbers(scope, scores.labels_of(scope), self.items)
        self.labels = labels[labels["item"].isin(self.items.index)]

    def told_by(self, runs: list[Run]) -> pd.DataFrame:
        """The verdicts of a judge: ``item, repeat, told``."""
        verdicts = self.scope.kind.numbers(self.scope, scores.of_runs(self.scope, runs), self.items)
        return verdicts.rename(columns={"value": "told"})

    def aggregated(self) -> pd.DataFrame:
        """One verdict of people an item: ``item, value``."""
        return self.labels.groupby("item")["value"].agg(scores.mean_of).reset_index()

    def measured(self, both: pd.DataFrame, *, whole: bool) -> Estimates:
        """Each metric of ``told`` against ``value``; ``whole``: the mean over several data sets."""
        return _measured(self.scope.kind.metrics, OfGrades(both, whole=whole))

    def by_dataset(self, both: pd.DataFrame, told: pd.DataFrame, reference: str) -> dict[str, dict[str, MetricValue]]:
        """The metrics by data set, and over all of them."""
        datasets = sorted(str(name) for name in both["dataset"].unique())
        parts = {name: both[both["dataset"] == name] for name in datasets} | {ALL: both}
        return {name: self._metrics(rows, whole=name == ALL and len(datasets) > 1) for name, rows in parts.items()}

    def _metrics(self, both: pd.DataFrame, *, whole: bool) -> dict[str, MetricValue]:
        metrics = _per_repeat(both, lambda rows: self.measured(rows, whole=whole))
        if both["repeat"].nunique() > 1:
            metrics |= _of_repeats(both.drop_duplicates(["item", "repeat"]))
        return metrics

    def ceiling(self, both: pd.DataFrame, *, twice: bool) -> dict[str, MetricValue]:
        """The metrics of people against people, computed as a judge's are.

        Against the majority: each label against the majority of the *others* on its item (leave one out). Against
        individuals: each label against each other label on its item; every two then stand in ``both`` ``twice``, in
        either direction, and count once in ``n``.
        """
        if both.empty:
            return {}
        measured = self.measured(both, whole=both["dataset"].nunique() > 1)
        return {
            name: MetricValue(number(estimate), estimate.n // 2 if twice else estimate.n)
            for name, (estimate, _) in measured.items()
        }

    def beside_others(self) -> pd.DataFrame:
        """Each label (``told``) beside the aggregate of the other people on its item (``value``)."""
        many = self.labels[self.labels.groupby("item")["item"].transform("size") > 1]
        if many.empty:
            return many.assign(told=many["value"])[["item", "told", "value"]]
        if pd.api.types.is_numeric_dtype(many["value"]):
            by_item = many.groupby("item")["value"]
            others = (by_item.transform("sum") - many["value"]) / (by_item.transform("size") - 1)
            return many[["item"]].assign(told=many["value"], value=others)
        rows = [
            (item, value, scores.mean_of(labels["value"].drop(index)))
            for item, labels in many.groupby("item")
            for index, value in labels["value"].items()
        ]
        return pd.DataFrame(rows, columns=["item", "told", "value"])


class PairComparison(Comparison):
    """People and judges by votes on pairs."""

    tables = ConfusionTables

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.notes = [f"Majority rule: {scope.rule}."]
        self.items = votes.pairs(scope)[["group", "level", "dataset"]]
        labels = votes.labels_of(scope).rename(columns={"choice": "value"})
        self.labels = labels[labels["item"].isin(self.items.index)]

    def told_by(self, runs: list[Run]) -> pd.DataFrame:
        return votes.of_runs(runs).frame.rename(columns={"choice": "told"})

    def aggregated(self) -> pd.DataFrame:
        return majority_of(self.labels, self.scope.rule)

    def measured(self, both: pd.DataFrame, *, whole: bool = False) -> Estimates:
        return _measured(self.scope.kind.metrics, OfPairs(both))

    def by_dataset(self, both: pd.DataFrame, told: pd.DataFrame, reference: str) -> dict[str, dict[str, MetricValue]]:
        lowest = {metric.name: metric.lowest for metric in self.scope.kind.metrics}
        sets = {str(name): _per_repeat(rows, self.measured) for name, rows in both.groupby("dataset", observed=True)}
        whole = next(iter(sets.values())) if len(sets) == 1 else mean_of_sets(list(sets.values()), lowest)
        if told["repeat"].nunique() > 1 and reference == MAJORITY:
            again = _of_repeats(told.join(self.items["group"], on="item", how="inner"))
            whole = whole | again
            sets = {name: metrics | again for name, metrics in sets.items()} if len(sets) == 1 else sets
        return sets | {ALL: whole}

    def beside_others(self) -> pd.DataFrame:
        return beside_majority_of_others(self.labels, self.scope.rule)


def _measured(metrics: Sequence[Metric], rows: OfPairs | OfGrades) -> Estimates:
    computed = ((metric.name, metric.compute(rows)) for metric in metrics if metric.compute)
    return {name: found for name, found in computed if found is not None}


def mean_of_sets(sets: list[dict[str, MetricValue]], lowest: dict[str, float]) -> dict[str, MetricValue]:
    """By metric the unweighted mean over the data sets that have a value (MLLM-as-a-Judge, Table 2).

    No sample lies in two of them, so the squares of the half-widths of their intervals add up. ``lowest``: the least
    that each metric can be.
    """
    whole: dict[str, MetricValue] = {}
    for name in sets[0] if sets else ():
        known = [metrics[name] for metrics in sets if metrics[name].number.value is not None]
        if not known:
            whole[name] = MetricValue(UNKNOWN, sum(metrics[name].n for metrics in sets))
            continue
        values = [one.number.value or 0.0 for one in known]
        value = float(np.mean(values))
        low = high = None
        if all(one.number.low is not None for one in known):
            below, above = (
                float(np.sqrt(sum((end - at) ** 2 for end, at in zip(ends, values, strict=True)))) / len(known)
                for ends in (
                    [one.number.low or 0.0 for one in known],
                    [one.number.high or 0.0 for one in known],
                )
            )
            low, high = max(value - below, lowest[name]), min(value + above, 1.0)
        whole[name] = MetricValue(Number(value, low, high), sum(one.n for one in known))
    return whole


def majority_of(labels: pd.DataFrame, rule: str) -> pd.DataFrame:
    """``item``, ``value``: what most people say of each item, of labels ``item, annotator, value``."""
    frame = majority(labels=labels.rename(columns={"value": "choice"}), rule=rule)[["choice"]].reset_index()
    return frame.rename(columns={"choice": "value"})


def beside_majority_of_others(labels: pd.DataFrame, rule: str) -> pd.DataFrame:
    """Each label (``told``) beside the majority of the other people on its item (``value``), of labels ``item,
    annotator, value``; items with one label are left out.
    """
    codes, size = encode(labels["value"]), len(VERDICTS)
    item, _ = pd.factorize(labels["item"])
    counts = np.bincount(item * size + codes, minlength=(item.max(initial=-1) + 1) * size).reshape(-1, size)
    others = counts[item]
    others[np.arange(len(codes)), codes] -= 1
    some = others.sum(axis=1) > 0
    frame = labels.loc[some, ["item"]].assign(told=labels.loc[some, "value"])
    return frame.assign(value=words(RULES[rule](others[some])))


def _beside_each(labels: pd.DataFrame) -> pd.DataFrame:
    """Each label (``value``) beside each other label on its item (``told``): every two of them twice."""
    both = labels.merge(labels, on="item", suffixes=("", "_other"))
    both = both[both["annotator"] != both["annotator_other"]]
    return both.rename(columns={"value_other": "told"})[["item", "told", "value"]]


# ---- what a judge costs, and what people who reviewed its verdicts say ----


def _running(runs: Sequence[Run]) -> dict[int, Running]:
    ids = [run.pk for run in runs]
    rows = (
        Judgment.objects.filter(run__in=ids)
        .order_by()
        .values("run")
        .annotate(asked=Count("pk"), spent=Sum("cost"), priced=Count("cost"), seconds=Avg("latency"))
    )
    usage = {
        row["run"]: {
            "cost": PER * row["spent"] / row["priced"] if row["priced"] else None,
            "seconds": row["seconds"],
            "asked": row["asked"],
        }
        for row in rows
    }
    review = "assignment__campaign_item__reviewed__run"
    labels = Label.objects.filter(**{f"{review}__in": ids}, excluded=False)
    labels = labels.exclude(assignment__campaign_item__practice=True)
    columns = ["run", "item", "agree", "grade", "hallucination"]
    reviews = pd.DataFrame(labels.values_list(review, *columns[1:]), columns=columns)
    opinions = {run: _opinions(rows) for run, rows in reviews.groupby("run")}
    return {run: Running(**usage.get(run, {}), **opinions.get(run, {})) for run in {*usage, *opinions}}


def _opinions(reviews: pd.DataFrame) -> dict[str, Any]:
    opinions: dict[str, Any] = {"reviews": len(reviews)}
    for name, estimate in (("agree", rate), ("grade", mean), ("hallucination", rate)):
        known = reviews[reviews[name].notna()]
        if len(known):
            values = {"hits" if estimate is rate else "values": known[name].to_numpy(np.float64)}
            opinions[name] = number(estimate(**values, cluster=known["item"].to_numpy()))
    return opinions
