"""What models answered by recipes goes out as a table and comes in again."""

import json

import pytest

from bank.models import EvaluatedModel, Recipe, Response, Sample
from bank.recipes import spec, store
from tests.bank.conftest import folder, manage

__all__ = ["folder", "manage"]
pytestmark = pytest.mark.django_db
POOL = {"by": "first-token", "sum": "total", "pool": [["A", -0.1], ["B", None]], "mass": 0.9}
ROW = {"sample": "q1", "model": "m", "recipe": "mine@1", "text": "A", "likelihoods": POOL}
FIELDS = (
    *("sample__key", "model__name", "variant", "repeat", "turn", "text", "status", "reason", "option_order", "tokens"),
    "likelihoods",
)


@pytest.fixture
def recipe(db):
    value = {"name": "mine", "scenario": [{"benchmark": "b"}], "metric": "accuracy", "turns": [{"kind": "likelihood"}]}
    return store.save(spec.parsed(value))[0]


@pytest.fixture
def bench(folder, manage):
    samples = [{"key": key, "instruction": "?", "options": {"A": "x", "B": "y"}, "answer": "A"} for key in ("q1", "q2")]
    manage("import_benchmark", "generic", folder("samples", samples), "--benchmark", "b")


@pytest.fixture
def bring_in(folder, manage):
    def act(*rows, **more):
        return manage("import_recipe_responses", "auto", folder("recipe_responses", rows), "--benchmark", "b", **more)

    return act


def stored():
    return list(Response.all_objects.exclude(recipe=None).order_by("pk").values_list(*FIELDS))


@pytest.mark.parametrize("shape", ["jsonl", "csv", "parquet"])
def test_answers_by_recipes_come_in_again_as_they_went_out(shape, recipe, bench, manage, tmp_path):
    model = EvaluatedModel.objects.create(name='m, "one"')
    samples = {row.key: row for row in Sample.objects.all()}
    common = {"recipe": recipe, "model": model}
    Response.all_objects.create(**common, sample=samples["q1"], text="Let me\nthink.", tokens=7)
    Response.all_objects.create(
        **common, sample=samples["q1"], text="A", turn=1, likelihoods=POOL, option_order=["B", "A"]
    )
    Response.all_objects.create(**common, sample=samples["q1"], variant="shots-2", repeat=1, text="B")
    Response.all_objects.create(**common, sample=samples["q2"], status="error", reason="timeout", text="")
    Response.all_objects.create(
        **common,
        sample=samples["q2"],
        variant="shots-2",
        text="",
        likelihoods=POOL | {"pool": [["A", None], ["B", None]]},
    )
    Response.objects.create(model=model, sample=samples["q2"], text="not by a recipe")
    before, file = stored(), tmp_path / f"recipe_responses.{shape}"
    assert manage("export", "recipe_responses", "--benchmark", "b", "--format", shape, "--output", file)[0] == 0
    Response.all_objects.exclude(recipe=None).delete()
    command = ("import_recipe_responses", "auto", file, "--benchmark", "b")
    assert "Would make 5 answers by recipes" in manage(*command, "--dry-run")[1]
    assert stored() == []
    assert "Made 5 answers by recipes" in manage(*command)[1]
    assert stored() == before
    assert "nothing new; 5 were there already" in manage(*command)[1]
    assert Response.objects.count() == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sample": "q9"}, "no sample 'q9'"),
        ({"recipe": "mine@2"}, "there is no recipe 'mine@2': bring it in first"),
        ({"recipe": ""}, "recipe: is missing or empty"),
        ({"model": ""}, "model: is missing"),
        ({"recipe_sha256": "0" * 64}, "asks otherwise"),
        ({"repeat": -1}, "repeat"),
        ({"likelihoods": POOL | {"pool": [["A", 1]]}}, "likelihoods.pool"),
        ({"likelihoods": POOL | {"pool": [["A", "high"], ["B", 0]]}}, "no number"),
        ({"likelihoods": POOL | {"by": "guess"}}, "likelihoods.by"),
        ({"text": "", "likelihoods": None, "status": "ok"}, "text is empty although status is ok"),
    ],
)
def test_a_bad_row_is_named_and_nothing_is_written(change, words, recipe, bench, bring_in):
    status, _, told = bring_in(ROW, ROW | {"sample": "q2"} | change)
    assert status == 1
    assert words in told
    assert "2" in told.split(words)[0]  # the line
    assert stored() == []


def test_the_same_answer_twice_and_another_one_for_a_stored_are_refused(recipe, bench, bring_in):
    assert "the same answer already occurs at" in bring_in(ROW, ROW)[2]
    assert bring_in(ROW)[0] == 0
    assert "a different answer of this model by this recipe is stored" in bring_in(ROW | {"text": "B"})[2]
    assert bring_in(ROW | {"turn": 1, "text": "B"})[0] == 0
    assert [row[4:6] for row in stored()] == [(0, "A"), (1, "B")]


def test_a_folder_brings_samples_answers_and_answers_by_recipes_at_once(folder, manage, recipe):
    folder("samples", [{"key": "q1", "instruction": "?", "options": {"A": "x", "B": "y"}}])
    folder("responses", [{"sample": "q1", "model": "m", "text": "B"}])
    folder("recipe_responses", [ROW, ROW | {"model": "other"}])
    assert manage("import_benchmark", "generic", folder.root, "--benchmark", "b")[0] == 0
    assert manage("import_responses", "generic", folder.root, "--benchmark", "b")[0] == 0
    assert manage("import_recipe_responses", "generic", folder.root, "--benchmark", "b")[0] == 0
    assert [(row[1], row[5]) for row in stored()] == [("m", "A"), ("other", "A")]
    assert json.loads(json.dumps(stored()[0][-1])) == POOL
    assert Recipe.objects.filter(name="mine").count() == 1
