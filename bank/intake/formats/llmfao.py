"""LLMFAO as released: prompts, models' results, crowd comparisons and two LLM judges' comparisons."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from bank.intake.formats.reading import (
    BadFile,
    BadRow,
    Problem,
    Row,
    chosen_files,
    converted,
    csv_rows,
    first_names,
    json_lines,
    require,
)
from bank.intake.formats.records import JudgmentRecord, LabelRecord, ModelRecord, ResponseRecord, SampleRecord

NAME = "llmfao"
TITLE = "LLMFAO"
PROMPTS, RESULTS, CROWD = "prompts.jsonl", "results.jsonl", "crowd-comparisons.csv"
SIDES = {"left": "first", "right": "second", "tie": "tie"}


def recognises(path: Path) -> bool:
    if path.is_dir():
        return (path / PROMPTS).is_file() and (path / RESULTS).is_file()
    names = first_names(path)
    return (
        ({"id", "text", "type", "slug"} <= names and not names & {"model", "model_x"})
        or {"model", "result", "prompt", "name"} <= names
        or {"prompt", "model_x", "model_y", "winner", "left", "right"} <= names
    )


def samples(path: Path) -> Iterator[Row | Problem]:
    """One sample a prompt, keyed by the prompt's number, by which the comparisons name it."""
    return converted(json_lines(_file(path, PROMPTS)), _sample, SampleRecord)


def _sample(row: Row) -> Iterator[dict[str, Any]]:
    data = row.data
    require(data, "id", "text")
    note = {"key": "note", "kind": "exact_reference", "text": data.get("note")}
    yield {
        "key": data["id"],
        "instruction": data["text"],
        "language": "en",
        "source": "LLMFAO",
        "level": data.get("type") or "",
        "metadata": {"slug": data.get("slug") or ""},
        "criteria": [note] if note["text"] else [],
    }


def responses(path: Path) -> Iterator[Row | Problem]:
    return converted(json_lines(_file(path, RESULTS)), _response, ResponseRecord)


def _response(row: Row) -> Iterator[dict[str, Any]]:
    require(row.data, "prompt", "name", "result")
    yield {"sample": row.data["prompt"], "model": row.data["name"], "text": row.data["result"] or ""}


def cards(path: Path) -> Iterator[Row | Problem]:
    """What ``models.jsonl`` beside the results says of models."""
    file = (path if path.is_dir() else path.parent) / "models.jsonl"
    rows = (row for row in json_lines(file) if isinstance(row, Row)) if file.is_file() else ()
    return converted(rows, _card, ModelRecord)


def _card(row: Row) -> Iterator[dict[str, Any]]:
    if "name" in row.data:
        yield {"name": row.data["name"], "organisation": row.data.get("org") or ""}


def labels(path: Path) -> Iterator[Row | Problem]:
    """Crowd comparisons."""
    return converted(csv_rows(_file(path, CROWD)), _label, LabelRecord)


def _label(row: Row) -> Iterator[dict[str, Any]]:
    require(row.data, "prompt", "left", "right", "winner", "worker")
    yield _verdict(row) | {"annotator": row.data["worker"]}


def judgments(path: Path) -> Iterator[Row | Problem]:
    """Comparisons of the LLM judges, named by their files (``gpt4-comparisons.csv`` is by ``gpt4``).

    Of a directory the whole files are read; the ``-crowd`` files repeat a part of them.
    """
    found = sorted(path.glob("*-comparisons.csv"))
    whole = (file for file in found if not file.stem.removesuffix("-comparisons").endswith("crowd"))
    for file in chosen_files(path, whole, "holds no *-comparisons.csv of a judge"):
        if "worker" in first_names(file):
            raise BadFile(file, "holds people's comparisons: bring it in as labels")
        judge = file.stem.removesuffix("-comparisons").removesuffix("-crowd")
        yield from converted(csv_rows(file), partial(_judgment, judge=judge), JudgmentRecord)


def _file(path: Path, name: str) -> Path:
    return path / name if path.is_dir() else path


def _judgment(row: Row, judge: str) -> Iterator[dict[str, Any]]:
    settings = {"order": "fixed", "criteria": False, "context": "none"}
    yield _verdict(row) | {"judge": judge, "settings": settings}


def _verdict(row: Row) -> dict[str, Any]:
    data = row.data
    require(data, "prompt", "left", "right", "winner")
    if data["winner"] not in SIDES:
        raise BadRow("winner", f"{data['winner']!r} is not left, right or tie")
    return {
        "kind": "pair",
        "protocol": "pair",
        "sample": data["prompt"],
        "responses": [data["left"], data["right"]],
        "choice": SIDES[data["winner"]],
    }
