"""Juries: several judges as one.

A jury's verdicts are computed from its members' runs and stored as a run of its own, so that it stands wherever a
judge may be chosen. Votes, options and yes or no go by the most frequent verdict of the members, scores by their
mean, rankings by the mean position. An item on which a member has no verdict has none of the jury, with the reason,
and coverage tells.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
from django.db import transaction
from django.db.models import RestrictedError
from django.utils import timezone

from accounts.models import User
from bank.database import chunks
from bank.errors import BadInput
from judging import protocols
from judging.models import JURY, OVERLAP, Judge, Judgment, Run, RunItem, reason_key
from judging.runs import compare
from stats.verdicts import combine_orders, majority

FEWEST = 2
DIVIDED = "the members are divided"
SETTING = JURY
TOLD = ("order", "status", "reason", *compare.COLUMNS)


def members_of(run: Run) -> list[int]:
    """The runs that a jury's run is computed from; empty for any other run."""
    return [int(pk) for pk in run.settings.get(SETTING, [])]


def is_stale(run: Run) -> bool:
    """Whether a member's run got verdicts after the jury's were computed."""
    made = run.finished_at or run.created_at
    return Judgment.objects.filter(run__in=members_of(run), created_at__gt=made).exists()


@transaction.atomic
def make_jury(*, name: str, runs: Sequence[Run], by: User | None = None) -> Run:
    """Compute the verdicts of a jury and store them as its run. Raises BadInput.

    The runs are of different judges, over one benchmark, by one protocol. The same name over the same runs computes
    the verdicts anew; where people review one that would change, it is refused.
    """
    name = name.strip()
    members = sorted(set(runs), key=lambda run: run.pk)
    _check(name, members)
    settings = {"order": "fixed", "repeats": 1, SETTING: [run.pk for run in members]}
    judge, _ = Judge.objects.get_or_create(name=name)
    run, _ = Run.objects.select_for_update().get_or_create(
        judge=judge,
        benchmark=members[0].benchmark,
        protocol=members[0].protocol,
        settings_hash=protocols.settings_hash(settings),
        imported=True,  # made from what is stored: no worker ever takes it
        defaults={"settings": settings, "state": Run.State.FINISHED, "by": by},
    )
    sides = [_judged(one) for one in members]
    verdicts = _verdicts(members, sides)
    # The members' verdicts are in canonical order; so is the jury's.
    straight = {
        int(item): "".join(sorted(order))
        for side in sides
        for item, order in zip(side["item"], side["order"], strict=True)
    }
    asked = RunItem.objects.filter(run__in=members).order_by().values_list("item_id", flat=True)
    items = sorted({*asked, *straight})
    RunItem.objects.filter(run=run).delete()
    RunItem.objects.bulk_create([RunItem(run=run, item_id=item) for item in items], batch_size=1_000)
    missing = {"status": Judgment.Status.ERROR}
    made = []
    for item in items:
        row = verdicts.get(item, {"reason": _lacking(0, len(members))})
        columns = row | missing | {"reason_hash": reason_key(row["reason"])} if "reason" in row else row
        made.append(Judgment(run=run, item_id=item, order=straight.get(item, "01"), **columns))
    _replace(run, made)
    run.verdicts = sum(one.status == Judgment.Status.OK for one in made)
    run.failures, run.planned, run.undecided = len(made) - run.verdicts, len(made), 0
    run.finished_at = timezone.now()
    run.save(update_fields=["verdicts", "failures", "planned", "undecided", "finished_at"])
    return run


def _replace(run: Run, made: Sequence[Judgment]) -> None:
    """Store the verdicts that differ from those there are; the others stay, and with them what people said of them.

    Raises BadInput where one that people review would go.
    """
    new = {one.item_id: one for one in made}
    same, gone = set(), []
    for row in Judgment.objects.filter(run=run).only("item_id", *TOLD):
        one = new.get(row.item_id)
        if one and all(getattr(one, name) == getattr(row, name) for name in TOLD):
            same.add(row.item_id)
        else:
            gone.append(row.pk)
    try:
        for some in chunks(gone):
            Judgment.objects.filter(pk__in=some).delete()
    except RestrictedError:
        raise BadInput(
            f"{len(gone):,} verdicts of {run.judge} would come out otherwise now, and people review such verdicts in a "
            "campaign: they stay as they are. Make a jury of another name of the same runs.",
            "name",
        ) from None
    Judgment.objects.bulk_create([one for one in made if one.item_id not in same], batch_size=1_000)


def _check(name: str, members: Sequence[Run]) -> None:
    if not re.fullmatch(r"\S(?:.{0,198}\S)?", name) or name.startswith("baseline-"):
        raise BadInput("A jury has a name, and one that does not begin with baseline-.", "name")
    if len(members) < FEWEST:
        raise BadInput("A jury has two members or more.", "runs")
    if len({run.judge_id for run in members}) < len(members):
        raise BadInput("A judge is in it twice: choose one run of each judge.", "runs")
    if len({(run.benchmark_id, run.protocol) for run in members}) > 1:
        raise BadInput("The runs are over one benchmark and by one protocol.", "runs")
    if any(run.kind != Run.Kind.JUDGMENTS or members_of(run) for run in members):
        raise BadInput("The members are runs of judges, not of juries.", "runs")
    if any(run.judge.baseline == OVERLAP for run in members):
        raise BadInput("The overlap baseline goes by the hidden criteria: its verdicts stay with staff.", "runs")
    existing = Judge.objects.filter(name=name).first()
    if existing is None:
        return
    known = existing.runs.all()
    if existing.can_run or any(not members_of(run) for run in known):
        raise BadInput(f"{name} is a judge. Choose another name.", "name")
    if any(
        members_of(run) != [one.pk for one in members]
        and run.benchmark_id == members[0].benchmark_id
        and run.protocol == members[0].protocol
        for run in known
    ):
        raise BadInput(f"{name} has other members. Choose another name.", "name")


def _lacking(voted: int, members: int) -> str:
    return f"{members - voted} of {members} members have no verdict"


def _verdicts(members: Sequence[Run], sides: Sequence[pd.DataFrame]) -> dict[int, dict[str, Any]]:
    """The jury's verdict on each item that a member decided, or the reason why there is none."""
    column = next((name for name in compare.COLUMNS if all(side[name].notna().any() for side in sides)), None)
    if column is None:
        raise BadInput("The runs share no kind of verdict.", "runs")
    votes = pd.concat(
        [
            _one_each(run, side, column).rename("said").to_frame().assign(member=run.pk).reset_index()
            for run, side in zip(members, sides, strict=True)
        ]
    )
    voted = votes.groupby("item")["member"].nunique()
    whole = votes[votes["item"].map(voted) == len(members)]
    found: dict[int, dict[str, Any]] = {
        int(item): {"reason": _lacking(int(n), len(members))} for item, n in voted.items() if n < len(members)
    }
    if column == "choice":
        said = majority(labels=whole.rename(columns={"said": "choice"}), rule="plurality")["choice"]
        return found | {int(item): {"choice": choice} for item, choice in said.items()}
    combine = COMBINE.get(column, _most)
    for item, said_of in whole.groupby("item")["said"]:
        said_by_all = combine(list(said_of))
        found[int(item)] = {"reason": DIVIDED} if said_by_all is None else {column: said_by_all}
    return found


def _judged(run: Run) -> pd.DataFrame:
    names = ["item_id", "repeat", "order", *compare.COLUMNS]
    rows = Judgment.objects.filter(run=run).order_by("item", "repeat", "order").values_list(*names)
    return pd.DataFrame(rows, columns=names).rename(columns={"item_id": "item"})


def _one_each(run: Run, frame: pd.DataFrame, column: str) -> pd.Series:
    """A member's verdict by item: over the orders as on the boards, then over the repeats as over members."""
    orders = 2 if run.orders == "both" and column in ("choice", "ranking") else 1
    if column == "choice":
        outcomes = combine_orders(judgments=frame[["item", "repeat", "order", "choice"]], orders=orders).outcomes
        return majority(labels=outcomes, rule="plurality")["choice"]
    given = frame[frame[column].notna()]
    given = given[given.groupby(["item", "repeat"])[column].transform("size") >= orders]
    combine = COMBINE.get(column, _most)
    said = {int(item): combine(list(values)) for item, values in given.groupby("item")[column]}
    kept = {item: value for item, value in said.items() if value is not None}
    return pd.Series(kept, dtype=object).rename_axis("item")


def _mean(scores: Sequence[float]) -> float:
    return float(sum(scores) / len(scores))


def _most(values: Sequence[Any]) -> Any:
    """The most frequent value; None where several are."""
    (value, most), *others = Counter(values).most_common(2)
    return None if others and others[0][1] == most else value


COMBINE: dict[str, Callable[[Any], Any]] = {"score": _mean, "ranking": compare.mean_ranking}
