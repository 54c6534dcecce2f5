"""How far attacks moved a judge: how well the target does as it is, under each attack, and the difference.

How well it does, its worth, is the share of wins for pairs (ties and undecided count as no win), the share of the other
answers ranked below it (a shared rank counts half), or the score. Orders are combined as on the boards and repeats
averaged. An item counts if it has a verdict both with and without the attack.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from rest_framework import serializers

from accounts.rules import allowed
from bank import exposure, guard
from bank.models import Item
from judging import protocols
from judging.extras.attacks import Attack, get
from judging.judgments import analyses
from judging.models import Run, Trial
from stats import paired
from stats.proportions import mean, proportion
from stats.ranks import benjamini_hochberg
from stats.results import Estimate
from stats.verdicts import combine_orders

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from accounts.rules import Viewer

LEAST_SAMPLES = 10
SEED = 20_261_122  # of the sign flips, so that the same page shows the same numbers
COLUMNS = ("item_id", "order", "repeat", "attack", "target", "status", "choice", "score", "ranking")


@dataclass(frozen=True, slots=True)
class AttackEffect:
    """The effect of one attack. ``unread`` is the share of its calls so far without a verdict."""

    attack: Attack
    plain: Estimate
    attacked: Estimate
    change: Estimate
    p: float | None
    clear: bool  # significant with all attacks taken together (Benjamini-Hochberg, 5%)
    unread: Estimate
    samples: int  # that each of its numbers is about, at least
    worth: str  # what is measured, as text


@dataclass(frozen=True, slots=True)
class Report:
    """All attacks of a run, largest gain first. ``share`` says whether the worth is a share or a score."""

    rows: tuple[AttackEffect, ...]
    share: bool
    worth: str  # as text

    @property
    def write(self) -> str:
        """How its worth is written, see ``stats.figures``."""
        return "whole_percent" if self.share else "two"

    @property
    def signed(self) -> str:
        """How changes of it are written."""
        return "signed_points" if self.share else "signed"

    @property
    def widest(self) -> float:
        """Half the width that a drawing of the changes needs."""
        ends = [end for row in self.rows for end in (row.change.low, row.change.value, row.change.high)]
        return 1.0 if self.share else max([1.0, *(abs(end or 0) for end in ends)])


class NumberField(serializers.FloatField):
    """A number that may be missing."""

    def __init__(self, source: str) -> None:
        super().__init__(source=source, allow_null=True)


class MovedSerializer(serializers.Serializer[Any]):
    """The effect of one attack on the worth of the attacked answers: share of wins, of others below, or the score.

    ``change`` is ``attacked`` minus ``plain`` on the same ``n`` items; what cannot be computed is null. ``clear``: the
    change is significant with all attacks taken together; ``unread`` is the share of its calls without a verdict.
    """

    attack = serializers.CharField(source="attack.name")
    version = serializers.IntegerField(source="attack.version")
    title = serializers.CharField(source="attack.title")
    null_answer = serializers.BooleanField(
        source="attack.null", help_text="the attacked answer contains nothing at all"
    )
    worth = serializers.CharField()
    n = serializers.IntegerField(source="change.n")
    plain = NumberField("plain.value")
    plain_low = NumberField("plain.low")
    plain_high = NumberField("plain.high")
    attacked = NumberField("attacked.value")
    attacked_low = NumberField("attacked.low")
    attacked_high = NumberField("attacked.high")
    change = NumberField("change.value")
    change_low = NumberField("change.low")
    change_high = NumberField("change.high")
    method = serializers.CharField(source="change.method")
    p = serializers.FloatField(allow_null=True)
    clear = serializers.BooleanField()
    unread = NumberField("unread.value")
    unread_low = NumberField("unread.low")
    unread_high = NumberField("unread.high")
    unread_n = serializers.IntegerField(source="unread.n")


def report_for(run: Run, viewer: "Viewer") -> Report | None:
    """The report as this viewer may see it; None if not at all.

    Below staff: nothing of a judge that held closed keys or weights, because the mark of a known answer tells them, of
    other judges what is made of trials that the viewer may see one by one, so that no two reports tell more, and no
    number about fewer than LEAST_SAMPLES samples.
    """
    if allowed(viewer, "read-hidden", of=run.benchmark):
        return report(run)
    if run.held & exposure.KEYED or analyses.withheld(run, viewer):
        return None
    whole = report(run, Trial.objects.seen_by(viewer))
    return replace(whole, rows=tuple(row for row in whole.rows if row.samples >= LEAST_SAMPLES))


@guard.working()
def report(run: Run, trials: "QuerySet[Trial] | None" = None) -> Report:
    """The result of a run's trials so far, of those among these ``trials`` if they are given."""
    trials = Trial.objects.all() if trials is None else trials
    frame = pd.DataFrame(trials.filter(run=run).order_by("pk").values_list(*COLUMNS), columns=list(COLUMNS))
    kind = protocols.get(run.protocol).kind
    if frame.empty:
        worths = pd.DataFrame(columns=["item", "attack", "worth"])
    else:
        worths = _worths(run, frame.rename(columns={"item_id": "item"}))
    samples = dict(Item.objects.filter(pk__in=set(frame["item_id"])).values_list("pk", "sample_id"))
    table = worths.pivot(index="item", columns="attack", values="worth")
    ends = run.benchmark.score_ends if kind == Item.Kind.SCORE else (0.0, 1.0)
    worth_names: dict[str, str] = {Item.Kind.PAIR: "wins", Item.Kind.BATCH: "others below"}
    worth = worth_names.get(kind, "score")
    rows = [_effect(get(key), table, frame, samples, ends=ends, worth=worth) for key in run.attacks]
    tested = {n: row.p for n, row in enumerate(rows) if row.p is not None}
    for n, significant in zip(tested, benjamini_hochberg(p=list(tested.values())), strict=True):
        rows[n] = replace(rows[n], clear=bool(significant))
    rows.sort(key=lambda row: -(row.change.value if row.change.value is not None else -np.inf))
    return Report(tuple(rows), kind != Item.Kind.SCORE, worth)


def _effect(
    attack: Attack,
    table: pd.DataFrame,
    frame: pd.DataFrame,
    samples: dict[int, int],
    *,
    ends: tuple[float, float],
    worth: str,
) -> AttackEffect:
    trials = frame[frame["attack"] == attack.key]
    unread = proportion(successes=int((trials["status"] != "ok").sum()), n=len(trials))
    paired_worths = table.reindex(columns=["", attack.key]).dropna().astype(float)
    before, after = paired_worths[""].to_numpy(), paired_worths[attack.key].to_numpy()
    cluster = np.array([samples[int(item)] for item in paired_worths.index])
    p = None
    if len(paired_worths):
        rng = np.random.default_rng(SEED)
        p = paired.difference(first=after, second=before, cluster=cluster, rng=rng, flips=2_000).p
    return AttackEffect(
        attack,
        mean(values=before, cluster=cluster, ends=ends),
        mean(values=after, cluster=cluster, ends=ends),
        paired.change(before=before, after=after, cluster=cluster, ends=ends),
        p,
        False,
        unread,
        min(len(set(cluster)), len({samples[int(item)] for item in trials["item_id"]})),
        worth,
    )


def _worths(run: Run, frame: pd.DataFrame) -> pd.DataFrame:
    """Columns ``item``, ``attack``, ``worth``: a row for each item and attack with a verdict for every order."""
    kind = protocols.get(run.protocol).kind
    if kind == Item.Kind.PAIR:
        worths = pd.concat(
            [
                combine_orders(judgments=part[["item", "repeat", "order", "choice"]], orders=_orders(run))
                .outcomes.assign(attack=attack)
                .merge(part[["item", "target"]].drop_duplicates(), on="item")
                for attack, part in frame.groupby("attack")
            ]
        )
        favoured = worths["target"].map({0: "first", 1: "second"})
        worths["worth"] = (worths["choice"] == favoured).astype(float)
    else:
        worths = frame[frame["status"] == "ok"].copy()
        ranked = kind == Item.Kind.BATCH
        worths["worth"] = (
            [_share_below(ranking, target) for ranking, target in zip(worths["ranking"], worths["target"], strict=True)]
            if ranked
            else worths["score"].astype(float)
        )
        order_count = worths.groupby(["item", "attack", "repeat"])["worth"].transform("size")
        worths = worths[order_count >= (_orders(run) if ranked else 1)]
    return worths.groupby(["item", "attack"], as_index=False)["worth"].mean()


def _orders(run: Run) -> int:
    return 2 if run.orders == "both" else 1


def _share_below(ranking: Sequence[Sequence[int]], target: int) -> float:
    """The share of the other answers ranked below the target; those that share its rank count half."""
    place = next(n for n, group in enumerate(ranking) if target in group)
    others = sum(len(group) for group in ranking) - 1
    below = sum(len(group) for group in ranking[place + 1 :]) + (len(ranking[place]) - 1) / 2
    return below / others if others else 0.0
