"""Parts of a folder brought in by a process of its own: ``python -m tests.bench.importing FOLDER [PART]...``.

Without parts, samples and responses. Prints CPU seconds by part and the most memory that the process ever held, in MB,
as JSON.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import combinations, islice
from pathlib import Path

from tests.bench.memory import most_memory

PARTS = ("samples", "responses")


def write(folder: Path, *, samples: int, models: int) -> None:
    """Files of so many samples, and a response of each model to each."""
    with (folder / "samples.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in _samples(samples))
    with (folder / "responses.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in _responses(samples, models))


def _samples(count: int) -> Iterator[dict[str, object]]:
    for number in range(count):
        yield {
            "key": f"s{number}",
            "instruction": f"Describe number {number} of the series and say what is odd about it. " * 3,
            "question_type": "open-ended",
            "capability": ["Perception", f"Skill {number % 42}"],
            "criteria": [{"kind": "guideline", "text": f"Names number {number} and says why it is odd."}],
        }


def _responses(samples: int, models: int) -> Iterator[dict[str, str]]:
    for model in range(models):
        for number in range(samples):
            text = f"What model {model} says of number {number}: it is odd, for it stands alone in its row. " * 3
            yield {"sample": f"s{number}", "model": f"model {model}", "text": text}


def write_judgments(folder: Path, *, samples: int, models: int, pairs: int | None = None, analysis: int = 140) -> int:
    """A file of both orders of every pair of those models, or of so many, for each of those samples, with analyses of
    so many characters; returns how many rows.
    """
    chosen = list(islice(combinations(range(models), 2), pairs))
    with (folder / "judgments.jsonl").open("w", encoding="utf-8") as file:
        for number in range(samples):
            for one, other in chosen:
                both = [f"model {one}", f"model {other}"]
                row = {"kind": "pair", "sample": f"s{number}", "judge": "J", "responses": both, "choice": "first"}
                if analysis:
                    said = f"What is odd about number {number} is said by the first, and left out by the other. "
                    row["analysis"] = (said * (analysis // len(said) + 1))[:analysis]
                file.writelines(json.dumps(row | {"order": order}) + "\n" for order in (both, both[::-1]))
    return 2 * len(chosen) * samples


def write_labels(folder: Path, *, samples: int, annotators: int) -> int:
    """A file of the labels of so many people on two pairs of each of those samples; returns how many rows."""
    with (folder / "labels.jsonl").open("w", encoding="utf-8") as file:
        for number in range(samples):
            for person in range(annotators):
                for both in (["model 0", "model 1"], ["model 2", "model 0"]):
                    row = {"kind": "pair", "sample": f"s{number}", "responses": both, "annotator": f"person {person}"}
                    at = f"2026-01-{number % 28 + 1:02}T10:{number % 60:02}:{person:02}+00:00"
                    choice = ("first", "second", "tie")[(number + person) % 3]
                    file.write(json.dumps(row | {"choice": choice, "seconds": 12.5, "at": at}) + "\n")
    return 2 * annotators * samples


def main(folder: Path, parts: Sequence[str]) -> None:
    """In a database that another process made: its migrations take more memory than an import, and no import waits
    for them."""
    import django

    django.setup()
    from django.db import connection

    from bank.intake.imports import samples  # noqa: F401 (what a process loads once is no part of an import)
    from bank.intake.imports.engine import run_import

    before = connection.settings_dict["NAME"]
    made = subprocess.run([sys.executable, "-m", __spec__.name], check=True, capture_output=True, text=True)
    connection.settings_dict["NAME"] = made.stdout.split()[-1]
    if connection.vendor == "sqlite":
        connection.settings_dict["OPTIONS"]["init_command"] += " PRAGMA cache_size=-65536;"  # as in production
    found: dict[str, float] = {}
    try:
        for part in parts:
            start = time.process_time()
            report = run_import(path=folder, slug="large", parts=[part])[part]
            found[part] = time.process_time() - start
            assert report.written, report.problems[:3]
        found["megabytes"] = most_memory()
    finally:
        connection.creation.destroy_test_db(before, verbosity=0)
    print(json.dumps(found))


def make_database() -> None:
    """Makes it, prints its name and leaves it."""
    import django

    django.setup()
    from django.db import connection
    from django.test.utils import setup_databases

    setup_databases(verbosity=0, interactive=False)
    print(connection.settings_dict["NAME"])


if __name__ == "__main__":
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    os.environ.setdefault("EVALSITE_DATA", tempfile.mkdtemp(prefix="evalsite-bench-"))
    main(Path(sys.argv[1]), sys.argv[2:] or PARTS) if sys.argv[1:] else make_database()
