"""The board of biases: what sways a judge, with people's own beside it, the same by page, command and API."""

import json

import pytest
from django.core.management import call_command

from bank.models import EvaluatedModel
from judging.models import Judge
from leaderboard.boards import biases
from leaderboard.scope import BadScope, scope_of
from tests.leaderboard.conftest import PEOPLE, judgments, labels, pairs
from tests.leaderboard.test_graded_boards import scores

pytestmark = pytest.mark.django_db


def of(board, judge):
    return {row["bias"]: row for row in board.as_json() if row["judge"] == judge}


def always_first():
    """A judge that votes for whichever answer stands first."""
    for sample, first, second in pairs():
        for order in ([first, second], [second, first]):
            choice = "first" if order[0] == first else "second"
            yield {
                "kind": "pair", "protocol": "pairwise-criteria", "sample": sample, "responses": [first, second],
                "judge": "lazy", "settings": {"order": "both"}, "order": order, "choice": choice,
            }  # fmt: skip


def test_a_judge_that_takes_the_first_place_leans_to_it_wholly(brought):
    brought("labels", labels())
    brought("judgments", [*always_first(), *judgments("keen", noise=0.6, seed=2)])
    board = biases(scope_of(benchmark="grove"))
    lazy, keen, people = (of(board, name) for name in ("lazy", "keen", "humans"))
    assert (lazy["position"]["value"], lazy["position"]["detail"]["consistent"]) == (1, 0)
    assert lazy["position"]["n"] == len(list(pairs()))
    assert lazy["position"]["detail"]["significant"] is True
    low, value, high = (keen["position"][name] for name in ("value_low", "value", "value_high"))
    assert -0.3 < low < value < high < 0.3
    assert keen["length"]["value"] is None or keen["length"]["value_low"] < keen["length"]["value_high"]
    assert keen["self"]["value"] is None
    assert "family" in keen["self"]["detail"]["reason"]
    # Imported labels do not say in which order they were given: unknown is not 0.
    assert people["position"]["value"] is None
    assert set(people) == {"position", "length", "self"}


def test_its_own_family_and_a_soft_heart_are_held_against_people(brought):
    brought("labels", [row for seed, name in enumerate(PEOPLE) for row in scores(0.5, seed, annotator=name)])
    kind = [row | {"score": min(5, row["score"] + (1 if row["responses"] == ["Cedar"] else 0))} for row in
            scores(0.5, 7, judge="kin")]  # fmt: skip
    brought("judgments", kind)
    Judge.objects.filter(name="kin").update(family="conifer")
    EvaluatedModel.objects.filter(name="Cedar").update(family="conifer")
    board = biases(scope_of(benchmark="grove", kind="score"))
    kin = of(board, "kin")
    assert kin["self"]["value"] == pytest.approx(1, abs=0.3)
    assert kin["self"]["value_low"] > 0.5
    assert kin["self"]["detail"]["models"] == ["Cedar"]
    assert kin["high_score"]["value_low"] < kin["high_score"]["value"] < kin["high_score"]["value_high"]
    detail = kin["high_score"]["detail"]
    assert sum(detail["judge"]) == pytest.approx(1)
    assert detail["judge_mean"] - detail["people_mean"] == pytest.approx(kin["high_score"]["value"])
    assert sum(of(board, "humans")["high_score"]["detail"]["people"].values()) == pytest.approx(1)
    with pytest.raises(BadScope, match="none of kind batch"):
        biases(scope_of(benchmark="grove", kind="batch"))


def test_page_command_and_api_say_the_same_of_biases(brought, client_of, capsys):
    brought("labels", labels())
    brought("judgments", judgments("keen", noise=0.6, seed=2))
    call_command("leaderboard", "bias", benchmark="grove", shape="json")
    printed = json.loads(capsys.readouterr().out)
    assert printed == client_of("anonymous").get("/api/v1/leaderboards/bias/?benchmark=grove").json()
    assert {"judge", "bias", "value", "n", "detail"} <= set(printed[0])
    call_command("leaderboard", "bias", benchmark="grove")
    assert "position" in capsys.readouterr().out
    page = client_of("anonymous").get("/leaderboards/grove/bias/").content.decode()
    assert "keen" in page
    assert "to compare" in page
    empty = client_of("anonymous").get("/leaderboards/grove/bias/?kind=score").content.decode()
    assert "No judge has judged" in empty
