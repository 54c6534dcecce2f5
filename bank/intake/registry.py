"""The parts of an import, in the order in which they are imported, what each must implement, what follows a large one,
and the tables and shapes of exports.

Apps above the bank register what is theirs at startup (``AppConfig.ready``), because imports go downwards only.
"""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from django.db.models import Model
from django.utils.module_loading import import_string

from accounts import jobs
from bank import database

if TYPE_CHECKING:
    from bank.intake.imports import Report
    from bank.intake.imports.context import ImportContext

log = logging.getLogger(__name__)
SOME, LARGE = 1_000, 100_000  # rows
ORDER = ("samples", "responses", "recipe_responses", "judgments", "labels")


class Importer(Protocol):
    """Imports the rows of one part: first all are checked, then, perhaps, written.

    An importer with heavy rows also has ``weigh(row)``, in bytes, which then limits its batches too.
    """

    def check(self, rows: Any, report: "Report") -> None:
        """Report problems in these rows, and put the others into ``context.stage``."""

    def settle(self, report: "Report") -> None:
        """When all rows are put: report those that contradict what is there, and count what the others would make."""

    def expected_rows(self) -> Mapping[type[Model], int]:
        """The most rows per table that ``write`` will make of what was checked; referenced tables first."""

    def write(self) -> Iterator[int]:
        """Pass what is staged to ``context.writer``; yields how many rows of the file after each stretch. Runs outside
        any transaction; rows are not visible yet.
        """

    def finish(self) -> None:
        """Change existing rows. Runs in the last transaction, which makes everything visible: keep it short."""


_importers: dict[str, str] = {}
EXPORTED: dict[str, str] = {}  # tables of apps above the bank, see ``bank.intake.exports``: the dotted path by name
# Where the rows of a table are, to count them: the model, and its path to the benchmark.
ROWS = {
    "samples": ("bank.Sample", "benchmark"),
    "responses": ("bank.Response", "sample__benchmark"),
    "recipe_responses": ("bank.Response", "sample__benchmark"),
    "items": ("bank.Item", "sample__benchmark"),
}
# What makes the files of exports, see ``bank.intake.export_files``: the dotted path by name.
DOWNLOADS = {"benchmark": "bank.views.benchmarks.benchmark_file"}


@dataclass(frozen=True, slots=True)
class Shape:
    """A shape in which tables leave. ``maker`` is the dotted path of what makes the file, see ``exports.file_pieces``;
    without one it is a table of rows.
    """

    title: str
    content: str  # media type
    ending: str
    tables: tuple[str, ...]  # that it can hold
    maker: str = ""
    of_campaign: bool = False  # it holds what one campaign asks
    needs_pyarrow: bool = False


TABLES = {
    "samples": "Samples: instruction, pictures, options, capability",
    "responses": "Responses of all models",
    "recipe_responses": "Answers by recipes: each turn and repeat, with likelihoods",
    "items": "Items: what judges and people give verdicts on",
    "labels": "Labels: people's verdicts, from all campaigns",
    "preferences": "Preferences: pairs for training by DPO, from all campaigns",
    "judgments": "Judgments: judges' verdicts, from all runs",
}
EVERYTHING = "all"  # in place of a table: those that people look for in a benchmark
SHAPES: dict[str, Shape] = {
    "jsonl": Shape("JSON Lines", "application/x-ndjson", "jsonl", tuple(TABLES)),
    "csv": Shape("CSV", "text/csv; charset=utf-8", "csv", tuple(TABLES)),
    "parquet": Shape("Parquet", "application/vnd.apache.parquet", "parquet", tuple(TABLES), needs_pyarrow=True),
    "huggingface": Shape(
        "Hugging Face folder, as a zip",
        "application/zip",
        "zip",
        (EVERYTHING, *TABLES),
        "bank.intake.huggingface.zip_pieces",
        needs_pyarrow=True,
    ),
    "inspect": Shape(
        "Scores of one model for Inspect",
        "application/x-ndjson",
        "jsonl",
        ("labels", "judgments"),
        "bank.intake.inspect_scores.file_pieces",
    ),
}


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
    if rows < SOME:
        return
    try:
        database.analyze()
        if rows >= LARGE:
            jobs.defer("prepare_again")
    except Exception:
        log.exception("What follows a large import failed")
