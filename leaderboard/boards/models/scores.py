"""The boards of models by scores and by components."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import ClassVar

import numpy as np
import pandas as pd

from bank.models.items import ItemResponse
from bank.recipes.marked_answers import exact_matches
from leaderboard import votes
from leaderboard.boards.base import Level, ModelRow, ModelsBoard, apart, best_of, by_rank, next_better, places_by, ranks
from leaderboard.hidden import in_parts
from leaderboard.rows import JSON, UNKNOWN, Number, number
from leaderboard.scope import BadScope, Scope
from leaderboard.votes import scores
from stats.disclosure import MIN_SAMPLES
from stats.proportions import mean, rate

NO_VERDICTS = "No verdicts yet."
NO_MODELS = "The scores here are for pictures, not for models' answers: see the board of judges."


@dataclass(frozen=True, kw_only=True)
class Part(Level):
    """A mean within a level or category, and the number of rows behind it."""

    score: Number
    n: int


@dataclass(frozen=True, kw_only=True)
class ScoreRow(ModelRow):
    """A model by scores or marks."""

    levels_name: ClassVar[str] = "levels"

    score: Number
    levels: dict[str, Part] = field(default_factory=dict)
    n: int

    def as_json(self) -> JSON:
        columns: JSON = super().as_json()
        scores = {name: level["score"] for name, level in columns.pop("levels").items()}
        return columns | {self.levels_name: scores}


@dataclass(frozen=True, kw_only=True)
class ComponentsRow(ScoreRow):
    """A model by points for weighted components."""

    levels_name: ClassVar[str] = "categories"


@dataclass(frozen=True, kw_only=True)
class MarksRow(ScoreRow):
    """A model by marks for its open answers, and beside them the share that is the key to the letter (MMBench, Table
    3), over the same answers.
    """

    exact_match: Number = UNKNOWN


@dataclass(frozen=True, eq=False)
class ScoresBoard(ModelsBoard):
    """``level_order``: the levels or categories with numbers for some model, in the order shown."""

    rows: Sequence[ScoreRow] = ()
    _: KW_ONLY
    ranked_by: str = "score"
    level_order: list[str] = field(default_factory=list)

    @property
    def level_columns(self) -> list[list[str]]:
        return [self.level_order] if len(self.level_order) > 1 else []


@dataclass(frozen=True, eq=False)
class MarksBoard(ScoresBoard):
    rows: Sequence[MarksRow] = ()


@dataclass(frozen=True, eq=False)
class ComponentsBoard(ScoresBoard):
    rows: Sequence[ComponentsRow] = ()


def models(scope: Scope, *, row_class: type[ScoreRow] = ScoreRow) -> ScoresBoard:
    """The mean score of every model, with its interval, and by level (MLLM-as-a-Judge scores: 1 to 5).

    Components: the mean of points per weights, in percent, and by category the mean of each component's points per
    weight (MIA-Bench, Table 1).
    """
    frame, runs = verdicts_on_models(scope)
    if frame.empty:
        return ScoresBoard([], [NO_VERDICTS], runs)
    frame = frame[frame["model"] != ""]
    if frame.empty:
        return ScoresBoard([], [NO_MODELS], runs)
    shares = scope.kind.shares(scope, frame)
    frame, parts = shares.whole, shares.parts[in_parts(scope, shares.parts, by="part")]
    if frame.empty:
        return ScoresBoard([], shares.notes, runs)
    order = [name for name in shares.order if name in set(parts["part"])]
    names = sorted(frame["model"].unique())
    places = places_by(frame, names, "value")
    ends = scope.kind.ends(scope.benchmark)
    rows = []
    for name, place in places.items():
        model_rows, model_parts = frame[frame["model"] == name], parts[parts["model"] == name]
        by_part = {part: model_parts[model_parts["part"] == part] for part in order}
        row = row_class(
            model=str(name),
            **ranks(place),
            score=_mean(model_rows, ends),
            levels={part: Part(score=_mean(part_rows, ends), n=len(part_rows)) for part, part_rows in by_part.items()},
            n=int(model_rows["item"].nunique()),
        )
        rows.append(row)
    best = [] if scope.edition else best_of({name: place.best for name, place in places.items()})
    return ScoresBoard(
        sorted(rows, key=by_rank),
        [*shares.notes, *best],
        runs,
        items=int(frame["item"].nunique()),
        level_order=order,
        apart=[] if scope.edition else apart(rows, "score", next_better(names, [*places.values()])),
    )


NO_EXACT_MATCH = "an edition shows no share of answers that are the key: it would tell about keys"


def with_exact_matches(scope: Scope, board: ScoresBoard) -> MarksBoard:
    """The board of marks, with the share of the marked answers that are the key or a synonym of it, without case and
    marks at the ends.
    """
    rows = [MarksRow(**vars(row)) for row in board.rows]
    marks = MarksBoard(**vars(board) | {"rows": rows})
    if scope.edition or not rows:
        unknown = Number(reason=NO_EXACT_MATCH)
        return replace(marks, rows=[replace(row, exact_match=unknown) for row in rows])
    frame, _ = verdicts_on_models(scope)
    places = ItemResponse.objects.filter(item__in=[int(item) for item in frame["item"].unique()])
    response_of = dict(places.values_list("item", "response"))
    matches = exact_matches(benchmark=scope.benchmark, responses=response_of.values())
    frame = frame.assign(match=[matches.get(response_of.get(item, 0)) for item in frame["item"]])
    frame = frame[frame["match"].notna()]
    shares = {
        str(model): number(rate(hits=of_model["match"].to_numpy(bool), cluster=of_model["group"].to_numpy()))
        for model, of_model in frame.groupby("model")
    }
    return replace(marks, rows=[replace(row, exact_match=shares.get(row.model, UNKNOWN)) for row in rows])


def verdicts_on_models(scope: Scope) -> tuple[pd.DataFrame, tuple[int, ...]]:
    """The outcomes of the view with the columns of their items (see ``scores.items_of``) and the ``model`` ("" unless
    one model was scored), and the runs they come from. An edition only has models with at least MIN_SAMPLES samples.
    """
    items = scores.items_of(scope)
    verdicts, runs = outcomes(scope)
    frame = scope.kind.by_model(verdicts[verdicts["item"].isin(items.index)].join(items, on="item"))
    if scope.edition:
        frame = frame[~frame["model"].isin(scope.without)]
        frame = frame[frame.groupby("model")["sample"].transform("nunique") >= MIN_SAMPLES]
    return frame, runs


def _mean(frame: pd.DataFrame, ends: tuple[float, float]) -> Number:
    return number(mean(values=frame["value"].to_numpy(np.float64), cluster=frame["group"].to_numpy(), ends=ends))


def outcomes(scope: Scope) -> tuple[pd.DataFrame, tuple[int, ...]]:
    """``item``, ``value``: the mean of people's labels, every label, or the judge's verdict averaged over repeats."""
    if scope.by_people:
        labels = scores.labels_of(scope, every=True)
        if scope.source == "individuals" or labels.empty:
            of_decoys = labels["item"].isin(votes.decoys_of(scope))
            singly = labels.loc[~of_decoys, ["item", "value"]]
            if of_decoys.any():
                singly = pd.concat([singly, scores.mean_by_item(labels[of_decoys])], ignore_index=True)
            return singly, ()
        return scores.mean_by_item(labels), ()
    if scope.run is not None:
        runs = list(votes.judged_runs(scope).filter(pk=scope.run))
        if not runs:
            raise BadScope(f"There is no run {scope.run} with scores on {scope.benchmark}.")
        runs = votes.with_alike(scope, runs[0])
    else:
        runs = votes.runs_of(scope, scope.source)
    verdicts = scores.mean_by_item(scores.of_runs(scope, runs))
    return verdicts, tuple(run.pk for run in runs)
