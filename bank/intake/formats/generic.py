"""The project's own format: JSON Lines, and CSV or Parquet with the same names (lists and objects as JSON text)."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from accounts.csv import unescape
from bank.intake.formats.reading import (
    BadFile,
    Problem,
    Row,
    chosen_files,
    existing,
    kind_of,
    parse_json,
    rows,
    validated,
)
from bank.intake.formats.records import (
    JudgmentRecord,
    LabelRecord,
    ModelRecord,
    RecipeResponseRecord,
    ResponseRecord,
    SampleRecord,
)
from bank.intake.formats.wide import Read

Complete = Callable[[dict[str, Any]], dict[str, Any]]
NAME = "generic"
TITLE = "Project's own (JSON Lines, CSV, Parquet)"
LOOKED_AT = 50
FILES = {
    "samples": ("samples.jsonl", "samples.csv", "samples.parquet", "data/samples.parquet"),
    "responses": ("responses.jsonl", "responses.csv", "responses.parquet", "data/responses.parquet"),
    "recipe_responses": (
        "recipe_responses.jsonl",
        "recipe_responses.csv",
        "recipe_responses.parquet",
        "data/recipe_responses.parquet",
    ),
    "labels": ("labels.jsonl", "labels.csv", "labels.parquet", "data/labels.parquet"),
    "judgments": ("judgments.jsonl", "judgments.csv", "judgments.parquet", "data/judgments.parquet"),
}
RECORDS: dict[str, type[BaseModel]] = {
    "samples": SampleRecord,
    "responses": ResponseRecord,
    "recipe_responses": RecipeResponseRecord,
    "labels": LabelRecord,
    "judgments": JudgmentRecord,
}
# How the text cells of a table become values.
LISTS = frozenset(
    """images capability options criteria metadata option_order responses ranking parts spans flags order
    settings revisions likelihoods compared""".split()
)
FLOATS = frozenset({"score", "preference", "seconds", "confidence", "cost"})
INTEGERS = frozenset(["tokens", "situation", "grade", "repeat", "turn", "prompt_tokens", "completion_tokens"])
BOOLEANS = frozenset({"answer", "agree", "hallucination", "simulated", "changed_late"})


def recognises(path: Path) -> bool:
    """Whether a row of this file has the names of the format."""
    return bool(parts(path))


def parts(path: Path) -> tuple[str, ...]:
    """The parts of a folder, by the names of its files; of a file, by the names in its first good row."""
    if path.is_dir() and (named := _named(path)):
        return named
    try:
        first = next((row for row in islice(rows(path), LOOKED_AT) if isinstance(row, Row)), None)
    except BadFile:
        return ()
    names = set(first.data) if first else set()
    if {"key", "instruction"} <= names:
        return ("samples",)
    if {"kind", "sample"} <= names:
        return ("labels",) if "annotator" in names else ("judgments",)
    if {"recipe", "sample"} <= names:
        return ("recipe_responses",)
    return ("responses",) if {"sample", "text"} <= names else ()


def samples(path: Path, read: Read | None = None) -> Iterator[Row | Problem]:
    """``read``, here and below: what gives the rows of another file under the names of this format."""
    return _read(path, "samples", read=read)


def responses(path: Path, read: Read | None = None) -> Iterator[Row | Problem]:
    return _read(path, "responses", read=read)


def recipe_responses(path: Path) -> Iterator[Row | Problem]:
    return _read(path, "recipe_responses")


def cards(path: Path) -> Iterator[Row | Problem]:
    """What ``models.jsonl`` beside the responses says of models."""
    file = (path if path.is_dir() else path.parent) / "models.jsonl"
    return validated(rows(file), ModelRecord) if file.is_file() else iter(())


def labels(path: Path, complete: Complete | None = None, read: Read | None = None) -> Iterator[Row | Problem]:
    """``complete`` adds to each row what its reader knows besides the file; it may raise ValueError."""
    return _read(path, "labels", complete, read)


def judgments(path: Path, read: Read | None = None) -> Iterator[Row | Problem]:
    return _read(path, "judgments", read=read)


def _named(folder: Path) -> tuple[str, ...]:
    """The parts whose files a folder has."""
    return tuple(part for part, names in FILES.items() if existing(folder, names))


def _file(path: Path, part: str) -> Path:
    if not path.is_dir() or (not _named(path) and kind_of(path) == "parquet"):
        return path
    return chosen_files(path, existing(path, FILES[part]), f"holds none of {', '.join(FILES[part])}")[0]


def _read(path: Path, part: str, complete: Complete | None = None, read: Read | None = None) -> Iterator[Row | Problem]:
    source = _typed(read(path), part) if read else _rows(_file(path, part), part)
    return validated(_completed(source, complete) if complete else source, RECORDS[part])


def _rows(path: Path, part: str) -> Iterator[Row | Problem]:
    return _typed(rows(path), part) if kind_of(path) in ("csv", "xlsx", "parquet") else rows(path)


def _completed(source: Iterable[Row | Problem], complete: Complete) -> Iterator[Row | Problem]:
    for row in source:
        try:
            yield row if isinstance(row, Problem) else Row(row.where, complete(row.data), row.plain)
        except ValueError as error:
            yield Problem(row.where, "sample", str(error))


def _typed(source: Iterable[Row | Problem], part: str) -> Iterator[Row | Problem]:
    for row in source:
        if isinstance(row, Problem):
            yield row
            continue
        data: dict[str, Any] = {}
        faults = []
        for name, cell in row.data.items():
            try:
                data[name] = _cell_value(name, cell, part) if isinstance(cell, str) else cell
            except ValueError as error:
                faults.append(Problem(row.where, name, str(error)))
        if faults:
            yield from faults
        else:
            yield Row(row.where, data)


def _cell_value(name: str, cell: str, table: str) -> Any:
    cell = unescape(cell)
    text = cell.strip()
    if name in LISTS:
        if text[:1] in "[{":
            return parse_json(text)
        if name in ("images", "capability", "responses", "flags"):
            return [part.strip() for part in text.split("|")]
        raise ValueError("is not JSON")
    if not text.isascii() and (name in FLOATS or name in INTEGERS):
        raise ValueError("is not a number in plain digits")
    if name in FLOATS:
        return float(text)
    if name in INTEGERS:
        return int(text)
    if name in BOOLEANS and table in ("labels", "judgments"):
        booleans = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
        if text.lower() not in booleans:
            raise ValueError("is neither true nor false")
        return booleans[text.lower()]
    return cell
