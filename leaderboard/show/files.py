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

from accounts.http import attached
from bank.intake import parquet
from leaderboard.rows import JSON, SUFFIXES, columns_of, flat
from stats.figures import NONE

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
    return _file(as_parquet(rows) if shape == "parquet" else TEXTS[shape](rows).encode(), shape, stem)


def as_json(data: Any, stem: str) -> HttpResponse:
    return _file(json_text(data).encode(), "json", stem)


def _file(body: bytes, shape: str, stem: str) -> HttpResponse:
    return attached(HttpResponse(body, content_type=TYPES[shape]), f"{get_valid_filename(stem)}.{shape}")


def csv_text(rows: list[JSON]) -> str:
    """One level deep; see ``rows.flat``."""
    cells = [flat(row) for row in rows]
    out = io.StringIO()
    writer = csv.DictWriter(out, columns_of(cells), lineterminator="\n")
    writer.writeheader()
    writer.writerows(cells)
    return out.getvalue()


def json_text(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, indent=1)


def json_lines(rows: list[JSON]) -> str:
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)


TEXTS: dict[str, Callable[[list[JSON]], str]] = {"json": json_text, "jsonl": json_lines, "csv": csv_text}


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


PrintedColumn = tuple[str, Callable[[JSON], str]]


def three(value: float | None, digits: int = 3) -> str:
    return NONE if value is None else f"{value:.{digits}f}"


def with_interval(row: JSON, name: str, digits: int = 3) -> str:
    """``0.943 [0.917, 0.962]``."""
    if row[name] is None:
        return NONE
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    interval = "" if low is None else f" [{three(low, digits)}, {three(high, digits)}]"
    return three(row[name], digits) + interval


def whole(value: float | None) -> str:
    return NONE if value is None else f"{value:g}"


def rank_of(row: JSON) -> str:
    if row["rank"] is None:
        return NONE
    if row.get("rank_low") in (None, row.get("rank_high")):
        return str(row["rank"])
    return f"{row['rank']} ({row['rank_low']}–{row['rank_high']})"


def wtl(numbers: JSON) -> str:
    """Wins/ties/losses, as the papers print them."""
    return "/".join(whole(numbers[name]) for name in ("wins", "ties", "losses"))


def interval_column(name: str, label: str = "", digits: int = 3) -> PrintedColumn:
    return label or name.replace("_", " "), lambda row: with_interval(row, name, digits)


def plain_column(name: str) -> PrintedColumn:
    return LABELS.get(name, name.replace("_", " ")), partial(_any_cell, name=name)


LABELS = {"source_dataset": "data set"}
# Of boards with more columns than a terminal has room for, those that are printed.
CHOSEN = {
    "judges": ("judge", "run", "source_dataset", "reference", "metric", "value", "n"),
    "agreement": ("a", "b", "metric", "value", "agree", "n"),
    "bias": ("judge", "run", "bias", "value", "n"),
}
# The numbers of models, by the one that tells the kind of board.
OF_MODELS = {
    "score": ("score",),
    "vanilla": ("circular", "vanilla", "difference"),
    "accuracy": ("accuracy", "precision", "recall", "f1", "yes_ratio"),
}
STATE = ("as_of", "kept_back")  # notes say it
STEPS = ("label", "judge", "random", "none", "no_text")  # in which the option of an answer is found


def columns(what: str, rows: list[JSON]) -> list[PrintedColumn]:
    """The columns in which a table is printed: all, or those that were chosen of it."""
    if what == "models":
        return _columns_of_models(rows)
    names = CHOSEN.get(what) or [name for name in columns_of(rows) if name not in STATE]
    ends: set[str] = set()
    for name in names:
        if f"{name}_low" in names:
            ends.update(f"{name}{end}" for end in SUFFIXES if end)
    return [plain_column(name) for name in names if name not in ends]


def _columns_of_models(rows: list[JSON]) -> list[PrintedColumn]:
    first = rows[0] if rows else {"levels": {}}
    model: list[PrintedColumn] = [("rank", rank_of), plain_column("model")]
    kind = next((name for name in OF_MODELS if name in first), "")
    if kind:
        digits = 2 if kind == "score" else 3
        model += [*(interval_column(name, digits=digits) for name in OF_MODELS[kind]), plain_column("n")]
    if kind == "score":
        return [*model, *_parts(first)]
    if kind == "vanilla":
        steps: PrintedColumn = ("/".join(STEPS), lambda row: "/".join(str(row["extraction"][step]) for step in STEPS))
        return [*model, steps]
    if kind:
        return model
    model += [("wins/ties/losses", wtl), interval_column("win_rate")]
    if any(row.get("win_rate_lc") is not None for row in rows):
        model.append(interval_column("win_rate_lc", "at equal length"))
    model += [interval_column("bt", "BT", 2), interval_column("elo", "Elo", 0), plain_column("n")]
    return [*model, *_parts(first)]


def _parts(first: JSON) -> list[PrintedColumn]:
    """A column for each level or category; none where the only one would repeat the whole."""
    group = "categories" if "categories" in first else "levels"

    def of_part(name: str) -> PrintedColumn:
        def cell(row: JSON) -> str:
            numbers = row[group][name]
            return wtl(numbers) if isinstance(numbers, dict) else three(numbers, 2)

        return name or "no level", cell

    return [of_part(name) for name in first[group] if len(first[group]) > 1 or name]


def _any_cell(row: JSON, name: str) -> str:
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
    return NONE if value is None else str(value)


PRINTED = ("table", *TEXTS)


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
    if shape in TEXTS:
        command.stdout.write(TEXTS[shape](rows), ending="\n" if shape == "json" else "")
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
