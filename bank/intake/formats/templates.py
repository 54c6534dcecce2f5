"""Files to start from: a few rows of comparisons, of answers and of each part of the ``generic`` format, which also
serve as examples of fields.
"""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

from accounts.csv import escape

Rows = Sequence[Mapping[str, Any]]

SAMPLES: Rows = [
    {
        "key": "cafe-bill",
        "instruction": "Two people split this bill and add a tip of 15%. How much does each pay?",
        "images": ["cafe-bill.jpg"],
        "capability": ["Reading", "Receipts"],
        "criteria": [{"text": "Adds the tip before dividing", "kind": "guideline", "shown_to": "staff"}],
    },
    {
        "key": "road-signs",
        "instruction": "Which way is the station?",
        "images": ["road-signs.jpg"],
        "capability": ["Reading", "Signs"],
        "criteria": [{"text": "Says left", "kind": "exact_reference", "shown_to": "staff"}],
    },
    {
        "key": "haiku",
        "instruction": "Write a haiku about this picture.",
        "images": ["harbour.jpg"],
        "capability": ["Writing"],
        "criteria": [{"text": "Three lines of 5, 7 and 5 syllables", "kind": "guideline", "shown_to": "campaign"}],
    },
]
RESPONSES: Rows = [
    {"sample": "cafe-bill", "model": "model-one", "text": "Each pays 22.54."},
    {"sample": "cafe-bill", "model": "model-two", "text": "Each pays 24.10."},
    {"sample": "road-signs", "model": "model-one", "text": "To the left."},
]
_PAIR = {"kind": "pair", "protocol": "pair", "sample": "cafe-bill", "responses": ["model-one", "model-two"]}
LABELS: Rows = [
    _PAIR | {"choice": "first", "annotator": "person-1", "seconds": 31.0},
    _PAIR | {"choice": "tie", "annotator": "person-2", "seconds": 24.5},
    _PAIR | {"choice": "first", "annotator": "person-3", "seconds": 40.0},
]
JUDGMENTS: Rows = [
    _PAIR | {"choice": "first", "judge": "judge-one", "order": ["model-one", "model-two"]},
    _PAIR | {"choice": "second", "judge": "judge-one", "order": ["model-two", "model-one"]},
    _PAIR | {"choice": "tie", "judge": "judge-two", "order": ["model-one", "model-two"]},
]
COMPARISONS: Rows = [
    {"prompt": prompt, "model_a": "model-one", "response_a": first, "model_b": "model-two", "response_b": second}
    | {"winner": winner, "annotator": person}
    for prompt, first, second, winner, person in (
        ("Name the capital of Kenya.", "Nairobi.", "It is Nairobi.", "tie", "person-1"),
        ("Name the capital of Peru.", "Lima.", "Cusco.", "model_a", "person-1"),
        ("Name the capital of Peru.", "Lima.", "Cusco.", "model_a", "person-2"),
    )
]
ANSWERS: Rows = [
    {"prompt": prompt, "model": model, "response": text, "score": score, "annotator": "person-1"}
    for prompt, model, text, score in (
        ("Name the capital of Kenya.", "model-one", "Nairobi.", 5),
        ("Name the capital of Kenya.", "model-two", "It is Nairobi.", 5),
        ("Name the capital of Peru.", "model-one", "Cusco.", 1),
    )
]
ROWS = {
    "pairs": COMPARISONS,
    "answers": ANSWERS,
    "samples": SAMPLES,
    "responses": RESPONSES,
    "labels": LABELS,
    "judgments": JUDGMENTS,
}
ADDED = ("capability", "criteria")  # what a row is whole without
SHAPES = {"csv": "text/csv", "jsonl": "application/jsonl"}


def as_file(part: str, shape: str) -> str:
    """The rows of a part as a file, ``csv`` or ``jsonl``."""
    rows = ROWS[part]
    if shape == "jsonl":
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    out = io.StringIO()
    table = csv.writer(out)
    table.writerow(rows[0])
    for row in rows:
        table.writerow(escape(v) if isinstance(v, str) else json.dumps(v, ensure_ascii=False) for v in row.values())
    return out.getvalue()


def example(part: str, field: str) -> str:
    """A value of this field as a file writes it, without a field a whole row; "" if the templates have none."""
    if not field:
        rows = ({name: row[name] for name in row if name not in ADDED} for row in ROWS.get(part, ()))
        return min((json.dumps(row, ensure_ascii=False) for row in rows), key=len, default="")
    name = field.split(".")[0]
    value = next((row[name] for row in ROWS.get(part, ()) if name in row), "")
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
