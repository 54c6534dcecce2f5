"""The board of models: win rates, Bradley-Terry and Elo."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, asdict, dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from leaderboard import votes
from leaderboard.boards.base import Level, ModelRow, ModelsBoard, apart, best_of, by_rank, share, view_in_json
from leaderboard.boards.models.controlled import Coefficient, length_controlled, strengths
from leaderboard.hidden import counts_sealed, in_parts
from leaderboard.kept.hourly import at_most_hourly
from leaderboard.kept.values import key_of
from leaderboard.methods import SEED
from leaderboard.rows import UNKNOWN, Number, Row, number
from leaderboard.scope import BOTH_ORDERS, EXCLUDE, NO_CONTROL, NO_ELO, NO_TIES, WRONG, Scope
from stats import bradley_terry, elo
from stats.arrays import BoolArray, IntArray, counted
from stats.proportions import rates
from stats.ranks import Behind, behind, significantly_better

NO_VERDICTS = "No verdicts yet."


@dataclass(frozen=True, kw_only=True)
class Tally(Row):
    """Pairs won, tied and lost, averaged over repeats; None for a model without any."""

    wins: float | None = None
    ties: float | None = None
    losses: float | None = None
    win_rate: Number = UNKNOWN

    @property
    def outcomes(self) -> tuple[float | None, float | None, float | None]:
        return self.wins, self.ties, self.losses


@dataclass(frozen=True, kw_only=True)
class LevelTally(Tally, Level):
    n: int


@dataclass(frozen=True, kw_only=True)
class PairRow(Tally, ModelRow):
    """A model by votes between two answers. ``bt`` is natural-log strength with mean 0; ``tie_rule`` says what a tie
    counts in the win rates: none, half, or drop where ties are left out.

    ``failures``: the items on which the judge failed, which count by ``failure_rule``; ``win_rate_best`` and
    ``win_rate_worst`` are the win rates if the model had won, or lost, all of these. ``order_rule``: whether both
    orders of a pair must have a verdict, or any. ``coverage`` is of verdicts.

    ``win_rate_lc``: the win rate against the anchor if answers were equally long, in ``length_unit``. ``bt`` and ranks
    have ``control`` taken out; ``coefficients`` says by name what that was worth, the same in every row.

    ``preference``: of graded votes, the mean preference for the model's answers, 1 where all are much better. A strong
    vote counts ``strong_weight`` times in ``bt`` and ranks.
    """

    tie_rule: str = NO_TIES
    failure_rule: str = EXCLUDE
    win_rate_best: float | None = None
    win_rate_worst: float | None = None
    win_rate_lc: Number = UNKNOWN
    length_unit: str = ""
    elo: Number = UNKNOWN
    bt: Number = UNKNOWN
    preference: Number = UNKNOWN
    strong_weight: int = 1
    control: str = NO_CONTROL
    coefficients: dict[str, Coefficient] = field(default_factory=dict)
    n: int
    failures: int = 0
    coverage: float | None = None
    levels: dict[str, LevelTally] = field(default_factory=dict)
    order_rule: str = BOTH_ORDERS


@dataclass(frozen=True, eq=False)
class PairsBoard(ModelsBoard):
    """``outcomes``: how many were counted; ``coverage`` over all models; ``clustered_by``: group or item;
    ``worse``: by model those that are significantly worse (see ``stats.ranks.significantly_better``), of a live board.
    """

    rated: ClassVar[bool] = True
    rows: Sequence[PairRow] = ()
    _: KW_ONLY
    ranked_by: str = "bt"
    outcomes: int = 0
    coverage: float | None = None
    repeats: int = 1
    clustered_by: str = ""
    worse: dict[str, list[str]] = field(default_factory=dict)

    @property
    def graded(self) -> bool:
        """Whether votes say how much better an answer is."""
        return any(row.preference.value is not None for row in self.rows)

    @property
    def level_columns(self) -> list[list[str]]:
        levels = list(self.rows[0].levels) if self.rows else []
        return [] if levels in ([], [""]) else [levels]


def items_in(scope: Scope) -> pd.DataFrame:
    """The items of the view, see ``votes.pairs``, without the models that an edition leaves out."""
    items = votes.pairs(scope)
    if scope.without:
        items = items[~(items["a"].isin(scope.without) | items["b"].isin(scope.without))]
    return items


def by_pairs(scope: Scope) -> PairsBoard:
    """Wins, ties, losses, win rate, Bradley-Terry and Elo of every model (MLLM-Bench, Table 5)."""
    items = items_in(scope)[["level", "group", "a", "b"]]
    outcomes = votes.outcomes(scope)
    repeats, runs = outcomes.repeats, tuple(run.pk for run in outcomes.runs)
    expected = votes.among(items, outcomes.expected)[1]
    sides = [items[side].cat.codes.to_numpy()[expected] for side in ("a", "b")]
    frame = votes.join_items(items, votes.with_failures(outcomes, scope.failures))
    failed = frame.iloc[:0]
    if len(outcomes.failed):
        failed = votes.join_items(items, votes.with_failures(outcomes, WRONG))
    del items, outcomes, expected  # with a million votes, each takes as much memory as the results
    if frame.empty:
        return PairsBoard([], [NO_VERDICTS], runs)
    if scope.elo != "online" and not frame["item"].is_monotonic_increasing:
        frame = frame.sort_values(["item", "repeat"], kind="stable")
    battle = Battle.of(frame, anchor=scope.anchor, strong=int(scope.weight))
    found = strengths(scope, battle)
    rating = found.fit
    elo_of, as_of = ({}, []) if counts_sealed(scope) else _elo(scope, battle)  # in full it tells each vote of the order
    anchor = scope.anchor if scope.anchor in battle.place else ""
    at_length = length_controlled(scope, battle, anchor)
    names = battle.names
    del battle
    code_of = {str(name): code for code, name in enumerate(frame["a"].cat.categories)}
    counts_of = partial(_counted, anchor=code_of.get(anchor), models=len(code_of))
    judged = votes.judged(frame)
    first = _first_of_item(judged["item"])
    judged_sides = [judged[side].cat.codes.to_numpy()[first] for side in ("a", "b")]
    judged_counts, expected_counts = (counts_of(*of).tolist() for of in (judged_sides, sides))
    judged_items, expected_items = len(judged_sides[0]), len(sides[0])
    del judged, judged_sides, sides
    extremes = _extremes(failed, anchor, scope.ties)
    preferences = votes.mean_preferences(votes.sided(frame, anchor)) if "preference" in frame else {}
    first = _first_of_item(frame["item"])
    tallies = Tallies(frame, anchor=code_of.get(anchor), first=first, ties=scope.ties)
    with_anchor = (frame["a"] == anchor) | (frame["b"] == anchor)
    items_of_anchor = int((first & with_anchor.to_numpy()).sum())
    by_level = _by_level(scope, frame, anchor=code_of.get(anchor), first=first)
    rows = []
    for name in names:
        fit, code = rating.ratings[name], code_of[name]
        row = PairRow(
            model=name,
            rank=fit.rank,
            rank_low=fit.rank_low,
            rank_high=fit.rank_high,
            tier=fit.tier,
            **tallies.of(code),
            tie_rule=scope.ties,
            failure_rule=scope.failures or EXCLUDE,
            order_rule=scope.orders,
            **extremes.get(name, {}),
            win_rate_lc=number(at_length.rates.get(name)),
            length_unit=at_length.unit,
            elo=elo_of.get(name, UNKNOWN),
            bt=number(fit.strength),
            preference=number(preferences.get(name)),
            strong_weight=int(scope.weight),
            control=scope.control,
            coefficients=found.coefficients,
            n=items_of_anchor if name == anchor else tallies.items[code],
            coverage=share(judged_counts[code], expected_counts[code]),
            levels={level: LevelTally(**part.of(code), n=part.items[code]) for level, part in by_level.items()},
        )
        rows.append(row)
    board = PairsBoard(
        sorted(rows, key=by_rank),
        [*rating.notes, *rating.warnings, *found.notes, *at_length.notes, *as_of],
        runs,
        items=int(first.sum()),
        outcomes=len(frame),
        coverage=share(judged_items, expected_items),
        repeats=repeats,
        clustered_by=rating.clustered_by,
    )
    if scope.edition or not rating.tested:
        return board
    best = best_of(dict(zip(rating.rated, rating.best.tolist(), strict=True)), rating.islands)
    return replace(
        board,
        notes=[*board.notes, *best],
        worse=_worse(rating),
        apart=apart(rows, "bt", _behind(rating)),
    )


def _by_level(scope: Scope, frame: pd.DataFrame, *, anchor: int | None, first: BoolArray) -> "dict[str, Tallies]":
    counted = in_parts(scope, frame, by="level")
    there = set(frame["level"][counted].unique())
    by_level = {}
    for name in votes.level_names(scope):
        if name in there:
            mask = (frame["level"] == name).to_numpy() & counted
            by_level[name] = Tallies(frame[mask], anchor=anchor, first=first[mask], ties=scope.ties)
    return by_level


MOST_TOLD = 200  # models; of more the list would be longer than the board


def _worse(rating: bradley_terry.BradleyTerry) -> dict[str, list[str]]:
    if len(rating.rated) > MOST_TOLD:
        return {}
    better = significantly_better(theta=rating.theta, covariance=rating.covariance, df=rating.spread.df)
    return {
        name: [rating.rated[other] for other in np.flatnonzero(better[:, model])]
        for model, name in enumerate(rating.rated)
    }


def _behind(rating: bradley_terry.BradleyTerry) -> dict[str, tuple[str, Behind]]:
    found = behind(theta=rating.theta, covariance=rating.covariance, df=rating.spread.df)
    pairs = zip(rating.rated, found, strict=True)
    return {name: (rating.rated[of_next.other], of_next) for name, of_next in pairs if of_next}


@dataclass(frozen=True, eq=False, slots=True)
class Battle:
    """Outcomes in the form that Bradley-Terry and Elo take: indices into ``names``, and 1, 0.5 or 0 for the first, or
    of continuous preferences these; ``chosen`` has the choices alone, from which Elo is computed.
    """

    frame: pd.DataFrame
    names: list[str]
    a: Any
    b: Any
    y: Any
    chosen: Any
    weight: Any

    @classmethod
    def of(cls, frame: pd.DataFrame, *, anchor: str, strong: int = 1) -> "Battle":
        """From rows ``a, b, choice, group, item``, where ``a`` and ``b`` have the same categories.

        A failure that counts as lost is lost to the anchor; between two others, for neither of whom it speaks, a tie.
        """
        y = np.full(len(frame), 0.5, dtype=np.float32)
        chosen = y
        failed = (frame["choice"] == votes.FAILED).to_numpy()
        y[(frame["choice"] == "first").to_numpy() | (failed & (frame["a"] == anchor).to_numpy())] = 1
        y[(frame["choice"] == "second").to_numpy() | (failed & (frame["b"] == anchor).to_numpy())] = 0
        weight = frame["weight"].to_numpy() if "weight" in frame else None
        if "preference" in frame:
            if "points" in frame:
                y = frame["points"].fillna(pd.Series(chosen, index=frame.index)).to_numpy(np.float32)
            if strong > 1:
                times = np.where(frame["preference"].isin(votes.STRONG), float(strong), 1.0)
                weight = times if weight is None else times * weight
        codes = [frame[side].cat.codes.to_numpy() for side in ("a", "b")]
        used = np.union1d(*codes)
        names = [str(name) for name in frame["a"].cat.categories[used]]
        place = np.zeros(len(frame["a"].cat.categories), dtype=np.int32)
        place[used] = np.arange(len(used))
        return cls(frame, names, place[codes[0]], place[codes[1]], y, chosen, weight)

    @property
    def place(self) -> dict[str, int]:
        return {name: index for index, name in enumerate(self.names)}

    def rated(self) -> bradley_terry.BradleyTerry:
        return bradley_terry.fit(
            a=self.a,
            b=self.b,
            y=self.y,
            models=self.names,
            group=self.frame["group"].cat.codes.to_numpy(),
            item=self.frame["item"].to_numpy(),
            weight=self.weight,
            rng=np.random.default_rng(SEED),
        )


def _elo(scope: Scope, battle: Battle) -> tuple[dict[str, Number], list[str]]:
    """Elo by model, and a note if it is not of now."""
    of_votes = {"a": battle.a, "b": battle.b, "y": battle.chosen, "models": battle.names}
    if scope.elo == NO_ELO:
        return {}, []
    if scope.elo == "online":
        return {name: number(of) for name, of in elo.online(**of_votes).items()}, []

    def bootstrapped() -> dict[str, Any]:
        ratings = elo.online_bootstrap(**of_votes, rng=np.random.default_rng(SEED))
        return {name: asdict(number(of)) for name, of in ratings.items()}

    if not votes.is_large(scope.benchmark):
        return {name: Number(**of) for name, of in bootstrapped().items()}, []
    view, data = key_of(view_in_json(scope, "elo")), key_of(votes.fingerprint(scope))
    ratings, at = at_most_hourly(bootstrapped, view=view, data=data, benchmark=scope.benchmark.pk)
    if at is None:
        return {name: Number(**of) for name, of in ratings.items()}, []
    as_of = f"as of {at:%Y-%m-%d %H:%M} UTC"
    note = f"Elo is {as_of}: over so many votes it is computed at most once an hour."
    return {name: Number(**of | {"method": f"{of['method']}, {as_of}"}) for name, of in ratings.items()}, [note]


def _extremes(frame: pd.DataFrame, anchor: str, ties: str) -> dict[str, dict[str, Any]]:
    """By model: the items with a failure, and its win rate if it had won, or lost, them all. ``frame`` has failures as
    ``votes.FAILED``. Only models with a failure.
    """
    if frame.empty:
        return {}
    rows = votes.win_points(votes.sided(frame, anchor), ties)
    by_item = rows.groupby(["model", "item"], observed=True)[["won", "failed"]].mean()
    by_model = by_item.groupby("model", observed=True).mean()
    counts = rows[rows["failed"]].groupby("model", observed=True)["item"].nunique()
    return {
        str(name): {
            "failures": int(n),
            "win_rate_best": float(by_model["won"][name] + by_model["failed"][name]),
            "win_rate_worst": float(by_model["won"][name]),
        }
        for name, n in counts.items()
    }


def _first_of_item(item: "pd.Series[int]") -> BoolArray:
    """Marks one row of each item."""
    if item.is_monotonic_increasing:
        return np.asarray(np.diff(item.to_numpy(), prepend=-1) != 0)
    return np.asarray(~item.duplicated())


def _counted(a: Any, b: Any, *, anchor: int | None, models: int) -> IntArray:
    """How many items each model is in; with an anchor, how many against it. ``a``, ``b``: the models' codes."""
    sides = ((a, b), (b, a))
    counts = [
        np.bincount(side if anchor is None else side[(other == anchor) & (side != anchor)], minlength=models)
        for side, other in sides
    ]
    return counts[0] + counts[1]


class Tallies:
    """Wins, ties, losses, win rate and items of every model; with an anchor, only of its opponents.

    From rows ``a, b, choice, group, item``, and ``weight`` where repeats share an item; ``first`` (n,) marks one row of
    each item. Columns use small types: there may be millions of rows, each with two sides.
    """

    def __init__(self, frame: pd.DataFrame, *, anchor: int | None, first: BoolArray, ties: str) -> None:
        models = len(frame["a"].cat.categories)
        a, b, group = (frame[name].cat.codes.to_numpy() for name in ("a", "b", "group"))
        chosen = [(frame["choice"] == side).to_numpy() for side in ("first", "second")]
        failed = (frame["choice"] == votes.FAILED).to_numpy()
        rows = [slice(None) if anchor is None else (y == anchor) & (x != anchor) for x, y in ((a, b), (b, a))]

        def both_sides(of_a: Any, of_b: Any) -> Any:
            return np.concatenate([of_a[rows[0]], of_b[rows[1]]])

        model, won = both_sides(a, b), both_sides(*chosen)
        lost = both_sides(chosen[1] | failed, chosen[0] | failed)
        self.items = counted(model, models, where=both_sides(first, first)).tolist()
        cluster = both_sides(group, group)
        if "weight" in frame:
            weight = both_sides(*[frame["weight"].to_numpy()] * 2)
            wins, losses, played = (
                np.bincount(model, weights=weight * side, minlength=models) for side in (won, lost, np.ones(len(won)))
            )
        else:
            wins, losses = (counted(model, models, where=side) for side in (won, lost))
            played = counted(model, models)
        if "weight" not in frame and ties == NO_TIES:
            self.won = dict(enumerate(rates(hits=won, cluster=cluster, part=model, parts=models)))
        else:
            outcome = np.select([won, lost], [votes.WIN, votes.LOSS], votes.TIE)
            columns = {"outcome": outcome, "group": cluster}
            if "weight" in frame:
                columns |= {"weight": weight, "item": both_sides(*[frame["item"].to_numpy()] * 2)}
            sides = pd.DataFrame(columns)
            self.won = {int(code): votes.share_won(part, ties) for code, part in sides.groupby(model)}
        self.outcomes = np.stack([wins, played - wins - losses, losses], axis=1).tolist()

    def of(self, model: int) -> dict[str, Any]:
        """The fields of a ``Tally``; empty for a model without rows."""
        if not self.items[model]:
            return {}
        counts = dict(zip(("wins", "ties", "losses"), self.outcomes[model], strict=True))
        return counts | {"win_rate": number(self.won[model])}
