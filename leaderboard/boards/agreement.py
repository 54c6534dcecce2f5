"""The board of agreement: every two annotators, each annotator and each judge, and the majority with both."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from annotations.models import Annotator
from judging.models import Run
from leaderboard import votes
from leaderboard.boards.base import Board
from leaderboard.methods import FEWEST_CLUSTERS
from leaderboard.metrics import kappa
from leaderboard.rows import Number, Row, number
from leaderboard.scope import BadScope, Scope
from stats.agreement import agreement, agreement_decided, pairwise_agreement, pairwise_kappa
from stats.proportions import proportion
from stats.verdicts import decided, majority, three_way, words

MAJORITY = "majority"
METRICS = ("agreement", "agreement_decided", "kappa")


@dataclass(frozen=True, kw_only=True)
class AgreementRow(Row):
    """Two voters by one metric: ``agree`` of the ``n`` items that both have a verdict on."""

    a: str
    b: str
    kind: str
    metric: str
    value: Number
    agree: int
    n: int


@dataclass(frozen=True, slots=True)
class Voter:
    """Who gave verdicts on ``n`` items: an annotator, the majority, a judge or a baseline. ``key`` is what the page of
    two voters calls it.
    """

    name: str
    kind: str
    n: int
    key: str


@dataclass(frozen=True, eq=False, kw_only=True)
class AgreementBoard(Board):
    """``voters`` in the order of the rows: annotators by name, the majority, judges."""

    rows: Sequence[AgreementRow] = field(default=(), kw_only=False)
    voters: list[Voter] = field(default_factory=list)


Shared = tuple[Number, int, int]  # a value, how many agree, of how many


def agreements(scope: Scope, *, names: bool = False) -> AgreementBoard:
    """How often two of them gave the same verdict (MLLM-Bench, Tables 14, 15), by pair and metric.

    Annotators appear by pseudonym unless ``names``.
    """
    if not scope.kind.pairwise:
        raise BadScope(f"The board of agreement is over pairs; there is none of kind {scope.kind}.")
    items = votes.pairs(scope)
    labels = votes.labels_of(scope)
    labels = labels[labels["item"].isin(items.index)]
    groups = votes.judge_groups(scope)
    voters, frames = _annotators(labels, names=names, taken={MAJORITY, *(runs[0].judge.name for runs in groups)})
    if len(labels):
        aggregate = majority(labels=labels, rule=scope.rule)[["choice"]].reset_index()
        frames.append(aggregate.assign(who=len(voters)))
        voters.append(Voter(MAJORITY, "majority", len(aggregate), MAJORITY))
    _judges(groups, items, voters, frames)
    if not frames:
        return AgreementBoard([], ["Nobody has given a verdict yet."])
    verdicts = pd.concat(frames, ignore_index=True)
    return AgreementBoard(_rows(verdicts, voters, items), [f"Majority rule: {scope.rule}."], voters=voters)


def _annotators(labels: pd.DataFrame, *, names: bool, taken: set[str]) -> tuple[list[Voter], list[pd.DataFrame]]:
    people = list(Annotator.objects.filter(pk__in=labels["annotator"].unique().tolist()))
    called = {person.pk: person.name if names else person.pseudonym for person in people}
    times = Counter(called.values())
    # Two files may both call somebody "1", and somebody may be called as a judge is.
    called |= {p.pk: f"{name} ({p.origin})" for p in people if times[name := called[p.pk]] > 1 or name in taken}
    order = sorted(called, key=lambda pk: called[pk])
    place = {pk: number for number, pk in enumerate(order)}
    counts = labels["annotator"].value_counts()
    keys = {person.pk: person.pseudonym for person in people}
    voters = [Voter(called[pk], "annotator", int(counts[pk]), keys[pk]) for pk in order]
    frame = labels[["item", "choice"]].assign(who=labels["annotator"].map(place))
    return voters, [frame] if len(frame) else []


def _judges(groups: list[list[Run]], items: pd.DataFrame, voters: list[Voter], frames: list[pd.DataFrame]) -> None:
    """Adds each judge's first repeat."""
    times = Counter(runs[0].judge.name for runs in groups)
    for runs in groups:
        found = votes.of_runs(runs)
        frame = found.frame[(found.frame["repeat"] == 0) & found.frame["item"].isin(items.index)]
        if frame.empty:
            continue
        name = runs[0].judge.name
        name = f"{name} (run {runs[-1].pk})" if times[name] > 1 else name
        frames.append(frame[["item", "choice"]].assign(who=len(voters)))
        kind = "baseline" if runs[0].judge.is_baseline else "judge"
        voters.append(Voter(name, kind, len(frame), f"run-{runs[-1].pk}"))


def _rows(verdicts: pd.DataFrame, voters: list[Voter], items: pd.DataFrame) -> list[AgreementRow]:
    """All pairs: counts by sparse products; by bootstrap and cluster where the two share groups of items."""
    tables = {}
    for metric, read in (("agreement", three_way), ("agreement_decided", decided)):
        verdict = words(read(verdicts["choice"]))
        table = pairwise_agreement(annotator=verdicts["who"], item=verdicts["item"], verdict=verdict)
        tables[metric] = {(a, b): (int(agree), int(n)) for a, b, agree, n in table.itertuples(index=False)}
    read_all = words(three_way(verdicts["choice"]))
    table = pairwise_kappa(annotator=verdicts["who"], item=verdicts["item"], verdict=read_all)
    kappas = {(a, b): one for a, b, *one in table.itertuples(index=False)}
    groups = items["group"]
    clustered = groups.nunique() >= FEWEST_CLUSTERS and bool(groups.duplicated().any())
    by_voter = {who: mine.set_index("item")["choice"] for who, mine in verdicts.groupby("who")} if clustered else {}
    rows: list[AgreementRow] = []
    for a, b in sorted(tables["agreement"], key=lambda pair: _order(voters, *pair)):
        shared = _clustered(by_voter[a], by_voter[b], groups) if clustered else None
        if shared is None:
            shared = _plain(tables, kappas, (a, b))
        for metric, (value, agree, n) in zip(METRICS, shared, strict=True):
            both = {"a": voters[a].name, "b": voters[b].name, "kind": "pair"}
            rows.append(AgreementRow(**both, metric=metric, value=value, agree=agree, n=n))
    return rows


def _order(voters: list[Voter], a: int, b: int) -> tuple[int, int, int]:
    """Annotators among themselves first, then the majority, then each judge with everybody before it."""
    return (0, a, b) if voters[b].kind == "annotator" else (1, b, a)


def _plain(tables: dict[str, Any], kappas: dict[Any, Any], pair: tuple[int, int]) -> list[Shared]:
    """The metrics in their order, items by themselves."""
    shared: list[Shared] = []
    for metric in ("agreement", "agreement_decided"):
        agree, n = tables[metric].get(pair, (0, 0))
        shared.append((number(proportion(successes=agree, n=n)), agree, n))
    n, *ends = kappas[pair]
    kappa_and_ends = Number(*(None if np.isnan(end) else float(end) for end in ends))
    return [*shared, (kappa_and_ends, tables["agreement"][pair][0], int(n))]


def _clustered(first: Any, second: Any, groups: Any) -> list[Shared] | None:
    """The same by cluster; None where no two shared items have a group in common, or groups are too few."""
    both = pd.concat([first, second], axis=1, join="inner", keys=["first", "second"])
    both["group"] = groups.reindex(both.index)
    if both["group"].nunique() < FEWEST_CLUSTERS or not both["group"].duplicated().any():
        return None
    cluster = both["group"].to_numpy()
    mine, theirs = both["first"].to_numpy(object), both["second"].to_numpy(object)
    whole = agreement(first=mine, second=theirs, cluster=cluster)
    sided = agreement_decided(first=mine, second=theirs, cluster=cluster)
    estimate = kappa(mine, theirs, cluster)
    return [
        (number(whole.share), whole.agree, whole.share.n),
        (number(sided.share), sided.agree, sided.share.n),
        (number(estimate), whole.agree, estimate.n),
    ]
