"""The board of biases: what sways each judge apart from the quality of answers, and people by the same measure.

* ``position`` (pairs judged in both orders): the share of verdicts that lean to the first place minus the share that
  lean to the second; the same verdict in both orders is 0 (MLLM-Bench, Figure 2). Of pairs seen in one order, as people
  see them, the share of verdicts for the first place minus the share for the second (MLLM-as-a-Judge, Figure 4). Of
  rankings, how far they follow the order in which the answers were shown: 1 copies it, -1 turns it round.
* ``length``: of pairs, log odds that the first answer wins, per unit of tanh of the standardised difference of lengths;
  of scores, points per standard deviation of the length, within samples (MLLM-as-a-Judge, Figure 6).
* ``self``: judge minus people on answers of the judge's own family, minus the same on the others'.
* ``high_score``: the mean of judge minus people on the same answers.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from itertools import combinations
from string import ascii_uppercase
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bank.models import EvaluatedModel, Item, ItemResponse
from judging.extras.juries import members_of
from judging.models import Run
from leaderboard import votes
from leaderboard.boards.base import Board, Tested, share, with_significance
from leaderboard.hidden import counted_judgments, of_many, of_one_source, unmeasured_items, without_sealed
from leaderboard.rows import JSON, UNKNOWN, Number, OfJudge, Row, number, of_judge
from leaderboard.scope import Scope
from leaderboard.votes import covariates, scores
from stats.arrays import BoolArray
from stats.bias import (
    by_difference,
    difference_of_means,
    high_scores,
    length,
    length_of_scores,
    own_family,
    position,
    within_samples,
)
from stats.proportions import mean
from stats.results import Estimate
from stats.verdicts import FIRST, SECOND, VERDICTS, majority

HUMANS = "humans"
NOTHING = "No verdicts yet."
LEANS = (-1.0, 1.0)  # from the second place to the first
POINTS = {"first": 1, "second": -1}
BY_LOT, ONE_ORDER = "orders drawn by lot", "one order for all: what the answers deserve is in it"
SHORT_SCALE = 101  # steps
LOG_ODDS = "log odds"
NO_FAMILY = "people are the reference, and of no family"
NOT_SCORED = "no answer was scored by people, too"


@dataclass(frozen=True, kw_only=True)
class CurvePoint(Row):
    """Answers or pairs whose difference of lengths lies from ``low`` to ``high``."""

    low: float
    high: float
    difference: float  # the mean one
    value: Number
    n: int


@dataclass(frozen=True, kw_only=True)
class OfModel(Row):
    """What a judge and people give the answers of a model on the same items; of pairs the points, a tie half, and
    ``decided`` the share of wins where both chose a side.
    """

    judge: float
    people: float
    n: int
    judge_decided: float | None = None
    people_decided: float | None = None


@dataclass(frozen=True, kw_only=True)
class Detail(Tested):
    """The numbers behind a bias, or the ``reason`` why there is no value. Fields that do not apply are None.

    Position: the shares of verdicts that stay the same in either order (``consistent``), lean to the ``first`` and to
    the ``second`` place, and p of the sign test; for one order, the shares of people's majority on the same pairs; for
    rankings, the share of each of the ``orders`` given, by letters in the order shown. Length: how often the ``longer``
    answer wins, out of ``longer_n``; ``curve`` is the preference for the longer, or the score beside the mean of its
    sample, against the difference of lengths. Self: the ``family`` and its ``models``, and ``by_model`` what judge and
    people give each (MLLM-as-a-Judge, Figure 20); on short scales the share of each step of the ``scale`` for ``own``
    answers and ``others``, with people's (Figure 19). High scores: both means, and the share of each step.
    """

    consistent: Number | None = None
    first: float | None = None
    second: float | None = None
    people_first: float | None = None
    people_second: float | None = None
    orders: dict[str, float] | None = None
    p: float | None = None
    significant: bool | None = None
    method: str | None = None
    longer: Number | None = None
    longer_n: int | None = None
    unit: str | None = None
    curve: list[CurvePoint] | None = None
    family: str | None = None
    models: list[str] | None = None
    by_model: dict[str, OfModel] | None = None
    own: list[float] | None = None
    own_people: list[float] | None = None
    others: list[float] | None = None
    others_people: list[float] | None = None
    judge_mean: float | None = None
    people_mean: float | None = None
    scale: list[float] | None = None
    judge: list[float] | None = None
    people: list[float] | dict[str, float] | None = None
    reason: str | None = None

    def _columns(self, suffixes: Mapping[str, str]) -> JSON:
        present = {column.name for column in fields(self) if getattr(self, column.name) is not None}
        numbers: set[str] = set()
        for name in present & {"consistent", "longer"}:
            numbers.update(f"{name}{end}" for end in suffixes)
        return {name: value for name, value in super()._columns(suffixes).items() if name in present | numbers}


@dataclass(frozen=True, kw_only=True)
class BiasRow(OfJudge):
    """One bias of a judge, or of people (the judge ``humans``)."""

    judge: str
    run: int | None
    settings: JSON | None
    bias: str
    value: Number = UNKNOWN
    n: int = 0
    detail: Detail
    simulated: bool = False

    @property
    def told(self) -> Number:
        """What pages tell: of the lengths of pairs, by how much the longer answer wins above half."""
        if self.detail.unit != LOG_ODDS:
            return self.value
        won = self.detail.longer or UNKNOWN
        value, low, high = (None if end is None else end - 0.5 for end in won.ends)
        return replace(won, value=value, low=low, high=high)


@dataclass(frozen=True, kw_only=True)
class Beyond:
    """How far from people a judge stands on a bias that is measured of people too. Rows do not hold it."""

    run: int
    bias: str
    difference: Number


@dataclass(frozen=True, eq=False)
class BiasBoard(Board[BiasRow]):
    """``biases``: those that are measured for this kind of verdict; ``labels``: how many people gave; ``beyond``: empty
    in snapshots of before there was any.
    """

    rows: Sequence[BiasRow] = ()
    _: KW_ONLY
    biases: tuple[str, ...] = ()
    labels: int = 0
    beyond: tuple[Beyond, ...] = ()

    @property
    def counted(self) -> dict[str, int]:
        return {"labels": self.labels}


class Counted(NamedTuple):
    """What a mean is of: the value of each row, its group, and between which ends values lie."""

    value: Any
    group: Any
    ends: tuple[float, float]


class Found(NamedTuple):
    """A row, and what it is the mean of, or its difference from people's."""

    row: BiasRow
    counted: Counted | None = None
    difference: Estimate | None = None

    def beside(self, people: "Sequence[Found]") -> "Found":
        """With the difference from people in place of the columns, which are as long as the votes are many. Both answer
        the same questions, so the error is one of both together, group by group.
        """
        theirs = next((each.counted for each in people if each.row.bias == self.row.bias), None)
        ours = self.counted
        if not (ours and theirs and len(ours.value) and len(theirs.value)):
            return self._replace(counted=None)
        low, high = ours.ends
        difference = difference_of_means(
            values=np.concatenate([ours.value, theirs.value]),
            first=np.repeat([True, False], [len(ours.value), len(theirs.value)]),
            cluster=np.concatenate([ours.group, theirs.group]),
            most=high - low,
        )
        return Found(self.row, difference=difference)


def _row(run: Run | None, bias: str, estimate: Estimate | None = None, **detail: Any) -> BiasRow:
    """Of a judge, or of people. ``reason``: why there is no estimate."""
    value = number(estimate)
    if value.value is None and value.reason:
        detail["reason"] = value.reason
    whose = of_judge(run) | {"settings": run.settings} if run else {"judge": HUMANS, "run": None, "settings": None}
    return BiasRow(**whose, bias=bias, value=value, n=value.n or 0, detail=Detail(**detail))


def _bias_board(scope: Scope, found: list[Found], used: list[Run], labels: pd.DataFrame) -> BiasBoard:
    """The board, with the sign tests that are significant at 5% after Benjamini-Hochberg marked."""
    if not found:
        return BiasBoard([], [NOTHING])
    rows = [each.row for each in found]
    details = with_significance([row.detail for row in rows])
    several = any(detail.p is not None for detail in details)
    return BiasBoard(
        [replace(row, detail=detail) for row, detail in zip(rows, details, strict=True)],
        ["Tests on one page count at 5% after Benjamini-Hochberg."] if several else [],
        tuple(run.pk for run in used),
        biases=scope.kind.biases,
        labels=len(labels),
        beyond=tuple(
            Beyond(run=row.run, bias=row.bias, difference=number(difference))
            for row, _, difference in found
            if row.run is not None and difference
        ),
    )


def _families() -> dict[str, str]:
    return dict(EvaluatedModel.objects.exclude(family="").values_list("name", "family"))


# ---- pairs ----


def of_pairs(scope: Scope) -> BiasBoard:
    items = votes.pairs(scope)
    labels = votes.labels_on(scope, items.index)
    truth = majority(labels=labels, rule=scope.rule)[["choice"]] if len(labels) else None
    lengths, families = _lengths(scope, items), _families()
    people: list[Found] = []
    if truth is not None:
        majorities = truth.reset_index().join(items, on="item")
        people = [_position_of_people(scope, items), _length(scope, None, majorities, lengths)]
        people.append(Found(_row(None, "self", reason=NO_FAMILY)))
    found: list[Found] = []
    used: list[Run] = []
    for runs in votes.judge_groups(scope):
        outcomes = votes.of_runs(scope, runs)
        run = runs[-1]
        used += runs
        verdicts = votes.join_items(items, outcomes.frame)
        found.append(_position(scope, run, runs, items, truth).beside(people))
        found.append(_length(scope, run, verdicts, lengths).beside(people))
        found.append(Found(_self_of_pairs(run, verdicts, truth, families)))
    return _bias_board(scope, [*found, *people], used, labels)


def _position(scope: Scope, run: Run, runs: list[Run], items: pd.DataFrame, truth: pd.DataFrame | None) -> Found:
    if members_of(run):
        return Found(_row(run, "position", reason="a jury is shown no answers: its members are"))
    if run.orders != "both":
        return _position_in_one_order(scope, run, runs, items, truth)
    straight, turned, group = _in_both_orders(scope, runs, items)
    if not len(group):
        return Found(_row(run, "position", reason="no pair has a verdict in both orders"))
    result = position(straight=straight, turned=turned, cluster=group)
    detail = {
        "consistent": number(result.consistent),
        "first": result.first.value,
        "second": result.second.value,
        "p": result.test.p,
        "method": "sign test on the pairs that changed with the order",
    }
    return _leaning(run, _lean(straight, turned), group, detail)


def _leaning(run: Run | None, lean: Any, group: Any, detail: Mapping[str, Any]) -> Found:
    """Of leans +1 to what was shown first, -1, 0."""
    row = _row(run, "position", mean(values=lean, cluster=group, ends=LEANS), **detail)
    codes = group.cat.codes.to_numpy() if isinstance(group, pd.Series) else group
    return Found(row, Counted(lean, codes, LEANS))


def _position_in_one_order(
    scope: Scope, run: Run, runs: list[Run], items: pd.DataFrame, truth: pd.DataFrame | None
) -> Found:
    parts = []
    for each in runs:
        item, _, choice, is_turned = votes.verdicts(scope, each)
        in_view, _ = votes.locate(items.index.to_numpy(), item)
        known = in_view & (choice >= 0)
        lean = np.where(is_turned, -1, 1) * np.select([choice == FIRST, choice == SECOND], [1, -1], 0)
        parts.append(pd.DataFrame({"item": item, "lean": lean, "shown": np.where(is_turned, -1, 1)})[known])
    frame = pd.concat(parts)
    if frame.empty:
        return Found(_row(run, "position", reason="no pair has a verdict"))
    detail = _places(frame["lean"], drawn=run.orders == "shuffled")
    if truth is not None:
        shared = frame[frame["item"].isin(truth.index)]
        theirs = shared["shown"] * truth["choice"].reindex(shared["item"]).map(POINTS).fillna(0).to_numpy()
        people = _places(theirs, drawn=True)
        detail |= {"people_first": people["first"], "people_second": people["second"]}
    return _leaning(run, frame["lean"].to_numpy(), items["group"].reindex(frame["item"]), detail)


def _places(lean: "pd.Series[Any]", *, drawn: bool) -> dict[str, Any]:
    """The shares for the first and the second place, of leans +1, 0, -1."""
    first, second = (share(int((lean * sign > 0).sum()), len(lean)) for sign in (1, -1))
    return {"first": first, "second": second, "method": BY_LOT if drawn else ONE_ORDER}


def _in_both_orders(scope: Scope, runs: list[Run], items: pd.DataFrame) -> tuple[Any, Any, Any]:
    """The verdicts of each item and repeat in canonical and in swapped order, where both exist, and the groups."""
    parts = []
    for run in runs:
        item, repeat, choice, is_turned = votes.verdicts(scope, run)
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


def _labels_with_order(scope: Scope, items: pd.DataFrame) -> pd.DataFrame:
    """Labels whose presented order is known, which imported ones do not say: ``item, choice, turned``."""
    rows = scores.labels_as_shown(scope)
    frame = pd.DataFrame(rows.values_list("item", "assignment__order", "choice"), columns=["item", "order", "choice"])
    return frame[frame["item"].isin(items.index)].assign(turned=frame["order"] == "10")


def _position_of_people(scope: Scope, items: pd.DataFrame) -> Found:
    frame = _labels_with_order(scope, items)
    if frame.empty:
        return Found(_row(None, "position", reason="no label says in which order its answers were shown"))
    lean = np.where(frame["turned"], -1, 1) * frame["choice"].map(POINTS).fillna(0)
    return _leaning(None, lean.to_numpy(), items["group"].reindex(frame["item"]), _places(lean, drawn=True))


@dataclass(frozen=True, kw_only=True)
class PlaceRow(Row):
    """A model's win rate where its answer was shown ``first`` or ``second``, each verdict by itself."""

    model: str
    shown: str
    win_rate: Number
    tie_rule: str
    n: int


def by_place(scope: Scope) -> list[PlaceRow]:
    """The win rates of all models by the place of their answers; against the anchor, where there is one.

    A judge's verdicts in two orders count as two. None of verdicts that do not say in which order answers were shown.
    """
    scope = of_one_source(without_sealed(scope))
    items = votes.pairs(scope)
    if scope.by_people:
        frame = _labels_with_order(scope, items)
        item, turned, choice = (frame[name].to_numpy() for name in ("item", "turned", "choice"))
        first, second = (choice == side for side in ("first", "second"))
    else:
        of_runs = [votes.verdicts(scope, run) for run in votes.outcomes(scope).runs]
        item = np.concatenate([verdicts.item for verdicts in of_runs])
        code = np.concatenate([verdicts.choice for verdicts in of_runs])
        turned = np.concatenate([verdicts.turned for verdicts in of_runs])
        known = np.isin(item, items.index) & (code >= 0)
        item, code, turned = item[known], code[known], turned[known]
        first, second = code == FIRST, code == SECOND
    of_item = items.reindex(item)
    turned = turned.astype(bool)
    sides = [
        pd.DataFrame(
            {
                "model": of_item[own].to_numpy(),
                "other": of_item[other].to_numpy(),
                "group": of_item["group"].to_numpy(),
                "outcome": np.select([won, lost], [votes.WIN, votes.LOSS], votes.TIE),
                "second": is_second,
            }
        )
        for own, other, won, lost, is_second in (("a", "b", first, second, turned), ("b", "a", second, first, ~turned))
    ]
    rows = pd.concat(sides)
    if scope.anchor:
        rows = rows[(rows["other"] == scope.anchor) & (rows["model"] != scope.anchor)]
    return [
        PlaceRow(
            model=str(model),
            shown="second" if is_second else "first",
            win_rate=number(votes.share_won(of_place, scope.ties)),
            tie_rule=scope.ties,
            n=len(of_place),
        )
        for (model, is_second), of_place in rows.groupby(["model", "second"], observed=True)
    ]


def _lengths(scope: Scope, items: pd.DataFrame) -> pd.DataFrame:
    """The lengths of the two answers by item: in tokens if all are known, otherwise in words."""
    sides, _ = covariates.lengths(scope, items.index.to_numpy())
    return pd.DataFrame(np.stack(sides, axis=1), index=items.index)


def _length(scope: Scope, run: Run | None, verdicts: pd.DataFrame, lengths: pd.DataFrame) -> Found:
    """Over the decided pairs, the curve over all; a judge's repeats are rows in the same cluster."""
    tokens = lengths.reindex(verdicts["item"]).to_numpy(np.float64).reshape(-1, 2)
    measured = np.isfinite(tokens).all(axis=1)
    verdicts, tokens = verdicts[measured], tokens[measured]
    difference, group = tokens[:, 0] - tokens[:, 1], verdicts["group"].to_numpy()
    first, second = ((verdicts["choice"] == side).to_numpy() for side in ("first", "second"))
    decided, differ = first | second, difference != 0
    result = length(won=first[decided].astype(np.float64), tokens=tokens[decided], cluster=group[decided])
    longer_won = np.where(difference > 0, first, second) + 0.5 * ~decided
    item = verdicts["item"].to_numpy()[differ]
    row = _row(
        run,
        "length",
        result.slope,
        longer=number(result.longer),
        longer_n=result.longer.n,
        unit=LOG_ODDS,
        curve=_curve(scope, item, np.abs(difference[differ]), longer_won[differ], group[differ], (0.0, 1.0)),
    )
    of_share = decided & differ
    return Found(row, Counted(longer_won[of_share], verdicts["group"].cat.codes.to_numpy()[of_share], (0.0, 1.0)))


def _curve(
    scope: Scope, item: Any, difference: Any, value: Any, group: Any, ends: tuple[float, float]
) -> list[CurvePoint]:
    """Without the bins that hold few items which people label blind."""
    points = []
    for of in by_difference(difference=difference, value=value, cluster=group, ends=ends):
        within = pd.DataFrame({"item": item[(of.low <= difference) & (difference <= of.high)]})
        if of_many(scope, within).all():
            value_of = number(of.value)
            points.append(CurvePoint(low=of.low, high=of.high, difference=of.difference, value=value_of, n=of.value.n))
    return points


def _self_of_pairs(run: Run, verdicts: pd.DataFrame, truth: pd.DataFrame | None, families: dict[str, str]) -> BiasRow:
    family = run.judge.family
    if not family:
        return _row(run, "self", reason="the judge's family is not known")
    if truth is None:
        return _row(run, "self", reason="no labels by people to compare with")
    paired = verdicts.join(truth.rename(columns={"choice": "people"}), on="item", how="inner")
    sides = []
    for side, sign in (("a", 0.5), ("b", -0.5)):
        points = {
            who: 0.5 + sign * paired[column].astype(object).map(POINTS).fillna(0.0)
            for who, column in (("judge", "choice"), ("people", "people"))
        }
        sides.append(pd.DataFrame(points | {"model": paired[side], "group": paired["group"]}))
    return _own(run, pd.concat(sides, ignore_index=True), families, width=1.0)


def _own(run: Run, frame: pd.DataFrame, families: dict[str, str], *, width: float) -> BiasRow:
    of_family = frame["model"].map(families).eq(run.judge.family).to_numpy()
    if not of_family.any() or of_family.all():
        return _row(run, "self", reason=f"no answers of the family {run.judge.family}, or no others")
    estimate = own_family(
        judge=frame["judge"].to_numpy(),
        people=frame["people"].to_numpy(),
        own=of_family,
        cluster=frame["group"].to_numpy(),
        width=width,
    )
    models = sorted(set(frame.loc[of_family, "model"]))
    by_model = {str(name): _given(rows, pairs=width == 1.0) for name, rows in frame.groupby("model", observed=True)}
    more = _densities(frame, of_family)
    return _row(run, "self", estimate, family=run.judge.family, models=models, by_model=by_model, **more)


def _given(rows: pd.DataFrame, *, pairs: bool) -> OfModel:
    given = OfModel(judge=float(rows["judge"].mean()), people=float(rows["people"].mean()), n=len(rows))
    if not pairs:
        return given
    decided = {who: (rows[who] == 1.0)[rows[who] != 0.5] for who in ("judge", "people")}
    shares: dict[str, Any] = {f"{who}_decided": float(won.mean()) for who, won in decided.items() if len(won)}
    return replace(given, **shares)


def _densities(frame: pd.DataFrame, of_family: BoolArray) -> dict[str, Any]:
    """What judge and people give to answers of the judge's family and to others, as shares of each step."""
    scale = np.unique(frame[["judge", "people"]].round(9).to_numpy())
    if len(scale) > SHORT_SCALE:
        return {}
    columns = {"scale": scale.tolist()}
    for name, rows in (("own", frame[of_family]), ("others", frame[~of_family])):
        for who, suffix in (("judge", ""), ("people", "_people")):
            at = np.searchsorted(scale, rows[who].round(9).to_numpy())
            columns[name + suffix] = (np.bincount(at, minlength=len(scale)) / len(rows)).tolist()
    return columns


# ---- scores ----


def of_scores(scope: Scope) -> BiasBoard:
    items = scores.items_of(scope)
    labels = scores.labels_on(scope, items)
    truth = labels.groupby("item")["value"].mean() if len(labels) else pd.Series(dtype=float)
    lengths, families = _lengths_of_answers(scope, items), _families()
    low, high = scope.kind.ends(scope.benchmark)
    found: list[Found] = []
    used: list[Run] = []
    for runs in votes.judge_groups(scope):
        verdicts = scope.kind.numbers(scope, scores.of_runs(scope, runs), items)
        run = runs[-1]
        used += runs
        judge_means = verdicts.groupby("item")["value"].mean()
        paired = judge_means.rename("judge").reset_index()
        paired = paired.join(truth.rename("people"), on="item", how="inner").join(items, on="item", how="inner")
        found.append(Found(_high(run, paired, high - low)))
        found.append(_length_of_scores(scope, run, judge_means, items, lengths, truth if len(labels) else None))
        found.append(Found(_self_of_scores(run, paired, families, high - low)))
    if len(labels):
        shares = _distribution(labels["value"])
        found.append(Found(_row(None, "high_score", people=shares, reason="people are the reference")))
        found.append(_length_of_scores(scope, None, truth, items, lengths))
        found.append(Found(_row(None, "self", reason=NO_FAMILY)))
    return _bias_board(scope, found, used, labels)


def _high(run: Run, paired: pd.DataFrame, width: float) -> BiasRow:
    if paired.empty:
        return _row(run, "high_score", reason=NOT_SCORED)
    judge, people = paired["judge"].to_numpy(np.float64), paired["people"].to_numpy(np.float64)
    distributions = high_scores(judge=judge, people=people)
    steps: dict[str, Any] = {}
    if len(distributions.scale) <= SHORT_SCALE:
        steps = {name: list(getattr(distributions, name)) for name in ("scale", "judge", "people")}
    difference = mean(values=judge - people, cluster=paired["group"].to_numpy(), ends=(-width, width))
    means = {"judge_mean": float(judge.mean()), "people_mean": float(people.mean())}
    return _row(run, "high_score", difference, **means, **steps)


def _lengths_of_answers(scope: Scope, items: pd.DataFrame) -> "pd.Series[float]":
    """The length of each answer that may be told, by item: in tokens if all are known, otherwise in words."""
    single = items.index[items["models"].map(len) == 1].difference(unmeasured_items(scope))
    if not len(single):
        return pd.Series(dtype=float)
    places = ItemResponse.objects.filter(item__in=Item.objects.filter(pk__in=single), position=0)
    tokens = dict(places.values_list("item_id", "response__tokens"))
    if None in tokens.values():
        texts = places.values_list("item_id", "response__text").iterator()
        tokens = {item: len(text.split()) for item, text in texts}
    return pd.Series(tokens, dtype=float)


def _length_of_scores(
    scope: Scope,
    run: Run | None,
    given: "pd.Series[float]",
    items: pd.DataFrame,
    lengths: "pd.Series[float]",
    truth: "pd.Series[float] | None" = None,
) -> Found:
    """Scores by item, and lengths, beside the means of all answers to the same sample that have a score."""
    sides = _within_samples(given, items, lengths)
    if sides is None:
        return Found(_row(run, "length", reason="no sample has scores of two answers"))
    score, tokens, group, item = sides
    most = float(np.abs(score).max()) or 1.0
    row = _row(
        run,
        "length",
        length_of_scores(score=score, tokens=tokens, cluster=group),
        unit="points",
        curve=_curve(scope, item, tokens, score, group, (-most, most)),
    )
    # A slope is linear in the scores: on the same answers, that of the difference is the difference of both.
    both = _within_samples((given - truth).dropna(), items, lengths) if truth is not None else None
    if both is None:
        return Found(row)
    score, tokens, group, _ = both
    return Found(row, difference=length_of_scores(score=score, tokens=tokens, cluster=group))


def _within_samples(
    given: "pd.Series[float]", items: pd.DataFrame, lengths: "pd.Series[float]"
) -> tuple[Any, Any, Any, Any] | None:
    """Scores and lengths less the means of their samples, the groups and the items; None where no sample has two."""
    frame = given.rename("value").reset_index().join(items[["sample", "group"]], on="item", how="inner")
    frame = frame.assign(tokens=frame["item"].map(lengths)).dropna()
    frame = frame[frame.groupby("sample")["item"].transform("size") > 1]
    if frame.empty:
        return None
    score, tokens = (within_samples(frame[column], frame["sample"]) for column in ("value", "tokens"))
    return score, tokens, frame["group"].to_numpy(), frame["item"].to_numpy()


def _self_of_scores(run: Run, paired: pd.DataFrame, families: dict[str, str], width: float) -> BiasRow:
    if not run.judge.family:
        return _row(run, "self", reason="the judge's family is not known")
    paired = paired[paired["models"].map(len) == 1]
    if paired.empty:
        return _row(run, "self", reason=NOT_SCORED)
    return _own(run, paired.assign(model=paired["models"].str[0]), families, width=width)


def _distribution(values: "pd.Series[Any]") -> dict[str, float]:
    counted = values.value_counts(normalize=True).sort_index()
    return {f"{step:g}": float(part) for step, part in counted.items()}


# ---- rankings ----


def of_rankings(scope: Scope) -> BiasBoard:
    """How far judges, and people, follow the order in which they were shown the answers."""
    items = scores.items_of(scope)
    labels = scores.labels_of(scope)
    people: list[Found] = []
    if len(labels):
        shown = scores.labels_as_shown(scope).values_list("item_id", "assignment__order", "ranking")
        people = [_follows(None, shown, items)]
    found: list[Found] = []
    used: list[Run] = []
    for runs in votes.judge_groups(scope):
        judgments = counted_judgments(scope, scope.kind.judgments(runs)).values_list("item_id", "order", "ranking")
        found.append(_follows(runs[-1], judgments, items).beside(people))
        used += runs
    return _bias_board(scope, [*found, *people], used, labels)


def _follows(run: Run | None, verdicts: Iterable[Any], items: pd.DataFrame) -> Found:
    """``verdicts``: the item, the presented order and the ranking of each."""
    counted = [(item, order, ranking) for item, order, ranking in verdicts if item in items.index]
    if not counted:
        return Found(_row(run, "position", reason="no ranking says in which order its answers were shown"))
    lean: list[float] = []
    given: Counter[str] = Counter()
    for _, order, ranking in counted:
        places = scores.places_in(ranking)
        shown = [places[int(answer)] for answer in order]
        lean.append(float(np.mean([np.sign(later - earlier) for earlier, later in combinations(shown, 2)])))
        letter = {int(answer): ascii_uppercase[place] for place, answer in enumerate(order)}
        given[" ".join("=".join(sorted(letter[answer] for answer in group)) for group in ranking)] += 1
    orders = {order: n / len(counted) for order, n in sorted(given.items(), key=lambda pair: (-pair[1], pair[0]))}
    drawn = run is None or run.orders == "shuffled"
    group = items["group"].reindex([item for item, *_ in counted]).to_numpy()
    return _leaning(run, np.array(lean), group, {"orders": orders, "method": BY_LOT if drawn else ONE_ORDER})
