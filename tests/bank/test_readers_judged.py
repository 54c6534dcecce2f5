"""Folders of MT-Bench, Arena-Hard and WildVision-Bench, in the shape that FastChat's ``llm_judge``, arena-hard-auto and
WildVision-Bench write them: what becomes a record, and what is told by row.
"""

import zipfile

import pytest

from bank.intake import formats
from bank.intake.formats import mt_bench
from bank.intake.imports.sources import inspect
from judging.models import Judgment
from tests.bank.test_formats import read

QUESTION = {"question_id": 81, "category": "writing", "turns": ["Write a line.", "Now in one word."]}


def answer(model, *turns, key=81):
    choices = [{"index": 0, "turns": list(turns)}]
    return {"question_id": key, "answer_id": "x", "model_id": model, "choices": choices, "tstamp": 1686286924.8}


PAIR = {"question_id": 81, "model_1": "m1", "model_2": "m2", "g1_winner": "model_1", "g2_winner": "tie"}
PAIR |= {"judge": ["gpt-4", "pair-v2"], "g1_judgment": "Good. [[A]]", "g2_judgment": "[[C]]", "turn": 1}
SINGLE = {"question_id": 81, "model": "m1", "judge": ["gpt-4", "single-v1"], "judgment": "Rating: [[9]]", "score": 9}
SINGLE |= {"user_prompt": "...", "turn": 2, "tstamp": 1686286924.8}
# Arena-Hard 2
ASKED = {"uid": "2edb", "category": "hard_prompt", "subcategory": "coding", "prompt": "Write zig."}
JUDGED = {"uid": "2edb", "category": "hard_prompt", "judge": "gpt-4.1", "model": "m1", "baseline": "o3"}
GAMES = [
    {"score": "A>>B", "judgment": {"answer": "First. [[A>>B]]"}, "prompt": [{"role": "user", "content": "..."}]},
    {"score": "B>A", "judgment": {"answer": "Again. [[B>A]]"}, "prompt": []},
]
JUDGED |= {"games": GAMES}


def messages(model, text):
    said = [{"role": "user", "content": "Write zig."}, {"role": "assistant", "content": {"answer": text}}]
    return {"uid": "2edb", "ans_id": "y", "model": model, "messages": said, "tstamp": 1.5, "metadata": {"token_len": 3}}


# WildVision-Bench
SEEN = {"question_id": "2db1", "instruction": "What is this?", "language": "English", "token_len": 3}
FOLDER = "w/model_judgements/judge_gpt-4o_reference_sonnet"
WILD = {"question_id": "2db1", "model": "aria", "judge": "gpt-4o"}
WILD |= {"games": [{"user_prompt": [{"type": "text", "text": "..."}], "judgement": "[[B>A]]", "score": "B>A"}]}


@pytest.fixture
def mt(write):
    write("mt/model_answer/m1.jsonl", [answer("m1", "A line.", "Line.")])
    write("mt/model_answer/m2.jsonl", [answer("m2", "Lines.", "")])
    write("mt/reference_answer/gpt-4.jsonl", [answer("gpt-4", "Reference.", "R.")])
    write("mt/model_judgment/gpt-4_single.jsonl", [SINGLE])
    write("mt/model_judgment/gpt-4_pair.jsonl", [PAIR])
    return write("mt/question.jsonl", [QUESTION | {"reference": ["One line"]}]).parent


def test_a_folder_of_mt_bench_brings_a_sample_a_turn_with_the_turns_before_it_above(mt):
    assert formats.find("auto", mt) is mt_bench
    assert inspect(mt).parts == ("samples", "responses", "judgments")
    samples, bad, odd = read(mt_bench.samples, mt)
    both = "**Turn 1**\n\nWrite a line.\n\n**Turn 2**\n\nNow in one word."
    assert [(s.key, s.instruction, s.level) for s in samples] == [
        ("81", "Write a line.", "writing"),
        ("81-2", both, "writing"),
    ]
    assert [[c.text for c in s.criteria] for s in samples] == [["One line"], []]
    assert (bad, len(odd)) == ([], 1), "references are not read, which is told"
    responses, bad, odd = read(mt_bench.responses, mt)
    assert [(r.sample, r.model, r.text) for r in responses] == [
        ("81", "m1", "A line."),
        ("81-2", "m1", "**Turn 1**\n\nA line.\n\n**Turn 2**\n\nLine."),
        ("81", "m2", "Lines."),
        ("81-2", "m2", ""),
    ], "the reference is no answer of a model on trial"
    assert bad == []
    assert odd == ["m2.jsonl, line 1: choices: is empty; kept as an empty answer"]


def test_files_of_another_kind_and_references_in_the_folder_are_named_and_passed_over(mt, write):
    write("mt/bootstrap.jsonl", [{"rank": 1}])
    samples, bad, odd = read(mt_bench.samples, mt)
    assert (len(samples), bad) == (2, [])
    told = "these files are none of questions, answers and verdicts, and are not read: bootstrap.jsonl, gpt-4.jsonl"
    assert odd == [f"mt: {told}"]


def test_two_games_are_two_judgments_with_the_answers_in_both_orders(mt):
    judgments, bad, odd = read(mt_bench.judgments, mt)
    assert (bad, odd) == ([], [])
    pairs = [x for x in judgments if x.kind == "pair"]
    assert [([ref.model for ref in x.order], x.choice, x.analysis) for x in pairs] == [
        (["m1", "m2"], "first", "Good. [[A]]"),
        (["m2", "m1"], "tie", "[[C]]"),
    ]
    assert [(x.sample, x.score, x.judge) for x in judgments if x.kind == "score"] == [("81-2", 9.0, "gpt-4")]


def test_a_reply_without_a_verdict_and_a_failed_call_have_their_status_and_no_verdict(write):
    rows = [PAIR | {"g1_winner": "error", "g2_winner": "error", "g2_judgment": "$ERROR$"}]
    rows += [SINGLE | {"score": -1}, JUDGED | {"games": [None, {"score": None, "judgment": {"answer": "Hm."}}]}]
    for number, row in enumerate(rows):
        judgments, bad, _ = read(mt_bench.judgments, write(f"{number}.jsonl", [row]))
        assert bad == []
        statuses = [["parse_failed", "error"], ["parse_failed"], ["error", "parse_failed"]][number]
        assert [(x.status, x.decided_by) for x in judgments] == [(status, set()) for status in statuses]


def test_verdicts_of_arena_hard_have_the_baseline_first_in_the_first_game(write):
    write("ah/model_answer/m1.jsonl", [messages("m1", "const")])
    write("ah/model_answer/o3.jsonl", [messages("o3", "var")])
    write("ah/model_judgment/gpt-4.1/m1.jsonl", [JUDGED, JUDGED | {"uid": "x", "games": [GAMES[0] | {"score": "A=B"}]}])
    folder = write("ah/question.jsonl", [ASKED]).parent
    assert [(s.key, s.level) for s in read(mt_bench.samples, folder)[0]] == [("2edb", "hard_prompt")]
    assert [r.text for r in read(mt_bench.responses, folder)[0]] == ["const", "var"]
    judgments, bad, odd = read(mt_bench.judgments, folder)
    assert (bad, odd) == ([], [])
    assert [([ref.model for ref in x.responses], [ref.model for ref in x.order], x.choice) for x in judgments] == [
        (["m1", "o3"], ["o3", "m1"], "second"),
        (["m1", "o3"], ["m1", "o3"], "second"),
        (["m1", "o3"], ["o3", "m1"], "tie"),
    ]


def test_a_baseline_that_no_row_names_is_the_model_whose_answer_is_shown_as_a(write):
    """As in the first version of Arena-Hard."""
    prompt = "<|User Prompt|>\n?\n\n<|The Start of Assistant A's Answer|>\nBase.\n<|The End of Assistant A's Answer|>"
    old = {"question_id": 81, "model": "m1", "judge": "gpt-4-1106-preview"}
    old |= {"games": [{"user_prompt": prompt, "judgment": "[[B>A]]", "score": "B>A"}]}
    file = write("old/model_judgment/gpt-4-1106-preview/m1.jsonl", [old])
    folder = write("old/question.jsonl", [QUESTION | {"turns": [{"content": "?"}]}]).parent
    turns = [{"content": "Base.", "token_len": 2}]
    write("old/model_answer/base.jsonl", [answer("base", *turns)])
    (judgment,), bad, _ = read(mt_bench.judgments, folder)
    assert (bad, [ref.model for ref in judgment.responses], judgment.choice) == ([], ["m1", "base"], "first")
    assert [s.instruction for s in read(mt_bench.samples, folder)[0]] == ["?"]
    write("old/model_answer/like-it.jsonl", [answer("like-it", *turns)])
    told = "baseline: is missing, and no single model's answer is A in the prompt of the first game"
    assert read(mt_bench.judgments, folder)[:2] == ([], [f"m1.jsonl, line 1: {told}"])
    assert read(mt_bench.judgments, file)[1] == [f"m1.jsonl, line 1: {told}"]


def test_a_folder_of_wildvision_has_its_questions_beside_the_answers_and_its_baseline_in_a_folders_name(write):
    folder = write("w/example_model_answers.jsonl", [SEEN | {"model": None, "output": None}] * 2).parent
    for model in ("sonnet", "aria"):
        write(f"w/model_answers/{model}.jsonl", [SEEN | {"model": model, "output": f"By {model}."}])
    write(f"{FOLDER}/sonnet.jsonl", [WILD | {"model": "sonnet"}] * 2)
    odd_game = WILD["games"][0] | {"score": "A glass building"}
    write(f"{FOLDER}/aria.jsonl", [WILD, WILD | {"games": [odd_game]}])
    assert formats.find("auto", folder) is mt_bench
    assert [(s.key, s.instruction) for s in read(mt_bench.samples, folder)[0]] == [("2db1", "What is this?")]
    responses, bad, odd = read(mt_bench.responses, folder)
    assert [(r.model, r.text) for r in responses] == [("aria", "By aria."), ("sonnet", "By sonnet.")]
    assert (bad, len(odd)) == ([], 1), "the form to fill in is told once"
    judgments, bad, odd = read(mt_bench.judgments, folder)
    assert [([ref.model for ref in x.order], x.choice, x.status) for x in judgments] == [
        (["sonnet", "aria"], "first", "ok"),
        (["sonnet", "aria"], None, "parse_failed"),
    ]
    assert bad == []
    assert odd == [
        "aria.jsonl, line 2: games: the score 'A glass building' is none of A>>B, A>B, A=B, B>A and B>>A; "
        "kept as no verdict",
        "sonnet.jsonl, line 1: model: is the baseline itself; left out, as are further rows like this",
    ]


@pytest.mark.parametrize("row", [PAIR, SINGLE, JUDGED])
def test_verdicts_alone_say_what_to_put_beside_them(row, write):
    path = write("gpt-4_pair.jsonl", [row])
    assert formats.find("auto", path) is mt_bench
    assert inspect(path).parts == ("judgments",)
    _, bad, odd = read(mt_bench.judgments, path)
    assert (bad, len(odd)) == ([], 1)
    assert "put question.jsonl and the models' answers (model_answer/*.jsonl) beside them, in one folder" in odd[0]


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (PAIR | {"g2_winner": "A"}, "g2_winner: 'A' is none of model_1, model_2, tie, error"),
        (PAIR | {"m1_score": 7}, "m1_score: says that the answers were scored one by one, not compared"),
        (PAIR | {"judge": 4}, "judge: is no name"),
        (PAIR | {"turn": 0}, "turn: is no number of a turn"),
        (SINGLE | {"score": "nine"}, "score: is no number"),
        (JUDGED | {"games": GAMES * 2}, "games: holds 4; which of them has which order is not known"),
        (JUDGED | {"uid": [1]}, "uid: is neither text nor a whole number"),
    ],
)
def test_a_verdict_that_is_none_is_told_with_its_field(row, told, write):
    assert read(mt_bench.judgments, write("v.jsonl", [row]))[1] == [f"v.jsonl, line 1: {told}"]


def test_a_zip_of_mt_bench_comes_in_whole_and_a_second_time_changes_nothing(mt, tmp_path, twice):
    packed = tmp_path / "mt.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for file in sorted(mt.rglob("*.jsonl")):
            archive.write(file, f"data/{file.relative_to(mt)}")
    assert twice(packed) == [2, 4, 2]
    assert {judgment.order for judgment in Judgment.objects.filter(item__kind="pair")} == {"01", "10"}
