"""Logged samples of lmms-eval and lm-eval (``*samples_*.jsonl``), read as answers; a metric is a judge of that name.

A line has ``doc_id, target, resps, filtered_resps``, what was asked as ``input`` or ``arguments``, and the metrics as
keys of their own. Whose answers these are stands in ``*results.json`` beside them, else in the folder's name.
"""

import re
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from bank.intake.formats import answers, wide
from bank.intake.formats.reading import BadFile, BadRow, Problem, Row, first_names, json_lines, json_value, odd, spread

NAME = "lmms-eval"
TITLE = "Samples of lmms-eval, lm-eval"
SHAPE = answers
MOST_FILES = 2_000
TASK = re.compile(r"(?:.*_)?samples_(.+?)(?:_\d{4}-\d\d-\d\dT[\d.-]+)?")
FIXED = set(
    """doc_id doc target arguments input input_media resps filtered_resps filter metrics doc_hash prompt_hash
    target_hash token_counts submission idx""".split()
)
QUESTIONS = ("question", "prompt", "instruction", "query")  # of the doc, where nothing says what was asked


def recognises(path: Path) -> bool:
    return any(_is_log(file) for file in _files(path))


def wide_rows(path: Path) -> Iterator[Row | Problem]:
    """The lines of all logs as rows of ``answers``, one for each metric."""
    for file in filter(_is_log, _files(path)):
        said = TASK.fullmatch(file.stem)
        task = said[1] if said else file.stem
        named = _model_in_results(file) or (file.parent.name if path.is_dir() and file.parent != path else "")
        yield from spread(partial(_answers, task=task, model=named, told=set()), json_lines(file))


def _files(path: Path) -> Iterable[Path]:
    return sorted(path.rglob("*samples_*.jsonl"))[:MOST_FILES] if path.is_dir() else [path]


def _is_log(file: Path) -> bool:
    names = first_names(file)
    return "doc_id" in names and not names.isdisjoint(("resps", "filtered_resps"))


def _model_in_results(file: Path) -> str:
    """The model that the results beside the samples name; of several results those of the same run."""
    found = sorted(file.parent.glob("*results*.json"))
    same = [one for one in found if file.name.startswith(one.name.removesuffix("results.json"))]
    same += [one for one in found if file.stem.endswith(one.stem.removeprefix("results"))]
    for results in same or (found if len(found) == 1 else []):
        try:
            data = json_value(results)
        except BadFile:
            continue
        name = data.get("model_name") if isinstance(data, dict) else None
        if isinstance(name, str) and name.strip():
            return name
    return ""


def _answers(row: Row, task: str, model: str, told: set[str]) -> Iterator[Problem | dict[str, Any]]:
    data = row.data
    number = wide.key_at(data, "doc_id")
    replies = _texts(data.get("resps")) or _texts(data.get("filtered_resps"))
    if not replies:
        raise BadRow("resps", "holds no text, as of likelihoods, which are not read")
    if len(replies) > 1 and "several" not in told:
        told.add("several")
        yield odd(row, "resps", f"holds {len(replies)} answers; the first is read, here and below")
    target = data.get("target")
    about = {"key": f"{task}-{number}", "prompt": _asked(data), "response": replies[0], "category": task}
    about["answer"] = str(target) if isinstance(target, str | int | float) else ""
    if model:
        about["model"] = model
    scores, unread = _metrics(data)
    if unread := [name for name in unread if name not in told]:
        told.update(unread)
        yield odd(row, "", f"these metrics are no numbers and are not read: {', '.join(unread)}")
    for judge, score in scores.items():
        yield about | {"judge": judge, "score": score}
    if not scores:
        yield about


def _metrics(data: dict[str, Any]) -> tuple[dict[str, float], list[str]]:
    """The numbers by metric, and the metrics that are none."""
    listed, way = data.get("metrics"), data.get("filter")
    named = [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else data.keys() - FIXED
    suffix = f" ({way})" if isinstance(way, str) and way not in ("", "none") else ""
    numbers = {name: data[name] for name in sorted(named) if isinstance(data.get(name), bool | int | float)}
    unread = sorted(name for name in named if name not in numbers)
    return {name + suffix: float(number) for name, number in numbers.items()}, unread


def _texts(value: Any) -> list[str]:
    """The texts of an answer, which may stand in lists."""
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, str):
        return [value]
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _asked(data: dict[str, Any]) -> str:
    """What the model was asked: the text of the first argument, else the question in the data."""
    given = data.get("input", data.get("arguments"))
    while isinstance(given, list | dict) and given:
        given = given[0] if isinstance(given, list) else next(iter(given.values()))
    if isinstance(given, str) and given.strip():
        return given
    doc = data.get("doc")
    texts = (doc.get(name) for name in QUESTIONS) if isinstance(doc, dict) else ()
    return next((text for text in texts if isinstance(text, str) and text.strip()), "")
