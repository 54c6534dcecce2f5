"""MMBench: the TSV that VLMEvalKit uses, the parsed samples, and predictions by index.

TSV columns: index, question, hint, A to E, answer, category, l2-category, split, image (base64, or the index of the row
whose picture it shares) or image_path. Rows at index + n x 1,000,000 are circular copies of a question: no samples, but
the sample's metadata keeps how copy n turns the options (``rotations``). A hidden answer is simply absent.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from bank.intake.formats.reading import (
    BadFile,
    BadRow,
    Problem,
    Row,
    Where,
    converted,
    first_names,
    odd,
    rows,
    validated,
)
from bank.intake.formats.records import ResponseRecord, SampleRecord
from bank.samples.capability_trees import MMBENCH

NAME = "mmbench"
TITLE = "MMBench"
PARSED = "samples_parsed.json"
OFFSET = 1_000_000
LETTERS = "ABCDE"
LONGEST_INDEX = 64  # a shorter cell in the image column is another row's index, as VLMEvalKit has it
PARSED_NAMES = {"part", "lang", "question", "options", "image"}


def _plain(name: str) -> str:
    return re.sub(r"[^a-z]", "", name.lower())


LEAVES = {
    _plain(leaf): [top, middle, leaf]
    for top, below in MMBENCH.items()
    for middle, leaves in below.items()
    for leaf in leaves
}


class Parsed(BaseModel):
    """A record of the parsed samples."""

    model_config = ConfigDict(strict=True)

    part: str
    lang: str
    category: str = ""
    image: str
    question: str
    hint: str | None = None
    options: dict[str, str]
    answer: str | None = None


@dataclass
class Survey:
    """What a first pass over a TSV learns: options by index, how copies turn them, which pictures are shared."""

    options: dict[int, list[str]] = field(default_factory=dict)
    answers: dict[int, str] = field(default_factory=dict)
    copies: dict[int, dict[int, list[str]]] = field(default_factory=dict)  # by question: options of copy n
    shared: dict[int, str] = field(default_factory=dict)  # base64 by the index that other rows name

    def rotations(self, index: int) -> dict[str, int]:
        """By how many places each copy of the question shifts its options."""
        options, shifts = self.options.get(index, []), {}
        for number, shown in sorted(self.copies.get(index, {}).items()):
            shift = shift_of(options, shown, number)
            if shift is not None:
                shifts[str(number)] = shift
        return shifts


def recognises(path: Path) -> bool:
    if path.is_dir():
        return (path / PARSED).is_file() or bool(_tables(path))
    return bool(_shape(path))


def samples(path: Path) -> Iterator[Row | Problem]:
    for file in _files(path):
        shape = _shape(file)
        if shape == "predictions":
            raise BadFile(Where(file.name), "holds a model's predictions, not the questions")
        yield from _parsed(file) if shape == "parsed" else _table(file)


def responses(path: Path) -> Iterator[Row | Problem]:
    """Predictions by index; those of circular copies carry the number of the copy."""
    if path.is_dir():
        raise BadFile(Where(str(path)), "is a directory; give the file of a model's predictions")
    if _shape(path) != "predictions":
        raise BadFile(Where(path.name), "holds the questions, not a model's predictions")
    return converted(_lowered(rows(path)), _prediction, ResponseRecord)


def shift_of(original: list[str], shown: list[str], likely: int) -> int | None:
    """k such that place i of ``shown`` holds option (i + k) mod N of ``own``; ``likely`` decides where several fit."""
    count = len(original)
    fitting = [k for k in range(count) if shown == original[k:] + original[:k]]
    return likely if likely in fitting else next(iter(fitting), None)


def capability(category: str, above: str = "") -> list[str]:
    """The path of a category: the paper's three levels where it is one of its leaves, else what is given.

    ``category`` is ``image_emotion`` or ``Coarse Perception: Image Emotion``, ``above`` the L-2 name.
    """
    leaf = category.rpartition(": ")[2]
    if _plain(leaf) in LEAVES and _plain(leaf):
        return LEAVES[_plain(leaf)]
    return [name.replace(" / ", " or ") for name in (above, category) if name]


def _shape(path: Path) -> str:
    names = {name.lower() for name in first_names(path)}
    if names >= PARSED_NAMES:
        return "parsed"
    if {"index", "prediction"} <= names:  # a result file of VLMEvalKit repeats the questions
        return "predictions"
    return "table" if {"index", "question", "a", "b"} <= names else ""


def _tables(folder: Path) -> list[Path]:
    return [file for file in sorted(folder.glob("*.tsv")) if _shape(file) == "table"]


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    present = [path / PARSED] if (path / PARSED).is_file() else _tables(path)
    if not present:
        raise BadFile(Where(str(path)), f"holds neither {PARSED} nor a TSV with index, question and options")
    return present


def _parsed(file: Path) -> Iterator[Row | Problem]:
    keys: set[str] = set()

    def sample(row: Row) -> Iterator[dict[str, Any]]:
        data: Parsed = row.data
        key = stem = f"{data.part}-{data.lang}-{Path(data.image).stem}"
        number = 1
        while key in keys:  # another question on the same picture
            number += 1
            key = f"{stem}-{number}"
        keys.add(key)
        yield {
            "key": key,
            "instruction": data.question,
            "images": [{"file": data.image, "required": False}],
            "question_type": "multiple-choice",
            "capability": capability(data.category),
            "source": data.part,
            "language": data.lang,
            "hint": data.hint or "",
            "group": data.image,
            "options": data.options,
            "answer": data.answer or "",
        }

    return converted(validated(rows(file), Parsed), sample, SampleRecord)


def _table(file: Path) -> Iterator[Row | Problem]:
    survey = _survey(file)
    language = _language(file)

    def sample(row: Row) -> Iterator[Problem | dict[str, Any]]:
        index = _index_of(row)
        return _copy_problems(row, index, survey) if index >= OFFSET else _question(row, index, survey, language)

    return converted(_lowered(rows(file)), sample, SampleRecord)


def _lowered(source: Iterable[Row | Problem]) -> Iterator[Row | Problem]:
    """Rows with their names in lower case, as CSV and TSV give them; empty cells left out."""
    for row in source:
        if isinstance(row, Row):
            row = Row(row.where, {name.lower(): cell for name, cell in row.data.items() if cell not in (None, "")})
        yield row


def _survey(file: Path) -> Survey:
    survey = Survey()
    named_rows: set[int] = set()
    for row in _lowered(rows(file)):
        index = _index(row.data.get("index")) if isinstance(row, Row) else None
        if isinstance(row, Problem) or index is None:
            continue
        if index >= OFFSET:
            survey.copies.setdefault(index % OFFSET, {})[index // OFFSET] = _options(row.data)
            continue
        survey.options[index] = _options(row.data)
        survey.answers[index] = _answer(row.data)
        named = _index(row.data.get("image"))
        if named is not None and len(str(row.data["image"])) <= LONGEST_INDEX:
            named_rows.add(named)
    if named_rows:
        for row in _lowered(rows(file)):
            if isinstance(row, Row) and (index := _index(row.data.get("index"))) in named_rows and "image" in row.data:
                survey.shared[index] = str(row.data["image"])
    return survey


def _index(value: Any) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value if value >= 0 else None
    return int(value) if isinstance(value, str) and re.fullmatch(r"[0-9]{1,15}", value.strip()) else None


def _index_of(row: Row) -> int:
    index = _index(row.data.get("index"))
    if index is None:
        raise BadRow("index", f"{row.data.get('index', '')!r} is not a whole number")
    return index


def _options(data: dict[str, Any]) -> list[str]:
    return [str(data[letter.lower()]) for letter in LETTERS if letter.lower() in data]


def _answer(data: dict[str, Any]) -> str:
    return str(data.get("answer", "")).strip()


def _question(row: Row, index: int, survey: Survey, language: str) -> Iterator[Problem | dict[str, Any]]:
    data = row.data
    present = [letter for letter in LETTERS if letter.lower() in data]
    gap = next((letter for letter, expected in zip(present, LETTERS, strict=False) if letter != expected), "")
    if gap:
        raise BadRow(gap, f"there is an option {gap} but none {LETTERS[LETTERS.index(gap) - 1]}")
    if not present:
        raise BadRow("A", "there are no options")
    image = _image(data, survey)
    if image is None:
        yield odd(row, "image", "there is none; the sample comes in without a picture")
    rotations = survey.rotations(index)
    yield {
        "key": str(index),
        "instruction": str(data.get("question", "")),
        "images": [] if image is None else [image],
        "question_type": "multiple-choice",
        "capability": capability(str(data.get("category", "")), str(data.get("l2-category", ""))),
        "split": str(data.get("split", "")),
        "source": str(data.get("source", "MMBench")),
        "language": language,
        "hint": str(data.get("hint", "")),
        "options": {letter: str(data[letter.lower()]) for letter in present},
        "answer": _answer(data),
        "metadata": {"rotations": rotations} if rotations else {},
    }


def _image(data: dict[str, Any], survey: Survey) -> dict[str, Any] | None:
    """The picture of a question; None without one."""
    if "image" not in data:
        return {"file": str(data["image_path"]), "required": False} if "image_path" in data else None
    text = str(data["image"]).strip()
    if len(text) <= LONGEST_INDEX:
        text = survey.shared.get(_index(text) or 0, "") if _index(text) is not None else ""
        if len(text) <= LONGEST_INDEX:
            raise BadRow("image", f"{data['image']!r} is neither base64 nor the index of a row with a picture")
    try:
        return {"data": base64.b64decode(text, validate=True)}
    except (binascii.Error, ValueError):
        raise BadRow("image", "is not base64") from None


def _copy_problems(row: Row, index: int, survey: Survey) -> Iterator[Problem]:
    """What is wrong with a circular copy: it is no sample, but it must fit its question."""
    question, number = index % OFFSET, index // OFFSET
    options = survey.options.get(question)
    if options is None:
        raise BadRow("index", f"is circular copy {number} of question {question}, which the file lacks")
    shift = shift_of(options, _options(row.data), number)
    if shift is None:
        raise BadRow("A", f"the options are no rotation of those of question {question}")
    right, answer = survey.answers[question], _answer(row.data)
    letters = LETTERS[: len(options)]
    if (
        right in letters
        and answer in letters
        and (letters.index(answer) + shift) % len(options) != letters.index(right)
    ):
        reason = f"{answer!r} is another option than the answer {right!r} of question {question}; that one counts"
        yield odd(row, "answer", reason)


def _prediction(row: Row) -> Iterator[dict[str, Any]]:
    data, index = row.data, _index_of(row)
    record = {"sample": str(index % OFFSET), "rotation": index // OFFSET, "model": data.get("model", "")}
    yield record | {"text": str(data.get("prediction", ""))}


def _language(file: Path) -> str:
    """From the name: ``MMBench_DEV_EN.tsv``, ``MMBench_CN.tsv``, ``CCBench.tsv``."""
    words = re.split(r"[^A-Za-z]+", file.stem.upper())
    return "en" if "EN" in words else "zh" if {"CN", "CCBENCH"} & set(words) else ""
