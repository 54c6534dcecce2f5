"""Rows of a board as files: CSV, JSON, Parquet."""

import csv
import io
import json
from typing import Any

from django.http import Http404, HttpResponse
from django.utils.text import get_valid_filename

from bank.intake import parquet
from leaderboard.rows import columns_of, flat

TYPES = {
    "csv": "text/csv; charset=utf-8",
    "json": "application/json; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
}
Row = dict[str, Any]


def offered() -> list[str]:
    """The shapes that can be made here."""
    return [shape for shape in TYPES if shape != "parquet" or parquet.available()]


def answer(rows: list[Row], shape: str, stem: str) -> HttpResponse:
    """Rows as a file to download; 404 for a shape that there is not, 501 for one that a package is missing for."""
    if shape not in TYPES:
        raise Http404("no such shape")
    if shape == "parquet" and not parquet.available():
        return parquet.refusal()
    if shape == "json":
        return as_json(rows, stem)
    return _file(csv_text(rows).encode() if shape == "csv" else as_parquet(rows), shape, stem)


def as_json(data: Any, stem: str) -> HttpResponse:
    return _file(json.dumps(data, ensure_ascii=False, indent=1).encode(), "json", stem)


def _file(body: bytes, shape: str, stem: str) -> HttpResponse:
    made = HttpResponse(body, content_type=TYPES[shape])
    made["Content-Disposition"] = f'attachment; filename="{get_valid_filename(stem)}.{shape}"'
    return made


def csv_text(rows: list[Row]) -> str:
    """One level deep; see ``rows.flat``."""
    cells = [flat(row) for row in rows]
    out = io.StringIO()
    writer = csv.DictWriter(out, columns_of(cells), lineterminator="\n")
    writer.writeheader()
    writer.writerows(cells)
    return out.getvalue()


def as_parquet(rows: list[Row]) -> bytes:
    """The same columns as the CSV; a column that holds text and numbers is text."""
    pa, pq = parquet.load()
    cells = [flat(row) for row in rows]
    columns: dict[str, Any] = {}
    for name in columns_of(cells):
        values = [cell.get(name) for cell in cells]
        kinds = {type(value) for value in values if value is not None}
        if str in kinds and len(kinds) > 1:
            values = [None if value is None else str(value) for value in values]
        elif kinds == {int, float}:
            values = [None if value is None else float(value) for value in values]
        columns[name] = pa.array(values)
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out)
    return out.getvalue()
