"""Ordinary rows of a file, a thousand at a time and by column: many times faster than pydantic.

``samples`` and ``responses`` accept rows only if ``SampleRecord`` and ``ResponseRecord`` accept every one of them, and
return columns of what those records hold. At anything unusual in any row, a fault or merely a rare field, they return
None, and pydantic decides row by row (tests/bank/test_quick.py).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from jiter import from_json
from pydantic import BaseModel

from bank.intake.formats.reading import BadFile, Lines, Problem, Row, Where, json_line, line_blocks, validated
from bank.intake.formats.records import MAX_INT, MAX_PATH, MAX_TEXT, ResponseRecord, SampleRecord
from bank.text.names import as_stored

Rows = Sequence[dict[str, Any]]
Columns = dict[str, Any]  # by name, with one value per row
Texts = dict[str, tuple[int, str | None]]  # the maximum length of a text, and its default

CRITERION: Texts = {
    "key": (60, ""),
    "kind": (15, "guideline"),
    "text": (MAX_TEXT, None),
    "category": (60, ""),
    "shown_to": (8, "staff"),
}
SAMPLE: Texts = {
    "key": (200, None),
    "instruction": (MAX_TEXT, None),
    "question_type": (40, ""),
    "split": (40, ""),
    "source": (200, ""),
    "language": (16, ""),
    "hint": (MAX_TEXT, ""),
    "group": (200, ""),
    "answer": (MAX_TEXT, ""),
    "status": (10, "approved"),
}
RESPONSE: Texts = {
    "sample": (200, None),
    "model": (200, ""),
    "variant": (60, ""),
    "text": (MAX_TEXT, ""),
    "reason": (MAX_TEXT, ""),
}
KINDS = frozenset(["exact_reference", "soft_reference", "range", "guideline", "component", "answer_key"])
SHOWN_TO = frozenset(["staff", "campaign", "public"])
SAMPLE_STATUS = frozenset(["draft", "review", "approved", "rejected"])
RESPONSE_STATUS = frozenset(["ok", "refused", "filtered", "truncated", "empty", "error", None])
NONE = type(None)
REMEMBERED = 10_000


def samples(rows: Rows) -> Columns | None:
    """``criteria`` are columns of their own: ``owner`` is the index of the row, ``position`` the index within it."""
    columns = _columns(rows, SAMPLE, {"capability": [], "criteria": []})
    if columns is None or not (_filled(columns["key"]) and _filled(columns["instruction"])):
        return None
    if not SAMPLE_STATUS.issuperset(columns["status"]):
        return None
    columns["capability"] = list(map(_path, columns["capability"]))
    columns["criteria"] = _criteria(columns["criteria"])
    if None in columns["capability"] or columns["criteria"] is None:
        return None
    if "answer" in columns["criteria"]["key"] and any(columns["answer"]):  # possibly a duplicate key
        return None
    return columns


def responses(rows: Rows) -> Columns | None:
    """``status`` is the record's ``known_status``."""
    columns = _columns(rows, RESPONSE, {"tokens": None, "status": None})
    if columns is None or not _filled(columns["sample"]):
        return None
    if any(name != as_stored(name) for name in set(columns["model"])):
        return None
    tokens, status, texts = columns["tokens"], columns["status"], columns["text"]
    if not {int, NONE}.issuperset(kinds := set(map(type, tokens))):
        return None
    if int in kinds and not all(number is None or 0 <= number <= MAX_INT for number in tokens):
        return None
    if not {str, NONE}.issuperset(map(type, status)) or not RESPONSE_STATUS.issuperset(statuses := set(status)):
        return None
    if statuses <= {"ok", None} and _filled(texts):
        columns["status"] = ["ok"] * len(rows)
    else:
        derived = ["empty" if not text or text.isspace() else "ok" for text in texts]
        if ("ok", "empty") in zip(status, derived, strict=True):
            return None
        columns["status"] = [stated or computed for stated, computed in zip(status, derived, strict=True)]
    return columns


COLUMN_READERS: dict[type[BaseModel], Callable[[Rows], Columns | None]] = {
    SampleRecord: samples,
    ResponseRecord: responses,
}


def _columns(rows: Rows, texts: Texts, others: dict[str, Any]) -> Columns | None:
    """The values by name; ``others`` maps the names of fields that are not text to their defaults."""
    shapes = set(map(tuple, rows))
    names = {name for shape in shapes for name in shape}
    if not names <= texts.keys() | others.keys():
        return None
    defaults = others | {name: default for name, (_, default) in texts.items()}
    if len(shapes) == 1 and names:
        values: Columns = dict(zip(*shapes, zip(*map(dict.values, rows), strict=True), strict=True))
    else:
        values = {name: [row.get(name, defaults[name]) for row in rows] for name in names}
    for name in names & texts.keys():
        column = values[name]
        if set(map(type, column)) != {str} or max(map(len, column)) > texts[name][0] or not _storable(column):
            return None
    for name in defaults.keys() - names:
        if name in texts and defaults[name] is None:
            return None
        values[name] = [defaults[name]] * len(rows)
    return values


def _storable(column: Sequence[str]) -> bool:
    text = "".join(column)
    if "\x00" in text:
        return False
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return False
    return True


def _filled(column: Sequence[str]) -> bool:
    return all(column) and not any(map(str.isspace, column))


def _criteria(lists: Sequence[Any]) -> Columns | None:
    if set(map(type, lists)) != {list}:
        return None
    rows = list(chain.from_iterable(lists))
    if not rows:
        return {name: [] for name in (*CRITERION, "weight", "owner", "position")}
    if set(map(type, rows)) != {dict}:
        return None
    columns = _columns(rows, CRITERION, {"weight": None})
    if columns is None or not _filled(columns["text"]):
        return None
    if not (KINDS.issuperset(columns["kind"]) and SHOWN_TO.issuperset(columns["shown_to"])):
        return None
    weights = columns["weight"]
    if not {int, float, NONE}.issuperset(map(type, weights)):
        return None
    if any(weight is not None and not 0 <= weight < 1e300 for weight in weights):
        return None
    columns["weight"] = [None if weight is None else float(weight) for weight in weights]
    columns["owner"] = [number for number, criteria in enumerate(lists) for _ in criteria]
    columns["position"] = [position for criteria in lists for position in range(len(criteria))]
    columns["key"] = [key or str(place + 1) for key, place in zip(columns["key"], columns["position"], strict=True)]
    if len(set(zip(columns["owner"], columns["key"], strict=True))) < len(rows):
        return None
    return columns


_good_paths: dict[tuple[str, ...], tuple[str, ...]] = {}


def _path(parts: Any) -> tuple[str, ...] | None:
    if type(parts) is not list:
        return None
    path = tuple(parts)
    try:
        if path in _good_paths:
            return _good_paths[path]
    except TypeError:
        return None
    for part in parts:
        if type(part) is not str or len(part) > 200 or " / " in part or not part or part != as_stored(part):
            return None
    if len(" / ".join(parts)) > MAX_PATH or not _storable(parts):
        return None
    if len(_good_paths) < REMEMBERED:
        _good_paths[path] = path
    return path


ROWS = 1000
_parse = partial(from_json, catch_duplicate_keys=True, allow_inf_nan=False, cache_mode="keys")


@dataclass(frozen=True, slots=True)
class Block:
    """Rows that follow one another in a file, all of them good: ``columns`` as ``samples`` or ``responses`` give it."""

    record: type[BaseModel]
    places: Sequence[Where]
    data: list[dict[str, Any]]
    columns: Columns

    def __len__(self) -> int:
        return len(self.data)

    def rows(self) -> list[Row]:
        """The same rows one by one, for code that reports on single rows."""
        pairs = zip(self.places, self.data, strict=True)
        return [Row(place, self.record.model_validate(data)) for place, data in pairs]


def json_blocks(path: Path, record: type[BaseModel]) -> Iterator[Block | Row | Problem]:
    """``validated(json_lines(path), record)``, with ordinary rows in blocks."""
    for number, block_lines in _thousands(path):
        block = _block(Lines(path.name, number, len(block_lines)), block_lines, record)
        if block is not None:
            yield block
            continue
        for line, raw in enumerate(block_lines, number):
            yield from validated(json_line(path.name, line, raw), record)


def table_blocks(source: Iterable[Row | Problem], record: type[BaseModel]) -> Iterator[Block | Row | Problem]:
    """``validated(source, record)`` for rows that are read one by one, with ordinary rows in blocks."""
    pending: list[Row] = []
    try:
        for entry in source:
            if isinstance(entry, Row):
                pending.append(entry)
            if len(pending) == ROWS or (pending and not isinstance(entry, Row)):
                yield from _table_block(pending, record)
                pending = []
            if not isinstance(entry, Row):
                yield entry
    except BadFile:
        yield from _table_block(pending, record)
        raise
    yield from _table_block(pending, record)


def _table_block(rows: list[Row], record: type[BaseModel]) -> Iterator[Block | Row | Problem]:
    data = [row.data for row in rows]
    columns = COLUMN_READERS[record](data) if rows else None
    if columns is None:
        yield from validated(rows, record)
    else:
        yield Block(record, [row.where for row in rows], data, columns)


def _thousands(path: Path) -> Iterator[tuple[int, list[bytes]]]:
    """Lines in the batch size that suits the database best, with the number of the first. Raises BadFile."""
    number = 1
    pending: list[bytes] = []
    bad = None
    source = line_blocks(path)
    while True:
        try:
            pending += next(source)[1]
        except StopIteration:
            break
        except BadFile as error:
            bad = error  # raised after the lines before it
            break
        complete = len(pending) - len(pending) % ROWS
        for start in range(0, complete, ROWS):
            yield number + start, pending[start : start + ROWS]
        number, pending = number + complete, pending[complete:]
    if pending:
        yield number, pending
    if bad is not None:
        raise bad


def _block(places: Lines, lines: Sequence[bytes], record: type[BaseModel]) -> Block | None:
    try:
        data: list[Any] = list(map(_parse, lines))
    except ValueError:
        return None
    columns = COLUMN_READERS[record](data) if set(map(type, data)) == {dict} else None
    return None if columns is None else Block(record, places, data, columns)
