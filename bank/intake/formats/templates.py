"""Files to start from: a few rows of comparisons, of answers and of each part of the ``generic`` format, which also
serve as examples of fields. They lie in ``examples``.
"""

import csv
import io
import json
from pathlib import Path
from typing import Any

from accounts.csv import escape

FOLDER = Path(__file__).with_name("examples")
ROWS: dict[str, list[dict[str, Any]]] = {
    file.stem: [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    for file in FOLDER.glob("*.jsonl")
}
ADDED = ("capability", "criteria")  # what a row is whole without
SHAPES = {"csv": "text/csv", "jsonl": "application/jsonl"}


def as_file(part: str, shape: str) -> str:
    """The rows of a part as a file, ``csv`` or ``jsonl``."""
    if shape == "jsonl":
        return (FOLDER / f"{part}.jsonl").read_text(encoding="utf-8")
    rows = ROWS[part]
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
