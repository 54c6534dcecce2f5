"""Where a judge decides otherwise than most people do, grouped by what those who labelled ticked and wrote there."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from accounts.rules import Viewer
from annotations import ballots
from annotations.models import Label
from bank import exposure
from leaderboard import votes
from leaderboard.boards.behind.voters import MAJORITY, listed, side_by_side, voter
from leaderboard.kinds import Kind
from leaderboard.rows import OfJudge
from leaderboard.scope import HUMANS, BadScope, Scope
from stats.figures import MINUS

FAR = 1.0  # points of a scale from 1 to 5: a smaller difference is a matter of taste
TICK, COMMENT, NOTHING = "tick", "comment", "nothing"
WHOSE = "Say whose: a run, or a judge as the source."


@dataclass(frozen=True, kw_only=True)
class DisagreementRow(OfJudge):
    """The ``n`` items (``items``, their numbers) on which people say one thing and the judge another, of ``of`` such,
    where somebody ``said`` this: by a tick, in a comment, or nothing. An item stands in the row of each thing said.
    """

    judge: str
    run: int
    kind: str
    people: str
    judged: str
    by: str
    said: str
    n: int
    of: int
    items: list[int]
    simulated: bool


def disagreements(scope: Scope, viewer: Viewer) -> list[DisagreementRow]:
    """The rows of one run, or of a judge's newest: the most frequent disagreement first, and in it what was said on
    most items. They hold single verdicts and words that this viewer may read alone. Raises BadScope.
    """
    if scope.by_people:
        raise BadScope(WHOSE)
    runs = list(votes.judged_runs(scope).filter(pk=scope.run)) if scope.run else votes.runs_of(scope, scope.source)
    if not runs:
        raise BadScope(f"There is no run {scope.run} of this kind on {scope.benchmark}.")
    run = runs[-1]
    usual = replace(scope, run=None, source=HUMANS)
    people, judged = (voter(usual, key, viewer) for key in (MAJORITY, f"run-{run.pk}"))
    apart = _apart(scope.kind, listed(usual, side_by_side(people, judged)))
    said = _said(scope, viewer, apart)
    rows = []
    for (of_people, of_judge), items in apart.groupby(["people", "judged"]).groups.items():
        there = said[said["item"].isin(items)]
        for (by, _), group in there.groupby(["by", "key"]):
            rows.append(
                DisagreementRow(
                    judge=run.judge.name,
                    run=run.pk,
                    kind=scope.kind.name,
                    people=str(of_people),
                    judged=str(of_judge),
                    by=str(by),
                    said=str(group["said"].iloc[0]),
                    n=group["item"].nunique(),
                    of=len(items),
                    items=sorted(set(group["item"].tolist())),
                    simulated=run.judge.simulated,
                )
            )
    return sorted(rows, key=lambda row: (-row.of, row.people, row.judged, row.by == NOTHING, -row.n, row.said))


def _apart(kind: Kind, table: pd.DataFrame) -> pd.DataFrame:
    """The items on which both differ: index ``item``; ``people`` and ``judged`` in words. Of pairs these say whether a
    side was chosen, since which answer is the first means nothing; of numbers how the judge's lies.
    """
    first, second = (table[name].astype(object) for name in ("first", "second"))
    if kind.pairwise:
        table = table[~table["same"].astype(bool) & (first != "undecided")]
        tied, even = table["first"] == "tie", table["second"].isin(["tie", "undecided"])
        people = np.where(tied, "a tie", "a side")
        judged = np.where(even, "a tie", np.where(tied, "a side", "the other side"))
    elif kind.on_scale:
        gap, their_own = (pd.to_numeric(words.str.replace(MINUS, "-")) for words in (second, first))
        gap -= their_own
        table = table[gap.abs() >= FAR * kind.scale_width]
        people = np.full(len(table), "their mean")
        judged = np.where(gap[table.index] > 0, "higher", "lower")
    else:
        table = table[~table["same"].astype(bool)]
        people, judged = table["first"].to_numpy(object), table["second"].to_numpy(object)
    return pd.DataFrame({"people": people, "judged": judged}, index=table.index)


def _said(scope: Scope, viewer: Viewer, apart: pd.DataFrame) -> pd.DataFrame:
    """What people said on these items: ``item``, ``by``, ``said``, and its ``key``, the same for equal words."""
    labels = Label.objects.seen_by(viewer).of_answers().compared().filter(campaign__benchmark=scope.benchmark)
    labels = labels.filter(campaign__name=scope.campaign) if scope.campaign else labels
    worded = labels.filter(exposure.words_seen(viewer, held="campaign__held")).exclude(flags=[], comment="")
    found = []
    for item, flags, comment in worded.order_by("pk").values_list("item", "flags", "comment"):
        found += [(item, TICK, str(ballots.FLAGS.get(flag, flag))) for flag in flags]
        found += [(item, COMMENT, words)] if (words := " ".join(comment.split())) else []
    rows = pd.DataFrame(found, columns=["item", "by", "said"])
    rows = rows[rows["item"].isin(apart.index)]
    silent = apart.index[~apart.index.isin(rows["item"])]
    rows = pd.concat([rows, pd.DataFrame({"item": silent, "by": NOTHING, "said": ""})], ignore_index=True)
    return rows.assign(key=rows["said"].str.casefold())
