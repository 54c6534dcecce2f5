"""How well rankings of the same models agree: by people, judges and other benchmarks, and over a judge's repeats."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from accounts.rules import Viewer
from judging.models import Run
from leaderboard import kinds, votes
from leaderboard.benchmarks import to_compare
from leaderboard.boards.base import Board, ModelsBoard, Tested, with_significance
from leaderboard.boards.seen import models
from leaderboard.hidden import of_open_half
from leaderboard.methods import PROVISIONAL, SEED
from leaderboard.models import OutsideScore
from leaderboard.rows import UNKNOWN, Number, OfJudge, Row, number, of_judge
from leaderboard.scope import HUMANS, BadScope, Scope
from leaderboard.sight import Sight
from leaderboard.view import scope_of
from stats.rankings import rank_correlation
from stats.ranks import benjamini_yekutieli

FEWEST = 3  # models that two rankings must share


@dataclass(frozen=True, eq=False, slots=True)
class Ranking:
    """Models with the number that ranks them. ``key`` is its name in rows; ``about`` says what made it."""

    key: str
    about: str  # people, judge, baseline, benchmark, or typed: not computed here
    values: "pd.Series[float]"


@dataclass(frozen=True, kw_only=True)
class CorrelationRow(Tested):
    """Two rankings compared over the ``n`` models that both rank."""

    a: str
    b: str
    metric: str
    value: Number = UNKNOWN
    kendall: float | None = None
    p: float | None = None
    test: str = ""
    n: int
    significant: bool | None = None


@dataclass(frozen=True, kw_only=True)
class MetaRank(Row):
    """A model in all rankings: its rank in each, their mean, and the rank by that mean (MIA-Bench, Table 2)."""

    model: str
    ranks: list[int]
    mean: float
    meta: int


@dataclass(frozen=True, kw_only=True)
class SpreadLevel(Row):
    """The same within a level, over ``n`` items."""

    mean: float
    sd: float
    n: int


@dataclass(frozen=True, kw_only=True)
class SpreadRow(OfJudge):
    """Mean and standard deviation (n - 1) of a model's win rate over a judge's repeats, in all and by level
    (MLLM-Bench, Table 7).
    """

    judge: str
    run: int
    model: str
    repeats: int
    mean: float
    sd: float
    n: int
    levels: dict[str, SpreadLevel] = field(default_factory=dict)
    simulated: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class CorrelationBoard(Board[CorrelationRow]):
    rankings: list[Ranking] = field(default_factory=list)
    ranks: list[MetaRank] = field(default_factory=list)
    repeats: list[SpreadRow] = field(default_factory=list)


def correlations(scope: Scope, others: Sequence[Scope]) -> CorrelationBoard:
    """Spearman between every two rankings (MLLM-Bench, Tables 8 and 16; MIA-Bench, Table 5).

    The rankings of the benchmark by people and by each judge, those of ``others`` (scopes of other benchmarks or
    versions), and scores of benchmarks that are not held here, as they were typed. Provisional models, and anchors
    without a number, are left out.
    """
    scope, *others = map(of_open_half, (scope, *others))  # rankings by people and by judges meet here
    own_rankings = _of_sources(scope)
    own_models: set[str] = set()
    for ranking in own_rankings:
        own_models.update(ranking.values.index)
    shared = (
        ranking for ranking in (*_of_others(others), *_typed()) if len(own_models & set(ranking.values.index)) >= FEWEST
    )
    rankings = [*own_rankings, *shared]
    rows: list[CorrelationRow] = []
    for a, b in combinations(rankings, 2):
        paired = pd.concat([a.values, b.values], axis=1, join="inner", keys=["a", "b"]).sort_index()
        row = CorrelationRow(a=a.key, b=b.key, metric="spearman", n=len(paired))
        if len(paired) >= FEWEST:
            rho = rank_correlation(x=paired["a"], y=paired["b"], rng=np.random.default_rng(SEED))
            row = replace(row, value=number(rho.spearman), kendall=rho.kendall, p=rho.p, test=rho.test)
        rows.append(row)
    rows = with_significance(rows, benjamini_yekutieli)
    return CorrelationBoard(rows, rankings=rankings, ranks=_meta(rankings), repeats=_repeats(scope))


def _numbers(board: ModelsBoard) -> "pd.Series[float]":
    """The number that ranks, by model; only rows with at least 30 items."""
    values = {row.model: row.number(board.ranked_by).value for row in board.rows if row.n >= PROVISIONAL}
    return pd.Series({model: value for model, value in values.items() if value is not None}, dtype=float)


def _of_sources(scope: Scope) -> list[Ranking]:
    rankings = []
    if scope.kind.keyed or Sight(scope).only_editions:
        values = _numbers(models(scope))
        return [Ranking(f"{scope.benchmark}", "benchmark", values)] if len(values) else []
    if kinds.has_verdicts(scope.benchmark, scope.kind, staff=scope.staff):
        values = _numbers(models(scope.judged_by(HUMANS)))
        if len(values):
            rankings.append(Ranking("people", "people", values))
    groups = votes.judge_groups(scope)
    names = [runs[-1].judge.name for runs in groups]
    for runs in groups:
        run = runs[-1]
        key = str(run.judge) if names.count(run.judge.name) == 1 else f"{run.judge} (run {run.pk})"
        values = _numbers(models(_by_run(scope, run.pk)))
        if len(values):
            rankings.append(Ranking(key, "baseline" if run.judge.is_baseline else "judge", values))
    return rankings


def _by_run(scope: Scope, run: int) -> Scope:
    return replace(scope, run=run, source=HUMANS)


def _of_others(others: Sequence[Scope]) -> list[Ranking]:
    rankings = []
    for scope in others:
        try:
            values = _numbers(models(scope))
        except BadScope:
            continue
        if len(values):
            rankings.append(Ranking(f"{scope.benchmark.title} ({scope.benchmark})", "benchmark", values))
    return rankings


def _typed() -> list[Ranking]:
    boards: dict[str, dict[str, float]] = {}
    for score in OutsideScore.objects.all():
        boards.setdefault(score.board, {})[score.model] = -score.score if score.lower_is_better else score.score
    return [Ranking(f"{board} (typed)", "typed", pd.Series(values, dtype=float)) for board, values in boards.items()]


def usual_scope(benchmark: Any, *, staff: bool) -> Scope:
    """The view of another benchmark for a comparison: its default kind, by people or else by the finished run of
    a judge over most items.
    """
    kind = kinds.default_of(benchmark, "models", staff=staff)
    scope = scope_of(benchmark=benchmark, kind=kind, staff=staff)
    if kind.keyed or Sight(scope).only_editions or not votes.judged_runs(scope).exists():
        return scope
    people = _numbers(models(scope))
    finished = votes.judged_runs(scope).filter(judge__baseline="", state=Run.State.FINISHED)
    run = votes.with_most_items(finished, alone=True)
    return scope if len(people) or run is None else _by_run(scope, run.pk)


def _meta(rankings: Sequence[Ranking]) -> list[MetaRank]:
    """The models that are in every ranking, ranked among themselves."""
    if len(rankings) < 2:
        return []
    table = pd.concat(
        [ranking.values for ranking in rankings], axis=1, join="inner", keys=[ranking.key for ranking in rankings]
    )
    if len(table) < 2:
        return []
    ranks = table.rank(ascending=False, method="min")
    mean = ranks.mean(axis=1)
    place = mean.rank(method="min")
    order = sorted(ranks.index, key=lambda model: (mean[model], model))
    return [
        MetaRank(model=m, ranks=[int(rank) for rank in ranks.loc[m]], mean=float(mean[m]), meta=int(place[m]))
        for m in order
    ]


def _repeats(scope: Scope) -> list[SpreadRow]:
    """One row for every model and every judge with several repeats."""
    if not scope.kind.pairwise:
        return []
    items = votes.pairs(scope)
    rows = []
    for runs in votes.judge_groups(scope):
        outcomes = votes.of_runs(scope, runs)
        if outcomes.repeats < 2:
            continue
        frame = votes.join_items(items, outcomes.frame)
        anchor = scope.anchor if (frame[["a", "b"]] == scope.anchor).to_numpy().any() else ""
        sided = votes.sided(frame, anchor)
        sided["won"] = (sided["outcome"] == votes.WIN).astype(float)
        for model, of_model in sided.groupby("model"):
            of_all = _over_repeats(of_model)
            if of_all is None:
                continue
            by_level = {str(name): _over_repeats(rows) for name, rows in of_model.groupby("level", observed=True)}
            levels = {name: by_level[name] for name in votes.level_names(scope) if by_level.get(name)}
            rows.append(
                SpreadRow(
                    **of_judge(runs[-1]),
                    model=str(model),
                    repeats=of_all[1],
                    **vars(of_all[0]),
                    levels={name: found[0] for name, found in levels.items() if found} if len(levels) > 1 else {},
                )
            )
    return rows


def _over_repeats(rows: pd.DataFrame) -> tuple[SpreadLevel, int] | None:
    """The spread of the share won over repeats, and of how many; None for fewer than two."""
    rates = rows.groupby("repeat")["won"].mean()
    if len(rates) < 2:
        return None
    return SpreadLevel(mean=float(rates.mean()), sd=float(rates.std(ddof=1)), n=int(rows["item"].nunique())), len(rates)


def correlated(scope: Scope, viewer: Viewer) -> CorrelationBoard:
    """The benchmark's rankings compared with each other and with those of other benchmarks that the viewer may see."""
    others = to_compare(scope.benchmark, viewer)
    return correlations(scope, [usual_scope(benchmark, staff=staff) for benchmark, staff in others])
