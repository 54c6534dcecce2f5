"""Two models by the verdicts, scores or keys of a view."""

import numpy as np
import pandas as pd

from leaderboard import votes
from leaderboard.boards import graded, keyed
from leaderboard.boards.base import Row
from leaderboard.boards.pairs import Battle
from leaderboard.boards.versus.measures import (
    Versus,
    by_level_of,
    fixed,
    measure,
    of_rows,
    refuse_unknown,
    tested_together,
)
from leaderboard.scope import BadScope, Scope
from leaderboard.votes import scores


def models(scope: Scope, a: str, b: str) -> Versus:
    """Two models by the verdicts, scores or keys of the view. Raises BadScope where one has nothing."""
    if a == b:
        raise BadScope("Choose two different models.")
    return tested_together(scope.kind.compare_models(scope, a, b))


def by_pairs(scope: Scope, a: str, b: str) -> Versus:
    items = votes.pairs(scope)
    found = votes.outcomes(scope)
    frame = votes.told(items, found.frame)
    known = set(frame["a"]) | set(frame["b"])
    refuse_unknown(known, a, b)
    measures, base = [], None
    if scope.anchor in known and scope.anchor not in (a, b):
        won = votes.sided(frame, scope.anchor).assign(won=lambda rows: (rows["outcome"] == votes.WIN).astype(float))
        won["sample"] = items["sample"].reindex(won["item"]).to_numpy()
        rate = {name: rows.groupby("sample")["won"].mean() for name, rows in won.groupby("model") if name in (a, b)}
        if {a, b} <= set(rate):
            base = pd.concat([rate[a], rate[b]], axis=1, join="inner", keys=["a", "b"])
            base = base.join(won.groupby("sample")[["level", "group"]].first())
            measures.append(of_rows(f"Win rate against {scope.anchor}", base))
    direct = frame[((frame["a"] == a) & (frame["b"] == b)) | ((frame["a"] == b) & (frame["b"] == a))]
    if len(direct):
        mine = np.where(direct["a"] == a, "first", "second")
        own = direct.assign(
            a=(direct["choice"].to_numpy(object) == mine).astype(float),
            b=(~np.isin(direct["choice"], ["tie", "undecided"]) & (direct["choice"].to_numpy(object) != mine)).astype(
                float
            ),
        )
        own = own.groupby("item").agg({"a": "mean", "b": "mean", "level": "first", "group": "first", "sample": "first"})
        measures.append(of_rows("Win rate against each other", own))
        base = own.set_index("sample") if base is None else base
    measures.append(_contrast(frame, a, b, found.repeats))
    if base is None:
        base = pd.DataFrame(columns=["a", "b", "level", "group"])
    table = base[["a", "b"]].assign(people=None, apart=(base["a"] - base["b"]).abs())
    shown = frame[(frame["a"] == a) | (frame["b"] == a)]
    table["item"] = shown.groupby("sample")["item"].first().reindex(table.index)
    levels = by_level_of(scope, base)
    notes = (
        [] if len(base) else ["The two share no opponent on the same samples: only their strengths can be compared."]
    )
    runs = tuple(run.pk for run in found.runs)
    return Versus(a, b, "points", measures, levels, table, by="sample", notes=notes + fixed(base), runs=runs)


def _contrast(frame: pd.DataFrame, a: str, b: str, repeats: int) -> Row:
    fit = Battle.of(frame).rated(repeats=repeats)
    found = fit.contrast(a, b)
    ends = [fit.ratings[name].strength.value for name in (a, b)]
    return measure("Bradley–Terry strength", ends[0], ends[1], found.difference, found.p, "contrast of the fit")


def by_scores(scope: Scope, a: str, b: str) -> Versus:
    items = scores.items_of(scope)
    found, runs = graded.outcomes(scope)
    frame = found[found["item"].isin(items.index)].join(items, on="item")
    frame = frame.loc[[len(models) == 1 for models in frame["models"]]]
    frame = frame.assign(model=[models[0] for models in frame["models"]])
    refuse_unknown(set(frame["model"]), a, b)
    frame = frame[frame["model"].isin([a, b])]
    frame = scope.kind.shares(scope, frame).whole
    by_sample = frame.groupby(["sample", "model"])["value"].mean().unstack().reindex(columns=[a, b]).dropna()
    by_sample.columns = pd.Index(["a", "b"])
    both = by_sample.astype(float).join(frame.groupby("sample")[["level", "group"]].first())
    table = both[["a", "b"]].assign(people=None, apart=(both["a"] - both["b"]).abs())
    table["item"] = frame[frame["model"] == a].groupby("sample")["item"].first().reindex(table.index)
    rows, levels = of_rows(scope.kind.compared_by, both, shares=False), by_level_of(scope, both, shares=False)
    return Versus(a, b, scope.kind.compared_in, [rows], levels, table, by="sample", notes=fixed(both), runs=runs)


def by_keys(scope: Scope, a: str, b: str) -> Versus:
    frame, runs, levels = keyed.counted_answers(scope)
    refuse_unknown(set(frame["model"]), a, b)
    frame = frame[frame["model"].isin([a, b])]
    depth = len(scope.level.split(" / ")) if scope.level else 0
    steps = frame["path"].str.split(" / ")
    frame = frame.assign(level=steps.map(lambda path: path[depth] if len(path) > depth else ""))
    rights = {"One pass" if scope.kind.rotates else "Accuracy": frame[frame["variant"] == ""]}
    every = {name: keyed.every_rotation(mine) for name, mine in frame.groupby("model")}
    if scope.kind.rotates and all(len(one) for one in every.values()):
        whole = pd.concat([one.assign(model=name) for name, one in every.items()], ignore_index=True)
        whole = whole.merge(frame.drop_duplicates("sample")[["sample", "level"]], on="sample")
        rights = {"Circular": whole, **rights}
    measures, first = [], None
    for name, mine in rights.items():
        both = (
            mine.pivot(index="sample", columns="model", values="right").reindex(columns=[a, b]).dropna().astype(float)
        )
        both.columns = pd.Index(["a", "b"])
        both = both.join(mine.drop_duplicates("sample").set_index("sample")[["level", "group"]])
        measures.append(of_rows(name, both))
        first = both if first is None else first
    if first is None:
        first = pd.DataFrame(columns=["a", "b", "level", "group"])
    table = first[["a", "b"]].assign(people=None, apart=(first["a"] - first["b"]).abs())
    by_level = by_level_of(scope, first) if levels else []
    return Versus(a, b, "points", measures, by_level, table, by="sample", single=False, notes=fixed(first), runs=runs)
