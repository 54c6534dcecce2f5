"""What the formats of the papers become in the database, and that it comes back by an export."""

import base64
import json

import pytest

from annotations.models import Label
from bank.criteria import Criterion
from bank.intake.formats import MODULES
from bank.intake.imports.engine import run_import as bring_all
from bank.models import Benchmark, Item, Response, Sample, SampleImage, SubmissionRules
from bank.submissions.check import check
from judging.models import Judgment
from tests.bank.conftest import picture

pytestmark = pytest.mark.django_db
PNG = base64.b64encode(picture()).decode()


@pytest.fixture
def run_import(tmp_path, manage, media):
    """``run_import("samples", "mmbench", "q.tsv", text)``: the command's exit status, output and errors."""
    commands = {"samples": "import_benchmark"}

    def run(what, format, name, content, *more):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return manage(commands.get(what, f"import_{what}"), format, path, "--benchmark", "b", *more)

    return run


def as_table(*rows):
    return "".join("\t".join(map(str, row)) + "\n" for row in rows)


HEADER = ("index", "question", "A", "B", "C", "answer", "image")


def test_predictions_on_circular_copies_become_the_rotation_that_the_copy_shows(run_import):
    questions = [(3, "Which?", "one", "two", "three", "B", PNG), (1_000_003, "Which?", "three", "one", "two", "C", 3)]
    assert run_import("samples", "auto", "q.tsv", as_table(HEADER, *questions))[0] == 0
    assert Sample.objects.get().images.count() == 1
    predictions = "index,prediction\n3,B\n1000003,A\n"
    assert run_import("responses", "auto", "p.csv", predictions, "--model", "m")[0] == 0
    stored = {r.variant: (r.text, r.option_order) for r in Response.objects.all()}
    # Copy 1 shows the last option first: place i shows option (i + 2) mod 3.
    assert stored == {"": ("B", None), "circular-2": ("A", ["C", "A", "B"])}
    assert "2 were there already" in run_import("responses", "auto", "p.csv", predictions, "--model", "m")[1]
    status, _, err = run_import(
        "responses", "auto", "p.csv", "index,prediction\n2000003,A\n5000003,A\n", "--model", "n"
    )
    assert status == 1
    assert "p.csv, line 2: index: is for copy 2, which is not a known rotation of sample '3'" in err
    assert "p.csv, line 3: index: is for copy 5, but sample '3' has 3 options" in err


def test_without_copies_in_the_table_rotation_k_shows_option_i_plus_k(run_import):
    assert (
        run_import("samples", "auto", "q.tsv", as_table(HEADER, (3, "Which?", "one", "two", "three", "", PNG)))[0] == 0
    )
    assert not Criterion.unguarded.exists()  # the answer is hidden
    assert run_import("responses", "auto", "p.csv", "index,prediction\n1000003,A\n", "--model", "m")[0] == 0
    response = Response.objects.get()
    assert (response.variant, response.option_order) == ("circular-1", ["B", "C", "A"])


def test_a_release_comes_in_by_one_import_its_anchor_among_the_models_that_answer(tmp_path, media):
    folder = tmp_path / "mllm-bench"
    (folder / "answers").mkdir(parents=True)
    question = {"id": 1, "question": "?", "image_path": "1.jpg", "capability": "OCR", "criteria": "1. A"}
    (folder / "questions_with_criteria.json").write_text(json.dumps([question]))
    (folder / "anchor.json").write_text(json.dumps([{"unique_idx": 1, "gen_model_id": "llava", "answer": "a"}]))
    (folder / "answers" / "m.jsonl").write_text(json.dumps({"id": 1, "model": "m", "answer": "b"}))
    reports = bring_all(path=folder, slug="mllm-bench")
    assert {name: report.written for name, report in reports.items()} == {"samples": True, "responses": True}
    assert Benchmark.objects.get().anchor.name == "llava"
    assert sorted(Response.objects.values_list("model__name", flat=True)) == ["llava", "m"]
    assert all(report.unchanged for report in bring_all(path=folder, slug="mllm-bench").values())


COMPONENTS = {"components": ["a", "b"], "component_weight": [6, 3.99], "component_type": ["math", "math"]}


def test_an_answer_finds_its_sample_by_the_address_of_the_picture_whether_that_is_here_or_not(run_import, tmp_path):
    (tmp_path / "2.png").write_bytes(picture())
    rows = [{"image": f"http://h/{n}.png", "instruction": f"{n}?", **COMPONENTS} for n in (1, 2)]
    status, out, err = run_import("samples", "auto", "m.json", rows)
    assert (status, "2 samples, 1 image, 4 criteria" in out) == (0, True)
    assert "'1.png': the picture is missing" in err
    assert SampleImage.objects.get().source_url == "http://h/2.png"
    answers = "".join(json.dumps({"question_id": f"http://h/{n}.png", "text": f"t{n}"}) + "\n" for n in (2, 1))
    assert run_import("responses", "auto", "r.jsonl", answers, "--model", "m")[0] == 0
    assert dict(Response.objects.values_list("sample__key", "text")) == {"0": "t1", "1": "t2"}
    status, _, err = run_import(
        "responses", "auto", "r.jsonl", '{"question_id": "http://h/9.png", "text": "t"}', "--model", "n"
    )
    assert (status, "no sample shows the picture at http://h/9.png" in err) == (1, True)


@pytest.mark.check("C14")
def test_no_picture_address_is_ever_asked(run_import, monkeypatch):
    import socket

    def refuse(*_, **__):
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    places = ["http://127.0.0.1/1.png", "http://169.254.169.254/a.png", "http://[::1]/b.png", "file:///etc/passwd"]
    rows = [{"image": url, "instruction": f"{url}?", **COMPONENTS} for url in places]
    assert run_import("samples", "mia-bench", "m.json", rows)[0] == 0
    assert (Sample.objects.count(), SampleImage.objects.count()) == (4, 0)


def judged(**row):
    return {"image_path": "1.jpg", "original_dataset": "coco", "instruction": "?", **row}


def answer(name):
    return {"name": name, "answer": f"By {name}."}


def test_a_verdict_never_meets_another_text_than_the_one_it_is_about(run_import):
    row = judged(id=1, **answer("A"), human="2")
    other = row | {"answer": "Otherwise.", "human": "5"}
    for what in ("samples", "responses"):
        assert run_import(what, "auto", "one.jsonl", row)[0] == 0
    status, _, err = run_import("labels", "auto", "two.jsonl", other)
    assert (status, "line 1: responses: the stored response of 'A'" in err, "has a different text" in err) == (
        1,
        True,
        True,
    )
    assert run_import("labels", "auto", "one.jsonl", row)[0] == 0


def test_a_file_without_its_pictures_is_no_contradiction_to_stored_ones(run_import, tmp_path):
    (tmp_path / "1.jpg").write_bytes(picture())
    row = judged(id=1, **answer("A"), human="2")
    assert "1 sample, 1 image" in run_import("samples", "auto", "one.jsonl", row)[1]
    status, out, err = run_import("samples", "auto", "alone/one.jsonl", row)
    assert (status, "1 was there already" in out, "the picture is missing" in err) == (0, True, True)
    (tmp_path / "1.jpg").write_bytes(picture(colour="red"))
    assert "stored with a different images" in run_import("samples", "auto", "one.jsonl", row)[2]


def fill(run_import):
    """One benchmark with every kind of item, verdict and criterion that the formats bring."""
    models = "ABCD"
    said = {"name": "j", "judge": "[[C], [D], [B], [A]]", "analysis": "=SUM(1)\n[[C], [D], [B], [A]]"}
    rows = [
        judged(id=1, answers=[answer(m) for m in models], human_answer="CDBA", result=said),
        judged(id=1, answer1=answer("A"), answer2=answer("B"), human="C", result={"name": "j", "judge": "?"}),
        judged(id=1, **answer("A"), human="2", result={"name": "j", "judge": "5", "analysis": "Fine."}),
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    for what in ("samples", "responses", "labels", "judgments"):
        assert run_import(what, "auto", "items.jsonl", lines)[0] == 0
    assert (
        run_import("samples", "auto", "mia/m.json", [{"image": "http://h/1.png", "instruction": "1?", **COMPONENTS}])[0]
        == 0
    )
    assert (
        run_import("samples", "auto", "q.tsv", as_table(HEADER, (30, "Which?", "=one", "two", "-3", "B", PNG)))[0] == 0
    )
    assert run_import("responses", "auto", "p.csv", "index,prediction\n1000030,A\n", "--model", "A")[0] == 0
    pope = '[{"question_id": 1, "image": "x.jpg", "text": "Is it?", "label": "no"}]'
    assert run_import("samples", "auto", "coco_pope_random.json", pope)[0] == 0
    assert run_import("samples", "auto", "alt/h.json", {"ann": {"P__Color": 3}})[0] == 0
    assert run_import("labels", "auto", "alt/h.json", {"ann": {"P__Color": 3}})[0] == 0
    assert run_import("judgments", "auto", "alt/llm_annotations.json", {"j": {"P__Color": 0}})[0] == 0
    parts = {
        "kind": "score",
        "sample": "0",
        "responses": [],
        "annotator": "x",
        "parts": [{"component": "1", "points": 0}],
    }
    assert run_import("labels", "generic", "parts.jsonl", json.dumps(parts))[0] == 0
    answered = {"kind": "score", "sample": "random-1", "responses": [], "annotator": "x", "answer": False}
    assert run_import("labels", "generic", "answers.jsonl", json.dumps(answered))[0] == 0


def everything():
    """All that is stored, by what it is, without ids and times."""
    responses = Response.objects.order_by("sample__key", "model__name", "variant")
    verdict = ("score", "choice", "ranking", "parts", "answer")
    return {
        "samples": [
            *Sample.objects.order_by("key").values(
                *"key instruction question_type options split source language group metadata absent_images".split(),
                "capability__path",
            )
        ],
        "images": [
            *SampleImage.objects.order_by("sample__key").values("sample__key", "position", "sha256", "source_url")
        ],
        "criteria": [
            (c.sample.key, c.key, c.position, c.kind, c.category, c.weight, c.shown_to, c.text)
            for c in Criterion.unguarded.select_related("sample").order_by("sample__key", "position")
        ],
        "responses": [*responses.values("sample__key", "model__name", "variant", "text", "status", "option_order")],
        "items": sorted(
            (i.kind, i.sample.key, *(str(r.model) for r in i.ordered_responses())) for i in Item.objects.all()
        ),
        "labels": [
            *Label.objects.order_by("annotator__name", "item__kind", "item__sample__key").values(
                "annotator__name", "campaign__name", "item__kind", "item__sample__key", *verdict
            )
        ],
        "judgments": [
            *Judgment.objects.order_by("item__kind", "item__sample__key").values(
                "run__judge__name",
                "run__protocol",
                "run__settings",
                "item__kind",
                "order",
                "status",
                "reason",
                *verdict,
            )
        ],
        "analyses": [j.analysis for j in Judgment.objects.order_by("item__kind", "item__sample__key")],
    }


@pytest.mark.parametrize("shape", ["jsonl", "csv", "parquet"])
def test_every_kind_comes_back_by_an_export_into_the_same_and_into_an_empty_bank(
    shape, run_import, manage, media, tmp_path
):
    fill(run_import)
    before = everything()
    assert {label["item__kind"] for label in before["labels"]} == {"score", "pair", "batch"}
    assert {row["status"] for row in before["judgments"]} == {"ok", "parse_failed"}
    assert {row[3] for row in before["criteria"]} == {"component", "answer_key"}
    why = ("--reason", "a test")
    jobs = [
        ("samples", "import_benchmark", ("--with-criteria", *why), ("--images", media)),
        ("responses", "import_responses", (), ()),
        ("labels", "import_labels", ("--names",), ()),
        ("judgments", "import_judgments", ("--with-analyses", *why), ()),
    ]
    for what, _, more, _ in jobs:
        out = tmp_path / f"out.{what}.{shape}"
        assert manage("export", what, "--benchmark", "b", "--format", shape, "--output", out, *more)[0] == 0
    for empty in (False, True):
        if empty:
            for table in (Label, Judgment, Sample, Benchmark):
                table._base_manager.all().delete()
        for what, command, _, more in jobs:
            out = tmp_path / f"out.{what}.{shape}"
            status, said, err = manage(command, "generic", out, "--benchmark", "b", *more)
            assert status == 0, err
            assert ("Made nothing new" in said) is not empty
            assert "bad row" not in err
        assert everything() == before


def test_a_submission_may_speak_in_the_words_of_its_format(run_import, people, tmp_path):
    rows = [(3, "Which?", "one", "two", "three", "B", PNG), (1_000_003, "Which?", "three", "one", "two", "C", 3)]
    rows.append((2_000_003, "Which?", "two", "three", "one", "A", 3))
    assert run_import("samples", "auto", "q.tsv", as_table(HEADER, *rows))[0] == 0
    benchmark = Benchmark.objects.get()
    path = tmp_path / "p.csv"
    path.write_text("index,prediction\n3,B\n1000003,C\n2000003,A\n")
    checked = check(path, benchmark=benchmark, rules=SubmissionRules(benchmark=benchmark), name="m")
    assert (checked.problems, checked.missing, checked.extra) == ([], [], [])
    assert (checked.responses, checked.circular) == (3, True)


PAIR = {"id": 1, "image_path": "image/7.png", "original_dataset": "coco", "instruction": "What is it?", "name": "m"}
MIA = {"image": "http://example.org/a/7.png", "instruction": "?", "type": "basic", "components": ["a"]}
MMBENCH = {"part": "MMBench", "lang": "en", "category": "Logic Reasoning: Future Prediction", "question": "Which?"}
# The file of each format that names a picture, and the path at which it expects it.
WITH_A_PICTURE = {
    "generic": ("samples.jsonl", {"key": "a", "instruction": "?", "images": ["pictures/dogs/7.png"]}, "pictures/dogs"),
    "mllm-bench": (
        "questions_with_criteria.json",
        [{"id": 7, "image_path": "./data/images/7.jpeg", "question": "?", "criteria": "A"}],
        "images",
    ),
    "mllm-as-a-judge": ("score.jsonl", PAIR | {"answer": "A dog.", "human": "4"}, "image"),
    "mia-bench": (
        "instruction_benchmark_all.json",
        [MIA | {"component_weight": [10], "component_type": ["describe"]}],
        "",
    ),
    "mmbench": (
        "samples_parsed.json",
        [MMBENCH | {"image": "MMBench/7.png", "hint": None, "options": {"A": "1", "B": "2"}, "answer": "A"}],
        "MMBench",
    ),
    "pope": (
        "coco_pope_random.json",
        {"question_id": 1, "image": "7.png", "text": "Is there a dog?", "label": "yes"},
        "",
    ),
    "alt-test": ("human_annotations.json", {"Ann": {"7__Blue": 3}}, "images"),
}
WITHOUT = {
    "llmfao",
    "promptfoo",
    "helm",
    "langfuse",
    "label-studio",
    "argilla",
    "pairs",
    "lmarena",
    "mt-bench",
    "lmms-eval",
    "inspect",
    "alpaca-eval",
    "preferences",
    "answers",
}


def test_every_format_is_known_to_name_pictures_or_not():
    assert WITH_A_PICTURE.keys() | WITHOUT == MODULES.keys()


@pytest.fixture
def apart(tmp_path):
    """``apart("pope")``: the file of a format, and a folder elsewhere with its picture where the file expects it."""

    def make(format):
        name, content, below = WITH_A_PICTURE[format]
        (tmp_path / "data").mkdir()
        (tmp_path / "data" / name).write_text(json.dumps(content), encoding="utf-8")
        start = tmp_path / "elsewhere"
        (start / below).mkdir(parents=True)
        (start / below / "7.png").write_bytes(picture())
        return tmp_path / "data" / name, start, start / below

    return make


@pytest.mark.parametrize("format", WITH_A_PICTURE)
@pytest.mark.parametrize("place", ["where the paths start", "that holds the pictures"])
def test_images_may_be_the_folder_that_paths_start_from_or_the_one_with_the_pictures(
    format, place, apart, manage, media
):
    file, start, holding = apart(format)
    folder = start if place == "where the paths start" else holding
    status, _, err = manage("import_benchmark", format, file, "--benchmark", "b", "--images", folder)
    assert (status, "missing" in err) == (0, False)
    assert Sample.objects.get().images.count() == 1
    again = manage("import_benchmark", format, file, "--benchmark", "b", "--images", start)
    assert (again[0], "1 was there already" in again[1]) == (0, True)


@pytest.mark.parametrize("format", WITH_A_PICTURE)
@pytest.mark.parametrize("dry", [(), ("--dry-run",), ("--skip-bad",)])
def test_a_folder_with_none_of_the_pictures_is_refused_and_nothing_is_written(
    format, dry, apart, manage, tmp_path, media
):
    file, _, _ = apart(format)
    (tmp_path / "wrong").mkdir()
    for folder in ("wrong", "nowhere"):
        more = ("--benchmark", "b", "--images", tmp_path / folder, *dry)
        status, out, err = manage("import_benchmark", format, file, *more)
        assert (status, out) == (2, "")
        assert f"{folder} does not hold the picture that the file names. Nothing was written." in err
    assert not Benchmark.objects.exists()


def test_pictures_that_no_folder_was_given_for_may_all_be_missing(apart, manage):
    file, _, _ = apart("pope")
    status, _, err = manage("import_benchmark", "pope", file, "--benchmark", "b")
    assert (status, "'7.png': the picture is missing" in err) == (0, True)


def test_two_pictures_of_one_name_in_two_folders_never_become_one(folder, manage):
    rows = [{"key": name, "instruction": "?", "images": [f"{name}/7.png"]} for name in ("dogs", "cats")]
    (folder.root / "dogs").mkdir()
    (folder.root / "dogs" / "7.png").write_bytes(picture())
    file = folder("samples", rows)
    status, _, err = manage("import_benchmark", "generic", file, "--benchmark", "b", "--images", folder.root / "dogs")
    assert (status, "line 2: images.0: 'cats/7.png': no such file" in err) == (1, True)
