"""What rests on hidden keys in a recipe's board is seen below staff as editions, which tell of ten samples or more."""

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.management import CommandError, call_command

from accounts.models import AuditEntry
from bank.criteria import Criterion
from bank.errors import BadInput
from bank.models import Response, SubmissionRules
from bank.submissions.scoring import is_kept
from leaderboard import editions
from leaderboard.boards.recipes import board as boards
from leaderboard.boards.recipes.desiderata import desiderata
from leaderboard.editions import recipes as recipe_editions
from leaderboard.models import RecipeEdition
from tests.hidden import show
from tests.leaderboard.test_recipe_boards import STAFF, answered, quiz, recipe

__all__ = ["recipe"]
pytestmark = pytest.mark.django_db
ANYBODY = AnonymousUser()


def corrected(number):
    """Another key for the first so many questions."""
    for row in Criterion.unguarded.order_by("sample__position")[:number]:
        row.text = "C"
        row.version += 1
        row.save()


def row_of(mine, viewer=ANYBODY):
    (row,) = boards.board(mine, viewer).rows
    return row


def test_below_staff_a_recipe_of_hidden_keys_is_its_newest_edition(recipe, client, client_of, people):
    benchmark, mine = quiz(shown_to="staff"), recipe()
    answered(mine, benchmark, "m", ["A"] * 30 + ["B"] * 10)
    assert not boards.board(mine, ANYBODY).rows
    call_command("publish", "mine", "--recipe")
    row = row_of(mine)
    assert (row.value.value, row.value.n, row.rank, row.value.se) == (0.75, 40, 1, None)
    assert row.value.low < 0.75 < row.value.high
    assert "this is edition 1, of " in boards.board(mine, ANYBODY).notes[0]
    assert desiderata(ANYBODY).rows[0].accuracy.value == 0.75
    assert 'id="compare"' not in client.get("/recipes/mine/board/").content.decode()
    with pytest.raises(BadInput, match="where everybody may see the answer keys"):
        boards.compare(mine, ANYBODY, "m", "m")
    Response.all_objects.filter(text="B").update(text="A")
    assert row_of(mine, STAFF).value.value == 1
    assert row_of(mine).value.value == 0.75
    assert client.get("/api/v1/leaderboards/recipes/?recipe=mine").json()[0]["value"] == 0.75
    page = client_of("curator").get("/recipes/mine/").content.decode()
    assert "Edition 1" in page
    assert "Publish the next edition" in page
    assert client_of("researcher").post("/recipes/mine/publish/").status_code == 403
    assert client_of("researcher").post("/api/v1/recipes/mine/publish/").status_code == 403
    answer = client_of("curator").post("/api/v1/recipes/mine/publish/")
    assert (answer.status_code, answer.json()) == (201, {"edition": 2})
    assert row_of(mine).value.ends == (None, 0.9, 1)  # 40 of 40 would tell every key
    answer = client_of("curator").post("/recipes/mine/publish/", follow=True)
    assert "Nothing has changed since edition 2." in answer.content.decode()
    assert AuditEntry.objects.filter(action="edition-published", about__contains="recipe mine@1").count() == 2


@pytest.mark.parametrize("changes", [1, 9, 10, 36])
def test_an_edition_that_differs_from_an_earlier_one_in_few_samples_is_refused(changes, recipe):
    benchmark, mine = quiz(shown_to="staff"), recipe()
    answered(mine, benchmark, "m", ["A"] * 40)
    recipe_editions.publish(mine)
    corrected(changes)
    if changes < 10:
        with pytest.raises(editions.Refused, match=f"differs from edition 1 of recipe mine@1 in {changes} sample"):
            recipe_editions.publish(mine)
        assert row_of(mine).value.ends == (None, 0.9, 1)
    else:
        recipe_editions.publish(mine)
        assert row_of(mine).value.value == (40 - changes) / 40


def test_a_boards_own_edition_and_a_recipes_must_not_tell_of_few_samples_together(recipe):
    benchmark, mine = quiz(shown_to="staff"), recipe()
    answered(mine, benchmark, "m", ["A"] * 37 + ["B"] * 3)
    for sample, model in Response.all_objects.values_list("sample", "model"):
        Response.objects.create(sample_id=sample, model_id=model, text="A")
    editions.publish(benchmark=benchmark, kind="choice")
    with pytest.raises(editions.Refused, match="reveal fewer"):
        recipe_editions.publish(mine)
    Response.all_objects.filter(recipe=mine, sample__key__lt="q012").update(text="D")
    recipe_editions.publish(mine)
    assert row_of(mine).value.value == 25 / 40
    Response.objects.filter(recipe=None, sample__key__gte="q035").update(text="D")
    with pytest.raises(editions.Refused):
        editions.publish(benchmark=benchmark, kind="choice")


def test_an_edition_has_no_parts_and_leaves_out_models_about_whom_it_would_tell_too_much(recipe):
    benchmark = quiz(questions=100, shown_to="staff")
    mine = recipe(metric="rrm", corruption={"strategy": "composed", "image": True})
    answered(mine, benchmark, "m", ["A"] * 80 + ["B"] * 20)
    answered(mine, benchmark, "m", ["A"] * 60 + ["B"] * 40, variant="corrupted")
    answered(mine, benchmark, "few", ["A"] * 9)
    recipe_editions.publish(mine)
    row = row_of(mine)
    assert (row.model, row.value.value) == ("m", 0.636)  # (.6 - .25) / (.8 - .25)
    assert (round(row.value.low, 2), round(row.value.high, 2)) == (row.value.low, row.value.high)
    assert (row.accuracy.value, row.conditions, row.levels, row.queries) == (0.8, {}, {}, {})
    assert (row.labels, row.letters, row.marks, row.accuracy_vm.value) == ({}, {}, {}, None)
    assert row_of(recipe(metric="rrm", corruption={"strategy": "composed", "image": True}), ANYBODY) == row


def test_by_circular_eval_an_edition_counts_questions_right_in_every_rotation(recipe):
    benchmark, mine = quiz(options="AB", shown_to="staff"), recipe(metric="circular")
    answered(mine, benchmark, "m", ["A"] * 25 + ["B"] * 15, option_order=["A", "B"])
    answered(mine, benchmark, "m", ["B"] * 30 + ["A"] * 10, option_order=["B", "A"], variant="circular-1")
    recipe_editions.publish(mine)
    assert (row_of(mine).value.value, row_of(mine).accuracy.value) == (0.625, 0.688)


def test_by_circular_eval_questions_that_are_all_right_are_not_told_by_those_that_are_wrong_whatever_their_keys(recipe):
    """30 of 40, and of the other 10 everybody sees that the rotations disagree: that would be 30 of 30."""
    benchmark, mine = quiz(options="AB", shown_to="staff"), recipe(metric="circular")
    answered(mine, benchmark, "m", ["A"] * 40, option_order=["A", "B"])
    answered(mine, benchmark, "m", ["B"] * 30 + ["A"] * 10, option_order=["B", "A"], variant="circular-1")
    recipe_editions.publish(mine)
    assert row_of(mine).value.ends == (None, 0.675, 0.75)


def test_of_a_hidden_split_with_a_kept_half_only_that_half_counts(recipe):
    benchmark, mine = quiz(questions=80, hidden_splits=["dev"]), recipe()
    SubmissionRules.objects.create(benchmark=benchmark, seed="s", private_half=True)
    kept = [is_kept(seed="s", cluster=sample.cluster) for sample in benchmark.samples.order_by("position")]
    answered(mine, benchmark, "m", ["A" if one else "B" for one in kept])
    recipe_editions.publish(mine)
    assert (row_of(mine).value.ends, row_of(mine).n) == ((None, 0.9, 1), sum(kept))
    assert row_of(mine, STAFF).value.value == sum(kept) / 80


def test_what_is_open_or_too_little_is_not_published(recipe):
    mine = recipe()
    answered(mine, quiz(), "m", ["A"] * 40)
    with pytest.raises(CommandError, match="everybody sees it live"):
        call_command("publish", "mine", "--recipe")
    show("staff")
    Response.all_objects.filter(sample__key__gte="q009").delete()
    with pytest.raises(CommandError, match="answers to 10 samples or more"):
        call_command("publish", "mine", "--recipe")
    with pytest.raises(CommandError):
        call_command("publish", "nothing", "--recipe")
    assert not RecipeEdition.objects.exists()
