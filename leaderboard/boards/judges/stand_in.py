"""Can a judge replace annotators, and what do people and a judge say together?"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from judging.models import Run
from leaderboard import votes
from leaderboard.boards.base import Board, cached, ranks
from leaderboard.boards.judges.board import majority_of
from leaderboard.hidden import in_parts, without_sealed
from leaderboard.methods import EPSILON, SEED
from leaderboard.rows import JSON, UNKNOWN, Number, OfJudge, Row, number, of_judge, shown
from leaderboard.scope import HUMANS, BadScope, Scope
from leaderboard.votes import scores
from stats.alternative import FEWEST, alternative_annotator_test
from stats.figures import number_of, percent, two
from stats.prediction import FEWEST_LABELLED_GROUPS, PowerTuned, places_of, prediction_powered
from stats.proportions import mean
from stats.results import InvalidCount
from stats.verdicts import three_way

FEWEST_PEOPLE = 3  # with fewer annotators, leaving one out leaves no group to compare with


@dataclass(frozen=True, kw_only=True)
class TestedAnnotator(Row):
    """One unnamed annotator, left out of the group and compared with the judge."""

    n: int
    advantage: float | None
    p: float | None
    rejected: bool | None


@dataclass(frozen=True, kw_only=True)
class StandInRow(OfJudge):
    """The alternative annotator test of one judge; ``reason`` says why a result is missing."""

    judge: str
    run: int
    settings: JSON
    epsilon: float
    winning_rate: float | None = shown(
        "Winning rate", two, "Share of the tested people whom the judge may replace; 0.5 or more passes", default=None
    )
    advantage: float | None = shown(
        "At least as close %",
        percent,
        "Advantage: mean share of items on which the judge is at least as close to the others as the person left out",
        default=None,
    )
    passes: bool | None = None
    tested: int = 0
    n: int = 0
    annotators: list[TestedAnnotator] = field(default_factory=list)
    reason: str = ""
    simulated: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class StandInBoard(Board[StandInRow]):
    people: int = 0


@dataclass(frozen=True, kw_only=True)
class TogetherRow(Row):
    """A model by people alone and by people with a judge. ``n``: items with verdicts of both; ``further``: items with
    the judge's only; ``weight``: lambda; ``judge``: the judge's mean verdict.
    """

    model: str
    people: Number
    people_n: int
    n: int
    further: int
    judge: float | None
    both: Number = UNKNOWN
    weight: float | None = None
    reason: str = ""

    @property
    def shown(self) -> Number:
        """By both, or why there is no such number."""
        return Number(reason=self.reason) if self.reason else self.both


@dataclass(frozen=True, kw_only=True)
class TogetherLevel(TogetherRow):
    """The same of a model within a ``level``, with a weight of its own."""

    level: str


@dataclass(frozen=True, kw_only=True)
class TogetherRank(Row):
    """The place of a model by people and a judge together; see ``boards.base.ModelRow``."""

    model: str
    rank: int
    rank_low: int | None
    rank_high: int | None
    tier: int | None
    both: Number
    n: int


@dataclass(frozen=True, eq=False, kw_only=True)
class TogetherBoard(Board[TogetherRow]):
    """``ranks`` of the models with a number, best first; ``levels``: each model within each."""

    judge: str = ""
    ranks: Sequence[TogetherRank] = ()
    levels: Sequence[TogetherLevel] = ()


def _refuse(scope: Scope, *, means: bool = False) -> None:
    if not scope.kind.stand_in:
        raise BadScope(f"This is only computed for pairs, scores and categories; none of kind {scope.kind}.")
    if means and not scope.kind.has_means:
        raise BadScope(f"This is only computed for pairs and scores; none of kind {scope.kind}.")


def judges_of(scope: Scope) -> list[list[Run]]:
    """The runs of every judge that is not a baseline, by judge and settings."""
    return [
        runs for runs in votes.judge_groups(replace(scope, run=None, source=HUMANS)) if not runs[0].judge.is_baseline
    ]


def stand_ins(scope: Scope, epsilon: float = EPSILON) -> StandInBoard:
    """The alternative annotator test of every judge (Calderon et al., arXiv 2501.10970), cached by ``epsilon``.

    Verdicts and categories are compared by equality, scores by distance.
    """
    _refuse(scope)
    return cached(scope, f"stand-ins:{epsilon!r}", lambda scope: _stand_ins(scope, epsilon))


def _stand_ins(scope: Scope, epsilon: float) -> StandInBoard:
    scope = without_sealed(scope)
    labels = _labels(scope)
    codes = _codes(scope, labels)
    labels = labels.assign(value=codes(labels["value"]))
    people = int(labels["annotator"].nunique())
    rows: list[StandInRow] = []
    for runs in judges_of(scope):
        verdicts = scores.mean_by_item(_verdicts_of(scope, runs))
        coded = verdicts.assign(value=codes(verdicts["value"]))
        rows.append(_tested(scope, runs[-1], labels, coded, epsilon, people))
    return StandInBoard(rows, [], tuple(row.run for row in rows), people=people)


def _tested(
    scope: Scope, run: Run, labels: pd.DataFrame, verdicts: pd.DataFrame, epsilon: float, people: int
) -> StandInRow:
    judge = of_judge(run) | {"settings": run.settings, "epsilon": epsilon}
    if people < FEWEST_PEOPLE:
        return StandInRow(
            **judge, reason=f"{number_of(people, 'annotator')}: the test leaves one out and needs {FEWEST_PEOPLE}"
        )
    if not len(verdicts):
        return StandInRow(**judge, reason="no verdict on what people labelled")
    result = alternative_annotator_test(labels=labels, judge=verdicts, measure=scope.kind.stand_in, epsilon=epsilon)
    annotators = [
        TestedAnnotator(n=person.n, advantage=person.advantage, p=person.p, rejected=person.rejected)
        for person in sorted(result.annotators, key=lambda person: -person.n)
        if person.n
    ]
    return StandInRow(
        **judge,
        winning_rate=result.winning_rate,
        advantage=result.advantage,
        passes=result.passes,
        tested=sum(person.p is not None and person.n >= FEWEST for person in annotators),
        n=int(labels["item"].isin(verdicts["item"]).sum()),
        annotators=annotators,
        reason=result.reason,
    )


def _labels(scope: Scope) -> pd.DataFrame:
    """``item, annotator, value``."""
    labels = (
        votes.labels_of(scope).rename(columns={"choice": "value"}) if scope.kind.pairwise else scores.labels_of(scope)
    )
    return labels[labels["item"].isin(scores.items_asked(scope).index)]


def _verdicts_of(scope: Scope, runs: list[Run]) -> pd.DataFrame:
    """``item, repeat, value``."""
    if not scope.kind.pairwise:
        return scores.of_runs(scope, runs)
    return votes.of_runs(scope, runs).frame.rename(columns={"choice": "value"})


def _codes(scope: Scope, labels: pd.DataFrame) -> Callable[["pd.Series[Any]"], Any]:
    """What turns verdicts into numbers: votes, undecided being a tie, and categories into codes; scores are numbers.

    A category that no person gave has a code that equals nobody's.
    """
    if scope.kind.pairwise:
        return lambda values: three_way(values.to_numpy(object))
    if scope.kind.by_mean:
        return lambda values: values
    known = pd.Index(labels["value"].unique())
    return lambda values: known.get_indexer(pd.Index(values))


# ---- people and a judge together ----


TOO_FEW_GROUPS = f"this {{}} has too few groups (pictures, prompts): {{}}, and it takes {FEWEST_LABELLED_GROUPS}"


def run_beside(scope: Scope) -> int | None:
    """The run to put beside people: that of the view, else of its judge, else of all, the one over most items."""
    if scope.run is not None:
        return scope.run
    of_all = list(chain.from_iterable(judges_of(scope)))
    of_judge = [run for run in of_all if run.judge.name == scope.source]
    run = votes.with_most_items(of_judge or of_all)
    return None if run is None else run.pk


def together(scope: Scope, run: int) -> TogetherBoard:
    """Each model by people alone, and by people with a judge (PPI++: Angelopoulos et al., arXiv 2311.01453).

    The win rate of pairs, or the mean score. An item counts once; items of one group depend on each other.
    """
    _refuse(scope, means=True)
    return cached(replace(scope, run=run), "together", _together)


def _together(scope: Scope) -> TogetherBoard:
    runs = next((runs for runs in judges_of(scope) if scope.run in [run.pk for run in runs]), None)
    if runs is None:
        raise BadScope(f"No judge has a run {scope.run} here.")
    scope = without_sealed(scope)
    labels = _majority(scope) if scope.kind.pairwise else _labels(scope)
    if labels.empty:  # the judge's verdicts alone are on the board of models
        return TogetherBoard([], [], tuple(run.pk for run in runs), judge=str(runs[-1].judge))
    people_values, judge_values = _by_model(scope, labels), _by_model(scope, _verdicts_of(scope, runs))
    on = ["model", "item", "group"]
    merged = people_values.merge(judge_values, on=on, how="outer", suffixes=("_people", "_judge"))
    samples = scope.benchmark.samples
    groups = samples.exclude(group="").values("group").distinct().count() + samples.filter(group="").count()
    found = [_estimated(scope, str(model), part, groups) for model, part in merged.groupby("model")]
    rows = [row for row, _ in found]
    rows.sort(key=lambda row: (row.both.value is None, -(row.both.value or 0.0)))
    return TogetherBoard(
        rows,
        [],
        tuple(run.pk for run in runs),
        judge=str(runs[-1].judge),
        ranks=_ranked(found),
        levels=_by_level(scope, merged),
    )


def _ranked(found: Sequence[tuple[TogetherRow, PowerTuned | None]]) -> list[TogetherRank]:
    known = [(row, powered) for row, powered in found if powered is not None and row.both.value is not None]
    if not known:
        return []
    places = places_of([powered for _, powered in known], rng=np.random.default_rng(SEED))
    ranked = [
        TogetherRank(model=row.model, **ranks(place), both=row.both, n=row.n + row.further)
        for (row, _), place in zip(known, places, strict=True)
    ]
    return sorted(ranked, key=lambda row: row.rank)


def _by_level(scope: Scope, merged: pd.DataFrame) -> list[TogetherLevel]:
    """Each model within each level that may be shown; nothing where there is one level alone."""
    items = scores.items_asked(scope)
    frame = merged.join(items[["level", "sample"]], on="item", how="inner")
    frame = frame[in_parts(scope, frame, by="level")]
    names = [name for name in votes.level_names(scope) if name in set(frame["level"])]
    levels = []
    for name in names if len(names) > 1 else ():
        rows = frame[frame["level"] == name]
        groups = int(rows["group"].nunique())
        for model, part in rows.groupby("model"):
            row, _ = _estimated(scope, str(model), part, groups, of="level")
            levels.append(TogetherLevel(level=name, **vars(row)))
    return levels


def _majority(scope: Scope) -> pd.DataFrame:
    labels = votes.labels_of(scope).rename(columns={"choice": "value"})
    return labels if labels.empty else majority_of(labels, scope.rule)


def _by_model(scope: Scope, frame: pd.DataFrame) -> pd.DataFrame:
    """``model, item, group, value``: its wins as a mean over repeats, or its mean score."""
    if scope.kind.pairwise:
        items = votes.pairs(scope)
        rows = frame.rename(columns={"value": "choice"}).join(items, on="item", how="inner")
        anchor = scope.anchor if (items[["a", "b"]] == scope.anchor).to_numpy().any() else ""
        values = votes.win_points(votes.sided(rows, anchor), scope.ties).rename(columns={"won": "value"})
    else:
        values = scope.kind.by_model(frame.join(scores.items_of(scope), on="item", how="inner"))
        values = values[values["model"] != ""]
    return values.groupby(["model", "item", "group"], as_index=False, observed=True)["value"].mean()


def _estimated(
    scope: Scope, model: str, rows: pd.DataFrame, groups: int, *, of: str = "benchmark"
) -> tuple[TogetherRow, PowerTuned | None]:
    """``groups``: how many there are ``of`` the benchmark or the level."""
    labelled, judged = rows["value_people"].notna(), rows["value_judge"].notna()
    shared, further = rows[labelled & judged], rows[~labelled & judged]
    values = rows.loc[labelled, "value_people"].to_numpy(float)
    ends = (0.0, 1.0) if scope.kind.pairwise else scope.kind.ends(scope.benchmark)
    people = mean(values=values, cluster=rows.loc[labelled, "group"].to_numpy(), ends=ends)
    row = TogetherRow(
        model=model,
        people=number(people),
        people_n=len(values),
        n=len(shared),
        further=len(further),
        judge=float(rows.loc[judged, "value_judge"].mean()) if judged.any() else None,
    )
    try:
        powered = prediction_powered(
            labels=shared["value_people"],
            judged=shared["value_judge"],
            unlabelled=further["value_judge"],
            cluster=shared["group"].to_numpy(),
            unlabelled_cluster=further["group"].to_numpy(),
            ends=ends,
        )
    except InvalidCount:
        return replace(row, reason="the judge covers nothing beyond the labels"), None
    reason = powered.estimate.reason
    if reason and groups < FEWEST_LABELLED_GROUPS:
        reason = TOO_FEW_GROUPS.format(of, groups)
    row = replace(row, both=number(replace(powered.estimate, reason=reason)), weight=powered.weight, reason=reason)
    return row, powered
