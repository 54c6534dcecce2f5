"""May a judge stand in for annotators, and what do people and a judge say together?"""

from dataclasses import replace
from typing import Any

import pandas as pd

from judging.models import Run
from leaderboard import votes
from leaderboard.boards.base import Board, Row, kept, number
from leaderboard.boards.pair_judges import majority_of
from leaderboard.boards.sources import judge_groups
from leaderboard.scope import HUMANS, BadScope, Scope
from leaderboard.votes import scores
from stats.alternative import FEWEST, alternative_annotator_test
from stats.prediction import prediction_powered
from stats.proportions import mean, rate
from stats.results import InvalidCount
from stats.verdicts import three_way

EPSILON = 0.2
FEWEST_PEOPLE = 3  # annotators below which leaving one out leaves no group to be close to


def _refuse(scope: Scope) -> None:
    if not scope.kind.stand_in:
        raise BadScope(f"This is told of pairs and scores; there is none of kind {scope.kind}.")


def judges_of(scope: Scope) -> list[list[Run]]:
    """The runs of every judge that is no baseline, by its settings."""
    return [runs for runs in judge_groups(replace(scope, run=None, source=HUMANS)) if not runs[0].judge.is_baseline]


def stand_ins(scope: Scope, epsilon: float = EPSILON) -> Board:
    """The alternative annotator test of every judge (Calderon et al., arXiv 2501.10970), kept with its ``epsilon``.

    Rows ``{judge, run, settings, winning_rate, advantage, passes, tested, n, reason, annotators}``: ``annotators`` are
    ``{n, advantage, p, rejected}`` without names. Verdicts are compared by equality, scores by distance.
    """
    _refuse(scope)
    return kept(scope, f"stand-ins:{epsilon:g}", lambda scope: _stand_ins(scope, epsilon))


def _stand_ins(scope: Scope, epsilon: float) -> Board:
    labels = _coded(_labels(scope))
    people = int(labels["annotator"].nunique())
    rows: list[Row] = []
    for runs in judges_of(scope):
        told = _coded(_told(scope, runs).groupby("item", as_index=False)["value"].agg(scores.mean_of))
        rows.append(_tested(scope, runs[-1], labels, told, epsilon, people))
    used = tuple(row["run"] for row in rows)
    return Board(rows, [], used, {"people": people, "epsilon": epsilon, "fewest": FEWEST})


def _tested(scope: Scope, run: Run, labels: pd.DataFrame, told: pd.DataFrame, epsilon: float, people: int) -> Row:
    row: Row = {"judge": run.judge.name, "run": run.pk, "settings": run.settings}
    none: Row = {"winning_rate": None, "advantage": None, "passes": None, "tested": 0, "n": 0, "annotators": []}
    if people < FEWEST_PEOPLE:
        return row | none | {"reason": f"{people} annotators: the test leaves one out and needs {FEWEST_PEOPLE}"}
    if not len(told):
        return row | none | {"reason": "no verdict on what people labelled"}
    found = alternative_annotator_test(labels=labels, judge=told, measure=scope.kind.stand_in, epsilon=epsilon)
    each: list[Row] = [
        {"n": one.n, "advantage": one.advantage, "p": one.p, "rejected": one.rejected}
        for one in sorted(found.annotators, key=lambda one: -one.n)
        if one.n
    ]
    tested = [one for one in each if one["p"] is not None and one["n"] >= FEWEST]
    return row | {
        "winning_rate": found.winning_rate,
        "advantage": found.advantage,
        "passes": found.passes,
        "tested": len(tested),
        "n": int(labels["item"].isin(told["item"]).sum()),
        "annotators": each,
        "reason": found.reason,
    }


def _labels(scope: Scope) -> pd.DataFrame:
    """``item, annotator, value``."""
    if not scope.kind.pairwise:
        labels = scores.labels_of(scope)
        return labels[labels["item"].isin(scores.items_of(scope).index)]
    labels = votes.labels_of(scope).rename(columns={"choice": "value"})
    return labels[labels["item"].isin(votes.pairs(scope).index)]


def _told(scope: Scope, runs: list[Run]) -> pd.DataFrame:
    """``item, repeat, value``."""
    if not scope.kind.pairwise:
        return scores.of_runs(scope, runs)
    return votes.of_runs(runs).frame.rename(columns={"choice": "value"})


def _coded(frame: pd.DataFrame) -> pd.DataFrame:
    """Words of verdicts as codes; undecided is a tie."""
    words = len(frame) and isinstance(frame["value"].iloc[0], str)
    return frame.assign(value=three_way(frame["value"].to_numpy(object))) if words else frame


# ---- people and a judge together ----


def together(scope: Scope, run: int) -> Board:
    """Each model by people alone, and by people with a judge (PPI++: Angelopoulos et al., arXiv 2311.01453).

    Rows ``{model, people (with ends), n, both (with ends), weight, further, judge, reason}``: ``n`` items that people
    and the judge share, ``further`` items that the judge alone has, ``weight`` lambda. The win rate of pairs, the mean
    score; an item counts once, and items as independent.
    """
    _refuse(scope)
    return kept(replace(scope, run=run), "together", _together)


def _together(scope: Scope) -> Board:
    runs = next((runs for runs in judges_of(scope) if scope.run in [run.pk for run in runs]), None)
    if runs is None:
        raise BadScope(f"No judge has a run {scope.run} here.")
    labels = _majority(scope) if scope.kind.pairwise else _labels(scope)
    if labels.empty:  # then a judge's verdicts stand alone, on the board of models
        return Board([], [], tuple(run.pk for run in runs), {"judge": runs[-1].judge.name})
    people, judge = _by_model(scope, labels), _by_model(scope, _told(scope, runs))
    both = people.merge(judge, on=["model", "item"], how="outer", suffixes=("_people", "_judge"))
    rows = [_estimated(scope, str(model), part) for model, part in both.groupby("model")]
    known = [row for row in rows if row["both"] is not None]
    order = sorted(known, key=lambda row: -row["both"]) + [row for row in rows if row["both"] is None]
    return Board(order, [], tuple(run.pk for run in runs), {"judge": runs[-1].judge.name})


def _majority(scope: Scope) -> pd.DataFrame:
    labels = votes.labels_of(scope).rename(columns={"choice": "value"})
    return labels if labels.empty else majority_of(labels, scope.rule)


def _by_model(scope: Scope, frame: pd.DataFrame) -> pd.DataFrame:
    """``model, item, value``: whether it won, as a mean over repeats; or its mean score."""
    if scope.kind.pairwise:
        items = votes.pairs(scope)
        rows = frame.rename(columns={"value": "choice"}).join(items, on="item", how="inner")
        anchor = scope.anchor if (items[["a", "b"]] == scope.anchor).to_numpy().any() else ""
        sided = votes.sided(rows, anchor)
        made = sided.assign(value=(sided["outcome"] == votes.WIN).astype(float))
    else:
        items = scores.items_of(scope)
        items = items[items["models"].map(len) == 1]
        made = frame.join(items["models"].str[0].rename("model"), on="item", how="inner")
    return made.groupby(["model", "item"], as_index=False)["value"].mean()


def _estimated(scope: Scope, model: str, rows: pd.DataFrame) -> Row:
    labelled, judged = rows["value_people"].notna(), rows["value_judge"].notna()
    shared, further = rows[labelled & judged], rows[~labelled & judged]
    told = rows.loc[labelled, "value_people"].to_numpy(float)
    alone: Any = None
    if len(told):
        cluster = rows.loc[labelled, "item"].to_numpy()
        alone = rate(hits=told, cluster=cluster) if scope.kind.pairwise else mean(values=told, cluster=cluster)
    row: Row = {"model": model} | number("people", alone) | {"people_n": len(told), "n": len(shared)}
    row |= {"further": len(further), "judge": float(rows.loc[judged, "value_judge"].mean()) if judged.any() else None}
    try:
        found = prediction_powered(
            labels=shared["value_people"], judged=shared["value_judge"], unlabelled=further["value_judge"]
        )
    except InvalidCount:
        few = "fewer than two items that both have" if len(shared) < 2 else "the judge covers nothing beyond the labels"
        return row | number("both", None) | {"weight": None, "reason": few}
    return row | number("both", found.estimate) | {"weight": found.weight, "reason": ""}
