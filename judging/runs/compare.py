"""Two runs side by side: what was set differently, how far they agree, and the items on which they do not."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from accounts.rules import Viewer
from bank.models import Item, Sample
from judging.judgments import analyses
from judging.models import Judgment, Run
from judging.runs import queries
from stats.agreement import agreement_decided, cohen_kappa
from stats.correlation import pearson
from stats.proportions import mean, rate
from stats.rankings import mean_distance
from stats.results import Estimate
from stats.verdicts import combine_orders

COLUMNS = ("choice", "score", "ranking", "option", "answer")
SHOWN = 60  # items that differ
MOST = 200_000  # judgments read of each run
MOST_LABELS = 12  # of a matrix
FEWEST_CLUSTERS = 30  # groups of samples; below, rows count by item
SEED = 20_261_121  # of the bootstrap: the same page shows the same interval
CHOICES = ("first", "tie", "second")
WORDS = {"first": "A is better", "second": "B is better", "tie": "Tie"}


class CannotCompare(ValueError):
    """Two runs that have nothing to hold against each other; says why."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A number over the items that both runs decided."""

    title: str
    estimate: Estimate
    note: str = ""
    share: bool = False  # in percent

    def _shown(self, value: float) -> str:
        return f"{100 * value:.1f}%" if self.share else f"{value:.3g}"

    @property
    def value(self) -> str:
        return "–" if self.estimate.value is None else self._shown(self.estimate.value)

    @property
    def interval(self) -> str:
        found = self.estimate.interval
        return f"{self._shown(found.low)} to {self._shown(found.high)}" if found else self.estimate.reason


@dataclass(frozen=True, slots=True)
class Differing:
    """An item on which two runs say different things, with a judgment of each."""

    sample: Sample
    first: str
    second: str
    first_judgment: int
    second_judgment: int


@dataclass(slots=True)
class Comparison:
    """``counts`` are items with a verdict: of the first run, of the second, of both."""

    first: Run
    second: Run
    changes: list[tuple[str, str, str]]
    counts: tuple[int, int, int]
    figures: list[Figure] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    matrix: list[tuple[str, list[int]]] = field(default_factory=list)  # a row for each label of the first run
    differing: list[Differing] = field(default_factory=list)
    differ: int = 0
    cut: bool = False  # only the first MOST judgments of a run were read


def compare(first: Run, second: Run, *, viewer: Viewer) -> Comparison:
    """Hold two runs against each other, over the first repeat of each. Raises CannotCompare.

    Verdicts of an item over its orders become one, as on the boards; an item that lacks an order is not counted.
    """
    if first.benchmark_id != second.benchmark_id:
        raise CannotCompare("The runs are on different benchmarks, so they share no item.")
    if any(analyses.withheld(run, viewer) for run in (first, second)):
        raise CannotCompare("Verdicts are shown when the run has ended: it uses hidden criteria.")
    sides = [_verdicts(run, viewer) for run in (first, second)]
    column = next((name for name in COLUMNS if all(side[name].notna().any() for side in sides)), None)
    if column is None:
        raise CannotCompare("The runs share no kind of verdict: nothing can be held against each other.")
    outcomes = [_outcomes(run, side, column) for run, side in zip((first, second), sides, strict=True)]
    both = outcomes[0].add_suffix("_a").join(outcomes[1].add_suffix("_b"), how="inner").sort_index()
    found = Comparison(
        first=first,
        second=second,
        changes=changes(first, second),
        counts=(len(outcomes[0]), len(outcomes[1]), len(both)),
        cut=any(len(side) >= MOST for side in sides),
    )
    if len(both):
        found.figures = _figures(both, column)
        _count(found, both, column)
        _differences(found, both, column)
    return found


def changes(first: Run, second: Run) -> list[tuple[str, str, str]]:
    """What was set differently: name, value of the first, value of the second."""

    def facts(run: Run) -> dict[str, Any]:
        template = f"{run.template} {run.template_version}, {run.template_sha256[:8]}" if run.template else ""
        return {
            "judge": run.judge.name,
            "model that answered": run.reported_model,
            "protocol": run.protocol,
            "prompt": template,
            **{name: value for name, value in run.settings.items() if name != "prompt"},
            "items": queries.things(run),
            "part of the benchmark": run.item_set or "",
            "versions of the criteria": run.criteria_fingerprint[:8],
        }

    one, other = facts(first), facts(second)
    names = list(dict.fromkeys([*one, *other]))
    return [(n, _said(one.get(n)), _said(other.get(n))) for n in names if one.get(n) != other.get(n)]


def _said(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "–" if value in (None, "") else str(value)


# -- verdicts -------------------------------------------------------------------------------------------------------


def _verdicts(run: Run, viewer: Viewer) -> pd.DataFrame:
    rows = Judgment.objects.visible_to(viewer).filter(run=run, repeat=0).order_by("item", "order")
    names = ["pk", "item_id", "order", *COLUMNS]
    frame = pd.DataFrame(rows.values_list(*names)[:MOST], columns=names)
    return frame.rename(columns={"item_id": "item"})


def _outcomes(run: Run, frame: pd.DataFrame, column: str) -> pd.DataFrame:
    """Index ``item``: the one verdict of each item, as ``said``, and a judgment of it, as ``pk``."""
    orders = 2 if run.orders == "both" else 1
    judgments = frame.groupby("item")["pk"].first()
    if column == "choice":
        asked = frame[["item", "order", "choice"]].assign(repeat=0)
        said = combine_orders(judgments=asked, orders=orders).outcomes.set_index("item")["choice"]
    else:
        given = frame[frame[column].notna()]
        given = given[given.groupby("item")["pk"].transform("size") >= min(orders, frame["order"].nunique())]
        combine: dict[str, Callable[[Any], Any]] = {"score": np.mean, "ranking": _mean_ranking}
        said = given.groupby("item")[column].agg(combine.get(column, "first"))
    return said.to_frame("said").join(judgments)


def mean_ranking(rankings: Sequence[list[list[int]]]) -> list[list[int]]:
    """Several rankings of the same answers as one, by mean position; equal means share a rank."""
    places: dict[int, list[float]] = {}
    for ranking in rankings:
        before = 0
        for group in ranking:
            for answer in group:
                places.setdefault(answer, []).append(before + (len(group) - 1) / 2)
            before += len(group)
    means = {answer: round(sum(at) / len(at), 9) for answer, at in places.items()}
    return [sorted(a for a, at in means.items() if at == step) for step in sorted(set(means.values()))]


def _mean_ranking(rankings: Sequence[list[list[int]]]) -> str:
    """The same in letters: "B > A = C" has A and C on a par."""
    return " > ".join(" = ".join("ABCDEFGHIJ"[answer] for answer in group) for group in mean_ranking(rankings))


# -- numbers --------------------------------------------------------------------------------------------------------


def _clusters(both: pd.DataFrame) -> pd.Series:
    rows = Item.objects.filter(pk__in=[int(item) for item in both.index]).order_by()
    groups = {pk: group or key for pk, group, key in rows.values_list("pk", "sample__group", "sample__key")}
    found = pd.Series([groups[int(item)] for item in both.index], index=both.index)
    return found if found.nunique() >= FEWEST_CLUSTERS else pd.Series(both.index, index=both.index)


def _figures(both: pd.DataFrame, column: str) -> list[Figure]:
    one, other, cluster = both["said_a"], both["said_b"], _clusters(both)
    same = rate(hits=(one == other).to_numpy(), cluster=cluster)
    found = [Figure("The same verdict", same, share=True)]
    rng = np.random.default_rng(SEED)
    if column == "choice":
        decided = agreement_decided(first=one, second=other, cluster=cluster).share
        found.append(Figure("The same side", decided, "where both chose one", share=True))
    if column in ("score",):
        apart = (other - one).to_numpy(dtype=float)
        found.append(Figure("Mean difference", mean(values=apart, cluster=cluster), "second less first"))
        found.append(Figure("Pearson", pearson(x=one, y=other, cluster=cluster, rng=rng).estimate))
    elif column == "ranking":
        letters = [side.str.replace(r"[^A-J]", "", regex=True).tolist() for side in (one, other)]
        apart_by = mean_distance(first=letters[0], second=letters[1], cluster=cluster)
        found.append(Figure("Mean distance of the rankings", apart_by, "0 is the same order"))
    else:
        found.append(Figure("Cohen's kappa", cohen_kappa(first=one, second=other, cluster=cluster, rng=rng)))
    return found


def _words(value: Any, column: str) -> str:
    if column == "choice":
        return WORDS[value]
    if column == "answer":
        return "Yes" if value else "No"
    return f"{value:g}" if column == "score" else str(value)


def _count(found: Comparison, both: pd.DataFrame, column: str) -> None:
    values = list(CHOICES) if column == "choice" else sorted(set(both["said_a"]) | set(both["said_b"]))
    if len(values) > MOST_LABELS:
        return
    table = pd.crosstab(both["said_a"], both["said_b"]).reindex(index=values, columns=values, fill_value=0)
    found.labels = [_words(value, column) for value in values]
    found.matrix = [(_words(value, column), [int(n) for n in table.loc[value]]) for value in values]


def _differences(found: Comparison, both: pd.DataFrame, column: str) -> None:
    apart = both[both["said_a"] != both["said_b"]]
    found.differ = len(apart)
    if column == "score":  # the furthest apart first
        apart = apart.iloc[np.argsort(-np.abs((apart["said_a"] - apart["said_b"]).to_numpy(float)), kind="stable")]
    apart = apart.head(SHOWN)
    items = Item.objects.select_related("sample").in_bulk([int(item) for item in apart.index])
    for item, row in apart.iterrows():
        one, other = _words(row["said_a"], column), _words(row["said_b"], column)
        sample = items[int(str(item))].sample
        found.differing.append(Differing(sample, one, other, int(row["pk_a"]), int(row["pk_b"])))
