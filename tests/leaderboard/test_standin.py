"""May a judge stand in for annotators, and what people and a judge say together: of real and made data."""

import json
import random
import re

import pandas as pd
import pytest
from django.core.management import call_command

from bank.models import Sample
from judging.models import Run
from leaderboard.boards.judges import stand_in as standin
from leaderboard.scope import BadScope
from leaderboard.view import scope_of
from stats.alternative import alternative_annotator_test
from tests.leaderboard.conftest import judgments, labels, pairs, vote
from tests.leaderboard.test_board_pages import Tables

pytestmark = pytest.mark.django_db
BASE = "/leaderboards/grove"


def test_a_judge_that_follows_people_may_stand_in_and_a_coin_may_not(voted, client):
    rows = {row["judge"]: row for row in standin.stand_ins(scope_of(benchmark="grove")).as_json()}
    assert rows["keen"]["passes"] is True
    assert rows["keen"]["advantage"] > rows["dull"]["advantage"]
    assert len(rows["keen"]["annotators"]) == rows["keen"]["tested"] == 3
    assert "annotator" not in rows["keen"]["annotators"][0]  # no names
    html = client.get(f"{BASE}/judges/").content.decode()
    panel = html[html.index('id="stand-in"') :]
    assert "as close as 3 of 3 people" in panel
    assert re.search(r'epsilon=0\.1[^"]*#stand-in"', panel)
    strict = standin.stand_ins(scope_of(benchmark="grove"), 0.0).as_json()
    assert [row["winning_rate"] for row in strict] <= [rows[row["judge"]]["winning_rate"] for row in strict]
    shown = client.get(f"{BASE}/judges/?epsilon=0").content.decode()
    assert all(f">{row['winning_rate']:.2f}<" in re.sub(r"\s+", "", shown) for row in strict)
    assert client.get(f"{BASE}/judges/?epsilon=nonsense").status_code == 200


def test_too_few_people_are_told_in_words(brought, client):
    brought("labels", [row for row in labels() if row["annotator"] != "Chen"])
    brought("judgments", judgments("keen", noise=0.6, seed=2))
    (row,) = standin.stand_ins(scope_of(benchmark="grove")).as_json()
    assert row["winning_rate"] is None
    assert "2 annotators" in row["reason"]
    assert row["reason"].capitalize() in client.get(f"{BASE}/judges/").content.decode()
    with pytest.raises(BadScope, match="none of kind batch"):
        standin.stand_ins(scope_of(benchmark="grove", kind="batch"))


def test_labels_on_some_items_correct_a_judges_verdicts_on_more(brought, client):
    told = {(s, a, b): vote(a, b, random.Random(f"{s} {a} {b}"), 2.0) for s, a, b in pairs()}
    said = [row | {"choice": told[row["sample"], *row["responses"]]} for row in labels()]
    brought("labels", [row for row in said if int(row["sample"][1:]) < 31])
    judged = judgments("keen", noise=0.6, seed=2)
    brought("judgments", [row | {"choice": told[row["sample"], *row["responses"]]} for row in judged])
    run = Run.objects.get().pk
    rows = {row["model"]: row for row in standin.together(scope_of(benchmark="grove"), run).as_json()}
    alder = rows["Alder"]
    assert (alder["further"] > 0, alder["n"] > 0) == (True, True)
    assert alder["n"] == alder["people_n"]
    assert 0 < alder["weight"] <= 1
    assert alder["both_low"] < alder["both"] < alder["both_high"]
    shown = {cells[1][0]: cells for cells in Tables(client.get(f"{BASE}/models/together/").content.decode()).rows}
    assert shown["Alder"][2][0] == f"{100 * alder['both']:.1f}"
    assert shown["Alder"][7] == [f"{alder['weight']:.2f}"]
    assert client.get(f"{BASE}/models/together/?run=999").status_code == 400
    ranked = client.get("/api/v1/leaderboards/people-and-judge/?benchmark=grove&part=ranks").json()
    known = sorted((row for row in rows.values() if row["both"] is not None), key=lambda row: -row["both"])
    assert [(row["model"], row["both"], row["both_low"]) for row in ranked] == [
        (row["model"], row["both"], row["both_low"]) for row in known
    ]
    assert [row["rank"] for row in ranked] == [1, 2, 3]
    assert ranked[0]["tier"] == 1 < ranked[-1]["tier"]
    assert shown["Alder"][0] == ["1"]
    assert client.get("/api/v1/leaderboards/people-and-judge/?benchmark=grove&part=none").status_code == 400


def test_within_a_level_people_and_a_judge_are_put_together_or_it_says_what_is_missing(brought, client):
    labelled = [row for row in labels() if row["annotator"] == "Ada" or int(row["sample"][1:]) < 24]
    brought("labels", [row for row in labelled if row["sample"] not in ("s34", "s35")])
    brought("judgments", judgments("keen", noise=0.6, seed=2))
    rows = client.get("/api/v1/leaderboards/people-and-judge/?benchmark=grove&part=levels").json()
    assert {row["level"] for row in rows} == {"Perception", "Creation"}
    whole = client.get("/api/v1/leaderboards/people-and-judge/?benchmark=grove").json()
    for row in whole:
        of_levels = [each for each in rows if each["model"] == row["model"]]
        assert sum(each["n"] for each in of_levels) == row["n"]
        assert sum(each["further"] for each in of_levels) == row["further"]
    assert all(row["reason"] for row in rows if row["both"] is None)  # 24 and 12 samples: too few prompts


def test_below_fifty_labels_in_thirty_groups_the_page_says_how_many_are_missing(brought, client):
    brought("labels", [row for row in labels() if int(row["sample"][1:]) < 10])
    brought("judgments", judgments("keen", noise=0.6, seed=2))
    rows = standin.together(scope_of(benchmark="grove"), Run.objects.get().pk).as_json()
    assert {row["both"] for row in rows} == {None}
    for row in rows:
        if row["model"] == "Dogwood":  # answered nothing else
            continue
        assert row["reason"].startswith(f"needs {50 - row['n']} more labels")
        assert "20 more groups" in row["reason"]
    assert "20 more groups" in client.get(f"{BASE}/models/together/").content.decode()


def test_a_benchmark_with_few_groups_is_not_told_to_label_more_of_them(brought, client):
    brought("labels", [row for row in labels() if int(row["sample"][1:]) < 10])
    brought("judgments", judgments("keen", noise=0.6, seed=2))
    for n, sample in enumerate(Sample.objects.order_by("pk")):
        Sample.objects.filter(pk=sample.pk).update(group=f"prompt {n % 13}")
    said = "this benchmark has too few groups (pictures, prompts): 13, and it takes 30"
    rows = standin.together(scope_of(benchmark="grove"), Run.objects.first().pk).as_json()
    assert {row["reason"] for row in rows if row["model"] != "Dogwood"} == {said}
    assert said in client.get(f"{BASE}/models/together/").content.decode()


def test_what_cannot_be_put_together_is_said_in_words(voted, grove, client):
    html = client.get(f"{BASE}/models/together/").content.decode()
    assert "covers nothing beyond the labels" in html
    assert "Nothing to put together" in client.get(f"{BASE}/models/together/?kind=score").content.decode()
    assert client.get(f"{BASE}/models/together/?kind=yes-no").status_code == 200


def test_the_lesion_data_on_the_board_are_those_of_the_files(shared_data, client):
    """LESION of arXiv 2501.10970: 100 pictures x 5 features, six annotators, four judges."""
    folder = shared_data / "alt-test-lesion"
    for what in ("benchmark", "labels", "judgments"):
        call_command(f"import_{what}", "auto", str(folder), benchmark="lesion")
    human = json.loads((folder / "human_annotations.json").read_text())
    people = pd.DataFrame(
        [(who, item, value) for who, rows in human.items() for item, value in rows.items() if value is not None],
        columns=["annotator", "item", "value"],
    )
    judges = json.loads((folder / "llm_annotations.json").read_text())
    board = standin.stand_ins(scope_of(benchmark="lesion", kind="score", staff=True), 0.15)
    assert len(board.as_json()) == len(judges)
    for row in board.as_json():
        told = pd.DataFrame(
            [(i, v) for i, v in judges[row["judge"]].items() if v is not None], columns=["item", "value"]
        )
        by_hand = alternative_annotator_test(labels=people, judge=told, measure="distance", epsilon=0.15)
        assert row["winning_rate"] == by_hand.winning_rate
        assert row["advantage"] == pytest.approx(by_hand.advantage)
