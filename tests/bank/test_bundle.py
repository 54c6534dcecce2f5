"""Everything that a file, folder or zip holds, in one go: all of it or nothing."""

import io
import zipfile
from types import ModuleType

import pytest

from annotations.models import Label
from bank.errors import BadInput
from bank.intake.formats.reading import BadFile, Row, Where, validated
from bank.intake.formats.records import ResponseRecord, SampleRecord
from bank.intake.imports import Cancelled
from bank.intake.imports.engine import run_import
from bank.intake.imports.sources import inspect
from bank.models import Benchmark, EvaluatedModel, Item, Response, Sample
from judging.models import Judgment
from tests.bank.conftest import RESPONSES, SAMPLES, picture

pytestmark = pytest.mark.django_db

LABELS = [
    {"kind": "pair", "sample": "a", "responses": ["m1", "m2"], "annotator": "ann", "choice": "first"},
    {"kind": "pair", "sample": "a", "responses": ["m2", "m1"], "annotator": "bo", "choice": "first"},
]
JUDGMENTS = [
    {"kind": "pair", "sample": "a", "responses": ["m1", "m2"], "judge": "j", "order": order, "choice": "tie"}
    for order in (["m1", "m2"], ["m2", "m1"])
]
PARTS = ("samples", "responses", "judgments", "labels")


@pytest.fixture
def whole(folder):
    """A folder with all four parts and a picture."""
    (folder.root / "boats.png").write_bytes(picture())
    for name, rows in zip(PARTS, (SAMPLES, RESPONSES, JUDGMENTS, LABELS), strict=True):
        folder(name, rows)
    return folder.root


def zipped(root, *, into, inside=""):
    with zipfile.ZipFile(into, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(root.iterdir()):
            archive.write(file, inside + file.name)
    return into


def counts():
    return [table.objects.count() for table in (Benchmark, Sample, EvaluatedModel, Response, Item, Judgment, Label)]


def files(media):
    return sorted(path.name for path in media.rglob("*") if path.is_file())


def test_a_folder_comes_in_whole_and_again_changes_nothing(whole, media):
    assert (inspect(whole).format, inspect(whole).parts) == ("generic", PARTS)
    reports = run_import(path=whole, slug="new")
    assert [p for r in reports.values() for p in r.problems] == []
    assert list(reports) == list(PARTS)
    assert counts() == [1, 2, 3, 6, 1, 2, 2]
    assert dict(Label.objects.values_list("annotator__name", "choice")) == {"ann": "first", "bo": "second"}
    assert len(files(media)) == 1
    again = run_import(path=whole, slug="new")
    assert [report.unchanged for report in again.values()] == [2, 6, 2, 2]
    assert counts() == [1, 2, 3, 6, 1, 2, 2]


def test_a_dry_run_counts_on_what_earlier_parts_would_make(whole, media):
    dry = run_import(path=whole, slug="new", dry_run=True)
    assert [report.problems for report in dry.values()] == [[], [], [], []]
    assert not files(media)
    assert counts() == [0] * 7
    real = run_import(path=whole, slug="new")
    assert [report.made for report in dry.values()] == [report.made for report in real.values()]


def test_a_fault_in_the_last_part_keeps_the_first_out(whole, folder, media):
    folder("labels", [*LABELS, LABELS[0] | {"annotator": "cy", "responses": ["m1", "m9"]}])
    reports = run_import(path=whole, slug="new")
    assert [str(problem) for problem in reports["labels"].problems] == [
        "labels.jsonl, line 3: responses: unknown model 'm9': it has no response in new@1"
    ]
    assert counts() == [0] * 7
    assert not files(media)


def test_what_a_bad_row_would_have_made_is_missed_by_the_rows_that_need_it(whole, folder):
    folder("samples", [SAMPLES[0], SAMPLES[1] | {"images": ["nowhere.png"]}])
    reports = run_import(path=whole, slug="new", skip_bad=True)
    assert {str(p).split(": ", 1)[1] for p in reports["responses"].problems} == {"sample: no sample 'b' in new@1"}
    assert reports["responses"].bad == 3
    assert counts() == [1, 1, 3, 3, 1, 2, 2]


@pytest.mark.parametrize("asked", range(9))
def test_a_cancelled_import_leaves_nothing(asked, whole, media):
    answers = iter([False] * asked)
    with pytest.raises(Cancelled):
        run_import(path=whole, slug="new", cancelled=lambda: next(answers, True))
    assert counts() == [0] * 7
    assert not files(media)


def test_a_zip_comes_in_like_its_folder(whole, tmp_path, media):
    path = zipped(whole, into=tmp_path / "all.zip", inside="top/")
    assert inspect(path).parts == PARTS
    run_import(path=path, slug="new")
    assert counts() == [1, 2, 3, 6, 1, 2, 2]
    assert [name[-4:] for name in files(media)] == [".png"]


def test_a_zip_may_hold_one_data_file_of_any_name_beside_its_pictures(tmp_path, manage):
    path = tmp_path / "mine.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("my samples.csv", "key,instruction,images\na,How many?,pictures/one.png\n")
        archive.writestr("pictures/one.png", picture())
        archive.writestr("notes.md", "# Notes")
    assert manage("import_benchmark", "auto", path, "--benchmark", "mine", "--public")[0] == 0
    assert Sample.objects.get().images.count() == 1


def test_parts_are_chosen_and_named(whole):
    assert list(run_import(path=whole, slug="new", parts=["responses", "samples"])) == ["samples", "responses"]
    with pytest.raises(BadInput, match="not a part of an import"):
        run_import(path=whole, slug="new", parts=["everything"])
    with pytest.raises(BadInput, match="No benchmark 'other'"):
        run_import(path=whole, slug="other", parts=["labels"])
    with pytest.raises(BadInput, match="is not a slug"):
        run_import(path=whole, slug="a b")


def test_errors_speak_of_the_archive_and_not_of_where_it_was_unpacked(tmp_path, media):
    path = tmp_path / "odd.zip"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("readme.txt", "nothing here")
    path.write_bytes(buffer.getvalue())
    with pytest.raises(BadFile, match=r"^odd.zip: is in no format known here"):
        run_import(path=path, slug="new")
    assert not files(media)


def test_answers_that_name_a_picture_or_a_rotation_find_samples_that_are_only_coming(tmp_path, media):
    """As MIA-Bench and MMBench name them."""
    pictured = {"key": "p", "instruction": "?", "images": [{"url": "https://example.org/1.jpg"}]}
    choice = {"key": "c", "instruction": "?", "options": {"A": "x", "B": "y"}}
    answers = [
        {"image_url": "https://example.org/1.jpg", "model": "m", "text": "!"},
        {"sample": "c", "rotation": 1, "model": "m", "text": "B"},
    ]
    module = ModuleType("odd")
    module.NAME = "odd"
    for name, record, rows in (("samples", SampleRecord, [pictured, choice]), ("responses", ResponseRecord, answers)):
        found = [Row(Where("odd", number), row) for number, row in enumerate(rows, start=1)]
        setattr(module, name, lambda path, found=found, record=record: validated(found, record))
    for dry_run in (True, False):
        reports = run_import(path=tmp_path, format=module, slug="odd", dry_run=dry_run)
        assert [str(problem) for report in reports.values() for problem in report.problems] == []
    assert set(Response.objects.values_list("sample__key", "variant")) == {("p", ""), ("c", "circular-1")}
