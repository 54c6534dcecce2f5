"""Files of other tools that nothing here reads: each is refused whole and in words, by whichever command."""

import io
import json
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.bank.conftest import picture
from tests.bank.test_imports import counts

COMMANDS = ("import_benchmark", "import_responses", "import_labels", "import_judgments")
UNKNOWN = "is in no format known here"


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def turns(said):
    return [{"role": "user", "content": "Name a colour."}, {"role": "assistant", "content": said}]


def workbook():
    """As much of an Excel workbook as tells that it is one."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("xl/workbook.xml", "<workbook/>")
    return out.getvalue()


def pictures():
    """A table as the Hugging Face Hub keeps pictures: bytes beside their path."""
    out = io.BytesIO()
    images = [{"bytes": picture(), "path": "a.png"}]
    pq.write_table(pa.table({"question": ["What is it?"], "image": images, "options": ["['a', 'b']"]}), out)
    return out.getvalue()


def task(data, **annotation):
    """A task of Label Studio with one annotation."""
    return json.dumps(
        [{"id": 7, "data": data, "predictions": [286], "annotations": [{"id": 1, **annotation}]}]
    ).encode()


LEFT = {"from_name": "comparison", "to_name": ["answer1", "answer2"], "type": "pairwise", "value": {"selected": "left"}}
ITEM = {"sample": "a", "models": ["m1", "m2"]}
TEXTS = {"text1": "Red.", "text2": "Blue."}

# By name: the file, its content, and what is said where its format is to be found out.
FILES = {
    "comparisons without answers": (
        "own.csv",
        b"prompt,model_a,model_b,winner\nName a colour.,m1,m2,model_a\n",
        UNKNOWN,
    ),
    "pictures in Parquet": ("train.parquet", pictures(), UNKNOWN),
    "a workbook": ("model-x_MMBench.xlsx", workbook(), "is no readable Excel workbook"),
    "a task that names no sample": ("texts.json", task(TEXTS, completed_by=3, result=[LEFT]), "sample: is empty"),
    "a label by nobody": ("nobody.json", task(ITEM, result=[LEFT]), "annotator: is missing; name it with --annotator"),
    "a label that says nothing": ("empty.json", task(ITEM, completed_by=3, result=[]), "the label holds no verdict"),
    "a question of another name": (
        "argilla.json",
        json.dumps(
            [
                {"id": "a", "fields": {"prompt": "Name a colour."}, "metadata": {"models": ["m1", "m2"]}}
                | {"responses": {"better": [{"user_id": "u1", "value": "By far.", "status": "submitted"}]}}
            ]
        ).encode(),
        "the question 'better' may mean several things",
    ),
}
LABELS = ("a task that names no sample", "a label by nobody", "a label that says nothing", "a question of another name")


@pytest.mark.parametrize("name", FILES)
def test_what_no_reader_reads_is_refused_in_words_and_nothing_of_it_is_stored(name, small, folder, manage):
    file, content, words = FILES[name]
    path = folder("", [], name=file, raw=content)
    before = counts()
    told = {}
    for command in COMMANDS:
        target = ("--benchmark", "new" if command == "import_benchmark" else "small")
        more = ("--model", "model-x") if command == "import_responses" else ()
        for format_name in ("auto", "generic"):
            status, _, told[command, format_name] = manage(command, format_name, path, *target, *more)
            assert status == 1, (command, format_name)
            assert told[command, format_name].strip()
    command = "import_labels" if name in LABELS else "import_benchmark"
    assert words in told[command, "auto"]
    assert counts() == before
