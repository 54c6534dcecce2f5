"""The boards of models by scores and by components."""

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from leaderboard import votes
from leaderboard.boards.base import Board, Row, number
from leaderboard.methods import SEED
from leaderboard.scope import PEOPLE, BadScope, Scope
from leaderboard.votes import scores
from stats.disclosure import LEAST
from stats.means import places_of_means
from stats.proportions import mean
from stats.results import Estimate

NO_VERDICTS = "No verdicts yet."
NO_MODELS = "What is scored here are pictures, not answers of models: see the board of judges."


@dataclass(frozen=True, eq=False, slots=True)
class Shares:
    """Verdicts on models as numbers: ``whole`` one row a verdict, ``parts`` one row a verdict or component with the
    ``part`` of the board that it belongs to, which are shown in this ``order``; and what has to be said.
    """

    whole: pd.DataFrame
    parts: pd.DataFrame
    order: list[str]
    notes: list[str] = field(default_factory=list)


def models(scope: Scope) -> Board:
    """The mean score of every model, with its interval, and by level (MLLM-as-a-Judge scores: 1 to 5).

    Components: the mean of points per weights, in percent, and by category the mean of each component's points per
    weight (MIA-Bench, Table 1). ``extra``: ``items``, ``groups`` (``levels`` or ``categories``) with ``order``, and
    ``within[model][name]`` the numbers of each with their intervals.
    """
    frame, runs = verdicts_on_models(scope)
    if frame.empty:
        return Board([], [NO_VERDICTS], runs)
    frame = frame[frame["model"] != ""]
    if frame.empty:
        return Board([], [NO_MODELS], runs)
    found = scope.kind.shares(scope, frame)
    frame, parts = found.whole, found.parts
    if frame.empty:
        return Board([], found.notes, runs)
    there = set(parts["part"])
    order = [name for name in found.order if name in there]
    within: dict[str, dict[str, Row]] = {}
    rows: list[Row] = []
    for name, mine in frame.groupby("model"):
        row: Row = {"model": name, "rank": None} | number("score", _mean(mine))
        own = parts[parts["model"] == name]
        within[str(name)] = {
            part: number("score", _mean(some)) | {"n": len(some)}
            for part, some in ((part, own[own["part"] == part]) for part in order)
        }
        row[scope.kind.parts] = {part: numbers["score"] for part, numbers in within[str(name)].items()}
        rows.append(row | {"n": int(mine["item"].nunique())})
    place = {row["model"]: at for at, row in enumerate(rows)}
    places = places_of_means(
        values=frame["value"].to_numpy(np.float64),
        model=frame["model"].map(place).to_numpy(),
        models=len(rows),
        cluster=frame["group"].to_numpy(),
        rng=np.random.default_rng(SEED),
    )
    for row, one in zip(rows, places, strict=True):
        row |= {"rank": one.rank, "rank_low": one.rank_low, "rank_high": one.rank_high, "tier": one.tier}
    rows.sort(key=lambda row: row["rank"])
    extra = {"items": int(frame["item"].nunique()), "groups": scope.kind.parts, "order": order, "within": within}
    return Board(rows, found.notes, runs, extra)


def verdicts_on_models(scope: Scope) -> tuple[pd.DataFrame, tuple[int, ...]]:
    """The outcomes of the view with what is known of their items (see ``scores.items_of``) and the ``model``, "" where
    it is not one that was scored; and the runs they are from. An edition has those of models with LEAST samples.
    """
    items = scores.items_of(scope)
    found, runs = outcomes(scope)
    frame = found[found["item"].isin(items.index)].join(items, on="item")
    frame = frame.assign(model=[models[0] if len(models) == 1 else "" for models in frame["models"]])
    if scope.edition:
        frame = frame[frame.groupby("model")["sample"].transform("nunique") >= LEAST]
    return frame, runs


def _mean(frame: pd.DataFrame) -> Estimate:
    return mean(values=frame["value"].to_numpy(np.float64), cluster=frame["group"].to_numpy())


def outcomes(scope: Scope) -> tuple[pd.DataFrame, tuple[int, ...]]:
    """``item``, ``value``: the mean of people's labels, every label, or the judge's, averaged over its repeats."""
    if scope.run is None and scope.source in PEOPLE:
        labels = scores.labels_of(scope)
        if scope.source == "individuals" or labels.empty:
            return labels[["item", "value"]], ()
        return labels.groupby("item")["value"].agg(scores.mean_of).reset_index(), ()
    if scope.run is not None:
        runs = list(votes.judged_runs(scope).filter(pk=scope.run))
        if not runs:
            raise BadScope(f"There is no run {scope.run} with scores on {scope.benchmark}.")
    else:
        runs = votes.runs_of(scope, scope.source)
    found = scores.of_runs(scope, runs).groupby("item")["value"].agg(scores.mean_of).reset_index()
    return found, tuple(run.pk for run in runs)
