"""The board of agreement: between annotators, between annotators and judges, and of both with the majority."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from annotations.models import Annotator
from leaderboard import votes
from leaderboard.boards.base import Board
from leaderboard.metrics import ON_SCALE, beyond_chance_of_choices, kappa
from leaderboard.rows import Number, Row, number
from leaderboard.scope import Scope
from stats.agreement import MEASURES, agreement, agreement_decided, method_of, pairwise_agreement, pairwise_kappa
from stats.proportions import proportion
from stats.verdicts import decided, majority, three_way, words

MAJORITY = "majority"
METRICS = ("agreement", "agreement_decided", *MEASURES)


@dataclass(frozen=True, kw_only=True)
class AgreementRow(Row):
    """Two voters by one metric: they ``agree`` on so many of the ``n`` items that both have a verdict on."""

    a: str
    b: str
    kind: str
    metric: str
    value: Number
    agree: int
    n: int


@dataclass(frozen=True, slots=True)
class Voter:
    """Somebody with verdicts on ``n`` items: an annotator, the majority, a judge or a baseline. ``key`` identifies it
    on the page that compares two voters.
    """

    name: str
    kind: str
    n: int
    key: str


@dataclass(frozen=True, eq=False)
class AgreementBoard(Board[AgreementRow]):
    """``voters`` in the order of the rows: annotators by name, the majority, judges."""

    rows: Sequence[AgreementRow] = ()
    _: KW_ONLY
    voters: list[Voter] = field(default_factory=list)


Shared = tuple[Number, int, int]  # the value, how many items agree, how many items


def unfit(scope: Scope) -> str:
    """Why there is no agreement of this view's kind."""
    return "" if scope.kind.pairwise else f"Agreement is only measured on pairs; none of kind {scope.kind}."


def agreements(scope: Scope, *, names: bool = False) -> AgreementBoard:
    """How often two voters gave the same verdict (MLLM-Bench, Tables 14, 15), by pair and metric.

    Annotators appear by pseudonym unless ``names``.
    """
    items = votes.pairs(scope)
    labels = votes.labels_on(scope, items.index)
    groups = votes.judge_groups(scope)
    voters, frames = _annotators(labels, names=names, reserved={MAJORITY, *(runs[0].judge.name for runs in groups)})
    if len(labels):
        majorities = majority(labels=labels, rule=scope.rule)[["choice"]].reset_index()
        frames.append(majorities.assign(who=len(voters)))
        voters.append(Voter(MAJORITY, "majority", len(majorities), MAJORITY))
    # Adds each judge's first repeat.
    times = Counter(runs[0].judge.name for runs in groups)
    for runs in groups:
        outcomes = votes.of_runs(scope, runs)
        frame = outcomes.frame[(outcomes.frame["repeat"] == 0) & outcomes.frame["item"].isin(items.index)]
        if frame.empty:
            continue
        name = str(runs[0].judge)
        name = f"{name} (run {runs[-1].pk})" if times[runs[0].judge.name] > 1 else name
        frames.append(frame[["item", "choice"]].assign(who=len(voters)))
        kind = "baseline" if runs[0].judge.is_baseline else "judge"
        voters.append(Voter(name, kind, len(frame), f"run-{runs[-1].pk}"))
    if not frames:
        return AgreementBoard([], ["Nobody has given a verdict yet."])
    verdicts = pd.concat(frames, ignore_index=True)
    return AgreementBoard(_rows(verdicts, voters, items), [f"Majority rule: {scope.rule}."], voters=voters)


def _annotators(labels: pd.DataFrame, *, names: bool, reserved: set[str]) -> tuple[list[Voter], list[pd.DataFrame]]:
    people = list(Annotator.objects.filter(pk__in=labels["annotator"].unique().tolist()))
    names_by_id = {person.pk: person.shown(named=names) for person in people}
    times = Counter(names_by_id.values())
    # Two files may each have an annotator "1", and an annotator may have the name of a judge.
    names_by_id |= {
        p.pk: f"{name} ({p.origin})" for p in people if times[name := names_by_id[p.pk]] > 1 or name in reserved
    }
    order = sorted(names_by_id, key=lambda pk: names_by_id[pk])
    place = {pk: number for number, pk in enumerate(order)}
    counts = labels["annotator"].value_counts()
    keys = {person.pk: person.pseudonym for person in people}
    voters = [Voter(names_by_id[pk], "annotator", int(counts[pk]), keys[pk]) for pk in order]
    frame = labels[["item", "choice"]].assign(who=labels["annotator"].map(place))
    return voters, [frame] if len(frame) else []


def _kappas(verdicts: pd.DataFrame, measure: str) -> dict[tuple[Any, Any], list[Any]]:
    codes = three_way(verdicts["choice"])
    plain = measure == "kappa"
    table = pairwise_kappa(
        annotator=verdicts["who"],
        item=verdicts["item"],
        verdict=words(codes) if plain else ON_SCALE[codes],
        measure=measure,
        categories=() if plain else ON_SCALE[:-1].tolist(),
    )
    return {(a, b): one for a, b, *one in table.itertuples(index=False)}


def _rows(verdicts: pd.DataFrame, voters: list[Voter], items: pd.DataFrame) -> list[AgreementRow]:
    """All pairs of voters: counts from sparse products; by group where shared items come in groups."""
    tables = {}
    for metric, read in (("agreement", three_way), ("agreement_decided", decided)):
        verdict = words(read(verdicts["choice"]))
        table = pairwise_agreement(annotator=verdicts["who"], item=verdicts["item"], verdict=verdict)
        tables[metric] = {(a, b): (int(agree), int(n)) for a, b, agree, n in table.itertuples(index=False)}
    kappas = {measure: _kappas(verdicts, measure) for measure in MEASURES}
    groups = items["group"]
    clustered = bool(groups.duplicated().any())
    by_voter = (
        {who: votes_of_one.set_index("item")["choice"] for who, votes_of_one in verdicts.groupby("who")}
        if clustered
        else {}
    )
    rows: list[AgreementRow] = []
    for a, b in sorted(tables["agreement"], key=lambda pair: _order(voters, *pair)):
        shared = _clustered(by_voter[a], by_voter[b], groups) if clustered else None
        if shared is None:
            shared = _plain(tables, kappas, (a, b))
        for metric, (value, agree, n) in zip(METRICS, shared, strict=True):
            names = {"a": voters[a].name, "b": voters[b].name, "kind": "pair"}
            rows.append(AgreementRow(**names, metric=metric, value=value, agree=agree, n=n))
    return rows


def _order(voters: list[Voter], a: int, b: int) -> tuple[int, int, int]:
    """Sort key: annotators among themselves first, then the majority, then each judge with everybody before it."""
    return (0, a, b) if voters[b].kind == "annotator" else (1, b, a)


def _plain(tables: dict[str, Any], kappas: dict[Any, Any], pair: tuple[int, int]) -> list[Shared]:
    """The metrics in the order of METRICS, with items treated as independent."""
    shared: list[Shared] = []
    for metric in ("agreement", "agreement_decided"):
        agree, n = tables[metric].get(pair, (0, 0))
        shared.append((number(proportion(successes=agree, n=n)), agree, n))
    for measure, of_pairs in kappas.items():
        n, *values, reason = of_pairs[pair]
        value, low, high, se = (None if np.isnan(value) else float(value) for value in values)
        beyond_chance = Number(value, low, high, se, int(n), int(n), method_of(measure), str(reason))
        shared.append((beyond_chance, tables["agreement"][pair][0], int(n)))
    return shared


def _clustered(first: Any, second: Any, groups: Any) -> list[Shared] | None:
    """The same by cluster; None if no two shared items have a group in common."""
    shared = pd.concat([first, second], axis=1, join="inner", keys=["first", "second"])
    shared["group"] = groups.reindex(shared.index)
    if not shared["group"].duplicated().any():
        return None
    cluster = shared["group"].to_numpy()
    a, b = shared["first"].to_numpy(object), shared["second"].to_numpy(object)
    all_verdicts = agreement(first=a, second=b, cluster=cluster)
    decided_verdicts = agreement_decided(first=a, second=b, cluster=cluster)
    beyond_chance = [kappa(a, b, cluster)]
    beyond_chance += [beyond_chance_of_choices(measure, a, b, cluster) for measure in MEASURES if measure != "kappa"]
    return [
        (number(all_verdicts.share), all_verdicts.agree, all_verdicts.share.n),
        (number(decided_verdicts.share), decided_verdicts.agree, decided_verdicts.share.n),
        *((number(estimate), all_verdicts.agree, estimate.n) for estimate in beyond_chance),
    ]
