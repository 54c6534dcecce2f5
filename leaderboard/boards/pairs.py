"""The board of models: win rates, Bradley-Terry and Elo."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from leaderboard import votes
from leaderboard.boards.base import Board, Row, level_names, number, share
from leaderboard.methods import FEWEST_CLUSTERS, SEED
from leaderboard.scope import NO_ELO, Scope
from stats import bradley_terry, elo
from stats.arrays import BoolArray, IntArray, counted
from stats.proportions import rates
from stats.results import Estimate

NO_VERDICTS = "No verdicts yet."


def by_pairs(scope: Scope) -> Board:
    """Wins, ties, losses, win rate, Bradley-Terry and Elo of every model (MLLM-Bench, Table 5).

    ``extra``: ``items`` and ``outcomes`` counted, ``coverage`` of the whole, ``repeats``.
    """
    items = votes.pairs(scope)[["level", "group", "a", "b"]]
    found = votes.outcomes(scope)
    repeats, runs = found.repeats, tuple(run.pk for run in found.runs)
    asked = votes.among(items, found.asked)[1]
    sides = [items[side].cat.codes.to_numpy()[asked] for side in ("a", "b")]
    frame = votes.told(items, found.frame)
    del items, found, asked  # of a million votes each weighs as much as what is computed of them
    if frame.empty:
        return Board([], [NO_VERDICTS], runs)
    if scope.elo != "online" and not frame["item"].is_monotonic_increasing:
        frame = frame.sort_values(["item", "repeat"], kind="stable")
    battle = Battle.of(frame)
    rating = battle.rated(repeats=repeats)
    points = _elo(scope, battle)
    anchor = scope.anchor if scope.anchor in battle.place else ""
    of = {str(name): code for code, name in enumerate(frame["a"].cat.categories)}
    wanted = _counted(*sides, anchor=of.get(anchor), models=len(of))
    first = _first_of_item(frame["item"])
    mine = Tallies(frame, anchor=of.get(anchor), first=first, repeats=repeats)
    with_anchor = (frame["a"] == anchor) | (frame["b"] == anchor)
    of_anchor = int((first & with_anchor.to_numpy()).sum())
    there = set(frame["level"].unique())
    levels = {}
    for name in level_names(scope):
        if name in there:
            mask = (frame["level"] == name).to_numpy()
            levels[name] = Tallies(frame[mask], anchor=of.get(anchor), first=first[mask], repeats=repeats)
    rows = []
    for name in battle.names:
        fit, code = rating.ratings[name], of[name]
        row: Row = {"model": name, "rank": fit.rank, "rank_low": fit.rank_low, "rank_high": fit.rank_high}
        row["tier"] = fit.tier
        row |= mine.row(code)
        row |= number("elo", points.get(name)) | number("bt", fit.strength)
        row["n"] = of_anchor if name == anchor else mine.items[code]
        row["coverage"] = share(mine.items[code], int(wanted[code]))
        row["levels"] = {level: part.row(code) | {"n": part.items[code]} for level, part in levels.items()}
        rows.append(row)
    rows.sort(key=lambda row: (row["rank"] is None, row["rank"] or 0, row["model"]))
    judged = int(first.sum())
    extra = {
        "items": judged,
        "outcomes": len(frame),
        "coverage": share(judged, len(sides[0])),
        "repeats": repeats,
        "clustered_by": rating.clustered_by,
    }
    return Board(rows, [*rating.notes, *rating.warnings], runs, extra)


@dataclass(frozen=True, eq=False, slots=True)
class Battle:
    """Outcomes as Bradley-Terry and Elo take them: places in ``names``, and 1, 0.5 or 0 for the first."""

    frame: pd.DataFrame
    names: list[str]
    a: Any
    b: Any
    y: Any

    @classmethod
    def of(cls, frame: pd.DataFrame) -> "Battle":
        """Of rows ``a, b, choice, group, item``; ``a`` and ``b`` with the same categories."""
        y = np.full(len(frame), 0.5, dtype=np.float32)
        y[(frame["choice"] == "first").to_numpy()] = 1
        y[(frame["choice"] == "second").to_numpy()] = 0
        codes = [frame[side].cat.codes.to_numpy() for side in ("a", "b")]
        used = np.union1d(*codes)
        names = [str(name) for name in frame["a"].cat.categories[used]]
        place = np.zeros(len(frame["a"].cat.categories), dtype=np.int32)
        place[used] = np.arange(len(used))
        return cls(frame, names, place[codes[0]], place[codes[1]], y)

    @property
    def place(self) -> dict[str, int]:
        return {name: index for index, name in enumerate(self.names)}

    def rated(self, *, repeats: int) -> bradley_terry.BradleyTerry:
        return bradley_terry.fit(
            a=self.a,
            b=self.b,
            y=self.y,
            models=self.names,
            group=self.frame["group"].cat.codes.to_numpy(),
            item=self.frame["item"].to_numpy(),
            weight=None if repeats == 1 else np.full(len(self.frame), 1 / repeats),
            rng=np.random.default_rng(SEED),
        )


def _elo(scope: Scope, battle: Battle) -> dict[str, Estimate]:
    if scope.elo == NO_ELO:
        return {}
    if scope.elo == "online":
        return elo.online(a=battle.a, b=battle.b, y=battle.y, models=battle.names)
    rng = np.random.default_rng(SEED)
    return elo.online_bootstrap(a=battle.a, b=battle.b, y=battle.y, models=battle.names, rng=rng)


def _first_of_item(item: "pd.Series[int]") -> BoolArray:
    """Marks one row of each item."""
    if item.is_monotonic_increasing:
        return np.asarray(np.diff(item.to_numpy(), prepend=-1) != 0)
    return np.asarray(~item.duplicated())


def _counted(a: Any, b: Any, *, anchor: int | None, models: int) -> IntArray:
    """How many items each model has a side of; with an anchor, of those against it. ``a``, ``b``: the models' codes."""
    sides = ((a, b), (b, a))
    counts = [
        np.bincount(side if anchor is None else side[(other == anchor) & (side != anchor)], minlength=models)
        for side, other in sides
    ]
    return counts[0] + counts[1]


class Tallies:
    """Wins, ties, losses, win rate and items of every model; with an anchor only of the other sides of its pairs.

    Of rows ``a, b, choice, group, item``; ``first`` (n,) marks one row of each item. Columns stay narrow: there may be
    millions of rows, and each has two sides.
    """

    def __init__(self, frame: pd.DataFrame, *, anchor: int | None, first: BoolArray, repeats: int) -> None:
        models = len(frame["a"].cat.categories)
        a, b, group = (frame[name].cat.codes.to_numpy() for name in ("a", "b", "group"))
        said = [(frame["choice"] == side).to_numpy() for side in ("first", "second")]
        rows = [slice(None) if anchor is None else (y == anchor) & (x != anchor) for x, y in ((a, b), (b, a))]

        def both(of_a: Any, of_b: Any) -> Any:
            return np.concatenate([of_a[rows[0]], of_b[rows[1]]])

        model, won, one = both(a, b), both(*said), both(first, first)
        wins, losses = (counted(model, models, where=side) for side in (won, both(*reversed(said))))
        self.repeats = repeats
        self.outcomes = np.stack([wins, counted(model, models) - wins - losses, losses], axis=1).tolist()
        self.items = counted(model, models, where=one).tolist()
        self.won = rates(
            hits=won,
            cluster=both(group, group),
            part=model,
            parts=models,
            finer=None if one.all() else both(*[frame["item"].to_numpy()] * 2),
            fewest=FEWEST_CLUSTERS,
        )

    def row(self, model: int) -> Row:
        """As the board writes it; None for a model without rows."""
        if not self.items[model]:
            return {"wins": None, "ties": None, "losses": None} | number("win_rate", None)
        counts: Row = dict(zip(("wins", "ties", "losses"), self.outcomes[model], strict=True))
        if self.repeats > 1:
            counts = {name: count / self.repeats for name, count in counts.items()}
        return counts | number("win_rate", self.won[model])
