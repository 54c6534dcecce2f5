"""VLMEvalKit's tables beyond one picture with options, and Excel workbooks, in which it writes its results.

In the shapes of MMVet.tsv, HallusionBench.tsv and MMMU_DEV_VAL.tsv as ``vlmeval/dataset`` reads them, and of the
results that ``vlmeval/inference.py`` dumps.
"""

import base64
import io
import zipfile
from datetime import date, datetime

import pytest
from openpyxl import Workbook

from bank.intake import formats
from bank.intake.formats import answers, mmbench
from bank.intake.formats.reading import BadFile, Problem, first_names, rows
from bank.intake.imports.sources import inspect
from bank.models import Response, SampleImage
from judging.models import Judgment
from tests.bank.conftest import picture
from tests.bank.test_formats import read

PNG = base64.b64encode(picture()).decode()
OPEN = {"index": "v1_0", "question": "What is x?", "answer": "-1<AND>-5", "category": "ocr,math", "image": PNG}
YES_NO = {
    "index": 4,
    "question": "Is it red?",
    "answer": "Yes",
    "category": "VD",
    "l2-category": "illusion",
    "image": PNG,
}
SEVERAL = {"index": 1, "question": "<image 1> or <image 2>?", "A": "one", "B": "two", "answer": "B", "category": "Art"}


@pytest.fixture
def workbook(tmp_path):
    """Writes rows as the first sheet of a workbook, after an empty one."""

    def make(name, *lines):
        book = Workbook()
        book.active.title = "empty"
        sheet = book.create_sheet("results")
        for line in lines:
            sheet.append(line)
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        book.save(path)
        return path

    return make


def test_open_questions_have_their_answer_as_key_and_names_as_indices(write):
    path = write("MMVet.tsv", [OPEN])
    assert formats.find("auto", path) is mmbench
    (sample,), bad, odd = read(mmbench.samples, path)
    assert (sample.key, sample.question_type, sample.answer) == ("v1_0", "open-ended", "-1<AND>-5")
    assert (sample.capability, sample.source, sample.options) == (["ocr,math"], "MMVet", {})
    assert sample.images[0].data == picture()
    assert (bad, odd) == ([], [])


def test_a_table_answered_by_yes_or_no_is_of_that_kind(write):
    samples, bad, _ = read(
        mmbench.samples, write("HallusionBench.tsv", [YES_NO, YES_NO | {"index": 5, "answer": "No"}])
    )
    assert [(s.question_type, s.answer, s.capability) for s in samples] == [
        ("yes-no", "yes", ["illusion", "VD"]),
        ("yes-no", "no", ["illusion", "VD"]),
    ]
    assert bad == []


@pytest.mark.parametrize("cell", [f'["{PNG}", "{PNG}"]', f"['{PNG}', '{PNG}']"])
def test_several_pictures_stand_in_a_cell_as_json_or_as_python_prints_them(cell, write, twice):
    path = write("MMMU_DEV_VAL.tsv", [SEVERAL | {"image": cell}])
    (sample,), bad, _ = read(mmbench.samples, path)
    assert ([image.data for image in sample.images], bad) == ([picture(), picture()], [])
    assert twice(path) == [1, 0, 0]
    assert SampleImage.objects.count() == 2


def test_paths_of_pictures_may_be_a_list_too(write):
    samples, *_ = read(mmbench.samples, write("t.tsv", [SEVERAL | {"image_path": "['a/1.png', 'a/2.png']"}]))
    assert [image.file for image in samples[0].images] == ["a/1.png", "a/2.png"]


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (OPEN | {"index": "1.5"}, "index: '1.5' is not a whole number"),
        (OPEN | {"image": "['8']"}, "image: '8' is neither base64 nor the index of a row with a picture"),
        (OPEN | {"image": "[" * 90}, "image: is not base64"),
        (OPEN | {"image": "[" * 90 + '"x"' + "]" * 90}, "image: is not base64"),
    ],
)
def test_a_question_that_cannot_be_read_is_told(row, told, write):
    samples, bad, _ = read(mmbench.samples, write("t.tsv", [row]))
    assert (samples, bad) == ([], [f"t.tsv, line 2: {told}"])


def test_predictions_in_a_workbook_come_in_as_they_are(workbook, write, twice):
    write("MMVet.tsv", [OPEN, OPEN | {"index": "v1_1"}])
    path = workbook("model-x_MMVet.xlsx", ["index", "question", "prediction"], ["v1_0", "?", "-1"], ["v1_1", "?", 2.0])
    assert formats.find("auto", path) is mmbench
    assert inspect(path).parts == ("responses",)
    assert [(r.sample, r.text) for r in read(mmbench.responses, path)[0]] == [("v1_0", "-1"), ("v1_1", "2")]
    twice(path.parent / "MMVet.tsv")
    assert twice(path, model="model-x") == [2, 2, 0]
    assert set(Response.objects.values_list("model__name", "text")) == {("model-x", "-1"), ("model-x", "2")}


def test_scores_beside_predictions_are_judgments_of_the_judge_that_is_named(workbook, write, manage, twice):
    twice(write("MMVet.tsv", [OPEN, OPEN | {"index": "v1_1"}, OPEN | {"index": "v1_2"}]))
    names = ["index", "prediction", "score", "log"]
    path = workbook("m_MMVet_gpt-4.xlsx", names, ["v1_0", "-1", 0.5, "Half."], ["v1_1", "2", True, None], ["v1_2", "x"])
    assert manage("import_responses", "auto", path, "--benchmark", "b", "--model", "m")[0] == 0
    more = ("--benchmark", "b", "--judge", "gpt-4")
    told = manage("import_judgments", "auto", path, *more)[2]
    assert "line 2: model: is missing; name it with --model" in told
    for _ in range(2):
        assert manage("import_judgments", "auto", path, *more, "--model", "m")[0] == 0
    found = Judgment.objects.values_list("item__sample__key", "run__judge__name", "score")
    assert set(found) == {("v1_0", "gpt-4", 0.5), ("v1_1", "gpt-4", 1.0)}


def test_hits_are_scores_and_those_of_circular_copies_are_left_out(write):
    rows = [
        {"index": n, "prediction": "A", "hit": hit, "log": "Match."} for n, hit in ((3, 1), (1_000_003, 0), (4, "?"))
    ]
    path = write("m_MMBench_gpt-4.csv", rows)
    judgments, bad, odd = read(formats.reader(mmbench, "judgments", {"model": "m"}), path)
    assert [(x.sample, x.score, x.analysis) for x in judgments] == [("3", 1.0, "Match.")]
    assert bad == ["m_MMBench_gpt-4.csv, line 4: hit: '?' is no number"]
    assert odd == ["m_MMBench_gpt-4.csv, line 3: index: is a circular copy, whose score is left out, here and below"]


def test_cells_of_a_workbook_are_text_as_in_csv(workbook):
    names = [" Prompt ", "model", "response", "score", "when", "day", "ok"]
    row = ["None", "m", "=1+1", 0.1, datetime.fromisoformat("2026-01-02T03:04:00"), date(2026, 1, 2), True]
    path = workbook("own.xlsx", names, row, [None] * 7, ["N/A", "m", "x", 3.0, None, None, None, "more"])
    assert first_names(path) == {"prompt", "model", "response", "score", "when", "day", "ok"}
    first, second = rows(path)
    assert first.data == {"prompt": "None", "model": "m", "score": "0.1", "when": "2026-01-02T03:04:00"} | {
        "day": "2026-01-02T00:00:00",
        "ok": "TRUE",
    }, "a formula whose value was never stored has none"
    assert str(second) == "own.xlsx, line 4: has more than the 7 cells of the header"
    assert formats.find("auto", path) is answers


def test_a_workbook_in_a_zip_is_read_too(workbook, tmp_path):
    path = workbook("in/own.xlsx", ["prompt", "model", "response"], ["?", "m", "x"])
    with zipfile.ZipFile(tmp_path / "own.zip", "w") as archive:
        archive.write(path, "own.xlsx")
    assert inspect(tmp_path / "own.zip").format == "answers"


SHEET = '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">{}</worksheet>'


def patched(path, part, content, method=zipfile.ZIP_DEFLATED):
    """The workbook with another content of one part."""
    out = io.BytesIO()
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(out, "w", method) as target:
        for info in source.infolist():
            target.writestr(info.filename, content if info.filename == part else source.read(info))
    path.write_bytes(out.getvalue())
    return path


@pytest.mark.check("C3", "C4")
@pytest.mark.parametrize(
    ("sheet", "told"),
    [
        (b" " * 2**24, "the Excel workbook would unpack to more than 250 times its size"),
        (b'<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>', "declares entities, which no workbook needs"),
        (b"<worksheet", "is no readable Excel workbook"),
        (SHEET.format('<dimension ref="A1:XFD1048576"/>').encode(), "without a sheet whose first row names columns"),
        (
            SHEET.format(
                "<sheetData>"
                '<row r="1"><c r="A1" t="str"><v>prompt</v></c></row>'
                '<row r="99999999"><c r="A99999999"><v>1</v></c></row>'
                "</sheetData>"
            ).encode(),
            "more than 10,000 blank lines",
        ),
        (
            SHEET.format('<sheetData><row r="1"><c r="ZZZ1" t="str"><v>x</v></c></row></sheetData>').encode(),
            "has more than 1,000 cells",
        ),
    ],
)
def test_a_hostile_workbook_is_refused_in_words(sheet, told, workbook):
    path = patched(workbook("own.xlsx", ["prompt"], ["?"]), "xl/worksheets/sheet2.xml", sheet)
    with pytest.raises(BadFile) as refused:
        list(rows(path))
    assert told in str(refused.value)
    with pytest.raises(BadFile):
        formats.find("auto", path)


NOISE = "".join(f"<!--{number}-->" for number in range(2_000))  # before what a look at the beginning would find
ENTITY = f'{NOISE}<!DOCTYPE x [<!ENTITY a "aaaa">]><worksheet>&a;</worksheet>'


@pytest.mark.parametrize(
    ("part", "content", "told"),
    [
        ("xl/worksheets/sheet2.xml", ENTITY.encode(), "declares entities"),
        ("xl/worksheets/sheet2.xml", f'<?xml version="1.0" encoding="UTF-16"?>{ENTITY}'.encode("utf-16"), "entities"),
        ("xl/styles.xml", b"<styleSheet>%s</styleSheet>" % (b"<xf/>" * 50_001), "more than 50,000 elements"),
        ("xl/theme/theme1.xml", b"<sst>%s</sst>" % (b"<si/>" * 2_621_441), "more than 2,621,440 elements"),
        ("xl/worksheets/sheet2.xml", b"<worksheet a='%s'/>" % (b"12345678" * 150_000), "a tag of more than 1 MB"),
        (
            "xl/worksheets/sheet2.xml",
            b"<worksheet><sheetData><row>%s</row></sheetData></worksheet>" % (b"<c><v>1</v></c>" * 2_001),
            "more than 1,000 cells in a row",
        ),
    ],
)
def test_a_workbook_that_would_fill_the_memory_is_refused_before_it_is_read(part, content, told, workbook, monkeypatch):
    path = patched(workbook("own.xlsx", ["prompt"], ["?"]), part, content, zipfile.ZIP_STORED)
    monkeypatch.setattr("openpyxl.load_workbook", None)
    with pytest.raises(BadFile, match=told):
        list(rows(path))


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9, 0.99])
def test_a_workbook_that_was_cut_off_is_refused(share, workbook):
    path = workbook("own.xlsx", ["prompt"], ["?"])
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(BadFile):
        assert all(isinstance(row, Problem) for row in rows(path))
