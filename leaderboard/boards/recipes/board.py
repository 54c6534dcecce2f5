"""Boards of recipes: what each model reaches by one recipe's metric, by scenario and over all of them (ChEF).

What rests on answer keys that are not open is live for staff alone: of a scenario with such keys everybody else sees
the newest edition (``boards.recipe_editions``), or that there is none.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
from pydantic import TypeAdapter

from accounts.rules import Viewer, allowed, class_of
from bank import guard
from bank.errors import BadInput
from bank.models import Benchmark, Recipe, Response
from bank.recipes import store
from bank.recipes.marked_answers import as_frame
from bank.recipes.spec import ALONE, PLAIN, Spec
from bank.recipes.verbalizers import GROUPS
from judging.models import Judgment, Run
from judging.recipes.evaluations import samples_of
from judging.recipes.questions import dealt_query
from leaderboard.boards.base import Board, places_by, share, with_significance
from leaderboard.boards.models.keyed import FROM_POSITIVES
from leaderboard.boards.versus import board as versus
from leaderboard.boards.versus.board import Measure
from leaderboard.hidden import keys_are_open
from leaderboard.kept.values import until_changed
from leaderboard.methods import SEED
from leaderboard.models import RecipeEdition
from leaderboard.rows import UNKNOWN, Number, Row, number
from stats import desiderata
from stats.answers import yes_no_scores
from stats.bleu import bleu
from stats.proportions import mean, rate
from stats.ranks import Place
from stats.results import Estimate, Interval

Columns = dict[str, Any]
ALL = "all"
HIDDEN = "{} rests on answer keys that are not open to everybody: staff see it, and others what they publish of it."
EDITION = "{} rests on answer keys that are not open to everybody: this is edition {}, of {:%-d %b %Y}."
FEW = f"n < {desiderata.PROVISIONAL}: provisional"
NO_MARKS = "no reasons of right answers were marked"
# The paper's text names the first range and that three lie above it (Figure 18b).
MARK_ENDS = (0, 3, 5, 7, 10)
MARK_RANGES = ("0 to 3", "over 3 to 5", "over 5 to 7", "over 7")


@dataclass(frozen=True, slots=True)
class Metric:
    """``title`` of its column; ``estimates`` gives the number of one model in one scenario."""

    name: str
    title: str
    words: str
    signed: bool = False


METRICS = {
    metric.name: metric
    for metric in (
        Metric("accuracy", "Right %", "share of right answers"),
        Metric("circular", "Circular %", "right in every rotation of the options"),
        Metric("weighted-accuracy", "Weighted %", "mean share of the way down the tree that is right"),
        Metric("exact-match", "Exact match %", "the key, or one of its synonyms, to the letter"),
        Metric("bleu", "BLEU", "n-grams shared with the reference (sacrebleu)"),
        Metric("yes-no", "Right %", "share of right answers to yes or no"),
        Metric("ece", "100 less the gap", "how near confidence is to being right"),
        Metric("riam", "Gain %", "gain from examples, of what lies above chance", signed=True),
        Metric("mr", "Match %", "answers that follow other labels (MR)"),
        Metric("language", "Marks %", "marks for the reasons of right answers"),
        Metric("rrm", "Kept %", "what is left when damaged, of what lies above chance"),
    )
}


@dataclass(frozen=True, kw_only=True)
class ConditionRow(Row):
    """Accuracy under one condition, or of some answers."""

    accuracy: Number = UNKNOWN
    n: int


@dataclass(frozen=True, kw_only=True)
class LabelsRow(Row):
    """Under other labels: the share right (Acc_vm), and the share that says the same as under its own labels (MR)."""

    accuracy: Number = UNKNOWN
    match: Number = UNKNOWN
    n: int


@dataclass(frozen=True, kw_only=True)
class RecipeLetterRow(Row):
    """A letter of options: its share of the answers read (``chosen``) and of the right options (``key``), and the share
    of the answers that chose it which are right (Figure 7b).
    """

    chosen: Number = UNKNOWN
    key: float
    accuracy: Number = UNKNOWN
    n: int


@dataclass(frozen=True, kw_only=True)
class BinRow(Row):
    """A bin of the reliability diagram: mean confidence, share right, questions."""

    confidence: float
    accuracy: float
    n: int


@dataclass(frozen=True, kw_only=True)
class RecipeRow(Row):
    """A model by a recipe in one scenario, or over ``all`` weighted by samples.

    ``value`` is the recipe's metric; ``accuracy`` that of the plain condition; ``chance`` that of random answers.
    ``unread`` answers name no option and are not right; ``coverage`` is the share of the scenario's questions with an
    answer under every condition. ``ece_calibrated`` (and its 95th percentile) is what a perfectly calibrated model
    would show at the same confidences. ``corruptions``: the accuracy by each corruption alone, over its strengths
    (Figure 20). ``accuracy_vm`` is the accuracy under other labels (Table 10), which ``labels`` has by set and by group
    of sets (Figure 17). ``letters``: those chosen for the plain question. ``marks``: the accuracy by range of the marks
    for reasons, where those of wrong answers are marked, too (Figure 18b).
    """

    model: str
    recipe: str
    scenario: str
    metric: str
    rank: int | None = None
    rank_low: int | None = None
    rank_high: int | None = None
    tier: int | None = None
    value: Number
    accuracy: Number = UNKNOWN
    chance: float | None = None
    conditions: dict[str, ConditionRow] = field(default_factory=dict)
    corruptions: dict[str, ConditionRow] = field(default_factory=dict)
    accuracy_vm: Number = UNKNOWN
    labels: dict[str, LabelsRow] = field(default_factory=dict)
    letters: dict[str, RecipeLetterRow] = field(default_factory=dict)
    marks: dict[str, ConditionRow] = field(default_factory=dict)
    bins: list[BinRow] = field(default_factory=list)
    ece_calibrated: float | None = None
    ece_calibrated_high: float | None = None
    precision: Number = UNKNOWN
    recall: Number = UNKNOWN
    f1: Number = UNKNOWN
    yes_ratio: Number = UNKNOWN
    levels: dict[str, ConditionRow] = field(default_factory=dict)
    pool_mass: float | None = None
    queries: dict[str, float] = field(default_factory=dict)
    query_sd: float | None = None
    unread: int = 0
    coverage: float | None = None
    n: int
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, eq=False, kw_only=True)
class RecipeBoard(Board[RecipeRow]):
    """``scenarios``: the names of those that are shown; ``published``: those of them that are shown by an edition."""

    scenarios: Sequence[str] = ()
    published: Sequence[str] = ()
    metric: Metric = METRICS["accuracy"]

    def overall(self) -> list[RecipeRow]:
        """A row a model: over all scenarios, or of the only one."""
        return [row for row in self.rows if row.scenario == (ALL if len(self.scenarios) > 1 else row.scenario)]


def board(recipe: Recipe, viewer: Viewer) -> RecipeBoard:
    """What everybody with answers by this recipe reaches."""
    return until_changed(("recipe", recipe.pk, class_of(viewer)), lambda: _recipe_board(recipe, viewer))


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a viewer may see of a recipe: marked answers by scenario, rows of an edition by scenario, and notes."""

    frames: dict[str, pd.DataFrame]
    published: dict[str, list[RecipeRow]]
    benchmarks: dict[str, Benchmark]
    notes: list[str]


def _seen(recipe: Recipe, spec: Spec, viewer: Viewer, model: str = "") -> _Seen:
    seen = _Seen({}, {}, {}, [])
    edition = newest_edition(recipe)
    visible = set(Benchmark.objects.visible_to(viewer).values_list("pk", flat=True))
    of_edition = TypeAdapter(list[RecipeRow]).validate_json(edition.board) if edition else []
    for scenario in spec.scenario:
        benchmark = store.benchmark_of(scenario)
        if benchmark is None or benchmark.pk not in visible:
            continue
        name = str(benchmark)
        if not allowed(viewer, "read-hidden") and not _is_open(recipe, benchmark):
            note = HIDDEN.format(benchmark.titled)
            if edition and (rows := [row for row in of_edition if row.scenario == name]):
                seen.published[name] = rows
                note = EDITION.format(benchmark.titled, edition.number, edition.published_at)
            seen.notes.append(note)
            continue
        frame = marked(recipe, spec, benchmark, model)
        if len(frame):
            seen.frames[name], seen.benchmarks[name] = frame, benchmark
    return seen


def newest_edition(recipe: Recipe) -> RecipeEdition | None:
    return RecipeEdition.objects.filter(recipe=recipe).last()


def closed_scenarios(recipe: Recipe) -> list[Benchmark]:
    """The benchmarks of a recipe with answers compared with keys that are not open to everybody."""
    found = dict.fromkeys(store.benchmark_of(scenario) for scenario in store.spec_of(recipe).scenario)
    return [benchmark for benchmark in found if benchmark is not None and not _is_open(recipe, benchmark)]


def marked(recipe: Recipe, spec: Spec, benchmark: Benchmark, model: str = "") -> pd.DataFrame:
    """The answers by a recipe, of all models or of one, to a benchmark's samples in use, compared with their keys."""
    return as_frame(recipe, spec, benchmark, samples=benchmark.samples.in_use(), model=model)


def rows_of_scenario(recipe: Recipe, spec: Spec, benchmark: Benchmark, frame: pd.DataFrame) -> list[RecipeRow]:
    """A row for each model with answers among these, with ranks."""
    name = str(benchmark)
    models = sorted(frame["model"].unique(), key=str.casefold)
    rows = [_recipe_row(recipe, spec, model, name, frame[frame["model"] == model], benchmark) for model in models]
    return _ranked(rows, {name: frame}, spec)


@dataclass(frozen=True, kw_only=True)
class RecipeMeasure(Measure):
    """Two models, or one by two recipes, on the questions that both answered: the share right of each under a
    ``condition`` (plain, so many examples, other labels, corrupted; "NAME / NAME" where the recipes share none).
    """

    recipe: str
    recipe_b: str
    scenario: str
    condition: str
    model_a: str
    model_b: str


def compare(recipe: Recipe, viewer: Viewer, a: str, b: str) -> list[RecipeMeasure]:
    """Two models pairwise on one recipe, by scenario and condition; tests of all rows together (Benjamini-Hochberg).

    Raises BadInput for a model without answers by it that the viewer may see.
    """
    seen = _seen(recipe, store.spec_of(recipe), viewer)
    frames, notes = seen.frames, seen.notes
    known: set[str] = set()
    for frame in frames.values():
        known.update(map(str, frame["model"].unique()))
    if notes and not known:
        raise BadInput(f"Two models are compared where everybody may see the answer keys. {' '.join(notes)}")
    for name in (a, b):
        if name not in known:
            reason = f" {' '.join(notes)}" if notes else ""
            raise BadInput(
                f"{name!r} has no answers by {recipe}. With some: {', '.join(sorted(known)) or 'none'}.{reason}"
            )
    if a == b:
        raise BadInput("Choose two different models.")
    names: Columns = {"recipe": str(recipe), "recipe_b": str(recipe), "model_a": a, "model_b": b}
    one, other = ({name: frame[frame["model"] == each] for name, frame in frames.items()} for each in (a, b))
    return _compared(names, one, other)


def compare_recipes(recipe: Recipe, other: Recipe, viewer: Viewer, model: str) -> list[RecipeMeasure]:
    """One model by two recipes on the questions that it answered by both (Figures 15 and 16), as ``compare`` does.

    Raises BadInput where it has no answers by one of them that the viewer may see.
    """
    if recipe == other:
        raise BadInput("Choose two different recipes.")
    by_recipe = []
    for each in (recipe, other):
        seen = _seen(each, store.spec_of(each), viewer, model)
        if not seen.frames:
            raise BadInput(f"{model!r} has no answers by {each} to compare. {' '.join(seen.notes)}".strip())
        by_recipe.append(seen.frames)
    names: Columns = {"recipe": str(recipe), "recipe_b": str(other), "model_a": model, "model_b": model}
    rows = _compared(names, *by_recipe)
    if not rows:
        raise BadInput(f"There is no question that {model} answered by both {recipe} and {other}.")
    return rows


def _compared(
    names: Columns, one: Mapping[str, pd.DataFrame], other: Mapping[str, pd.DataFrame]
) -> list[RecipeMeasure]:
    """Answers by scenario beside others: under the conditions that both have, else under the first of each."""
    rows = []
    shared = [scenario for scenario in one if scenario in other and len(one[scenario]) and len(other[scenario])]
    for scenario in shared:
        a, b = one[scenario], other[scenario]
        for condition_a, condition_b in _conditions(a, b):
            answers_a, answers_b = a[a["condition"] == condition_a], b[b["condition"] == condition_b]
            right_a, right_b = (part.groupby("sample")["right"].mean() for part in (answers_a, answers_b))
            groups = answers_a.drop_duplicates("sample").set_index("sample")["group"]
            both = pd.DataFrame({"a": right_a, "b": right_b}).dropna().join(groups)
            if both.empty:
                continue
            condition = " / ".join(dict.fromkeys(str(name) or "plain" for name in (condition_a, condition_b)))
            measure = versus.of_rows(f"{scenario}, {condition}" if len(shared) > 1 else condition, both)
            rows.append(RecipeMeasure(scenario=scenario, condition=condition, **names, **vars(measure)))
    return with_significance(rows)


def _conditions(a: pd.DataFrame, b: pd.DataFrame) -> list[tuple[str, str]]:
    """The conditions to compare: those that both have, else the first of each."""
    of_b = set(b["condition"])
    shared = [(name, name) for name in a["condition"].unique() if name in of_b]
    return shared or [(a["condition"].iloc[0], b["condition"].iloc[0])]


@guard.working()
def comparable(recipe: Recipe, viewer: Viewer) -> list[Recipe]:
    """The other recipes with answers to questions of the same benchmarks that the viewer may know of."""
    asked = [store.benchmark_of(scenario) for scenario in store.spec_of(recipe).scenario]
    answered = Response.all_objects.filter(sample__benchmark__in=[each for each in asked if each])
    others = store.visible_to(viewer).exclude(pk=recipe.pk).filter(pk__in=answered.order_by().values("recipe"))
    return list(others.order_by("name", "version"))


def answers_of(recipe: Recipe, model: str, viewer: Viewer) -> tuple[pd.DataFrame, int, list[str]]:
    """The answers of a model that its figures are made of, as ``as_frame`` gives them with their ``scenario``; how many
    of them the viewer may not see one by one; and notes on scenarios that are left out, since single answers would tell
    their keys.

    ``bin`` numbers the bin of the reliability diagram from 1, 0 where there is none; ``truth`` is empty where keys are
    not open to everybody: staff open those where each reading is logged.
    """
    spec = store.spec_of(recipe)
    seen = _seen(recipe, spec, viewer, model)
    frames = [
        frame.assign(scenario=name, bin=_bins(frame, spec))
        if _is_open(recipe, seen.benchmarks[name])
        else frame.assign(scenario=name, bin=_bins(frame, spec), truth="", key_letter="")
        for name, frame in seen.frames.items()
    ]
    if not frames:
        return pd.DataFrame(), 0, seen.notes
    answers = pd.concat(frames, ignore_index=True)
    visible = Response.all_objects.seen_by(viewer).filter(recipe=recipe, model__name=model)
    known = answers["response"].isin(set(visible.values_list("pk", flat=True)))
    return answers[known], int((~known).sum()), seen.notes


def _bins(answers: pd.DataFrame, spec: Spec) -> "pd.Series[int]":
    bins = pd.Series(0, index=answers.index)
    sure = _sure(answers) if spec.metric == "ece" else answers[:0]
    for at, rows in enumerate(desiderata.bins_of(sure["confidence"].to_numpy(), sure["key"].tolist()), start=1):
        bins.loc[sure.index[rows]] = at
    return bins


def marks_of(recipe: Recipe, model: str, viewer: Viewer) -> dict[int, list[float]]:
    """By question, the marks for the reasons of a model's right answers that the viewer may see."""
    runs = Run.objects.filter(recipe=recipe, kind=Run.Kind.MARKS, model_name=model)
    marks = Judgment.objects.seen_by(viewer).filter(run__in=runs, status="ok").order_by("repeat")
    found: dict[int, list[float]] = {}
    for sample, score in marks.values_list("item__sample", "score"):
        found.setdefault(sample, []).append(score)
    return found


def _recipe_board(recipe: Recipe, viewer: Viewer) -> RecipeBoard:
    spec = store.spec_of(recipe)
    seen = _seen(recipe, spec, viewer)
    by_scenario = {
        name: rows_of_scenario(recipe, spec, seen.benchmarks[name], frame) for name, frame in seen.frames.items()
    } | seen.published
    rows = list(chain.from_iterable(by_scenario.values()))
    if len(by_scenario) > 1:
        models = sorted({row.model for row in rows}, key=str.casefold)
        of_models = [[row for row in rows if row.model == model] for model in models]
        over = [_overall(recipe, spec, each, complete=len(each) == len(by_scenario)) for each in of_models]
        rows += _ranked(over, seen.frames if not seen.published else {}, spec)
    return RecipeBoard(
        rows,
        seen.notes,
        scenarios=tuple(by_scenario),
        published=tuple(seen.published),
        metric=METRICS[spec.metric],
        runs=tuple(_runs(recipe)),
    )


def _runs(recipe: Recipe) -> list[int]:
    return list(Run.objects.filter(recipe=recipe).order_by("pk").values_list("pk", flat=True))


@guard.working()
def _is_open(recipe: Recipe, benchmark: Benchmark) -> bool:
    """Whether all keys that answers by this recipe are compared with are open to everybody."""
    answered = Response.all_objects.filter(recipe=recipe, sample__benchmark=benchmark).order_by().values("sample")
    return keys_are_open(benchmark.samples.in_use().filter(pk__in=answered))


# ---- one model in one scenario ----


def _recipe_row(
    recipe: Recipe, spec: Spec, model: str, scenario: str, answers: pd.DataFrame, benchmark: Benchmark
) -> RecipeRow:
    plain = answers[answers["condition"] == PLAIN] if (answers["condition"] == PLAIN).any() else answers
    columns = _MEASURES[spec.metric](answers, spec, recipe, model, benchmark)
    estimate: Estimate = columns.pop("value")
    notes = columns.pop("notes", [])
    conditions = {}
    if answers["condition"].nunique() > 1:
        conditions = {name or "plain": row for name, row in _parts(answers, answers["condition"]).items()}
    complete = answers.groupby("sample").size() >= answers.groupby("sample").size().max()
    alone = answers[answers["condition"].str.startswith(ALONE)]
    methods = alone["condition"].str.removeprefix(ALONE).str.rpartition("-")[0] if len(alone) else alone["condition"]
    chance = plain.drop_duplicates("sample")["chance"]
    if spec.rotates:
        chance = chance ** (1 / chance.where(chance > 0))
    queries = _by_query(spec, plain)
    query_spread = desiderata.spread(list(queries.values()))
    return RecipeRow(
        model=model,
        recipe=str(recipe),
        scenario=scenario,
        metric=spec.metric,
        value=number(estimate),
        accuracy=_right(plain),
        chance=None if chance.isna().any() else float(chance.mean()),
        conditions=conditions,
        corruptions=_parts(alone, methods, stratified=True),
        pool_mass=None if plain["mass"].isna().any() else float(plain["mass"].mean()),
        letters=_letters(plain),
        queries=queries,
        query_sd=query_spread.sd if query_spread else None,
        unread=int((~answers["read"]).sum()),
        coverage=share(int(complete.sum()), _asked(spec, benchmark)),
        n=int(answers["sample"].nunique()),
        notes=[*notes, *([f"value: {estimate.reason}"] if estimate.reason else [])],
        **columns,
    )


def _asked(spec: Spec, benchmark: Benchmark) -> int:
    """How many questions the scenario has; 0 where none of them is approved any more."""
    scenario = next(scenario for scenario in spec.scenario if store.benchmark_of(scenario) == benchmark)
    try:
        return len(samples_of(spec, scenario)[1])
    except BadInput:
        return 0


def _right(answers: pd.DataFrame) -> Number:
    return number(_share(answers)) if len(answers) else UNKNOWN


def _share(answers: pd.DataFrame, name: str = "right", stratum: Any = None) -> Estimate:
    return rate(hits=answers[name].to_numpy(), cluster=answers["group"].to_numpy(), stratum=stratum)


def _parts(answers: pd.DataFrame, by: "pd.Series[str]", *, stratified: bool = False) -> dict[str, ConditionRow]:
    """Accuracy in each part, in the order in which they come."""
    return {
        str(name): ConditionRow(
            accuracy=number(_over_conditions(part, "right")) if stratified else _right(part),
            n=int(part["sample"].nunique()),
        )
        for name, part in answers.groupby(by, sort=False)
    }


def _by_query(spec: Spec, answers: pd.DataFrame) -> dict[str, float]:
    """The accuracy with each wording of a pool, and of each repeat (Figures 6 and 21)."""
    if spec.instruction.deal != "seeded" and spec.repeats < 2:
        return {}
    number_of = len(spec.instruction.queries)
    which = [
        dealt_query(spec.seed, key, number_of, repeat) if spec.instruction.deal == "seeded" else 0
        for key, repeat in zip(answers["key"], answers["repeat"], strict=True)
    ]
    grouped = answers.assign(query=which).groupby(["query", "repeat"])["right"].mean()
    return {f"query {query + 1}, repeat {repeat + 1}": float(value) for (query, repeat), value in grouped.items()}


def _accuracy(answers: pd.DataFrame, *_: Any) -> Columns:
    return {"value": _over_conditions(answers, "right")}


def circular_questions(answers: pd.DataFrame) -> pd.DataFrame:
    """A row for each question that was asked in every rotation: ``right`` in all of them."""
    by_sample = answers.groupby(["sample", "repeat"])
    questions = by_sample[["group", "options"]].first()
    questions["right"] = by_sample["right"].min()
    return questions[by_sample.size() >= questions["options"]]


def _circular(answers: pd.DataFrame, *_: Any) -> Columns:
    return {"value": _share(circular_questions(answers))}


def _weighted(answers: pd.DataFrame, *_: Any) -> Columns:
    return {"value": mean(values=answers["credit"].to_numpy(), cluster=answers["group"].to_numpy(), ends=(0.0, 1.0))}


def _yes_no(answers: pd.DataFrame, *_: Any) -> Columns:
    codes = {"yes": 1, "no": 0}
    key = answers["truth"].str.lower().map(codes)
    known = answers[key.notna()]
    scores = yes_no_scores(
        key=key[key.notna()].astype(int).to_numpy(),
        said=known["said"].map(codes).fillna(-1).astype(int).to_numpy(),
        cluster=known["group"].to_numpy(),
    )
    in_order = known.sort_values("path", kind="stable")
    levels = {path: row for path, row in _parts(in_order, in_order["path"]).items() if path}
    return {
        "value": scores.accuracy,
        **{name: number(getattr(scores, name)) for name in (*FROM_POSITIVES, "yes_ratio")},
        "levels": levels,
    }


def _sure(answers: pd.DataFrame) -> pd.DataFrame:
    return answers[answers["confidence"].notna() & (answers["repeat"] == 0)]


def _ece(answers: pd.DataFrame, *_: Any) -> Columns:
    sure = _sure(answers)
    found = desiderata.calibration(
        confidence=sure["confidence"].to_numpy(dtype=np.float64),
        right=sure["right"].to_numpy(),
        key=sure["key"].tolist(),
        cluster=sure["group"].to_numpy(),
        rng=np.random.default_rng(SEED),
    )
    return {
        "value": found.score,
        "bins": [BinRow(confidence=part.confidence, accuracy=part.accuracy, n=part.n) for part in found.bins],
        "ece_calibrated": found.calibrated,
        "ece_calibrated_high": found.calibrated_high,
        "notes": [FEW] if len(sure) < desiderata.PROVISIONAL else [],
    }


def _paired(answers: pd.DataFrame) -> pd.DataFrame:
    """By question with an answer under every condition: the share right under each, its group and chance."""
    wide = answers.pivot_table(index="sample", columns="condition", values="right", aggfunc="mean").dropna()
    return wide.join(answers.drop_duplicates("sample").set_index("sample")[["group", "chance"]])


def _beside_plain(
    answers: pd.DataFrame, others: list[str], method: str, missing: str, *, gained: bool = False
) -> Columns:
    """What the other conditions keep of the accuracy above chance when plain; ``gained``: what they gain, of what lies
    above chance.
    """
    paired = _paired(answers)
    if not {PLAIN, *others} <= set(paired.columns):
        return {"value": Estimate(None, 0, None, method, missing)}
    plain, chance = paired[PLAIN], paired["chance"].astype(float)
    return {
        "value": desiderata.relative(
            part=(paired[others].mean(axis=1) - (plain if gained else chance)).to_numpy(),
            whole=(plain - chance).to_numpy(),
            cluster=paired["group"].to_numpy(),
            method=method,
        )
    }


def _riam(answers: pd.DataFrame, spec: Spec, *_: Any) -> Columns:
    shots = [condition.name for condition in spec.conditions if condition.name != PLAIN]
    missing = "no question has an answer with every number of examples"
    return _beside_plain(answers, shots, "RIAM", missing, gained=True)


def _rrm(answers: pd.DataFrame, spec: Spec, *_: Any) -> Columns:
    corrupted = [condition.name for condition in spec.conditions if condition.corrupted]
    return _beside_plain(answers, corrupted, "RRM", "no question has an answer both plain and corrupted")


def _mr(answers: pd.DataFrame, *_: Any) -> Columns:
    plain = answers[answers["condition"] == PLAIN].set_index(["sample", "repeat"])["said"]
    others = answers[answers["condition"] != PLAIN].join(plain.rename("own"), on=["sample", "repeat"])
    matched = others[others["own"].notna() & (others["own"] != "")]
    matched = matched.assign(match=(matched["said"] == matched["own"]).astype(int))
    sets = dict.fromkeys(others["condition"])
    labels = {}
    for name in [*GROUPS, *sets]:  # the group natural has the sets natural-1, natural-2 and so on
        of_labels, of_match = (part[part["condition"].str.startswith(name)] for part in (others, matched))
        if len(of_labels):
            labels[name] = LabelsRow(
                accuracy=number(_over_conditions(of_labels, "right")),
                match=number(_over_conditions(of_match, "match")),
                n=int(of_labels["sample"].nunique()),
            )
    return {
        "value": _over_conditions(matched, "match"),
        "accuracy_vm": number(_over_conditions(others, "right")),
        "labels": labels,
    }


def _over_conditions(answers: pd.DataFrame, name: str) -> Estimate:
    """The share of answers with this mark, each condition a stratum."""
    several = answers["condition"].nunique() > 1
    return _share(answers, name, answers["condition"].to_numpy() if several else None)


def _letters(answers: pd.DataFrame) -> dict[str, RecipeLetterRow]:
    read = answers[answers["letter"] != ""]
    keys = answers[answers["key_letter"] != ""]["key_letter"].value_counts(normalize=True)
    found = {}
    for letter in sorted({*read["letter"], *keys.index}):
        is_chosen = read["letter"] == letter
        found[letter] = RecipeLetterRow(
            chosen=_right(read.assign(right=is_chosen.astype(int))),
            key=float(keys.get(letter, 0.0)),
            accuracy=_right(read[is_chosen]),
            n=int(is_chosen.sum()),
        )
    return found


@guard.working()
def _language(answers: pd.DataFrame, spec: Spec, recipe: Recipe, model: str, benchmark: Benchmark) -> Columns:
    runs = Run.objects.filter(recipe=recipe, kind=Run.Kind.MARKS, benchmark=benchmark, model_name=model)
    marks = pd.DataFrame(
        Judgment.objects.filter(run__in=runs, status="ok").values_list("item__sample", "score"),
        columns=["sample", "score"],
    )
    if marks.empty:
        return {"value": Estimate(None, 0, None, "mean of marks", NO_MARKS)}
    first = answers[(answers["condition"] == PLAIN) & (answers["repeat"] == 0)].set_index("sample")[["group", "right"]]
    marked = first.join((marks.groupby("sample")["score"].mean()).rename("marks"), how="inner")
    right = marked[marked["right"] == 1]
    if right.empty:
        return {"value": Estimate(None, 0, None, "mean of marks", NO_MARKS)}
    value = mean(values=right["marks"].to_numpy() / 10, cluster=right["group"].to_numpy(), ends=(0.0, 1.0))
    ranges = pd.cut(marked["marks"], MARK_ENDS, include_lowest=True, labels=MARK_RANGES)
    by_marks = {
        name: ConditionRow(accuracy=_right(part), n=len(part))
        for name, part in marked.groupby(ranges, observed=False)
        if spec.marked == "all"
    }
    return {"value": value, "marks": by_marks}


def _bleu(answers: pd.DataFrame, *_: Any) -> Columns:
    return {
        "value": bleu(
            said=answers["said"].tolist(), references=answers["truth"].tolist(), cluster=answers["group"].to_numpy()
        )
    }


_MEASURES: Mapping[str, Callable[..., Columns]] = {
    "accuracy": _accuracy,
    "exact-match": _accuracy,
    "circular": _circular,
    "weighted-accuracy": _weighted,
    "yes-no": _yes_no,
    "ece": _ece,
    "riam": _riam,
    "rrm": _rrm,
    "mr": _mr,
    "language": _language,
    "bleu": _bleu,
}


# ---- over scenarios and models ----


def _overall(recipe: Recipe, spec: Spec, rows: Sequence[RecipeRow], *, complete: bool) -> RecipeRow:
    """The mean over scenarios, weighted by samples; no value where one is missing."""
    weights = [row.n for row in rows]

    def over(name: str) -> Number:
        numbers = [row.number(name) for row in rows]
        if not complete:
            return Number(reason="not every scenario was asked", n=sum(weights))
        return number(desiderata.weighted([_estimate(each) for each in numbers], weights))

    chances = [row.chance * row.n for row in rows if row.chance is not None]
    covered = [row.coverage for row in rows if row.coverage is not None]
    total = sum(weights)
    return RecipeRow(
        model=rows[0].model,
        recipe=str(recipe),
        scenario=ALL,
        metric=spec.metric,
        value=over("value"),
        accuracy=over("accuracy"),
        accuracy_vm=over("accuracy_vm") if spec.metric == "mr" else UNKNOWN,
        chance=sum(chances) / total if len(chances) == len(rows) else None,
        unread=sum(row.unread for row in rows),
        coverage=min(covered) if complete and len(covered) == len(rows) else None,
        n=total,
        notes=[] if complete else ["not every scenario was asked"],
    )


def _estimate(value: Number) -> Estimate:
    interval = None
    if value.low is not None and value.high is not None:
        interval = Interval(value.low, value.high, 0.95, value.method)
    return Estimate(value.value, value.n or 0, interval, value.method, value.reason, value.se, value.groups)


def _ranked(rows: Sequence[RecipeRow], frames: Mapping[str, pd.DataFrame], spec: Spec) -> list[RecipeRow]:
    """Rows of one scenario, or over all of them, with ranks; ranges where the metric is a share of the questions in
    ``frames``.
    """
    ranges = _ranges(frames) if frames and spec.metric in ("accuracy", "exact-match", "yes-no") else {}
    ranked: list[RecipeRow] = []
    in_order = sorted(rows, key=lambda row: (row.value.value is None, -(row.value.value or 0), row.model.casefold()))
    for place, row in enumerate(in_order, start=1):
        if row.value.value is None:
            ranked.append(row)
            continue
        of = ranges.get(row.model)
        low, high = (of.rank_low, of.rank_high) if of else (None, None)
        ranked.append(
            replace(
                row,
                rank=place,
                rank_low=low and min(low, place),
                rank_high=high and max(high, place),
                tier=of.tier if of else None,
            )
        )
    return ranked


def _ranges(frames: Mapping[str, pd.DataFrame]) -> dict[str, Place]:
    """By model, the range of its rank and its tier, by its answers."""
    answers = pd.concat(frames.values())
    names = sorted(answers["model"].unique())
    return places_by(answers, names) if len(names) > 1 else {}
