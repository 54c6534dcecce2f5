"""File formats. Each module is a small reader, file to records, and is found here.

A module has ``NAME``, ``recognises(path)`` and any of the readers ``samples``, ``responses``, ``labels``,
``judgments``; each takes a file or a directory and yields ``Row`` (a validated record) or ``Problem``. Most call
``reading.converted`` with a function from a row to the objects of the project's own format. Another tool's file whose
rows hold everything at once needs no readers: its module has a ``SHAPE``, ``pairs`` or ``answers``, and
``wide_rows(path)``, which gives rows as that format writes them.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from inspect import signature
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any, Protocol, cast

from bank.intake.formats import answers, generic, mapping, pairs, wide
from bank.intake.formats.named_maps import MAPS
from bank.intake.formats.reading import BadFile, Problem, Row, Where, bad_path, first_names, kind_of, no_table, rows
from bank.picked import filled, present

# The first that recognises a file reads it. What is not named here stands between: its place does not matter.
_FIRST = (
    "mllm_bench mllm_as_a_judge mia_bench mmbench pope llmfao alt_test mt_bench battles alpaca_eval "
    "preferences lmms_eval inspect_log"
).split()
_LAST = "pairs answers generic label_studio argilla".split()
_NAMES = [*_FIRST, *sorted({file.name for file in iter_modules(__path__)} - {*_FIRST, *_LAST}), *_LAST]
_FOUND = [import_module(f"{__name__}.{name}") for name in _NAMES]
MODULES: dict[str, Any] = {module.NAME: module for module in (*_FOUND, *MAPS) if hasattr(module, "NAME")}
SHAPES = (pairs, answers)  # what other tools' files are brought to
NAMES = (*MODULES, "auto")


class UnknownFormat(BadFile):
    """No format knows the file; says its columns, and what they come nearest to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_no_table = no_table(path) if path.is_file() else ""
        names = first_names(path)
        self.columns = sorted(name for name in names if COLUMN.fullmatch(name))  # what is no name may be content
        self.nearest = mapping.proposals([mapping.Column(name) for name in self.columns]) if self.columns else []
        words = f"is {self.is_no_table}, not a table" if self.is_no_table else "is in no format known here"
        if self.columns:
            words += f". Its columns: {', '.join(self.columns[:MOST_COLUMNS])}"
        if self.nearest:
            words += f". {self.nearest[0].words}. --map FILE.yaml names columns; --propose-map prints one to start from"
        super().__init__(Where(str(path)), words)


MOST_COLUMNS = 12  # that are named
COLUMN = re.compile(r"[\w .-]{1,40}")
Reader = Callable[[Path], Iterator[Row | Problem]]


class Format(Protocol):
    """A module of this package, or a mapping of columns; what else it may have, see above."""

    @property
    def NAME(self) -> str: ...


def find(name: str, path: Path) -> Format:
    """The format of that name; for ``auto`` the first that recognises the content. Raises BadFile."""
    if not path.exists():
        raise bad_path(path, "there is no such file or directory")
    if name != "auto":
        return MODULES[name]
    for module in MODULES.values():
        if module.recognises(path):
            return module
    if path.is_file() and kind_of(path) == "xlsx":
        next(rows(path), None)  # which says what is wrong with it, if it cannot be read
    raise UnknownFormat(path)


def is_of_many(format: Format) -> bool:
    """Whether its files may be of any benchmark, named by the file; the others are those of one."""
    return format is generic or _shape(format) is not None


def has(format: Format, part: str) -> bool:
    """Whether the format can hold this part."""
    return hasattr(_shape(format) or format, part)


def parts(format: Format, path: Path) -> set[str] | None:
    """The parts that the file holds; None where the format does not say."""
    if hasattr(format, "parts"):
        return set(format.parts(path))
    shape = _shape(format)
    return None if shape is None else set(shape.parts(path, read=_rows_of(format)))


def reader(format: Format, part: str, given: Mapping[str, str] | None = None) -> Reader:
    """The reader of ``samples``, ``responses``, ``labels`` or ``judgments``. Raises LookupError if there is none.

    ``given``: the ``model``, ``judge`` or ``annotator`` of rows that name none, where rows hold everything at once or
    the reader takes it.
    """
    if not has(format, part):
        having = ", ".join(name for name, other in MODULES.items() if has(other, part))
        raise LookupError(f"The format {format.NAME} has no {part}. Formats that have: {having}.")
    shape = _shape(format)
    said = filled(given or {})
    if shape is None:
        own = getattr(format, part)
        return partial(own, given=said) if "given" in signature(own).parameters else cast(Reader, own)
    return partial(getattr(shape, part), read=partial(_completed, _rows_of(format), said))


def _shape(format: Format) -> ModuleType | None:
    return format if isinstance(format, ModuleType) and format in SHAPES else getattr(format, "SHAPE", None)


def _rows_of(format: Format) -> Reader:
    return getattr(format, "wide_rows", rows)


def _completed(read: Reader, said: Mapping[str, str], path: Path) -> Iterator[Row | Problem]:
    """Rows with what is said of those that name no model, and neither a judge nor an annotator."""
    by = present(said, ("judge", "annotator"))
    model = present(said, ("model",))
    for row in read(path):
        if isinstance(row, Row) and said:
            row = Row(row.where, model | ({} if wide.names_somebody(row.data) else by) | row.data)
        yield row
