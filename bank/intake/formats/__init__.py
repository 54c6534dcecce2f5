"""File formats. Each module is a small reader, file to records, and is listed here.

A module has ``NAME``, ``recognises(path)`` and any of the readers ``samples``, ``responses``, ``labels``,
``judgments``; each takes a file or a directory and yields ``Row`` (a validated record) or ``Problem``. Most call
``reading.converted`` with a function from a row to the objects of the project's own format.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

from bank.intake.formats import (
    alt_test,
    argilla,
    generic,
    label_studio,
    llmfao,
    mia_bench,
    mllm_as_a_judge,
    mllm_bench,
    mmbench,
    pairs,
    pope,
    templates,
)
from bank.intake.formats.reading import BadFile, Problem, Row, Where, first_names, no_table

MODULES: dict[str, ModuleType] = {
    module.NAME: module
    for module in (
        *(mllm_bench, mllm_as_a_judge, mia_bench, mmbench, pope, llmfao, alt_test, pairs, generic),
        *(label_studio, argilla),
    )
}
NAMES = (*MODULES, "auto")


class UnknownFormat(BadFile):
    """No format knows the file; says its columns, and what they come nearest to."""

    def __init__(self, path: Path) -> None:
        self.is_no_table = no_table(path) if path.is_file() else ""
        names = first_names(path) if path.is_file() else set()
        self.columns = sorted(name for name in names if COLUMN.fullmatch(name))  # what is no name may be content
        self.nearest = templates.nearest(self.columns)
        words = f"is {self.is_no_table}, not a table" if self.is_no_table else "is in no format known here"
        if self.columns:
            words += f". Its columns: {', '.join(self.columns[:MOST_COLUMNS])}"
        if self.nearest:
            words += f". {self.nearest[0].words}"
        super().__init__(Where(str(path)), words)


MOST_COLUMNS = 12  # that are named
COLUMN = re.compile(r"[\w .-]{1,40}")
Reader = Callable[[Path], Iterator[Row | Problem]]


def find(name: str, path: Path) -> ModuleType:
    """The format of that name; for ``auto`` the first that recognises the content. Raises BadFile."""
    if not path.exists():
        raise BadFile(Where(str(path)), "there is no such file or directory")
    if name != "auto":
        return MODULES[name]
    for module in MODULES.values():
        if module.recognises(path):
            return module
    raise UnknownFormat(path)


def reader(module: ModuleType, part: str) -> Reader:
    """The reader of ``samples``, ``responses``, ``labels`` or ``judgments``. Raises LookupError if there is none."""
    function = getattr(module, part, None)
    if function is None:
        having = ", ".join(name for name, other in MODULES.items() if hasattr(other, part))
        raise LookupError(f"The format {module.NAME} has no {part}. Formats that have: {having}.")
    return function
