"""The votes behind a number of a model."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bank.models import Sample
from judging.models import Run
from leaderboard import votes
from leaderboard.boards.base import Board
from leaderboard.hidden import blind_items, held_out_in, of_one_source, sealed_from, until_closed
from leaderboard.metrics import GIVEN, SWAPPED
from leaderboard.scope import HUMANS, Scope
from stats.disclosure import MIN_SAMPLES
from stats.verdicts import majority, without_majority


@dataclass(frozen=True, eq=False, kw_only=True)
class VoteTable(Board[Any]):
    """``table``: one row per item of a model, with the columns ``model, other, item, level, sample`` and the number of
    ``win``, ``tie`` and ``loss``; ``models``: all models with votes, by name. Of everybody's verdicts on the item, the
    model named first: how many people gave ``first``, ``even`` and ``second``, their majority ``people``, one column
    for each of ``judges`` (see ``UNREADABLE``), how many of them ``differ`` from people, and whether the order
    ``mattered`` to one.
    """

    table: pd.DataFrame
    models: list[str]
    judges: list[Run]


def vote_table(scope: Scope, model: str) -> VoteTable:
    """The same outcomes that the board of models counts, item by item."""
    scope = of_one_source(scope)
    items = votes.pairs(scope)
    outcomes = votes.outcomes(scope)
    frame = votes.join_items(items, votes.with_failures(outcomes, scope.failures))
    of_anchor = (frame["a"] == scope.anchor) | (frame["b"] == scope.anchor)
    anchor = scope.anchor if of_anchor.any() else ""
    frame = frame[of_anchor] if anchor else frame
    used = np.union1d(*(frame[side].cat.codes.unique() for side in ("a", "b")))
    names = sorted(frame["a"].cat.categories[used], key=str.casefold)
    frame = frame[(frame["a"] == model) | (frame["b"] == model)]
    sides = [votes.sided(frame, anchor)]
    if anchor:
        # The anchor has no numbers of its own, but its pairs can be read.
        turned = sides[0].rename(columns={"model": "other", "other": "model"})
        sides.append(turned.assign(outcome=2 - turned["outcome"]))
    rows = pd.concat(sides, ignore_index=True)
    rows = rows[rows["model"] == model]
    rows = rows.assign(**{name: rows["outcome"] == code for code, name in enumerate(votes.OUTCOMES)})
    rows = rows.assign(**{name: rows[name].astype(str) for name in ("model", "other")})
    table = rows.groupby(["model", "other", "item"], as_index=False)[list(votes.OUTCOMES)].sum()
    facts = frame.drop_duplicates("item").set_index("item")[["sample", "level"]]
    table = table.join(facts, on="item")
    of_model = frame.drop_duplicates("item").set_index("item")
    everybody, judges = _everybody(scope, of_model["b"].astype(str) == model)
    table = table.join(everybody, on="item")
    table = _without_people(table, table["sample"].isin(held_out_in(scope.benchmark)))
    return VoteTable(runs=tuple(run.pk for run in outcomes.runs), table=table, models=names, judges=judges)


SHOWN = 4  # judges beside people
UNREADABLE = "unreadable"
TURNED = {"first": "second", "second": "first"}
SIDES = ("first", "even", "second")


def _everybody(scope: Scope, turned: "pd.Series[bool]") -> tuple[pd.DataFrame, list[Run]]:
    """What people and judges said of each item, as ``VoteTable`` has it; ``turned``: by item, whether the model that is
    named first is its second one.
    """
    scope = replace(scope, source=HUMANS, run=None)

    def as_named(choices: "pd.Series[str]") -> "pd.Series[str]":
        choices = choices[choices.index.isin(turned.index)]
        return choices.where(~turned.reindex(choices.index), choices.map(lambda choice: TURNED.get(choice, choice)))

    labels = votes.labels_on(scope, turned.index)
    rows = pd.DataFrame(index=turned.index)
    given = as_named(labels.set_index("item")["choice"]).replace({"tie": "even", "undecided": "even"})
    for side in SIDES:
        rows[side] = (given == side).groupby(level=0).sum().reindex(rows.index, fill_value=0)
    rows["people"] = _most(as_named(majority(labels=labels, rule=scope.rule)["choice"]), rows) if len(labels) else None
    groups = [runs for runs in votes.judge_groups(scope) if not runs[-1].judge.is_baseline]
    found: list[tuple[Run, pd.Series[str], pd.Series[bool]]] = []
    for runs in groups:
        outcomes = votes.of_runs(scope, runs)
        once = outcomes.frame[outcomes.frame["repeat"] == 0].set_index("item")["choice"].astype(str)
        failed = [item for item in outcomes.failed["item"].unique() if item not in once.index]
        choices = as_named(pd.concat([once, pd.Series(UNREADABLE, index=failed, dtype=object)]))
        orders = votes.in_orders(scope, runs).drop_duplicates("item").set_index("item")
        if len(choices):
            found.append((runs[-1], choices, orders[GIVEN] != orders[SWAPPED]))
    found.sort(key=lambda judge: -len(judge[1]))
    differ, mattered = pd.Series(0, index=rows.index), pd.Series(data=False, index=rows.index)
    decided = rows["people"].isin(("first", "second", "tie"))
    for run, choices, changed in found[:SHOWN]:
        own = rows[f"judge {run.pk}"] = choices.reindex(rows.index)
        told = decided & own.notna() & (own != UNREADABLE)
        differ += told & (own.replace("undecided", "tie") != rows["people"])
        mattered |= changed.reindex(rows.index, fill_value=False)
    return rows.assign(differ=differ, mattered=mattered), [run for run, *_ in found[:SHOWN]]


def _most(verdicts: "pd.Series[str]", given: pd.DataFrame) -> "pd.Series[str]":
    """What most people gave: a side or a tie, or that they have no majority, which boards count as a tie."""
    given = given.reindex(verdicts.index)
    split = without_majority(verdict=verdicts, **{side: given[side] for side in SIDES})
    return verdicts.replace("undecided", "tie").mask(split, votes.SPLIT)


class Counts(NamedTuple):
    """Of items: how many a model won, tied and lost."""

    wins: int
    ties: int
    losses: int
    items: int


def _counts(table: pd.DataFrame) -> Counts:
    wins, ties, losses = (int((table[name] > 0).sum()) for name in votes.OUTCOMES)
    return Counts(wins, ties, losses, len(table))


@dataclass(frozen=True, slots=True)
class VoteList:
    """Items of one model: the ``table`` of those that are shown and their counts, and those of ``every`` item that the
    board counts, of which ``sealed`` are not shown, as of ``many`` samples or few: those that people label, ``until``
    when in words, and those of hidden splits, for good.
    """

    table: pd.DataFrame
    shown: Counts
    every: Counts
    sealed: int
    many: bool
    until: str
    others: list[str]
    parts: Mapping[str, int]  # how many rows are in each of ``ONLY``


ONLY: dict[str, Callable[[pd.DataFrame], "pd.Series[bool]"]] = {
    "differ": lambda table: table["differ"] > 0,
    "split": lambda table: table["people"] == votes.SPLIT,
    "order": lambda table: table["mattered"],
}


def votes_of(
    board: VoteTable,
    scope: Scope,
    *,
    other: str = "",
    outcome: str = "",
    only: str = "",
    words: str = "",
) -> VoteList:
    """The rows of ``vote_table`` by opponent, outcome, words of the instruction and one of ``ONLY``, without those that
    the viewer does not see one by one. Samples on which judges differ most from people come first.
    """
    table = board.table
    others = sorted(table["other"].unique())
    if other:
        table = table[table["other"] == other]
    if words:
        said = Sample.objects.filter(pk__in=table["sample"].unique().tolist(), instruction__icontains=words)
        table = table[table["sample"].isin(said.values_list("pk", flat=True))]
    sealed = table["item"].isin(sealed_from(scope))
    # Counts of those whose question holds some words could be about one.
    every, many = _counts(table), not words and table["sample"][sealed].nunique() >= MIN_SAMPLES
    for_good = set(table["item"][sealed]) - blind_items(scope.benchmark).keys()
    table = table[~sealed]
    shown, parts = _counts(table), {name: int(which(table).sum()) for name, which in ONLY.items()}
    if only:
        table = table[ONLY[only](table)]
    if outcome:
        table = table[table[outcome] > 0]
    worst = table.groupby("sample")["differ"].transform("max")
    table = table.assign(worst=-worst).sort_values(["worst", "sample", "item"], kind="stable")
    until = "" if for_good or not sealed.any() else until_closed(scope)
    return VoteList(table, shown, every, int(sealed.sum()), many, until, others, parts)


def _without_people(table: pd.DataFrame, rows: "pd.Series[bool]") -> pd.DataFrame:
    """The table without what people said on these rows, and how judges compare with it."""
    unknown = {"people": None, "differ": 0, **dict.fromkeys(SIDES, 0)}
    return table.assign(**{name: table[name].mask(rows, value) for name, value in unknown.items()})
