"""Two runs side by side: their different settings, how far they agree, and the items on which they do not."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from accounts.rules import Viewer
from bank.models import Item, Sample
from bank.samples.held_out import held_out_samples
from judging.judgments import analyses
from judging.models import Judgment, Run, setting_text
from judging.runs import queries
from stats.agreement import agreement_decided, cohen_kappa
from stats.correlation import pearson
from stats.paired import change
from stats.proportions import rate
from stats.rankings import Ranking, mean_distance
from stats.results import Estimate
from stats.verdicts import combine_orders

COLUMNS = ("choice", "score", "ranking", "option", "answer")
MOST_SHOWN = 60  # items with different verdicts
MOST_READ = 200_000  # judgments of each run
MOST_LABELS = 12  # of a matrix
CHOICES = ("first", "tie", "second")
WORDS = {"first": "First", "second": "Second", "tie": "Tie"}


class CannotCompare(ValueError):
    """These two runs cannot be compared; says why."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A number over the items that both runs decided. ``write``: how it is written, see ``stats.figures``."""

    title: str
    estimate: Estimate
    note: str = ""
    write: str = "three"


@dataclass(frozen=True, slots=True)
class Difference:
    """An item with different verdicts in the two runs, with a judgment of each."""

    sample: Sample
    first: str
    second: str
    first_judgment: int
    second_judgment: int


@dataclass(slots=True)
class Comparison:
    """``counts`` are the items with a verdict in the first run, in the second, in both."""

    first: Run
    second: Run
    changes: list[tuple[str, str, str]]
    counts: tuple[int, int, int]
    figures: list[Figure] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    matrix: list[tuple[str, list[int]]] = field(default_factory=list)  # a row for each label of the first run
    differing: list[Difference] = field(default_factory=list)
    differ: int = 0
    cut: bool = False  # only the first MOST_READ judgments of a run were read


def common_column(frames: Sequence[pd.DataFrame]) -> str | None:
    """The kind of verdict that all of these hold."""
    return next((name for name in COLUMNS if all(frame[name].notna().any() for frame in frames)), None)


def compare(first: Run, second: Run, *, viewer: Viewer) -> Comparison:
    """Compare the first repeats of two runs. Raises CannotCompare.

    The verdicts of an item over its orders are combined as on the boards; items with a missing order do not count, nor
    do those of samples that are held out of comparisons.
    """
    if first.benchmark_id != second.benchmark_id:
        raise CannotCompare("The runs use different benchmarks, so they have no items in common.")
    if any(analyses.withheld(run, viewer) for run in (first, second)):
        raise CannotCompare("The run uses hidden criteria: its verdicts are shown on the day after it has ended.")
    sides = [_verdicts(run, viewer) for run in (first, second)]
    column = common_column(sides)
    if column is None:
        raise CannotCompare("The runs have no kind of verdict in common, so they cannot be compared.")
    outcomes = [_outcomes(run, side, column) for run, side in zip((first, second), sides, strict=True)]
    both = outcomes[0].add_suffix("_a").join(outcomes[1].add_suffix("_b"), how="inner").sort_index()
    comparison = Comparison(
        first=first,
        second=second,
        changes=changes(first, second),
        counts=(len(outcomes[0]), len(outcomes[1]), len(both)),
        cut=any(len(side) >= MOST_READ for side in sides),
    )
    if len(both):
        comparison.figures = _figures(both, column, first.benchmark.score_ends)
        _count(comparison, both, column)
        _differences(comparison, both, column)
    return comparison


def changes(first: Run, second: Run) -> list[tuple[str, str, str]]:
    """The settings that differ: name, value of the first, value of the second."""

    def facts(run: Run) -> dict[str, Any]:
        template = f"{run.template} {run.template_version}, {run.template_sha256[:8]}" if run.template else ""
        return {
            "judge": run.judge.name,
            "model that answered": run.reported_model,
            "protocol": run.protocol,
            "prompt": template,
            **{name: value for name, value in run.settings.items() if name != "prompt"},
            "items": queries.item_count(run),
            "part of the benchmark": run.item_set or "",
            "versions of the criteria": run.criteria_fingerprint[:8],
        }

    before, after = facts(first), facts(second)
    names = list(dict.fromkeys([*before, *after]))
    return [(n, _as_text(before.get(n)), _as_text(after.get(n))) for n in names if before.get(n) != after.get(n)]


def _as_text(value: Any) -> str:
    return "–" if value in (None, "") else setting_text(value)


# -- verdicts -------------------------------------------------------------------------------------------------------


def _verdicts(run: Run, viewer: Viewer) -> pd.DataFrame:
    rows = Judgment.objects.seen_by(viewer).filter(run=run, repeat=0).order_by("item", "order")
    names = ["pk", "item_id", "item__sample", "order", *COLUMNS]
    frame = pd.DataFrame(rows.values_list(*names)[:MOST_READ], columns=names)
    frame = frame[~frame["item__sample"].isin(held_out_samples(run.benchmark))]
    return frame.rename(columns={"item_id": "item"})


def _outcomes(run: Run, frame: pd.DataFrame, column: str) -> pd.DataFrame:
    """Index ``item``; columns ``verdict``, the combined verdict of the item, and ``pk``, one of its judgments."""
    orders = 2 if run.orders == "both" else 1
    judgments = frame.groupby("item")["pk"].first()
    if column == "choice":
        votes = frame[["item", "order", "choice"]].assign(repeat=0)
        verdicts = combine_orders(judgments=votes, orders=orders).outcomes.set_index("item")["choice"]
    else:
        decided = frame[frame[column].notna()]
        decided = decided[decided.groupby("item")["pk"].transform("size") >= min(orders, frame["order"].nunique())]
        combine: dict[str, Callable[[Any], Any]] = {"score": np.mean, "ranking": _mean_ranking_text}
        verdicts = decided.groupby("item")[column].agg(combine.get(column, "first"))
    return verdicts.to_frame("verdict").join(judgments)


def mean_ranking(rankings: Sequence[list[list[int]]]) -> list[list[int]]:
    """Combine rankings of the same answers by mean position; equal means share a rank."""
    places: dict[int, list[float]] = {}
    for ranking in rankings:
        before = 0
        for group in ranking:
            for answer in group:
                places.setdefault(answer, []).append(before + (len(group) - 1) / 2)
            before += len(group)
    means = {answer: round(sum(positions) / len(positions), 9) for answer, positions in places.items()}
    return [sorted(a for a, positions in means.items() if positions == mean) for mean in sorted(set(means.values()))]


def _mean_ranking_text(rankings: Sequence[list[list[int]]]) -> str:
    """The same in letters: in "B > A = C", A and C share a rank."""
    return " > ".join(" = ".join("ABCDEFGHIJ"[answer] for answer in group) for group in mean_ranking(rankings))


def _places(text: str) -> Ranking:
    """The places of the answers in a ranking written by letters."""
    levels = [level.split(" = ") for level in text.split(" > ")]
    places = {letter: place for place, level in enumerate(levels) for letter in level}
    return tuple(float(places[letter]) for letter in sorted(places))


# -- numbers --------------------------------------------------------------------------------------------------------


def _clusters(both: pd.DataFrame) -> pd.Series:
    rows = Item.objects.filter(pk__in=[int(item) for item in both.index]).order_by()
    groups = {pk: group or key for pk, group, key in rows.values_list("pk", "sample__group", "sample__key")}
    return pd.Series([groups[int(item)] for item in both.index], index=both.index)


def _figures(both: pd.DataFrame, column: str, ends: tuple[float, float]) -> list[Figure]:
    first, second, cluster = both["verdict_a"], both["verdict_b"], _clusters(both)
    same_verdict = rate(hits=(first == second).to_numpy(), cluster=cluster)
    figures = [Figure("The same verdict", same_verdict, write="percent_sign")]
    if column == "choice":
        decided = agreement_decided(first=first, second=second, cluster=cluster).share
        figures.append(Figure("The same side", decided, "where both chose a side", write="percent_sign"))
    if column == "score":
        scores = {"before": first.to_numpy(float), "after": second.to_numpy(float)}
        difference = change(**scores, cluster=cluster, ends=ends)
        figures.append(Figure("Mean difference", difference, "second minus first", write="signed"))
        figures.append(Figure("Pearson", pearson(x=first, y=second, cluster=cluster).estimate))
    elif column == "ranking":
        rankings = [[(_places(text),) for text in side] for side in (first, second)]
        distance = mean_distance(first=rankings[0], second=rankings[1], cluster=cluster)
        figures.append(Figure("Mean distance of the rankings", distance, "0 is the same order"))
    else:
        figures.append(Figure("Cohen's kappa", cohen_kappa(first=first, second=second, cluster=cluster)))
    return figures


def _words(value: Any, column: str) -> str:
    if column == "choice":
        return WORDS[value]
    if column == "answer":
        return "Yes" if value else "No"
    return f"{value:g}" if column == "score" else str(value)


def _count(comparison: Comparison, both: pd.DataFrame, column: str) -> None:
    values = list(CHOICES) if column == "choice" else sorted(set(both["verdict_a"]) | set(both["verdict_b"]))
    if len(values) > MOST_LABELS:
        return
    table = pd.crosstab(both["verdict_a"], both["verdict_b"]).reindex(index=values, columns=values, fill_value=0)
    comparison.labels = [_words(value, column) for value in values]
    comparison.matrix = [(_words(value, column), [int(n) for n in table.loc[value]]) for value in values]


def _differences(comparison: Comparison, both: pd.DataFrame, column: str) -> None:
    different = both[both["verdict_a"] != both["verdict_b"]]
    comparison.differ = len(different)
    if column == "score":  # largest differences first
        different = different.iloc[
            np.argsort(-np.abs((different["verdict_a"] - different["verdict_b"]).to_numpy(float)), kind="stable")
        ]
    different = different.head(MOST_SHOWN)
    items = Item.objects.select_related("sample").in_bulk([int(item) for item in different.index])
    for item, row in different.iterrows():
        first, second = _words(row["verdict_a"], column), _words(row["verdict_b"], column)
        sample = items[int(str(item))].sample
        comparison.differing.append(Difference(sample, first, second, int(row["pk_a"]), int(row["pk_b"])))
