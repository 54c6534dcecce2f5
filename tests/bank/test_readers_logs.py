"""Logs of evaluations: samples of lmms-eval and lm-eval, and Inspect's logs, each scorer a judge of its name.

In the shapes that ``lmms_eval/loggers/evaluation_tracker.py`` writes, and of the logs in ``tests/log`` of inspect_ai.
"""

import base64
import json

import pytest

from bank.intake import formats
from bank.intake.archives import zipfile
from bank.intake.formats import inspect_log, lmms_eval
from bank.intake.formats.reading import BadFile, Problem
from bank.intake.imports.sources import inspect, open_source
from bank.models import Response, Sample
from judging.models import Judgment
from tests.bank.conftest import picture
from tests.bank.test_formats import INSPECT, LMMS, read

NAME = "20251012_101010_samples_mmvet.jsonl"


def rows_of(module, part, path, **given):
    return read(formats.reader(module, part, given), path)


# lmms-eval


def test_each_metric_of_lmms_eval_is_a_score_by_a_judge_of_its_name(write):
    row = LMMS | {"gpt_eval_score": {"score": 0.5}, "anls": 0.25, "exact_match": True}
    folder = write(f"log/llava-hf__llava-1.5/{NAME}", [row, LMMS | {"doc_id": 1}]).parent.parent
    assert formats.find("auto", folder) is lmms_eval
    assert inspect(folder).parts == ("samples", "responses", "judgments")
    samples, bad, odd = rows_of(lmms_eval, "samples", folder)
    assert [(s.key, s.instruction, s.answer, s.level) for s in samples] == [
        ("mmvet-0", "What colour?", "red", "mmvet"),
        ("mmvet-1", "What colour?", "red", "mmvet"),
    ]
    assert bad == []
    assert odd == [f"{NAME}, line 1: these metrics are no numbers and are not read: gpt_eval_score"]
    assert [(r.model, r.text) for r in rows_of(lmms_eval, "responses", folder)[0]] == [
        ("llava-hf__llava-1.5", "blue"),
        ("llava-hf__llava-1.5", "blue"),
    ]
    judgments, bad, odd = rows_of(lmms_eval, "judgments", folder)
    assert [(x.sample, x.judge, x.score) for x in judgments] == [
        ("mmvet-0", "anls", 0.25),
        ("mmvet-0", "exact_match", 1.0),
        ("mmvet-1", "exact_match", 0.0),
    ]
    assert (bad, odd) == ([], [])


def test_the_model_is_that_of_the_results_beside_the_samples_or_the_one_given(write):
    path = write(f"run/{NAME}", [LMMS])
    assert rows_of(lmms_eval, "responses", path)[1] == [f"{NAME}, line 1: model: is missing; name it with --model"]
    assert rows_of(lmms_eval, "responses", path, model="m")[0][0].model == "m"
    write("run/20251012_101010_results.json", {"results": {}, "model_name": "llava-hf/llava-1.5-7b-hf"})
    write("run/20251013_101010_results.json", {"results": {}, "model_name": "another"})
    assert rows_of(lmms_eval, "responses", path)[0][0].model == "llava-hf/llava-1.5-7b-hf"
    write("run/20251012_101010_results.json", "{")
    assert rows_of(lmms_eval, "responses", path, model="m")[0][0].model == "m", "unreadable results say nothing"


@pytest.mark.parametrize(
    ("change", "asked"),
    [
        ({"input": "In full?"}, "In full?"),
        ({"arguments": {"gen_args_0": {"arg_0": "In full?", "arg_1": {}}}}, "In full?"),
        ({"arguments": [["In full?", {}]]}, "In full?"),
        ({"arguments": [], "doc": {"question": "Bare?"}}, "Bare?"),
    ],
)
def test_what_was_asked_stands_in_several_places(change, asked, write):
    row = {name: value for name, value in LMMS.items() if name != "arguments"} | change
    assert rows_of(lmms_eval, "samples", write("samples_t.jsonl", [row]), model="m")[0][0].instruction == asked


def test_two_filters_of_lm_eval_are_two_judges_of_one_answer(write, twice):
    said = {"resps": [["So it is #### 18"]], "metrics": ["exact_match"]}
    rows = [
        LMMS | said | {"filter": "strict-match", "filtered_resps": ["18"]},
        LMMS | said | {"filter": "flexible-extract", "filtered_resps": ["[invalid]"], "exact_match": 1.0},
    ]
    path = write("samples_gsm8k_2026-01-02T03-04-05.678.jsonl", rows)
    assert twice(path, model="m") == [1, 1, 1]
    assert Sample.objects.get().key == "gsm8k-0"
    assert Response.objects.get().text == "So it is #### 18"
    assert set(Judgment.objects.values_list("run__judge__name", "score")) == {
        ("exact_match (strict-match)", 0.0),
        ("exact_match (flexible-extract)", 1.0),
    }


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"resps": [[[-1.5, False]]], "filtered_resps": [[-1.5, False]]}, "resps: holds no text, as of likelihoods"),
        ({"doc_id": None}, "doc_id: is neither text nor a whole number"),
        ({"arguments": None, "doc": None}, "prompt: is missing"),
    ],
)
def test_a_line_that_is_no_answer_is_told(change, told, write):
    (bad,) = rows_of(lmms_eval, "samples", write(NAME, [LMMS | change]), model="m")[1]
    assert bad.startswith(f"{NAME}, line 1: {told}")


def test_a_metric_that_is_not_a_number_in_json_is_told_by_line(write):
    path = write(NAME, json.dumps(LMMS) + "\n" + json.dumps(LMMS | {"exact_match": float("nan")}) + "\n")
    assert rows_of(lmms_eval, "judgments", path, model="m")[1] == [f"{NAME}, line 2: NaN is not JSON"]


# Inspect

SAMPLE = INSPECT["samples"][0]


@pytest.fixture
def packed(tmp_path):
    """Writes an .eval archive as Inspect does: a header, a file a sample, and the journal."""

    def make(*samples, method=zipfile.ZIP_DEFLATED, header="header.json", more=()):
        path = tmp_path / "log.eval"
        with zipfile.ZipFile(path, "w", method) as archive:
            spec = {name: INSPECT[name] for name in ("version", "eval")}
            archive.writestr("_journal/start.json", json.dumps(spec))
            for sample in samples:
                name = f"samples/{sample['id']}_epoch_{sample['epoch']}.json"
                archive.writestr(name, sample["raw"] if "raw" in sample else json.dumps(sample))
            archive.writestr("summaries.json", "[]")
            if header:
                archive.writestr(header, json.dumps(spec | {"status": "success"}))
            for name, content in more:
                archive.writestr(name, content)
        return path

    return make


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_ZSTANDARD])
def test_a_log_of_inspect_brings_answers_with_a_score_by_each_scorer(method, packed, twice):
    other = SAMPLE | {"id": 2, "input": "And?", "scores": {"match": {"value": "P"}, "f1": {"value": 0.75}}}
    path = packed(SAMPLE, other, method=method)
    assert inspect(path).format == "inspect"
    assert twice(path) == [2, 2, 2]
    assert set(Judgment.objects.values_list("item__sample__key", "run__judge__name", "score")) == {
        ("1", "match", 1.0),
        ("2", "match", 0.5),
        ("2", "f1", 0.75),
    }
    assert set(Response.objects.values_list("model__name", "text")) == {("openai/gpt-4o", "Yes")}


def test_epochs_are_variants_even_where_the_answer_is_the_same(packed, twice):
    path = packed(SAMPLE, SAMPLE | {"epoch": 2}, SAMPLE | {"epoch": 3, "output": {"completion": "No"}})
    assert twice(path) == [1, 3, 3]
    assert set(Response.objects.values_list("variant", "text")) == {("", "Yes"), ("epoch 2", "Yes"), ("epoch 3", "No")}


def test_a_run_that_was_cut_off_is_read_by_its_journal(packed):
    with open_source(packed(SAMPLE, header="")) as folder:
        assert inspect_log.recognises(folder)
        assert [r.model for r in rows_of(inspect_log, "responses", folder)[0]] == ["openai/gpt-4o"]


def test_messages_pictures_and_choices_make_the_question(write):
    image = "data:image/png;base64," + base64.b64encode(picture()).decode()
    said = [
        {"role": "system", "content": "Be short."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "attachment://abc"},
                {"type": "image", "image": "attachment://def"},
                {"type": "image", "image": "https://x.org/a.png"},
            ],
        },
    ]
    content = [{"type": "reasoning", "reasoning": "Hm."}, {"type": "text", "text": "A bike."}]
    sample = SAMPLE | {"input": said, "choices": ["bike", "car"], "target": ["A", "B"]}
    sample |= {"output": {"choices": [{"message": {"role": "assistant", "content": content}}]}}
    sample |= {"attachments": {"abc": "What is it?", "def": image}}
    path = write("log.json", json.dumps(INSPECT | {"samples": [sample]}, indent=2))
    assert formats.find("auto", path) is inspect_log
    (made,), bad, _ = rows_of(inspect_log, "samples", path)
    assert bad == []
    assert made.instruction == "**System**\n\nBe short.\n\n**User**\n\nWhat is it?\n\nA) bike\nB) car"
    assert ([i.data for i in made.images], made.images[1].url) == ([picture(), None], "https://x.org/a.png")
    assert made.answer == "A\nB"
    assert [r.text for r in rows_of(inspect_log, "responses", path)[0]] == ["A bike."]


@pytest.mark.parametrize("value", ["good", None, [1], "c"])
def test_a_score_that_is_neither_a_number_nor_a_grade_is_told_and_the_others_are_read(value, write):
    scores = {"match": {"value": value}, "sub": {"value": {"a": "I", "b": 0.5}}}
    scores["yes"] = {"value": True, "explanation": "It says so."}
    path = write("log.json", INSPECT | {"samples": [SAMPLE | {"scores": scores}]})
    judgments, bad, _ = rows_of(inspect_log, "judgments", path)
    assert [(x.judge, x.score) for x in judgments] == [("sub a", 0.0), ("sub b", 0.5), ("yes", 1.0)]
    assert judgments[2].analysis == "It says so."
    assert bad == [f"log.json, record 0: scores.match: {str(value)[:50]!r} is neither a number nor one of C, I, P, N"]


@pytest.mark.parametrize(
    "change",
    [
        {"input": 7},
        {"input": [7]},
        {"input": [{"role": "user", "content": [{"type": "image", "image": "data:image/png;base64,!"}]}]},
        {"output": None},
        {"epoch": "x"},
        {"id": {}},
        {"scores": []},
        {"scores": [1]},
    ],
)
def test_a_sample_that_is_none_is_told_or_read_and_never_guessed(change, write):
    path = write("log.json", INSPECT | {"samples": [SAMPLE | change, SAMPLE | {"id": 9}]})
    responses, bad, _ = rows_of(inspect_log, "responses", path)
    assert responses[-1].sample == "9"
    assert [problem.split(": ")[0] for problem in bad] == ["log.json, record 0"] * (2 - len(responses))


@pytest.mark.check("C3", "C6")
@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        ({"raw": "{" * 100_000}, "is not JSON"),
        ({"raw": "[" * 100_000}, "is nested too deeply"),
        ({"raw": '{"id": 1, "epoch": NaN}'}, "NaN is not JSON"),
        ({"raw": '{"id": 1' + "0" * 5000 + "}"}, ""),
        ({"raw": b"\xff\xfe"}, "is not UTF-8"),
    ],
)
def test_a_hostile_sample_in_an_archive_is_refused_with_its_file(spoil, told, packed):
    with open_source(packed(SAMPLE | {"id": 0} | spoil)) as folder:
        try:
            found = list(formats.reader(inspect_log, "samples")(folder))
        except BadFile as error:
            found = [error.problem]
    assert all(isinstance(one, Problem) for one in found)
    assert told in str(found[0])
    assert "0_epoch_1.json" in str(found[0])


@pytest.mark.check("C3")
@pytest.mark.parametrize("name", ["../x.json", "/x.json", "samples/../../x.json"])
def test_an_archive_whose_names_lead_outside_is_refused_whoever_wrote_it(name, packed, tmp_path):
    with pytest.raises(BadFile, match="leads out of the archive"), open_source(packed(SAMPLE, more=[(name, "{}")])):
        pass
    assert not (tmp_path.parent / "x.json").exists()


def test_an_archive_that_was_cut_off_or_damaged_is_refused(packed):
    path = packed(SAMPLE, method=zipfile.ZIP_ZSTANDARD)
    content = path.read_bytes()
    for spoilt in (content[: len(content) // 2], content[:80] + b"\0" * 40 + content[120:]):
        path.write_bytes(spoilt)
        with pytest.raises(BadFile), open_source(path):
            pass


def test_a_log_without_samples_says_so(write):
    path = write("log.json", INSPECT | {"samples": []})
    with pytest.raises(BadFile, match="holds no samples; was it written without them"):
        list(formats.reader(inspect_log, "samples")(path))
