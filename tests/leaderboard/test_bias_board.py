"""The board of biases: what sways a judge, with people's own beside it, the same by page, command and API."""

import json

import pytest
from django.core.management import call_command

from bank.models import EvaluatedModel
from judging.models import Judge
from leaderboard.boards.seen import bias_of
from leaderboard.scope import BadScope
from leaderboard.view import scope_of
from tests.leaderboard.conftest import MODELS, PEOPLE, judgments, labels, pairs
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
    board = bias_of(scope_of(benchmark="grove"))
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
    board = bias_of(scope_of(benchmark="grove", kind="score"))
    kin = of(board, "kin")
    assert kin["self"]["value"] == pytest.approx(1, abs=0.3)
    assert kin["self"]["value_low"] > 0.5
    assert kin["self"]["detail"]["models"] == ["Cedar"]
    assert kin["high_score"]["value_low"] < kin["high_score"]["value"] < kin["high_score"]["value_high"]
    detail = kin["high_score"]["detail"]
    assert sum(detail["judge"]) == pytest.approx(1)
    assert detail["judge_mean"] - detail["people_mean"] == pytest.approx(kin["high_score"]["value"])
    assert sum(of(board, "humans")["high_score"]["detail"]["people"].values()) == pytest.approx(1)
    own, others = (sum(x * y for x, y in zip(kin["self"]["detail"]["scale"], kin["self"]["detail"][side], strict=True))
                   for side in ("own", "own_people"))  # fmt: skip
    assert own - others == pytest.approx(1, abs=0.3)
    with pytest.raises(BadScope, match="none of kind choice"):
        bias_of(scope_of(benchmark="grove", kind="choice", staff=True))


def test_pairs_judged_in_one_order_show_which_place_won_beside_peoples_share_of_it(brought, client):
    brought("labels", labels())
    one_order = [row | {"settings": {"order": "shuffled"}} for row in always_first() if row["choice"] == "first"]
    brought("judgments", [row for n, row in enumerate(one_order) if n % 4])
    row = of(bias_of(scope_of(benchmark="grove")), "lazy")["position"]
    assert (row["value"], row["detail"]["first"], row["detail"]["second"]) == (1, 1, 0)
    assert row["n"] == sum(bool(n % 4) for n in range(len(one_order)))
    assert 0 < row["detail"]["people_first"] < 1
    assert row["detail"]["method"] == "orders drawn by lot"
    assert "one order" in client.get("/leaderboards/grove/bias/").content.decode()


def rankings(judge):
    """A judge that ranks the answers as they were shown, except on every third sample, where it turns them round."""
    for n in range(24):
        shown = [MODELS[(n + place) % 3] for place in range(3)]
        best = shown if n % 3 else shown[::-1]
        yield {
            "kind": "batch", "protocol": "batch", "sample": f"s{n:02}", "responses": list(MODELS[:3]), "judge": judge,
            "settings": {"order": "shuffled"}, "order": shown, "ranking": best,
        }  # fmt: skip


def test_rankings_show_how_far_they_follow_the_order_shown_and_the_share_of_each_order(brought, client):
    brought("judgments", rankings("copy"))
    (row,) = bias_of(scope_of(benchmark="grove", kind="batch")).as_json()
    assert row["value"] == pytest.approx(16 / 24 - 8 / 24)
    assert row["value_low"] < row["value"] < row["value_high"]
    assert row["detail"]["orders"] == {"A B C": pytest.approx(16 / 24), "C B A": pytest.approx(8 / 24)}
    shown = client.get("/leaderboards/grove/bias/?kind=batch").content.decode()
    assert "Orders given" in shown
    assert client.get(f"/leaderboards/grove/plots/bias.svg?kind=batch&metric=orders-{row['run']}").status_code == 200


def test_the_longer_of_two_answers_and_the_longer_of_several_scored_ones_are_told(brought, folder, manage, client):
    long_ones = [
        {"sample": f"s{n:02}", "model": model, "text": "word " * (10 + 10 * place + n)}
        for n in range(24)
        for place, model in enumerate(("Elm", "Fir", "Gum"))
    ]
    brought("responses", long_ones)
    pair = {"kind": "pair", "protocol": "pair", "judge": "wordy", "settings": {"order": "fixed"}}
    likes = [
        pair
        | {"sample": f"s{n:02}", "responses": [a, b], "choice": "tie" if n % 6 == 0 else "first" if a > b else "second"}
        for n in range(24)
        for a, b in (("Elm", "Fir"), ("Gum", "Elm"))
    ]
    score = {"kind": "score", "protocol": "score", "judge": "wordy"}
    likes += [
        score | {"sample": f"s{n:02}", "responses": [model], "score": 2 + place + n % 2}
        for n in range(24)
        for place, model in enumerate(("Elm", "Fir", "Gum"))
    ]
    brought("judgments", likes)
    row = of(bias_of(scope_of(benchmark="grove")), "wordy")["length"]
    assert [(point["difference"], point["n"]) for point in row["detail"]["curve"]] == [(10, 24), (20, 24)]
    for point in row["detail"]["curve"]:  # 4 of 24 are ties
        assert point["value"] == pytest.approx((20 + 4 / 2) / 24)
        assert point["value_low"] < point["value"] < point["value_high"]
    row = of(bias_of(scope_of(benchmark="grove", kind="score")), "wordy")["length"]
    # Scores rise by one where lengths rise by ten: by the standard deviation of -10, 0 and 10.
    assert row["value"] == pytest.approx((2 / 3) ** 0.5)
    assert [(point["difference"], point["value"]) for point in row["detail"]["curve"]] == [(-10, -1), (0, 0), (10, 1)]
    shown = client.get("/leaderboards/grove/bias/?kind=score").content.decode()
    assert "points beside the mean of the sample" in shown
    assert client.get(f"/leaderboards/grove/plots/bias.svg?kind=score&metric=length-{row['run']}").status_code == 200


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
