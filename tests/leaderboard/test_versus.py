"""Two models, or two judges, side by side: paired tests by hand, and single answers only for those who may see them."""

import numpy as np
import pytest
from scipy import stats as reference

from judging.models import Run
from leaderboard.boards import seen
from leaderboard.rows import plain
from leaderboard.scope import BadScope
from leaderboard.view import scope_of
from tests.leaderboard.conftest import MODELS, PEOPLE, judgments, labels
from tests.leaderboard.test_graded_boards import rankings, scores
from tests.leaderboard.test_keyed_boards import SAMPLES, questions, quiz
from tests.markup import flat

__all__ = ["questions", "quiz"]
pytestmark = pytest.mark.django_db


def run_of(judge):
    return Run.objects.get(judge__name=judge).pk


def test_two_judges_are_tested_on_the_items_that_both_judged(voted):
    scope = scope_of(benchmark="grove", staff=True)
    found = seen.two_judges(scope, run_of("keen"), run_of("dull"))
    agreement, accuracy = plain(found.measures)[:2]
    table = found.table
    told = table.replace({"undecided": "tie", "split": "tie"})  # no majority counts as a tie
    hits = {name: told[name] == told["people"] for name in ("a", "b")}
    assert accuracy["a"] == pytest.approx(hits["a"].mean())
    assert accuracy["difference"] == pytest.approx(hits["a"].mean() - hits["b"].mean())
    assert accuracy["difference_low"] < accuracy["difference"] < accuracy["difference_high"]
    assert accuracy["significant"] is True
    assert accuracy["p"] < 0.01
    assert (table["apart"] == (hits["a"] ^ hits["b"])).all()
    assert {row["level"] for row in plain(found.levels)} == {"Perception", "Creation"}
    assert accuracy["n"] == len(table)
    # First, and by level, the number that leads the board: pairs on which people chose a side; a tie is wrong there.
    sided = told[told["people"].isin(["first", "second"])]
    hits = {name: (sided[name] == sided["people"]).mean() for name in ("a", "b")}
    assert (agreement["a"], agreement["b"]) == pytest.approx((hits["a"], hits["b"]))
    assert sum(row["n"] for row in plain(found.levels)) == agreement["n"] == len(sided)
    turned = plain(seen.two_judges(scope, run_of("dull"), run_of("keen")).measures)[1]
    assert turned["difference"] == pytest.approx(-accuracy["difference"])
    with pytest.raises(BadScope, match="two different"):
        seen.two_judges(scope, run_of("keen"), run_of("keen"))


def test_two_judges_scores_are_compared_by_their_correlations_with_people(brought):
    brought("labels", [row for seed, name in enumerate(PEOPLE) for row in scores(0.5, seed, annotator=name)])
    brought("judgments", [*scores(0.4, 8, judge="keen"), *scores(3, 9, judge="dull")])
    found = seen.two_judges(scope_of(benchmark="grove", kind="score"), run_of("keen"), run_of("dull"))
    table = found.table
    pearson = next(row for row in plain(found.measures) if row["measure"] == "Pearson")
    expected = [reference.pearsonr(table[name].astype(float), table["people"].astype(float))[0] for name in ("a", "b")]
    assert [pearson["a"], pearson["b"]] == pytest.approx(expected)
    assert pearson["difference_low"] > 0
    assert pearson["p"] < 0.05


def test_rankings_are_compared_by_their_distance_from_people(brought):
    brought("labels", rankings(0.4, 1, annotator="Ada"))
    brought("judgments", [*rankings(0.4, 1, judge="twin"), *rankings(9, 2, judge="coin")])
    found = seen.two_judges(scope_of(benchmark="grove", kind="batch"), run_of("twin"), run_of("coin"))
    (row,) = plain(found.measures)
    assert row["a"] == 0
    assert row["difference"] < 0
    assert row["difference_high"] < 0


def test_two_models_meet_on_the_same_samples_and_in_the_fit(voted):
    found = seen.two_models(scope_of(benchmark="grove", anchor="Cedar"), "Alder", "Birch")
    names = [row["measure"] for row in plain(found.measures)]
    assert names == ["Win rate against Cedar", "Win rate against each other", "Bradley–Terry strength"]
    strength = plain(found.measures)[-1]
    assert strength["difference"] == pytest.approx(strength["a"] - strength["b"])
    assert all(row["difference"] > 0 for row in plain(found.measures))
    assert plain(found.measures)[1]["a"] + plain(found.measures)[1]["b"] <= 1
    with pytest.raises(BadScope, match="nothing to compare"):
        seen.two_models(scope_of(benchmark="grove"), "Alder", "Nobody")


def test_models_scores_are_paired_by_sample(brought):
    brought("labels", scores(0.8, 3, annotator="Ada"))
    found = seen.two_models(scope_of(benchmark="grove", kind="score"), *MODELS[:2])
    (row,) = plain(found.measures)
    given = {(r["sample"], r["responses"][0]): r["score"] for r in scores(0.8, 3)}
    change = [given[s, "Alder"] - given[s, "Birch"] for s, m in given if m == "Alder"]
    assert row["difference"] == pytest.approx(np.mean(change))
    assert row["difference_se"] == pytest.approx(reference.sem(change))
    half = reference.t.ppf(0.975, len(change) - 1) * reference.sem(change)
    assert row["difference_high"] - row["difference_low"] == pytest.approx(2 * half, rel=0.1)
    assert row["difference_groups"] == len(change)


def test_right_answers_are_held_against_mcnemar_and_with_hidden_keys_by_staff_alone(quiz, client_of):
    found = seen.two_models(scope_of(benchmark="quiz", kind="choice", staff=True), "Sure", "Shaky")
    circular, once = plain(found.measures)
    assert (circular["difference"], once["difference"]) == (0.75, 0.5)
    assert circular["p"] == pytest.approx(2 * 0.5**36)  # 36 samples that only one got right
    assert circular["method"] == "mcnemar, exact"
    assert len(found.table[found.table["apart"] > 0]) == SAMPLES * 3 // 4
    path = "/leaderboards/quiz/models/compare/?kind=choice&a=Sure&b=Shaky"
    for role in ("anonymous", "annotator", "researcher"):
        assert client_of(role).get(path).status_code == 400
    assert 'class="mono">q1<' in flat(client_of("curator").get(path))


def test_the_board_leads_to_the_page_of_two(voted, client_of):
    client = client_of("researcher")
    runs = [run_of("keen"), run_of("dull")]
    board = flat(client.get("/leaderboards/grove/judges/"))
    assert "/leaderboards/grove/judges/compare/" in board
    page = flat(client.get(f"/leaderboards/grove/judges/compare/?judge=run-{runs[0]}&judge=run-{runs[1]}"))
    assert "keen against dull" in page
    assert "keen is ahead" in page
    assert client.get("/leaderboards/grove/judges/compare/?judge=run-1&judge=run-2&judge=run-3").status_code == 400
    assert client.get("/leaderboards/grove/judges/compare/?a=run-x&b=run-2").status_code == 400
    assert "Which two?" in flat(client.get("/leaderboards/grove/judges/compare/"))
    assert "Which two?" in flat(client.get("/leaderboards/grove/models/compare/"))


def test_settings_of_one_judge_are_rows_of_their_own(brought):
    brought("labels", labels())
    both = [judgments("keen", noise=n, seed=5, settings={"criteria": c}) for n, c in ((0.5, True), (6, False))]
    brought("judgments", [row for rows in both for row in rows])
    first, second = Run.objects.order_by("pk")
    found = seen.two_judges(scope_of(benchmark="grove"), first.pk, second.pk)
    assert [found.a, found.b] == [f"keen, run {first.pk}", f"keen, run {second.pk}"]
    assert plain(found.measures)[0]["difference"] > 0


def test_with_fewer_than_eight_prompts_a_difference_has_no_interval_and_says_why(voted):
    for n, sample in enumerate(voted.samples.all()):
        sample.group = f"prompt {n % 5}"
        sample.save()
    found = seen.two_judges(scope_of(benchmark="grove", staff=True), run_of("keen"), run_of("dull"))
    accuracy = plain(found.measures)[0]
    assert accuracy["difference"] is not None
    assert (accuracy["difference_low"], accuracy["difference_high"], accuracy["difference_groups"]) == (None, None, 5)
    assert accuracy["notes"] == ["difference: fewer than 8 groups: no interval"]
