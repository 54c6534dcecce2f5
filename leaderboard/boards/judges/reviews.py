"""What people say of judges' verdicts in review campaigns (MLLM-as-a-Judge, Table 3 and Figure 18), and which of two
judges' analyses they prefer (Figure 21).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from django.db.models import QuerySet

from annotations.models import Label, LabelQuerySet
from bank import guard
from judging.models import Run
from leaderboard import votes
from leaderboard.boards.base import Board, kept_board
from leaderboard.boards.declared import OF_ANALYSES, OF_REVIEWS, Table, kept
from leaderboard.boards.judges.board import ALL, GRADES, over_sets
from leaderboard.boards.judges.over_sets import mean_over_sets
from leaderboard.hidden import counted_reviews
from leaderboard.rows import UNKNOWN, Number, OfJudge, Row, number, of_judge, shown
from leaderboard.scope import HUMANS, Scope
from stats.arrays import dense_codes
from stats.figures import percent, two
from stats.proportions import mean, rate
from stats.results import Estimate
from stats.verdicts import majority

THREE = 3  # reviews that make a consensus
NONE_YET = "People have reviewed no verdicts of this kind yet."
REVIEWED = "assignment__campaign_item__reviewed"
COLUMNS = {
    "verdict": REVIEWED,
    "run": f"{REVIEWED}__run",
    "item": "item",
    "sample": "item__sample",
    "key": "item__sample__key",
    "group": "item__sample__group",
    "dataset": "item__sample__source",
    **{name: name for name in ("agree", "grade", "hallucination")},
}
NONE_COMPARED = "People have compared no two judges' analyses of this kind yet."
AGAINST = "assignment__campaign_item__against"
OF_COMPARED = {
    "first": f"{REVIEWED}__run",
    "second": f"{AGAINST}__run",
    "annotator": "annotator",
    "choice": "choice",
    **{name: COLUMNS[name] for name in ("item", "key", "group")},
}
WORTH = {"first": 1.0, "second": 0.0}  # of a majority to the first; a tie is worth a half


@dataclass(frozen=True, kw_only=True)
class ReviewRow(OfJudge):
    """A judge's verdicts as people reviewed them, within a data set or over ``all`` (their unweighted mean, or
    pooled).

    Verdicts with fewer than three reviews, or more, do not count in ``agree`` and ``hallucination``.
    """

    judge: str
    run: int
    source_dataset: str
    kind: str
    agree: Number = shown(
        "Agreed %", percent, "Share of verdicts that most of exactly three reviews agree with", default=UNKNOWN
    )
    hallucination: Number = shown(
        "Halluc. %",
        percent,
        "Share of analyses in which most of exactly three reviews found something that is not there",
        default=UNKNOWN,
    )
    grade: Number = shown("Grade", two, "Mean grade of analyses, 1 to 5", default=UNKNOWN)
    deviation: Number = shown(
        "Deviation",
        two,
        "Mean absolute deviation of the grades of one sample's verdicts from their mean",
        default=UNKNOWN,
    )
    verdicts: int
    reviews: int
    simulated: bool = False


@kept_board("reviews")
def reviews(scope: Scope) -> Board[ReviewRow]:
    """Every judge whose verdicts of this kind people have reviewed."""
    rows: list[ReviewRow] = []
    used: list[Run] = []
    for runs in votes.judge_groups(scope):
        frame = _reviewed(scope, runs)
        if frame.empty:
            continue
        used += runs
        datasets = sorted(frame["dataset"].unique())
        for name in [*datasets, ALL] if len(datasets) > 1 else [ALL]:
            part = over_sets(scope, frame) if name == ALL else frame[frame["dataset"] == name]
            rows.append(
                ReviewRow(
                    **of_judge(runs[-1]),
                    source_dataset=name,
                    kind=scope.kind.name,
                    **_numbers(part),
                    verdicts=int(part["verdict"].nunique()),
                    reviews=len(part),
                )
            )
    return Board(rows, [] if rows else [NONE_YET], tuple(run.pk for run in used))


@dataclass(frozen=True, kw_only=True)
class ComparedRow(Row):
    """Two judges whose analyses of the same items people compared, ``a`` before ``b`` by name."""

    a: str
    a_run: int
    b: str
    b_run: int
    kind: str
    preferred: Number = shown(
        "Preferred %",
        percent,
        "Share of items on which most people prefer the first judge's analysis; a tie counts half",
    )
    ties: Number = shown("Ties %", percent, "Share of items on which neither is preferred")
    items: int
    labels: int
    a_simulated: bool = False
    b_simulated: bool = False


@kept_board("analyses")
def compared(scope: Scope) -> Board[ComparedRow]:
    """Every two judges whose analyses people have compared; of a view of one judge or run, those with it."""
    groups = votes.judge_groups(replace(scope, source=HUMANS, run=None))
    asked: set[int] = set()
    for runs in votes.judge_groups(scope):
        asked.update(run.pk for run in runs)
    group_of: dict[int, int] = {}
    for at, runs in enumerate(groups):
        group_of |= {run.pk: at for run in runs}
    frame = _compared(scope, list(group_of))
    frame = frame.assign(first=frame["first"].map(group_of), second=frame["second"].map(group_of))
    rows: list[ComparedRow] = []
    used: list[Run] = []
    for one, other in combinations(range(len(groups)), 2):
        of_both = [*groups[one], *groups[other]]
        if asked.isdisjoint(run.pk for run in of_both):
            continue
        ahead = (frame["first"] == one) & (frame["second"] == other)
        behind = (frame["first"] == other) & (frame["second"] == one)
        turned = frame[behind].assign(choice=frame["choice"][behind].replace({"first": "second", "second": "first"}))
        # The same person in two campaigns: the first label on the item counts.
        of_two = pd.concat([frame[ahead], turned]).sort_index().drop_duplicates(["item", "annotator"])
        if of_two.empty:
            continue
        used += of_both
        a, b = groups[one][-1], groups[other][-1]
        rows.append(
            ComparedRow(
                a=a.judge.name,
                a_run=a.pk,
                b=b.judge.name,
                b_run=b.pk,
                kind=scope.kind.name,
                **_preference(of_two),
                items=int(of_two["item"].nunique()),
                labels=len(of_two),
                a_simulated=a.judge.simulated,
                b_simulated=b.judge.simulated,
            )
        )
    notes = [] if rows else [NONE_COMPARED]
    return Board(rows, notes, tuple(dict.fromkeys(run.pk for run in used)))


def _preference(labels: pd.DataFrame) -> dict[str, Number]:
    verdicts = majority(labels=labels, rule="plurality")["choice"]
    cluster = verdicts.index.map(labels.groupby("item")["group"].first()).to_numpy()
    worth = verdicts.map(WORTH).astype(float)
    return {
        "preferred": number(mean(values=worth.fillna(0.5).to_numpy(), cluster=cluster, ends=(0.0, 1.0))),
        "ties": number(rate(hits=worth.isna().to_numpy(), cluster=cluster)),
    }


@guard.working()
def _compared(scope: Scope, runs: Sequence[int]) -> pd.DataFrame:
    """One row a label: the columns of ``OF_COMPARED``, oldest first."""
    labels = _counted(scope, Label.objects.filter(**{f"{REVIEWED}__run__in": runs, f"{AGAINST}__run__in": runs}))
    # Whatever withholds one of the two verdicts withholds what people say of both.
    counted = counted_reviews(scope, labels, held=f"{AGAINST}__run__held")
    frame = pd.DataFrame(counted.order_by("pk").values_list(*OF_COMPARED.values()), columns=list(OF_COMPARED))
    return frame.assign(group=votes.group_of(frame))


def said_of(scope: Scope, runs: Sequence[Run], name: str) -> pd.DataFrame:
    """By item (index), the share of the runs' verdicts on it of which most of exactly three reviews say ``name``, agree
    or hallucination; columns ``said, group``.
    """
    by_item = _consensus(_reviewed(scope, runs), name).groupby("item")
    return by_item.agg(said=("said", "mean"), group=("group", "first"))


def _consensus(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """Each verdict with exactly three reviews on this: whether most of them say so, 1 or 0."""
    answered = frame[frame[name].notna()].astype({name: float})
    firsts = {about: (about, "first") for about in ("item", "group", "dataset")}
    of_verdict = answered.groupby("verdict").agg(said=(name, "mean"), n=(name, "size"), **firsts)
    of_verdict = of_verdict[of_verdict["n"] == THREE]
    return of_verdict.assign(said=(of_verdict["said"] > 0.5).astype(float))


@guard.working()
def _reviewed(scope: Scope, runs: Sequence[Run]) -> pd.DataFrame:
    """One row a review: the columns of ``COLUMNS``."""
    labels = Label.objects.filter(**{f"{REVIEWED}__run__in": [run.pk for run in runs], f"{AGAINST}__isnull": True})
    counted = _counted(scope, labels)
    frame = pd.DataFrame(counted.order_by("pk").values_list(*COLUMNS.values()), columns=list(COLUMNS))
    return frame.assign(group=votes.group_of(frame), dataset=votes.dataset_of(scope, frame["dataset"]))


def _counted(scope: Scope, labels: LabelQuerySet) -> QuerySet[Label]:
    """Those of these labels about judgments that the view counts."""
    of_samples = votes.samples_in(scope).order_by()
    labels = labels.compared().filter(item__kind=scope.kind.item_kind, item__sample__in=of_samples)
    if scope.campaign:
        labels = labels.filter(campaign__name=scope.campaign)
    return counted_reviews(scope, labels, held=f"{REVIEWED}__run__held")


def _numbers(frame: pd.DataFrame) -> dict[str, Any]:
    consensus = {name: number(_share(frame, name)) for name in ("agree", "hallucination")}
    graded = frame[frame["grade"].notna()].astype({"grade": float})
    if graded.empty:
        return consensus
    about = dict.fromkeys(("sample", "group", "dataset"), "first")
    of_verdict = graded.groupby("verdict").agg({"grade": "mean"} | about)
    grades = _mean(of_verdict, "grade", GRADES)
    several = of_verdict[of_verdict.groupby("sample")["grade"].transform("size") > 1]
    several = several.assign(away=(several["grade"] - several.groupby("sample")["grade"].transform("mean")).abs())
    of_sample = several.groupby("sample").agg({"away": "mean", "group": "first", "dataset": "first"})
    deviation = _mean(of_sample, "away", (0.0, (GRADES[1] - GRADES[0]) / 2)) if len(of_sample) else UNKNOWN
    return consensus | {"grade": grades, "deviation": deviation}


def _share(frame: pd.DataFrame, name: str) -> Any:
    counted = _consensus(frame, name)
    if counted.empty:
        return None

    def share(rows: pd.DataFrame) -> Estimate:
        cluster = rows["group"].to_numpy()
        return rate(hits=rows["said"].to_numpy(dtype=bool), cluster=cluster, stratum=_strata(rows))

    return mean_over_sets(counted, share)


def _mean(frame: pd.DataFrame, name: str, ends: tuple[float, float]) -> Number:
    def average(rows: pd.DataFrame) -> Estimate:
        values, cluster = rows[name].to_numpy(np.float64), rows["group"].to_numpy()
        return mean(values=values, cluster=cluster, stratum=_strata(rows), ends=ends)

    return number(mean_over_sets(frame, average))


def _strata(frame: pd.DataFrame) -> Any:
    codes, datasets = dense_codes(frame["dataset"].to_numpy())
    return codes if datasets > 1 else None


TABLES = {
    "reviews": Table(
        make=kept(
            reviews,
            "What people say of each judge's verdicts in reviews: agreement and hallucination by the consensus of "
            "three, the mean grade, and the mean absolute deviation of grades within a sample; by data set.",
        ),
        board="judges",
        rows_are={ReviewRow: {}},
        view=OF_REVIEWS,
    ),
    "analyses": Table(
        make=kept(
            compared,
            "Of every two judges whose analyses of the same items people compared: the share of items on which they "
            "prefer the first one's, a tie counting half, and the share of ties (MLLM-as-a-Judge, Figure 21).",
        ),
        board="judges",
        rows_are={ComparedRow: {}},
        view=OF_ANALYSES,
    ),
}
