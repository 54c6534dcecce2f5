"""Ordinary rows of a file, a thousand at a time and by column: many times faster than pydantic."""

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

Rows = Sequence[dict[str, Any]]
Columns = dict[str, Any]  # by name, a value of each row
Texts = dict[str, tuple[int, str | None]]  # how long a text may be, and what stands for one that is left out

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
    """``criteria`` are columns of their own: ``owner`` is the number of the row, ``position`` that within its row."""
    found = _columns(rows, SAMPLE, {"capability": [], "criteria": []})
    if found is None or not (_filled(found["key"]) and _filled(found["instruction"])):
        return None
    if not SAMPLE_STATUS.issuperset(found["status"]):
        return None
    found["capability"] = list(map(_path, found["capability"]))
    found["criteria"] = _criteria(found["criteria"])
    if None in found["capability"] or found["criteria"] is None:
        return None
    if "answer" in found["criteria"]["key"] and any(found["answer"]):  # perhaps twice the same key
        return None
    return found


def responses(rows: Rows) -> Columns | None:
    """``status`` is what the record's ``known_status`` is."""
    found = _columns(rows, RESPONSE, {"tokens": None, "status": None})
    if found is None or not _filled(found["sample"]):
        return None
    tokens, status, texts = found["tokens"], found["status"], found["text"]
    if not {int, NONE}.issuperset(kinds := set(map(type, tokens))):
        return None
    if int in kinds and not all(number is None or 0 <= number <= MAX_INT for number in tokens):
        return None
    if not {str, NONE}.issuperset(map(type, status)) or not RESPONSE_STATUS.issuperset(given := set(status)):
        return None
    if given <= {"ok", None} and _filled(texts):
        found["status"] = ["ok"] * len(rows)
    else:
        known = ["empty" if not text or text.isspace() else "ok" for text in texts]
        if ("ok", "empty") in zip(status, known, strict=True):
            return None
        found["status"] = [one or other for one, other in zip(status, known, strict=True)]
    return found


COLUMN_READERS: dict[type[BaseModel], Callable[[Rows], Columns | None]] = {
    SampleRecord: samples,
    ResponseRecord: responses,
}


def _columns(rows: Rows, texts: Texts, others: dict[str, Any]) -> Columns | None:
    """The values by name; ``others`` are the names of what is no text, with what stands for one that is left out."""
    shapes = set(map(tuple, rows))
    names = {name for shape in shapes for name in shape}
    if not names <= texts.keys() | others.keys():
        return None
    defaults = others | {name: default for name, (_, default) in texts.items()}
    if len(shapes) == 1 and names:
        found: Columns = dict(zip(*shapes, zip(*map(dict.values, rows), strict=True), strict=True))
    else:
        found = {name: [row.get(name, defaults[name]) for row in rows] for name in names}
    for name in names & texts.keys():
        column = found[name]
        if set(map(type, column)) != {str} or max(map(len, column)) > texts[name][0] or not _storable(column):
            return None
    for name in defaults.keys() - names:
        if name in texts and defaults[name] is None:
            return None
        found[name] = [defaults[name]] * len(rows)
    return found


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


def _criteria(given: Sequence[Any]) -> Columns | None:
    if set(map(type, given)) != {list}:
        return None
    rows = list(chain.from_iterable(given))
    if not rows:
        return {name: [] for name in (*CRITERION, "weight", "owner", "position")}
    if set(map(type, rows)) != {dict}:
        return None
    found = _columns(rows, CRITERION, {"weight": None})
    if found is None or not _filled(found["text"]):
        return None
    if not (KINDS.issuperset(found["kind"]) and SHOWN_TO.issuperset(found["shown_to"])):
        return None
    weights = found["weight"]
    if not {int, float, NONE}.issuperset(map(type, weights)):
        return None
    if any(weight is not None and not 0 <= weight < 1e300 for weight in weights):
        return None
    found["weight"] = [None if weight is None else float(weight) for weight in weights]
    found["owner"] = [number for number, some in enumerate(given) for _ in some]
    found["position"] = [position for some in given for position in range(len(some))]
    found["key"] = [key or str(place + 1) for key, place in zip(found["key"], found["position"], strict=True)]
    if len(set(zip(found["owner"], found["key"], strict=True))) < len(rows):
        return None
    return found


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
        if type(part) is not str or len(part) > 200 or " / " in part or not part.strip():
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
        """The same one by one, for who finds something to say about one of them."""
        pairs = zip(self.places, self.data, strict=True)
        return [Row(place, self.record.model_validate(data)) for place, data in pairs]


def json_blocks(path: Path, record: type[BaseModel]) -> Iterator[Block | Row | Problem]:
    """``validated(json_lines(path), record)``, with the ordinary rows in blocks."""
    for number, some in _thousands(path):
        block = _block(Lines(path.name, number, len(some)), some, record)
        if block is not None:
            yield block
            continue
        for line, raw in enumerate(some, number):
            yield from validated(json_line(path.name, line, raw), record)


def table_blocks(found: Iterable[Row | Problem], record: type[BaseModel]) -> Iterator[Block | Row | Problem]:
    """``validated(found, record)`` of rows that are read one by one, with the ordinary ones in blocks."""
    held: list[Row] = []
    try:
        for one in found:
            if isinstance(one, Row):
                held.append(one)
            if len(held) == ROWS or (held and not isinstance(one, Row)):
                yield from _table_block(held, record)
                held = []
            if not isinstance(one, Row):
                yield one
    except BadFile:
        yield from _table_block(held, record)
        raise
    yield from _table_block(held, record)


def _table_block(held: list[Row], record: type[BaseModel]) -> Iterator[Block | Row | Problem]:
    data = [row.data for row in held]
    columns = COLUMN_READERS[record](data) if held else None
    if columns is None:
        yield from validated(held, record)
    else:
        yield Block(record, [row.where for row in held], data, columns)


def _thousands(path: Path) -> Iterator[tuple[int, list[bytes]]]:
    """As many lines at a time as the database takes best, and the number of the first. Raises BadFile."""
    number = 1
    held: list[bytes] = []
    bad = None
    found = line_blocks(path)
    while True:
        try:
            held += next(found)[1]
        except StopIteration:
            break
        except BadFile as error:
            bad = error  # said when the lines before it have had their turn
            break
        whole = len(held) - len(held) % ROWS
        for start in range(0, whole, ROWS):
            yield number + start, held[start : start + ROWS]
        number, held = number + whole, held[whole:]
    if held:
        yield number, held
    if bad is not None:
        raise bad


def _block(places: Lines, lines: Sequence[bytes], record: type[BaseModel]) -> Block | None:
    try:
        data: list[Any] = list(map(_parse, lines))
    except ValueError:
        return None
    columns = COLUMN_READERS[record](data) if set(map(type, data)) == {dict} else None
    return None if columns is None else Block(record, places, data, columns)
