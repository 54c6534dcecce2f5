"""Rows that hold everything at once: a question, answers of models, and what somebody said of them.

The formats ``pairs`` (two answers a row) and ``answers`` (one) are made of these; other tools' files are brought to one
of the two.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bank.intake.formats.reading import BadRow, Problem, Row, Where, converted, first_names, listed, odd, spread
from bank.intake.formats.records import JudgmentRecord, LabelRecord, ResponseRecord, SampleRecord
from bank.intake.formats.seen import CompactMap
from bank.text.names import as_stored
from bank.text.words import words_of

Read = Callable[[Path], Iterator[Row | Problem]]
ANNOTATOR = "human"  # of verdicts, where a file names nobody
MOST_LANGUAGE = 16  # characters
MOST_DIGITS = 9  # of a place in a list
ROWS = 32  # bits for the number of a row
MOST_GROUP = 200  # characters
COLUMNS = words_of(__file__, "columns")  # what columns may be called, by what they hold


@dataclass(frozen=True, slots=True)
class Question:
    """A sample as a row tells it; ``group``: the first picture."""

    key: str
    prompt: str
    images: list[dict[str, Any]]
    group: str
    is_new: bool  # the first row of the file that asks it


class Questions:
    """The questions that a file has shown, each with one text and picture."""

    def __init__(self) -> None:
        self._first = CompactMap()  # of each key, what is asked, as 30 bits of a hash, and the number of the row

    def read(self, row: Row) -> Question:
        """The question of a row; without a key it is named by a hash of text and pictures. Raises BadRow."""
        data: dict[str, Any] = row.data
        prompt = text_in(data, "prompt")
        if not prompt.strip():
            raise BadRow(column_of(data, "prompt"), "is missing")
        pictures = pictures_in(data)
        names = [picture.get("file") or picture.get("url") or _digest(picture["data"]) for picture in pictures]
        asked = _digest(json.dumps([prompt, *names]).encode())
        key = asked if value_in(data, "key") is None else key_at(data, column_of(data, "key"))
        number = row.where.line if row.where.record is None else row.where.record
        told = int(asked[:8], 16) >> 2 << ROWS | (number or 0)
        first, is_new = self._first.setdefault(str(key), told)
        if first >> ROWS != told >> ROWS:
            at = first & (1 << ROWS) - 1
            file = row.where.file
            where = Where(file, line=at) if row.where.record is None else Where(file, record=at)
            raise BadRow(column_of(data, "key"), f"{str(key)!r} stands with another question or picture at {where}")
        group = names[0] if names and len(names[0]) <= MOST_GROUP else ""
        return Question(str(key), prompt, pictures, group, is_new)


def sample_of(question: Question, data: dict[str, Any]) -> dict[str, Any]:
    """The fields of a sample."""
    return {
        "key": question.key,
        "instruction": question.prompt,
        "images": question.images,
        "language": language if len(language := text_in(data, "language")) <= MOST_LANGUAGE else "",
        "level": text_in(data, "category"),
        "hint": text_in(data, "hint"),
        "answer": text_in(data, "answer"),
        "group": question.group,
    }


def value_at(data: Any, path: str) -> Any:
    """The value of a column, or along a path of names and numbers; None where there is none."""
    if isinstance(data, dict) and path in data:
        return data[path]
    if isinstance(data, dict) and path.lower() in data:  # names of CSV are read in small letters
        return data[path.lower()]
    first, _, rest = path.partition(".")
    if isinstance(data, list) and len(first) < MOST_DIGITS and first.isdecimal() and int(first) < len(data):
        inside = data[int(first)]
    elif isinstance(data, dict) and first in data:
        inside = data[first]
    else:
        return None
    return value_at(inside, rest) if rest else inside


def key_at(data: dict[str, Any], column: str) -> str | int:
    """The key of a question, which stands in this column. Raises BadRow."""
    key = data.get(column)
    if isinstance(key, bool) or not isinstance(key, str | int):
        raise BadRow(column, "is neither text nor a whole number")
    return key


def has_columns(path: Path, needed: Iterable[str]) -> bool:
    names = first_names(path)
    return all(names.intersection(COLUMNS.get(field, (field,))) for field in needed)


@dataclass(frozen=True, slots=True)
class ReadRow:
    """A row, read: what it asks, and the answers with the models that gave them."""

    question: Question
    texts: list[str]
    refs: list[dict[str, str]]
    variants: list[str]  # by which answers are told from the models' first ones; "" for those
    repeated: list[bool]  # whether the same answer stood in a row before
    data: dict[str, Any]

    @property
    def item(self) -> dict[str, Any]:
        """What a verdict is about."""
        return {"sample": self.question.key, "responses": self.refs, "texts": self.texts}


Verdict = Callable[[ReadRow], dict[str, Any]]


def samples_of(read: Iterator[Row | Problem], fields: Iterable[str]) -> Iterator[Row | Problem]:
    """Each question once, of rows that hold a ReadRow; columns that none of the fields stands in are told once."""
    known, unread = {name for field in fields for name in COLUMNS.get(field, (field,))}, set[str]()

    def sample(row: Row) -> Iterator[Problem | dict[str, Any]]:
        asked: ReadRow = row.data
        if unknown := sorted(asked.data.keys() - known - unread):
            unread.update(unknown)
            yield odd(row, "", f"these columns are not read: {', '.join(unknown)}")
        if len(language := text_in(asked.data, "language")) > MOST_LANGUAGE:
            yield odd(row, "language", f"{language[:50]!r} has more than {MOST_LANGUAGE} characters; left out")
        if asked.question.is_new:
            yield sample_of(asked.question, asked.data)

    return converted(read, sample, SampleRecord)


def named_by(data: dict[str, Any]) -> tuple[str, Any]:
    """The part that the verdict of a row belongs to, and who gave it; two empty texts where nobody is named."""
    person, judge = value_in(data, "annotator"), value_in(data, "judge")
    if person is not None:
        return "labels", person
    return ("judgments", judge) if judge is not None else ("", "")


def parts_of(path: Path, read: Read, verdict: Sequence[str]) -> set[str]:
    """Samples, responses, and verdicts of people or judges, as rows with one of these columns name them; labels, where
    such a row names neither.
    """
    parts = {"samples", "responses"}
    for row in read(path):
        if isinstance(row, Row) and any(row.data.get(name) not in (None, "") for name in verdict):
            parts.add(named_by(row.data)[0] or "labels")
    return parts


def read_as(
    reading: Callable[[Row], Any], source: Iterable[Row | Problem], *, warnings: bool
) -> Iterator[Row | Problem]:
    """Rows with what ``reading`` makes of each, which may raise BadRow; warnings of the source itself only where they
    are asked for, so that they are told once and not for each part.
    """
    told = (row for row in source if warnings or isinstance(row, Row) or not row.warning)
    return spread(lambda row: [reading(row)], told)


def responses_of(read: Iterator[Row | Problem], *columns: str) -> Iterator[Row | Problem]:
    """Every answer once. A model's second answer to the same question is a variant named by a hash of its text.

    Those of a row come by the names of their models: everybody sees the order, and a row may have the better one first.
    """

    def answers(row: Row) -> Iterator[Problem | dict[str, Any]]:
        answered: ReadRow = row.data
        each = zip(columns, answered.texts, answered.refs, answered.variants, answered.repeated, strict=True)
        for column, text, ref, variant, repeated in sorted(each, key=lambda answer: answer[2]["model"]):
            if not repeated:
                yield from odd_answer(row, column, text, ref | {"variant": variant})
                yield {"sample": answered.question.key, "text": text} | ref

    return converted(read, answers, ResponseRecord)


def labels_of(read: Iterator[Row | Problem], people: "People", verdict: Verdict) -> Iterator[Row | Problem]:
    """What people say; ``verdict`` is empty for a row that holds none."""

    def label(row: Row) -> Iterator[Problem | dict[str, Any]]:
        answered: ReadRow = row.data
        if named_by(answered.data)[0] == "judgments" or not (said := verdict(answered)):
            return
        answers = frozenset(tuple(ref.values()) for ref in answered.refs)
        name, warnings = people.name(row, answered.data, (answered.question.key, answers))
        yield from warnings
        more = {"annotator": name, "flags": flags_in(answered.data), "comment": text_in(answered.data, "comment")}
        yield more | said | time_of(answered.data)

    return converted(read, label, LabelRecord)


def judgments_of(read: Iterator[Row | Problem], item: Verdict, verdict: Verdict) -> Iterator[Row | Problem]:
    """What judges say; ``item`` is what a failed one is about."""

    def judgment(row: Row) -> Iterator[dict[str, Any]]:
        answered: ReadRow = row.data
        part, name = named_by(answered.data)
        if part == "judgments":
            status = failed(answered.data)
            more = {"judge": name, "settings": {"criteria": False}, "analysis": value_in(answered.data, "comment")}
            if said := item(answered) | status if status else verdict(answered):
                yield more | said

    return converted(read, judgment, JudgmentRecord)


def odd_answer(row: Row, field: str, text: str, ref: dict[str, str]) -> Iterator[Problem]:
    """Warnings about an answer: it is empty, or the model's second one to the question."""
    if not text:
        yield odd(row, field, "is empty; kept as an empty answer")
    if ref["variant"]:
        reason = f"{ref['model']!r} answered this question otherwise above; kept as variant {ref['variant']!r}"
        yield odd(row, field, reason)


class People:
    """Who gave the labels of a file. Where it names nobody, several on one item are by as many people."""

    def __init__(self, path: Path, read: Read, *, noun: str) -> None:
        self.noun = noun
        self.some_named = any(isinstance(row, Row) and names_somebody(row.data) for row in read(path))
        self._times: Counter[Hashable] = Counter()

    def name(self, row: Row, data: dict[str, Any], item: Hashable) -> tuple[str, list[Problem]]:
        """The annotator of this row, and a warning where it is made up. Raises BadRow."""
        _, name = named_by(data)
        if name:
            if value_in(data, "judge") is not None:
                raise BadRow("judge", "stands beside an annotator; a verdict is by one of them")
            return name, []
        if self.some_named:
            raise BadRow("annotator", "is missing, although other rows name theirs")
        self._times[item] += 1
        if self._times[item] == 1:
            return ANNOTATOR, []
        name = f"{ANNOTATOR} {self._times[item]}"
        reason = f"nobody is named, and this {self.noun} has a verdict above; kept as by {name!r}"
        return name, [odd(row, "annotator", reason)]


def names_somebody(data: dict[str, Any]) -> bool:
    return value_in(data, "annotator") is not None or value_in(data, "judge") is not None


def failed(data: dict[str, Any]) -> dict[str, Any]:
    """The status of a judge's reply that held no verdict, where a reader says so."""
    return {"status": data["reply_status"]} if data.get("reply_status") else {}


def time_of(data: dict[str, Any]) -> dict[str, Any]:
    """When, from seconds since 1970."""
    if (seconds := data.get("tstamp")) in (None, ""):
        return {}
    try:
        return {"at": datetime.fromtimestamp(float(seconds), UTC)}
    except (TypeError, ValueError, OverflowError, OSError):
        raise BadRow("tstamp", f"{str(seconds)[:50]!r} is no time in seconds since 1970") from None


def column_of(data: dict[str, Any], field: str) -> str:
    """The column that holds this, or the name it should have."""
    names = COLUMNS.get(field, (field,))
    return next((name for name in names if data.get(name) not in (None, "")), names[0])


def value_in(data: dict[str, Any], field: str) -> Any:
    """What stands in the column; None where it is empty."""
    value = data.get(column_of(data, field))
    return None if value == "" else value


def text_in(data: dict[str, Any], field: str) -> str:
    name = column_of(data, field)
    value = data.get(name)
    if value is not None and not isinstance(value, str):
        raise BadRow(name, "is no text")
    return value if value and value.strip() else ""


def model_in(data: dict[str, Any], field: str) -> str:
    name = column_of(data, field)
    value = data.get(name)
    if isinstance(value, bool) or not isinstance(value, str | int | None):
        raise BadRow(name, "is no name")
    model = as_stored(str(value if value is not None else ""))
    if not model:
        raise BadRow(name, "is missing; name it with --model" if field == "model" else "is missing")
    return model


def number_in(data: dict[str, Any], name: str) -> float:
    """A number, also as text in plain digits. Raises BadRow."""
    value = data[name]
    try:
        if isinstance(value, bool) or (isinstance(value, str) and not value.isascii()):
            raise TypeError
        return float(value)
    except (TypeError, ValueError):
        raise BadRow(name, f"{str(value)[:50]!r} is no number") from None


def flags_in(data: dict[str, Any]) -> list[str]:
    flags = data.get("flags") or []
    return flags if isinstance(flags, list) else [str(flags)]


def pictures_in(data: dict[str, Any]) -> list[dict[str, Any]]:
    """The pictures of a row, one or a list of them. Raises BadRow."""
    given = value_in(data, "image")
    if isinstance(given, str) and given.startswith("[") and (several := listed(given)) is not None:
        given = several
    return [_picture(one) for one in (given if isinstance(given, list) else [] if given is None else [given])]


def _picture(value: Any) -> dict[str, Any]:
    """A picture by its path or address, or its bytes as the Hugging Face Hub keeps them."""
    if isinstance(value, dict):
        value = value.get("bytes") or value.get("path")
    if isinstance(value, bytes):
        return {"data": value}
    if not isinstance(value, str) or not value.strip():
        raise BadRow("image", "is neither a path, an address nor a picture")
    return {"url" if value.startswith(("http://", "https://")) else "file": value, "required": False}


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
