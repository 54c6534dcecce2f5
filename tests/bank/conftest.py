"""Small files of the generic format, made by the tests."""

import csv
import io
import json

import pytest
from django.core.management import CommandError, call_command
from PIL import Image

from bank.intake.imports.engine import run_import
from bank.models import Benchmark, Item, Response, Sample
from tests.once import once


def picture(*, kind="PNG", size=(32, 24), colour="teal"):
    """Bytes of a small picture."""
    out = io.BytesIO()
    Image.new("RGB", size, colour).save(out, kind)
    return out.getvalue()


@pytest.fixture
def folder(tmp_path, media):
    """Writes rows as a generic file into a folder: ``folder("samples", rows)`` gives the file's path."""
    root = tmp_path / "bench"
    root.mkdir()

    def write(what, rows, *, name=None, raw=None):
        path = root / (name or f"{what}.jsonl")
        if raw is not None:
            path.write_bytes(raw)
        else:
            path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
        return path

    write.root = root
    return write


@pytest.fixture
def write(tmp_path):
    """Writes JSON Lines, one JSON value (.json) or a table (.tsv, .csv) by the ending of the name; text as it is."""

    def make(name, content):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            text = content
        elif name.endswith(".jsonl"):
            text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in content)
        elif name.endswith((".tsv", ".csv")):
            out = io.StringIO()
            columns = list(dict.fromkeys(column for row in content for column in row))
            delimiter = "\t" if name.endswith(".tsv") else ","
            table = csv.DictWriter(out, columns, delimiter=delimiter, quoting=csv.QUOTE_ALL)
            table.writeheader()
            table.writerows(content)
            text = out.getvalue()
        else:
            text = json.dumps(content, ensure_ascii=False)
        path.write_text(text, encoding="utf-8")
        return path

    return make


@pytest.fixture
def twice(db, media):
    """Imports a file or folder twice: how many samples, responses and items there are after the first time, and no more
    after the second.
    """

    def bring(path, **options):
        made = []
        for _ in range(2):
            reports = run_import(path=path, slug="b", **options)
            assert [str(problem) for report in reports.values() for problem in report.problems] == []
            made.append([table.objects.count() for table in (Sample, Response, Item)])
        assert made[0] == made[1]
        return made[0]

    return bring


@pytest.fixture
def manage(db, capsys):
    """Runs a management command: (exit status, standard output, standard error)."""

    def run(*arguments):
        capsys.readouterr()
        try:
            call_command(*map(str, arguments))
            status = 0
        except CommandError as error:
            print(error, file=__import__("sys").stderr)
            status = error.returncode
        out = capsys.readouterr()
        return status, out.out, out.err

    return run


SAMPLES = [
    {
        "key": "a",
        "instruction": "How many boats?",
        "images": ["boats.png"],
        "level": "Perception",
        "question_type": "closed-ended",
        "criteria": [{"kind": "exact_reference", "text": "Three boats."}, {"text": "Says where they lie."}],
    },
    {"key": "b", "instruction": "Write a poem.", "capability": ["Creation", "Poetry"], "criteria": []},
]
RESPONSES = [
    {"sample": key, "model": model, "text": f"{model} on {key}"} for key in ("a", "b") for model in ("m1", "m2", "m3")
]


@pytest.fixture
def small(folder, manage):
    """A small benchmark ``small`` with responses, imported by the commands."""
    (folder.root / "boats.png").write_bytes(picture())
    rows, answers = folder("samples", SAMPLES), folder("responses", RESPONSES)

    def make():
        assert manage("import_benchmark", "generic", rows, "--benchmark", "small", "--public")[0] == 0
        assert manage("import_responses", "generic", answers, "--benchmark", "small")[0] == 0
        return Benchmark.objects.get(slug="small")

    return once("small", make)
