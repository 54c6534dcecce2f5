"""Juries: several judges as one.

A jury's verdicts are computed from its members' runs and stored as a run of its own, so that it can be chosen wherever
a judge can. Votes, options and yes-or-no answers follow the most frequent verdict of the members, scores their mean,
rankings the mean position. If a member has no verdict on an item, neither has the jury; the judgment gives the reason,
and coverage counts it.
"""

import re
from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_
from statistics import multimode
from typing import Any

import pandas as pd
from django.db import transaction
from django.db.models import RestrictedError
from django.utils import timezone

from accounts.models import User
from bank import guard
from bank.database import chunks
from bank.errors import BadInput
from bank.text.names import as_stored
from judging import protocols
from judging.models import JURY, OVERLAP, Judge, Judgment, Run, RunItem, reason_key
from judging.runs import compare
from stats.verdicts import combine_orders, majority

FEWEST_MEMBERS = 2
DIVIDED = "the members are divided"
COMPARED = ("order", "status", "reason", *compare.COLUMNS)


def members_of(run: Run) -> list[int]:
    """The runs that a jury's run is computed from; empty for other runs."""
    return [int(pk) for pk in run.settings.get(JURY, [])]


@guard.working()
def is_stale(run: Run) -> bool:
    """Whether a member's run got more verdicts since the jury's were computed."""
    made = run.finished_at or run.created_at
    return Judgment.objects.filter(run__in=members_of(run), created_at__gt=made).exists()


@transaction.atomic
def make_jury(*, name: str, runs: Sequence[Run], by: User | None = None) -> Run:
    """Compute the verdicts of a jury and store them as its run. Raises BadInput.

    The runs must be of different judges, on one benchmark, with one protocol. The same name with the same runs
    recomputes the verdicts. It is refused if a verdict would change that people are reviewing.
    """
    name = as_stored(name)
    members = sorted(set(runs), key=lambda run: run.pk)
    _check(name, members)
    settings = {"order": "fixed", "repeats": 1, JURY: [run.pk for run in members]}
    simulated = any(member.judge.simulated for member in members)
    judge, _ = Judge.objects.get_or_create(name=name, defaults={"simulated": simulated})
    run, _ = Run.objects.select_for_update().get_or_create(
        judge=judge,
        benchmark=members[0].benchmark,
        protocol=members[0].protocol,
        settings_hash=protocols.settings_hash(settings),
        imported=True,  # computed from stored rows: no worker may take it
        defaults={"settings": settings, "state": Run.State.FINISHED, "by": by},
    )
    run.held = reduce(or_, (member.held for member in members))
    frames = [_judgments(member) for member in members]
    verdicts = _verdicts(members, frames)
    canonical_orders = _canonical_orders(frames)
    member_items = RunItem.objects.filter(run__in=members).order_by().values_list("item_id", flat=True)
    items = sorted({*member_items, *canonical_orders})
    RunItem.objects.filter(run=run).delete()
    RunItem.objects.bulk_create([RunItem(run=run, item_id=item) for item in items], batch_size=1_000)
    judgments = []
    for item in items:
        columns = verdicts.get(item, {"reason": _missing_verdicts(0, len(members))})
        if "reason" in columns:
            columns |= {"status": Judgment.Status.ERROR, "reason_hash": reason_key(columns["reason"])}
        judgments.append(Judgment(run=run, item_id=item, order=canonical_orders.get(item, "01"), **columns))
    _replace(run, judgments)
    run.verdicts = sum(judgment.status == Judgment.Status.OK for judgment in judgments)
    run.failures, run.planned, run.undecided = len(judgments) - run.verdicts, len(judgments), 0
    run.finished_at = timezone.now()
    run.save(update_fields=["verdicts", "failures", "planned", "undecided", "finished_at", "held"])
    return run


def _replace(run: Run, judgments: Sequence[Judgment]) -> None:
    """Store the judgments that changed; the others stay, together with people's reviews of them.

    Raises BadInput if one that people review would go.
    """
    new = {judgment.item_id: judgment for judgment in judgments}
    unchanged, outdated = set(), []
    for row in Judgment.objects.filter(run=run).only("item_id", *COMPARED):
        judgment = new.get(row.item_id)
        if judgment and all(getattr(judgment, name) == getattr(row, name) for name in COMPARED):
            unchanged.add(row.item_id)
        else:
            outdated.append(row.pk)
    try:
        for keys in chunks(outdated):
            Judgment.objects.filter(pk__in=keys).delete()
    except RestrictedError:
        raise BadInput(
            f"{len(outdated):,} verdicts of {run.judge} would be different now, and people review some of them in a "
            "campaign, so nothing was changed. Make a jury with another name from the same runs.",
            "name",
        ) from None
    Judgment.objects.bulk_create([row for row in judgments if row.item_id not in unchanged], batch_size=1_000)


def _canonical_orders(frames: Sequence[pd.DataFrame]) -> dict[int, str]:
    """By item: the members' verdicts are in canonical order, and so is the jury's."""
    return {
        int(item): "".join(sorted(order))
        for frame in frames
        for item, order in zip(frame["item"], frame["order"], strict=True)
    }


def _check(name: str, members: Sequence[Run]) -> None:
    if not re.fullmatch(r"\S(?:.{0,198}\S)?", name) or name.startswith("baseline-"):
        raise BadInput("A jury needs a name that does not begin with baseline-.", "name")
    _check_members(members)
    existing = Judge.objects.filter(name=name).first()
    if existing is None:
        return
    runs = existing.runs.all()
    if existing.can_run or any(not members_of(run) for run in runs):
        raise BadInput(f"{name} is a judge. Choose another name.", "name")
    if any(_has_others(run, members) for run in runs):
        raise BadInput(f"{name} has other members. Choose another name.", "name")


def _has_others(run: Run, members: Sequence[Run]) -> bool:
    """Whether a jury's run is about the same, with other members."""
    return (
        members_of(run) != [member.pk for member in members]
        and run.benchmark_id == members[0].benchmark_id
        and run.protocol == members[0].protocol
    )


def _is_of_judge(run: Run) -> bool:
    return run.kind == Run.Kind.JUDGMENTS and not members_of(run)


def _check_members(members: Sequence[Run]) -> None:
    if len(members) < FEWEST_MEMBERS:
        raise BadInput("A jury needs at least two members.", "runs")
    if len({run.judge_id for run in members}) < len(members):
        raise BadInput("A judge is a member twice: choose one run of each judge.", "runs")
    if len({(run.benchmark_id, run.protocol) for run in members}) > 1:
        raise BadInput("The runs must use one benchmark and one protocol.", "runs")
    if not all(map(_is_of_judge, members)):
        raise BadInput("Members must be runs of judges, not of juries.", "runs")
    if any(run.judge.baseline == OVERLAP for run in members):
        raise BadInput("The overlap baseline uses the hidden criteria, so its verdicts stay with staff.", "runs")


def _missing_verdicts(voted: int, members: int) -> str:
    return f"{members - voted} of {members} members have no verdict"


def _verdicts(members: Sequence[Run], frames: Sequence[pd.DataFrame]) -> dict[int, dict[str, Any]]:
    """The jury's verdict on each item that a member decided, or the reason why there is none."""
    column = compare.common_column(frames)
    if column is None:
        raise BadInput("The runs have no kind of verdict in common.", "runs")
    votes = pd.concat(
        [
            _verdict_by_item(run, frame, column).rename("verdict").to_frame().assign(member=run.pk).reset_index()
            for run, frame in zip(members, frames, strict=True)
        ]
    )
    voters = votes.groupby("item")["member"].nunique()
    complete = votes[votes["item"].map(voters) == len(members)]
    verdicts: dict[int, dict[str, Any]] = {
        int(item): {"reason": _missing_verdicts(int(n), len(members))} for item, n in voters.items() if n < len(members)
    }
    if column == "choice":
        choices = majority(labels=complete.rename(columns={"verdict": "choice"}), rule="plurality")["choice"]
        return verdicts | {int(item): {"choice": choice} for item, choice in choices.items()}
    combine = COMBINE.get(column, _most_frequent)
    for item, item_votes in complete.groupby("item")["verdict"]:
        verdict = combine(list(item_votes))
        verdicts[int(item)] = {"reason": DIVIDED} if verdict is None else {column: verdict}
    return verdicts


def _judgments(run: Run) -> pd.DataFrame:
    names = ["item_id", "repeat", "order", *compare.COLUMNS]
    rows = Judgment.objects.filter(run=run).order_by("item", "repeat", "order").values_list(*names)
    return pd.DataFrame(rows, columns=names).rename(columns={"item_id": "item"})


def _verdict_by_item(run: Run, frame: pd.DataFrame, column: str) -> pd.Series:
    """A member's verdict on each item: combined over orders as on the boards, then over repeats as over members."""
    orders = 2 if run.orders == "both" and column in ("choice", "ranking") else 1
    if column == "choice":
        outcomes = combine_orders(judgments=frame[["item", "repeat", "order", "choice"]], orders=orders).outcomes
        return majority(labels=outcomes, rule="plurality")["choice"]
    decided = frame[frame[column].notna()]
    decided = decided[decided.groupby(["item", "repeat"])[column].transform("size") >= orders]
    combine = COMBINE.get(column, _most_frequent)
    verdicts = {int(item): combine(list(values)) for item, values in decided.groupby("item")[column]}
    return pd.Series({item: value for item, value in verdicts.items() if value is not None}, dtype=object).rename_axis(
        "item"
    )


def _mean(scores: Sequence[float]) -> float:
    return float(sum(scores) / len(scores))


def _most_frequent(values: Sequence[Any]) -> Any:
    """The most frequent value; None if there are several."""
    value, *others = multimode(values)
    return None if others else value


COMBINE: dict[str, Callable[[Any], Any]] = {"score": _mean, "ranking": compare.mean_ranking}
