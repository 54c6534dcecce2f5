"""MIA-Bench as released: instructions with weighted components, the pictures by address only.

The components are criteria of kind ``component`` and public, as in the original. Addresses are kept and never fetched;
a picture that lies in the folder under the last part of its address is taken. A sample's key is the number of its
record, from 0. Oddities (weights that do not sum to 10, a category twice, an instruction twice) are warnings.
"""

import math
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationInfo, field_validator

from bank.intake.formats.reading import (
    BadFile,
    BadRow,
    Problem,
    Row,
    bad_path,
    converted,
    first_names,
    is_whole,
    json_array,
    odd,
    require,
    rows,
    validated,
)
from bank.intake.formats.records import ResponseRecord, SampleRecord

NAME = "mia-bench"
TITLE = "MIA-Bench"
INSTRUCTIONS = "instruction_benchmark_all.json"
SUM = 10.0
FAILED = "error"  # what the release asks for in place of an answer that a model could not give
ADDRESSES = ("question_id", "url", "image")
SCHEMES = ("http://", "https://")


def _float(value: Any) -> Any:
    return float(value) if is_whole(value) else value


class Instruction(BaseModel):
    """A record of the benchmark file."""

    model_config = ConfigDict(strict=True)

    image: str
    instruction: str
    type: str = ""
    components: list[str]
    component_weight: list[Annotated[float, BeforeValidator(_float)]]
    component_type: list[str]
    num_of_component: int | None = None
    image_name: str = ""

    @field_validator("component_weight", "component_type")
    @classmethod
    def _as_many(cls, values: list[Any], info: ValidationInfo) -> list[Any]:
        components = info.data.get("components")
        if components is not None and len(values) != len(components):
            raise ValueError(f"has {len(values)} entries for {len(components)} components")
        return values


def recognises(path: Path) -> bool:
    if path.is_dir():
        return (path / INSTRUCTIONS).is_file()
    names = first_names(path)
    return {"image", "instruction", "components", "component_weight"} <= names or _is_answer(path)


def _is_answer(path: Path) -> bool:
    """Whether the first row answers a picture that is named by its address."""
    try:
        first = next(iter(rows(path)), None)
    except BadFile:
        return False
    return isinstance(first, Row) and "text" in first.data and _address(first.data).startswith(SCHEMES)


def _address(data: dict[str, Any]) -> str:
    values = (data.get(name) for name in ADDRESSES)
    return next((url for url in values if isinstance(url, str) and url.strip()), "")


def samples(path: Path) -> Iterator[Row | Problem]:
    file = path / INSTRUCTIONS if path.is_dir() else path
    if _is_answer(file):
        raise BadFile(file, "holds a model's answers, not the instructions")
    instructions = list(validated(json_array(file), Instruction))
    names = Counter(_file_name(row.data.image) for row in instructions if isinstance(row, Row))
    keys_by_instruction: dict[str, str] = {}

    def sample(row: Row) -> Iterator[Problem | dict[str, Any]]:
        key = str(row.where.record)
        yield from _warnings(row, keys_by_instruction)
        keys_by_instruction.setdefault(row.data.instruction, key)
        yield _sample(key, row.data, names)

    return converted(instructions, sample, SampleRecord)


def parts(path: Path) -> set[str]:
    """What a path holds. The answers that lie beside the instructions name no model, so they come in by themselves."""
    return {"samples"} if path.is_dir() or not _is_answer(path) else {"responses"}


def responses(path: Path) -> Iterator[Row | Problem]:
    """A model's answers: ``{question_id or url, text}`` a line, the sample named by its picture's address."""
    if path.is_dir():
        raise bad_path(path, "is a directory; give the file of a model's answers")
    if not _is_answer(path):
        raise BadFile(path, "holds no answers ({question_id or url: address of the picture, text})")
    return converted(rows(path), _response, ResponseRecord)


def _file_name(url: str) -> str:
    try:
        return urlsplit(url).path.rsplit("/", 1)[-1]
    except ValueError:  # brackets that hold no address
        return ""


def _sample(key: str, data: Instruction, names: Counter[str]) -> dict[str, Any]:
    name = _file_name(data.image)
    # Two addresses may end alike: then the name says nothing about which picture the file is.
    image = {"url": data.image, "file": name if names[name] == 1 else "", "required": False}
    parts = zip(data.components, data.component_weight, data.component_type, strict=True)
    return {
        "key": key,
        "instruction": data.instruction,
        "images": [image],
        "level": data.type,
        "source": "MIA-Bench",
        "language": "en",
        "criteria": [
            {"key": str(n), "kind": "component", "text": text, "weight": weight, "category": kind, "shown_to": "public"}
            for n, (text, weight, kind) in enumerate(parts, start=1)
        ],
    }


def _warnings(row: Row, keys_by_instruction: dict[str, str]) -> Iterator[Problem]:
    data = row.data
    warn = partial(odd, row)
    if not data.image.startswith(SCHEMES):
        yield warn("image", "the address does not begin with http:// or https://; kept as it is")
    if not data.components:
        yield warn("components", "there are none")
    total = sum(data.component_weight)
    if data.components and not math.isclose(total, SUM, abs_tol=1e-9):
        shown = ", ".join(f"{weight:g}" for weight in data.component_weight)
        yield warn("component_weight", f"{shown} sum to {total:g}, not {SUM:g}; kept as they are")
    twice = [name for name, count in Counter(data.component_type).items() if count > 1]
    if twice:
        yield warn("component_type", f"{', '.join(map(repr, twice))} stands more than once; kept as it is")
    if data.num_of_component not in (None, len(data.components)):
        yield warn("num_of_component", f"says {data.num_of_component}, there are {len(data.components)}")
    if data.instruction in keys_by_instruction:
        yield warn("instruction", f"is the same as that of sample {keys_by_instruction[data.instruction]!r}")
    if data.image_name and data.image_name != _file_name(data.image):
        yield warn("image_name", f"{data.image_name!r} is not the picture at the address; the address counts")


def _response(row: Row) -> Iterator[dict[str, Any]]:
    url = _address(row.data)
    if not url:
        raise BadRow("question_id", "is no address of a picture")
    require(row.data, "text")
    text = "" if row.data["text"] is None else row.data["text"]
    record = {"image_url": url, "model": row.data.get("model") or "", "text": text}
    if text == FAILED:
        record |= {"text": "", "status": "error", "reason": "the file says 'error' in place of an answer"}
    yield record
