"""Making a recipe in blocks and in YAML, and its page while a model answers."""

import re

import pytest
from playwright.sync_api import expect

from bank.models import Recipe
from bank.recipes import spec, store
from judging.models import Evaluation, Judge, Run
from tests.browser.conftest import violations
from tests.leaderboard.test_recipe_boards import answered, quiz

pytestmark = pytest.mark.django_db(transaction=True)
SAYS = {
    "name": "mine",
    "scenario": [{"benchmark": "animals"}],
    "turns": [{"kind": "direct"}],
    "metric": "accuracy",
}


@pytest.fixture
def making(people, live_server, page, sign_in, faults):
    """The page that makes the next version of a recipe which was used, and what the console says."""
    benchmark = quiz()
    recipe, _ = store.save(spec.parsed(SAYS))
    answered(recipe, benchmark, "lark", ["A"] * 40)
    sign_in(page.context, people["curator"])
    said = faults(page)
    page.goto(f"{live_server.url}/recipes/new/?from=mine")
    return page, said


def test_a_block_changes_the_yaml_and_the_yaml_the_block_and_both_what_the_model_gets(making):
    page, said = making
    yaml = page.get_by_label("YAML")
    page.locator("#block-examples summary").click()
    page.get_by_label("Examples", exact=True).select_option("random")
    expect(yaml).to_have_value(re.compile("how: random"))
    expect(page.locator(".htmx-request, .htmx-added, .htmx-settling, .htmx-swapping")).to_have_count(0)
    page.get_by_label("How many, at most 8").fill("3")
    expect(page.locator("#gets")).to_contain_text("3, random")
    assert "k: 3" in yaml.input_value()
    assert page.locator("#lines [data-of~=examples]").count() == 3
    yaml.fill(yaml.input_value().replace("kind: direct", "kind: likelihood"))
    expect(page.locator("#said-turns")).to_contain_text("likelihood (PPL) of each option")
    expect(page.locator("#gets .chip")).to_have_count(4)
    page.locator("#block-turns summary").click()
    expect(page.get_by_label("In turn 1 the model")).to_have_value("likelihood")
    page.get_by_role("button", name="Another question").click()
    expect(page.locator("#gets")).to_contain_text("Question 1?")
    assert violations(page) == []
    page.get_by_role("button", name="Save as version 2").click()
    page.wait_for_url("**/recipes/mine@2/")
    first, second = (store.spec_of(each) for each in Recipe.objects.filter(name="mine").order_by("version"))
    assert first == spec.parsed(SAYS)  # it was used
    assert (second.instruction.examples.k, second.turns[0].kind) == (3, "likelihood")
    assert said == []


def test_while_the_yaml_is_broken_the_blocks_freeze_and_nothing_typed_is_lost(making):
    page, said = making
    yaml = page.get_by_label("YAML")
    page.locator("#block-metric summary").click()
    yaml.press("Control+End")
    yaml.type("metrik: accuracy")
    expect(page.locator("#status")).to_contain_text("Did you mean metric?")
    expect(page.locator("#lines .er")).to_have_count(1)
    assert page.locator("#fields-metric").evaluate("each => each.disabled")
    expect(page.get_by_role("button", name="Not a recipe yet")).to_be_disabled()
    assert yaml.input_value().endswith("metrik: accuracy")
    assert page.evaluate("document.activeElement.id") == "yaml"
    yaml.fill(yaml.input_value().replace("metrik: accuracy", ""))
    expect(page.locator("#status")).to_contain_text("The same recipe")
    assert not page.locator("#fields-metric").evaluate("each => each.disabled")
    page.get_by_label("The score is").select_option("rrm")
    expect(page.locator("#status")).to_contain_text("rrm needs a corruption")
    page.locator("#block-corruption summary").click()
    page.get_by_label("What is damaged").select_option("image")
    expect(page.locator("#status")).to_contain_text("The same recipe")
    assert spec.from_yaml(yaml.input_value()).metric == "rrm"
    assert said == []


def test_the_page_of_a_recipe_moves_while_a_model_answers(people, live_server, page, sign_in):
    benchmark = quiz()
    recipe, _ = store.save(spec.parsed(SAYS))
    judge = Judge.objects.create(name="hawk", base_url="http://127.0.0.1:9/v1", model="hawk")
    evaluation = Evaluation.objects.create(recipe=recipe, judge=judge, model_name="hawk")
    run = Run.objects.create(
        kind=Run.Kind.RECIPE,
        judge=judge,
        benchmark=benchmark,
        recipe=recipe,
        evaluation=evaluation,
        protocol="recipe",
        planned=40,
        state=Run.State.RUNNING,
    )
    sign_in(page.context, people["researcher"])
    page.goto(f"{live_server.url}/recipes/mine/")
    expect(page.locator("#board")).to_contain_text("No answers yet")
    answered(recipe, benchmark, "hawk", ["A"] * 10)
    Run.objects.filter(pk=run.pk).update(verdicts=10)
    expect(page.locator("#recipe-progress")).to_contain_text("25 %")
    expect(page.locator("#board")).to_contain_text("hawk")
    Run.objects.filter(pk=run.pk).update(verdicts=40, state=Run.State.FINISHED)
    Evaluation.objects.filter(pk=evaluation.pk).update(finished_at=evaluation.created_at)
    expect(page.get_by_role("heading", name="Under way")).to_have_count(0)
    assert page.locator("#recipe-progress[hx-get]").count() == 0  # it has stopped asking
