"""Writing a recipe, and its page while a model answers."""

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


def test_what_the_model_gets_follows_the_text_and_saving_makes_the_next_version(making):
    page, said = making
    yaml = page.get_by_label("YAML")
    examples = "instruction:\n  examples: {how: random, k: 3}\n"
    yaml.fill(examples + yaml.input_value().replace("kind: direct", "kind: likelihood"))
    expect(page.locator("#gets")).to_contain_text("3, random")
    expect(page.locator("#gets .chip")).to_have_count(4)
    page.get_by_role("button", name="Another question").click()
    expect(page.locator("#gets")).to_contain_text("Question 1?")
    assert violations(page) == []
    page.get_by_role("button", name="Save as version 2").click()
    page.wait_for_url("**/recipes/mine@2/")
    first, second = (store.spec_of(each) for each in Recipe.objects.filter(name="mine").order_by("version"))
    assert first == spec.parsed(SAYS)  # it was used
    assert (second.instruction.examples.k, second.turns[0].kind) == (3, "likelihood")
    assert said == []


def test_while_the_text_is_no_recipe_its_line_is_told_and_nothing_typed_is_lost(making):
    page, said = making
    yaml = page.get_by_label("YAML")
    yaml.press("Control+End")
    yaml.type("metrik: accuracy")
    expect(page.locator("#status")).to_contain_text("Did you mean metric?")
    expect(page.locator("#lines .er")).to_have_count(1)
    expect(page.get_by_role("button", name="Not a recipe yet")).to_be_disabled()
    assert yaml.input_value().endswith("metrik: accuracy")
    assert page.evaluate("document.activeElement.id") == "yaml"
    yaml.fill(yaml.input_value().replace("metrik: accuracy", ""))
    expect(page.get_by_role("button", name="Save as version")).to_be_enabled()
    yaml.fill(yaml.input_value().replace("metric: accuracy", "metric: rrm"))
    expect(page.locator("#status")).to_contain_text("rrm needs a corruption")
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
