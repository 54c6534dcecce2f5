"""Answers of invented models to recipes, so that recipes and desiderata have something to show without an endpoint.

``tests/demo_data`` draws the pictures and makes the answers and marks.
"""

import json
from itertools import product

import yaml
from django.db import transaction
from django.utils import timezone

from accounts.models import User
from bank.models import Benchmark, EvaluatedModel
from bank.recipes import spec, store
from evalsite.demo import loader
from judging.models import Evaluation, Judge, Judgment, Run, RunItem
from judging.recipes.marking import MARKS_EACH, start_marks

FOLDER = loader.FOLDER / "drawn-shapes"
RECIPES, ANSWERS, MARKS = FOLDER / "recipes.yaml", FOLDER / "recipe_responses.jsonl.gz", FOLDER / "marks.json"
SLUG = "drawn-shapes"
REASONED = "shapes-reasons"  # the recipe whose answers a judge marks

Marks = dict[str, dict[str, list[float]]]  # by model and sample, one of each repeat


def is_here() -> bool:
    """Whether all of it came in: the marks for reasons are the last part."""
    return Run.objects.filter(benchmark__slug=SLUG, kind=Run.Kind.MARKS).exists()


def load_recipes() -> None:
    """Bring in what is missing; what is there stays as it is."""
    curator = User.objects.filter(username="curator").first()
    load_questions(curator)
    load_answers()
    marks: Marks = json.loads(MARKS.read_text(encoding="utf-8"))
    EvaluatedModel.objects.filter(name__in=marks).update(simulated=True)
    _mark_reasons(marks, curator)


def load_questions(curator: User | None) -> None:
    """The pictures, the questions about them, and the recipes that ask these."""
    loader.imported(
        ["samples"],
        FOLDER,
        slug=SLUG,
        title="Drawn shapes",
        description="Drawn shapes to count, to name and to find, asked by recipes. Made for the demo: the models and "
        "their answers are invented.",
        open_keys=True,
    )
    for recipe in yaml.safe_load(RECIPES.read_text(encoding="utf-8")):
        store.save(spec.parsed(recipe), by=curator)


def load_answers() -> None:
    loader.bring_in(["recipe_responses"], ANSWERS, slug=SLUG)


@transaction.atomic
def _mark_reasons(marks: Marks, curator: User | None) -> None:
    """The simulated judge marks the reasons, as runs of real ones are stored."""
    recipe = store.get(REASONED)
    recipe_spec, benchmark = store.spec_of(recipe), Benchmark.objects.named(SLUG)
    judge, _ = Judge.objects.get_or_create(name=recipe_spec.judge, defaults={"simulated": True})
    now = timezone.now()
    for model, by_sample in marks.items():
        evaluation = Evaluation.objects.create(
            recipe=recipe, judge=judge, model_name=model, by=curator, finished_at=now
        )
        run = start_marks(evaluation, recipe_spec, benchmark, budget=None)
        if run is None:
            continue
        items = RunItem.objects.filter(run=run).order_by("pk").values_list("item", "item__sample__key")
        judgments = [
            Judgment(run=run, item_id=item, order="0", repeat=repeat, score=by_sample[key][repeat])
            for (item, key), repeat in product(items, range(MARKS_EACH))
        ]
        Judgment.objects.bulk_create(judgments, batch_size=1_000)
        run.state, run.finished_at, run.verdicts = Run.State.FINISHED, now, len(judgments)
        run.told = run.state  # nobody has waited for it
        run.save(update_fields=["state", "told", "finished_at", "verdicts"])
