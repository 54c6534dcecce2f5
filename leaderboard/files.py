"""Rows of a board as files (CSV, JSON, JSON Lines, Parquet) and as text for a terminal."""

import csv
import io
import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from django.core.management.base import BaseCommand
from django.http import Http404, HttpResponse
from django.utils.text import get_valid_filename
from rich.console import Console
from rich.table import Table

from bank.intake import parquet
from leaderboard.rows import JSON, SUFFIXES, columns_of, flat

TYPES = {
    "csv": "text/csv; charset=utf-8",
    "json": "application/json; charset=utf-8",
    "jsonl": "application/jsonl; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
}


def offered() -> list[str]:
    """The file formats that are available here."""
    return [shape for shape in TYPES if shape != "parquet" or parquet.available()]


def answer(rows: list[JSON], shape: str, stem: str) -> HttpResponse:
    """Rows as a file to download; 404 for an unknown format, 501 if the package for it is missing."""
    if shape not in TYPES:
        raise Http404("no such shape")
    if shape == "parquet" and not parquet.available():
        return parquet.refusal()
    if shape == "json":
        return as_json(rows, stem)
    if shape == "parquet":
        return _file(as_parquet(rows), shape, stem)
    return _file((csv_text if shape == "csv" else json_lines)(rows).encode(), shape, stem)


def as_json(data: Any, stem: str) -> HttpResponse:
    return _file(json.dumps(data, ensure_ascii=False, indent=1).encode(), "json", stem)


def _file(body: bytes, shape: str, stem: str) -> HttpResponse:
    response = HttpResponse(body, content_type=TYPES[shape])
    response["Content-Disposition"] = f'attachment; filename="{get_valid_filename(stem)}.{shape}"'
    return response


def csv_text(rows: list[JSON]) -> str:
    """One level deep; see ``rows.flat``."""
    cells = [flat(row) for row in rows]
    out = io.StringIO()
    writer = csv.DictWriter(out, columns_of(cells), lineterminator="\n")
    writer.writeheader()
    writer.writerows(cells)
    return out.getvalue()


def json_lines(rows: list[JSON]) -> str:
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)


def as_parquet(rows: list[JSON]) -> bytes:
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


# ---- text for a terminal ----


Column = tuple[str, Callable[[JSON], str]]


def three(value: float | None, digits: int = 3) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def with_interval(row: JSON, name: str, digits: int = 3) -> str:
    """``0.943 [0.917, 0.962]``."""
    if row[name] is None:
        return "–"
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    interval = "" if low is None else f" [{three(low, digits)}, {three(high, digits)}]"
    return three(row[name], digits) + interval


def whole(value: float | None) -> str:
    return "–" if value is None else f"{value:g}"


def rank_of(row: JSON) -> str:
    if row["rank"] is None:
        return "–"
    if row.get("rank_low") in (None, row.get("rank_high")):
        return str(row["rank"])
    return f"{row['rank']} ({row['rank_low']}–{row['rank_high']})"


def wtl(numbers: JSON) -> str:
    """Wins/ties/losses, as the papers print them."""
    return "/".join(whole(numbers[name]) for name in ("wins", "ties", "losses"))


def level_column(level: str) -> Column:
    return level or "no level", lambda row: wtl(row["levels"][level])


def score_column(group: str, level: str) -> Column:
    return level or "no level", lambda row: three(row[group][level], 2)


def interval_column(name: str, label: str = "") -> Column:
    return label or name.replace("_", " "), lambda row: with_interval(row, name)


MODEL: list[Column] = [("rank", rank_of), ("model", lambda row: row["model"])]
N: Column = ("n", lambda row: str(row["n"]))


def columns(what: str, rows: list[JSON]) -> list[Column]:
    first = rows[0] if rows else {}
    if what == "models" and "score" in first:
        group = "categories" if "categories" in first else "levels"
        names = [name for name in first[group] if len(first[group]) > 1 or name]
        score: Column = ("score", lambda row: with_interval(row, "score", 2))
        return [*MODEL, score, N, *(score_column(group, name) for name in names)]
    if what == "models" and "vanilla" in first:
        steps = ("label", "judge", "random", "none", "no_text")
        column: Column = ("/".join(steps), lambda row: "/".join(str(row["extraction"][step]) for step in steps))
        return [*MODEL, *(interval_column(name) for name in ("circular", "vanilla", "difference")), N, column]
    if what == "models" and "accuracy" in first:
        names = ["accuracy", "precision", "recall", "f1", "yes_ratio"]
        return [*MODEL, *(interval_column(name) for name in names), N]
    if what == "models":
        levels = list(first["levels"]) if rows else []
        return [
            *MODEL,
            ("wins/ties/losses", wtl),
            ("win rate", lambda row: with_interval(row, "win_rate")),
            *(
                [("at equal length", lambda row: with_interval(row, "win_rate_lc"))]
                if any(row.get("win_rate_lc") is not None for row in rows)
                else []
            ),
            ("BT", lambda row: with_interval(row, "bt", 2)),
            ("Elo", lambda row: with_interval(row, "elo", 0)),
            ("n", lambda row: str(row["n"])),
            *(level_column(level) for level in levels if len(levels) > 1 or level),
        ]
    if what == "bias":
        return [
            ("judge", lambda row: row["judge"]),
            ("run", lambda row: "–" if row["run"] is None else str(row["run"])),
            ("bias", lambda row: row["bias"]),
            ("value", lambda row: with_interval(row, "value")),
            N,
        ]
    if what == "judges":
        return [
            ("judge", lambda row: row["judge"]),
            ("run", lambda row: str(row["run"])),
            ("data set", lambda row: row["source_dataset"]),
            ("reference", lambda row: row["reference"]),
            ("metric", lambda row: row["metric"]),
            ("value", lambda row: with_interval(row, "value")),
            ("n", lambda row: str(row["n"])),
        ]
    if what == "agreement":
        return [
            ("a", lambda row: row["a"]),
            ("b", lambda row: row["b"]),
            ("metric", lambda row: row["metric"]),
            ("value", lambda row: with_interval(row, "value")),
            ("agree", lambda row: str(row["agree"])),
            ("n", lambda row: str(row["n"])),
        ]
    names = columns_of(rows)
    ends = {f"{name}{end}" for name in names for end in SUFFIXES if end and f"{name}_low" in names}
    return [(name.replace("_", " "), partial(_cell, name=name)) for name in names if name not in ends]


def _cell(row: JSON, name: str) -> str:
    """The value of any column: a number with its interval, of a list how many it holds."""
    value = row.get(name)
    if f"{name}_low" in row:
        return with_interval(row, name)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return three(value) if value == 0 or abs(value) >= 0.0005 else f"{value:.0e}"
    if isinstance(value, dict | list):
        return str(len(value)) if isinstance(value, list) else json.dumps(value, ensure_ascii=False)
    return "–" if value is None else str(value)


PRINTED = ("table", "json", "jsonl", "csv")


def print_rows(
    command: BaseCommand,
    rows: list[JSON],
    shape: str,
    *,
    title: str,
    names: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> None:
    """Print rows as a command's output: as a table, of these columns alone if any are named, with notes below it."""
    if shape == "json":
        command.stdout.write(json.dumps(rows, ensure_ascii=False, indent=1))
    elif shape == "jsonl":
        command.stdout.write(json_lines(rows), ending="")
    elif shape == "csv":
        command.stdout.write(csv_text(rows), ending="")
    else:
        chosen = [{name: row[name] for name in names} for row in rows] if names else rows
        print_table(title, chosen, stream=command.stdout)
        for note in notes:
            command.stdout.write(note)


def print_table(what: str, rows: list[JSON], *, stream: Any) -> None:
    """Print the rows as a table, as wide as it needs to be unless the output is a terminal."""
    table_columns = columns(what, rows)
    table = Table(box=None, pad_edge=False)
    for name, _ in table_columns:
        table.add_column(name, no_wrap=True)
    for row in rows:
        table.add_row(*(cell(row) for _, cell in table_columns))
    terminal = hasattr(stream, "isatty") and stream.isatty()
    console = Console(file=stream, width=None if terminal else 1000, markup=False, highlight=False)
    console.print(table)
