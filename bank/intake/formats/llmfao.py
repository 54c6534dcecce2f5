"""LLMFAO as released: prompts, models' results, crowd comparisons and two LLM judges' comparisons."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from bank.intake.formats.reading import BadFile, Problem, Row, Where, csv_rows, first_names, json_lines, validated
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

    def records(found: Iterable[Row | Problem]) -> Iterator[Row | Problem]:
        for row in found:
            if isinstance(row, Row):
                data = row.data
                if "id" not in data or "text" not in data:
                    yield Problem(row.where, "id" if "id" not in data else "text", "is missing")
                    continue
                record = {"key": data["id"], "instruction": data["text"], "language": "en", "source": "LLMFAO"}
                record |= {"level": data.get("type") or "", "metadata": {"slug": data.get("slug") or ""}}
                if data.get("note"):
                    record["criteria"] = [{"key": "note", "kind": "exact_reference", "text": data["note"]}]
                row = Row(row.where, record)
            yield row

    return validated(records(json_lines(_file(path, PROMPTS))), SampleRecord)


def responses(path: Path) -> Iterator[Row | Problem]:
    def records(found: Iterable[Row | Problem]) -> Iterator[Row | Problem]:
        for row in found:
            if isinstance(row, Row):
                data = row.data
                absent = next((name for name in ("prompt", "name", "result") if name not in data), None)
                if absent:
                    yield Problem(row.where, absent, "is missing")
                    continue
                row = Row(row.where, {"sample": data["prompt"], "model": data["name"], "text": data["result"] or ""})
            yield row

    return validated(records(json_lines(_file(path, RESULTS))), ResponseRecord)


def cards(path: Path) -> Iterator[Row | Problem]:
    """What ``models.jsonl`` beside the results says of models."""
    file = (path if path.is_dir() else path.parent) / "models.jsonl"
    if file.is_file():
        named = (row for row in json_lines(file) if isinstance(row, Row) and "name" in row.data)
        told = ((row.where, row.data["name"], row.data.get("org") or "") for row in named)
        yield from validated(
            (Row(where, {"name": name, "organisation": org}) for where, name, org in told), ModelRecord
        )


def labels(path: Path) -> Iterator[Row | Problem]:
    """Crowd comparisons; canonical order left, right."""
    return validated(_comparisons(_file(path, CROWD), worker=True), LabelRecord)


def judgments(path: Path) -> Iterator[Row | Problem]:
    """Comparisons of the LLM judges, named by their files (``gpt4-comparisons.csv`` is by ``gpt4``).

    Of a directory the whole files are read; the ``-crowd`` files repeat a part of them.
    """
    files = [path]
    if path.is_dir():
        files_found = sorted(path.glob("*-comparisons.csv"))
        files = [file for file in files_found if not file.stem.removesuffix("-comparisons").endswith("crowd")]
        if not files:
            raise BadFile(Where(str(path)), "holds no *-comparisons.csv of a judge")
    for file in files:
        if "worker" in first_names(file):
            raise BadFile(Where(file.name), "holds people's comparisons: bring it in as labels")
        yield from validated(_comparisons(file, worker=False), JudgmentRecord)


def _file(path: Path, name: str) -> Path:
    return path / name if path.is_dir() else path


def _comparisons(path: Path, *, worker: bool) -> Iterator[Row | Problem]:
    judge = path.stem.removesuffix("-comparisons").removesuffix("-crowd")
    needed = ("prompt", "left", "right", "winner", *(["worker"] if worker else []))
    for row in csv_rows(path):
        if isinstance(row, Problem):
            yield row
            continue
        data = row.data
        absent = next((name for name in needed if name not in data), None)
        if absent:
            yield Problem(row.where, absent, "is missing")
            continue
        if data["winner"] not in SIDES:
            yield Problem(row.where, "winner", f"{data['winner']!r} is not left, right or tie")
            continue
        record = {
            "kind": "pair",
            "protocol": "pair",
            "sample": data["prompt"],
            "responses": [data["left"], data["right"]],
            "choice": SIDES[data["winner"]],
        }
        if worker:
            record["annotator"] = data["worker"]
        else:
            record |= {"judge": judge, "settings": {"order": "fixed", "criteria": False, "context": "none"}}
        yield Row(row.where, record)
