"""Boards of recipes: each metric as a plain loop over the stored answers gives it, and what others than staff see."""

import json
import math

import numpy as np
import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.management import call_command
from sacrebleu.metrics import BLEU

from accounts.models import Role, User
from bank.criteria import Criterion
from bank.models import Benchmark, Capability, EvaluatedModel, Item, ItemResponse, Response, Sample
from bank.recipes import spec, store
from bank.recipes.verbalizers import named
from judging.models import Judge, Judgment, Run
from leaderboard.boards.recipes import board as boards
from tests.hidden import write_criteria

pytestmark = pytest.mark.django_db
STAFF = User(role=Role.CURATOR)
LIKELIHOOD = [{"kind": "likelihood"}]


def quiz(slug="animals", questions=40, options="ABCD", *, shown_to="public", **columns):
    benchmark = Benchmark.objects.create(slug=slug, title=slug.title(), **({"visibility": "public"} | columns))
    samples = Sample.objects.bulk_create(
        Sample(
            benchmark=benchmark,
            key=f"q{number:03}",
            instruction=f"Question {number}?",
            options={label: f"text {label}" for label in options},
            position=number,
            split="dev",
        )
        for number in range(questions)
    )
    key = {"key": "key", "kind": "answer_key", "text": "A", "shown_to": shown_to}
    write_criteria({"sample": sample} | key for sample in samples)
    return benchmark


@pytest.fixture
def recipe(db):
    def make(**values):
        value = {"name": "mine", "scenario": [{"benchmark": "animals"}], "metric": "accuracy"} | values
        return store.save(spec.parsed({"turns": LIKELIHOOD} | value))[0]

    return make


def answered(recipe, benchmark, model, said, *, shares=None, **columns):
    """Store answers: ``said`` gives the label of each question, in order; ``shares`` the probability of that label."""
    owner, _ = EvaluatedModel.objects.get_or_create(name=model)
    for at, sample in enumerate(benchmark.samples.order_by("position")[: len(said)]):
        labels = list(sample.options)
        likelihoods = None
        if shares is not None:
            rest = (1 - shares[at]) / (len(labels) - 1)
            pool = [[label, math.log(shares[at] if label == said[at] else rest)] for label in labels]
            likelihoods = {"by": "first-token", "sum": "total", "pool": pool, "mass": 0.9}
        Response.all_objects.create(
            **{"recipe": recipe, "sample": sample, "model": owner, "text": said[at], "likelihoods": likelihoods}
            | columns
        )


def only(recipe, viewer=STAFF):
    (row,) = boards.board(recipe, viewer).rows
    return row


def test_accuracy_is_the_share_of_right_answers_with_ranks(recipe):
    benchmark, mine = quiz(), recipe()
    answered(mine, benchmark, "good", ["A"] * 36 + ["B"] * 4)
    answered(mine, benchmark, "bad", ["A"] * 10 + ["B"] * 29 + [""])
    good, bad = boards.board(mine, STAFF).rows
    assert (good.model, good.value.value, good.rank, good.chance, good.n, good.coverage) == (
        "good",
        0.9,
        1,
        0.25,
        40,
        1,
    )
    assert (bad.value.value, bad.unread, bad.rank, bad.rank_low, bad.rank_high) == (0.25, 1, 2, 2, 2)
    assert good.value.low < 0.9 < good.value.high
    assert good.as_json()["value_method"] == "wilson"


def test_two_models_are_compared_on_the_questions_that_both_answered(recipe, client, capsys):
    benchmark, mine = quiz(), recipe()
    answered(mine, benchmark, "good", ["A"] * 36 + ["B"] * 4)
    answered(mine, benchmark, "bad", ["A"] * 10 + ["B"] * 20)  # ten questions were not put to it
    answered(mine, benchmark, "none", ["B"])
    (row,) = boards.compare(mine, STAFF, "good", "bad")
    assert (row.scenario, row.condition, row.a, row.b, row.n) == ("animals@1", "plain", 1.0, 10 / 30, 30)
    assert row.difference.value == pytest.approx(20 / 30)
    assert row.difference.low < 20 / 30 < row.difference.high
    assert row.p == pytest.approx(2 * 0.5**20)  # McNemar, exact: 20 questions, all one way
    assert row.significant
    told = client.get("/api/v1/leaderboards/recipes/?recipe=mine&a=good&b=bad").json()
    assert told == [row.as_json()]
    call_command("evaluate", recipe="mine", compare=["good", "bad"], format="json")
    assert json.loads(capsys.readouterr().out) == told
    page = client.get("/recipes/mine/board/?a=good&b=bad").content.decode()
    assert "+66.7" in page
    assert "nobody" in client.get("/recipes/mine/board/?a=good&b=nobody").content.decode()
    assert client.get("/api/v1/leaderboards/recipes/?recipe=mine&a=good&b=nobody").status_code == 400
    assert client.get("/api/v1/leaderboards/recipes/?recipe=mine&a=good").status_code == 400


def test_the_answers_behind_a_board_are_read_by_api_where_ordinary_ones_do_not_hold_them(recipe, client_of):
    benchmark, mine = quiz(questions=2), recipe()
    answered(mine, benchmark, "good", ["A", "B"], shares=[0.7, 0.4])
    client = client_of("researcher")
    rows = client.get("/api/v1/recipe-responses/?recipe=mine&sample=q000").json()["results"]
    assert [(row["recipe"], row["model"], row["text"], row["turn"]) for row in rows] == [("mine@1", "good", "A", 0)]
    assert dict(rows[0]["likelihoods"]["pool"])["A"] == pytest.approx(math.log(0.7))
    assert client.get("/api/v1/responses/").json()["results"] == []
    closed = quiz("secret", questions=1, visibility="private")
    hidden = recipe(name="hidden", scenario=[{"benchmark": "secret"}])
    answered(hidden, closed, "good", ["A"])
    assert client.get("/api/v1/recipe-responses/?recipe=hidden").json()["results"] == []
    assert len(client_of("curator").get("/api/v1/recipe-responses/?recipe=hidden").json()["results"]) == 1


def test_two_models_are_not_compared_on_keys_that_the_viewer_may_not_see(recipe, client):
    benchmark, mine = quiz(shown_to="staff"), recipe()
    for model in ("good", "bad"):
        answered(mine, benchmark, model, ["A"] * 40)
    assert len(boards.compare(mine, STAFF, "good", "bad")) == 1
    answer = client.get("/api/v1/leaderboards/recipes/?recipe=mine&a=good&b=bad")
    assert answer.status_code == 400
    assert "not open to everybody" in answer.content.decode()


def test_calibration_is_one_minus_the_mean_gap_of_ten_bins(recipe):
    rng = np.random.default_rng(1)
    benchmark, mine = quiz(questions=120), recipe(metric="ece")
    shares = rng.uniform(0.3, 0.99, 120).round(4)
    said = ["A" if rng.random() < 0.6 else "B" for _ in range(120)]
    answered(mine, benchmark, "m", said, shares=shares)
    order = sorted(range(120), key=lambda at: (shares[at], at))
    bins = [order[begin : begin + 12] for begin in range(0, 120, 12)]
    ece = sum(
        len(part) / 120 * abs(np.mean([shares[at] for at in part]) - np.mean([said[at] == "A" for at in part]))
        for part in bins
    )
    row = only(mine)
    assert row.value.value == pytest.approx(1 - ece)
    assert [part.n for part in row.bins] == [12] * 10
    assert 0 < row.ece_calibrated < row.ece_calibrated_high
    assert row.accuracy.value == pytest.approx(np.mean([one == "A" for one in said]))
    assert row.pool_mass == pytest.approx(0.9)


def test_fewer_than_a_hundred_questions_are_provisional(recipe):
    benchmark, mine = quiz(questions=30), recipe(metric="ece")
    answered(mine, benchmark, "m", ["A", "B", "A"] * 10, shares=[0.7] * 30)
    assert "n < 100: provisional" in only(mine).notes


def test_robustness_is_what_is_left_of_what_lies_above_chance(recipe):
    benchmark = quiz(questions=200)
    mine = recipe(metric="rrm", corruption={"strategy": "composed", "image": True})
    answered(mine, benchmark, "m", ["A"] * 120 + ["B"] * 80)
    answered(mine, benchmark, "m", ["A"] * 90 + ["B"] * 110, variant="corrupted")
    row = only(mine)
    assert row.value.value == pytest.approx((0.45 - 0.25) / (0.6 - 0.25))
    assert row.value.low < row.value.value < row.value.high
    assert (row.accuracy.value, row.conditions["corrupted"].accuracy.value) == (0.6, 0.45)


def test_robustness_at_chance_has_no_value_and_says_why(recipe):
    benchmark = quiz(questions=200)
    mine = recipe(metric="rrm", corruption={"strategy": "composed", "image": True})
    answered(mine, benchmark, "m", ["A"] * 52 + ["B"] * 148)
    answered(mine, benchmark, "m", ["A"] * 52 + ["B"] * 148, variant="corrupted")
    row = only(mine)
    assert row.value.value is None
    assert "chance" in row.notes[0]


def test_the_gain_from_examples_is_the_mean_over_their_numbers(recipe):
    benchmark = quiz(questions=200)
    mine = recipe(metric="riam", instruction={"examples": {"how": "random", "k": 2}})
    answered(mine, benchmark, "m", ["A"] * 120 + ["B"] * 80)
    answered(mine, benchmark, "m", ["A"] * 130 + ["B"] * 70, variant="shots-1")
    answered(mine, benchmark, "m", ["A"] * 100 + ["B"] * 100, variant="shots-2")
    assert only(mine).value.value == pytest.approx(((0.65 + 0.5) / 2 - 0.6) / (0.6 - 0.25))


def test_a_match_is_the_same_answer_under_other_labels_right_or_wrong(recipe):
    benchmark = quiz(options="ABC")
    mine = recipe(metric="mr", instruction={"verbalizer": "natural"})
    answered(mine, benchmark, "m", ["A", "B"] * 20)
    answered(mine, benchmark, "m", ["1", "2"] * 20, variant="natural-1")
    answered(mine, benchmark, "m", ["I", "I"] * 20, variant="natural-2")
    answered(mine, benchmark, "m", ["third", "third"] * 20, variant="natural-3")
    row = only(mine)
    assert row.value.value == pytest.approx((1 + 0.5 + 0) / 3)
    assert {name: one.accuracy.value for name, one in row.conditions.items()} == {
        "plain": 0.5,
        "natural-1": 0.5,
        "natural-2": 1.0,
        "natural-3": 0.0,
    }


def test_other_labels_have_an_accuracy_and_a_match_ratio_by_set_and_by_group(recipe):
    benchmark, mine = quiz(questions=4), recipe(metric="mr", instruction={"verbalizer": "none"})
    answered(mine, benchmark, "m", ["A", "B", "A", "C"])
    for name, said in {
        "natural-1": ["A", "B", "A", "A"],  # 3 right, 3 the same
        "natural-2": ["A", "A", "A", "A"],  # 4 right, 2 the same
        "unnatural-1": ["B", "B", "B", "B"],  # none right, 1 the same
    }.items():
        own = [named(name).labels(list("ABCD"))["ABCD".index(label)] for label in said]
        for sample, text in zip(benchmark.samples.order_by("position"), own, strict=True):
            model = EvaluatedModel.objects.get(name="m")
            Response.all_objects.create(recipe=mine, sample=sample, model=model, text=text, variant=name)
    row = only(mine)
    assert (row.value.value, row.accuracy.value, row.accuracy_vm.value) == (6 / 12, 2 / 4, 7 / 12)
    assert {name: (each.accuracy.value, each.match.value) for name, each in row.labels.items()} == {
        "natural": (7 / 8, 5 / 8),
        "unnatural": (0, 1 / 4),
        "natural-1": (3 / 4, 3 / 4),
        "natural-2": (1, 2 / 4),
        "unnatural-1": (0, 1 / 4),
    }
    assert row.accuracy_vm.method


def test_letters_are_those_behind_which_the_chosen_option_stood(recipe):
    benchmark, mine = quiz(questions=8), recipe()
    answered(mine, benchmark, "m", ["A", "A", "B", "B", "B", "B", "D", ""])
    turned = benchmark.samples.get(key="q000")
    Response.all_objects.filter(sample=turned).update(text="C", option_order=["D", "B", "A", "C"])  # A stood at C
    row = only(mine)
    assert row.value.value == 2 / 8
    assert {letter: (each.chosen.value, each.key, each.accuracy.value) for letter, each in row.letters.items()} == {
        "A": (1 / 7, 7 / 8, 1),
        "B": (4 / 7, 0, 0),
        "C": (1 / 7, 1 / 8, 1),
        "D": (1 / 7, 0, 0),
    }


def test_marks_of_all_answers_give_the_accuracy_by_range_and_the_metric_counts_right_ones(recipe):
    benchmark = quiz(questions=5)
    turns = [{"kind": "cot"}, *LIKELIHOOD]
    mine = recipe(metric="language", judge="marker", turns=turns, marked="all")
    answered(mine, benchmark, "m", ["A", "A", "A", "B", "B"], turn=1)
    judge = Judge.objects.create(name="marker", model="m")
    run = Run.objects.create(judge=judge, benchmark=benchmark, recipe=mine, kind=Run.Kind.MARKS, model_name="m")
    for sample, marks in zip(benchmark.samples.order_by("position"), ([9, 10], [6], [3], [3], [0]), strict=True):
        item = Item.all_objects.create(sample=sample, kind="score", content_hash=sample.key, recipe=mine)
        for repeat, mark in enumerate(marks):
            Judgment.objects.create(run=run, item=item, repeat=repeat, status="ok", score=mark)
    row = only(mine)
    assert row.value.value == pytest.approx((0.95 + 0.6 + 0.3) / 3)
    assert {name: (each.accuracy.value, each.n) for name, each in row.marks.items()} == {
        "0 to 3": (1 / 3, 3),
        "over 3 to 5": (None, 0),
        "over 5 to 7": (1, 1),
        "over 7": (1, 1),
    }


def test_each_corruption_alone_has_its_accuracy_and_the_metric_is_over_all_of_them(recipe, client):
    benchmark = quiz(questions=10)
    mine = recipe(metric="rrm", corruption={"strategy": "each", "text": True, "severity": 2})
    conditions = [condition.name for condition in store.spec_of(mine).conditions]
    assert conditions[:3] == ["", "corrupted-lower-case-1", "corrupted-contraction-expansion-1"]
    assert "corrupted-typos-2" in conditions
    assert not any("passive" in name for name in conditions)
    answered(mine, benchmark, "m", ["A"] * 9 + ["B"])
    for name in conditions[1:]:
        said = ["A"] * 5 + ["B"] * 5 if name == "corrupted-typos-2" else ["A"] * 9 + ["B"]
        answered(mine, benchmark, "m", said, variant=name)
    row = only(mine)
    assert row.conditions["corrupted-typos-2"].accuracy.value == 0.5
    damaged = (0.9 * (len(conditions) - 2) + 0.5) / (len(conditions) - 1)
    assert row.value.value == pytest.approx((damaged - 0.25) / (0.9 - 0.25))
    page = client.get("/recipes/mine/board/").content.decode()
    assert row.corruptions["typos"].accuracy.value == 0.5
    assert "Right %, by damage" in page
    page = client.get("/recipes/mine/answers/?model=m").content.decode()
    assert "condition=corrupted-typos-2" in page


def test_one_model_is_compared_by_two_recipes_on_the_questions_that_it_answered_by_both(recipe, client, capsys):
    benchmark, mine = quiz(), recipe()
    other = recipe(name="other", corruption={"strategy": "composed", "text": True})
    answered(mine, benchmark, "m", ["A"] * 36 + ["B"] * 4)
    answered(other, benchmark, "m", ["A"] * 10 + ["B"] * 20, variant="corrupted")
    (row,) = boards.compare_recipes(mine, other, STAFF, "m")
    assert (row.recipe, row.recipe_b, row.condition) == ("mine@1", "other@1", "plain / corrupted")
    assert (row.a, row.b, row.n, row.p) == (1.0, 10 / 30, 30, pytest.approx(2 * 0.5**20))
    told = client.get("/api/v1/leaderboards/recipes/?recipe=mine&against=other&model=m").json()
    assert told == [row.as_json()]
    call_command("evaluate", recipe="mine", against="other", model="m", format="json")
    assert json.loads(capsys.readouterr().out) == told
    assert "+66.7" in client.get("/recipes/mine/board/?model=m&against=other@1").content.decode()
    assert client.get("/api/v1/leaderboards/recipes/?recipe=mine&against=mine&model=m").status_code == 400
    assert client.get("/api/v1/leaderboards/recipes/?recipe=mine&against=other&model=nobody").status_code == 400


def test_circular_counts_a_question_that_is_right_in_every_rotation(recipe):
    benchmark, mine = quiz(options="AB"), recipe(metric="circular")
    answered(mine, benchmark, "m", ["A"] * 40, option_order=["A", "B"])
    answered(mine, benchmark, "m", ["B"] * 30 + ["A"] * 10, option_order=["B", "A"], variant="circular-1")
    row = only(mine)
    assert (row.value.value, row.chance) == (0.75, 0.25)


def test_yes_and_no_have_popes_five_numbers_by_subset(recipe):
    benchmark = quiz(options="")
    random_, popular = (
        Capability.objects.create(benchmark=benchmark, name=name, path=name) for name in ("random", "popular")
    )
    for at, row in enumerate(Criterion.unguarded.order_by("sample__position")):
        row.text = "yes" if at % 2 else "no"
        row.save()
        Sample.objects.filter(pk=row.sample_id).update(capability=random_ if at < 20 else popular)
    mine = recipe(metric="yes-no", turns=[{"kind": "likelihood", "pool": "yes-no"}])
    answered(mine, benchmark, "m", ["no", "yes"] * 15 + ["yes", "yes"] * 5)
    row = only(mine)
    assert (row.value.value, row.chance) == (35 / 40, 0.5)
    assert (row.precision.value, row.recall.value, row.yes_ratio.value) == (20 / 25, 1, 25 / 40)
    assert row.f1.value == pytest.approx(2 * 0.8 / 1.8)
    assert {name: level.accuracy.value for name, level in row.levels.items()} == {"random": 1.0, "popular": 0.75}


def test_down_a_tree_each_right_step_counts_and_a_synonym_is_right(recipe):
    benchmark = quiz(options="")
    for row in Criterion.unguarded.all():
        row.text = "animal/dog | animal/hound"
        row.save()
    tree = {"tree": ["animal/dog", "animal/hound", "animal/cat", "plant/moss"]}
    mine = recipe(metric="weighted-accuracy", turns=[{"kind": "likelihood", "pool": tree, "by": "prompt"}])
    answered(
        mine, benchmark, "m", ["animal/dog"] * 10 + ["animal/hound"] * 10 + ["animal/cat"] * 10 + ["plant/moss"] * 10
    )
    assert only(mine).value.value == pytest.approx((20 + 10 * 0.5) / 40)


def test_exact_match_looks_beyond_case_and_marks(recipe):
    benchmark = quiz(options="")
    for row in Criterion.unguarded.all():
        row.text = "a red car | red car"
        row.save()
    mine = recipe(metric="exact-match", turns=[{"kind": "direct"}])
    answered(mine, benchmark, "m", ["A red car."] * 10 + ["RED  CAR"] * 10 + ["a car"] * 20)
    assert only(mine).value.value == 0.5


def test_bleu_is_that_of_sacrebleu_over_all_texts(recipe):
    benchmark = quiz(options="")
    texts = [f"a {colour} cat sits on the old mat near door {n}" for n, colour in enumerate(["red", "big"] * 20)]
    said = [text.replace("sits on", "sat on") if "red" in text else text for text in texts]
    for row, text in zip(Criterion.unguarded.order_by("sample__position"), texts, strict=True):
        row.text = text
        row.save()
    mine = recipe(metric="bleu", turns=[{"kind": "direct"}])
    answered(mine, benchmark, "m", said)
    row = only(mine)
    assert row.value.value == pytest.approx(BLEU().corpus_score(said, [texts]).score / 100)
    assert row.value.low < row.value.value < row.value.high


def test_marks_are_the_mean_of_the_judges_repeats_of_each_reason(recipe):
    benchmark = quiz(questions=12)
    mine = recipe(metric="language", judge="j", turns=[{"kind": "cot"}, {"kind": "likelihood"}])
    owner = EvaluatedModel.objects.create(name="m")
    answered(mine, benchmark, "m", ["A"] * 12, turn=1)
    run = Run.objects.create(
        kind=Run.Kind.MARKS,
        judge=Judge.objects.create(name="j"),
        benchmark=benchmark,
        recipe=mine,
        model_name="m",
        protocol="reasoning-quality",
        settings_hash="x",
    )
    for at, sample in enumerate(benchmark.samples.order_by("position")):
        reason = Response.all_objects.create(recipe=mine, sample=sample, model=owner, text="So.", turn=0)
        item = Item.all_objects.create(kind="score", sample=sample, content_hash=f"{at}", recipe=mine)
        ItemResponse.objects.create(item=item, position=0, response=reason)
        for repeat, mark in enumerate((at % 3 + 5, at % 3 + 7)):
            Judgment.objects.create(run=run, item=item, order="0", repeat=repeat, score=mark)
    row = only(mine)
    assert row.value.value == pytest.approx(0.7)  # the mean of 6, 7 and 8, of 10
    assert row.value.n == 12


def test_over_several_scenarios_the_mean_is_weighted_by_samples_and_missing_ones_make_none(recipe):
    mine = recipe(scenario=[{"benchmark": "animals"}, {"benchmark": "plants"}])
    animals, plants = quiz(), quiz("plants", 10)
    answered(mine, animals, "both", ["A"] * 40)
    answered(mine, plants, "both", ["A"] * 5 + ["B"] * 5)
    answered(mine, animals, "one", ["A"] * 40)
    rows = {(row.model, row.scenario): row for row in boards.board(mine, STAFF).rows}
    assert rows["both", "all"].value.value == pytest.approx((40 * 1 + 10 * 0.5) / 50)
    assert rows["both", "all"].n == 50
    assert (rows["one", "all"].value.value, rows["one", "all"].rank) == (None, None)
    assert "not every scenario was asked" in rows["one", "all"].notes


def test_accuracy_by_query_and_its_spread(recipe):
    benchmark = quiz()
    mine = recipe(instruction={"queries": ["{{ instruction }} a", "{{ instruction }} b"], "deal": "seeded"})
    answered(mine, benchmark, "m", ["A"] * 30 + ["B"] * 10)
    row = only(mine)
    assert set(row.queries) == {"query 1, repeat 1", "query 2, repeat 1"}
    assert row.query_sd == pytest.approx(np.std(list(row.queries.values()), ddof=1))


@pytest.mark.parametrize("closed", ["staff keys", "hidden split"])
def test_what_rests_on_keys_that_are_not_open_is_for_staff(closed, recipe):
    hidden = {"hidden_splits": ["dev"]} if closed == "hidden split" else {}
    benchmark = quiz(shown_to="staff" if closed == "staff keys" else "public", **hidden)
    mine = recipe()
    answered(mine, benchmark, "m", ["A"] * 40)
    assert only(mine).value.value == 1
    for viewer in (AnonymousUser(), User(role=Role.RESEARCHER)):
        board = boards.board(mine, viewer)
        assert not board.rows
        assert "rests on answer keys that are not open" in board.notes[0]


def test_of_a_benchmark_that_is_not_public_others_do_not_hear(recipe):
    benchmark, mine = quiz(visibility="private"), recipe()
    answered(mine, benchmark, "m", ["A"] * 40)
    board = boards.board(mine, AnonymousUser())
    assert (board.rows, board.notes) == ([], [])


def test_questions_that_are_drafts_again_count_no_more(recipe):
    benchmark, mine = quiz(), recipe()
    answered(mine, benchmark, "m", ["A"] * 30 + ["B"] * 10)
    assert only(mine).n == 40
    Sample.objects.filter(position__gte=30).update(status="draft")
    assert (only(mine).n, only(mine).value.value, only(mine).coverage) == (30, 1, 1)
    Sample.objects.update(status="draft")
    assert not boards.board(mine, STAFF).rows


def test_a_board_follows_new_answers_and_corrected_keys(recipe):
    benchmark, mine = quiz(), recipe()
    answered(mine, benchmark, "m", ["A"] * 20)
    assert (only(mine).value.value, only(mine).coverage) == (1, 0.5)
    key = Criterion.unguarded.order_by("sample__position").first()
    key.text, key.version = "B", 2
    key.save()
    assert only(mine).value.value == 19 / 20
