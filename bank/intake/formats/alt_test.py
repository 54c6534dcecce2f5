"""The skin-lesion data of the alt-test paper: scores of pictures by feature, by people and by LLM judges.

``human_annotations.json`` and ``llm_annotations.json`` hold ``{annotator: {"<picture>__<feature>": score}}``. Each
picture and feature is a sample without responses: the picture itself is scored. The feature is the source data set and
the picture the group. ``prompts.json`` beside them gives the wording of each feature, ``images/`` the pictures.
"""

import json
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bank.intake.formats.reading import (
    PICTURE_ENDINGS,
    BadFile,
    Problem,
    Row,
    Where,
    chosen_files,
    converted,
    existing,
    is_number,
    json_value,
    start_of,
)
from bank.intake.formats.records import JudgmentRecord, LabelRecord, SampleRecord, VerdictRecord

NAME = "alt-test"
TITLE = "Alternative annotator test"
HUMANS, JUDGES, PROMPTS = "human_annotations.json", "llm_annotations.json", "prompts.json"
LOWEST, HIGHEST = 0, 6
SCORE_SCALE = [{"value": value, "label": str(value)} for value in range(LOWEST, HIGHEST + 1)]
HEAD = re.compile(rb'\s*\{\s*"[^"]+"\s*:\s*\{\s*"[^"]+__[^"_]+"\s*:\s*[^\s{\["]')


def recognises(path: Path) -> bool:
    if path.is_dir():
        return bool(existing(path, (HUMANS, JUDGES)))
    return bool(HEAD.match(start_of(path).removeprefix(b"\xef\xbb\xbf")))


def parts(path: Path) -> set[str]:
    """What a path holds. A file of scores alone has neither wording nor pictures beside it: it brings no samples."""
    if not path.is_dir():
        return {"judgments"} if path.name == JUDGES else {"labels"}
    return {"samples"} | {"labels" if file.name == HUMANS else "judgments" for file in existing(path, (HUMANS, JUDGES))}


def samples(path: Path) -> Iterator[Row | Problem]:
    """One sample for each picture and feature that anybody scored, in the order of the files."""
    wording = _wording((path if path.is_dir() else path.parent) / PROMPTS)
    done = set()

    def sample(row: Row) -> Iterator[dict[str, Any]]:
        key = row.data["key"]
        if key not in done:
            done.add(key)
            yield _sample(key, wording)

    scores = (row for file in _files(path, (HUMANS, JUDGES)) for row in _scores(file))
    return converted(scores, sample, SampleRecord)


def labels(path: Path) -> Iterator[Row | Problem]:
    """The people's scores."""
    if path.name == JUDGES:
        raise BadFile(path, "holds judges' scores: bring it in as judgments")
    return _verdicts(path, HUMANS, LabelRecord, lambda by: {"annotator": by})


def judgments(path: Path) -> Iterator[Row | Problem]:
    """The LLM judges' scores."""
    if path.name == HUMANS:
        raise BadFile(path, "holds people's scores: bring it in as labels")
    settings = {"order": "fixed", "criteria": False, "context": "image"}
    return _verdicts(path, JUDGES, JudgmentRecord, lambda by: {"judge": by, "settings": settings})


def _files(path: Path, names: tuple[str, ...]) -> list[Path]:
    return chosen_files(path, existing(path, names), f"holds no {' or '.join(names)}")


def _scores(file: Path) -> Iterator[Row | Problem]:
    """Every score as ``{by, key, score}``; the record is the number of the score in the file, from 0."""
    table = json_value(file)
    if not isinstance(table, dict) or not all(isinstance(scores, dict) for scores in table.values()):
        raise BadFile(file, 'is not of the shape {annotator: {"<picture>__<feature>": score}}')
    number = -1
    for by, scores in table.items():
        for key, score in scores.items():
            number += 1
            where, field = Where(file.name, record=number), f"{by}.{key}"
            picture, _, feature = key.rpartition("__")
            if not picture or not feature:
                yield Problem(where, field, "is not <picture>__<feature>")
            elif not is_number(score) or not math.isfinite(score):
                yield Problem(where, field, f"{json.dumps(score)} is not a number")
            elif not LOWEST <= score <= HIGHEST:
                yield Problem(where, field, f"{score:g} is not on the scale of {LOWEST} to {HIGHEST}")
            else:
                yield Row(where, {"by": by, "key": key, "score": float(score)})


def _verdicts(
    path: Path, name: str, record: type[VerdictRecord], more: Callable[[str], dict[str, Any]]
) -> Iterator[Row | Problem]:
    """The scores of a file as verdicts; ``more`` says who gave them."""

    def verdict(row: Row) -> Iterator[dict[str, Any]]:
        data = row.data
        about = {"kind": "score", "protocol": "score", "sample": data["key"], "score": data["score"]}
        yield about | more(data["by"])

    for file in _files(path, (name,)):
        yield from converted(_scores(file), verdict, record)


def _wording(file: Path) -> dict[str, str]:
    """What the prompt says of each feature: ``{"Blue": "presence of a blueish glow (scale 0-2, ...)"}``."""
    if not file.is_file():
        return {}
    prompts = json_value(file)
    first = next(iter(prompts.values()), None) if isinstance(prompts, dict) else None
    text = first.get("str_prompt") if isinstance(first, dict) else None
    return dict(re.findall(r"^\* (\w+): (.+)$", text, re.M)) if isinstance(text, str) else {}


def _sample(key: str, wording: dict[str, str]) -> dict[str, Any]:
    picture, _, feature = key.rpartition("__")
    file, *also = (f"images/{picture}.{ending}" for ending in PICTURE_ENDINGS)
    more = f": {wording[feature]}" if feature in wording else ""
    return {
        "key": key,
        "instruction": f"Score this feature of the picture. {feature}{more}",
        "images": [{"file": file, "also": tuple(also), "required": False}],
        "question_type": "rating",
        "source": feature,
        "group": picture,
        "language": "en",
    }
