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
from typing import Any

import numpy as np
import pandas as pd

from bank.models import EvaluatedModel, Item, ItemResponse
from judging.extras.juries import members_of
from judging.models import Run
from leaderboard import votes
from leaderboard.boards.base import Board, Tested, share, with_significance
from leaderboard.hidden import counted_judgments, of_one_source, unmeasured_items, without_sealed
from leaderboard.rows import JSON, UNKNOWN, Number, OfJudge, Row, number, of_judge
from leaderboard.scope import Scope
from leaderboard.votes import covariates, scores
from stats.arrays import BoolArray
from stats.bias import (
    Bin,
    by_difference,
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


@dataclass(frozen=True, eq=False)
class BiasBoard(Board[BiasRow]):
    """``biases``: those that are measured for this kind of verdict; ``labels``: how many people gave."""

    rows: Sequence[BiasRow] = ()
    _: KW_ONLY
    biases: tuple[str, ...] = ()
    labels: int = 0

    @property
    def counted(self) -> dict[str, int]:
        return {"labels": self.labels}


def _bias_row(run: Run | None, bias: str, estimate: Estimate | None, detail: Detail) -> BiasRow:
    """Of a judge, or of people."""
    value = number(estimate)
    if value.value is None and value.reason:
        detail = replace(detail, reason=value.reason)
    row = BiasRow(judge=HUMANS, run=None, settings=None, bias=bias, value=value, n=value.n or 0, detail=detail)
    if run is None:
        return row
    return replace(row, **of_judge(run), settings=run.settings)


def _absent(run: Run | None, bias: str, reason: str) -> BiasRow:
    return _bias_row(run, bias, None, Detail(reason=reason))


def _bias_board(scope: Scope, rows: list[BiasRow], used: list[Run], labels: pd.DataFrame) -> BiasBoard:
    """The board, with the sign tests that are significant at 5% after Benjamini-Hochberg marked."""
    if not rows:
        return BiasBoard([], [NOTHING])
    details = with_significance([row.detail for row in rows])
    marked = [replace(row, detail=detail) for row, detail in zip(rows, details, strict=True)]
    several = any(detail.p is not None for detail in details)
    notes = ["Tests on one page count at 5% after Benjamini-Hochberg."] if several else []
    runs = tuple(run.pk for run in used)
    return BiasBoard(marked, notes, runs, biases=scope.kind.biases, labels=len(labels))


# ---- pairs ----


def of_pairs(scope: Scope) -> BiasBoard:
    items = votes.pairs(scope)
    labels = votes.labels_on(scope, items.index)
    truth = majority(labels=labels, rule=scope.rule)[["choice"]] if len(labels) else None
    lengths = _lengths(scope, items)
    families = dict(EvaluatedModel.objects.exclude(family="").values_list("name", "family"))
    rows: list[BiasRow] = []
    used: list[Run] = []
    for runs in votes.judge_groups(scope):
        outcomes = votes.of_runs(scope, runs)
        run = runs[-1]
        used += runs
        verdicts = votes.join_items(items, outcomes.frame)
        rows += [_position(scope, run, runs, items, truth), _length(run, verdicts, lengths)]
        rows.append(_self_of_pairs(run, verdicts, truth, families))
    if truth is not None:
        rows.append(_position_of_people(scope, items))
        majorities = truth.reset_index().join(items, on="item")
        rows.append(_length(None, majorities, lengths))
        rows.append(_absent(None, "self", "people are the reference, and of no family"))
    return _bias_board(scope, rows, used, labels)


def _position(scope: Scope, run: Run, runs: list[Run], items: pd.DataFrame, truth: pd.DataFrame | None) -> BiasRow:
    if members_of(run):
        return _absent(run, "position", "a jury is shown no answers: its members are")
    if run.orders != "both":
        return _position_in_one_order(scope, run, runs, items, truth)
    straight, turned, group = _in_both_orders(scope, runs, items)
    if not len(group):
        return _absent(run, "position", "no pair has a verdict in both orders")
    result = position(straight=straight, turned=turned, cluster=group)
    lean = _lean(straight, turned)
    detail = Detail(
        consistent=number(result.consistent),
        first=result.first.value,
        second=result.second.value,
        p=result.test.p,
        method="sign test on the pairs that changed with the order",
    )
    return _bias_row(run, "position", mean(values=lean, cluster=group, ends=LEANS), detail)


def _position_in_one_order(
    scope: Scope, run: Run, runs: list[Run], items: pd.DataFrame, truth: pd.DataFrame | None
) -> BiasRow:
    parts = []
    for each in runs:
        item, _, choice, is_turned = votes.verdicts(scope, each)
        in_view, _ = votes.locate(items.index.to_numpy(), item)
        known = in_view & (choice >= 0)
        lean = np.where(is_turned, -1, 1) * np.select([choice == FIRST, choice == SECOND], [1, -1], 0)
        parts.append(pd.DataFrame({"item": item, "lean": lean, "shown": np.where(is_turned, -1, 1)})[known])
    frame = pd.concat(parts)
    if frame.empty:
        return _absent(run, "position", "no pair has a verdict")
    group = items["group"].reindex(frame["item"]).to_numpy()
    detail = _places(frame["lean"], run.orders == "shuffled")
    if truth is not None:
        shared = frame[frame["item"].isin(truth.index)]
        theirs = shared["shown"] * truth["choice"].reindex(shared["item"]).map(POINTS).fillna(0).to_numpy()
        people = _places(theirs, drawn=True)
        detail = replace(detail, people_first=people.first, people_second=people.second)
    return _bias_row(run, "position", mean(values=frame["lean"].to_numpy(), cluster=group, ends=LEANS), detail)


def _places(lean: "pd.Series[Any]", drawn: bool) -> Detail:
    """The shares for the first and the second place, of leans +1, 0, -1."""
    return Detail(
        first=share(int((lean > 0).sum()), len(lean)),
        second=share(int((lean < 0).sum()), len(lean)),
        method=BY_LOT if drawn else ONE_ORDER,
    )


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


def _position_of_people(scope: Scope, items: pd.DataFrame) -> BiasRow:
    frame = _labels_with_order(scope, items)
    if frame.empty:
        return _absent(None, "position", "no label says in which order its answers were shown")
    lean = np.where(frame["turned"], -1, 1) * frame["choice"].map(POINTS).fillna(0)
    detail = _places(lean, drawn=True)
    group = items["group"].reindex(frame["item"]).to_numpy()
    return _bias_row(None, "position", mean(values=lean.to_numpy(), cluster=group, ends=LEANS), detail)


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


def _length(run: Run | None, verdicts: pd.DataFrame, lengths: pd.DataFrame) -> BiasRow:
    """Over the decided pairs, the curve over all; a judge's repeats are rows in the same cluster."""
    tokens = lengths.reindex(verdicts["item"]).to_numpy(np.float64).reshape(-1, 2)
    measured = np.isfinite(tokens).all(axis=1)
    verdicts, tokens = verdicts[measured], tokens[measured]
    difference, group = tokens[:, 0] - tokens[:, 1], verdicts["group"].to_numpy()
    first, second = ((verdicts["choice"] == side).to_numpy() for side in ("first", "second"))
    decided, differ = first | second, difference != 0
    result = length(won=first[decided].astype(np.float64), tokens=tokens[decided], cluster=group[decided])
    longer_won = np.where(difference > 0, first, second) + 0.5 * ~decided
    curve = by_difference(
        difference=np.abs(difference[differ]), value=longer_won[differ], cluster=group[differ], ends=(0.0, 1.0)
    )
    detail = Detail(
        longer=number(result.longer), longer_n=result.longer.n, unit="log odds", curve=[_point(each) for each in curve]
    )
    return _bias_row(run, "length", result.slope, detail)


def _point(of: Bin) -> CurvePoint:
    return CurvePoint(low=of.low, high=of.high, difference=of.difference, value=number(of.value), n=of.value.n)


def _self_of_pairs(run: Run, verdicts: pd.DataFrame, truth: pd.DataFrame | None, families: dict[str, str]) -> BiasRow:
    family = run.judge.family
    if not family:
        return _absent(run, "self", "the judge's family is not known")
    if truth is None:
        return _absent(run, "self", "no labels by people to compare with")
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
        return _absent(run, "self", f"no answers of the family {run.judge.family}, or no others")
    estimate = own_family(
        judge=frame["judge"].to_numpy(),
        people=frame["people"].to_numpy(),
        own=of_family,
        cluster=frame["group"].to_numpy(),
        width=width,
    )
    models = sorted(set(frame.loc[of_family, "model"]))
    by_model = {str(name): _given(rows, pairs=width == 1.0) for name, rows in frame.groupby("model", observed=True)}
    detail = Detail(family=run.judge.family, models=models, by_model=by_model)
    return _bias_row(run, "self", estimate, replace(detail, **_densities(frame, of_family)))


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
    families = dict(EvaluatedModel.objects.exclude(family="").values_list("name", "family"))
    truth = labels.groupby("item")["value"].mean() if len(labels) else pd.Series(dtype=float)
    lengths = _lengths_of_answers(scope, items)
    low, high = scope.kind.ends(scope.benchmark)
    rows: list[BiasRow] = []
    used: list[Run] = []
    for runs in votes.judge_groups(scope):
        verdicts = scope.kind.numbers(scope, scores.of_runs(scope, runs), items)
        run = runs[-1]
        used += runs
        judge_means = verdicts.groupby("item")["value"].mean().rename("judge").reset_index()
        paired = judge_means.join(truth.rename("people"), on="item", how="inner").join(items, on="item", how="inner")
        rows.append(_high(run, paired, high - low))
        of_judge = judge_means.rename(columns={"judge": "value"})
        rows.append(_length_of_scores(run, of_judge, items, lengths))
        rows.append(_self_of_scores(run, paired, families, high - low))
    if len(labels):
        shares = _distribution(labels["value"])
        rows.append(_bias_row(None, "high_score", None, Detail(people=shares, reason="people are the reference")))
        rows.append(_length_of_scores(None, truth.rename("value").reset_index(), items, lengths))
        rows.append(_absent(None, "self", "people are the reference, and of no family"))
    return _bias_board(scope, rows, used, labels)


def _high(run: Run, paired: pd.DataFrame, width: float) -> BiasRow:
    if paired.empty:
        return _absent(run, "high_score", "no answer was scored by people, too")
    judge, people = paired["judge"].to_numpy(np.float64), paired["people"].to_numpy(np.float64)
    distributions = high_scores(judge=judge, people=people)
    detail = Detail(judge_mean=float(judge.mean()), people_mean=float(people.mean()))
    if len(distributions.scale) <= SHORT_SCALE:
        detail = replace(
            detail, scale=list(distributions.scale), judge=list(distributions.judge), people=list(distributions.people)
        )
    difference = mean(values=judge - people, cluster=paired["group"].to_numpy(), ends=(-width, width))
    return _bias_row(run, "high_score", difference, detail)


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
    run: Run | None, verdicts: pd.DataFrame, items: pd.DataFrame, lengths: "pd.Series[float]"
) -> BiasRow:
    """Scores (``item, value``) and lengths beside the means of all answers to the same sample that have a score."""
    frame = verdicts.join(items[["sample", "group"]], on="item", how="inner")
    frame = frame.assign(tokens=frame["item"].map(lengths)).dropna()
    frame = frame[frame.groupby("sample")["item"].transform("size") > 1]
    if frame.empty:
        return _absent(run, "length", "no sample has scores of two answers")
    score, tokens = (within_samples(frame[column], frame["sample"]) for column in ("value", "tokens"))
    group, most = frame["group"].to_numpy(), float(np.abs(score).max()) or 1.0
    curve = by_difference(difference=tokens, value=score, cluster=group, ends=(-most, most))
    slope = length_of_scores(score=score, tokens=tokens, cluster=group)
    return _bias_row(run, "length", slope, Detail(unit="points", curve=[_point(each) for each in curve]))


def _self_of_scores(run: Run, paired: pd.DataFrame, families: dict[str, str], width: float) -> BiasRow:
    if not run.judge.family:
        return _absent(run, "self", "the judge's family is not known")
    paired = paired[paired["models"].map(len) == 1]
    if paired.empty:
        return _absent(run, "self", "no answer was scored by people, too")
    return _own(run, paired.assign(model=paired["models"].str[0]), families, width=width)


def _distribution(values: "pd.Series[Any]") -> dict[str, float]:
    counted = values.value_counts(normalize=True).sort_index()
    return {f"{step:g}": float(part) for step, part in counted.items()}


# ---- rankings ----


def of_rankings(scope: Scope) -> BiasBoard:
    """How far judges, and people, follow the order in which they were shown the answers."""
    items = scores.items_of(scope)
    rows: list[BiasRow] = []
    used: list[Run] = []
    for runs in votes.judge_groups(scope):
        judgments = counted_judgments(scope, scope.kind.judgments(runs)).values_list("item_id", "order", "ranking")
        rows.append(_follows(runs[-1], judgments, items, drawn=runs[-1].orders == "shuffled"))
        used += runs
    labels = scores.labels_of(scope)
    if len(labels):
        of_campaigns = scores.labels_as_shown(scope)
        shown = of_campaigns.values_list("item_id", "assignment__order", "ranking")
        rows.append(_follows(None, shown, items, drawn=True))
    return _bias_board(scope, rows, used, labels)


def _follows(run: Run | None, verdicts: Iterable[Any], items: pd.DataFrame, *, drawn: bool) -> BiasRow:
    """``verdicts``: the item, the presented order and the ranking of each."""
    counted = [(item, order, ranking) for item, order, ranking in verdicts if item in items.index]
    if not counted:
        return _absent(run, "position", "no ranking says in which order its answers were shown")
    lean = []
    given: Counter[str] = Counter()
    for _, order, ranking in counted:
        places = scores.places_in(ranking)
        shown = [places[int(answer)] for answer in order]
        lean.append(float(np.mean([np.sign(later - earlier) for earlier, later in combinations(shown, 2)])))
        letter = {int(answer): ascii_uppercase[place] for place, answer in enumerate(order)}
        given[" ".join("=".join(sorted(letter[answer] for answer in group)) for group in ranking)] += 1
    orders = {order: n / len(counted) for order, n in sorted(given.items(), key=lambda pair: (-pair[1], pair[0]))}
    detail = Detail(orders=orders, method=_places(pd.Series(lean), drawn).method)
    group = items["group"].reindex([item for item, *_ in counted]).to_numpy()
    return _bias_row(run, "position", mean(values=np.array(lean), cluster=group, ends=LEANS), detail)
