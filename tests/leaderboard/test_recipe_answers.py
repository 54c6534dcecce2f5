"""The answers that a recipe's figures are made of: who sees them, and that they make the figure."""

import re

import pytest

from bank.recipes import spec, store
from tests.leaderboard.test_recipe_boards import answered, quiz

pytestmark = pytest.mark.django_db


@pytest.fixture
def recipe(db):
    says = {"name": "mine", "scenario": [{"benchmark": "animals"}], "turns": [{"kind": "likelihood"}], "metric": "ece"}
    return store.save(spec.parsed(says))[0]


def page_of(client, query="", name="mine"):
    answer = client.get(f"/recipes/{name}/answers/{query}")
    return answer.status_code, answer.content.decode()


def test_every_figure_of_a_model_leads_to_the_answers_that_it_counts(recipe, client):
    benchmark = quiz(questions=40)
    answered(recipe, benchmark, "lark", ["A"] * 30 + ["B"] * 10, shares=[0.5] * 20 + [0.9] * 20)
    board = client.get("/recipes/mine/board/").content.decode()
    links = set(re.findall(r'href="(/recipes/mine@1/answers/[^"]+)"', board))
    assert any("bin=1" in link for link in links)
    for link in links:
        answer = client.get(link.replace("&amp;", "&"))
        assert answer.status_code == 200
        assert ("No answer to show" in answer.content.decode()) == ("mark=unread" in link), link
    _, page = page_of(client, "?model=lark")
    assert "30 right of 40 answers = 75.0%" in page
    assert page.count("</tr>") == 41
    _, wrong = page_of(client, "?model=lark&mark=wrong")
    assert "0 right of 10 answers" in wrong
    _, surest = page_of(client, "?model=lark&bin=10")
    assert "0 right of 4 answers = 0.0%, group 10 of 10" in surest
    assert surest.count("90.0") == 4
    assert page_of(client, "?model=nobody")[0] == 404


def test_answers_to_questions_with_closed_keys_are_for_staff(recipe, client, client_of):
    benchmark = quiz(questions=40, shown_to="staff")
    answered(recipe, benchmark, "lark", ["A"] * 30 + ["B"] * 10, shares=[0.5] * 40)
    for role in ("anonymous", "annotator", "researcher"):
        status, page = page_of(client_of(role), "?model=lark")
        assert status == 404 or "q000" not in page, role
        assert "30 right" not in page, role
    assert "30 right of 40 answers" in page_of(client_of("curator"), "?model=lark")[1]


def test_of_a_private_benchmark_nobody_below_staff_learns_that_there_are_answers(client_of):
    says = {"name": "hush", "scenario": [{"benchmark": "secrets"}], "turns": [{"kind": "direct"}], "metric": "accuracy"}
    made, _ = store.save(spec.parsed(says))
    answered(made, quiz("secrets", visibility="private"), "lark", ["A"] * 40)
    assert page_of(client_of("researcher"), "?model=lark", "hush")[0] == 404
    assert page_of(client_of("curator"), "?model=lark", "hush")[0] == 200
