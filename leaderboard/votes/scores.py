"""Scores and rankings as data frames with one outcome per item, for the statistics."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from string import ascii_uppercase
from typing import Any

import numpy as np
import pandas as pd
from django.db.models import QuerySet
from pandas.api.types import is_numeric_dtype

from annotations.models import Label
from bank import exposure
from bank.models import Item
from bank.models.items import ItemResponse
from judging.models import Run
from leaderboard import hidden
from leaderboard.scope import Scope
from leaderboard.sight import refuse_live
from leaderboard.votes import dataset_of, group_of, level_of, pairs, samples_in
from stats.rankings import Ranking


@dataclass(frozen=True, eq=False, slots=True)
class Shares:
    """Verdicts on models as numbers. ``whole`` has one row per verdict; ``parts`` has one row per verdict or component,
    with the ``part`` of the board it belongs to. ``order`` is the order of the parts, ``notes`` are for the page.
    """

    whole: pd.DataFrame
    parts: pd.DataFrame
    order: list[str]
    notes: list[str] = field(default_factory=list)


def items_of(scope: Scope) -> pd.DataFrame:
    """The items of a view: index ``item``; columns ``sample, level, group, dataset, models`` (a tuple of names).

    ``dataset`` is that of ``votes.dataset_of``; ``models`` is empty where a picture is rated.
    """
    items = Item.objects.filter(kind=scope.kind.item_kind, sample__in=samples_in(scope).order_by())
    columns = ("pk", "sample_id", "sample__key", "sample__group", "sample__capability__path", "sample__source")
    frame = pd.DataFrame(items.values_list(*columns), columns=["item", "sample", "key", "group", "path", "dataset"])
    frame = frame.set_index("item")
    places = ItemResponse.objects.filter(item__in=items.order_by()).order_by("item", "position")
    models: dict[int, list[str]] = {}
    for item, name, variant in places.values_list("item_id", "response__model__name", "response__variant"):
        models.setdefault(item, []).append(f"{name} ({variant})" if variant else name)
    frame["level"] = level_of(scope, frame["path"])
    frame["group"] = group_of(frame).astype(str)
    frame["dataset"] = dataset_of(scope, frame["dataset"])
    frame = hidden.as_told(scope, frame)
    frame["models"] = [tuple(models.get(item, ())) for item in frame.index]
    return frame[["sample", "level", "group", "dataset", "models"]].sort_index()


def items_asked(scope: Scope) -> pd.DataFrame:
    """The same of any kind of item."""
    return pairs(scope) if scope.kind.pairwise else items_of(scope)


def counted_labels(scope: Scope, *, every: bool = False) -> QuerySet[Label]:
    """People's labels that are compared with other verdicts in the view, or ``every`` one that counts."""
    refuse_live(scope)
    labels = scope.kind.labels()
    rows = hidden.counted_labels(scope, labels.counted() if every else labels.compared())
    rows = rows.filter(campaign__benchmark=scope.benchmark, item__kind=scope.kind.item_kind)
    return rows.filter(campaign__name=scope.campaign) if scope.campaign else rows


def labels_of(scope: Scope, *, every: bool = False) -> pd.DataFrame:
    """The labels of ``counted_labels``: ``item``, ``annotator``, ``value``.

    The value is the score, the ranking (places of the answers, in a tuple of one), the points by component (a dict), or
    the option or answer that the annotator read in a text.
    """
    column, rows = scope.kind.column, counted_labels(scope, every=every)
    earlier = hidden.earlier_versions(scope, rows)
    given = rows.order_by("pk").values_list("pk", "item_id", "annotator_id", column)
    values = [(item, annotator, earlier.get(pk, {column: value})[column]) for pk, item, annotator, value in given]
    frame = pd.DataFrame(values, columns=["item", "annotator", "value"])
    frame["value"] = frame["value"].map(scope.kind.value)
    return frame.drop_duplicates(["item", "annotator"])


def labels_as_shown(scope: Scope) -> QuerySet[Label]:
    """Labels of ``counted_labels`` whose presented order is known, which imported ones do not say, as given on it."""
    labels = counted_labels(scope).filter(campaign__imported=False)
    return labels if scope.staff else labels.filter(exposure.said_before(at="changed_at"))


def labels_on(scope: Scope, items: pd.DataFrame) -> pd.DataFrame:
    """Those of ``items``, in the form in which judges are compared."""
    labels = scope.kind.numbers(scope, labels_of(scope), items)
    return labels[labels["item"].isin(items.index)]


def of_runs(scope: Scope, runs: Sequence[Run]) -> pd.DataFrame:
    """One outcome per item and repeat: ``item``, ``repeat``, ``value``, combined over the presented orders.

    An item with a missing order is not counted. Runs with the same settings are one source: an item counts in the first
    that has an outcome for it.
    """
    refuse_live(scope)
    column, rows = scope.kind.column, hidden.counted_judgments(scope, scope.kind.judgments(runs))
    frame = pd.DataFrame(
        rows.order_by("run", "item", "repeat", "order").values_list("run_id", "item_id", "repeat", column),
        columns=["run", "item", "repeat", "value"],
    )
    frame["value"] = frame["value"].map(scope.kind.value)
    orders = 2 if runs[0].orders == "both" and scope.kind.item_kind != Item.Kind.SCORE else 1
    one_outcome = ["run", "item", "repeat"]
    if orders == 1 and not frame.duplicated(one_outcome).any():  # each is one already
        outcomes = frame.astype({"value": np.float64}) if is_numeric_dtype(frame["value"]) else frame
    else:
        grouped = frame.groupby(one_outcome)["value"]
        outcomes = grouped.agg(scope.kind.combined)[grouped.size() >= orders].reset_index()
    first = outcomes.groupby("item")["run"].transform("min")
    return outcomes[outcomes["run"] == first][["item", "repeat", "value"]].reset_index(drop=True)


def places_in(ranking: list[list[int]]) -> Ranking:
    """The place of each answer, in canonical order, 0 the best; those that share a rank share the mean place."""
    places: dict[int, float] = {}
    at = 0
    for group in ranking:
        places |= dict.fromkeys(group, at + (len(group) - 1) / 2)
        at += len(group)
    return tuple(places[answer] for answer in sorted(places))


def mean_of(values: "pd.Series[Any]") -> Any:
    """The mean score, the ranking by mean place, the mean points of each component, or the most frequent word.

    If several words are equally frequent, the first in alphabetical order.
    """
    if isinstance(values.iloc[0], str | bool):
        return values.mode().iloc[0]
    if isinstance(values.iloc[0], tuple):
        rankings = list(chain.from_iterable(values))
        return (tuple(float(sum(places)) / len(rankings) for places in zip(*rankings, strict=True)),)
    if isinstance(values.iloc[0], dict):
        by_component: dict[str, list[float]] = {}
        for parts in values:
            for key, points in parts.items():
                by_component.setdefault(key, []).append(points)
        return {key: sum(points) / len(points) for key, points in by_component.items()}
    return float(values.mean())


def mean_by_item(frame: pd.DataFrame) -> pd.DataFrame:
    """``item, value``: ``mean_of`` the verdicts on each item, without a Python function for each of a million items
    where they are words or numbers.
    """
    first = frame["value"].iloc[0] if len(frame) else 0.0
    if isinstance(first, tuple | dict):
        return frame.groupby("item")["value"].agg(mean_of).reset_index()
    if not isinstance(first, str | bool):
        return frame.groupby("item")["value"].mean().reset_index()
    counts = frame.groupby(["item", "value"], observed=True).size().reset_index(name="n")
    most_frequent = counts.sort_values(["item", "n", "value"], ascending=[True, False, True]).drop_duplicates("item")
    return most_frequent[["item", "value"]].reset_index(drop=True)


def over_orders(verdict: Any) -> Any:
    """A verdict in the form in which two are the same: rankings in several presented orders by mean place."""
    return mean_of(pd.Series([verdict])) if isinstance(verdict, tuple) else verdict


def as_letters(verdict: tuple[Ranking, ...]) -> str:
    """A ranking as MLLM-as-a-Judge writes it, "CAB": answers by mean place; equal places in canonical order."""
    (places,) = over_orders(verdict)
    return "".join(
        ascii_uppercase[answer] for answer in sorted(range(len(places)), key=lambda index: (places[index], index))
    )
