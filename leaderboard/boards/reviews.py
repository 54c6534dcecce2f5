"""What people say of judges' verdicts in review campaigns (MLLM-as-a-Judge, Table 3 and Figure 18)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from annotations.models import Label
from bank import guard
from judging.models import Run
from leaderboard import votes
from leaderboard.boards.base import Board
from leaderboard.boards.judge_board import ALL, GRADES, over_sets
from leaderboard.hidden import counted_reviews, refuse_live
from leaderboard.rows import UNKNOWN, Number, OfJudge, number
from leaderboard.scope import Scope
from stats.arrays import dense_codes
from stats.proportions import mean, rate

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


@dataclass(frozen=True, kw_only=True)
class ReviewRow(OfJudge):
    """A judge's verdicts as people reviewed them, within a data set or over ``all`` (their unweighted mean, or
    pooled).

    ``agree`` and ``hallucination``: the share of verdicts of which most of exactly three reviews say so; verdicts with
    fewer, or more, do not count. ``grade``: the mean of verdicts' mean grades. ``deviation``: the mean absolute
    deviation of the grades of the verdicts on one sample from their mean, over samples with several.
    """

    judge: str
    run: int
    source_dataset: str
    kind: str
    agree: Number = UNKNOWN
    hallucination: Number = UNKNOWN
    grade: Number = UNKNOWN
    deviation: Number = UNKNOWN
    verdicts: int
    reviews: int
    simulated: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class ReviewsBoard(Board):
    rows: Sequence[ReviewRow] = field(default=(), kw_only=False)


def reviews(scope: Scope) -> ReviewsBoard:
    """Every judge whose verdicts of this kind people have reviewed."""
    refuse_live(scope)
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
                    judge=runs[-1].judge.name,
                    simulated=runs[-1].judge.simulated,
                    run=runs[-1].pk,
                    source_dataset=name,
                    kind=scope.kind.name,
                    **_numbers(part),
                    verdicts=int(part["verdict"].nunique()),
                    reviews=len(part),
                )
            )
    return ReviewsBoard(rows, [] if rows else [NONE_YET], tuple(run.pk for run in used))


def said_of(scope: Scope, runs: Sequence[Run], name: str) -> pd.DataFrame:
    """By item (index), the share of the runs' verdicts on it of which most of exactly three reviews say ``name``, agree
    or hallucination; columns ``said, group``.
    """
    frame = _reviewed(scope, runs)
    answered = frame[frame[name].notna()].astype({name: float})
    of_verdict = answered.groupby("verdict").agg(
        yes=(name, "sum"), n=(name, "size"), item=("item", "first"), group=("group", "first")
    )
    counted = of_verdict[of_verdict["n"] == THREE]
    counted = counted.assign(said=(counted["yes"] > THREE / 2).astype(float))
    return counted.groupby("item").agg(said=("said", "mean"), group=("group", "first"))


@guard.working()
def _reviewed(scope: Scope, runs: Sequence[Run]) -> pd.DataFrame:
    """One row a review: the columns of ``COLUMNS``."""
    labels = Label.objects.filter(**{f"{REVIEWED}__run__in": [run.pk for run in runs]}, excluded=False)
    labels = labels.filter(item__kind=scope.kind.item_kind, item__sample__in=votes.samples_in(scope).order_by())
    # Practice ends with the right answer shown: such a review is nobody's opinion.
    labels = labels.exclude(assignment__campaign_item__practice=True)
    if scope.campaign:
        labels = labels.filter(campaign__name=scope.campaign)
    counted = counted_reviews(scope, labels, held=f"{REVIEWED}__run__held")
    frame = pd.DataFrame(counted.order_by("pk").values_list(*COLUMNS.values()), columns=list(COLUMNS))
    frame["group"] = frame["group"].where(frame["group"] != "", frame["key"])
    return frame.assign(dataset=votes.dataset_of(scope, frame["dataset"]))


def _numbers(frame: pd.DataFrame) -> dict[str, Number]:
    consensus = {name: number(_consensus(frame, name)) for name in ("agree", "hallucination")}
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


def _consensus(frame: pd.DataFrame, name: str) -> Any:
    answered = frame[frame[name].notna()].astype({name: float})
    of_verdict = answered.groupby("verdict").agg(
        yes=(name, "sum"), n=(name, "size"), group=("group", "first"), dataset=("dataset", "first")
    )
    counted = of_verdict[of_verdict["n"] == THREE]
    if counted.empty:
        return None
    return rate(
        hits=(counted["yes"] > THREE / 2).to_numpy(), cluster=counted["group"].to_numpy(), stratum=_strata(counted)
    )


def _mean(frame: pd.DataFrame, name: str, ends: tuple[float, float]) -> Number:
    values, cluster = frame[name].to_numpy(np.float64), frame["group"].to_numpy()
    return number(mean(values=values, cluster=cluster, stratum=_strata(frame), ends=ends))


def _strata(frame: pd.DataFrame) -> Any:
    codes, datasets = dense_codes(frame["dataset"].to_numpy())
    return codes if datasets > 1 else None
