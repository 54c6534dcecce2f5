"""From bytes to rows: encodings, JSON Lines, JSON arrays, CSV and Parquet, each row with its place in the file."""

import ast
import codecs
import csv
import difflib
import gzip
import hashlib
import itertools
import json
import math
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, time
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeGuard, TypeVar, cast

from jiter import from_json
from pydantic import BaseModel, ValidationError

from bank.intake import archives, parquet
from bank.text.words import words_of

if TYPE_CHECKING:
    from _csv import Reader as CsvReader

    from pydantic_core import ErrorDetails

MAX_LINE = 32 * 2**20
MAX_VALUE = 128 * 2**20  # of a file that is one JSON value, which other tools write on one line
MAX_CELL = 8 * 2**20  # bytes or characters of a text in a table, which is four times as much as any field takes
MAX_FIRST = 2**20
MOST_INSIDE = (
    2_000_000  # lists and objects in one value, of which each takes twenty times as much as the two characters
)
MOST_DEPTH = 4  # of the list of rows in a JSON object
MOST_PRINTED = 100_000  # characters of a list as Python prints it, which takes a hundred times as much to read
MOST_BLANK = 10_000  # blank lines, which make no rows and so reach no limit on them
HEAVY = 16 * 2**20  # of rows of Parquet that are held at once
BLOCK = 2**20
NEAR = 16  # characters from the end of a block, where what is cut off looks like a fault
SPACE = re.compile(r"[ \t\n\r]*")
INFINITE = (math.inf, -math.inf)
UTF16 = (b"\xff\xfe", b"\xfe\xff")
MAX_KEY = 200
PICTURE_ENDINGS = ("jpg", "jpeg", "png", "webp", "JPG", "JPEG", "PNG", "WEBP")
csv.field_size_limit(MAX_CELL)


class Where(NamedTuple):
    """A place in a file: the line, or the record if lines mean nothing."""

    file: str
    line: int | None = None
    record: int | None = None

    def __str__(self) -> str:
        if self.line is not None:
            return f"{self.file}, line {self.line}"
        return self.file if self.record is None else f"{self.file}, record {self.record}"


class Problem(NamedTuple):
    """Why a row is refused or, as a warning, what is odd about an accepted row.

    ``sample``: the key of the sample that is refused, or that a refused row names in vain.
    """

    where: Where
    field: str
    reason: str
    warning: bool = False
    sample: str = ""

    def __str__(self) -> str:
        return f"{self.where}: {self.field + ': ' if self.field else ''}{self.reason}"


class Row(NamedTuple):
    """``plain``: its reader knows that every text in it can be stored, see ``text_fault``."""

    where: Where
    data: Any
    plain: bool = False


class BadFile(Exception):
    """The file cannot be read from here on, or, where a path is given, not at all."""

    def __init__(self, where: Where | Path, reason: str) -> None:
        where = Where(where.name) if isinstance(where, Path) else where
        super().__init__(f"{where}: {reason}")
        self.problem = Problem(where, "", reason)


def bad_path(path: Path, reason: str) -> BadFile:
    """Of a path as it was given, not of a file in it."""
    return BadFile(Where(str(path)), reason)


Rec = TypeVar("Rec", bound=BaseModel)


def open_bytes(path: Path) -> IO[bytes]:
    """The file's bytes, decompressed if it is gzip. Raises BadFile if it is missing or a directory."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        raise bad_path(path, "there is no such file") from None
    except IsADirectoryError:
        raise bad_path(path, "is a directory, not a file") from None
    except OSError as error:
        raise bad_path(path, f"cannot be read: {error.strerror}") from None
    if file.peek(2)[:2] == b"\x1f\x8b":
        return cast(IO[bytes], gzip.open(file))
    return file


def _block(file: IO[bytes], where: Where, *, is_first: bool) -> bytes:
    """The next megabyte, without a byte order mark. Raises BadFile."""
    try:
        block = file.read(BLOCK)
    except (EOFError, OSError, zlib.error) as error:
        raise BadFile(where, f"the compressed file ends too early or is damaged ({error})") from None
    if not is_first:
        return block
    if block[:2] in UTF16 or b"\x00" in block[:64]:
        raise BadFile(Where(where.file, 1), "is not UTF-8 (it looks like UTF-16); save it as UTF-8")
    return block.removeprefix(b"\xef\xbb\xbf")


def raw_lines(path: Path, longest: int = MAX_LINE) -> Iterator[tuple[int, bytes]]:
    """Numbered lines without byte order mark and line ends, read a megabyte at a time. Raises BadFile."""
    name, number = path.name, 1
    if _begins_with_long_line(path, _changed(path), longest):
        raise _too_long(name, number, longest)
    parts, size = list[bytes](), 0  # of a line that goes on: joined once, when it is whole and not too long
    with open_bytes(path) as file:
        for count in itertools.count():
            block = _block(file, Where(name, number), is_first=not count)
            if not block:
                break
            rest, *following = block.split(b"\n")
            parts.append(rest)
            size += len(rest)
            if size > longest:
                raise _too_long(name, number, longest)
            if not following:
                continue
            *complete, rest = (b"".join(parts), *following)
            if len(max(complete, key=len)) > longest:
                complete = list(itertools.takewhile(lambda raw: len(raw) <= longest, complete))
                yield from enumerate(complete, number)
                raise _too_long(name, number + len(complete), longest)
            yield from enumerate(complete, number)
            number += len(complete)
            parts, size = [rest], len(rest)
            if size > longest:
                raise _too_long(name, number, longest)
        if size:
            yield number, b"".join(parts)


@lru_cache(maxsize=32)
def _begins_with_long_line(path: Path, changed: tuple[int, int], longest: int) -> bool:
    """Whether no line end comes in time. Kept, since every format asks for the first row."""
    size = 0
    with open_bytes(path) as file:
        while size <= longest and (block := _block(file, Where(path.name, 1), is_first=not size)):
            end = block.find(b"\n")
            size += len(block) if end < 0 else end
            if end >= 0:
                break
    return size > longest


def _too_long(name: str, line: int, longest: int) -> BadFile:
    return BadFile(Where(name, line), f"a line of more than {longest // 2**20} MB")


def _decoded(name: str, number: int, raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        reason = f"is not UTF-8 (byte {error.start + 1} of the line); save it as UTF-8"
        raise BadFile(Where(name, number), reason) from None


def lines(path: Path, longest: int = MAX_LINE) -> Iterator[tuple[int, str]]:
    """Numbered lines of UTF-8 text with their line ends. Raises BadFile at the first that is not UTF-8."""
    name = path.name
    for number, raw in raw_lines(path, longest):
        yield number, _decoded(name, number, raw) + "\n"


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(pairs)
    if len(unique) != len(pairs):
        times = Counter(name for name, _ in pairs)
        twice = next(name for name in times if times[name] > 1)
        raise ValueError(f"the name {twice!r} stands twice in one object")
    return unique


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text[:20]} is too large")
    return value


def _constant(text: str) -> None:
    raise ValueError(f"{text} is not JSON")


_decoder = json.JSONDecoder(object_pairs_hook=_unique, parse_float=_number, parse_constant=_constant)


TOO_LARGE = f"a cell of more than {MAX_CELL // 2**20} MB"
TOO_MUCH = f"holds more than {MOST_INSIDE:,} lists and objects"


def parse_json(text: str) -> Any:
    """Standard JSON: no repeated names, no NaN, no numbers beyond a double. Raises ValueError."""
    if text.count("[") + text.count("{") > MOST_INSIDE:
        raise ValueError(TOO_MUCH)
    try:
        return _decoder.decode(text)
    except RecursionError:
        raise ValueError("is nested too deeply") from None


def is_whole(value: object) -> TypeGuard[int]:
    """Whether it is a whole number, which truth is to Python alone."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[float]:
    return is_whole(value) or isinstance(value, float)


def listed(text: str) -> list[Any] | None:
    """The list that a cell holds, as JSON or as Python prints it; None if it holds none."""
    try:
        value = parse_json(text)
    except ValueError:
        try:
            value = ast.literal_eval(text) if len(text) <= MOST_PRINTED else None
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return None
    return value if isinstance(value, list) else None


def json_lines(path: Path) -> Iterator[Row | Problem]:
    """One JSON object per line; blank lines are skipped. Raises BadFile."""
    name, blank = path.name, 0
    for number, raw in raw_lines(path):
        if not raw or raw.isspace():
            blank += 1
            if blank > MOST_BLANK:
                raise _too_blank(name, number)
            continue
        if raw.count(b"[") + raw.count(b"{") > MOST_INSIDE:
            yield Problem(Where(name, number), "", TOO_MUCH)
            continue
        try:
            data = from_json(raw, catch_duplicate_keys=True, allow_inf_nan=False, cache_mode="keys")
        except ValueError:
            data = None
        if type(data) is dict and not _holds_infinite(data.values()):
            yield Row(Where(name, number), data, plain=b"\\u" not in raw)
        else:
            yield from _odd_line(Where(name, number), _decoded(name, number, raw))


def _too_blank(name: str, line: int) -> BadFile:
    return BadFile(Where(name, line), f"more than {MOST_BLANK:,} blank lines")


# What Python's parser says of JSON, in words that go on with the place.
JSON_IN_WORDS = {
    "Unterminated string starting at": "no quote closes the text that begins",
    "Expecting ',' delimiter": "a comma or a closing bracket is missing",
    "Expecting ':' delimiter": "a colon is missing",
    "Expecting value": "a value is missing",
    "Expecting property name enclosed in double quotes": "a name in double quotes is missing",
    "Illegal trailing comma before end of object": "a comma stands before the closing bracket",
    "Illegal trailing comma before end of array": "a comma stands before the closing bracket",
    "Extra data": "something follows the end of the object",
    "Invalid control character at": "a line break or another control character stands",
}


def _odd_line(where: Where, line: str) -> Iterator[Row | Problem]:
    """The same as the fast path, which does not say what is wrong."""
    if not line.strip():
        return
    try:
        data = parse_json(line)
    except json.JSONDecodeError as error:
        cut = " (is the line cut off?)" if error.pos >= len(line.rstrip()) - 1 else ""
        words = JSON_IN_WORDS.get(error.msg, error.msg.removesuffix(" at"))
        yield Problem(where, "", f"is not JSON: {words} at character {error.pos + 1}{cut}")
        return
    except ValueError as error:
        yield Problem(where, "", str(error))
        return
    yield object_row(where, data)


def object_row(where: Where, value: Any) -> Row | Problem:
    return Row(where, value) if isinstance(value, dict) else Problem(where, "", "is not a JSON object")


def _holds_infinite(values: Iterable[Any]) -> bool:
    """Whether a number was too large for a double."""
    for value in values:
        kind = type(value)
        if kind is str:
            continue
        if kind is list:
            if _holds_infinite(value):
                return True
        elif kind is dict:
            if _holds_infinite(value.values()):
                return True
        elif kind is float and value in INFINITE:
            return True
    return False


def json_value(path: Path) -> Any:
    """The single JSON value of a file. Raises BadFile."""
    try:
        return parse_json("".join(line for _, line in lines(path, MAX_VALUE)))
    except json.JSONDecodeError as error:
        raise BadFile(Where(path.name, error.lineno), f"is not JSON: {error.msg}") from None
    except ValueError as error:
        raise BadFile(path, str(error)) from None


def json_array(path: Path) -> Iterator[Row | Problem]:
    """The objects of one JSON array, counted from 0, of which a few are held at a time. Raises BadFile."""
    text = _Unread(path)
    if text.next_character() != "[":
        json_value(path)  # which says what is wrong, if it is no JSON
        raise BadFile(path, "is not a JSON array")
    text.place += 1
    index, is_open = -1, text.next_character() != "]"
    while is_open:
        index, item = index + 1, text.value()
        where = Where(path.name, record=index)
        yield object_row(where, item)
        is_open = text.next_character() == ","
        if is_open:
            text.place += 1
            text.next_character()
    if text.next_character() != "]":
        raise text.fault("Expecting ',' delimiter", text.place)
    text.place += 1
    if text.next_character():
        raise text.fault("Extra data", text.place)


class _Unread:
    """The text of a file from where it was read to."""

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self.text, self.place, self.line = "", 0, 1  # read text, the place in it, the number of its first line
        self.ended = False
        self._blocks = _texts(path)

    def next_character(self) -> str:
        """The next character that is no space, which stays; "" at the end."""
        while True:
            self.place = cast(re.Match[str], SPACE.match(self.text, self.place)).end()
            if self.place < len(self.text):
                return self.text[self.place]
            if not self._read(1):
                return ""

    def value(self) -> Any:
        """The JSON value that comes next. Raises BadFile."""
        while True:
            try:
                value, end = _decoder.raw_decode(self.text, self.place)
                if end < len(self.text) or self.ended:  # else a number may go on
                    self.place = end
                    return value
            except json.JSONDecodeError as error:
                near_end = error.pos > len(self.text) - NEAR or error.msg.startswith("Unterminated string")
                if self.ended or not near_end:
                    raise self.fault(error.msg, error.pos) from None
            except RecursionError:
                raise BadFile(Where(self.name), "is nested too deeply") from None
            except ValueError as error:
                raise BadFile(Where(self.name), str(error)) from None
            size = len(self.text) - self.place
            if size > MAX_VALUE:
                raise self.fault(f"an object of more than {MAX_VALUE // 2**20} MB", self.place)
            self._read(size)
            if self.text.count("[") + self.text.count("{") > MOST_INSIDE:
                raise BadFile(Where(self.name, self.line), TOO_MUCH)

    def fault(self, reason: str, place: int) -> BadFile:
        return BadFile(Where(self.name, self.line + self.text.count("\n", 0, place)), f"is not JSON: {reason}")

    def _read(self, least: int) -> bool:
        """Read on, at least so many characters, and drop what was passed over; false at the end of the file."""
        self.line += self.text.count("\n", 0, self.place)
        parts, size = [self.text[self.place :]], 0
        while size < least and not self.ended:
            block = next(self._blocks, "")
            self.ended = not block
            size += len(block)
            parts.append(block)
        self.text, self.place = "".join(parts), 0
        return size > 0


def _texts(path: Path) -> Iterator[str]:
    """The text of a file, a megabyte at a time. Raises BadFile at the first byte that is not UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    line, before = 1, 0  # the line that a block begins in, and how many bytes of it came before
    with open_bytes(path) as file:
        for number in itertools.count():
            block = _block(file, Where(path.name, line), is_first=not number)
            try:
                text = decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                good = error.object[: error.start]
                earlier = before - (len(error.object) - len(block))  # bytes of a character began in the block before
                byte = len(good) - good.rfind(b"\n") + (0 if b"\n" in good else earlier)
                reason = f"is not UTF-8 (byte {byte} of the line); save it as UTF-8"
                raise BadFile(Where(path.name, line + good.count(b"\n")), reason) from None
            if text:
                yield text
            if not block:
                return
            line += block.count(b"\n")
            before = len(block) - block.rfind(b"\n") - 1 if b"\n" in block else before + len(block)


def object_rows(path: Path) -> Iterator[Row | Problem]:
    """The objects of the longest list in one JSON object, counted from 0: what tools write around their rows is passed
    over. Where there is none, the objects that it names one by one. Raises BadFile.
    """
    whole = json_value(path)
    objects = _longest_list(whole) or _named_objects(whole)
    if not objects:
        raise BadFile(path, "is one JSON object without a list of objects in it")
    for index, item in enumerate(objects):
        where = Where(path.name, record=index)
        yield object_row(where, item)


def _longest_list(whole: Any) -> list[Any]:
    """The longest list in an object that begins with an object; of equals the last and innermost."""
    longest: list[Any] = []
    level = [whole]
    for _ in range(MOST_DEPTH + 1):
        for value in level:
            if isinstance(value, list) and value and len(value) >= len(longest) and isinstance(value[0], dict):
                longest = value
        inside = (value.values() for value in level if isinstance(value, dict))
        level = [inner for inner in itertools.chain.from_iterable(inside) if isinstance(inner, dict | list)]
    return longest


def _named_objects(whole: Any) -> list[Any]:
    """The values of an object, where all of several are objects."""
    values = list(whole.values()) if isinstance(whole, dict) else []
    return values if len(values) > 1 and all(isinstance(value, dict) for value in values) else []


def csv_rows(path: Path) -> Iterator[Row | Problem]:
    """Rows of a CSV file with a header; comma, semicolon or tab. Every cell is text; empty cells are left out."""
    header, reader = _csv(path)
    start, blank = reader.line_num + 1, 0
    try:
        for cells in reader:
            where, start = Where(path.name, start), reader.line_num + 1
            if not cells:
                blank += 1
                if blank > MOST_BLANK:
                    raise _too_blank(path.name, start - 1)
            elif len(cells) != len(header):
                yield Problem(where, "", f"has {len(cells)} cells, the header {len(header)}")
            else:
                yield Row(where, {name: cell for name, cell in zip(header, cells, strict=True) if cell != ""})
    except csv.Error as error:
        raise _no_csv(path, start, error) from None


def _no_csv(path: Path, line: int, error: csv.Error) -> BadFile:
    too_large = str(error).startswith("field larger than field limit")
    return BadFile(Where(path.name, line), TOO_LARGE if too_large else f"is not CSV: {error}")


def _csv(path: Path) -> "tuple[list[str], CsvReader]":
    """The names of the columns in small letters, none of an empty file, and what reads the rows below them. Raises
    BadFile.
    """
    source = lines(path)
    first = next(source, None)
    text = (line for _, line in itertools.chain([first] if first else [], source))
    reader = csv.reader(text, delimiter=max(",;\t", key=first[1].count) if first else ",", strict=True)
    try:
        header = [name.strip().lower() for name in next(reader, [])]
    except csv.Error as error:
        raise _no_csv(path, 1, error) from None
    return _distinct(header, path), reader


def _distinct(header: list[str], path: Path) -> list[str]:
    """The names of columns. Raises BadFile where two are the same."""
    if len(set(header)) != len(header):
        raise BadFile(Where(path.name, 1), "two columns have the same name")
    return header


def workbook_rows(path: Path) -> Iterator[Row | Problem]:
    """Rows of an Excel workbook: of its first sheet with names in the first row. Cells are text as in CSV, dates ISO;
    of a formula the value that was stored with it. Raises BadFile.
    """
    book, header, cells_by_row = _sheet(path)
    blank = 0
    try:
        for number, cells in cells_by_row:
            blank = 0 if any(cell is not None for cell in cells) else blank + 1
            if blank > MOST_BLANK:
                raise _too_blank(path.name, number)
            if blank:
                continue
            if any(cell is not None for cell in cells[len(header) :]):
                yield Problem(Where(path.name, number), "", f"has more than the {len(header)} cells of the header")
                continue
            texts = [(name, _cell_text(cell)) for name, cell in zip(header, cells, strict=False)]
            if large := next((name for name, text in texts if len(text) > MAX_CELL), None):
                yield Problem(Where(path.name, number), large, TOO_LARGE)
                continue
            yield Row(Where(path.name, number), {name: text for name, text in texts if text != ""})
    finally:
        book.close()


def _sheet(path: Path) -> tuple[Any, list[str], Iterator[tuple[int, Sequence[Any]]]]:
    """An open workbook, the names in its first sheet that has any, and the numbered rows below. Raises BadFile."""
    try:
        if fault := _workbook_fault(path, _changed(path)):
            raise BadFile(path, f"the Excel workbook {fault}")
        book = import_module("openpyxl").load_workbook(path, read_only=True, data_only=True, keep_links=False)
        for sheet in book.worksheets:
            sheet.reset_dimensions()  # which a file may state at will
            cells_by_row = _cells_of(path, sheet)
            _, first = next(cells_by_row, (0, ()))
            header = [_cell_text(cell).strip().lower() for cell in first]
            while header and not header[-1]:
                header.pop()
            if header:
                return book, _distinct(header, path), cells_by_row
    except BadFile:
        raise
    except Exception as error:  # whatever the parsers of a format with so many parts stumble over
        raise BadFile(path, f"is no readable Excel workbook ({type(error).__name__})") from None
    raise BadFile(path, "is an Excel workbook without a sheet whose first row names columns")


def _cells_of(path: Path, sheet: Any) -> Iterator[tuple[int, Sequence[Any]]]:
    number = 0
    try:
        for number, cells in enumerate(sheet.iter_rows(values_only=True), start=1):
            if len(cells) > archives.MOST_CELLS:
                raise BadFile(Where(path.name, number), f"has more than {archives.MOST_CELLS:,} cells")
            yield number, cells
    except BadFile:
        raise
    except Exception as error:
        reason = f"is no readable Excel workbook from here on ({type(error).__name__})"
        raise BadFile(Where(path.name, number + 1), reason) from None


def _cell_text(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return str(cell).upper()
    if isinstance(cell, float):
        return f"{cell:.15g}"
    return cell.isoformat() if isinstance(cell, date | time) else str(cell)


def parts_of_table(folder: Path) -> list[Path]:
    """The Parquet files in a folder, or in ``data`` below, that are one table in parts, as the Hugging Face Hub has it
    (``data/train-00000-of-00002.parquet``); none where their columns differ. Raises NoPyarrow.
    """
    files = sorted(folder.glob("*.parquet")) or sorted(folder.glob("data/*.parquet"))
    try:
        same = len({frozenset(parquet_names(file)) for file in files}) == 1
    except BadFile:
        return []
    return files if same else []


def _largest(cell: Any) -> tuple[int, int]:
    """The bytes of the longest text in a column of one row, and of all that is in it, without decoding it."""
    kind = str(cell.type)
    if kind.startswith("dictionary"):
        cell = cell.dictionary.take(cell.indices)
        kind = str(cell.type)
    if kind.startswith(("struct", "list", "large_list", "fixed_size_list", "map")):
        inside = cell.flatten()
        parts = inside if isinstance(inside, list) else [inside.slice(place, 1) for place in range(len(inside))]
        sizes = [_largest(part) for part in parts]
        return max((text for text, _ in sizes), default=0), sum(whole for _, whole in sizes)
    return cell.nbytes if "string" in kind else 0, cell.nbytes


def _large_cell(row: Any) -> str:
    """The column of a row, a slice of one, whose cell is too large to be decoded; "" if there is none."""
    for name, column in zip(row.schema.names, row.columns, strict=True):
        text, whole = _largest(column)
        if text > MAX_CELL or whole > MAX_VALUE:
            return str(name)
    return ""


def parquet_rows(path: Path) -> Iterator[Row | Problem]:
    """Rows of a Parquet file; empty cells are left out. Raises BadFile, NoPyarrow."""
    pa, pq = parquet.load()
    index = -1
    try:
        file = pq.ParquetFile(path)
        size = sum(file.metadata.row_group(number).total_byte_size for number in range(file.num_row_groups))
        at_once = min(1000, HEAVY * file.metadata.num_rows // max(1, size) + 1)  # pictures make rows heavy
        # A text that stands in many rows is held once, as it is in the file, and rows are made of it one at a time.
        leaves = [file.metadata.schema.column(number) for number in range(len(file.metadata.schema))]
        _refuse_large_columns(path, file.metadata, leaves)
        texts = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
        for batch in pq.ParquetFile(path, read_dictionary=texts).iter_batches(batch_size=at_once):
            is_large = batch.nbytes > MAX_CELL  # else none of its cells is
            for number in range(len(batch)):
                row = batch.slice(number, 1)
                large = _large_cell(row) if is_large else ""
                (data,) = [{}] if large else row.to_pylist()
                index += 1
                if large:
                    yield Problem(Where(path.name, record=index), large, TOO_LARGE)
                    continue
                yield Row(Where(path.name, record=index), {k: v for k, v in data.items() if v is not None})
    except (pa.ArrowException, OSError, ValueError) as error:
        raise BadFile(Where(path.name, record=index + 1), f"is not readable Parquet: {error}") from None


def _refuse_large_columns(path: Path, metadata: Any, leaves: Sequence[Any]) -> None:
    """Raise BadFile for texts that are too large on average, by what the file says of itself, before any is read."""
    record = 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for place, leaf in enumerate(leaves):
            column = group.column(place)
            is_text = leaf.logical_type.type == "STRING"
            if is_text and column.total_uncompressed_size > MAX_CELL * max(1, column.num_values):
                raise BadFile(Where(path.name, record=record), f"{leaf.path}: {TOO_LARGE}")
        record += group.num_rows


def parquet_length(path: Path) -> int:
    """How many rows a Parquet file says it holds, without reading any. Raises BadFile, NoPyarrow."""
    pa, pq = parquet.load()
    try:
        return int(pq.read_metadata(path).num_rows)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise BadFile(path, f"is not readable Parquet: {error}") from None


def parquet_names(path: Path) -> set[str]:
    """The names of the columns. Raises BadFile, NoPyarrow."""
    pa, pq = parquet.load()
    try:
        return set(pq.read_schema(path).names)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise BadFile(path, f"is not readable Parquet: {error}") from None


# What is no table, by its first bytes.
NO_TABLES = {
    b"\x89PNG": "a picture (PNG)",
    b"\xff\xd8\xff": "a picture (JPEG)",
    b"GIF8": "a picture (GIF)",
    b"%PDF": "a PDF document",
    b"\xd0\xcf\x11\xe0": "an old Office document (XLS, DOC)",
}


def no_table(path: Path) -> str:
    """What a file is by its first bytes, in words, if these are not of a table; else ""."""
    start = head(path, 16)
    if start.startswith(b"RIFF") and start[8:12] == b"WEBP":
        return "a picture (WebP)"
    return next((words for first, words in NO_TABLES.items() if start.startswith(first)), "")


def kind_of(path: Path) -> str:
    """``jsonl``, ``json``, ``object``, ``csv``, ``parquet``, ``xlsx`` or ``zip``, detected by content, not by name.
    ``object``: one JSON object over several lines.
    """
    if path.is_dir():
        return "parquet" if parts_of_table(path) else ""
    start = head(path)
    if start.startswith(b"PAR1"):
        return "parquet"
    if start.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return "xlsx" if archives.is_workbook(path) else "zip"
    start = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.partition(b"\n")[0].strip() == b"{":
        return "object"
    start = start[:1]
    return {b"{": "jsonl", b"[": "json"}.get(start, "csv")


READERS: dict[str, Callable[[Path], Iterator[Row | Problem]]] = {
    "jsonl": json_lines,
    "json": json_array,
    "object": object_rows,
    "csv": csv_rows,
    "parquet": parquet_rows,
    "xlsx": workbook_rows,
}


def first_names(path: Path) -> frozenset[str]:
    """The names of a table's columns, of a file of objects those in the first. Reads as little as possible, and once,
    since every format asks.
    """
    if path.is_dir():
        return frozenset().union(*map(parquet_names, parts_of_table(path)[:1])) if parquet.available() else frozenset()
    try:
        return _first_names(path, _changed(path))
    except BadFile:
        return frozenset()


def _changed(path: Path) -> tuple[int, int]:
    """What is another for a file that was written anew. Raises BadFile."""
    try:
        stat = path.stat()
    except OSError as error:
        raise bad_path(path, f"cannot be read: {error.strerror}") from None
    return stat.st_mtime_ns, stat.st_size


@lru_cache(maxsize=32)
def _first_names(path: Path, changed: tuple[int, int]) -> frozenset[str]:
    try:
        kind = kind_of(path)
        if kind == "csv" and not no_table(path):
            return frozenset(_csv(path)[0])
        if kind == "parquet":
            return frozenset(parquet_names(path))
        if kind == "xlsx":
            book, header, _ = _sheet(path)
            book.close()
            return frozenset(header)
        if kind == "json":
            text = head(path, MAX_FIRST).decode(errors="replace").lstrip("\ufeff \r\n\t[")
            first, _ = _decoder.raw_decode(text)
            return frozenset(first) if isinstance(first, dict) else frozenset()
        row = next(iter(rows(path)), None)
    except (BadFile, ValueError, RecursionError):
        return frozenset()
    return frozenset(row.data) if isinstance(row, Row) else frozenset()


@lru_cache(maxsize=32)
def _workbook_fault(path: Path, changed: tuple[int, int]) -> str:
    return archives.workbook_fault(path)


def head(path: Path, size: int = 4096) -> bytes:
    """The first bytes of a file, decompressed. Raises BadFile."""
    with open_bytes(path) as file:
        try:
            return file.read(size)
        except (EOFError, OSError):
            raise bad_path(path, "the compressed file is damaged") from None


def start_of(path: Path, size: int = 4096) -> bytes:
    """The first bytes of a file; none where it cannot be read."""
    try:
        return head(path, size)
    except BadFile:
        return b""


def chosen_files(path: Path, in_folder: Iterable[Path], missing: str) -> list[Path]:
    """The file itself, or of a folder these. Raises BadFile where there are none, with the words of what is missing."""
    files = list(in_folder) if path.is_dir() else [path]
    if not files:
        raise bad_path(path, missing)
    return files


def existing(folder: Path, names: Iterable[str]) -> list[Path]:
    """Those of the files that a folder has."""
    return [folder / name for name in names if (folder / name).is_file()]


def rows(path: Path) -> Iterator[Row | Problem]:
    """The rows of a file of any kind, or of a folder that is one table in parts."""
    if path.is_dir():
        if not (files := parts_of_table(path)):
            raise bad_path(path, "is a directory, and not one table in several Parquet files")
        return itertools.chain.from_iterable(map(parquet_rows, files))
    kind = kind_of(path)
    if words := no_table(path):
        raise BadFile(path, f"is {words}, not a table")
    if kind not in READERS:
        raise BadFile(path, "is an archive; unpack it first")
    return READERS[kind](path)


ALIASES = words_of(__file__, "aliases")  # what other tools call a field
# The validator's faults, by type, in words; {names} are its own.
IN_WORDS = {
    "extra_forbidden": "is not a known field",
    "missing": "is missing",
    "string_type": "is no text",
    "list_type": "is no list",
    "dict_type": "is no object",
    "model_type": "is no object",
    "model_attributes_type": "is no object",
    "literal_error": "is none of {expected}",
    "bool_type": "is neither true nor false",
    "int_type": "is no whole number",
    "int_from_float": "is no whole number",
    "float_type": "is no number",
    "greater_than_equal": "is less than {ge}",
    "less_than_equal": "is more than {le}",
    "string_too_long": "has more than {max_length} characters",
    "too_short": "has fewer than {min_length} entries",
    "too_long": "has more than {max_length} entries",
    "string_pattern_mismatch": "is not written as it should be",
    "date_type": "is no date such as 2026-11-25",
    "datetime_type": "is no time such as 2026-11-25T20:40:00Z",
    "timezone_aware": "is a time without its zone, such as Z",
}


def meant_by(name: str, known: Iterable[str]) -> str:
    """The known field that is written nearly the same, or that other tools call so; "" if there is none."""
    fields, name = list(known), name.casefold()
    if alias := next((field for field, names in ALIASES.items() if name in names and field in fields), ""):
        return alias
    return next(iter(difflib.get_close_matches(name, fields, n=1, cutoff=0.7)), "")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``: did you mean NAME?``; empty if there is none."""
    near = meant_by(name, known)
    return f": did you mean {near}?" if near else ""


def _in_words(fault: "ErrorDetails") -> str:
    if words := IN_WORDS.get(fault["type"]):
        return words.format_map({name: str(value).replace("'", "") for name, value in fault.get("ctx", {}).items()})
    return fault["msg"].removeprefix("Value error, ")


def text_fault(text: str) -> str:
    """Why a text cannot be stored: a database refuses it, or it has no bytes. "" if it can."""
    if "\x00" in text:
        return "holds a NUL character"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "holds half of a surrogate pair, which is no character"
    return ""


def text_faults(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """The texts in a JSON value that cannot be stored: the field of each, and why."""
    if isinstance(value, str):
        if fault := text_fault(value):
            yield ".".join(path), fault
    elif isinstance(value, dict):
        for name, inner in value.items():
            if fault := text_fault(str(name)):
                yield ".".join(path), fault
            else:
                yield from text_faults(inner, (*path, str(name)))
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from text_faults(inner, (*path, str(number)))


def validated(rows_in: Iterable[Row | Problem], record: type[Rec]) -> Iterator[Row | Problem]:
    """Rows whose data is a valid record; for the others, a Problem per fault that names the field."""
    validate = record.__pydantic_validator__.validate_python
    for row in rows_in:
        if isinstance(row, Problem):
            yield row
            continue
        where, data, plain = row
        faults = [] if plain else list(text_faults(data))
        if faults:
            yield from (Problem(where, field, words) for field, words in faults)
            continue
        try:
            yield Row(where, validate(data))
        except ValidationError as error:
            key = str(data.get("key") or "")[:MAX_KEY] if "key" in record.model_fields else ""
            for fault in error.errors(include_url=False, include_input=False):
                field = ".".join(str(part) for part in fault["loc"])
                words = _in_words(fault)
                if fault["type"] == "extra_forbidden":
                    words += did_you_mean(str(fault["loc"][-1]), record.model_fields if len(fault["loc"]) == 1 else ())
                yield Problem(where, field, words, sample=key)


class BadRow(Exception):
    """Nothing can be made of a row: the field that is wrong, and why."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field, self.reason = field, reason


def odd(row: Row, field: str, reason: str) -> Problem:
    """A warning about a row that is taken all the same."""
    return Problem(row.where, field, reason, warning=True)


def spread(
    reading: Callable[[Row], Iterable[Problem | dict[str, Any]]], source: Iterable[Row | Problem]
) -> Iterator[Row | Problem]:
    """The rows that ``reading`` makes of each, which may raise BadRow, and its problems."""
    for row in source:
        if isinstance(row, Problem):
            yield row
            continue
        try:
            for one in reading(row):
                yield one if isinstance(one, Problem) else Row(row.where, one)
        except BadRow as fault:
            yield Problem(row.where, fault.field, fault.reason)


def converted(
    source: Iterable[Row | Problem], convert: Callable[[Row], Iterable[Problem | dict[str, Any]]], record: type[Rec]
) -> Iterator[Row | Problem]:
    """The records of a format's rows: for each row, those that ``convert`` gives as objects, and its warnings. It may
    raise BadRow.
    """
    return validated(spread(convert, source), record)


def short_hash(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:8]


def require(data: dict[str, Any], *names: str) -> None:
    """Raises BadRow for the first of these names that a row lacks."""
    for name in names:
        if name not in data:
            raise BadRow(name, "is missing")
