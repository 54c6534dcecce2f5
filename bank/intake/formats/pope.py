"""POPE as released: yes/no questions about objects, in three files (random, popular, adversarial).

Ids repeat across the files, so a sample's key is the subset and the id. The released random file has ``[`` before its
first line and ``]`` after its last, without commas between: neither JSON nor JSON Lines. The wrapper is passed over
and reported.
"""

import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from bank.intake.formats.reading import (
    BadFile,
    BadRow,
    Problem,
    Row,
    Where,
    bad_path,
    chosen_files,
    converted,
    first_names,
    json_array,
    kind_of,
    lines,
    object_row,
    odd,
    parse_json,
    rows,
    start_of,
    validated,
)
from bank.intake.formats.records import ResponseRecord, SampleRecord

NAME = "pope"
TITLE = "POPE"
SUBSETS = ("random", "popular", "adversarial")
SUBSET = re.compile(rf"(?:^|[^a-z])({'|'.join(SUBSETS)})(?:[^a-z]|$)", re.I)
QUESTION = {"question_id", "image", "text", "label"}


class Question(BaseModel):
    """A line of a question file."""

    model_config = ConfigDict(strict=True)

    question_id: Annotated[int, Field(ge=0)] | str
    image: str
    text: str
    label: Literal["yes", "no"]


def recognises(path: Path) -> bool:
    if path.is_dir():
        return any(_is_question_file(file) for file in _question_files(path))
    names = first_names(path)
    return _is_question_file(path) or (_answers(names) and ("subset" in names or bool(SUBSET.search(path.stem))))


def samples(path: Path) -> Iterator[Row | Problem]:
    in_folder = filter(_is_question_file, _question_files(path))
    for file in chosen_files(path, in_folder, f"holds no question file of {', '.join(SUBSETS)}"):
        subset = _subset(file)
        yield from converted(validated(_lines(file), Question), partial(_sample, subset=subset), SampleRecord)


def responses(path: Path) -> Iterator[Row | Problem]:
    """A model's answers: ``{question_id, text}`` or ``{question_id, answer}`` a line, or POPE's own ``{question,
    answer}``, where the number of the line is the id. The subset is that of the row, else of the file's name."""
    if path.is_dir():
        raise bad_path(path, "is a directory; give the file of a model's answers to one subset")
    if _is_question_file(path):
        raise BadFile(path, "holds the questions, not a model's answers")
    subset = "" if "subset" in first_names(path) else _subset(path)
    for number, row in enumerate(rows(path), start=1):
        yield from converted([row], partial(_response, number=number, subset=subset), ResponseRecord)


def _subset(file: Path) -> str:
    match = SUBSET.search(file.stem)
    if match is None:
        reason = f"its name says none of {', '.join(SUBSETS)}, and ids repeat across these; rename the file"
        raise BadFile(file, reason)
    return match[1].lower()


def _question_files(folder: Path) -> list[Path]:
    """The folder's files by subset, in the order of the paper."""
    named = [(file, SUBSET.search(file.stem)) for file in sorted(folder.glob("*.json*")) if file.is_file()]
    files = [(SUBSETS.index(match[1].lower()), file) for file, match in named if match]
    return [file for _, file in sorted(files)]


def _is_question_file(file: Path) -> bool:
    first = re.match(rb"(?:\xef\xbb\xbf)?[\s\[]*(\{[^}]*\})", start_of(file))
    return first is not None and QUESTION.issubset(re.findall(r'"(\w+)"\s*:', first[1].decode(errors="replace")))


def _answers(names: set[str] | frozenset[str]) -> bool:
    return names == {"question", "answer"} or ("question_id" in names and bool(names & {"text", "answer"}))


def _lines(file: Path) -> Iterator[Row | Problem]:
    """The objects of JSON Lines, of a JSON array, or of lines between the brackets of an array without its commas."""
    if kind_of(file) == "json":
        try:
            yield from list(json_array(file))
            return
        except BadFile:
            pass
    opened = closed = False
    where = Where(file.name)
    for number, line in lines(file):
        where, text = Where(file.name, number), line.strip()
        if not opened and text.startswith("["):
            opened, text = True, text[1:].strip()
        if opened and text.endswith("]"):
            closed, text = True, text[:-1].strip()
        if text:
            try:
                data = parse_json(text)
            except json.JSONDecodeError as error:
                yield Problem(where, "", f"is not JSON: {error.msg} at character {error.pos + 1}")
            except ValueError as error:
                yield Problem(where, "", str(error))
            else:
                yield object_row(where, data)
    if opened and closed:
        reason = "[ before the first line and ] after this one make it neither JSON nor JSON Lines; passed over"
        yield Problem(where, "", reason, warning=True)
    elif opened:
        yield Problem(where, "", "the [ of the first line is never closed; is the file cut off?")


def _sample(row: Row, subset: str) -> Iterator[dict[str, Any]]:
    question: Question = row.data
    yield {
        "key": f"{subset}-{question.question_id}",
        "instruction": question.text,
        "images": [{"file": question.image, "required": False}],
        "question_type": "yes-no",
        "level": subset,
        "source": "POPE",
        "language": "en",
        "group": question.image,
        "answer": question.label,
    }


def _response(row: Row, number: int, subset: str) -> Iterator[Problem | dict[str, Any]]:
    data = row.data
    if not _answers(set(data)):
        raise BadRow("question_id" if "question_id" not in data else "text", "is missing")
    if "question_id" not in data and number == 1:
        reason = "is missing: answers are taken in the order of the questions, by the number of their line"
        yield odd(row, "question_id", reason)
    text = data.get("text", data.get("answer"))
    subset = data.get("subset", subset)
    if subset not in SUBSETS:
        raise BadRow("subset", f"is none of {', '.join(SUBSETS)}" if subset else "is missing")
    model = data.get("model") or data.get("model_id") or ""
    key = data.get("question_id", number)
    yield {"sample": f"{subset}-{key}", "model": model, "text": "" if text is None else text}
