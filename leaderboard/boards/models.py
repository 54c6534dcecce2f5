"""The board of models: win rates, Bradley-Terry and Elo."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from leaderboard import votes
from leaderboard.boards import graded, keyed
from leaderboard.boards.base import SEED, Board, Row, level_names, number, share
from leaderboard.scope import KEYED, Scope
from leaderboard.stats import bradley_terry, elo
from leaderboard.stats.proportions import rate
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
    frame = found.frame[found.frame["item"].isin(items.index)].join(items, on="item")
    if frame.empty:
        return Board([], [NO_VERDICTS], runs)
    frame = frame.sort_values(["item", "repeat"], kind="stable") if scope.elo != "online" else frame
    battle = Battle.of(frame)
    a, b, y, names, place = battle.a, battle.b, battle.y, battle.names, battle.place
    rating = battle.rated(repeats=found.repeats)
    points = _elo(scope, a, b, y, names)
    anchor = scope.anchor if scope.anchor in place else ""
    asked = items.loc[items.index.intersection(found.asked)]
    outcomes = votes.sided(frame, anchor)
    sided = {str(name): rows for name, rows in outcomes.groupby("model")}
    wanted = votes.sided(asked.reset_index(), anchor).groupby("model")["item"].nunique()
    of_anchor = _items(frame[(frame["a"] == anchor) | (frame["b"] == anchor)])
    levels = [name for name in level_names(scope) if name in set(frame["level"])]
    rows = []
    for name in names:
        fit = rating.ratings[name]
        mine = sided.get(name, outcomes.iloc[:0])
        row: Row = {"model": name, "rank": fit.rank, "rank_low": fit.rank_low, "rank_high": fit.rank_high}
        row["tier"] = fit.tier
        row |= _tally(mine, found.repeats)
        row |= number("elo", points[name]) | number("bt", fit.strength)
        row["n"] = of_anchor if name == anchor else _items(mine)
        row["coverage"] = share(_items(mine), int(wanted.get(name, 0)))
        of_level = {str(level): part for level, part in mine.groupby("level")}
        row["levels"] = {
            level: _tally(part, found.repeats) | {"n": _items(part)}
            for level, part in ((level, of_level.get(level, mine.iloc[:0])) for level in levels)
        }
        rows.append(row)
    rows.sort(key=lambda row: (row["rank"] is None, row["rank"] or 0, row["model"]))
    counted = int(frame["item"].nunique())
    extra = {
        "items": counted,
        "outcomes": len(frame),
        "coverage": share(counted, len(asked)),
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
        """Of rows ``a, b, choice, group, item``."""
        y = frame["choice"].map({"first": 1.0, "second": 0.0}).fillna(0.5).to_numpy()
        names = sorted(set(frame["a"]) | set(frame["b"]))
        place = {name: index for index, name in enumerate(names)}
        return cls(frame, names, frame["a"].map(place).to_numpy(), frame["b"].map(place).to_numpy(), y)

    @property
    def place(self) -> dict[str, int]:
        return {name: index for index, name in enumerate(self.names)}

    def rated(self, *, repeats: int) -> bradley_terry.BradleyTerry:
        return bradley_terry.fit(
            a=self.a,
            b=self.b,
            y=self.y,
            models=self.names,
            group=self.frame["group"].to_numpy(),
            item=self.frame["item"].to_numpy(),
            weight=np.full(len(self.frame), 1 / repeats),
            rng=np.random.default_rng(SEED),
        )


def _elo(scope: Scope, a: Any, b: Any, y: Any, names: list[str]) -> dict[str, Estimate]:
    if scope.elo == "online":
        return elo.online(a=a, b=b, y=y, models=names)
    return elo.online_bootstrap(a=a, b=b, y=y, models=names, rng=np.random.default_rng(SEED))


def _items(rows: pd.DataFrame) -> int:
    return int(rows["item"].nunique())


def _tally(rows: pd.DataFrame, repeats: int) -> Row:
    if rows.empty:
        return {"wins": None, "ties": None, "losses": None} | number("win_rate", None)
    outcome = rows["outcome"].to_numpy()
    wins, ties, losses = np.bincount(outcome, minlength=3).tolist()
    counts: Row = {"wins": wins, "ties": ties, "losses": losses}
    if repeats > 1:
        counts = {name: count / repeats for name, count in counts.items()}
    won = rate(hits=outcome == votes.WIN, cluster=votes.clusters(rows).to_numpy())
    return counts | number("win_rate", won)
