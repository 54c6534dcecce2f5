"""Verdicts as data frames, one outcome an item, for the statistics."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from django.db.models import Count, Exists, F, Max, OuterRef, Q, QuerySet, Sum

import bank.keys
from annotations.models import Adjudication, CampaignItem, Label
from bank.models import Item, Response, Sample, Submission, SubmissionScore
from bank.models.items import ItemResponse
from judging.models import OVERLAP, Judge, Judgment, Run, RunItem
from leaderboard.scope import ADJUDICATED, INDIVIDUALS, KEYED, PEOPLE, BadScope, Scope
from leaderboard.stats.majority import majority
from leaderboard.stats.orders import combine_orders

FEWEST_CLUSTERS = 30
# Whose verdicts a kind of board counts: a mark against a reference and a score of quality do not mix.
PROTOCOLS = {
    "pair": ("pairwise-criteria", "pair"),
    "score": ("score",),
    "batch": ("batch",),
    "components": ("components",),
    "choice": ("choice-extraction",),
    "yes-no": ("yes-no",),
}
# Formats in which a sample's source is the data set it was taken from: averages are over these.
DATA_SETS = ("mllm-as-a-judge", "alt-test", "generic")
OUTCOMES = ("win", "tie", "loss")
WIN, TIE, LOSS = range(3)
STAFF_ONLY = (
    "The criteria-overlap baseline tells which answer names the hidden criteria: its verdicts are for staff. "
    "The board of judges shows how far it agrees with people."
)


def samples_in(scope: Scope) -> QuerySet[Sample]:
    """The samples that a view counts: approved ones under the filters."""
    found = scope.benchmark.samples.filter(status=Sample.Status.APPROVED, retired_in="")
    if scope.level:
        found = found.filter(Q(capability__path=scope.level) | Q(capability__path__startswith=f"{scope.level} / "))
    if scope.question_type:
        found = found.filter(question_type=scope.question_type)
    return found.filter(split=scope.split) if scope.split else found


def pairs(scope: Scope) -> pd.DataFrame:
    """The pair items of a view: index ``item``; columns ``sample, level, group, dataset, a, b`` (a, b: models).

    ``level`` is the top of the sample's capability, or the step below the level that the view is narrowed to.
    """
    items = Item.objects.filter(kind=Item.Kind.PAIR, sample__in=samples_in(scope).order_by())
    columns = ("pk", "sample_id", "sample__key", "sample__group", "sample__capability__path", "sample__source")
    frame = pd.DataFrame(items.values_list(*columns), columns=["item", "sample", "key", "group", "path", "dataset"])
    frame = frame.set_index("item")
    places = ItemResponse.objects.filter(item__in=items.order_by(), position__lt=2)
    names = pd.DataFrame(
        places.values_list("item_id", "position", "response__model__name", "response__variant"),
        columns=["item", "position", "model", "variant"],
    )
    names["model"] = names["model"].where(names["variant"] == "", names["model"] + " (" + names["variant"] + ")")
    sides = names.pivot(index="item", columns="position", values="model").reindex(columns=[0, 1])
    frame["a"], frame["b"] = sides[0], sides[1]
    depth = len(scope.level.split(" / ")) if scope.level else 0
    steps = frame["path"].fillna("").astype(str).str.split(" / ")
    frame["level"] = steps.map(lambda path: path[depth] if len(path) > depth else "")
    frame["group"] = frame["group"].where(frame["group"] != "", frame["key"]).astype(str)
    frame["dataset"] = dataset_of(scope, frame["dataset"])
    return frame.dropna(subset=["a", "b"])[["sample", "level", "group", "dataset", "a", "b"]].sort_index()


def dataset_of(scope: Scope, source: "pd.Series[str]") -> "pd.Series[str]":
    """The source data set of samples: what they name, in formats whose source is a data set; else the benchmark."""
    if scope.benchmark.source_format not in DATA_SETS:
        return pd.Series(scope.benchmark.slug, index=source.index, dtype=object)
    return source.where(source.fillna("") != "", scope.benchmark.slug).astype(str)


@dataclass(frozen=True, eq=False, slots=True)
class Outcomes:
    """``frame``: one outcome a row: ``item``, ``choice``, ``repeat``, and ``annotator`` where people gave it.

    ``asked``: the items that should have an outcome (index), so that coverage can be told.
    """

    frame: pd.DataFrame
    asked: pd.Index
    repeats: int
    runs: tuple[Run, ...] = ()


def outcomes(scope: Scope) -> Outcomes:
    """The outcomes of the view's source. Raises BadScope."""
    if scope.run is not None:
        run = Run.objects.filter(pk=scope.run, benchmark=scope.benchmark).select_related("judge").first()
        if run is None:
            raise BadScope(f"There is no run {scope.run} on {scope.benchmark}.")
        if run.judge.baseline == OVERLAP and not scope.staff:
            raise BadScope(STAFF_ONLY)
        return of_runs([run])
    if scope.source in PEOPLE:
        return of_people(scope)
    return of_runs(runs_of(scope, scope.source))


def runs_of(scope: Scope, judge: str) -> list[Run]:
    """The judge's runs, which must share protocol and settings. Raises BadScope with the list where they do not."""
    runs = judged_runs(scope).filter(judge__name=judge)
    if not runs:
        known = judges_of(scope)
        if not Judge.objects.filter(name=judge).exists():
            raise BadScope(f"There is no judge {judge!r}. With judgments here: {', '.join(known) or 'none yet'}.")
        raise BadScope(f"{judge!r} has no judgments on {scope.benchmark}. With some: {', '.join(known) or 'none yet'}.")
    if runs[0].judge.baseline == OVERLAP and not scope.staff:
        raise BadScope(STAFF_ONLY)
    if len({(run.protocol, run.settings_hash) for run in runs}) > 1:
        listed = "; ".join(f"run {run.pk}: {run.protocol}, {run.settings}" for run in runs)
        raise BadScope(f"{judge!r} has runs with different settings. Choose one with --run: {listed}.")
    return list(runs)


def judged_runs(scope: Scope) -> QuerySet[Run]:
    """Runs on the benchmark that hold a verdict of the view's kind, oldest first."""
    with_verdict = Judgment.objects.filter(run=OuterRef("pk"), status=Judgment.Status.OK, item__kind=scope.item_kind)
    runs = Run.objects.filter(
        Exists(with_verdict), benchmark=scope.benchmark, kind=Run.Kind.JUDGMENTS, protocol__in=PROTOCOLS[scope.kind]
    )
    return runs.select_related("judge").order_by("pk")


def judges_of(scope: Scope) -> list[str]:
    return list(dict.fromkeys(judged_runs(scope).order_by("judge__name").values_list("judge__name", flat=True)))


def of_runs(runs: Sequence[Run]) -> Outcomes:
    """One outcome an item and repeat from a judge's runs of the same settings; a further run counts as more repeats."""
    rows = Judgment.objects.filter(run__in=[run.pk for run in runs]).order_by("run", "item", "repeat", "order")
    frame = pd.DataFrame(
        rows.values_list("run_id", "item_id", "repeat", "order", "choice"),
        columns=["run", "item", "repeat", "order", "choice"],
    )
    codes, _ = pd.factorize(pd.MultiIndex.from_frame(frame[["run", "repeat"]]), sort=True)
    frame["repeat"] = codes
    combined = combine_orders(judgments=frame, orders=2 if runs[0].orders == "both" else 1).outcomes
    asked = RunItem.objects.filter(run__in=[run.pk for run in runs]).values_list("item_id", flat=True)
    repeats = int(codes.max(initial=-1)) + 1
    return Outcomes(combined[["item", "repeat", "choice"]], pd.Index(asked).unique(), repeats, tuple(runs))


def labels_of(scope: Scope) -> pd.DataFrame:
    """Every label that counts, in the order given: ``item``, ``annotator``, ``choice``."""
    rows = Label.objects.filter(
        campaign__benchmark=scope.benchmark, item__kind=Item.Kind.PAIR, excluded=False, choice__isnull=False
    )
    # Practice ends with the right answer shown: such a label is no vote.
    rows = rows.exclude(assignment__campaign_item__practice=True)
    if scope.campaign:
        rows = rows.filter(campaign__name=scope.campaign)
    columns = ["item", "annotator", "choice"]
    frame = pd.DataFrame(rows.order_by("pk").values_list("item_id", "annotator_id", "choice"), columns=columns)
    # The same person in two campaigns: the first label on the item counts, so that nobody votes twice.
    return frame.drop_duplicates(["item", "annotator"])


def of_people(scope: Scope) -> Outcomes:
    """The majority per item, every label by itself, or the adjudicated verdict where there is one."""
    labels = labels_of(scope)
    places = CampaignItem.objects.filter(campaign__benchmark=scope.benchmark, item__kind=Item.Kind.PAIR)
    if scope.campaign:
        places = places.filter(campaign__name=scope.campaign)
        if not places.exists():
            raise BadScope(f"There is no campaign {scope.campaign!r} over pairs of {scope.benchmark}.")
    asked = pd.Index(places.values_list("item_id", flat=True)).unique()
    if scope.source == INDIVIDUALS:
        return Outcomes(labels.assign(repeat=0), asked, 1)
    frame = majority(labels=labels, rule=scope.rule)[["choice"]].reset_index()
    if scope.source == ADJUDICATED:
        rows = Adjudication.objects.filter(campaign_item__in=places, choice__isnull=False)
        decided = dict(rows.values_list("campaign_item__item_id", "choice"))
        frame["choice"] = frame["item"].map(decided).fillna(frame["choice"])
    return Outcomes(frame.assign(repeat=0), asked, 1)


def clusters(frame: pd.DataFrame) -> Any:
    """What rows are dependent within: the group (image, prompt), or with fewer than 30 of them the item."""
    return frame["group"] if frame["group"].nunique() >= FEWEST_CLUSTERS else frame["item"]


def sided(frame: pd.DataFrame, anchor: str) -> pd.DataFrame:
    """One row a model and outcome, a place in OUTCOMES; with an anchor only the other side of its pairs.

    ``frame`` has ``item, level, group, a, b`` and, unless only the items matter, ``choice``.
    """
    sides = []
    for side, other, won in (("a", "b", "first"), ("b", "a", "second")):
        rows = frame[(frame[other] == anchor) & (frame[side] != anchor)] if anchor else frame
        choice = rows["choice"] if "choice" in rows else pd.Series(index=rows.index, dtype=object)
        lost = "second" if won == "first" else "first"
        outcome = np.select([choice == won, choice == lost], [WIN, LOSS], TIE)
        part = rows.assign(model=rows[side], other=rows[other], outcome=outcome)
        sides.append(part[["model", "other", "outcome", "item", "level", "group"]])
    return pd.concat(sides, ignore_index=True)


def fingerprint(scope: Scope) -> dict[str, Any]:
    """Counts and last changes of everything that a view is computed from: the same as long as the data is."""
    labels = Label.objects.filter(campaign__benchmark=scope.benchmark)
    judged = Judgment.objects.filter(run__benchmark=scope.benchmark).order_by()  # stored once, never changed
    decided = Adjudication.objects.filter(campaign_item__campaign__benchmark=scope.benchmark)
    samples = scope.benchmark.samples.order_by()
    facts = ("status", "retired_in", "question_type", "split")
    return {
        "labels": labels.aggregate(n=Count("pk"), last=Max("changed_at"), top=Max("pk")),
        "excluded": labels.filter(excluded=True).aggregate(n=Count("pk"), sum=Sum("pk")),
        "judgments": list(judged.values_list("run", "status").annotate(n=Count("pk"), top=Max("pk")).order_by("run")),
        "adjudications": list(decided.order_by("pk").values_list("pk", "choice")),
        "asked": CampaignItem.objects.filter(campaign__benchmark=scope.benchmark).aggregate(Count("pk"), Max("pk")),
        "items": Item.objects.filter(sample__benchmark=scope.benchmark).aggregate(Count("pk"), Max("pk")),
        # The sum ties samples to their capabilities: moving one from a level to another changes it.
        "samples": sorted(
            samples.values_list(*facts).annotate(
                n=Count("pk"), keys=Sum("pk"), places=Sum(F("pk") * F("capability_id"))
            ),
            key=str,
        ),
        "run_items": RunItem.objects.filter(run__benchmark=scope.benchmark).aggregate(Count("pk"), Max("pk")),
        "capabilities": list(scope.benchmark.capabilities.order_by("pk").values_list("pk", "path")),
        **(_keyed_facts(scope) if scope.kind in (*KEYED, "components") else {}),
    }


def _keyed_facts(scope: Scope) -> dict[str, Any]:
    """What answers that are held against keys depend on beside verdicts."""
    sent = Submission.objects.filter(benchmark=scope.benchmark).order_by("pk")
    return {
        "responses": Response.objects.filter(sample__benchmark=scope.benchmark).aggregate(Count("pk"), Max("pk")),
        "criteria": bank.keys.edition_of(scope.benchmark),
        "submissions": list(sent.values_list("pk", "state", "released_at")),
        "scores": SubmissionScore.objects.filter(submission__in=sent.order_by()).aggregate(Count("pk"), Max("pk")),
        "hidden": [scope.benchmark.hidden_splits, scope.staff],
    }
