"""The page, command and API of desiderata and recipes: the same rows, for those who may see them."""

import json
import re
from html import unescape
from io import StringIO

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.management import call_command
from django.utils import timezone

from accounts.models import Role, User
from bank.models import Recipe
from bank.recipes import spec, store
from judging.models import Evaluation, Judge, Run
from leaderboard.boards.recipes.desiderata import DesiderataRow, desiderata, together
from leaderboard.rows import Number
from tests.leaderboard.test_recipe_boards import answered, quiz
from tests.markup import flat

pytestmark = pytest.mark.django_db
STAFF = User(role=Role.CURATOR)
# ChEF, Tables 1 and 9 to 12, in %: nine models in the paper's order.
CALIBRATION = (90.00, 76.36, 84.73, 84.24, 82.80, 89.55, 91.25, 88.35, 89.19)
FOLLOWING = (43.79, 39.58, 43.29, 37.78, 37.78, 38.67, 44.48, 36.06, 16.41)
ROBUSTNESS = (63.36, 57.98, 60.40, 51.05, 57.17, 65.38, 72.85, 47.01, 22.69)


@pytest.fixture
def measured(db):
    """Six models by a recipe of accuracy and one of calibration."""
    benchmark = quiz(questions=40)
    recipes = {}
    for metric in ("accuracy", "ece"):
        says = {"name": f"my-{metric}", "scenario": [{"benchmark": "animals"}], "metric": metric}
        recipes[metric], _ = store.save(spec.parsed(says | {"turns": [{"kind": "likelihood"}]}))
    for at in range(6):
        right = ["A"] * (15 + 4 * at) + ["B"] * (25 - 4 * at)
        answered(recipes["accuracy"], benchmark, f"model {at}", right)
        answered(recipes["ece"], benchmark, f"model {at}", right, shares=[0.5 + 0.08 * at] * 40)
    return recipes


def test_each_model_stands_with_what_was_measured_of_it(measured):
    board = desiderata(AnonymousUser())
    assert [row.model for row in board.rows] == [f"model {at}" for at in range(5, -1, -1)]
    best = board.rows[0]
    assert best.accuracy.value == 35 / 40
    assert best.calibration.value == pytest.approx(1 - (8 * 0.1 + 0.15 + 0.9) / 10)  # all are as sure: bins go by key
    assert best.robustness.value is None
    assert best.recipes == {"accuracy": "my-accuracy@1", "calibration": "my-ece@1"}
    (pair,) = board.together
    assert (pair.a, pair.b, pair.n) == ("accuracy", "calibration", 6)
    assert -1 <= pair.pearson.value <= 1


def test_a_recipe_about_a_private_benchmark_is_neither_named_nor_taken_below_staff(measured, client):
    private = quiz("secret-animals", visibility="private")
    says = {"name": "their-own", "scenario": [{"benchmark": "secret-animals"}], "turns": [{"kind": "likelihood"}]}
    recipe, _ = store.save(spec.parsed(says | {"metric": "accuracy"}))
    answered(recipe, private, "model 0", ["A"] * 40)
    assert desiderata(STAFF).recipes["accuracy"] == recipe  # the one used last
    assert desiderata(AnonymousUser()).recipes["accuracy"] == measured["accuracy"]
    assert "their-own" not in client.get("/desiderata/").content.decode()


def test_the_papers_columns_correlate_as_they_do():
    # Figure 7(a) is a picture; these follow from the paper's tables.
    rows = [
        DesiderataRow(
            model=str(at),
            calibration=Number(CALIBRATION[at]),
            following=Number(FOLLOWING[at]),
            robustness=Number(ROBUSTNESS[at]),
        )
        for at in range(9)
    ]
    found = {(row.a, row.b): row.pearson.value for row in together(rows)}
    assert found["calibration", "following"] == pytest.approx(-0.104, abs=0.02)
    assert found["following", "robustness"] == pytest.approx(0.941, abs=0.005)
    assert found["calibration", "robustness"] == pytest.approx(0.013, abs=0.03)


def test_fewer_than_five_models_have_no_correlation():
    rows = [DesiderataRow(model=str(at), accuracy=Number(at / 9), language=Number(0.5)) for at in range(4)]
    (pair,) = together(rows)
    assert pair.pearson.value is None
    assert "fewer than 5 models" in pair.pearson.reason


def test_the_page_is_cited_where_it_stands_with_the_recipes_that_were_chosen(measured, client):
    page = flat(client.get("/desiderata/?accuracy=my-accuracy@1"))
    (solid,) = re.findall(r'<a class="btn primary" href="#(\w+)">.*?</svg>([^<]*)</a>', page)
    assert solid == ("cite", "Cite")
    cited = page[page.index('id="cite"') :]
    assert "title = {More than right answers" in cited
    assert "/desiderata/?accuracy=my-accuracy%401}" in cited


def test_reliability_is_drawn_as_large_as_it_stands_eight_in_a_row(measured, client):
    size = r'class="forest reliability" width="(\d+)" height="(\d+)" viewBox="0 0 (\d+) (\d+)"'
    drawn = re.findall(size, client.get("/desiderata/").content.decode())
    assert len(drawn) == 6
    ((width, height, *scale),) = set(drawn)
    assert [width, height] == scale
    assert 8 * int(width) + 7 * 12 <= 1440 - 2 * (24 + 16)


def test_a_cell_of_the_matrix_opens_the_models_behind_it(measured, client):
    page = client.get("/desiderata/").content.decode()
    assert 'href="?together=accuracy%2Ccalibration#together"' in page
    page = client.get("/desiderata/?together=accuracy,calibration").content.decode()
    plot = page[page.index('class="picture"') :]
    assert plot.count("<circle") == 6
    assert "<title>model 5\nRight answers 87.5, Knows when it is right 81.5</title>" in plot
    assert "n = 6 models" in page
    for other in ("accuracy", "accuracy,accuracy", "accuracy,nothing", "robustness,accuracy"):
        assert 'class="picture"' not in client.get(f"/desiderata/?together={other}").content.decode()


def test_page_command_and_api_show_the_same(measured, client):
    rows = client.get("/api/v1/leaderboards/desiderata/").json()
    out = StringIO()
    call_command("desiderata", shape="json", stdout=out)
    assert json.loads(out.getvalue()) == rows
    assert rows[0]["calibration_low"] < rows[0]["calibration"] < rows[0]["calibration_high"]
    page = client.get("/desiderata/").content.decode()
    assert "model 5" in page
    assert "87.5" in page
    assert client.get("/desiderata/?format=csv").content.decode().splitlines()[1].startswith("model 5")
    matrix = client.get("/api/v1/leaderboards/desiderata/?part=together").json()
    assert matrix[0]["n"] == 6
    assert client.get("/api/v1/leaderboards/desiderata/?colour=red").status_code == 400


def test_a_recipes_board_is_the_same_by_page_command_and_api(measured, client, client_of):
    rows = client.get("/api/v1/leaderboards/recipes/?recipe=my-ece").json()
    out = StringIO()
    call_command("evaluate", recipe="my-ece", board=True, format="json", stdout=out)
    assert json.loads(out.getvalue()) == rows
    assert len(rows[0]["bins"]) == 10
    assert "how near confidence is to being right" in client.get("/recipes/my-ece/board/").content.decode()
    page = client_of("researcher").get("/recipes/my-ece/").content.decode()
    assert "likelihood (PPL) of each option, by its first token" in page
    assert "Ask a model" not in page
    assert client.get("/recipes/my-ece/").status_code == 302  # to sign in
    assert client.get("/api/v1/leaderboards/recipes/?recipe=nobody").status_code == 404


def test_a_recipe_is_written_changed_and_removed_by_page_and_by_api(measured, client_of):
    curator, yaml = client_of("curator"), "name: fresh\nscenario: [{benchmark: animals}]\nturns: [{kind: direct}]\n"
    refused = curator.post("/recipes/new/", {"yaml": yaml + "metric: ece\n"}).content.decode()
    assert "ece needs likelihoods" in refused
    curator.post("/recipes/new/", {"yaml": yaml + "metric: accuracy\n"})
    assert Recipe.objects.get(name="fresh").by.username == "curator"
    other = yaml + "metric: accuracy\nseed: 3\n"
    assert "nobody has used yet" in curator.post("/recipes/new/", {"yaml": other}).content.decode()
    assert "seed" not in Recipe.objects.get(name="fresh").spec
    assert 'name="changes" value="fresh"' in curator.get("/recipes/new/?from=fresh").content.decode()
    curator.post("/recipes/new/", {"yaml": other, "changes": "fresh"})
    assert Recipe.objects.get(name="fresh").spec["seed"] == 3
    curator.post("/recipes/new/", {"yaml": yaml + "metric: accuracy\n", "changes": "fresh"})
    said = curator.get("/api/v1/recipes/fresh/").json()
    assert said["spec"]["metric"] == "accuracy"
    again = curator.post("/api/v1/recipes/", said["spec"], content_type="application/json")
    assert again.status_code == 200
    changed = curator.post("/api/v1/recipes/", said["spec"] | {"seed": 5}, content_type="application/json")
    assert (changed.status_code, changed.json()["version"]) == (201, 1)
    assert b"name: fresh" in client_of("researcher").get("/recipes/fresh/recipe.yaml").content
    assert client_of("researcher").post("/recipes/fresh/remove/").status_code == 403
    curator.post("/recipes/fresh/remove/")
    assert not Recipe.objects.filter(name="fresh").exists()
    curator.post("/recipes/my-ece/remove/")
    assert Recipe.objects.filter(name="my-ece").exists()  # it was used


def test_without_scripts_a_recipe_is_checked_at_a_button_and_nothing_is_saved(measured, client_of):
    curator = client_of("curator")
    yaml = "name: fresh  # mine\nscenario: [{benchmark: animals}]\nturns: [{kind: likelihood}]\nmetric: accuracy\n"
    page = unescape(curator.post("/recipes/new/", {"yaml": yaml, "good": yaml, "check": "text"}).content.decode())
    assert "name: fresh  # mine\n" in page
    assert "Question 0?" in page
    assert "Save as version" in page
    page = curator.post("/recipes/new/", {"yaml": "metric: [", "good": yaml, "check": "text"}).content.decode()
    assert "This is not YAML" in page
    assert "Question 0?" in page  # what a model gets is still that of the last recipe
    assert "Not a recipe yet" in page
    assert not Recipe.objects.filter(name="fresh").exists()
    assert client_of("researcher").post("/recipes/new/", {"yaml": yaml, "check": "text"}).status_code == 403


def test_an_endpoint_is_asked_by_page_and_by_api(measured, client_of):
    curator = client_of("curator")
    judge = Judge.objects.create(name="hawk", base_url="http://127.0.0.1:9/v1", model="hawk-vl")
    asked = {"endpoint": judge.pk, "model": "hawk", "limit": 7}
    assert "test it first" in curator.post("/recipes/my-ece/evaluate/", asked).content.decode()
    Judge.objects.update(abilities={"logprobs": True})
    said = curator.post("/recipes/my-ece/evaluate/", asked | {"estimate": ""}).content.decode()
    assert "7, of which 0 are there" in said
    curator.post("/recipes/my-ece/evaluate/", asked | {"try": ""})
    assert Run.objects.get(kind=Run.Kind.RECIPE).planned == 5
    body = {"recipe": "my-ece", "endpoint": "hawk", "model": "hawk"}
    reckoned = curator.post("/api/v1/evaluations/", body | {"estimate": True}, content_type="application/json")
    assert (reckoned.status_code, reckoned.json()["calls"]) == (200, 40)
    started = curator.post("/api/v1/evaluations/", body, content_type="application/json")
    assert (started.status_code, started.json()["state"]) == (201, "queued")
    assert Evaluation.objects.count() == 2
    listed = client_of("researcher").get("/api/v1/evaluations/?recipe=my-ece").json()["results"]
    assert [each["model"] for each in listed] == ["hawk", "hawk"]
    page = client_of("researcher").get("/recipes/my-ece/").content.decode()
    assert "Under way" in page


def test_failed_answers_of_an_evaluation_that_is_over_are_asked_again_from_its_page(measured, client_of):
    judge = Judge.objects.create(
        name="hawk", base_url="http://127.0.0.1:9/v1", model="hawk-vl", abilities={"logprobs": True}
    )
    curator = client_of("curator")
    curator.post("/recipes/my-ece/evaluate/", {"endpoint": judge.pk, "model": "hawk"})
    page = curator.get("/recipes/my-ece/").content.decode()
    assert "Go on" not in page  # it is on its way
    Run.objects.update(state=Run.State.FINISHED, verdicts=37, failures=3)
    Evaluation.objects.update(finished_at=timezone.now())
    page = curator.get("/recipes/my-ece/").content.decode()
    assert "3 answers failed" in page
    assert "Ask again" in page
    assert "Ask again" not in client_of("researcher").get("/recipes/my-ece/").content.decode()
    Run.objects.update(failures=0)
    assert "Under way" not in curator.get("/recipes/my-ece/").content.decode()


def test_below_staff_a_recipe_about_a_private_benchmark_is_as_if_absent(measured, client_of):
    quiz("secrets", 3, visibility="private")
    store.save(
        spec.parsed(
            {
                "name": "hush",
                "scenario": [{"benchmark": "secrets"}],
                "turns": [{"kind": "direct"}],
                "metric": "accuracy",
            }
        )
    )
    researcher, curator = client_of("researcher"), client_of("curator")
    for path in ("/recipes/hush/", "/recipes/hush/board/", "/recipes/hush/recipe.yaml", "/api/v1/recipes/hush/"):
        assert (researcher.get(path).status_code, curator.get(path).status_code) == (404, 200), path
    assert b"hush" not in researcher.get("/recipes/").content
    assert "hush" not in str(researcher.get("/api/v1/recipes/?page_size=500").json())
