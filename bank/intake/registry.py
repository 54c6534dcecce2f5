"""The parts of an import, in the order in which they are imported, what each must implement, what follows a large one,
and tables to export.

Apps above the bank register what is theirs at startup (``AppConfig.ready``), because imports go downwards only.
"""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from django.db.models import Model
from django.utils.module_loading import import_string

from bank import database

if TYPE_CHECKING:
    from bank.intake.imports import Report
    from bank.intake.imports.context import ImportContext

log = logging.getLogger(__name__)
LARGE = 100_000  # rows
ORDER = ("samples", "responses", "recipe_responses", "judgments", "labels")


class Importer(Protocol):
    """Imports the rows of one part in batches: first all are checked, then, perhaps, written.

    An importer with heavy rows also has ``weigh(row)``, in bytes, which then limits its batches too.
    """

    def check(self, rows: Any, report: "Report") -> Any:
        """Report problems in these rows and count what they would make; writes nothing.

        Returns what ``write`` needs, picklable; something falsy if there is nothing to write.
        """

    def expected_rows(self) -> Mapping[type[Model], int]:
        """The most rows per table that ``write`` will make of what was checked; referenced tables first."""

    def write(self, batch: Any) -> None:
        """Pass what a check returned to ``context.writer``. Runs outside any transaction; rows are not visible yet."""

    def finish(self) -> None:
        """Change existing rows. Runs in the last transaction, which makes everything visible: keep it short."""


_importers: dict[str, str] = {}
AFTER_LARGE: list[str] = []  # dotted paths of what is called without arguments after an import of many rows
EXPORTED: dict[str, str] = {}  # tables of apps above the bank, see ``bank.intake.exports``: the dotted path by name


def register(name: str, importer: str) -> None:
    """``importer`` is the dotted path of a class that takes the ImportContext; it is loaded on demand."""
    if name not in ORDER:
        raise ValueError(f"{name!r} is not one of {ORDER}")
    _importers[name] = importer


def importer(name: str, context: "ImportContext") -> Importer:
    made: Importer = import_string(_importers[name])(context)
    return made


def known() -> tuple[str, ...]:
    """The registered parts, in order."""
    return tuple(name for name in ORDER if name in _importers)


def imported(rows: int) -> None:
    """An import of so many rows is done: a fault of what follows a large one is none of it."""
    if rows < LARGE:
        return
    try:
        database.analyze()
        for path in AFTER_LARGE:
            import_string(path)()
    except Exception:
        log.exception("What follows a large import failed")
