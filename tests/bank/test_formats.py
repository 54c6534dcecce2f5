"""Formats of the papers: what becomes a record, what is reported, and that each file is known for what it is."""

import base64
import json
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bank.intake import formats
from bank.intake.formats import (
    alpaca_eval,
    alt_test,
    answers,
    battles,
    inspect_log,
    lmms_eval,
    mia_bench,
    mllm_as_a_judge,
    mllm_bench,
    mmbench,
    mt_bench,
    pairs,
    pope,
    preferences,
)
from bank.intake.formats.reading import BadFile, Problem
from bank.intake.imports.sources import inspect
from tests.bank.conftest import picture


def read(reader, path):
    """Records, bad rows and warnings of a file."""
    found = list(reader(path))
    problems = [row for row in found if isinstance(row, Problem)]
    records = [row.data for row in found if not isinstance(row, Problem)]
    return records, [str(p) for p in problems if not p.warning], [str(p) for p in problems if p.warning]


# MLLM-as-a-Judge

COMMON = {"image_path": "image/7.jpg", "original_dataset": "coco", "instruction": "What is in the can?"}
SCORE = {"id": 5, "score_id": 1, **COMMON, "name": "gpt4", "answer": "Cola.", "human": "4"}
PAIR = {"id": 5, "pair_id": 1, **COMMON, "image_path": "7.jpg", "human": "B"}
PAIR |= {"answer1": {"name": "gpt4", "answer": "Cola."}, "answer2": {"name": "qwen", "answer": "Water."}}
NAMES = ("llava", "cogvlm", "gpt4", "gemini")
BATCH = {"id": 1, **COMMON, "human_answer": "CDBA"}
BATCH |= {"answers": [{"name": name, "answer": "Cola." if name == "gpt4" else f"By {name}."} for name in NAMES]}


def test_items_of_one_picture_and_instruction_share_a_sample_whichever_way_the_path_is_written(write):
    write("a/score.jsonl", [SCORE])
    write("a/pair.jsonl", [PAIR])
    folder = write("a/batch.jsonl", [BATCH, BATCH | {"original_dataset": "vqa"}]).parent
    samples, bad, warnings = read(mllm_as_a_judge.samples, folder)
    assert bad == []
    assert [(s.source, s.group, s.images[0].file) for s in samples] == [
        ("coco", "7.jpg", "7.jpg"),
        ("vqa", "7.jpg", "7.jpg"),
    ]
    assert len({s.key for s in samples}) == 2
    assert ["1 stands above with another picture" in warning for warning in warnings] == [True]
    # Alone, each file names the sample by the same key.
    assert read(mllm_as_a_judge.samples, folder / "pair.jsonl")[0][0].key == samples[0].key
    responses, *_ = read(mllm_as_a_judge.responses, folder)
    assert sorted((r.model, r.text) for r in responses if r.sample == samples[0].key) == [
        ("cogvlm", "By cogvlm."),
        ("gemini", "By gemini."),
        ("gpt4", "Cola."),
        ("llava", "By llava."),
        ("qwen", "Water."),
    ]


def test_human_verdicts_speak_in_the_order_of_the_row(write):
    rows = [SCORE, PAIR, PAIR | {"human": "C"}, BATCH]
    labels, bad, _ = read(mllm_as_a_judge.labels, write("all.jsonl", rows))
    assert bad == []
    assert [(x.kind, x.score, x.choice, x.annotator) for x in labels[:3]] == [
        ("score", 4.0, None, "human"),
        ("pair", None, "second", "human"),
        ("pair", None, "tie", "human"),
    ]
    assert [ref.model for ref in labels[1].responses] == ["gpt4", "qwen"]
    assert [[ref.model for ref in group] for group in labels[3].ranking] == [
        ["gpt4"],
        ["gemini"],
        ["cogvlm"],
        ["llava"],
    ]


def test_a_second_answer_of_a_model_to_the_same_instruction_is_a_variant_and_told(write):
    path = write("all.jsonl", [SCORE, SCORE | {"answer": "Beer.", "human": "1"}, SCORE])
    responses, _, warnings = read(mllm_as_a_judge.responses, path)
    first, second = responses
    assert (first.text, first.variant, second.text) == ("Cola.", "", "Beer.")
    assert second.variant
    assert len(warnings) == 1
    assert f"kept as variant {second.variant}" in warnings[0]
    labels, *_ = read(mllm_as_a_judge.labels, path)
    assert [label.responses[0].variant for label in labels] == ["", second.variant, ""]


def result(row, judge, analysis="Because."):
    return row | {"result": {"name": "some-judge", "judge": judge, "analysis": analysis}}


@pytest.mark.parametrize(
    ("row", "said", "column", "value"),
    [
        (SCORE, "3", "score", 3.0),
        (SCORE, 3, "score", 3.0),
        (SCORE, "[[5]]", "score", 5.0),
        (PAIR, "A", "choice", "first"),
        (PAIR, "[[C]]", "choice", "tie"),
        (BATCH, "CDBA", "ranking", ["gpt4", "gemini", "cogvlm", "llava"]),
        (BATCH, "[[C], [D], [B], [A]]", "ranking", ["gpt4", "gemini", "cogvlm", "llava"]),
        (BATCH, "[[C]], [[D]], [[B]], [[A]]", "ranking", ["gpt4", "gemini", "cogvlm", "llava"]),
    ],
)
def test_judges_verdicts_are_read_in_every_released_spelling(write, row, said, column, value):
    (judgment,), bad, warnings = read(mllm_as_a_judge.judgments, write("r.jsonl", [result(row, said)]))
    found = getattr(judgment, column)
    assert ([group[0].model for group in found] if column == "ranking" else found) == value
    assert (judgment.judge, judgment.analysis, bad, warnings) == ("some-judge", "Because.", [], [])


@pytest.mark.parametrize("row", [SCORE, PAIR, BATCH])
@pytest.mark.parametrize("said", ["6", "D", "CDB", "CDBB", "CDBAE", "a", "[[C]] or [[D]]", "unsure", "３"])
def test_a_judges_reply_that_is_no_verdict_is_kept_as_failed(write, row, said):
    (judgment,), bad, warnings = read(mllm_as_a_judge.judgments, write("r.jsonl", [result(row, said)]))
    assert (judgment.status, judgment.decided_by, bad) == ("parse_failed", set(), [])
    assert "line 1: result.judge: " in warnings[0]


def test_an_empty_verdict_is_taken_from_the_analysis_and_a_contradiction_is_told(write):
    rows = [
        result(BATCH, "", "So: [[A], [B], [C], [D]]. No, wait: [[C], [D], [B], [A]]"),
        result(PAIR, "A", "The second is better. [[B]]"),
        result(SCORE, None, None),
    ]
    judgments, bad, warnings = read(mllm_as_a_judge.judgments, write("r.jsonl", rows))
    assert bad == []
    assert [group[0].model for group in judgments[0].ranking] == ["gpt4", "gemini", "cogvlm", "llava"]
    assert (judgments[1].choice, judgments[2].status) == ("first", "empty")
    assert ["is empty; the verdict is taken" in warnings[0], "ends with [[B]]" in warnings[1]] == [True, True]


def test_white_space_without_end_costs_no_time(write):
    analysis = "[[A]]" + " " * 200_000 + "[ [B] ]" + "\n" * 200_000 + "x" + "[" * 200_000
    (judgment,), *_ = read(mllm_as_a_judge.judgments, write("r.jsonl", [result(PAIR, "", analysis)]))
    assert judgment.choice == "second"
    rows = [QUESTION_OF | {"criteria": "1. A" + "\n" * 200_000 + "2. B"}]
    assert [c.text for c in read(mllm_bench.samples, write("q.json", rows))[0][0].criteria] == ["A", "B"]


@settings(deadline=None)
@given(st.permutations("ABCD"), st.sampled_from(["{}", "[[{}]]", "[[{}]"]))
def test_every_full_ranking_is_read_and_nothing_else(order, style):
    letters = "".join(order)
    spelled = {"{}": letters, "[[{}]]": ", ".join(f"[[{x}]]" for x in order)}
    text = spelled.get(style) or f"[{', '.join(f'[{x}]' for x in order)}]"
    assert mllm_as_a_judge.verdict_of("batch", text, 4) == {"ranking": ["ABCD".index(x) for x in letters]}
    assert mllm_as_a_judge.verdict_of("batch", text, 5) is None


@settings(deadline=None)
@given(st.text(max_size=12))
def test_a_verdict_is_one_of_its_scale_or_none(text):
    score = mllm_as_a_judge.verdict_of("score", text, 1)
    assert score is None or score["score"] in (1, 2, 3, 4, 5)
    pair = mllm_as_a_judge.verdict_of("pair", text, 2)
    assert pair is None or pair["choice"] in ("first", "second", "tie")
    batch = mllm_as_a_judge.verdict_of("batch", text, 3)
    assert batch is None or tuple(batch["ranking"]) in set(permutations(range(3)))


@pytest.mark.parametrize(
    ("row", "field"),
    [
        (SCORE | {"human": "7"}, "human: '7' is no verdict on a score (1 to 5)"),
        (PAIR | {"human": "D"}, "human: 'D' is no verdict"),
        (BATCH | {"human_answer": "CDB"}, "human_answer: 'CDB'"),
        (BATCH | {"answers": BATCH["answers"][:2]}, "answers"),
        (PAIR | {"answer1": {"name": "gpt4"}}, "answer1.answer"),
        ({k: v for k, v in SCORE.items() if k != "instruction"}, "instruction: is missing"),
        (SCORE | {"answer": 7}, "answer"),
        (PAIR | {"answer2": PAIR["answer1"]}, "the same response twice"),
    ],
)
def test_a_bad_item_is_reported_with_line_and_field(write, row, field):
    labels, bad, _ = read(mllm_as_a_judge.labels, write("all.jsonl", [SCORE, row]))
    assert len(labels) == 1
    assert len(bad) == 1
    assert "all.jsonl, line 2: " in bad[0]
    assert field in bad[0]


# MIA-Bench

MIA = {
    "image": "http://example.org/a/1.jpg",
    "instruction": "Describe the cat in two sentences.",
    "type": "basic",
    "num_of_component": 2,
    "components": ["describe the cat", "in two sentences"],
    "component_weight": [6, 4],
    "component_type": ["describe", "length_limit"],
}


def test_components_become_public_criteria_with_weight_and_category(write):
    (sample,), bad, warnings = read(mia_bench.samples, write("m.json", [MIA]))
    assert (bad, warnings) == ([], [])
    assert (sample.key, sample.level, sample.answer) == ("0", "basic", "")
    assert [(c.kind, c.text, c.weight, c.category, c.shown_to) for c in sample.criteria] == [
        ("component", "describe the cat", 6, "describe", "public"),
        ("component", "in two sentences", 4, "length_limit", "public"),
    ]
    image = sample.images[0]
    assert (image.url, image.file, image.required) == ("http://example.org/a/1.jpg", "1.jpg", False)


@pytest.mark.check("C8")
def test_oddities_of_the_instructions_are_told_and_kept(write):
    other = {"image": "http://example.org/2.jpg", "instruction": "Other."}
    rows = [
        MIA,
        MIA | {"image": "http://example.org/b/1.jpg?s=9"},
        MIA | other | {"component_weight": [4, 4]},
        MIA | other | {"instruction": "Third.", "component_weight": [5, 5.01], "component_type": ["math", "math"]},
        MIA | {"image": "example.org/4.jpg", "instruction": "Fourth.", "num_of_component": 3},
    ]
    samples, bad, warnings = read(mia_bench.samples, write("m.json", rows))
    assert bad == []
    assert [[c.weight for c in sample.criteria] for sample in samples[2:4]] == [[4, 4], [5, 5.01]]
    assert [w.split(", ", 1)[1] for w in warnings] == [
        "record 1: instruction: is the same as that of sample '0'",
        "record 2: component_weight: 4, 4 sum to 8, not 10; kept as they are",
        "record 3: component_weight: 5, 5.01 sum to 10.01, not 10; kept as they are",
        "record 3: component_type: 'math' stands more than once; kept as it is",
        "record 4: image: the address does not begin with http:// or https://; kept as it is",
        "record 4: num_of_component: says 3, there are 2",
    ]
    # Two addresses that end alike do not say which picture a file of that name is.
    assert [sample.images[0].file for sample in samples] == ["", "", "", "", "4.jpg"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"component_weight": [6]}, "component_weight: has 1 entries for 2 components"),
        ({"component_weight": [6, "10,0"]}, "component_weight.1"),
        ({"component_weight": [6, -4]}, "weight"),
        ({"component_weight": [6, True]}, "component_weight.1"),
        ({"components": ["a", " "]}, "criteria.1.text: is empty"),
        ({"component_type": None}, "component_type"),
        ({"instruction": ""}, "instruction: is empty"),
        ({"image": 7}, "image"),
    ],
)
def test_a_bad_instruction_is_reported_with_record_and_field(write, change, field):
    samples, bad, _ = read(mia_bench.samples, write("m.json", [MIA | change, MIA]))
    assert len(samples) == 1
    assert "m.json, record 0: " in bad[0]
    assert field in bad[0]


def test_answers_name_their_sample_by_the_address_and_error_is_no_answer(write):
    rows = [
        {"question_id": "http://example.org/a/1.jpg", "prompt": "?", "text": "A cat."},
        {"url": "http://example.org/2.jpg", "text": "error", "model": "m"},
        {"question_id": 7, "text": "A dog."},
    ]
    responses, bad, _ = read(mia_bench.responses, write("r.jsonl", rows))
    assert [(r.image_url, r.text, r.model, r.known_status) for r in responses] == [
        ("http://example.org/a/1.jpg", "A cat.", "", "ok"),
        ("http://example.org/2.jpg", "", "m", "error"),
    ]
    assert bad == ["r.jsonl, line 3: question_id: is no address of a picture"]


# MMBench

PNG = base64.b64encode(picture()).decode()
QUESTION = {"index": 3, "question": "Which?", "hint": "Source left.", "A": "one", "B": "two", "C": "three"}
QUESTION |= {
    "answer": "B",
    "category": "image_emotion",
    "l2-category": "coarse_perception",
    "image": PNG,
    "split": "dev",
}


def turned(row, number, shift, **change):
    texts = [row[letter] for letter in "ABC"]
    shown = dict(zip("ABC", texts[shift:] + texts[:shift], strict=True))
    answer = "ABC"[("ABC".index(row["answer"]) - shift) % 3]
    return row | shown | {"index": row["index"] + number * 1_000_000, "answer": answer, "image": row["index"]} | change


def test_a_table_becomes_questions_with_pictures_options_and_hidden_answers(write):
    rows = [QUESTION, QUESTION | {"index": 4, "answer": "", "D": "four", "image": "3", "category": "new_kind"}]
    samples, bad, warnings = read(mmbench.samples, write("MMBench_DEV_EN.tsv", rows))
    assert (bad, warnings) == ([], [])
    first, second = samples
    assert (first.key, first.answer, first.language, first.split) == ("3", "B", "en", "dev")
    assert first.options == {"A": "one", "B": "two", "C": "three"}
    assert first.capability == ["Perception", "Coarse Perception", "Image Emotion"]
    assert first.images[0].data == second.images[0].data == base64.b64decode(PNG)
    assert (second.answer, len(second.options), second.capability) == ("", 4, ["coarse_perception", "new_kind"])


def test_circular_copies_are_no_samples_but_say_how_they_turn_the_options(write):
    # Copy 1 turns the options by two places, copy 2 by one: what counts is what the rows say.
    rows = [QUESTION, turned(QUESTION, 1, 2), turned(QUESTION, 2, 1)]
    (sample,), bad, warnings = read(mmbench.samples, write("t.tsv", rows))
    assert (bad, warnings) == ([], [])
    assert sample.metadata == {"rotations": {"1": 2, "2": 1}}


def test_a_copy_that_is_no_rotation_or_has_no_question_is_reported(write):
    rows = [
        QUESTION,
        turned(QUESTION, 1, 1, A="other"),
        turned(QUESTION, 2, 2, answer="B"),
        turned(QUESTION | {"index": 9}, 1, 1),
    ]
    samples, bad, warnings = read(mmbench.samples, write("t.tsv", rows))
    assert len(samples) == 1
    assert bad == [
        "t.tsv, line 3: A: the options are no rotation of those of question 3",
        "t.tsv, line 5: index: is circular copy 1 of question 9, which the file lacks",
    ]
    assert warnings == [
        "t.tsv, line 4: answer: 'B' is another option than the answer 'B' of question 3; that one counts"
    ]


@settings(deadline=None)
@given(st.lists(st.text(max_size=3), min_size=2, max_size=5, unique=True), st.integers(0, 4))
def test_a_rotation_is_found_by_its_options(options, shift):
    shift %= len(options)
    shown = [options[(place + shift) % len(options)] for place in range(len(options))]
    assert mmbench.shift_of(options, shown, 1) == shift


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"index": "x"}, "index: 'x' is not a whole number"),
        ({"answer": "D"}, "answer: is not among the options A, B, C"),
        ({"B": ""}, "C: there is an option C but none B"),
        ({"B": "", "C": ""}, "options: a choice is among 2 to 26 options, not 1"),
        ({"A": "", "B": "", "C": ""}, "A: there are no options"),
        ({"image": "8"}, "image: '8' is neither base64 nor the index"),
        ({"image": "!" * 80}, "image: is not base64"),
        ({"question": ""}, "instruction: is empty"),
    ],
)
def test_a_bad_question_is_reported_with_line_and_field(write, change, field):
    samples, bad, _ = read(mmbench.samples, write("t.tsv", [QUESTION, QUESTION | {"index": 4} | change]))
    assert len(samples) == 1
    assert len(bad) == 1
    assert f"t.tsv, line 3: {field}" in bad[0]


def test_predictions_are_told_apart_by_the_rotation_they_answer(write):
    rows = [
        {"index": 3, "prediction": "B"},
        {"index": 2_000_003, "prediction": ""},
        {"index": "1.5", "prediction": "A"},
    ]
    responses, bad, _ = read(mmbench.responses, write("m.csv", rows))
    assert [(r.sample, r.rotation, r.text, r.known_status) for r in responses] == [
        ("3", 0, "B", "ok"),
        ("3", 2, "", "empty"),
    ]
    assert bad == ["m.csv, line 4: index: '1.5' is not a whole number"]


PARSED = {"part": "MMBench", "lang": "en", "category": "Logic Reasoning: Future Prediction", "image": "s/1.jpg"}
PARSED |= {"question": "Which?", "hint": None, "options": {"A": "one", "B": "two"}, "answer": "A"}


def test_parsed_samples_have_the_same_shape(write):
    rows = [PARSED, PARSED | {"lang": "zh"}, PARSED | {"question": "And?"}, PARSED | {"answer": "C"}]
    samples, bad, _ = read(mmbench.samples, write("samples_parsed.json", rows))
    assert [s.key for s in samples] == ["MMBench-en-1", "MMBench-zh-1", "MMBench-en-1-2"]
    assert samples[0].capability == ["Reasoning", "Logic Reasoning", "Future Prediction"]
    assert bad == ["samples_parsed.json, record 3: answer: is not among the options A, B"]


# POPE

POPE = [
    {"question_id": 1, "image": "x.jpg", "text": "Is there a boat in the image?", "label": "yes"},
    {"question_id": 2, "image": "x.jpg", "text": "Is there a car in the image?", "label": "no"},
]
LINES = "\n".join(json.dumps(row) for row in POPE)


def test_ids_that_repeat_across_the_files_are_told_apart_by_subset(write):
    folder = write("p/coco_pope_popular.json", LINES).parent
    write("p/coco_pope_random.json", f"[{LINES}]\n")
    samples, bad, warnings = read(pope.samples, folder)
    assert [(s.key, s.answer, s.group, s.level) for s in samples] == [
        ("random-1", "yes", "x.jpg", "random"),
        ("random-2", "no", "x.jpg", "random"),
        ("popular-1", "yes", "x.jpg", "popular"),
        ("popular-2", "no", "x.jpg", "popular"),
    ]
    assert bad == []
    assert len(warnings) == 1
    assert "coco_pope_random.json, line 2: [ before the first line and ] after this one" in warnings[0]


@pytest.mark.parametrize("text", [LINES, json.dumps(POPE), json.dumps(POPE, indent=1), f"[{LINES}]"])
def test_questions_are_read_from_lines_and_arrays_alike(write, text):
    assert [s.answer for s in read(pope.samples, write("coco_pope_random.json", text))[0]] == ["yes", "no"]


def test_bad_questions_are_reported_with_line_and_field(write):
    rows = [POPE[0], POPE[1] | {"label": "maybe"}, POPE[1] | {"text": 7}]
    text = "[" + "\n".join(json.dumps(row) for row in rows) + '\n{"question_id": 3,'
    samples, bad, _ = read(pope.samples, write("random.json", text))
    assert len(samples) == 1
    assert "random.json, line 2: label" in bad[0]
    assert "random.json, line 3: text" in bad[1]
    assert "random.json, line 4: is not JSON" in bad[2]
    assert "never closed" in bad[3]
    with pytest.raises(BadFile, match="says none of random, popular, adversarial"):
        list(pope.samples(write("questions.json", LINES)))


def test_answers_are_matched_by_id_or_by_line(write):
    by_id = write("m_random.jsonl", [{"question_id": 2, "text": "No.", "model_id": "m"}])
    assert [(r.sample, r.model, r.text) for r in read(pope.responses, by_id)[0]] == [("random-2", "m", "No.")]
    by_line = write("m_popular.jsonl", [{"question": "?", "answer": "yes"}, {"question": "?", "answer": "no"}])
    responses, _, warnings = read(pope.responses, by_line)
    assert [r.sample for r in responses] == ["popular-1", "popular-2"]
    assert "by the number of their line" in warnings[0]
    rows = [{"question_id": 1, "subset": subset, "answer": "yes"} for subset in ("random", "popular", "rare")]
    responses, bad, _ = read(pope.responses, write("all.jsonl", [*rows, {"question_id": 1, "text": "no"}]))
    assert [r.sample for r in responses] == ["random-1", "popular-1"]
    assert bad == [
        "all.jsonl, line 3: subset: is none of random, popular, adversarial",
        "all.jsonl, line 4: subset: is missing",
    ]


# alt-test

HUMANS = {"student_1": {"P_1__Color": 3, "P_1__Blue": 0}, "student_2": {"P_1__Color": 6}}
JUDGES = {"gpt-4o": {"P_1__Color": 2, "P_2__Blue": 1}}


def test_a_picture_is_scored_by_feature_without_a_response(write):
    folder = write("alt/human_annotations.json", HUMANS).parent
    write("alt/llm_annotations.json", JUDGES)
    write("alt/prompts.json", {"P_1": {"str_prompt": "Features:\n* Color: number of colors (scale 1-6)\n"}})
    samples, bad, _ = read(alt_test.samples, folder)
    assert bad == []
    assert [(s.key, s.source, s.group) for s in samples] == [
        ("P_1__Color", "Color", "P_1"),
        ("P_1__Blue", "Blue", "P_1"),
        ("P_2__Blue", "Blue", "P_2"),
    ]
    assert samples[0].instruction == "Score this feature of the picture. Color: number of colors (scale 1-6)"
    labels, *_ = read(alt_test.labels, folder)
    assert [(x.annotator, x.sample, x.kind, x.responses, x.score) for x in labels] == [
        ("student_1", "P_1__Color", "score", [], 3.0),
        ("student_1", "P_1__Blue", "score", [], 0.0),
        ("student_2", "P_1__Color", "score", [], 6.0),
    ]
    judgments, *_ = read(alt_test.judgments, folder)
    assert [(x.judge, x.sample, x.score) for x in judgments] == [
        ("gpt-4o", "P_1__Color", 2.0),
        ("gpt-4o", "P_2__Blue", 1.0),
    ]
    with pytest.raises(BadFile, match="bring it in as labels"):
        list(alt_test.judgments(folder / "human_annotations.json"))


def test_bad_scores_are_reported_with_annotator_and_item(write):
    table = {"a": {"P__X": 7, "P__Y": None, "P__Z": True, "PX": 1, "P__Q": -1, "P__S": "3", "P__T": 2}}
    labels, bad, _ = read(alt_test.labels, write("h.json", table))
    assert [label.score for label in labels] == [2.0]
    assert bad == [
        "h.json, record 0: a.P__X: 7 is not on the scale of 0 to 6",
        "h.json, record 1: a.P__Y: null is not a number",
        "h.json, record 2: a.P__Z: true is not a number",
        "h.json, record 3: a.PX: is not <picture>__<feature>",
        "h.json, record 4: a.P__Q: -1 is not on the scale of 0 to 6",
        'h.json, record 5: a.P__S: "3" is not a number',
    ]
    for text in ("[]", '{"a": 1}', "{"):
        with pytest.raises(BadFile):
            list(alt_test.labels(write("h.json", text)))


# MLLM-Bench

QUESTION_OF = {"id": 7, "image_path": "./data/images/7.jpg", "question": "What is it?", "level": "Understanding"}
QUESTION_OF |= {"capability": "OCR", "question_type": "close-ended", "url": "http://x.org/7", "criteria": "1. A\n2. B"}


def test_oddities_of_mllm_bench_are_told(write):
    rows = [
        QUESTION_OF,
        QUESTION_OF | {"id": 8, "criteria": "A\n2. B\n more", "image_path": "./data/images/8.png"},
        QUESTION_OF | {"id": 9, "question": "And?", "url": "", "question_type": "http://x.org/9", "criteria": ""},
    ]
    write("images_manifest.json", [{"id": 7, "image_path": "x", "file": None, "orig_format": "PNG"}])
    samples, bad, warnings = read(mllm_bench.samples, write("questions_with_criteria.json", rows))
    assert bad == []
    assert [[c.text for c in s.criteria] for s in samples] == [["A", "B"], ["A", "B\n more"], []]
    assert [(s.question_type, s.images[0].url, s.images[0].required) for s in samples] == [
        ("closed-ended", "http://x.org/7", False),
        ("closed-ended", "http://x.org/7", False),
        ("", "http://x.org/9", False),
    ]
    assert [warning.split("json, ")[1] for warning in warnings] == [
        "record 0: image_path: sample 7: './data/images/7.jpg' was released as PNG, whatever its ending says",
        "record 1: criteria: sample 8: the first has no number",
        "record 1: question: sample 8: is the same as that of sample 7",
        "record 2: question_type: sample 9: holds an address; "
        "it was read as the url and the question type is left open",
        "record 2: criteria: sample 9: there are none",
    ]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"id": None}, "id"),
        ({"question": 7}, "question"),
        ({"question_type": 7}, "question_type"),
        ({"criteria": []}, "criteria"),
    ],
)
def test_a_bad_record_of_mllm_bench_is_reported_with_its_field(write, change, field):
    samples, bad, _ = read(mllm_bench.samples, write("q.json", [QUESTION_OF | change, QUESTION_OF]))
    assert len(samples) == 1
    assert all(f"q.json, record 0: {field}" in problem for problem in bad)


# Recognition
PAIRS = {"prompt": "?", "model_a": "m", "response_a": "x", "model_b": "n", "response_b": "y", "winner": "tie", "id": 1}
ANSWERS = {"prompt": "Name a colour.", "model": "m1", "response": "Red."}
BATTLE = {"question_id": "q", "model_a": "m", "model_b": "n", "winner": "tie", "judge": "arena_user_1", "turn": 1}
BATTLE |= {"tstamp": 1.5, "language": "English"} | {
    f"conversation_{side}": [{"role": "user", "content": "?"}, {"role": "assistant", "content": side}] for side in "ab"
}
KAGGLE = {"id": 1, "prompt": '["?"]', "model_a": "m", "response_a": '["x"]', "model_b": "n", "response_b": '["y"]'}
KAGGLE |= {"winner_model_a": 1, "winner_model_b": 0, "winner_tie": 0}
ALPACA = {"instruction": "?", "output_1": "x", "generator_1": "m", "output_2": "y", "generator_2": "n"}
ALPACA |= {"annotator": "alpaca_eval_gpt4", "preference": 1.25, "dataset": "vicuna", "raw_completion": "m"}
SAID = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "x"}]
DPO = {"prompt": "?", "chosen": SAID, "rejected": [SAID[0], {"role": "assistant", "content": "y"}]}
LMMS = {"doc_id": 0, "doc": {"question": "?"}, "target": "red", "arguments": {"0": "What colour?"}, "exact_match": 0.0}
LMMS |= {"resps": [["blue"]], "filtered_resps": ["blue"], "doc_hash": "ab12"}
INSPECT = {"version": 2, "status": "success", "eval": {"task": "popularity", "model": "openai/gpt-4o"}}
INSPECT |= {
    "samples": [
        {"id": 1, "epoch": 1, "input": "Would you?", "target": "Yes", "output": {"completion": "Yes"}}
        | {"scores": {"match": {"value": "C", "explanation": "It says so."}}}
    ]
}
MT_QUESTION = {"question_id": 81, "category": "writing", "turns": ["?", "Again?"]}
MT_ANSWER = {"question_id": 81, "model_id": "m", "choices": [{"index": 0, "turns": ["x", "y"]}], "tstamp": 1.5}
MT_PAIR = {"question_id": 81, "model_1": "m", "model_2": "n", "g1_winner": "tie", "g2_winner": "tie", "turn": 1}
MT_PAIR |= {"judge": ["gpt-4", "pair-v2"], "g1_judgment": "[[C]]", "g2_judgment": "[[C]]"}
ARENA_HARD = {"uid": "a", "category": "c", "judge": "j", "model": "m", "baseline": "n"}
ARENA_HARD |= {"games": [{"score": "A>B", "judgment": {"answer": "[[A>B]]"}, "prompt": []}, None]}

FILES = {
    "mllm-as-a-judge": [
        ("s.jsonl", [SCORE]),
        ("p.jsonl", [PAIR]),
        ("b.json", [BATCH]),
        ("r.jsonl", [result(PAIR, "A")]),
    ],
    "mia-bench": [("m.json", [MIA]), ("r.jsonl", [{"question_id": "http://x.org/1.jpg", "prompt": "?", "text": "t"}])],
    "mmbench": [("q.tsv", [QUESTION]), ("p.json", [PARSED]), ("r.csv", [{"index": 1, "prediction": "A"}])],
    "pope": [
        ("coco_pope_random.json", f"[{LINES}]"),
        ("q.jsonl", LINES),
        ("m_random.jsonl", [{"question_id": 1, "text": "t"}]),
    ],
    "alt-test": [("h.json", HUMANS), ("pretty.json", json.dumps(JUDGES, indent=4))],
    "mllm-bench": [
        ("q.json", [{"id": 1, "image_path": "1.jpg", "question": "?", "capability": "c", "criteria": "1. x"}]),
        ("a.jsonl", [{"id": 1, "model": "m", "answer": "t"}]),
        ("anchor.json", [{"unique_idx": 1, "gen_model_id": "m", "answer": "t"}]),
    ],
    "llmfao": [
        (
            "c.csv",
            [{"id": 1, "prompt": 1, "model_x": 1, "model_y": 2, "worker": 1, "winner": "tie", "left": 1, "right": 2}],
        ),
        ("prompts.jsonl", [{"id": 1, "text": "t", "type": "x", "slug": "s"}]),
    ],
    "pairs": [("own.csv", [PAIRS]), ("own.json", [PAIRS])],
    "lmarena": [("battles.jsonl", [BATTLE]), ("train.csv", [KAGGLE])],
    "alpaca-eval": [("annotations.json", [ALPACA])],
    "preferences": [("dpo.jsonl", [DPO]), ("dpo.json", [DPO | {"chosen_model": "m", "rejected_model": "n"}])],
    "lmms-eval": [("20251012_101010_samples_vqa.jsonl", [LMMS])],
    "inspect": [("log.json", INSPECT)],
    "mt-bench": [
        ("question.jsonl", [MT_QUESTION]),
        ("m.jsonl", [MT_ANSWER]),
        ("gpt-4_pair.jsonl", [MT_PAIR]),
        ("m1.jsonl", [ARENA_HARD]),
    ],
    "answers": [("own.csv", [ANSWERS]), ("own.json", [ANSWERS | {"score": 4, "judge": "j"}])],
    "generic": [
        ("s.jsonl", [{"key": "a", "instruction": "?", "answer": "A", "options": {"A": "1", "B": "2"}}]),
        ("r.csv", [{"sample": "a", "model": "m", "text": "t"}]),
        ("l.jsonl", [{"kind": "pair", "sample": "a", "responses": ["m", "n"], "annotator": "x", "choice": "tie"}]),
    ],
}


@pytest.mark.parametrize("name", FILES)
def test_every_file_is_known_for_what_it_is_and_by_one_format_alone(name, write):
    for number, (file, content) in enumerate(FILES[name]):
        path = write(f"{number}/{file}", content)
        assert [module.NAME for module in formats.MODULES.values() if module.recognises(path)] == [name], file
        if not (name == "pope" and file != "coco_pope_random.json") and file not in ("a.jsonl", "prompts.jsonl"):
            folder = [module.NAME for module in formats.MODULES.values() if module.recognises(path.parent)]
            assert set(folder) <= {name}, file


@pytest.mark.parametrize(
    "content", ["", "text\n", "[", "{", '{"a": {"b": 1}}', "[1, 2]", "index\n", "\x00\x01", "[[[[", '"x"']
)
def test_what_is_no_format_is_recognised_by_none(content, write):
    path = write("x.json", content)
    assert [module.NAME for module in formats.MODULES.values() if module.recognises(path)] == []
    assert [module.NAME for module in formats.MODULES.values() if module.recognises(path.parent)] == []
    with pytest.raises(BadFile, match="is in no format known here"):
        formats.find("auto", path)


def test_of_each_file_only_the_parts_that_it_holds_are_taken(write):
    expected = {
        ("mllm-as-a-judge", "s.jsonl"): ("samples", "responses", "labels"),
        ("mllm-as-a-judge", "r.jsonl"): ("samples", "responses", "judgments", "labels"),
        ("mia-bench", "m.json"): ("samples",),
        ("mia-bench", "r.jsonl"): ("responses",),
        ("mmbench", "q.tsv"): ("samples",),
        ("mmbench", "r.csv"): ("responses",),
        ("pope", "coco_pope_random.json"): ("samples",),
        ("pope", "m_random.jsonl"): ("responses",),
        ("alt-test", "h.json"): ("labels",),
        ("mllm-bench", "q.json"): ("samples",),
        ("mllm-bench", "a.jsonl"): ("responses",),
        ("llmfao", "c.csv"): ("labels",),
        ("llmfao", "prompts.jsonl"): ("samples",),
        ("lmarena", "battles.jsonl"): ("samples", "responses", "labels"),
        ("mt-bench", "question.jsonl"): ("samples",),
        ("mt-bench", "m.jsonl"): ("responses",),
        ("mt-bench", "gpt-4_pair.jsonl"): ("judgments",),
    }
    found = {}
    for name, files in FILES.items():
        for file, content in files:
            if (name, file) in expected:
                found[(name, file)] = inspect(write(f"{name}/{file}/{file}", content)).parts
    assert found == expected


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
SPOILT = ({"output": {"choices": [{"message": SAID[1]}]}}, {"input": SAID[:1], "choices": ["x"], "attachments": {}})
WHOLE = [(mllm_as_a_judge, "x.jsonl", row) for row in (SCORE, result(PAIR, "A"), BATCH)]
WHOLE += [
    (mia_bench, "x.json", MIA),
    (mmbench, "x.json", PARSED),
    (mmbench, "x.jsonl", QUESTION),
    (pope, "random.jsonl", POPE[0]),
    (pairs, "x.jsonl", PAIRS | {"image": "a.png", "annotator": "x"}),
    (battles, "x.jsonl", BATTLE),
    (battles, "x.jsonl", KAGGLE),
    (alpaca_eval, "x.json", ALPACA),
    (lmms_eval, "samples_x.jsonl", LMMS | {"model": "m"}),
    (inspect_log, "x.jsonl", INSPECT),
    *((inspect_log, "x.jsonl", INSPECT | {"samples": [INSPECT["samples"][0] | change]}) for change in SPOILT),
    (preferences, "x.jsonl", DPO),
    (preferences, "x.jsonl", DPO | {"prompt": SAID[:1], "chosen": SAID[1:], "rejected": SAID[1:]}),
    *((mt_bench, "x.jsonl", row) for row in (MT_QUESTION, MT_ANSWER, MT_PAIR, ARENA_HARD)),
    (answers, "x.jsonl", ANSWERS | {"image": "a.png", "annotator": "x", "score": 3}),
]


@pytest.mark.parametrize(("module", "name", "row"), WHOLE)
def test_a_spoilt_field_gives_a_record_or_a_reason_and_never_an_exception(module, name, row, tmp_path):
    path = tmp_path / name

    @settings(deadline=None, max_examples=25)
    @given(st.sampled_from(sorted(row)), JUNK)
    def spoil(field, junk):
        spoilt = row | {field: junk}
        path.write_text(json.dumps(spoilt if name.endswith("l") else [spoilt]))
        for what in ("samples", "responses", "labels", "judgments"):
            if formats.has(module, what):
                try:
                    found = list(formats.reader(module, what)(path))
                except BadFile as error:
                    found = [error.problem]
                assert all(problem.reason for problem in found if isinstance(problem, Problem))

    spoil()
