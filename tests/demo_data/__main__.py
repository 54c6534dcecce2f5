"""Write the files of the demo anew, after a change of how it is simulated: ``python -m tests.demo_data``."""

import json
import os
import tempfile

os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
os.environ.setdefault("EVALSITE_DATA", tempfile.mkdtemp(prefix="evalsite-demo-"))

import django

django.setup()

from evalsite.demo import recipes  # noqa: E402 (needs the settings)
from evalsite.demo.loader import FOLDER, write_rows  # noqa: E402
from tests.bench.parts import database  # noqa: E402
from tests.demo_data import shapes, simulation  # noqa: E402


def main() -> None:
    write_rows(FOLDER / "labels.jsonl.gz", simulation.labels())
    write_rows(FOLDER / "judgments.jsonl.gz", simulation.judgments())
    write_rows(FOLDER / "reviews.jsonl.gz", simulation.reviews())
    write_rows(recipes.FOLDER / "samples.jsonl", shapes.samples(recipes.FOLDER))
    with database():
        recipes.load_questions(None)
        write_rows(recipes.ANSWERS, shapes.answers())
        recipes.load_answers()
        recipes.MARKS.write_text(json.dumps(shapes.marks(), ensure_ascii=False) + "\n", encoding="utf-8")


main()
