"""Publishing what models reach by a recipe in scenarios that rest on hidden keys (ADR 26).

A model's numbers in a scenario are its value and the accuracy under the plain condition. What they are made of is kept
as in ``boards.editions``, and checked together with the editions of the benchmark's own boards: the same model may have
given nearly the same answers there.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import pandas as pd
from django.db import transaction
from django.urls import reverse
from pydantic import TypeAdapter

from accounts import audit
from accounts.models import User
from bank import exposure
from bank.announcements import announce
from bank.models import Benchmark, Recipe
from bank.recipes import store
from bank.recipes.spec import PLAIN, Spec
from leaderboard import editions
from leaderboard.boards.base import CODED, as_interval
from leaderboard.boards.models.keyed import fact_hash, kept_half
from leaderboard.boards.recipes import board as boards
from leaderboard.boards.recipes.board import RecipeRow
from leaderboard.editions import Cells, Refused
from leaderboard.hidden import samples_with_open_keys
from leaderboard.models import RecipeEdition
from leaderboard.rows import UNKNOWN, Number, number
from stats.disclosure import MIN_SAMPLES, Cell, ends_of_coded, publishable, settles
from stats.proportions import rate_by_sizes

DIGITS = 3  # decimals of a share, as on pages
ENDS = 2  # decimals of the ends of intervals that depend on more than the share and the sizes of groups
# Not in an edition: numbers by part, each of which would be about fewer questions.
LEFT_OUT: dict[str, Any] = {
    "conditions": {},
    "corruptions": {},
    "labels": {},
    "letters": {},
    "marks": {},
    "bins": [],
    "levels": {},
    "queries": {},
    "query_sd": None,
    "pool_mass": None,
    **dict.fromkeys(("accuracy_vm", "precision", "recall", "f1", "yes_ratio"), UNKNOWN),
}
SHARES = ("accuracy", "exact-match", "circular", "yes-no")


def publish(recipe: Recipe, *, by: User | None = None, command: str = "") -> RecipeEdition:
    """Publish the closed scenarios of a recipe's board as they are now. Raises Refused."""
    with transaction.atomic():
        recipe = Recipe.objects.select_for_update().get(pk=recipe.pk)
        edition = _publish(recipe, by)
        subject = f"recipe {recipe}, edition {edition.number}"
        audit.record("edition-published", by=by, command=command, about=subject)
        announce(
            "edition.published",
            key=f"recipe-{edition.pk}",
            number=edition.pk,
            state="published",
            page=reverse("leaderboard:recipes"),
        )
        return edition


def _publish(recipe: Recipe, by: User | None) -> RecipeEdition:
    spec = store.spec_of(recipe)
    rows: list[RecipeRow] = []
    cells: dict[str, Cells] = {}
    closed = boards.closed_scenarios(recipe)
    if not closed:
        raise Refused("This board depends on nothing hidden: everybody sees it live.")
    for benchmark in closed:
        frame = _counted_answers(recipe, spec, benchmark)
        of_scenario = _cells(recipe, spec, frame, benchmark)
        earlier = [*editions.published_by_recipes(benchmark.slug), *editions.published_of(benchmark.slug)]
        binary = editions.binary_samples(benchmark.slug)
        for near in editions.near_models(of_scenario, earlier, set(), binary):
            del of_scenario[near]
        shown = frame[frame["model"].isin(of_scenario)]
        if shown.empty:
            continue
        _check(benchmark, of_scenario, earlier, binary)
        of_slug = cells.setdefault(benchmark.slug, {})
        for model, numbers in of_scenario.items():
            of_slug[model] = of_slug.get(model, {}) | numbers
        made = boards.rows_of_scenario(recipe, spec, benchmark, shown)
        is_open = shown["sample"].isin(samples_with_open_keys(benchmark))
        shown = shown.assign(hidden=~is_open & (shown["said"] != ""))
        told = [_published(row, spec, shown[shown["model"] == row.model]) for row in made]
        rows += editions.placed(told, "value", (0.0, 1.0)) if spec.metric in SHARES else told
    if not rows:
        raise Refused(f"No model has answers to {MIN_SAMPLES} samples or more that could be counted.")
    dumped = TypeAdapter(list[RecipeRow]).dump_python(rows, mode="json")
    shares = spec.metric in SHARES
    text = json.dumps(editions.rounded(dumped, digits=DIGITS, ends=DIGITS if shares else ENDS))
    last = RecipeEdition.objects.filter(recipe=recipe).last()
    if last is not None and last.board == text:
        raise Refused(f"Nothing has changed since edition {last.number}.")
    return RecipeEdition.objects.create(
        recipe=recipe, number=last.number + 1 if last else 1, board=text, cells=cast(Any, cells), by=by
    )


def _counted_answers(recipe: Recipe, spec: Spec, benchmark: Benchmark) -> pd.DataFrame:
    """The marked answers of a scenario, of a hidden split with a kept half only that half (ADR 11)."""
    frame = boards.marked(recipe, spec, benchmark)
    kept = kept_half(benchmark, frame["group"])
    return frame if kept is None else frame[kept | ~frame["split"].isin(benchmark.hidden_splits)]


def _check(benchmark: Benchmark, new: Cells, earlier: Sequence[editions.Published], binary: set[str]) -> None:
    """Raises Refused where these numbers, compared with what was published before, would reveal few samples."""
    told = editions.Published("", editions.KEYED, int(exposure.Inputs.ANSWER_KEY), new)
    if problem := editions.reveals(editions.refusals(told, earlier, binary), of=benchmark):
        raise Refused(problem)


def _cells(recipe: Recipe, spec: Spec, frame: pd.DataFrame, benchmark: Benchmark) -> Cells:
    """By model and number, what a closed sample contributes; models whose numbers reveal few samples are left out.

    A sample contributes nothing if its key is open, if nothing was read in its answers, or, by CircularEval, if the
    rotations do not agree: it is wrong whatever its key is.
    """
    closed = frame[~frame["sample"].isin(samples_with_open_keys(benchmark))]
    name, cells = f"{recipe.name} on {benchmark}", cast(Cells, {})
    for model, rows in closed.groupby("model"):
        plain = rows[rows["condition"] == PLAIN]
        numbers = {f"{name}, accuracy": _recipe_cell(plain)}
        if not _is_accuracy(spec, rows) and spec.metric not in ("mr", "language"):
            numbers[f"{name}, {spec.metric}"] = _recipe_cell(_valued(spec, rows), function=spec.metric)
        if published := publishable([numbers]):
            cells[str(model)] = published
    return cells


def _is_accuracy(spec: Spec, rows: pd.DataFrame) -> bool:
    """Whether the recipe's value is the accuracy under the plain condition itself."""
    return spec.metric in ("accuracy", "exact-match", "yes-no") and bool((rows["condition"] == PLAIN).all())


def _valued(spec: Spec, rows: pd.DataFrame) -> pd.DataFrame:
    """The rows that the recipe's value may depend on."""
    if spec.metric == "ece":
        return rows[rows["confidence"].notna() & (rows["repeat"] == 0)]
    if spec.metric == "circular":
        return rows[rows.groupby(["sample", "repeat"])["said"].transform("nunique") == 1]
    return rows


def _recipe_cell(rows: pd.DataFrame, function: str = "") -> Cell:
    """By sample, a hash of its key and of all that was read in its answers; the share of right ones has no name."""
    cell: dict[str, str] = {}
    in_order = rows.sort_values(["key", "condition", "rotation", "repeat"])
    for key, answers in in_order.groupby("key", sort=False):
        if (answers["said"] == "").all():
            continue
        fact = "\x1f".join([*([function] if function else []), str(answers["truth"].iloc[0]), *answers["said"]])
        cell[str(key)] = fact_hash(fact)
    return cell


def _published(row: RecipeRow, spec: Spec, answers: pd.DataFrame) -> RecipeRow:
    """The row without its parts, and with intervals of shares that reveal no more than the share does. Where the
    accuracy would settle its samples, a value that is made of more than that is left out.
    """
    plain = answers[answers["condition"] == PLAIN]
    accuracy = _by_sizes(plain) if len(plain) else row.accuracy
    changes: dict[str, Any] = {**LEFT_OUT, "accuracy": accuracy}
    if spec.metric == "language":
        changes["value"] = Number(reason="which answers were marked tells which are right: staff see it")
    elif spec.metric == "circular":
        questions = boards.circular_questions(answers)
        by_sample = answers.groupby(["sample", "repeat"])
        questions["hidden"] = by_sample["hidden"].all() & (by_sample["said"].nunique() == 1)
        changes["value"] = _by_sizes(questions)
        # What the accuracy counts beside the value: in full it must not settle that either.
        alike = questions.index[questions["hidden"]].get_level_values("sample")
        beside = plain[~plain["sample"].isin(alike) & plain["hidden"]]
        if settles(int(beside["right"].sum()), len(beside)):
            changes["accuracy"] = Number(reason=CODED)
    elif spec.metric in SHARES:
        changes["value"] = _by_sizes(answers)
    elif accuracy.reason == CODED:
        changes["value"] = Number(reason=CODED)
    return replace(row, **changes)


def _by_sizes(answers: pd.DataFrame) -> Number:
    hits, n = int(answers["right"].sum()), len(answers)
    exact = number(rate_by_sizes(hits=hits, n=n, cluster=answers["group"]))
    hidden = answers[answers["hidden"]]
    of_hidden = int(hidden["right"].sum())
    if not settles(of_hidden, len(hidden)):
        return exact
    low, high = ends_of_coded(hits=of_hidden, n=len(hidden), fixed=hits - of_hidden, rows=n)
    return as_interval(exact, low=low, high=high)
