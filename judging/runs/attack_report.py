"""How far attacks moved a judge: the target's worth as it is, under each attack, and the difference on the same items.

The worth is the share of wins of pairs (a tie or no decision is none), the share of the other answers that stand below
in a ranking (on a par counts half), or the score. Orders are combined as on the boards, repeats averaged; an item
counts where both it and its attacked twin have a verdict.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from bank.models import Item
from judging import protocols
from judging.models import Run, Trial
from judging.runs.attacks import PAIRS, Attack, get
from stats import paired
from stats.proportions import mean, proportion, rate
from stats.ranks import benjamini_hochberg
from stats.results import Estimate
from stats.verdicts import combine_orders

SEED = 20_261_122  # of the sign flips: the same page shows the same
COLUMNS = ("item_id", "order", "repeat", "attack", "target", "status", "choice", "score", "ranking")


@dataclass(frozen=True, slots=True)
class Moved:
    """What one attack did. ``unread`` is the share of its calls so far without a verdict."""

    attack: Attack
    plain: Estimate
    attacked: Estimate
    change: Estimate
    p: float | None
    clear: bool  # the change stands when all attacks are looked at together (Benjamini-Hochberg, 5%)
    unread: Estimate


@dataclass(frozen=True, slots=True)
class Report:
    """All attacks of a run, those that gained most first. ``share`` tells whether the worth is one, or a score."""

    rows: tuple[Moved, ...]
    share: bool
    worth: str  # in words

    @property
    def widest(self) -> float:
        """Half of what a drawing of the changes has to hold."""
        found = [row.change.interval for row in self.rows]
        ends = [abs(end) for one in found if one for end in (one.low, one.high)]
        return 1.0 if self.share else max([1.0, *ends, *(abs(row.change.value or 0) for row in self.rows)])

    def as_rows(self) -> list[dict[str, Any]]:
        """The same for files and scripts; what cannot be computed is None."""
        return [
            {
                "attack": row.attack.name,
                "version": row.attack.version,
                "title": row.attack.title,
                "null_answer": row.attack.null,
                "worth": self.worth,
                "n": row.change.n,
                **_numbers("plain", row.plain),
                **_numbers("attacked", row.attacked),
                **_numbers("change", row.change),
                "method": row.change.method,
                "p": row.p,
                "clear": row.clear,
                **_numbers("unread", row.unread),
                "unread_n": row.unread.n,
            }
            for row in self.rows
        ]


def _numbers(name: str, found: Estimate) -> dict[str, float | None]:
    ends = (found.interval.low, found.interval.high) if found.interval else (None, None)
    return {name: found.value, f"{name}_low": ends[0], f"{name}_high": ends[1]}


def report(run: Run) -> Report:
    """What the trials of a run show so far."""
    frame = pd.DataFrame(Trial.objects.filter(run=run).order_by("pk").values_list(*COLUMNS), columns=list(COLUMNS))
    kind = protocols.get(run.protocol).kind
    if frame.empty:
        worths = pd.DataFrame(columns=["item", "attack", "worth"])
    else:
        worths = _worths(run, frame.rename(columns={"item_id": "item"}))
    samples = dict(Item.objects.filter(pk__in=set(worths["item"])).values_list("pk", "sample_id"))
    table = worths.pivot(index="item", columns="attack", values="worth")
    rows = [_moved(get(key), table, frame, samples, share=kind != Item.Kind.SCORE) for key in run.attacks]
    tested = {n: row.p for n, row in enumerate(rows) if row.p is not None}
    for n, stands in zip(tested, benjamini_hochberg(p=list(tested.values())), strict=True):
        rows[n] = replace(rows[n], clear=bool(stands))
    rows.sort(key=lambda row: -(row.change.value if row.change.value is not None else -np.inf))
    words: dict[str, str] = {Item.Kind.PAIR: "wins", Item.Kind.BATCH: "others below"}
    return Report(tuple(rows), kind != Item.Kind.SCORE, words.get(kind, "score"))


def _moved(attack: Attack, table: pd.DataFrame, frame: pd.DataFrame, samples: dict[int, int], *, share: bool) -> Moved:
    tried = frame[frame["attack"] == attack.key] if len(frame) else frame
    unread = proportion(successes=int((tried["status"] != "ok").sum()), n=len(tried))
    both = table.reindex(columns=["", attack.key]).dropna().astype(float)
    before, after = both[""].to_numpy(), both[attack.key].to_numpy()
    cluster = np.array([samples[int(item)] for item in both.index])
    p = None
    if len(both):
        rng = np.random.default_rng(SEED)
        p = paired.difference(first=after, second=before, cluster=cluster, rng=rng, flips=2_000).p
    return Moved(
        attack,
        _estimate(before, cluster, share),
        _estimate(after, cluster, share),
        paired.change(before=before, after=after, cluster=cluster),
        p,
        False,
        unread,
    )


def _estimate(values: Any, cluster: Any, share: bool) -> Estimate:
    if share and np.isin(values, (0, 1)).all():
        return rate(hits=values, cluster=cluster)
    return mean(values=values, cluster=cluster)


def _worths(run: Run, frame: pd.DataFrame) -> pd.DataFrame:
    """Columns ``item``, ``attack``, ``worth``: a row for each item and attack where every order has a verdict."""
    if run.protocol in PAIRS:
        found = pd.concat(
            [
                combine_orders(judgments=part[["item", "repeat", "order", "choice"]], orders=_orders(run))
                .outcomes.assign(attack=attack)
                .merge(part[["item", "target"]].drop_duplicates(), on="item")
                for attack, part in frame.groupby("attack")
            ]
        )
        favoured = found["target"].map({0: "first", 1: "second"})
        found["worth"] = (found["choice"] == favoured).astype(float)
    else:
        found = frame[frame["status"] == "ok"].copy()
        ranked = protocols.get(run.protocol).kind == Item.Kind.BATCH
        found["worth"] = (
            [_below(ranking, target) for ranking, target in zip(found["ranking"], found["target"], strict=True)]
            if ranked
            else found["score"].astype(float)
        )
        given = found.groupby(["item", "attack", "repeat"])["worth"].transform("size")
        found = found[given >= (_orders(run) if ranked else 1)]
    return found.groupby(["item", "attack"], as_index=False)["worth"].mean()


def _orders(run: Run) -> int:
    return 2 if run.orders == "both" else 1


def _below(ranking: Sequence[Sequence[int]], target: int) -> float:
    """The share of the other answers that stand below one, those on a par with it by half."""
    place = next(n for n, group in enumerate(ranking) if target in group)
    others = sum(len(group) for group in ranking) - 1
    below = sum(len(group) for group in ranking[place + 1 :]) + (len(ranking[place]) - 1) / 2
    return below / others if others else 0.0
