"""Ordinary rows of a file by the thousand, for imports of millions."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from jiter import from_json
from pydantic import BaseModel

from bank.formats import quick
from bank.formats.reading import BadFile, Lines, Problem, Row, Where, json_line, line_blocks, validated

ROWS = 1000
_parse = partial(from_json, catch_duplicate_keys=True, allow_inf_nan=False, cache_mode="keys")


@dataclass(frozen=True, slots=True)
class Block:
    """Rows that follow one another in a file, every one of them good: ``columns`` is as ``bank.formats.quick`` says."""

    record: type[BaseModel]
    places: Sequence[Where]
    data: list[dict[str, Any]]
    columns: quick.Columns

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
    columns = quick.TAKERS[record](data) if held else None
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
    columns = quick.TAKERS[record](data) if set(map(type, data)) == {dict} else None
    return None if columns is None else Block(record, places, data, columns)
