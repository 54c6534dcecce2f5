"""The board of models: win rates, Bradley-Terry and Elo."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from leaderboard import votes
from leaderboard.boards import graded, keyed
from leaderboard.boards.base import SEED, Board, Row, level_names, number, share
from leaderboard.scope import KEYED, NO_ELO, Scope
from leaderboard.stats import bradley_terry, elo
from leaderboard.stats.arrays import BoolArray, IntArray
from leaderboard.stats.proportions import rates
from leaderboard.stats.results import Estimate

NO_VERDICTS = "No verdicts yet."


def models(scope: Scope) -> Board:
    """Wins, ties, losses, win rate, Bradley-Terry and Elo of every model (MLLM-Bench, Table 5).

    ``extra``: ``items`` and ``outcomes`` counted, ``coverage`` of the whole, ``repeats``. Other kinds than pairs have
    boards of their own: see ``graded`` and ``keyed``.
    """
    if scope.kind in KEYED:
        return keyed.models(scope)
    if scope.kind != "pair":
        return graded.models(scope)
    items = votes.pairs(scope)
    found = votes.outcomes(scope)
    runs = tuple(run.pk for run in found.runs)
    frame = votes.told(items, found.frame)
    if frame.empty:
        return Board([], [NO_VERDICTS], runs)
    frame = frame.sort_values(["item", "repeat"], kind="stable") if scope.elo != "online" else frame
    battle = Battle.of(frame)
    rating = battle.rated(repeats=found.repeats)
    points = _elo(scope, battle)
    anchor = scope.anchor if scope.anchor in battle.place else ""
    frame["first"] = _first_of_item(frame["item"])
    outcomes = votes.sided(frame, anchor)
    of = {str(name): code for code, name in enumerate(outcomes["model"].cat.categories)}
    mine = Tallies(outcomes, len(of), found.repeats)
    asked = items.take(votes.among(items, found.asked)[1])
    wanted = _counted(asked, anchor)
    of_anchor = int((frame["first"] & ((frame["a"] == anchor) | (frame["b"] == anchor))).sum())
    counted = set(frame["level"].unique())
    levels = {
        name: Tallies(outcomes[outcomes["level"] == name], len(of), found.repeats)
        for name in level_names(scope)
        if name in counted
    }
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
    judged = int(frame["first"].sum())
    extra = {
        "items": judged,
        "outcomes": len(frame),
        "coverage": share(judged, len(asked)),
        "repeats": found.repeats,
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
        y = np.select([frame["choice"] == "first", frame["choice"] == "second"], [1.0, 0.0], 0.5)
        used = np.union1d(frame["a"].cat.codes.unique(), frame["b"].cat.codes.unique())
        names = [str(name) for name in frame["a"].cat.categories[used]]
        place = np.zeros(len(frame["a"].cat.categories), dtype=np.int64)
        place[used] = np.arange(len(used))
        a, b = (place[frame[side].cat.codes] for side in ("a", "b"))
        return cls(frame, names, a, b, y)

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
        return np.diff(item.to_numpy(), prepend=-1) != 0
    return ~item.duplicated().to_numpy()


def _counted(items: pd.DataFrame, anchor: str) -> IntArray:
    """How many items each model has a side of; with an anchor, of those against it."""
    sides = [
        items.loc[(items[other] == anchor) & (items[side] != anchor), side] if anchor else items[side]
        for side, other in (("a", "b"), ("b", "a"))
    ]
    models = len(items["a"].cat.categories)
    return np.sum([np.bincount(side.cat.codes, minlength=models) for side in sides], axis=0)


class Tallies:
    """Wins, ties, losses, win rate and items of every model, counted in one pass over ``votes.sided``."""

    def __init__(self, rows: pd.DataFrame, models: int, repeats: int) -> None:
        model = rows["model"].cat.codes.to_numpy().astype(np.int64)
        outcome = rows["outcome"].to_numpy()
        self.repeats = repeats
        self.outcomes = np.bincount(model * 3 + outcome, minlength=models * 3).reshape(models, 3).tolist()
        self.items = np.bincount(model[rows["first"].to_numpy()], minlength=models).tolist()
        self.won = rates(
            hits=outcome == votes.WIN,
            cluster=rows["group"].cat.codes.to_numpy(),
            part=model,
            parts=models,
            finer=rows["item"].to_numpy(),
            fewest=votes.FEWEST_CLUSTERS,
        )

    def row(self, model: int) -> Row:
        """As the board writes it; None for a model without rows."""
        if not self.items[model]:
            return {"wins": None, "ties": None, "losses": None} | number("win_rate", None)
        counts: Row = dict(zip(("wins", "ties", "losses"), self.outcomes[model], strict=True))
        if self.repeats > 1:
            counts = {name: count / self.repeats for name, count in counts.items()}
        return counts | number("win_rate", self.won[model])
