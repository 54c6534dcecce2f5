"""A small private benchmark of the demo, whose samples are on their way through review."""

import io
import json
from pathlib import Path
from typing import Any

from PIL import Image

from accounts.models import User
from bank import images
from bank.models import Benchmark, Sample
from bank.models.reviews import GUIDELINE
from bank.samples.benchmarks import make_benchmark
from bank.samples.editor import Picture, save_sample
from bank.samples.reviews import decide, give_review, open_round

SLUG = "household-drafts"
WORDS = {"source": "drawn for evalsite", "language": "en", "hint": "", "split": "", "group": "", "options": {}}
FIRST_ROUND = ("three-lamps-faulty", "bill-for-three", "which-desk", "tidy-desk", "next-departure", "mug-small")
FINE = {name: {"ok": True, "note": ""} for name in GUIDELINE}
VERDICTS = {
    "bill-for-three": ("revise", "cohesion", "Say whether the tip is part of the bill"),
    "next-departure": ("revise", "cohesion", "The question names the answer"),
    "mug-small": ("reject", "clarity", "Nothing on the mug can be read at this size"),
}


def load_drafts(*, folder: Path, people: dict[str, User]) -> None:
    """Eight samples by two people through a round of reviews, an expert's check and into a second round."""
    benchmark = make_benchmark(
        slug=SLUG,
        title="Household questions",
        description="Written for the demo, to show samples on their way through review.",
        licence="CC0 1.0",
        tree="mllm-bench",
    )
    rows = {row["key"]: row for row in json.loads((folder / "drafts" / "samples.json").read_text(encoding="utf-8"))}
    for key, row in rows.items():
        if key in FIRST_ROUND:
            _write(benchmark, row, folder, people)
    staff = [people["curator"], people["admin"]]
    first = open_round(by=people["admin"], benchmark=benchmark, samples=list(benchmark.samples.all()), reviewers=staff)
    for review in first.reviews.select_related("sample", "reviewer"):
        verdict, point, words = VERDICTS.get(review.sample.key, ("fine", "", ""))
        points = FINE | ({point: {"ok": False, "note": words}} if point else {})
        give_review(review=review, by=review.reviewer, verdict=verdict, points=points)
    decide(sample=benchmark.samples.get(key="three-lamps-faulty"), by=people["admin"], decision="approve")
    clearer = "Three of us share this bill in equal parts, and nobody tips. What does each of us pay, to the cent?"
    revised = benchmark.samples.get(key="bill-for-three")
    _revise(revised, clearer, rows["bill-for-three"], people["curator"])
    again = [revised, _write(benchmark, rows["recipe-order"], folder, people)]
    open_round(by=people["admin"], benchmark=benchmark, samples=again, reviewers=staff)
    _write(benchmark, rows["shadow-time"], folder, people)


def _criteria(row: dict[str, Any]) -> list[dict[str, Any]]:
    base = {"category": "", "weight": None, "shown_to": "staff"}
    return [base | {"key": str(n), "kind": k, "text": text} for n, (k, text) in enumerate(row["criteria"], start=1)]


def _write(benchmark: Benchmark, row: dict[str, Any], folder: Path, people: dict[str, User]) -> Sample:
    data = (folder / "images" / row["picture"]).read_bytes()
    if edge := row.get("shrink"):
        out = io.BytesIO()
        with Image.open(io.BytesIO(data)) as image:
            image.resize((edge, edge * image.height // image.width)).save(out, "PNG")
        data = out.getvalue()
    return save_sample(
        by=people[row["by"]],
        benchmark=benchmark,
        sample=None,
        edition=0,
        fields=WORDS | {name: row[name] for name in ("key", "instruction", "question_type")},
        capability=benchmark.capabilities.get(path=row["capability"]),
        pictures=[Picture(stored=images.ingest(data), description=row["description"])],
        criteria=_criteria(row),
    )


def _revise(sample: Sample, instruction: str, row: dict[str, Any], by: User) -> None:
    picture = sample.images.get()
    save_sample(
        by=by,
        benchmark=sample.benchmark,
        sample=sample,
        edition=sample.edition,
        fields=WORDS | {"key": sample.key, "instruction": instruction, "question_type": sample.question_type},
        capability=sample.capability,
        pictures=[Picture(pk=picture.pk, description=picture.description)],
        criteria=_criteria(row),
        note="The tip is out of it now.",
    )
