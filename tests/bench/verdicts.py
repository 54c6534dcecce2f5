"""Judgments and labels in and out, beside parsing their files, and the start of a command."""

import json
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from django.db import connection

from tests.bench import importing
from tests.bench.parts import Result, cpu, cpus, database, without_data

SAMPLES, MODELS, PAIRS, PEOPLE = 10_000, 11, 50, 5
ANALYSIS = 500  # characters
EXPORTED = 10_000  # labels
START = 0.8  # seconds of CPU until a command is at work


def verdicts() -> Iterator[Result]:
    folder = Path(tempfile.mkdtemp(prefix="evalsite-bench-"))
    try:
        importing.write(folder, samples=SAMPLES, models=MODELS)
        labels = importing.write_labels(folder, samples=SAMPLES, annotators=PEOPLE)
        for analysis in (0, ANALYSIS):
            importing.write_judgments(folder, samples=SAMPLES, models=MODELS, pairs=PAIRS, analysis=analysis)
            parts = ["samples", "responses", "judgments", *([] if analysis else ["labels"])]
            command = [sys.executable, "-m", "tests.bench.importing", str(folder), *parts]
            done = subprocess.run(command, check=True, capture_output=True, text=True, env=without_data())
            measured = json.loads(done.stdout.splitlines()[-1])
            parsed = cpu(partial(_parse, folder / "judgments.jsonl"), best_of=2)
            words = f"with analyses of {analysis} characters" if analysis else "without analyses"
            yield Result(f"1 M judgments {words}, beside json.loads", parsed, measured["judgments"], 20)
            if not analysis:
                yield Result(f"{labels:,} labels, beside 20,000 a second", labels / 20_000, measured["labels"], 1)
            yield Result("  most memory of that process", 300, measured["megabytes"], 1, unit="MB")
        yield from _exported(folder)
        yield Result("a command at work, beside 0.8 s of CPU", START, min(_started() for _ in range(3)), 1)
    finally:
        shutil.rmtree(folder)


def _parse(file: Path) -> None:
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            json.loads(line)


def _exported(folder: Path) -> Iterator[Result]:
    """Labels of a part of the samples, written as JSON Lines."""
    import orjson

    from bank.intake import exports
    from bank.intake.imports.engine import run_import
    from bank.models import Benchmark

    importing.write(folder, samples=EXPORTED // (2 * PEOPLE), models=3)
    importing.write_labels(folder, samples=EXPORTED // (2 * PEOPLE), annotators=PEOPLE)
    with database():
        run_import(path=folder, slug="labelled", parts=["samples", "responses", "labels"])
        benchmark = Benchmark.objects.get()
        asked = exports.ExportRequest()

        def made() -> bytes:
            return b"".join(exports.file_pieces(what="labels", shape="jsonl", benchmark=benchmark, asked=asked))

        rows = [orjson.loads(line) for line in made().splitlines()]
        dumped, taken = cpus(lambda: [orjson.dumps(row) for row in rows], made)
        yield Result("export labels, beside orjson.dumps of the rows", dumped, taken, 12)
    connection.close()


def _started() -> float:
    """CPU seconds of a command that finds nothing to do."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "manage.py", "make_items", "pair", "--benchmark", "none"]
    subprocess.run(command, capture_output=True, env=without_data() | {"DJANGO_SETTINGS_MODULE": "tests.settings"})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
