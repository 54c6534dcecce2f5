"""The board of judges: how well their verdicts match people's, and how well people match each other."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from django.db.models import Avg, Count, Sum

from annotations.models import Label
from bank import guard
from judging.models import Judgment, Run
from leaderboard import votes
from leaderboard.boards.base import Board, share
from leaderboard.boards.judges.over_sets import are_apart, by_data_set
from leaderboard.boards.judges.ranks import ItemSums, LevelValue
from leaderboard.hidden import counted_judgments, counted_reviews, in_parts
from leaderboard.metrics import CONSISTENCY, MCC, READABLE, Metric, OfGrades, OfPairs
from leaderboard.rows import JSON, UNKNOWN, Number, OfJudge, number, of_judge
from leaderboard.scope import MEAN, POOLED, Scope
from leaderboard.votes import scores
from stats.arrays import IntArray
from stats.parts import over_parts
from stats.proportions import mean, rate
from stats.ranks import Place
from stats.reliability import steadiness
from stats.results import Estimate
from stats.verdicts import MISSING, RULES, UNASKED, VERDICTS, encode, majority, words

NO_LABELS = "No labels by people yet, so no judge can be compared with them."
ALL = "all"  # data sets
OVER_SETS = {MEAN: "mean over {} data sets", POOLED: "pooled over {} data sets"}
PEOPLE = 0  # stands for people against people where runs are identified by number
MAJORITY, INDIVIDUALS = REFERENCES = ("majority", "individuals")
PER = 1000
GRADES = (1.0, 5.0)  # of a review
Estimates = dict[str, tuple[Estimate, float | None]]  # by metric, with p where there is a test


@dataclass(frozen=True, kw_only=True)
class JudgeRow(OfJudge):
    """A judge by one metric against one reference, within a data set or over ``all``. ``coverage`` is the share of
    labelled items that it judged; of consistency, the share of the repeats asked for that have a verdict. ``pooled`` is
    the number of all items as one, beside a mean over several data sets. Of pairs, ``failure_rule`` and ``order_rule``
    say which count.
    """

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
    simulated: bool = False
    pooled: Number = UNKNOWN
    failure_rule: str | None = None
    order_rule: str | None = None


@dataclass(frozen=True, slots=True)
class MetricValue:
    """The value of a metric, the number of rows behind it, and p if there is a test."""

    number: Number
    n: int
    p: float | None = None
    coverage: float | None = None  # of the repeats asked for, where the metric is about them
    pooled: Number = UNKNOWN  # of all items as one, beside a mean over data sets


NOBODY = MetricValue(UNKNOWN, 0)


@dataclass(frozen=True, slots=True)
class Against:
    """Judges against people by one reference: what rows do not hold, because it ranks judges or is about people alone.

    ``ceiling`` by metric: people against people. ``standing`` by metric and run, for judges that are not baselines.
    ``cells`` by metric, run and level or data set; run ``PEOPLE`` has people's own.
    """

    ceiling: dict[str, MetricValue]
    standing: dict[str, dict[int, Place]]
    cells: dict[str, dict[int, dict[str, LevelValue]]]


@dataclass(frozen=True, slots=True)
class Running:
    """What a run's judge costs (US dollars per 1,000 judgments), how long a call takes (mean seconds), and how many
    judgments it was asked for. From people's reviews: the shares that agree and that find a hallucination, and the mean
    grade, 1 to 5.

    None means unknown: a judgment imported without its cost did not cost nothing.
    """

    cost: float | None = None
    seconds: float | None = None
    asked: int = 0
    reviews: int = 0
    agree: Number = UNKNOWN
    grade: Number = UNKNOWN
    hallucination: Number = UNKNOWN


@dataclass(frozen=True, eq=False)
class JudgesBoard(Board[JudgeRow]):
    """How many ``labels``, ``annotators`` and ``items`` the reference has; the comparison ``against`` each reference;
    the order of cells; and by run what its judge costs. ``edition``: its number if this board is a published edition.
    """

    rows: Sequence[JudgeRow] = ()
    _: KW_ONLY
    labels: int = 0
    annotators: int = 0
    items: int = 0
    against: dict[str, Against] = field(default_factory=dict)
    cell_order: list[str] = field(default_factory=list)
    running: dict[int, Running] = field(default_factory=dict)
    edition: int | None = None

    @property
    def counted(self) -> dict[str, int]:
        return {"items": self.items, "labels": self.labels, "annotators": self.annotators}

    @property
    def measured(self) -> set[str]:
        """The names of the metrics that it has rows of."""
        return {row.metric for row in self.rows}

    def overall(self, reference: str = MAJORITY) -> dict[int, dict[str, JudgeRow]]:
        """By run and metric the rows over all data sets."""
        by_run: dict[int, dict[str, JudgeRow]] = {}
        for row in self.rows:
            if row.reference == reference and row.source_dataset == ALL:
                by_run.setdefault(row.run, {})[row.metric] = row
        return by_run

    def person(self, metric: str, reference: str = MAJORITY) -> MetricValue:
        """One more person by a metric."""
        against = self.against.get(reference)
        return (against.ceiling if against else {}).get(metric, NOBODY)


def by_scores(scope: Scope) -> JudgesBoard:
    return _board(Comparison(scope))


def by_pairs(scope: Scope) -> JudgesBoard:
    return _board(PairComparison(scope))


def _board(comparison: "Comparison") -> JudgesBoard:
    """How each judge's verdicts compare with people's (MLLM-as-a-Judge, Tables 2 and 9; MLLM-Bench, Table 6).

    Within each source data set, and ``all``: the unweighted mean over the sets that have a value, or one number of all
    their items where the view pools them. The reference
    ``majority`` is one verdict per item; ``individuals`` takes every label by itself. With several data sets, cells are
    by data set instead of level.
    """
    scope, labels, items = comparison.scope, comparison.labels, comparison.items
    if labels.empty:
        return JudgesBoard([], [NO_LABELS])
    labelled = items.loc[items.index.isin(labels["item"])]
    levels = votes.level_names(scope)
    if labelled["dataset"].nunique() > 1:
        items, labelled = (frame.assign(level=frame["dataset"].astype(str)) for frame in (items, labelled))
        levels = sorted(labelled["level"].unique())
    told = pd.Series(in_parts(scope, labelled.rename_axis("item").reset_index(), by="level"), index=labelled.index)
    items = items.assign(level=items["level"].where(told.reindex(items.index, fill_value=True)))
    labelled = labelled.assign(level=labelled["level"].where(told))
    references = {MAJORITY: comparison.aggregated(labels), INDIVIDUALS: comparison.one_by_one()}
    tables = {name: ItemSums(scope.kind.metrics, over_sets(scope, labelled)) for name in REFERENCES}
    rows: list[JudgeRow] = []
    used: list[Run] = []
    for runs in votes.judge_groups(scope):
        verdicts, replies = comparison.verdicts_of(runs), _known_replies(comparison, runs)
        used += runs
        for reference, truth in references.items():
            paired = truth.merge(verdicts, on="item").join(items, on="item", how="inner")
            by_dataset = comparison.by_dataset(paired, verdicts, replies, runs[-1])
            rows += _rows(scope, runs[-1], reference, truth, paired, by_dataset)
            tables[reference].add(runs[-1].pk, over_sets(scope, paired), ranked=not runs[0].judge.baseline)
    labelled_levels = set(labelled["level"].dropna())
    return JudgesBoard(
        rows,
        comparison.notes,
        tuple(run.pk for run in used),
        labels=len(labels),
        annotators=int(labels["annotator"].nunique()),
        items=int(labels["item"].nunique()),
        against={name: _against(comparison, name, items, tables[name]) for name in REFERENCES},
        cell_order=[name for name in levels if name in labelled_levels],
        running=_running(scope, used),
    )


def _known_replies(comparison: "Comparison", runs: list[Run]) -> pd.DataFrame:
    replies = comparison.replies_of(runs)
    if all(run.imported for run in runs) and replies["read"].all():
        return replies.iloc[:0]  # a file of verdicts alone does not say what else the judge replied
    return replies


def _against(comparison: "Comparison", reference: str, items: pd.DataFrame, table: ItemSums) -> Against:
    """What judges stand beside: people against people; ``table`` has the judges."""
    pairs = comparison.leave_one_out() if reference == MAJORITY else _pairs_of_labels(comparison.labels)
    paired = over_sets(comparison.scope, pairs.assign(repeat=0).join(items, on="item", how="inner"))
    table.add(PEOPLE, paired, ranked=False)
    ceiling = comparison.ceiling(paired, twice=reference == INDIVIDUALS)
    return Against(ceiling, table.standing(), table.cells())


def _rows(
    scope: Scope,
    run: Run,
    reference: str,
    truth: pd.DataFrame,
    paired: pd.DataFrame,
    by_dataset: dict[str, dict[str, MetricValue]],
) -> list[JudgeRow]:
    rules: dict[str, Any] = {"failure_rule": scope.failures, "order_rule": scope.orders} if scope.kind.pairwise else {}
    coverage = share(int(votes.judged(paired)["item"].nunique()), int(truth["item"].nunique()))
    rows = []
    for dataset, metrics in by_dataset.items():
        for name, metric in metrics.items():
            row = JudgeRow(
                **of_judge(run),
                settings=run.settings,
                source_dataset=dataset,
                kind=scope.kind.name,
                reference=reference,
                metric=name,
                value=metric.number,
                n=metric.n,
                p=metric.p,
                pooled=metric.pooled,
                coverage=coverage if metric.coverage is None else metric.coverage,
                **rules,
            )
            rows.append(row)
    return rows


def over_sets(scope: Scope, frame: pd.DataFrame) -> pd.DataFrame:
    """The rows over all data sets: as of one if the view pools them, else numbers are the mean over ``dataset``."""
    return frame.assign(dataset=ALL) if scope.pool == POOLED else frame


def _value(estimate: Estimate, p: float | None, repeats: int = 1, over: str = "") -> MetricValue:
    """``n`` counts the rows of one repeat; ``over`` several data sets the method says what the value is of them."""
    value = number(estimate)
    if over:
        value = replace(value, method=f"{over}, {value.method}")
    return MetricValue(value, -(-estimate.n // repeats), p)


def _of_judge_alone(dataset: str, verdicts: pd.DataFrame, replies: pd.DataFrame, asked: int) -> dict[str, MetricValue]:
    """What needs no labels: how steady a judge is, and how many of its replies can be read."""
    if dataset != ALL:
        verdicts, replies = (frame[frame["dataset"] == dataset] for frame in (verdicts, replies))
    values = _of_repeats(verdicts, asked) if asked > 1 else {}
    if len(replies):
        hits, cluster, item = (replies[name].to_numpy() for name in ("read", "group", "item"))
        values[READABLE.name] = _value(rate(hits=hits, cluster=cluster, item=item), None)
    return values


def _of_repeats(verdicts: pd.DataFrame, asked: int) -> dict[str, MetricValue]:
    """How steady a judge is over the repeats asked for; ``verdicts`` has ``item, repeat, judged, group``."""
    steady = steadiness(verdicts.assign(verdict=verdicts["judged"].map(scores.over_orders)), asked=asked)
    coverage = share(len(verdicts), asked * verdicts["item"].nunique())
    return {
        name: replace(_value(estimate, None), coverage=coverage)
        for name, estimate in ((CONSISTENCY.name, steady.consistency), (MCC.name, steady.mcc))
    }


class Comparison:
    """People and judges by scores, points, rankings or readings of answers.

    Scores, and components in percent of their weights: Pearson with p, and Spearman; rankings: the normalized
    Levenshtein distance; readings of what an answer chose: agreement and kappa (MMBench, Figure 5). The majority is the
    mean over annotators; for words, the most frequent one.
    """

    notes: Sequence[str] = ()
    items: pd.DataFrame  # index item; columns level, group, dataset
    labels: pd.DataFrame  # item, annotator, value

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.items = scores.items_of(scope)
        self.labels = scores.labels_on(scope, self.items)

    def verdicts_of(self, runs: list[Run]) -> pd.DataFrame:
        """The verdicts of a judge: ``item, repeat, judged``."""
        verdicts = self.scope.kind.numbers(self.scope, scores.of_runs(self.scope, runs), self.items)
        return verdicts.rename(columns={"value": "judged"})

    @guard.working()
    def replies_of(self, runs: list[Run]) -> pd.DataFrame:
        """Every reply that was asked for: ``item, read``. A call that the budget did not allow has none."""
        failed = Judgment.objects.filter(run__in=runs, status__in=Judgment.FAILURES)
        failed = failed.exclude(status=Judgment.Status.SKIPPED_BUDGET)
        counted = [
            [*counted_judgments(self.scope, rows).order_by().values_list("item").annotate(n=Count("pk"))]
            for rows in (failed, self.scope.kind.judgments(runs))
        ]
        parts = [
            pd.DataFrame({"item": np.repeat([item for item, _ in rows], [n for _, n in rows]), "read": bool(read)})
            for read, rows in enumerate(counted)
            if rows
        ]
        return pd.concat(parts) if parts else pd.DataFrame({"item": [], "read": []})

    def aggregated(self, labels: pd.DataFrame) -> pd.DataFrame:
        """People's verdict on each item of these labels: ``item, value``."""
        return scores.mean_by_item(labels)

    def one_by_one(self) -> pd.DataFrame:
        """Every label, and one vote for each decoy: ``item, value``."""
        of_decoys = self.labels["item"].isin(votes.decoys_of(self.scope))
        singly = self.labels.loc[~of_decoys, ["item", "value"]]
        return pd.concat([singly, self.aggregated(self.labels[of_decoys])]) if of_decoys.any() else singly

    def measured(self, paired: pd.DataFrame) -> Estimates:
        """Each metric of ``judged`` against ``value``: the mean over data sets and repeats."""
        parts = by_data_set(paired)
        return self._over_sets(paired, {name: self._told(rows) for name, rows in parts.items()})

    def _told(self, paired: pd.DataFrame) -> Estimates:
        return _measured(self.scope.kind.metrics, OfGrades(paired))

    def _over_sets(self, paired: pd.DataFrame, parts: Mapping[str, Estimates]) -> Estimates:
        """The means over data sets, whose own metrics are ``parts``; p only where there is an interval."""
        if len(parts) < 2:
            return next(iter(parts.values())) if parts else self._told(paired)
        apart, told = are_apart(paired), {}
        for name, (whole, p) in self._told(paired).items():
            of_sets = {dataset: part[name][0] for dataset, part in parts.items() if name in part}
            estimate = over_parts(whole, of_sets, apart=apart)
            told[name] = (estimate, p if estimate.interval else None)
        return told

    def by_dataset(
        self, paired: pd.DataFrame, verdicts: pd.DataFrame, replies: pd.DataFrame, run: Run
    ) -> dict[str, dict[str, MetricValue]]:
        """The metrics by data set, and over all of them. Those of a judge's replies alone count every item of
        ``self.items``, labelled or not.
        """
        parts = by_data_set(paired)
        estimates = {name: self._told(rows) for name, rows in parts.items()}
        pooled: Estimates = {}
        over = ""
        if len(parts) > 1:
            pooled = self._told(paired.assign(dataset=ALL))
            over = OVER_SETS[self.scope.pool].format(len(parts))
        is_mean = self.scope.pool == MEAN
        estimates[ALL] = self._over_sets(paired, estimates) if is_mean or not pooled else pooled
        asked = max(run.repeats, int(verdicts["repeat"].max()) + 1 if len(verdicts) else 1)
        steady = votes.judged(verdicts).join(self.items[["group", "dataset"]], on="item", how="inner")
        replies = replies.join(self.items[["group", "dataset"]], on="item", how="inner")
        by_set: dict[str, dict[str, MetricValue]] = {}
        for name, told in estimates.items():
            repeats = max(parts.get(name, paired)["repeat"].nunique(), 1)
            by_set[name] = {
                metric: _value(estimate, p, repeats, over if name == ALL else "")
                for metric, (estimate, p) in told.items()
            }
            by_set[name] |= _of_judge_alone(name, steady, replies, asked)
        if is_mean:
            for metric, (estimate, _) in pooled.items():
                by_set[ALL][metric] = replace(by_set[ALL][metric], pooled=number(estimate))
        return by_set

    def ceiling(self, paired: pd.DataFrame, *, twice: bool) -> dict[str, MetricValue]:
        """The metrics of people against people, computed as a judge's are.

        Against the majority: each label against the majority of the *others* on its item (leave one out). Against
        individuals: each label against each other label on its item. Then ``paired`` has every two of them ``twice``,
        once in each direction, and ``n`` counts them once.
        """
        if paired.empty:
            return {}
        return {
            name: MetricValue(number(estimate), estimate.n // 2 if twice else estimate.n)
            for name, (estimate, _) in self.measured(paired).items()
        }

    def leave_one_out(self) -> pd.DataFrame:
        """Each label (``judged``) with the aggregate of the other people on its item (``value``)."""
        many = self.labels[self.labels.groupby("item")["item"].transform("size") > 1]
        if many.empty:
            return many.assign(judged=many["value"])[["item", "judged", "value"]]
        if pd.api.types.is_numeric_dtype(many["value"]):
            by_item = many.groupby("item")["value"]
            others = (by_item.transform("sum") - many["value"]) / (by_item.transform("size") - 1)
            return many[["item"]].assign(judged=many["value"], value=others)
        if isinstance(many["value"].iloc[0], str):
            return _leave_one_out_words(many)
        rows = []
        for item, labels in many.groupby("item"):
            for index, value in labels["value"].items():
                rows.append((item, value, scores.mean_of(labels["value"].drop(index))))
        return pd.DataFrame(rows, columns=["item", "judged", "value"])


def _leave_one_out_words(labels: pd.DataFrame) -> pd.DataFrame:
    """The most frequent word of the others, the first in alphabetical order of several; see ``scores.mean_of``."""
    codes, names = pd.factorize(labels["value"], sort=True)
    others = _counts_of_others(labels["item"], codes, len(names))
    return labels[["item"]].assign(judged=labels["value"], value=np.asarray(names)[others.argmax(axis=1)])


class PairComparison(Comparison):
    """People and judges by votes on pairs. Verdicts and groups are coded once: metrics read them many times."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.notes = [f"Majority rule: {scope.rule}."]
        labels = votes.labels_of(scope).rename(columns={"choice": "value"})
        items = votes.pairs(scope, only=labels["item"])[["group", "level", "dataset"]]
        self.items = items.assign(group=pd.factorize(items["group"])[0])
        self.labels = _coded(labels[labels["item"].isin(self.items.index)], "value")

    def verdicts_of(self, runs: list[Run]) -> pd.DataFrame:
        frame = votes.with_failures(votes.of_runs(self.scope, runs), self.scope.failures)
        judged = _coded(frame.rename(columns={"choice": "judged"}), "judged")
        in_orders = votes.in_orders(self.scope, runs).drop(columns="failed")
        return judged.merge(in_orders, on=["item", "repeat"], how="left")

    @guard.working()
    def replies_of(self, runs: list[Run]) -> pd.DataFrame:
        of_runs = [votes.verdicts(self.scope, run) for run in runs]
        item = np.concatenate([verdicts.item for verdicts in of_runs])
        choice = np.concatenate([verdicts.choice for verdicts in of_runs])
        asked = choice != UNASKED
        return pd.DataFrame({"item": item[asked], "read": choice[asked] != MISSING})

    def aggregated(self, labels: pd.DataFrame) -> pd.DataFrame:
        return _coded(majority_of(labels, self.scope.rule), "value")

    def _told(self, paired: pd.DataFrame) -> Estimates:
        return _measured(self.scope.kind.metrics, OfPairs(paired))

    def leave_one_out(self) -> pd.DataFrame:
        return _coded(leave_one_out_majority(self.labels, self.scope.rule), "value")


def _coded(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    """A column of verdicts as categories; what is no verdict, a failure, is missing."""
    return frame.assign(**{column: frame[column].astype("category").cat.set_categories(VERDICTS)})


def _measured(metrics: Sequence[Metric], rows: OfPairs | OfGrades) -> Estimates:
    computed = ((metric.name, metric.compute(rows)) for metric in metrics if metric.compute)
    return {name: estimate for name, estimate in computed if estimate is not None}


def majority_of(labels: pd.DataFrame, rule: str) -> pd.DataFrame:
    """``item``, ``value``: the majority on each item, from labels ``item, annotator, value``."""
    frame = majority(labels=labels.rename(columns={"value": "choice"}), rule=rule)[["choice"]].reset_index()
    return frame.rename(columns={"choice": "value"})


def leave_one_out_majority(labels: pd.DataFrame, rule: str) -> pd.DataFrame:
    """Each label (``judged``) with the majority of the other people on its item (``value``), from labels ``item,
    annotator, value``. Items with a single label are left out.
    """
    codes = encode(labels["value"])
    others = _counts_of_others(labels["item"], codes, len(VERDICTS))
    has_others = others.sum(axis=1) > 0
    frame = labels.loc[has_others, ["item"]].assign(judged=labels.loc[has_others, "value"])
    return frame.assign(value=words(RULES[rule](others[has_others])))


def _counts_of_others(items: "pd.Series[Any]", codes: IntArray, size: int) -> IntArray:
    """For each label, how often the other people on its item gave each of ``size`` verdicts: (n, size)."""
    item, distinct = pd.factorize(items)
    others: IntArray = np.bincount(item * size + codes, minlength=len(distinct) * size).reshape(-1, size)[item]
    others[np.arange(len(codes)), codes] -= 1
    return others


def _pairs_of_labels(labels: pd.DataFrame) -> pd.DataFrame:
    """Each label (``value``) with each other label on its item (``judged``): every two of them twice."""
    paired = labels.merge(labels, on="item", suffixes=("", "_other"))
    paired = paired[paired["annotator"] != paired["annotator_other"]]
    return paired.rename(columns={"value_other": "judged"})[["item", "judged", "value"]]


# ---- what a judge costs, and how people reviewed its verdicts ----


@guard.working()
def _running(scope: Scope, runs: Sequence[Run]) -> dict[int, Running]:
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
    given = Label.objects.compared().filter(**{f"{review}__in": ids}, agree__isnull=False)  # no comparisons
    labels = counted_reviews(scope, given, held=f"{review}__held")
    columns = ["run", "item", "agree", "grade", "hallucination"]
    reviews = pd.DataFrame(labels.values_list(review, *columns[1:]), columns=columns)
    opinions = {run: _opinions(rows) for run, rows in reviews.groupby("run")}
    return {run: Running(**usage.get(run, {}), **opinions.get(run, {})) for run in {*usage, *opinions}}


def _opinions(reviews: pd.DataFrame) -> dict[str, Any]:
    opinions: dict[str, Any] = {"reviews": len(reviews)}
    for name in ("agree", "grade", "hallucination"):
        answered = reviews[reviews[name].notna()]
        if len(answered):
            values, cluster = answered[name].to_numpy(np.float64), answered["item"].to_numpy()
            share = rate(hits=values, cluster=cluster) if name != "grade" else None
            opinions[name] = number(share or mean(values=values, cluster=cluster, ends=GRADES))
    return opinions
