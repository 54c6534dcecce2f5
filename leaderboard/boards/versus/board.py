"""Two models, or two judges, on the same items: is one better?

Every measure is paired: what makes an item hard for both cancels. Shares with one row per group: McNemar's exact test;
with several rows, and means: sign flips by group. Correlations: Williams' t if items are independent, otherwise t with
the jackknife's error by group. Strengths: the contrast of the fit.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from judging.models import Run
from leaderboard import votes
from leaderboard.boards.base import Tested, with_significance
from leaderboard.boards.judges import reviews
from leaderboard.boards.judges.over_sets import are_apart, by_data_set
from leaderboard.boards.models import keyed
from leaderboard.boards.models import scores as board_of_scores
from leaderboard.boards.models.controlled import strengths
from leaderboard.boards.models.pairs import Battle
from leaderboard.hidden import in_parts, of_many
from leaderboard.methods import SEED
from leaderboard.metrics import distance_of_rankings
from leaderboard.rows import UNKNOWN, Number, Row, number
from leaderboard.scope import CONTROL, NO_CONTROL, BadScope, Scope
from leaderboard.votes import scores
from stats.arrays import FloatArray
from stats.correlation import PEARSON, SPEARMAN, PairedCorrelations, correlation_difference, williams
from stats.paired import change, difference
from stats.parts import over_parts
from stats.results import StatisticsError
from stats.verdicts import decided, majority, three_way

STRENGTH = "Bradley–Terry strength"


@dataclass(frozen=True, kw_only=True)
class Measure(Tested):
    """Two sides by one measure: ``difference`` is a minus b; ``significant`` at 5 % with all tests of the page."""

    measure: str
    a: float | None = None
    b: float | None = None
    difference: Number = UNKNOWN
    p: float | None = None
    n: int = 0
    method: str = ""
    significant: bool | None = None


@dataclass(frozen=True, kw_only=True)
class LevelMeasure(Row):
    level: str
    difference: Number
    n: int


@dataclass(frozen=True, eq=False, slots=True)
class Versus:
    """``measures`` of the two, and the first measure by ``levels``. ``table``: the items that both have, with index
    ``item`` or ``sample`` (then column ``item`` is one to open) and columns ``a``, ``b``, ``people`` (if any) and
    ``apart`` (their distance, 0 if they agree). ``unit`` is that of the differences. ``single``: whether the table may
    be shown below staff.
    """

    a: str
    b: str
    unit: str
    measures: list[Measure]
    levels: list[LevelMeasure]
    table: pd.DataFrame
    by: str = "item"
    single: bool = True
    notes: list[str] = field(default_factory=list)
    runs: tuple[int, ...] = ()
    by_level: str = ""  # the measure of ``levels`` where it is not the first
    of_sets: bool = False  # whether ``levels`` are source data sets


SHARES = (0.0, 1.0)
SIDES = ["a", "b"]


def of_rows(name: str, frame: pd.DataFrame, ends: tuple[float, float] = SHARES) -> Measure:
    """The mean difference of ``a`` and ``b`` on the same rows, which may share a ``group``. The numbers lie between
    ``ends``.
    """
    if frame.empty:
        return Measure(measure=name)
    a, b, group = _paired(frame)
    test = difference(first=a, second=b, cluster=group, rng=np.random.default_rng(SEED))
    gap = change(before=b, after=a, cluster=group, ends=ends)
    return Measure(
        measure=name,
        a=float(a.mean()),
        b=float(b.mean()),
        difference=number(gap),
        p=test.p,
        n=gap.n,
        method=test.method,
    )


def _paired(rows: pd.DataFrame) -> tuple[FloatArray, FloatArray, Any]:
    a, b = (rows[side].to_numpy(np.float64) for side in SIDES)
    return a, b, rows["group"].to_numpy()


def by_level_of(scope: Scope, frame: pd.DataFrame, ends: tuple[float, float] = SHARES) -> list[LevelMeasure]:
    """By source data set if there are several, otherwise by level; empty if there is only one."""
    names = votes.level_names(scope)
    if "dataset" in frame and frame["dataset"].nunique() > 1:
        frame, names = frame.assign(level=frame["dataset"]), sorted(frame["dataset"].unique())
    frame = frame[in_parts(scope, frame.reset_index(), by="level")]
    levels = []
    for level in names:
        rows = frame[frame["level"] == level]
        if len(rows):
            a, b, group = _paired(rows)
            gap = change(before=b, after=a, cluster=group, ends=ends)
            levels.append(LevelMeasure(level=level, difference=number(gap), n=len(rows)))
    return levels if len(levels) > 1 else []


def tested_together(versus: Versus) -> Versus:
    """With the tests of all its measures together."""
    return replace(versus, measures=with_significance(versus.measures))


def refuse_unknown(known: set[str], *names: str) -> None:
    for name in names:
        if name not in known:
            raise BadScope(f"{name!r} has nothing to compare under this view.")


# ---- two models ----


def models_by_pairs(scope: Scope, a: str, b: str) -> Versus:
    items = votes.pairs(scope)
    outcomes = votes.outcomes(scope)
    frame = votes.join_items(items, votes.with_failures(outcomes, scope.failures))
    names = set(frame["a"]) | set(frame["b"])
    refuse_unknown(names, a, b)
    measures, paired = [], None
    if scope.anchor in names and scope.anchor not in (a, b):
        won = votes.win_points(votes.sided(frame, scope.anchor), scope.ties)
        won["sample"] = items["sample"].reindex(won["item"]).to_numpy()
        rate = {name: rows.groupby("sample")["won"].mean() for name, rows in won.groupby("model") if name in (a, b)}
        if {a, b} <= set(rate):
            paired = pd.concat([rate[a], rate[b]], axis=1, join="inner", keys=["a", "b"])
            paired = paired[of_many(scope, paired.reset_index())]
            paired = paired.join(won.groupby("sample")[["level", "group"]].first())
            measures.append(of_rows(f"Win rate against {scope.anchor}", paired))
    direct = frame[((frame["a"] == a) & (frame["b"] == b)) | ((frame["a"] == b) & (frame["b"] == a))]
    direct = direct[of_many(scope, direct)]
    if len(direct):
        won = votes.win_points(votes.sided(direct, ""), scope.ties)
        head_to_head = _as_sides(won.pivot_table(index="item", columns="model", values="won", observed=True)[[a, b]])
        head_to_head = head_to_head.join(direct.groupby("item")[["level", "group", "sample"]].first())
        measures.append(of_rows("Win rate against each other", head_to_head))
        paired = head_to_head.set_index("sample") if paired is None else paired
    measures.append(_contrast(scope, frame, a, b))
    levels = [] if paired is None else by_level_of(scope, paired)
    notes = [ONLY_STRENGTHS] if paired is None or paired.empty else []
    runs = tuple(run.pk for run in outcomes.runs)
    shown = frame[(frame["a"] == a) | (frame["b"] == a)]
    return _of_samples(Versus(a, b, "points", measures, levels, NONE_PAIRED, runs=runs, notes=notes), paired, shown)


NONE_PAIRED = pd.DataFrame(columns=SIDES)
ONLY_STRENGTHS = "The two share no opponent on the same samples: only their strengths can be compared."


def _of_samples(versus: Versus, paired: pd.DataFrame | None, shown: pd.DataFrame | None = None) -> Versus:
    """With the samples of the first measure, and the item to open of each among those ``shown``."""
    paired = NONE_PAIRED if paired is None else paired
    table = paired[SIDES].assign(people=None, apart=(paired["a"] - paired["b"]).abs())
    if shown is not None:
        table["item"] = shown.groupby("sample")["item"].first().reindex(table.index)
    return replace(versus, table=table, by="sample")


def _as_sides(table: pd.DataFrame) -> pd.DataFrame:
    """A table with a column for each of the two."""
    table.columns = pd.Index(SIDES)
    return table


def _contrast(scope: Scope, frame: pd.DataFrame, a: str, b: str) -> Measure:
    fit = strengths(scope, Battle.of(frame, anchor=scope.anchor, strong=int(scope.weight))).fit
    contrast = fit.contrast(a, b)
    taken_out = "" if scope.control == NO_CONTROL else f", {CONTROL.ways[scope.control].label} taken out"
    return Measure(
        measure=STRENGTH,
        a=fit.ratings[a].strength.value,
        b=fit.ratings[b].strength.value,
        difference=number(contrast.difference),
        p=contrast.p,
        n=contrast.difference.n,
        method=f"contrast of the fit{taken_out}",
    )


def models_by_scores(scope: Scope, a: str, b: str) -> Versus:
    frame, runs = board_of_scores.verdicts_on_models(scope)
    refuse_unknown(set(frame["model"]) - {""}, a, b)
    frame = frame[frame["model"].isin([a, b])]
    frame = scope.kind.shares(scope, frame).whole
    by_sample = frame.groupby(["sample", "model"])["value"].mean().unstack().reindex(columns=[a, b]).dropna()
    by_sample = by_sample[of_many(scope, by_sample.reset_index())]
    paired = _as_sides(by_sample).astype(float).join(frame.groupby("sample")[["level", "group"]].first())
    ends = scope.kind.ends(scope.benchmark)
    rows, levels = of_rows(scope.kind.compared_by, paired, ends), by_level_of(scope, paired, ends)
    versus = Versus(a, b, scope.kind.compared_in, [rows], levels, paired, runs=runs)
    return _of_samples(versus, paired, frame[frame["model"] == a])


def models_by_keys(scope: Scope, a: str, b: str) -> Versus:
    frame, runs, levels = keyed.counted_answers(scope)
    refuse_unknown(set(frame["model"]), a, b)
    frame = frame[frame["model"].isin([a, b])]
    frame = frame.assign(level=votes.level_of(scope, frame["path"]))
    rights = {"One pass" if scope.kind.rotates else "Accuracy": frame[frame["variant"] == ""]}
    rotations = {name: keyed.every_rotation(answers) for name, answers in frame.groupby("model")}
    if scope.kind.rotates and all(len(answers) for answers in rotations.values()):
        circular = pd.concat([answers.assign(model=name) for name, answers in rotations.items()], ignore_index=True)
        circular = circular.merge(frame.drop_duplicates("sample")[["sample", "level"]], on="sample")
        rights = {"Circular": circular, **rights}
    measures, main = [], None
    for name, answers in rights.items():
        by_sample = answers.pivot(index="sample", columns="model", values="right").reindex(columns=[a, b])
        paired = _as_sides(by_sample.dropna().astype(float)).join(
            answers.drop_duplicates("sample").set_index("sample")[["level", "group"]]
        )
        measures.append(of_rows(name, paired))
        main = paired if main is None else main
    by_level = by_level_of(scope, main) if levels and main is not None else []
    return _of_samples(Versus(a, b, "points", measures, by_level, NONE_PAIRED, single=False, runs=runs), main)


# ---- two judges ----


REVIEWED = {
    "hallucination": "Hallucinates, by consensus of three reviews",
    "agree": "Reviewers agree, by consensus of three",
}


def reviewed(scope: Scope, first: list[Run], second: list[Run]) -> list[Measure]:
    """What people said of both judges' verdicts on the same items (MLLM-as-a-Judge, Table 7); empty if nothing."""
    measures = []
    for name, words in REVIEWED.items():
        a, b = (reviews.said_of(scope, runs, name) for runs in (first, second))
        both = a.rename(columns={"said": "a"}).join(b[["said"]].rename(columns={"said": "b"}), how="inner")
        measures += [of_rows(words, both)] if len(both) else []
    return measures


def named(runs: list[Run], other: list[Run]) -> str:
    """The judge's name, with its run if both are runs of one judge."""
    run = runs[-1]
    return f"{run.judge}, run {run.pk}" if other[-1].judge_id == run.judge_id else str(run.judge)


def runs_of(scope: Scope, pk: int) -> list[Run]:
    """The runs of the same judge, protocol and settings as this one."""
    runs = votes.judged_runs(scope)
    chosen = runs.filter(pk=pk).first()
    if chosen is None:
        raise BadScope(f"There is no run {pk} of this kind on {scope.benchmark}.")
    same = runs.filter(**chosen.alike)
    return list(same)


def judges_by_pairs(scope: Scope, first: list[Run], second: list[Run]) -> Versus:
    items = votes.pairs(scope)
    labels = votes.labels_on(scope, items.index)
    counted = majority(labels=labels, rule=scope.rule)
    people = pd.DataFrame({"people": counted["choice"], "shown": votes.shown_majority(counted)})
    verdicts = [votes.of_runs(scope, runs).frame for runs in (first, second)]
    paired = people
    for name, frame in zip(("told_a", "told_b"), verdicts, strict=True):
        # Only the first of several repeats: a paired test takes one verdict per item.
        choices = frame[frame["repeat"] == 0].set_index("item")["choice"].rename(name)
        paired = paired.join(choices, how="inner")
    paired = paired.join(items[["level", "group", "dataset"]], how="inner")
    sided, *told = (decided(paired[name]) >= 0 for name in ("people", "told_a", "told_b"))

    def agreeing(read: Callable[[Any], Any], rows: Any = slice(None)) -> pd.DataFrame:
        """Whether each says on these rows what people say."""
        right = {side: read(paired[f"told_{side}"]) == read(paired["people"]) for side in SIDES}
        return paired[rows].assign(**{side: of[rows].astype(float) for side, of in right.items()})

    accuracy, agreement = agreeing(three_way), agreeing(decided, sided)
    measures = [
        of_rows("Agreement, where people chose a side", agreement),
        of_rows("Accuracy", accuracy),
        of_rows("Accuracy, where all three chose a side", agreeing(decided, sided & told[0] & told[1])),
    ]
    repeated = any(frame["repeat"].max() > 0 for frame in verdicts)
    notes = ["Only the first of several repeats counts here."] if repeated else []
    table, levels = _item_table(paired, accuracy["a"] - accuracy["b"]), by_level_of(scope, agreement)
    return _versus(first, second, "points", measures, levels, table.assign(people=paired["shown"]), notes=notes)


def _people_and_judges(scope: Scope, first: list[Run], second: list[Run]) -> pd.DataFrame:
    """The verdicts of people (``people``) and the two judges (``told_a``, ``told_b``) on the items that all have."""
    items = scores.items_of(scope)
    people = scores.mean_by_item(scores.labels_on(scope, items))
    paired = people.set_index("item").rename(columns={"value": "people"})
    for name, group in (("told_a", first), ("told_b", second)):
        verdicts = scope.kind.numbers(scope, scores.of_runs(scope, group), items)
        paired = paired.join(verdicts.groupby("item")["value"].agg(scope.kind.combined).rename(name), how="inner")
    return paired.join(items[["level", "group", "dataset"]], how="inner")


def _versus(
    first: list[Run],
    second: list[Run],
    unit: str,
    measures: list[Measure],
    levels: list[LevelMeasure],
    table: pd.DataFrame,
    **more: Any,
) -> Versus:
    runs = tuple(run.pk for run in (*first, *second))
    return Versus(named(first, second), named(second, first), unit, measures, levels, table, runs=runs, **more)


def judges_by_readings(scope: Scope, first: list[Run], second: list[Run]) -> Versus:
    """By whether each reads an answer as most people do."""
    paired = _people_and_judges(scope, first, second)
    hits = paired.assign(**{name: (paired[f"told_{name}"] == paired["people"]).astype(float) for name in SIDES})
    table, levels = _item_table(paired, hits["a"] - hits["b"]), by_level_of(scope, hits)
    return _versus(first, second, "points", [of_rows("Agreement", hits)], levels, table)


def judges_by_rankings(scope: Scope, first: list[Run], second: list[Run]) -> Versus:
    """By their distance from people's order."""
    paired = _people_and_judges(scope, first, second)
    distances = paired.assign(**{name: _distances(paired, f"told_{name}") for name in SIDES})
    table, levels = _item_table(paired, distances["a"] - distances["b"]), by_level_of(scope, distances)
    row = of_rows("Distance from people's order (lower is better)", distances)
    return _versus(first, second, "distance", [row], levels, table)


def judges_by_scores(scope: Scope, first: list[Run], second: list[Run]) -> Versus:
    """By their correlation with people's scores, and their distance from them."""
    paired = _people_and_judges(scope, first, second)
    low, high = scope.kind.ends(scope.benchmark)
    ends = (0.0, high - low)
    measures = [_correlations(name, paired) for name in (PEARSON, SPEARMAN)]
    distances = paired.assign(**{name: (paired[f"told_{name}"] - paired["people"]).abs() for name in SIDES})
    measures.append(of_rows("Distance from people's score (lower is better)", distances, ends))
    table = _item_table(paired, paired["told_a"].astype(float) - paired["told_b"].astype(float))
    return _versus(
        first,
        second,
        "correlation",
        measures,
        by_level_of(scope, distances, ends),
        table,
        by_level=measures[-1].measure,
        of_sets=distances["dataset"].nunique() > 1,
    )


def _item_table(paired: pd.DataFrame, gap: "pd.Series[Any]") -> pd.DataFrame:
    columns = {"a": paired["told_a"], "b": paired["told_b"], "people": paired["people"], "apart": gap.abs()}
    return pd.DataFrame(columns, index=paired.index)


def _distances(paired: pd.DataFrame, name: str) -> FloatArray:
    return distance_of_rankings(paired.rename(columns={name: "judged", "people": "value"})[["judged", "value"]])


def _correlation_difference(name: str, paired: pd.DataFrame) -> PairedCorrelations:
    first, second, people = (paired[column].to_numpy(np.float64) for column in ("told_a", "told_b", "people"))
    columns = {"cluster": paired["group"].to_numpy(), "stratum": paired["dataset"].to_numpy(), "name": name}
    return correlation_difference(first=first, second=second, reference=people, **columns)


def _correlations(name: str, paired: pd.DataFrame) -> Measure:
    """The difference of two correlations with people: the mean over data sets. With one data set and one item a group,
    p of Pearson by Williams' t.
    """
    title = name.capitalize()
    if paired.empty:
        return Measure(measure=title)
    both = _correlation_difference(name, paired)
    of_sets = {dataset: _correlation_difference(name, rows) for dataset, rows in by_data_set(paired).items()}
    parts = {dataset: of_set.difference for dataset, of_set in of_sets.items()}
    over = over_parts(both.difference, parts, apart=are_apart(paired))
    measure = Measure(
        measure=title,
        a=both.first,
        b=both.second,
        difference=number(over),
        p=both.p if over.interval else None,
        n=len(paired),
        method=over.method,
    )
    independent = paired["dataset"].nunique() == 1 and paired["group"].is_unique
    if name != PEARSON or not independent or both.first is None or both.second is None or len(paired) < 4:
        return measure
    between = float(np.corrcoef(paired["told_a"].astype(float), paired["told_b"].astype(float))[0, 1])
    try:
        test = williams(r_first=both.first, r_second=both.second, r_between=between, n=len(paired))
    except StatisticsError:
        return measure
    return replace(measure, p=test.p, method=test.method)
