"""Files in: exact counts, all or nothing, twice the same as once, and every fault named."""

import json

import pytest

from annotations.models import Annotator, Campaign, Label
from bank.criteria import CriteriaAccess, Criterion
from bank.models import Benchmark, EvaluatedModel, Item, Response, Sample, SampleImage
from judging.models import Judgment, Run
from tests.bank.conftest import RESPONSES, SAMPLES, picture

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def counts():
    bank = (Benchmark, Sample, SampleImage, Criterion, EvaluatedModel, Response, Item)
    tables = (*bank, Run, Judgment, Label, Annotator)
    return {table.__name__: table._base_manager.count() for table in tables}


def test_samples_come_in_with_pictures_criteria_and_capability_tree(small):
    sample = small.samples.get(key="a")
    assert sample.images.get().kind == "png"
    assert sample.capability.path == "Perception"
    assert small.samples.get(key="b").capability.path == "Creation / Poetry"
    assert [c.text for c in Criterion.unguarded.filter(sample=sample)] == ["Three boats.", "Says where they lie."]


def test_importing_again_changes_nothing(small, folder, manage):
    before = counts()
    status, out, _ = manage("import_benchmark", "generic", folder.root, "--benchmark", "small", "--public")
    assert status == 0
    assert "2 were there already" in out
    assert manage("import_responses", "generic", folder.root, "--benchmark", "small")[0] == 0
    assert counts() == before


def test_a_dry_run_says_what_would_be_made_and_writes_nothing(folder, manage, media):
    (folder.root / "boats.png").write_bytes(picture())
    path = folder("samples", SAMPLES)
    status, out, _ = manage("import_benchmark", "generic", path, "--benchmark", "new", "--dry-run", "--public")
    assert status == 0
    assert "Would make 2 samples, 1 image, 2 criteria" in out
    assert not Benchmark.objects.exists()
    assert not list(media.rglob("*.*"))


def test_one_bad_row_keeps_everything_out_and_no_picture_stays_behind(folder, manage, media):
    (folder.root / "boats.png").write_bytes(picture())
    path = folder("samples", [*SAMPLES, {"key": "c", "instruction": "  "}])
    status, _, err = manage("import_benchmark", "generic", path, "--benchmark", "new", "--public")
    assert status == 1
    assert "samples.jsonl, line 3: instruction: is empty" in err
    assert not Benchmark.objects.exists()
    assert not list(media.rglob("*.png"))


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_the_bad_rows_of_all_parts_are_named(folder, manage, more):
    (folder.root / "boats.png").write_bytes(picture())
    folder("samples", [*SAMPLES, {"key": "c", "instruction": "  "}])
    folder("responses", [*RESPONSES, {"sample": "nowhere", "model": "m", "text": "."}])
    status, out, err = manage("import_benchmark", "generic", folder.root, "--benchmark", "new", "--all-parts", *more)
    assert status == 1
    assert "samples.jsonl, line 3: instruction: is empty" in err
    assert f"responses.jsonl, line {len(RESPONSES) + 1}: sample" in err
    assert "2 bad rows, nothing was written" in err
    assert ("responses" in out) == ("Would make" in out) == bool(more)
    assert not Benchmark.objects.exists()


def test_of_many_bad_rows_alike_ten_are_named_and_all_in_a_dry_run(folder, manage):
    untold = [{"key": f"u{n}", "instruction": " "} for n in range(30)]
    odd = [{"key": f"o{n}", "instruction": "Why?", "criteria": [{"kind": f"odd-{n}", "text": "."}]} for n in range(12)]
    path = folder("samples", [*untold, *odd])
    status, _, err = manage("import_benchmark", "generic", path, "--benchmark", "new", "--public")
    lines = [line for line in err.splitlines() if line.startswith("bad row  ")]
    assert status == 1
    assert sum("is empty" in line for line in lines) == 10
    assert "bad row  samples.jsonl: 20 more like the last one" in lines
    assert "bad row  samples.jsonl: 2 more like the last one" in lines
    assert len(lines) == 22
    assert "42 bad rows, nothing was written" in err
    _, _, err = manage("import_benchmark", "generic", path, "--benchmark", "new", "--public", "--dry-run")
    assert err.count("bad row  ") == 42


def test_skip_bad_imports_the_good_rows_and_names_the_bad(folder, manage):
    (folder.root / "boats.png").write_bytes(picture())
    path = folder("samples", [*SAMPLES, {"key": "c"}])
    status, out, err = manage("import_benchmark", "generic", path, "--benchmark", "new", "--skip-bad", "--public")
    assert status == 0
    assert "line 3: instruction" in err
    assert "1 bad row" in out
    assert Sample.objects.count() == 2


BAD_ROWS = {
    "an unknown field": ({"key": "x", "instruction": "?", "colour": 1}, "colour"),
    "an empty criterion": ({"key": "x", "instruction": "?", "criteria": [{"text": " "}]}, "criteria.0.text"),
    "a missing picture": ({"key": "x", "instruction": "?", "images": ["nowhere.png"]}, "images.0"),
    "a picture that is none": ({"key": "x", "instruction": "?", "images": ["text.png"]}, "images.0"),
    "a picture outside the folder": ({"key": "x", "instruction": "?", "images": ["../../etc/passwd"]}, "images.0"),
    "an absolute picture path": ({"key": "x", "instruction": "?", "images": ["/etc/passwd"]}, "images.0"),
    "an answer that is no option": (
        {"key": "x", "instruction": "?", "options": {"A": "1", "B": "2"}, "answer": "C"},
        "answer: is not among",
    ),
    "one option": ({"key": "x", "instruction": "?", "options": {"A": "1"}}, "options: a choice is among 2 to 26"),
    "27 options": (
        {"key": "x", "instruction": "?", "options": {str(n): "o" for n in range(27)}},
        "options: a choice is among 2 to 26 options, not 27",
    ),
    "a picture without file or address": ({"key": "x", "instruction": "?", "images": [{"objects": []}]}, "images.0"),
    "a NUL character": ({"key": "x", "instruction": "a\u0000b"}, "instruction"),
    "a number for text": ({"key": "x", "instruction": 7}, "instruction"),
    "a negative weight": ({"key": "x", "instruction": "?", "criteria": [{"text": "t", "weight": -1}]}, "weight"),
    "a weight with a comma": (
        {"key": "x", "instruction": "?", "criteria": [{"text": "t", "weight": "10,0"}]},
        "criteria.0.weight",
    ),
    "an unknown kind": ({"key": "x", "instruction": "?", "criteria": [{"text": "t", "kind": "hint"}]}, "kind"),
    "a level that is not the top": ({"key": "x", "instruction": "?", "level": "A", "capability": ["B"]}, "level"),
    "a key that stands twice": ({"key": "a", "instruction": "other"}, "already occurs at samples.jsonl, line 1"),
}


@pytest.mark.parametrize("fault", BAD_ROWS)
@pytest.mark.check("C8")
def test_a_bad_sample_row_is_reported_with_line_and_field(fault, folder, manage):
    row, field = BAD_ROWS[fault]
    (folder.root / "boats.png").write_bytes(picture())
    (folder.root / "text.png").write_text("not a picture")
    path = folder("samples", [*SAMPLES, row])
    status, _, err = manage("import_benchmark", "generic", path, "--benchmark", "new", "--public")
    assert status == 1
    assert "samples.jsonl, line 3: " in err
    assert field in err
    assert not Sample.objects.exists()


ENTITIES = b"""<?xml version="1.0"?>
<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd"><!ENTITY y "&x;&x;">]>
<a>&y;</a>
"""
BAD_FILES = {
    "XML with entities": (ENTITIES, "line 2: key: is missing"),
    "UTF-16": ('{"key": "a", "instruction": "?"}\n'.encode("utf-16"), "line 1: is not UTF-8 (it looks like UTF-16)"),
    "Latin-1": (b'{"key": "a", "instruction": "caf\xe9"}\n', "line 1: is not UTF-8"),
    "a cut last line": (b'{"key": "a", "instruction": "?"}\n{"key": "b", "instr', "line 2: is not JSON"),
    "repeated names": (b'{"key": "a", "key": "b", "instruction": "?"}\n', "the name 'key' stands twice"),
    "NaN": (b'{"key": "a", "instruction": "?", "metadata": {"x": NaN}}\n', "NaN is not JSON"),
    "a number too large": (b'{"key": "a", "instruction": "?", "metadata": {"x": 1e400}}\n', "too large"),
    "nested too deeply": (b'{"key": ' + b"[" * 100_000 + b"\n", "nested too deeply"),
    "half a surrogate": (b'{"key": "a", "instruction": "\\ud800"}\n', "instruction: "),
    "nothing": (b"", "holds no rows"),
    "an archive": (b"PK\x03\x04" + b"\x00" * 40, "is not a readable zip archive"),
    "a ragged table": (b"key,instruction\na,b,c\n", "line 2: has 3 cells, the header 2"),
    "an open quote": (b'key,instruction\na,"b\n', "is not CSV"),
    "damaged gzip": (b"\x1f\x8b\x08\x00garbage", "damaged"),
}


@pytest.mark.parametrize("fault", BAD_FILES)
@pytest.mark.check("C4", "C5", "C6")
def test_a_bad_file_is_refused_with_its_place_and_nothing_is_written(fault, folder, manage):
    raw, reason = BAD_FILES[fault]
    path = folder("samples", [], raw=raw)
    status, _, err = manage("import_benchmark", "generic", path, "--benchmark", "new", "--public")
    assert status == 1
    assert reason in err
    assert not Benchmark.objects.exists()


@pytest.mark.check("C5", "C6")
def test_a_byte_order_mark_and_windows_line_ends_and_blank_lines_are_fine(folder, manage):
    raw = b'\xef\xbb\xbf{"key": "a", "instruction": "?"}\r\n\r\n{"key": "b", "instruction": "!"}\r\n'
    path = folder("samples", [], raw=raw)
    assert manage("import_benchmark", "generic", path, "--benchmark", "new", "--public")[0] == 0
    assert list(Sample.objects.values_list("key", "instruction")) == [("a", "?"), ("b", "!")]


def test_a_missing_file_is_bad_input_and_a_missing_argument_wrong_use(manage, tmp_path):
    status, _, err = manage("import_benchmark", "generic", tmp_path / "none.jsonl", "--benchmark", "new", "--public")
    assert status == 1
    assert "there is no such file" in err


def test_a_stored_sample_is_never_changed_by_an_import(small, folder, manage):
    path = folder("samples", [SAMPLES[0] | {"instruction": "How many ships?"}])
    status, _, err = manage("import_benchmark", "generic", path, "--benchmark", "small", "--public")
    assert status == 1
    assert "is stored with a different instruction" in err
    changed = SAMPLES[0] | {"criteria": [{"text": "Four boats."}]}
    status, _, err = manage(
        "import_benchmark", "generic", folder("samples", [changed]), "--benchmark", "small", "--public"
    )
    assert status == 1
    assert "a different criteria" in err
    assert "Four boats" not in err
    assert manage("import_benchmark", "generic", path, "--benchmark", "small", "--version", "2", "--public")[0] == 0
    assert Benchmark.objects.named("small").version == "2"
    assert Benchmark.objects.named("small@1").samples.get(key="a").instruction == "How many boats?"


@pytest.mark.check("C8")
def test_responses_name_what_is_unknown_and_are_never_changed(small, folder, manage):
    rows = [{"sample": "z", "model": "m1", "text": "?"}, RESPONSES[0] | {"text": "other"}]
    status, _, err = manage("import_responses", "generic", folder("more", rows), "--benchmark", "small")
    assert status == 1
    assert "line 1: sample: no sample 'z'" in err
    assert "line 2: text: a different response" in err
    assert manage("import_responses", "generic", folder("more", rows), "--benchmark", "none")[0] == 1


def test_an_empty_answer_is_kept_as_empty(small, folder, manage):
    path = folder("more", [{"sample": "a", "model": "m4", "text": ""}])
    assert manage("import_responses", "generic", path, "--benchmark", "small")[0] == 0
    assert Response.objects.get(model__name="m4").status == "empty"


def test_a_table_holds_the_same_as_json_lines(small, folder, manage):
    rows = "sample;model;text\na;m9;=1+1\nb;m9;two\n"
    path = folder("responses", [], name="responses.csv", raw=rows.encode())
    assert manage("import_responses", "generic", path, "--benchmark", "small")[0] == 0
    assert Response.objects.get(sample__key="a", model__name="m9").text == "=1+1"


LABEL = {"kind": "pair", "protocol": "pair", "sample": "a", "responses": ["m1", "m2"], "annotator": "ann"}


def test_labels_make_their_items_and_a_reversed_row_is_turned(small, folder, manage):
    rows = [
        LABEL | {"choice": "first"},
        LABEL | {"annotator": "bo", "responses": ["m2", "m1"], "choice": "first"},
    ]
    path = folder("labels", rows)
    status, out, _ = manage("import_labels", "generic", path, "--benchmark", "small")
    assert status == 0
    assert "1 item, 1 campaign, 2 annotators, 2 labels" in out
    assert Item.objects.count() == 1
    assert dict(Label.objects.values_list("annotator__name", "choice")) == {"ann": "first", "bo": "second"}
    campaign = Campaign.objects.get()
    assert (campaign.name, campaign.state, campaign.overlap) == ("imported", "closed", 2)
    before = counts()
    assert manage("import_labels", "generic", path, "--benchmark", "small")[0] == 0
    assert counts() == before


BAD_LABELS = {
    "no verdict": ({}, "holds no verdict"),
    "an unknown choice": ({"choice": "left"}, "choice"),
    "a situation without undecided": ({"choice": "tie", "situation": 1}, "situation goes with"),
    "an unknown model": ({"choice": "first", "responses": ["m1", "who"]}, "unknown model 'who'"),
    "an unknown sample": ({"choice": "first", "sample": "zz"}, "no sample 'zz'"),
    "three responses for a pair": ({"choice": "first", "responses": ["m1", "m2", "m3"]}, "a pair item takes 2"),
    "the same response twice": ({"choice": "first", "responses": ["m1", "m1"]}, "the same response twice"),
    "an infinite score": ({"kind": "score", "responses": ["m1"], "score": "7"}, "score"),
}


@pytest.mark.parametrize("fault", BAD_LABELS)
def test_a_bad_label_row_is_reported_and_nothing_is_written(fault, small, folder, manage):
    change, reason = BAD_LABELS[fault]
    path = folder("labels", [LABEL | {"choice": "first", "annotator": "ok"}, LABEL | change])
    status, _, err = manage("import_labels", "generic", path, "--benchmark", "small")
    assert status == 1
    assert "line 2: " in err
    assert reason in err
    assert not Label.objects.exists()
    assert not Item.objects.exists()


MARKDOWN = (
    "# Head\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```python\nprint(1)\n```\n\nInline $x^2$ and \\(a+b\\). "
    "![leak](http://127.0.0.1:9/leak.png?q=secret) <img src=x onerror=alert(1)>\n"
)
JUDGMENT = {"kind": "pair", "protocol": "pairwise-criteria", "sample": "a", "responses": ["m1", "m2"], "judge": "j"}


def test_judgments_of_one_judge_and_settings_share_a_run(small, folder, manage):
    first = [JUDGMENT | {"choice": "first", "settings": {"order": "both"}}]
    second = [JUDGMENT | {"choice": "tie", "settings": {"order": "both"}, "order": ["m2", "m1"], "raw": "tie"}]
    assert manage("import_judgments", "generic", folder("one", first), "--benchmark", "small")[0] == 0
    assert manage("import_judgments", "generic", folder("two", second), "--benchmark", "small")[0] == 0
    assert Run.objects.count() == 1
    assert dict(Judgment.objects.values_list("order", "choice")) == {"01": "first", "10": "tie"}
    before = counts()
    assert manage("import_judgments", "generic", folder("two", second), "--benchmark", "small")[0] == 0
    assert counts() == before
    other = [JUDGMENT | {"choice": "second", "settings": {"order": "both"}}]
    status, _, err = manage("import_judgments", "generic", folder("three", other), "--benchmark", "small")
    assert status == 1
    assert "another verdict is stored" in err


def test_an_imported_run_says_how_many_verdicts_it_has_as_other_runs_do(small, folder, manage):
    def said():
        return Run.objects.values_list("verdicts", "failures", "undecided").get()

    failed = {"status": "refused", "order": ["m2", "m1"]}
    first = [JUDGMENT | {"choice": "undecided"}, JUDGMENT | failed]
    second = [JUDGMENT | {"sample": "b", "choice": "first"}]
    for name, rows, expected in (("one", first, (1, 1, 1)), ("again", first, (1, 1, 1)), ("two", second, (2, 1, 1))):
        assert manage("import_judgments", "generic", folder(name, rows), "--benchmark", "small")[0] == 0
        assert said() == expected
    Run.objects.update(verdicts=None, failures=None, undecided=None)  # from before runs were counted at their import
    third = [JUDGMENT | {"sample": "b", "choice": "tie", "order": ["m2", "m1"]}]
    assert manage("import_judgments", "generic", folder("three", third), "--benchmark", "small")[0] == 0
    assert said() == (None, None, None)


WRONG_ORDERS = {
    "another's": ["m1", "m3"],
    "one twice": ["m1", "m1"],
    "one left out": ["m1"],
    "one too many": ["m1", "m2", "m1"],
}


@pytest.mark.parametrize("wrong", WRONG_ORDERS)
def test_an_order_that_does_not_name_each_response_once_is_refused_by_its_line(wrong, small, folder, manage):
    rows = [JUDGMENT | {"choice": "first"}, JUDGMENT | {"sample": "b", "choice": "first", "order": WRONG_ORDERS[wrong]}]
    status, _, err = manage("import_judgments", "generic", folder("judgments", rows), "--benchmark", "small")
    assert (status, Judgment.objects.count()) == (1, 0)
    assert "judgments.jsonl, line 2: " in err
    assert "order does not name every response once" in err
    ones = [{"judge": name, "protocol": "pairwise-criteria", "order": ["m1", "m2"]} for name in ("j", "k")]
    ones[1]["order"] = WRONG_ORDERS[wrong]
    row = LABEL | {"protocol": "compare-analyses", "choice": "first", "compared": ones}
    status, _, err = manage("import_labels", "generic", folder("labels", [row]), "--benchmark", "small")
    assert (status, Label.objects.count()) == (1, 0)
    assert "compared: order does not name every response once" in err


def test_a_judgment_without_verdict_needs_a_status_that_says_why(small, folder, manage):
    path = folder("judgments", [JUDGMENT, JUDGMENT | {"status": "refused", "choice": "first"}])
    status, _, err = manage("import_judgments", "generic", path, "--benchmark", "small")
    assert status == 1
    assert err.count("status ok goes with a verdict") == 2


def test_a_preference_of_nan_is_refused_by_line_and_one_that_is_null_stays_a_failure_with_its_reason(
    small, folder, manage, tmp_path
):
    why = {"choice": None, "status": "parse_failed", "reason": "null preference"}
    rows = [JUDGMENT | why, JUDGMENT | {"protocol": "pair-graded", "sample": "b", "preference": float("nan")}]
    status, _, err = manage("import_judgments", "generic", folder("two", rows), "--benchmark", "small")
    assert (status, Judgment.objects.count()) == (1, 0)
    assert "two.jsonl, line 2: NaN is not JSON" in err
    assert manage("import_judgments", "generic", folder("one", rows[:1]), "--benchmark", "small")[0] == 0
    stored = Judgment.objects.get()
    assert (stored.choice, stored.status, stored.reason) == (None, "parse_failed", "null preference")


@pytest.mark.parametrize("shape", ["jsonl", "csv", "parquet"])
@pytest.mark.check("C12")
def test_what_is_exported_imports_again_unchanged(shape, small, folder, manage, tmp_path, media):
    odd = [
        LABEL | {"choice": "undecided", "situation": 2, "comment": "=cmd()", "flags": ["odd, very"], "seconds": 3.5},
        LABEL | {"annotator": "-bo", "choice": "second", "at": "2026-11-10T08:56:42+01:00"},
        {"kind": "batch", "sample": "b", "responses": ["m1", "m2", "m3"], "annotator": "ann"}
        | {"ranking": [["m3"], ["m1", "m2"]]},
    ]
    judged = [
        JUDGMENT | {"choice": "first", "raw": "+1\nAnswer1", "analysis": "'quoted", "prompt_tokens": 5},
        JUDGMENT | {"sample": "b", "status": "parse_failed", "reason": "null preference", "raw": "null"},
    ]
    answers = [
        {"sample": "a", "model": "m4", "text": MARKDOWN},
        {"sample": "b", "model": "m4", "text": "", "status": "empty"},
    ]
    assert manage("import_responses", "generic", folder("more", answers), "--benchmark", "small")[0] == 0
    assert manage("import_labels", "generic", folder("labels", odd), "--benchmark", "small")[0] == 0
    assert manage("import_judgments", "generic", folder("judgments", judged), "--benchmark", "small")[0] == 0
    before = counts()
    why = ("--reason", "a test")
    for what, command, more, images in (
        ("samples", "import_benchmark", ("--with-criteria", *why), ("--images", media)),
        ("responses", "import_responses", (), ()),
        ("labels", "import_labels", ("--names",), ()),
        ("judgments", "import_judgments", ("--with-analyses", *why), ()),
    ):
        out = tmp_path / f"{what}.{shape}"
        target = ("--benchmark", "small")
        assert manage("export", what, *target, "--format", shape, "--output", out, *more)[0] == 0
        status, said, err = manage(command, "generic", out, *target, *images)
        assert (status, err) == (0, "")
        assert "Made nothing new" in said
    assert counts() == before


@pytest.mark.parametrize("shape", ["jsonl", "parquet"])
def test_samples_packed_with_their_pictures_come_in_again_anywhere(shape, small, manage, tmp_path, client_of, settings):
    out, again = tmp_path / "packed.zip", tmp_path / "again.zip"
    packed = ("export", "samples", "--benchmark", "small", "--format", shape, "--with-images")
    why = ("--with-criteria", "--reason", "a test")
    assert manage(*packed, "--output", out, *why)[0] == 0
    status, said, err = manage("import_benchmark", "generic", out, "--benchmark", "small", "--public")
    assert (status, err, "Made nothing new" in said) == (0, "", True)
    address, given = f"/bank/benchmarks/{small}/export/", {"what": "samples", "shape": shape, "pictures": "on"}
    answer = client_of("curator").post(address, given | {"criteria": "on", "reason": "a test"})
    assert b"".join(answer.streaming_content) == out.read_bytes()
    assert answer.headers["Content-Disposition"].endswith('-samples-with-criteria.zip"')
    assert "belongs to samples" in client_of("curator").post(address, given | {"what": "items"}).content.decode()
    settings.MEDIA_ROOT = str(tmp_path / "elsewhere")  # as on another machine
    assert manage("import_benchmark", "generic", out, "--benchmark", "other", "--public")[0] == 0
    assert manage(*packed[:3], "other", *packed[4:], "--output", again, *why)[0] == 0
    assert again.read_bytes() == out.read_bytes()


def test_criteria_leave_only_with_a_reason_and_leave_a_trace(small, manage, tmp_path):
    out = tmp_path / "x.jsonl"
    plain = ("export", "samples", "--benchmark", "small", "--format", "jsonl", "--output", out)
    assert manage(*plain)[0] == 0
    assert "Three boats" not in out.read_text()
    assert not CriteriaAccess.objects.exists()
    assert manage(*plain, "--with-criteria")[0] == 1
    assert manage(*plain, "--with-criteria", "--reason", "moving house")[0] == 0
    assert "Three boats" in out.read_text()
    access = CriteriaAccess.objects.get()
    assert (access.reason, access.how) == ("moving house", "command")


def test_what_judges_wrote_leaves_only_with_a_reason_and_leaves_a_trace(small, folder, manage, tmp_path):
    rows = [
        {"kind": "pair", "sample": "a", "responses": ["m1", "m2"], "choice": "first", "judge": "j", "raw": "First."}
    ]
    assert manage("import_judgments", "generic", folder("judgments", rows), "--benchmark", "small")[0] == 0
    out = tmp_path / "x.jsonl"
    plain = ("export", "judgments", "--benchmark", "small", "--format", "jsonl", "--output", out)
    assert manage(*plain)[0] == 0
    assert "raw" not in json.loads(out.read_text())
    assert not CriteriaAccess.objects.exists()
    assert manage(*plain, "--with-analyses")[0] == 1
    assert manage(*plain, "--with-analyses", "--reason", "for the paper")[0] == 0
    assert json.loads(out.read_text())["raw"] == "First."
    access = CriteriaAccess.objects.get()
    assert (access.by_command, access.how, access.reason) == (
        "export judgments",
        "export of analyses",
        "for the paper",
    )


def test_annotators_leave_by_pseudonym_unless_names_are_asked_for(small, folder, manage, tmp_path):
    rows = [LABEL | {"choice": "first", "annotator": "Ada Lovelace"}]
    assert manage("import_labels", "generic", folder("labels", rows), "--benchmark", "small")[0] == 0
    out = tmp_path / "labels.jsonl"
    export = ("export", "labels", "--benchmark", "small", "--format", "jsonl", "--output", out)
    assert manage(*export)[0] == 0
    assert "Lovelace" not in out.read_text()
    assert json.loads(out.read_text())["annotator"].startswith("annotator-")
    assert manage(*export, "--names")[0] == 0
    assert json.loads(out.read_text())["annotator"] == "Ada Lovelace"


def test_items_are_made_once_in_the_order_of_the_models_with_the_anchor_last(small, manage):
    make = ("make_items", "pair", "--benchmark", "small", "--models", "m3,m1", "--anchor", "m2")
    assert "Made 4 items" in manage(*make)[1]
    assert "Made 0 items; 4 were there already" in manage(*make)[1]
    names = [[r.model.name for r in item.ordered_responses()] for item in Item.objects.filter(sample__key="a")]
    assert names == [["m3", "m2"], ["m1", "m2"]]
    assert "Made 2 items" in manage("make_items", "batch", "--benchmark", "small")[1]
    assert "Made 3 items" in manage("make_items", "score", "--benchmark", "small", "--sample", "1", "--seed", "4")[1]
    status, _, err = manage("make_items", "pair", "--benchmark", "small", "--models", "m1,nobody")
    assert status == 1
    assert "'nobody' has no responses" in err
