"""Samples and responses brought in by a process of its own: ``python -m tests.bench.importing FOLDER``.

Prints CPU seconds by part and the most memory that the process ever held, in MB, as JSON.
"""

import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

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


def main(folder: Path) -> None:
    import django

    django.setup()
    from bank.imports import samples  # noqa: F401 (what a process loads once is no part of an import)
    from bank.imports.bundle import bring
    from tests.bench.parts import database

    found: dict[str, float] = {}
    with database():
        for part in PARTS:
            start = time.process_time()
            report = bring(path=folder, slug="large", parts=[part])[part]
            found[part] = time.process_time() - start
            assert report.written, report.problems[:3]
        found["megabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(found))


if __name__ == "__main__":
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    os.environ.setdefault("EVALSITE_DATA", tempfile.mkdtemp(prefix="evalsite-bench-"))
    main(Path(sys.argv[1]))
