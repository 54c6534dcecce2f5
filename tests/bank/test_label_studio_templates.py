"""Exports of projects that Label Studio's own templates made: the tasks hold instruction and answers themselves."""

import json

import pytest

from annotations.models import Label
from bank.intake.formats import find
from bank.intake.imports.engine import run_import
from bank.intake.imports.sources import inspect
from bank.models import Response, Sample

pytestmark = pytest.mark.django_db
PAIR = {"prompt": "Name a colour.", "answer1": "Red.", "answer2": "Blue."}
ITEMS = [{"id": f"model_{n}", "title": f"Model {n}", "body": f"Answer {n}."} for n in "xyz"]
ANN = {"id": 1, "email": "ann@example.org", "first_name": "", "last_name": ""}


def task(data, *regions, by=ANN):
    """A task as Label Studio's JSON export has it, with an annotation for each list of regions."""
    annotations = [
        {"id": number, "result": result, "was_cancelled": False, "lead_time": 12.3, "ground_truth": False}
        | {"created_at": "2026-03-01T10:00:00.123456Z", "prediction": {}, "task": 7, "project": 3}
        | ({"completed_by": by} if by else {})
        for number, result in enumerate(regions, 11)
    ]
    return {"id": 7, "annotations": annotations, "file_upload": "x.json", "drafts": [], "data": data, "project": 3}


def side(selected):
    value = {"selected": selected}
    return [
        {"id": "aB1", "from_name": "comparison", "to_name": ["answer1", "answer2"], "type": "pairwise"}
        | {"value": value}
    ]


def ranked(ranker):
    return [{"id": "r", "from_name": "rank", "to_name": "answers", "type": "ranker", "value": {"ranker": ranker}}]


def rated(stars):
    return [{"id": "s", "from_name": "quality", "to_name": "answer", "type": "rating", "value": {"rating": stars}}]


@pytest.fixture
def bring(tmp_path, media):
    """``bring(tasks, ...)``: what is reported of each part of them, brought in whole."""

    def make(*tasks, **options):
        path = tmp_path / "project-3.json"
        path.write_text(json.dumps(tasks))
        assert find("auto", path).NAME == "label-studio"
        reports = run_import(path=path, slug="ls", **options)
        problems = [str(problem) for report in reports.values() for problem in report.problems]
        return problems, [str(warning) for report in reports.values() for warning in report.warnings]

    return make


def test_a_pairwise_task_brings_its_sample_its_answers_and_its_labels(bring):
    problems, warnings = bring(
        task(PAIR, side("left"), by=ANN), task(PAIR, side("right"), by={"email": "bo@example.org"})
    )
    assert problems == []
    assert warnings == [
        "project-3.json, record 1: model: the data names no models; "
        "the answers are those of 'answer 1', 'answer 2', ..."
    ]
    assert Sample.objects.get().instruction == "Name a colour."
    assert dict(Response.objects.values_list("model__name", "text")) == {"answer 1": "Red.", "answer 2": "Blue."}
    assert dict(Label.objects.values_list("annotator__name", "choice")) == {
        "ann@example.org": "first",
        "bo@example.org": "second",
    }


@pytest.mark.parametrize(
    "names",
    [{"model_a": "gull", "model_b": "tern"}, {"models": ["gull", "tern"]}, {"model1": "gull", "model2": "tern"}],
)
def test_models_are_named_as_the_data_names_them(names, bring):
    assert bring(task(PAIR | names, side("right"))) == ([], [])
    assert dict(Response.objects.values_list("model__name", "text")) == {"gull": "Red.", "tern": "Blue."}
    assert Label.objects.get().choice == "second"


def test_a_ranker_task_ranks_the_items_by_their_ids(bring):
    data = {"task": "Rank.", "prompt": "Why?", "items": ITEMS}
    assert bring(task(data, ranked({"rank": ["model_z", "model_x", "model_y"]}))) == ([], [])
    label = Label.objects.get()
    models = [response.model.name for response in label.item.ordered_responses()]
    assert [models[place] for (place,) in label.ranking] == ["model_z", "model_x", "model_y"]
    assert Response.objects.get(model__name="model_y").text == "Answer y."


def test_two_ranked_items_are_a_pair(bring):
    assert bring(task({"prompt": "Why?", "items": ITEMS[:2]}, ranked({"rank": ["model_y", "model_x"]}))) == ([], [])
    assert (Label.objects.get().item.kind, Label.objects.get().choice) == ("pair", "second")


def test_the_templates_named_buckets_are_no_ranking_and_say_what_to_do(bring):
    data = {"prompt": "Why?", "items": ITEMS}
    buckets = {"relevant_results": ["model_x"], "biased_results": ["model_y", "model_z"]}
    problems, _ = bring(task(data, ranked(buckets)))
    assert problems == [
        "project-3.json, record 1: result: "
        "the buckets 'relevant_results' and 'biased_results' are no ranks; name them 1, 2, 3, 1 the best"
    ]


def test_a_rating_task_scores_its_answer(bring):
    assert bring(task({"prompt": "Why?", "answer": "So.", "model": "gull"}, rated(4))) == ([], [])
    label = Label.objects.get()
    assert (label.score, label.item.kind) == (4, "score")
    assert [response.model.name for response in label.item.ordered_responses()] == ["gull"]


def test_a_rating_of_two_answers_is_a_bad_row_and_no_label_that_no_board_counts(bring):
    (problem,) = bring(task(PAIR, rated(4)))[0]
    assert problem.endswith("score belongs to a score item: no board would count it of a pair")
    assert not Label.objects.exists()


def test_a_second_answer_of_one_model_to_an_instruction_is_a_variant(bring):
    problems, warnings = bring(task(PAIR, side("left")), task(PAIR | {"answer1": "Green."}, side("left")))
    assert problems == []
    assert Response.objects.filter(model__name="answer 1").count() == 2
    assert any("kept as variant" in warning for warning in warnings)
    assert Label.objects.count() == 2


def test_where_nobody_is_named_the_import_names_the_annotator(bring, tmp_path, manage):
    problems, _ = bring(task(PAIR, side("left"), by=None))
    assert problems == ["project-3.json, record 1: annotator: is missing; name it with --annotator"]
    path = tmp_path / "project-3.json"
    asked = ("import_labels", "label-studio", path, "--benchmark", "ls", "--all-parts", "--annotator", "ada")
    assert manage(*asked)[0] == 0
    assert Label.objects.get().annotator.name == "ada"


def test_a_name_for_those_who_are_not_named_leaves_the_others_theirs(bring):
    assert bring(task(PAIR, side("left")), task(PAIR, side("left"), by=None), annotator="ada")[0] == []
    assert set(Label.objects.values_list("annotator__name", flat=True)) == {"ann@example.org", "ada"}


def test_the_api_takes_the_annotator_among_the_choices(client_of):
    choices = client_of("administrator").get("/api/schema/").content.decode()
    assert "Of labels that name nobody." in choices


def test_answers_without_their_instruction_are_told(bring):
    problems, _ = bring(task({"answer1": "Red.", "answer2": "Blue."}, side("left")), parts=["samples", "labels"])
    assert set(problems) == {
        "project-3.json, record 1: prompt: is missing: "
        "data holds answers, but neither their instruction nor a sample's key"
    }


def test_a_file_whose_tasks_name_stored_samples_holds_labels_alone(tmp_path):
    path = tmp_path / "p.json"
    path.write_text(json.dumps([task(PAIR | {"sample": "s", "models": ["a", "b"]}, side("left"))]))
    assert inspect(path).parts == ("labels",)
