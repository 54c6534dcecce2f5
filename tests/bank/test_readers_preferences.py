"""AlpacaEval's annotations, files that models are trained on by preference, and Kaggle's battles.

In the shapes of ``results/*/annotations.json`` and ``model_outputs.json`` of tatsu-lab/alpaca_eval, of the preference
formats that TRL documents, and of the LMSYS competition's ``train.csv``.
"""

import json

import pytest

from annotations.models import Label
from bank.intake import formats
from bank.intake.formats import alpaca_eval, answers, battles, preferences
from bank.intake.imports.sources import inspect
from judging.models import Judgment
from tests.bank.test_formats import ALPACA, DPO, KAGGLE, SAID, read


def rows_of(module, part, path):
    return read(formats.reader(module, part), path)


def test_whole_preferences_of_alpaca_eval_are_winners_and_an_empty_one_a_reply_without_a_verdict(write):
    said = [1, 2.0, 1.5, 0, None]
    path = write("annotations.json", [ALPACA | {"instruction": f"{n}?", "preference": p} for n, p in enumerate(said)])
    assert formats.find("auto", path) is alpaca_eval
    assert inspect(path).parts == ("samples", "responses", "judgments")
    judgments, bad, odd = rows_of(alpaca_eval, "judgments", path)
    assert [(x.choice, x.status, x.judge) for x in judgments] == [
        ("first", "ok", "alpaca_eval_gpt4"),
        ("second", "ok", "alpaca_eval_gpt4"),
        ("tie", "ok", "alpaca_eval_gpt4"),
        ("tie", "ok", "alpaca_eval_gpt4"),
        (None, "parse_failed", "alpaca_eval_gpt4"),
    ]
    assert (bad, odd) == ([], [])
    samples, *_ = rows_of(alpaca_eval, "samples", path)
    assert [(s.instruction, s.level) for s in samples[:2]] == [("0?", "vicuna"), ("1?", "vicuna")]


def test_a_file_with_preferences_in_between_is_one_of_graded_pairs(write):
    said = [1.25, 1, 2, 1.5, 0, None]
    path = write("annotations.json", [ALPACA | {"instruction": f"{n}?", "preference": p} for n, p in enumerate(said)])
    judgments, bad, _ = rows_of(alpaca_eval, "judgments", path)
    assert bad == []
    assert [x.preference for x in judgments] == [0.75, 1, 0, 0.5, 0.5, None]
    assert {x.protocol for x in judgments} == {"pair-graded"}


@pytest.mark.parametrize("preference", [3, -1, 0.5, "first", True, [1]])
def test_a_preference_off_the_scale_is_told(preference, write):
    path = write("annotations.json", [ALPACA | {"preference": preference}])
    assert rows_of(alpaca_eval, "judgments", path)[1][0].startswith("annotations.json, record 0: preference: ")


def test_a_person_of_alpaca_eval_is_an_annotator_by_number(write):
    path = write("annotations.json", [ALPACA | {"annotator_index": 7, "preference": 1}])
    assert [(x.annotator, x.choice) for x in rows_of(alpaca_eval, "labels", path)[0]] == [("7", "first")]


def test_outputs_of_alpaca_eval_are_answers_as_they_are(write):
    path = write("model_outputs.json", [{"dataset": "koala", "instruction": "?", "output": "x", "generator": "m"}])
    assert formats.find("auto", path) is answers
    assert [(s.instruction, s.level) for s in read(answers.samples, path)[0]] == [("?", "koala")]
    assert [(r.model, r.text) for r in read(answers.responses, path)[0]] == [("m", "x")]


@pytest.mark.parametrize(
    "row",
    [
        DPO,
        {"prompt": "?", "chosen": "x", "rejected": "y"},
        {"prompt": SAID[:1], "chosen": SAID[1:], "rejected": [{"role": "assistant", "content": "y"}]},
        {"prompt": "?", **{name: json.dumps(DPO[name]) for name in ("chosen", "rejected")}},
    ],
)
def test_chosen_and_rejected_are_read_as_text_and_as_messages(row, write):
    path = write("dpo.jsonl", [row])
    assert formats.find("auto", path) is preferences
    assert [s.instruction for s in rows_of(preferences, "samples", path)[0]] == ["?"]
    responses, bad, odd = rows_of(preferences, "responses", path)
    assert [(r.model, r.text) for r in responses] == [("chosen", "x"), ("rejected", "y")]
    assert (bad, odd) == ([], [])
    assert [x.choice for x in rows_of(preferences, "labels", path)[0]] == ["first"]


def test_rules_and_earlier_turns_stand_above_the_question(write):
    before = [{"role": "system", "content": "Be short."}, *SAID, {"role": "user", "content": "And?"}]
    row = {"prompt": before, "chosen": [{"role": "assistant", "content": "z"}], "rejected": SAID[1:]}
    (sample,), bad, _ = rows_of(preferences, "samples", write("dpo.jsonl", [row]))
    assert bad == []
    first = "**System**\n\nBe short.\n\n**User**\n\n?"
    assert sample.instruction == f"**Turn 1**\n\n{first}\n\n**Turn 2**\n\nAnd?"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"prompt": {"text": "?"}}, "prompt: is neither text nor a list of messages"),
        ({"chosen": []}, "chosen: is no list of messages"),
        ({"chosen": [{"role": "system", "content": "x"}]}, "chosen: holds nothing that a user says"),
        ({"rejected": [{"role": "user", "content": "!"}, SAID[1]]}, "rejected: answers something else than chosen"),
        ({"rejected": 7}, "response_b: is no text"),
    ],
)
def test_a_row_that_is_no_preference_is_told(change, told, write):
    told = told.replace("response_b", "rejected")
    assert rows_of(preferences, "samples", write("dpo.jsonl", [DPO | change]))[1] == [f"dpo.jsonl, line 1: {told}"]


@pytest.mark.parametrize("format", ["jsonl", "csv"])
def test_our_own_export_of_preferences_comes_back_as_the_labels_it_counts(format, write, manage, tmp_path, twice):
    own = {"prompt": "?", "model_a": "m", "response_a": "-x", "model_b": "n", "response_b": "y", "id": "s1"}
    path = write("own.jsonl", [own | {"winner": "B", "annotator": name} for name in ("ada", "bob")])
    assert twice(path) == [1, 2, 1]
    out = tmp_path / f"preferences.{format}"
    assert manage("export", "preferences", "--benchmark", "b", "--format", format, "--output", out)[0] == 0
    assert formats.find("auto", out) is preferences
    assert [(r.model, r.text) for r in rows_of(preferences, "responses", out)[0]] == [("m", "-x"), ("n", "y")]
    labels, bad, _ = rows_of(preferences, "labels", out)
    assert bad == []
    assert [(x.sample, x.choice, x.annotator, x.comment) for x in labels] == [
        ("s1", "first", "majority", "2 agree, 0 against")
    ]
    assert twice(out) == [1, 2, 1], "the same sample, answers and item"
    assert Label.objects.count() == 3


def test_battles_with_a_column_for_each_winner_are_battles(write):
    rows = [KAGGLE, KAGGLE | {"id": 2, "winner_model_a": 0, "winner_tie": 1, "prompt": '["?", "And?"]'}]
    rows[1] |= {"response_a": '["x", null]', "response_b": '["y", "z"]'}
    path = write("train.csv", rows)
    assert formats.find("auto", path) is battles
    labels, bad, odd = rows_of(battles, "labels", path)
    assert [(x.sample, x.choice, x.annotator) for x in labels] == [("1", "first", "human"), ("2", "tie", "human")]
    assert (bad, odd) == ([], [])
    assert [r.text for r in rows_of(battles, "responses", path)[0]][2:] == [
        "",
        "**Turn 1**\n\ny\n\n**Turn 2**\n\nz",
    ]


@pytest.mark.parametrize("row", [KAGGLE | {"winner_tie": 1}, KAGGLE | {"winner_model_a": 0}])
def test_a_battle_with_no_winner_or_two_is_told(row, write):
    (told,) = rows_of(battles, "labels", write("train.csv", [row]))[1]
    assert told.startswith("train.csv, line 2: winner_tie: of winner_model_a, winner_model_b, winner_tie ")


def test_annotations_of_alpaca_eval_brought_in_twice_change_nothing(write, twice):
    assert twice(write("annotations.json", [ALPACA, ALPACA | {"instruction": "!", "preference": 2}])) == [2, 4, 2]
    assert Judgment.objects.count() == 2
