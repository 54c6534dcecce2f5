"""MMBench and VLMEvalKit's other tables: the TSV, the parsed samples, and predictions by index.

TSV columns: index, question, hint, A to Z, answer, category, l2-category, split, image (base64, or the index of the row
whose picture it shares) or image_path, each also as a list. Without options the answer is yes or no, or open. Rows at
index + n x 1,000,000 are circular copies of a question: no samples, but a sample's metadata keeps how copy n turns the
options (``rotations``). A hidden answer is simply absent.
"""

import base64
import binascii
import re
import string
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from bank.intake.formats.reading import (
    BadFile,
    BadRow,
    Problem,
    Row,
    bad_path,
    chosen_files,
    converted,
    existing,
    first_names,
    is_whole,
    listed,
    odd,
    rows,
    validated,
)
from bank.intake.formats.records import JudgmentRecord, ResponseRecord, SampleRecord
from bank.intake.formats.wide import model_in, number_in
from bank.samples.capability_trees import TREES

NAME = "mmbench"
TITLE = "MMBench, VLMEvalKit"
PARSED = "samples_parsed.json"
OFFSET = 1_000_000
LETTERS = string.ascii_uppercase
NAMED = re.compile(r"(?=.*[A-Za-z])[\w.-]{1,60}")  # an index that is no number
LONGEST_INDEX = 64  # a shorter cell in the image column is another row's index, as VLMEvalKit has it
SCORES = ("score", "hit")  # of a prediction, as VLMEvalKit writes them beside it
TRUTH = {"true": 1.0, "false": 0.0}
YES_NO = ("yes", "no")
PICTURES = ("image", "image_path")
PARSED_NAMES = {"part", "lang", "question", "options", "image"}


def _plain(name: str) -> str:
    return re.sub(r"[^a-z]", "", name.lower())


LEAVES = {
    _plain(leaf): [top, middle, leaf]
    for top, below in TREES["mmbench"].items()
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

    has_options: bool
    source: str
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
        return bool(existing(path, [PARSED]) or _tables(path))
    return bool(_shape(path))


def samples(path: Path) -> Iterator[Row | Problem]:
    for file in _files(path):
        shape = _shape(file)
        if shape == "predictions":
            raise BadFile(file, "holds a model's predictions, not the questions")
        yield from _parsed(file) if shape == "parsed" else _table(file)


def responses(path: Path) -> Iterator[Row | Problem]:
    """Predictions by index; those of circular copies carry the number of the copy."""
    if path.is_dir():
        raise bad_path(path, "is a directory; give the file of a model's predictions")
    if _shape(path) != "predictions":
        raise BadFile(path, "holds the questions, not a model's predictions")
    return converted(_lowered(rows(path)), _prediction, ResponseRecord)


def judgments(path: Path, given: Mapping[str, str] | None = None) -> Iterator[Row | Problem]:
    """What VLMEvalKit's judge gave each prediction: ``score`` or ``hit``, and why as ``log``."""
    names = {name.lower() for name in first_names(path)}
    if _shape(path) != "predictions" or names.isdisjoint(SCORES):
        raise BadFile(path, f"holds no predictions with {' or '.join(SCORES)}")
    model, told = (given or {}).get("model", ""), set[str]()
    return converted(_lowered(rows(path)), partial(_score, model=model, told=told), JudgmentRecord)


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
    return _path([above, category])


def _path(levels: list[str]) -> list[str]:
    return [name.replace(" / ", " or ") for name in levels if name]


def _shape(path: Path) -> str:
    names = {name.lower() for name in first_names(path)}
    if names >= PARSED_NAMES:
        return "parsed"
    if {"index", "prediction"} <= names:  # a result file of VLMEvalKit repeats the questions
        return "predictions"
    if names >= {"index", "question"} and (names >= {"a", "b"} or (names >= {"answer"} and names & {*PICTURES})):
        return "table"
    return ""


def _tables(folder: Path) -> list[Path]:
    return [file for file in sorted(folder.glob("*.tsv")) if _shape(file) == "table"]


def _files(path: Path) -> list[Path]:
    in_folder = existing(path, [PARSED]) or _tables(path)
    return chosen_files(path, in_folder, f"holds neither {PARSED} nor a TSV with index, question and options")


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
        if isinstance(index, int) and index >= OFFSET:
            return _copy_problems(row, index, survey)
        return _question(row, index, survey, language)

    return converted(_lowered(rows(file)), sample, SampleRecord)


def _lowered(source: Iterable[Row | Problem]) -> Iterator[Row | Problem]:
    """Rows with their names in lower case, as CSV and TSV give them; empty cells left out."""
    for row in source:
        if isinstance(row, Row):
            row = Row(row.where, {name.lower(): cell for name, cell in row.data.items() if cell not in (None, "")})
        yield row


def _survey(file: Path) -> Survey:
    has_options = {"a", "b"} <= {name.lower() for name in first_names(file)}
    survey = Survey(has_options, "MMBench" if has_options else file.stem)
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
    if is_whole(value):
        return value if value >= 0 else None
    return int(value) if isinstance(value, str) and re.fullmatch(r"[0-9]{1,15}", value.strip()) else None


def _index_of(row: Row) -> int | str:
    """A row's index: a whole number, or a name such as v1_0."""
    given = row.data.get("index")
    index = _index(given)
    if index is not None:
        return index
    if not isinstance(given, str) or not NAMED.fullmatch(given.strip()):
        raise BadRow("index", f"{str(given or '')[:50]!r} is not a whole number")
    return given.strip()


def _options(data: dict[str, Any]) -> list[str]:
    return [str(data[letter.lower()]) for letter in LETTERS if letter.lower() in data]


def _answer(data: dict[str, Any]) -> str:
    return str(data.get("answer", "")).strip()


def _question(row: Row, index: int | str, survey: Survey, language: str) -> Iterator[Problem | dict[str, Any]]:
    data = row.data
    if isinstance(index, str) and survey.has_options:
        raise BadRow("index", f"{index!r} is not a whole number")
    present = [letter for letter in LETTERS if letter.lower() in data]
    gap = next((letter for letter, expected in zip(present, LETTERS, strict=False) if letter != expected), "")
    if gap:
        raise BadRow(gap, f"there is an option {gap} but none {LETTERS[LETTERS.index(gap) - 1]}")
    if not present and survey.has_options:
        raise BadRow("A", "there are no options")
    images = _images(data, survey)
    if not images:
        yield odd(row, "image", "there is none; the sample comes in without a picture")
    rotations = survey.rotations(index) if isinstance(index, int) else {}
    answer = _answer(data)
    levels = [str(data.get(name, "")) for name in ("l2-category", "category")]
    kind = "multiple-choice" if present else "yes-no" if answer.lower() in YES_NO else "open-ended"
    yield {
        "key": str(index),
        "instruction": str(data.get("question", "")),
        "images": images,
        "question_type": kind,
        "capability": capability(*levels[::-1]) if present else _path(levels),
        "split": str(data.get("split", "")),
        "source": str(data.get("source", survey.source)),
        "language": language,
        "hint": str(data.get("hint", "")),
        "options": {letter: str(data[letter.lower()]) for letter in present},
        "answer": answer.lower() if kind == "yes-no" else answer,
        "metadata": {"rotations": rotations} if rotations else {},
    }


def _images(data: dict[str, Any], survey: Survey) -> list[dict[str, Any]]:
    """The pictures of a question, one or a list of them; the bytes if they are there, else the files' names."""
    if "image" in data:
        return [_picture(one, survey) for one in _several(data["image"])]
    return [{"file": str(one), "required": False} for one in _several(data.get("image_path"))]


def _several(cell: Any) -> list[Any]:
    if isinstance(cell, str) and cell.lstrip().startswith("["):
        cell = listed(cell.strip()) or cell
    return cell if isinstance(cell, list) else [] if cell is None else [cell]


def _picture(given: Any, survey: Survey) -> dict[str, Any]:
    text = str(given).strip()
    if len(text) <= LONGEST_INDEX:
        text = survey.shared.get(_index(text) or 0, "") if _index(text) is not None else ""
        if len(text) <= LONGEST_INDEX:
            raise BadRow("image", f"{given!r} is neither base64 nor the index of a row with a picture")
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
    copy, key = divmod(index, OFFSET) if isinstance(index, int) else (0, index)
    record = {"sample": str(key), "rotation": copy, "model": data.get("model", "")}
    yield record | {"text": str(data.get("prediction", ""))}


def _score(row: Row, model: str, told: set[str]) -> Iterator[Problem | dict[str, Any]]:
    data, index = row.data, _index_of(row)
    column = next((name for name in SCORES if name in data), "")
    if not column:
        return
    if isinstance(index, int) and index >= OFFSET:
        if not told:
            yield odd(row, "index", "is a circular copy, whose score is left out, here and below")
        told.add("copy")
        return
    said = TRUTH.get(str(data[column]).lower())
    about = {"kind": "score", "protocol": "score", "sample": str(index), "judge": data.get("judge", "")}
    about |= {"score": number_in(data, column) if said is None else said, "settings": {"criteria": False}}
    responses = [model_in(data, "model")] if "model" in data or not model else [model]
    yield about | {"responses": responses, "analysis": str(data["log"]) if "log" in data else None}


def _language(file: Path) -> str:
    """From the name: ``MMBench_DEV_EN.tsv``, ``MMBench_CN.tsv``, ``CCBench.tsv``."""
    words = re.split(r"[^A-Za-z]+", file.stem.upper())
    return "en" if "EN" in words else "zh" if {"CN", "CCBENCH"} & set(words) else ""
