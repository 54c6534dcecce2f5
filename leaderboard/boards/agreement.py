"""The board of agreement: every two annotators, each annotator and each judge, and the majority with both."""

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd

from annotations.models import Annotator
from judging.models import Run
from leaderboard import votes
from leaderboard.boards.base import Board, Row, number
from leaderboard.boards.sources import judge_groups
from leaderboard.methods import FEWEST_CLUSTERS
from leaderboard.metrics import kappa
from leaderboard.scope import BadScope, Scope
from stats.agreement import ASYMPTOTIC, agreement, agreement_decided, pairwise_agreement, pairwise_kappa
from stats.proportions import proportion
from stats.results import Estimate, Interval
from stats.verdicts import decided, majority, three_way, words

MAJORITY = "majority"
METRICS = ("agreement", "agreement_decided", "kappa")


def agreements(scope: Scope, *, names: bool = False) -> Board:
    """How often two of them gave the same verdict (MLLM-Bench, Tables 14, 15), by pair and metric.

    Annotators appear by pseudonym unless ``names``. ``extra``: ``voters``, each ``{name, kind, n, key}`` with the
    number of items and what the compare page calls it, in the order of the rows: annotators by name, the majority,
    judges.
    """
    if not scope.kind.pairwise:
        raise BadScope(f"The board of agreement is over pairs; there is none of kind {scope.kind}.")
    items = votes.pairs(scope)
    labels = votes.labels_of(scope)
    labels = labels[labels["item"].isin(items.index)]
    groups = judge_groups(scope)
    voters, frames = _annotators(labels, names=names, taken={MAJORITY, *(runs[0].judge.name for runs in groups)})
    if len(labels):
        aggregate = majority(labels=labels, rule=scope.rule)[["choice"]].reset_index()
        frames.append(aggregate.assign(who=len(voters)))
        voters.append({"name": MAJORITY, "kind": "majority", "n": len(aggregate), "key": MAJORITY})
    _judges(groups, items, voters, frames)
    if not frames:
        return Board([], ["Nobody has given a verdict yet."], extra={"voters": []})
    given = pd.concat(frames, ignore_index=True)
    rows = _rows(given, voters, items)
    return Board(rows, [f"Majority rule: {scope.rule}."], extra={"voters": voters})


def _annotators(labels: pd.DataFrame, *, names: bool, taken: set[str]) -> tuple[list[Row], list[pd.DataFrame]]:
    people = list(Annotator.objects.filter(pk__in=labels["annotator"].unique().tolist()))
    called = {person.pk: person.name if names else person.pseudonym for person in people}
    times = Counter(called.values())
    # Two files may both call somebody "1", and somebody may be called as a judge is.
    called |= {p.pk: f"{name} ({p.origin})" for p in people if times[name := called[p.pk]] > 1 or name in taken}
    order = sorted(called, key=lambda pk: called[pk])
    place = {pk: number for number, pk in enumerate(order)}
    counts = labels["annotator"].value_counts()
    keys = {person.pk: person.pseudonym for person in people}
    voters: list[Row] = [
        {"name": called[pk], "kind": "annotator", "n": int(counts[pk]), "key": keys[pk]} for pk in order
    ]
    frame = labels[["item", "choice"]].assign(who=labels["annotator"].map(place))
    return voters, [frame] if len(frame) else []


def _judges(groups: list[list[Run]], items: pd.DataFrame, voters: list[Row], frames: list[pd.DataFrame]) -> None:
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
        voters.append({"name": name, "kind": kind, "n": len(frame), "key": f"run-{runs[-1].pk}"})


def _rows(given: pd.DataFrame, voters: list[Row], items: pd.DataFrame) -> list[Row]:
    """All pairs: counts by sparse products; by bootstrap and cluster where the two share groups of items."""
    tables = {}
    for metric, read in (("agreement", three_way), ("agreement_decided", decided)):
        verdict = words(read(given["choice"]))
        table = pairwise_agreement(annotator=given["who"], item=given["item"], verdict=verdict)
        tables[metric] = {(a, b): (int(agree), int(n)) for a, b, agree, n in table.itertuples(index=False)}
    read_all = words(three_way(given["choice"]))
    table = pairwise_kappa(annotator=given["who"], item=given["item"], verdict=read_all)
    kappas = {(a, b): one for a, b, *one in table.itertuples(index=False)}
    groups = items["group"]
    clustered = groups.nunique() >= FEWEST_CLUSTERS and bool(groups.duplicated().any())
    by_voter = {who: mine.set_index("item")["choice"] for who, mine in given.groupby("who")} if clustered else {}
    rows: list[Row] = []
    for a, b in sorted(tables["agreement"], key=lambda pair: _order(voters, *pair)):
        head = {"a": voters[a]["name"], "b": voters[b]["name"], "kind": "pair"}
        found = _clustered(by_voter[a], by_voter[b], groups) if clustered else None
        if found is None:
            found = _plain(tables, kappas, (a, b))
        rows += [head | {"metric": metric} | found[metric] for metric in METRICS]
    return rows


def _order(voters: list[Row], a: int, b: int) -> tuple[int, int, int]:
    """Annotators among themselves first, then the majority, then each judge with everybody before it."""
    return (0, a, b) if voters[b]["kind"] == "annotator" else (1, b, a)


def _plain(tables: dict[str, Any], kappas: dict[Any, Any], pair: tuple[int, int]) -> dict[str, Row]:
    found = {}
    for metric in ("agreement", "agreement_decided"):
        agree, n = tables[metric].get(pair, (0, 0))
        found[metric] = number("value", proportion(successes=agree, n=n)) | {"agree": agree, "n": n}
    n, value, low, high = kappas[pair]
    interval = None if np.isnan(low) else Interval(float(low), float(high), 0.95, ASYMPTOTIC)
    estimate = Estimate(None if np.isnan(value) else float(value), int(n), interval, ASYMPTOTIC)
    found["kappa"] = number("value", estimate) | {"agree": tables["agreement"][pair][0], "n": int(n)}
    return found


def _clustered(first: Any, second: Any, groups: Any) -> dict[str, Row] | None:
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
    return {
        "agreement": number("value", whole.share) | {"agree": whole.agree, "n": whole.share.n},
        "agreement_decided": number("value", sided.share) | {"agree": sided.agree, "n": sided.share.n},
        "kappa": number("value", estimate) | {"agree": whole.agree, "n": estimate.n},
    }
