"""Logs of Inspect, read as answers: ``.eval`` archives and JSON, each scorer a judge of that name.

Unpacked, an archive has ``header.json`` and ``samples/*.json``; one of a run that was cut off has
``_journal/start.json`` instead. Epochs are variants of an answer.
"""

import base64
import binascii
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from bank.intake.formats import answers, wide
from bank.intake.formats.reading import (
    BadFile,
    BadRow,
    Problem,
    Row,
    Where,
    existing,
    is_whole,
    json_value,
    spread,
    start_of,
)

NAME = "inspect"
TITLE = "Logs of Inspect"
SHAPE = answers
HEADERS = ("header.json", "_journal/start.json")
LOG = re.compile(rb'\s*\{\s*"version"\s*:\s*\d+\s*,\s*("status"\s*:\s*"\w+"\s*,\s*)?"eval"\s*:')
SCORES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}  # correct, partially correct, incorrect, no answer
ATTACHMENT = "attachment://"
DATA = re.compile(r"data:[\w/.+-]*;base64,")


def recognises(path: Path) -> bool:
    if path.is_dir():
        return (path / "samples").is_dir() and bool(existing(path, HEADERS))
    return LOG.match(start_of(path)) is not None


def wide_rows(path: Path) -> Iterator[Row | Problem]:
    """The samples of a log as rows of ``answers``, one for each score."""
    if path.is_dir():
        header = existing(path, HEADERS)[0]
        model = _model(header, json_value(header))
        samples = (Row(Where(f"samples/{file.name}"), json_value(file)) for file in sorted(path.glob("samples/*.json")))
    else:
        log = json_value(path)
        model = _model(path, log)
        found = log.get("samples") or []
        if not isinstance(found, list) or not found:
            raise BadFile(path, "holds no samples; was it written without them?")
        samples = (Row(Where(path.name, record=number), sample) for number, sample in enumerate(found))
    yield from spread(partial(_answers, model=model), samples)


def _model(path: Path, log: Any) -> str:
    model = wide.value_at(log, "eval.model")
    if not isinstance(model, str):
        raise BadFile(path, "does not say which model was asked (eval.model)")
    return model


def _answers(row: Row, model: str) -> Iterator[Problem | dict[str, Any]]:
    data = row.data
    if not isinstance(data, dict):
        raise BadRow("", "is not a JSON object")
    answer = _answer(data) | {"model": model}
    scores = data.get("scores") or {}
    if not isinstance(scores, dict):
        raise BadRow("scores", "is no object")
    yield answer
    for scorer, score in scores.items():
        for told in _scores(row, scorer, score):
            yield told if isinstance(told, Problem) else answer | told


def _answer(data: dict[str, Any]) -> dict[str, Any]:
    """The question and the model's answer, without scores. Raises BadRow."""
    epoch, attachments = data.get("epoch", 1), data.get("attachments")
    if not is_whole(epoch):
        raise BadRow("epoch", "is no whole number")
    kept = attachments if isinstance(attachments, dict) else {}
    key = wide.key_at(data, "id")
    prompt, images = _asked(data.get("input"), kept)
    choices, target = data.get("choices"), data.get("target")
    if isinstance(choices, list) and choices:
        prompt += "\n\n" + "\n".join(f"{chr(65 + place)}) {choice}" for place, choice in enumerate(choices))
    return {
        "key": key,
        "prompt": prompt,
        "image": images,
        "response": _completion(data, kept),
        "answer": "\n".join(map(str, target)) if isinstance(target, list) else str(target or ""),
        "variant": f"epoch {epoch}" if epoch > 1 else "",
    }


def _scores(row: Row, scorer: str, score: Any) -> Iterator[Problem | dict[str, Any]]:
    """What a scorer gave: one number, or several under names of their own."""
    score = score if isinstance(score, dict) else {"value": score}
    value, said = score.get("value"), score.get("explanation")
    parts = {f"{scorer} {name}": one for name, one in value.items()} if isinstance(value, dict) else {scorer: value}
    for judge, one in parts.items():
        number = SCORES.get(one, one) if isinstance(one, str) else one
        if isinstance(number, bool | int | float):
            yield {"judge": judge, "score": float(number), "comment": said if isinstance(said, str) else ""}
        else:
            reason = f"{str(one)[:50]!r} is neither a number nor one of C, I, P, N"
            yield Problem(row.where, f"scores.{judge}", reason)


def _asked(given: Any, attachments: dict[str, Any]) -> tuple[str, list[Any]]:
    """The text of what was asked, one message or several under their roles, and the pictures in it. Raises BadRow."""
    if isinstance(given, str):
        return _whole(given, attachments), []
    if not isinstance(given, list):
        raise BadRow("input", "is neither text nor a list of messages")
    said, images = [], list[Any]()
    for message in given:
        if not isinstance(message, dict):
            raise BadRow("input", "holds what is no message")
        content = message.get("content")
        parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
        said.append((str(message.get("role")).capitalize(), _text(parts, attachments)))
        images += [_picture(_whole(part.get("image"), attachments)) for part in parts if _is(part, "image")]
    if len(said) == 1:
        return said[0][1], images
    return "\n\n".join(f"**{role}**\n\n{text}" for role, text in said), images


def _is(part: Any, kind: str) -> bool:
    return isinstance(part, dict) and part.get("type") == kind


def _text(parts: list[Any], attachments: dict[str, Any]) -> str:
    return "\n\n".join(str(_whole(part.get("text") or "", attachments)) for part in parts if _is(part, "text"))


def _whole(value: Any, attachments: dict[str, Any]) -> Any:
    """The value itself, or the attachment that it names."""
    if isinstance(value, str) and value.startswith(ATTACHMENT):
        return attachments.get(value.removeprefix(ATTACHMENT), value)
    return value


def _picture(given: Any) -> Any:
    """A picture as ``answers`` has it: the bytes of a data address, else the address or path itself."""
    named = DATA.match(given) if isinstance(given, str) else None
    if not named:
        return given
    try:
        return {"bytes": base64.b64decode(given[named.end() :], validate=True)}
    except (binascii.Error, ValueError):
        raise BadRow("input", "holds a picture that is not base64") from None


def _completion(data: dict[str, Any], attachments: dict[str, Any]) -> str:
    """The answer, without the reasoning before it. Raises BadRow."""
    output = data.get("output")
    if not isinstance(output, dict):
        raise BadRow("output", "is no object")
    if isinstance(output.get("completion"), str):
        return str(_whole(output["completion"], attachments))
    content = wide.value_at(output, "choices.0.message.content")
    return _text(content if isinstance(content, list) else [{"type": "text", "text": content}], attachments)
