"""The board of biases: what sways each judge apart from the quality of answers, and people by the same measure.

* ``position`` (pairs judged in both orders): the share of verdicts that lean to the first place minus the share that
  lean to the second; the same verdict in both orders is 0 (MLLM-Bench, Figure 2). People see an item in one random
  order: theirs is the share of labels for the first place minus the share for the second.
* ``length`` (pairs): log odds that the first answer wins, per unit of tanh of the standardised difference of lengths.
* ``self``: judge minus people on answers of the judge's own family, minus the same on the others'.
* ``high_score``: the mean of judge minus people on the same answers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import pandas as pd

from annotations.models import Label
from bank.models import EvaluatedModel
from judging.models import Run
from leaderboard import votes
from leaderboard.boards.base import Board, share
from leaderboard.hidden import STAFFS, is_kept_back
from leaderboard.rows import JSON, UNKNOWN, Number, Row, number
from leaderboard.scope import BadScope, Scope
from leaderboard.votes import scores, verdict_cache
from stats.bias import high_scores, length, own_family, position
from stats.proportions import mean
from stats.ranks import benjamini_hochberg
from stats.results import Estimate
from stats.verdicts import VERDICTS, majority

HUMANS = "humans"
NOTHING = "No verdicts yet."
LEANS = (-1.0, 1.0)  # from the second place to the first


@dataclass(frozen=True, kw_only=True)
class Detail(Row):
    """The numbers behind a bias, or the ``reason`` why there is no value. Fields that do not apply are None.

    Position: the shares of verdicts that stay the same in either order (``consistent``), lean to the ``first`` and to
    the ``second`` place, and p of the sign test. Length: how often the ``longer`` answer wins, out of ``longer_n``.
    Self: the ``family`` and its ``models``. High scores: the two means, and on short scales the share of each step.
    """

    consistent: Number | None = None
    first: float | None = None
    second: float | None = None
    p: float | None = None
    significant: bool | None = None
    method: str | None = None
    longer: Number | None = None
    longer_n: int | None = None
    unit: str | None = None
    family: str | None = None
    models: list[str] | None = None
    judge_mean: float | None = None
    people_mean: float | None = None
    scale: list[float] | None = None
    judge: list[float] | None = None
    people: list[float] | dict[str, float] | None = None
    reason: str | None = None

    def _columns(self, suffixes: Mapping[str, str]) -> JSON:
        present = {column.name for column in fields(self) if getattr(self, column.name) is not None}
        numbers = {f"{name}{end}" for name in ("consistent", "longer") if name in present for end in suffixes}
        return {name: value for name, value in super()._columns(suffixes).items() if name in present | numbers}


@dataclass(frozen=True, kw_only=True)
class BiasRow(Row):
    """One bias of a judge, or of people (the judge ``humans``)."""

    judge: str
    run: int | None
    settings: JSON | None
    bias: str
    value: Number = UNKNOWN
    n: int = 0
    detail: Detail


@dataclass(frozen=True, eq=False, kw_only=True)
class BiasBoard(Board):
    """``biases``: those that are measured for this kind of verdict; ``labels``: how many people gave."""

    rows: Sequence[BiasRow] = field(default=(), kw_only=False)
    biases: tuple[str, ...] = ()
    labels: int = 0

    @property
    def counted(self) -> dict[str, int]:
        return {"labels": self.labels}


def biases(scope: Scope) -> BiasBoard:
    """Every judge's biases with their intervals, and people's own (MLLM-Bench, Figures 2 and 3)."""
    if is_kept_back(scope):
        return BiasBoard([], [STAFFS])
    if not scope.kind.biases:
        raise BadScope(f"Biases are measured for pairs, scores and components; none of kind {scope.kind}.")
    return _of_pairs(scope) if scope.kind.pairwise else _of_scores(scope)


def _row(judge: str, run: Run | None, bias: str, estimate: Estimate | None, detail: Detail) -> BiasRow:
    if estimate is not None and estimate.value is None and estimate.reason:
        detail = replace(detail, reason=estimate.reason)
    return BiasRow(
        judge=judge,
        run=run.pk if run else None,
        settings=run.settings if run else None,
        bias=bias,
        value=number(estimate),
        n=estimate.n if estimate is not None else 0,
        detail=detail,
    )


def _absent(judge: str, run: Run | None, bias: str, reason: str) -> BiasRow:
    return _row(judge, run, bias, None, Detail(reason=reason))


def _board(scope: Scope, rows: list[BiasRow], used: list[Run], labels: pd.DataFrame) -> BiasBoard:
    """The board, with the sign tests that are significant at 5% after Benjamini-Hochberg marked."""
    if not rows:
        return BiasBoard([], [NOTHING])
    tested = [row.detail.p for row in rows if row.detail.p is not None]
    counts = iter(benjamini_hochberg(p=tested) if tested else ())
    marked = [
        row if row.detail.p is None else replace(row, detail=replace(row.detail, significant=bool(next(counts))))
        for row in rows
    ]
    notes = ["Tests on one page count at 5% after Benjamini-Hochberg."] if tested else []
    runs = tuple(run.pk for run in used)
    return BiasBoard(marked, notes, runs, biases=scope.kind.biases, labels=len(labels))


# ---- pairs ----


def _of_pairs(scope: Scope) -> BiasBoard:
    items = votes.pairs(scope)
    labels = votes.labels_of(scope)
    labels = labels[labels["item"].isin(items.index)]
    truth = majority(labels=labels, rule=scope.rule)[["choice"]] if len(labels) else None
    lengths = _lengths(scope, items)
    families = dict(EvaluatedModel.objects.exclude(family="").values_list("name", "family"))
    rows: list[BiasRow] = []
    used: list[Run] = []
    for runs in votes.judge_groups(scope):
        outcomes = votes.of_runs(runs)
        run, name = runs[-1], runs[-1].judge.name
        used += runs
        verdicts = votes.join_items(items, outcomes.frame)
        rows.append(_position(name, run, runs, items))
        rows.append(_length(name, run, verdicts, lengths))
        rows.append(_self_of_pairs(run, verdicts, truth, families))
    if truth is not None:
        rows.append(_position_of_people(scope, items))
        majorities = truth.reset_index().join(items, on="item")
        rows.append(_length(HUMANS, None, majorities, lengths))
        rows.append(_absent(HUMANS, None, "self", "people are the reference, and of no family"))
    return _board(scope, rows, used, labels)


def _position(name: str, run: Run, runs: list[Run], items: pd.DataFrame) -> BiasRow:
    if run.orders != "both":
        return _absent(name, run, "position", "each pair was judged in one order only")
    straight, turned, group = _in_both_orders(runs, items)
    if not len(group):
        return _absent(name, run, "position", "no pair has a verdict in both orders")
    result = position(straight=straight, turned=turned, cluster=group)
    lean = _lean(straight, turned)
    detail = Detail(
        consistent=number(result.consistent),
        first=result.first.value,
        second=result.second.value,
        p=result.test.p,
        method="sign test on the pairs that changed with the order",
    )
    return _row(name, run, "position", mean(values=lean, cluster=group, ends=LEANS), detail)


def _in_both_orders(runs: list[Run], items: pd.DataFrame) -> tuple[Any, Any, Any]:
    """The verdicts of each item and repeat in canonical and in swapped order, where both exist, and the groups."""
    parts = []
    for run in runs:
        item, repeat, choice, is_turned = verdict_cache.verdicts(run)
        in_view, place = votes.locate(items.index.to_numpy(), item)
        unit = place.astype(np.int64) << 16 | repeat
        valid = in_view & (choice >= 0)
        straight_rows, turned_rows = np.flatnonzero(valid & ~is_turned), np.flatnonzero(valid & is_turned)
        _, at_straight, at_turned = np.intersect1d(
            unit[straight_rows], unit[turned_rows], assume_unique=True, return_indices=True
        )
        straight_rows, turned_rows = straight_rows[at_straight], turned_rows[at_turned]
        parts.append((choice[straight_rows], choice[turned_rows], place[straight_rows]))
    straight, turned, place = (np.concatenate(column) for column in zip(*parts, strict=True))
    choices = [pd.Series(pd.Categorical.from_codes(codes, categories=list(VERDICTS))) for codes in (straight, turned)]
    return *choices, items["group"].cat.codes.to_numpy()[place]


def _lean(straight: Any, turned: Any) -> Any:
    """+1 where the two verdicts lean to the first place, -1 to the second, 0 to neither."""
    placed = np.select([straight == "first", straight == "second"], [1, -1], 0)
    placed = placed + np.select([turned == "second", turned == "first"], [1, -1], 0)
    return np.sign(placed)


def _position_of_people(scope: Scope, items: pd.DataFrame) -> BiasRow:
    """Of labels whose presented order is known: imported ones do not say which it was."""
    rows = Label.objects.filter(
        campaign__benchmark=scope.benchmark, campaign__imported=False, excluded=False, choice__isnull=False
    ).exclude(assignment__campaign_item__practice=True)
    if scope.campaign:
        rows = rows.filter(campaign__name=scope.campaign)
    frame = pd.DataFrame(rows.values_list("item", "assignment__order", "choice"), columns=["item", "order", "choice"])
    frame = frame[frame["item"].isin(items.index)]
    if frame.empty:
        return _absent(HUMANS, None, "position", "no label says in which order its answers were shown")
    shown_first = np.where(frame["order"] == "10", -1, 1)
    choices = frame["choice"].map({"first": 1, "second": -1}).fillna(0).to_numpy()
    lean = shown_first * choices
    detail = Detail(
        first=share(int((lean > 0).sum()), len(lean)),
        second=share(int((lean < 0).sum()), len(lean)),
        method="orders drawn by lot",
    )
    group = items["group"].reindex(frame["item"]).to_numpy()
    return _row(HUMANS, None, "position", mean(values=lean, cluster=group, ends=LEANS), detail)


def _lengths(scope: Scope, items: pd.DataFrame) -> pd.DataFrame:
    """The lengths of the two answers by item: in tokens if all are known, otherwise in words."""
    lengths = pd.DataFrame(index=items.index, columns=[0, 1], dtype=np.float64)
    for unit in ("tokens", "words"):
        item, first, second = verdict_cache.lengths(scope.benchmark, unit)
        known, place = votes.locate(item, items.index.to_numpy())
        lengths = pd.DataFrame({0: first[place], 1: second[place]}, index=items.index)
        lengths = lengths.where(known[:, None] & (lengths >= 0)) if len(item) else lengths.astype(np.float64)
        if lengths.notna().to_numpy().all():
            break
    return lengths


def _length(name: str, run: Run | None, verdicts: pd.DataFrame, lengths: pd.DataFrame) -> BiasRow:
    """Over the decided pairs; a judge's repeats are rows in the same cluster."""
    decided = verdicts[verdicts["choice"].isin(["first", "second"])]
    tokens = lengths.reindex(decided["item"]).to_numpy(np.float64)
    measured = np.isfinite(tokens).all(axis=1) if len(tokens) else np.zeros(0, dtype=bool)
    decided, tokens = decided[measured], tokens[measured]
    won = (decided["choice"] == "first").to_numpy(np.float64)
    result = length(won=won, tokens=tokens, cluster=decided["group"].to_numpy())
    detail = Detail(longer=number(result.longer), longer_n=result.longer.n, unit="log odds")
    return _row(name, run, "length", result.slope, detail)


def _self_of_pairs(run: Run, verdicts: pd.DataFrame, truth: pd.DataFrame | None, families: dict[str, str]) -> BiasRow:
    family = run.judge.family
    if not family:
        return _absent(run.judge.name, run, "self", "the judge's family is not known")
    if truth is None:
        return _absent(run.judge.name, run, "self", "no labels by people to compare with")
    paired = verdicts.join(truth.rename(columns={"choice": "people"}), on="item", how="inner")
    points = {"first": 1.0, "second": 0.0}
    sides = []
    for side, turned in (("a", False), ("b", True)):
        judge, people = (paired[column].map(points).fillna(0.5) for column in ("choice", "people"))
        part = pd.DataFrame({"judge": judge, "people": people, "model": paired[side], "group": paired["group"]})
        sides.append(part.assign(judge=1 - part["judge"], people=1 - part["people"]) if turned else part)
    return _own(run, pd.concat(sides, ignore_index=True), families, width=1.0)


def _own(run: Run, frame: pd.DataFrame, families: dict[str, str], *, width: float) -> BiasRow:
    of_family = frame["model"].map(families).eq(run.judge.family).to_numpy()
    if not of_family.any() or of_family.all():
        return _absent(run.judge.name, run, "self", f"no answers of the family {run.judge.family}, or no others")
    estimate = own_family(
        judge=frame["judge"].to_numpy(),
        people=frame["people"].to_numpy(),
        own=of_family,
        cluster=frame["group"].to_numpy(),
        width=width,
    )
    models = sorted(set(frame.loc[of_family, "model"]))
    return _row(run.judge.name, run, "self", estimate, Detail(family=run.judge.family, models=models))


# ---- scores ----


def _of_scores(scope: Scope) -> BiasBoard:
    items = scores.items_of(scope)
    labels = scope.kind.numbers(scope, scores.labels_of(scope), items)
    labels = labels[labels["item"].isin(items.index)]
    families = dict(EvaluatedModel.objects.exclude(family="").values_list("name", "family"))
    truth = labels.groupby("item")["value"].mean() if len(labels) else pd.Series(dtype=float)
    low, high = scope.kind.ends(scope.benchmark)
    rows: list[BiasRow] = []
    used: list[Run] = []
    for runs in votes.judge_groups(scope):
        verdicts = scope.kind.numbers(scope, scores.of_runs(scope, runs), items)
        run = runs[-1]
        used += runs
        judge_means = verdicts.groupby("item")["value"].mean().rename("judge").reset_index()
        paired = judge_means.join(truth.rename("people"), on="item", how="inner").join(items, on="item", how="inner")
        rows.append(_high(run.judge.name, run, paired, high - low))
        rows.append(_self_of_scores(run, paired, families, high - low))
    if len(labels):
        shares = _distribution(labels["value"])
        rows.append(_row(HUMANS, None, "high_score", None, Detail(people=shares, reason="people are the reference")))
        rows.append(_absent(HUMANS, None, "self", "people are the reference, and of no family"))
    return _board(scope, rows, used, labels)


def _high(name: str, run: Run, paired: pd.DataFrame, width: float) -> BiasRow:
    if paired.empty:
        return _absent(name, run, "high_score", "no answer was scored by people, too")
    judge, people = paired["judge"].to_numpy(np.float64), paired["people"].to_numpy(np.float64)
    distributions = high_scores(judge=judge, people=people)
    detail = Detail(judge_mean=float(judge.mean()), people_mean=float(people.mean()))
    if len(distributions.scale) <= 101:
        detail = replace(
            detail, scale=list(distributions.scale), judge=list(distributions.judge), people=list(distributions.people)
        )
    difference = mean(values=judge - people, cluster=paired["group"].to_numpy(), ends=(-width, width))
    return _row(name, run, "high_score", difference, detail)


def _self_of_scores(run: Run, paired: pd.DataFrame, families: dict[str, str], width: float) -> BiasRow:
    name = run.judge.name
    if not run.judge.family:
        return _absent(name, run, "self", "the judge's family is not known")
    paired = paired[paired["models"].map(len) == 1]
    if paired.empty:
        return _absent(name, run, "self", "no answer was scored by people, too")
    return _own(run, paired.assign(model=paired["models"].str[0]), families, width=width)


def _distribution(values: "pd.Series[Any]") -> dict[str, float]:
    counted = values.value_counts(normalize=True).sort_index()
    return {f"{step:g}": float(part) for step, part in counted.items()}
