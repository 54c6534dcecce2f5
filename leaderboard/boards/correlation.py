"""How far rankings of the same models agree: of people, of judges, of other benchmarks; and over a judge's repeats."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from leaderboard import kinds, votes
from leaderboard.boards.base import Board, Row, kept, models, number
from leaderboard.boards.sources import judge_groups
from leaderboard.hidden import is_kept_back
from leaderboard.methods import PROVISIONAL, SEED
from leaderboard.scope import HUMANS, BadScope, Scope, scope_of
from stats.multiple import benjamini_yekutieli
from stats.rankings import rank_correlation

FEWEST = 3  # models that two rankings must share
RANKED_BY = ("bt", "score", "circular", "vanilla", "accuracy")


@dataclass(frozen=True, eq=False, slots=True)
class Ranking:
    """Models with the number that ranks them. ``key`` is how rows name it, ``about`` what it is in a word."""

    key: str
    about: str  # people, judge, baseline, benchmark
    values: "pd.Series[float]"


def correlations(scope: Scope, others: Sequence[Scope]) -> Board:
    """Spearman between every two rankings (MLLM-Bench, Tables 8 and 16; MIA-Bench, Table 5).

    The rankings of the benchmark by people and by each judge, and those of ``others`` (scopes of other benchmarks or
    versions) under their usual view. Rows ``{a, b, metric, value, value_low, value_high, kendall, p, test, n}`` over
    the models that both rank; provisional models, and anchors that have no number, are in none.

    ``extra``: ``rankings`` (``{key, about, n}``), ``ranks`` (the meta-ranking: models that all rankings hold, with
    their rank in each, the mean of them and the rank of that), ``repeats`` (mean and standard deviation over a judge's
    repeats, MLLM-Bench, Table 7).
    """
    own = _of_sources(scope)
    known = {model for one in own for model in one.values.index}
    rankings = [*own, *(one for one in _of_others(others) if len(known & set(one.values.index)) >= FEWEST)]
    rows: list[Row] = []
    for one, other in combinations(rankings, 2):
        both = pd.concat([one.values, other.values], axis=1, join="inner", keys=["a", "b"]).sort_index()
        if len(both) < FEWEST:
            found = number("value", None) | {"kendall": None, "p": None, "test": ""}
        else:
            rho = rank_correlation(x=both["a"], y=both["b"], rng=np.random.default_rng(SEED))
            found = number("value", rho.spearman) | {"kendall": rho.kendall, "p": rho.p, "test": rho.test}
        rows.append({"a": one.key, "b": other.key, "metric": "spearman"} | found | {"n": len(both)})
    tested = [row for row in rows if row["p"] is not None]
    for row, counts in zip(tested, benjamini_yekutieli(p=[row["p"] for row in tested]) if tested else (), strict=True):
        row["significant"] = bool(counts)
    extra = {
        "rankings": [{"key": one.key, "about": one.about, "n": len(one.values)} for one in rankings],
        "ranks": _meta(rankings),
        "repeats": _repeats(scope),
    }
    return Board(rows, [], extra=extra)


def _numbers(board: Board) -> "pd.Series[float]":
    """The number that ranks, by model: of the rows over 30 items or more."""
    by = board.extra.get("ranked_by") or next((name for name in RANKED_BY if board.rows and name in board.rows[0]), "")
    known = {row["model"]: row[by] for row in board.rows if row.get(by) is not None and row["n"] >= PROVISIONAL}
    return pd.Series(known, dtype=float)


def _of_sources(scope: Scope) -> list[Ranking]:
    found = []
    if scope.kind.keyed or is_kept_back(scope):
        values = _numbers(kept(scope, "models", models))
        return [Ranking(f"{scope.benchmark}", "benchmark", values)] if len(values) else []
    if kinds.has_verdicts(scope.benchmark, scope.kind, staff=scope.staff):
        values = _numbers(kept(scope.judged_by(HUMANS), "models", models))
        if len(values):
            found.append(Ranking("people", "people", values))
    groups = judge_groups(scope)
    names = [runs[-1].judge.name for runs in groups]
    for runs in groups:
        run = runs[-1]
        key = run.judge.name if names.count(run.judge.name) == 1 else f"{run.judge.name} (run {run.pk})"
        values = _numbers(kept(_by_run(scope, run.pk), "models", models))
        if len(values):
            found.append(Ranking(key, "baseline" if run.judge.is_baseline else "judge", values))
    return found


def _by_run(scope: Scope, run: int) -> Scope:
    return replace(scope, run=run, source=HUMANS)


def _of_others(others: Sequence[Scope]) -> list[Ranking]:
    found = []
    for scope in others:
        try:
            values = _numbers(kept(scope, "models", models))
        except BadScope:
            continue
        if len(values):
            found.append(Ranking(f"{scope.benchmark.title} ({scope.benchmark})", "benchmark", values))
    return found


def usual_scope(benchmark: Any, *, staff: bool) -> Scope:
    """The view of another benchmark that it is compared by: its first kind; people, or the newest judge's run."""
    kind = kinds.default_of(benchmark, "models", staff=staff)
    scope = scope_of(benchmark=benchmark, kind=kind, staff=staff)
    if kind.keyed or is_kept_back(scope) or not votes.judged_runs(scope).exists():
        return scope
    people = _numbers(kept(scope, "models", models))
    judged = [run for run in votes.judged_runs(scope) if not run.judge.is_baseline]
    return scope if len(people) or not judged else _by_run(scope, judged[-1].pk)


def _meta(rankings: Sequence[Ranking]) -> list[Row]:
    """Models that every ranking holds: their rank among these in each, the mean, and its rank (MIA-Bench, Table 2)."""
    if len(rankings) < 2:
        return []
    table = pd.concat([one.values for one in rankings], axis=1, join="inner", keys=[one.key for one in rankings])
    if len(table) < 2:
        return []
    ranks = table.rank(ascending=False, method="min")
    mean = ranks.mean(axis=1)
    place = mean.rank(method="min")
    order = sorted(ranks.index, key=lambda model: (mean[model], model))
    return [
        {"model": m, "ranks": [int(rank) for rank in ranks.loc[m]], "mean": float(mean[m]), "meta": int(place[m])}
        for m in order
    ]


def _repeats(scope: Scope) -> list[Row]:
    """By judge with several repeats and model: mean and standard deviation (n - 1) of the win rate over the repeats."""
    if not scope.kind.pairwise:
        return []
    items = votes.pairs(scope)
    rows: list[Row] = []
    for runs in judge_groups(scope):
        found = votes.of_runs(runs)
        if found.repeats < 2:
            continue
        frame = votes.told(items, found.frame)
        anchor = scope.anchor if (frame[["a", "b"]] == scope.anchor).to_numpy().any() else ""
        sided = votes.sided(frame.assign(item=frame["item"] * found.repeats + frame["repeat"]), anchor)
        sided["repeat"] = sided["item"] % found.repeats
        won = (sided["outcome"] == votes.WIN).groupby([sided["model"], sided["repeat"]]).mean().unstack()
        for model, values in won.iterrows():
            known = values.dropna()
            if len(known) > 1:
                each = {"judge": runs[-1].judge.name, "run": runs[-1].pk, "model": model, "repeats": len(known)}
                rows.append(each | {"mean": float(known.mean()), "sd": float(known.std(ddof=1))})
    return rows
