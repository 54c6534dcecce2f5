"""Checks every row, then writes everything; all of it becomes visible at once."""

import gc
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from django.db import IntegrityError, OperationalError
from django.db.models import Model

from bank.errors import NotNow, outage
from bank.intake import formats, registry
from bank.intake.formats import Format
from bank.intake.formats.reading import BadFile, Problem, Row, Where
from bank.intake.imports import Cancelled, Progress, Report, never, no_progress, scratch, writer
from bank.intake.imports.context import ImportContext, ImportOptions
from bank.intake.imports.sources import PictureFolder, inspect_opened, open_source, place_as_sent, with_parts
from bank.intake.imports.stage import Stage
from bank.intake.registry import Importer
from bank.models import Benchmark
from bank.picked import picked

Finish = Callable[[Benchmark, dict[str, Report]], None]


def nothing_more(benchmark: Benchmark, reports: dict[str, Report]) -> None:
    """For imports without a final step of their own."""


def no_one_asks(reports: dict[str, Report]) -> None:
    """For imports that tell nobody what they found before they write."""


BATCH = 2000
HEAVY = 32 * 2**20
TRIES = 5
WRITING = "write"
LOCKED = ("database is locked", "deadlock detected")  # something else holds a lock for a long time
GARBAGE = (200_000, 20, 50)  # rows have no reference cycles; looking for them took a quarter of the time


def run_import(
    *,
    path: Path,
    format: str | Format = "auto",
    parts: Sequence[str] = (),
    images: Path | None = None,
    dry_run: bool = False,
    skip_bad: bool = False,
    progress: Progress = no_progress,
    cancelled: Callable[[], bool] = never,
    checked: Callable[[dict[str, Report]], None] = no_one_asks,
    finish: Finish = nothing_more,
    **options: Any,
) -> dict[str, Report]:
    """Import these parts of a file, folder or zip archive (default: all that it holds), either completely or not at
    all. ``options`` are those of ImportOptions.

    With ``dry_run`` nothing is written or locked; each part counts on what the parts before it would make.
    ``progress(part, rows)`` receives the number of checked rows and, under the name "write", of written ones.
    ``cancelled`` is polled between batches; if it returns true, nothing stays and Cancelled is raised.
    ``checked(reports)`` is called when every row is checked, before anything is written.
    ``finish(benchmark, reports)`` is called inside the last transaction, when all is written. ``images`` is the folder
    that the paths of pictures start from or lead to; default: beside the file.

    Importing the same source twice changes nothing. Only one import writes at a time; the next one waits for it. If
    both use the same names, the database's constraints detect it, and the second starts over and sees what the first
    has made. The same happens if somebody made such a row by hand, or if waiting for the write lock timed out.

    Raises BadInput (WrongUse if ``images`` holds none of the pictures), also if that keeps happening, or if the disk is
    full: then nothing was imported; BadFile, LookupError (the format has no such part), Cancelled.
    """
    checked_options = asdict(ImportOptions(**options))
    with ExitStack() as stack:
        opened = stack.enter_context(open_source(path, cancelled))
        source = inspect_opened(opened, format) if not parts else with_parts(opened, format, parts)
        for name in source.parts:
            formats.reader(source.module, name)
        stage = Stage(cancelled)
        stack.callback(stage.drop)
        scratch_folder = cache(lambda: stack.enter_context(scratch.folder()))
        for left in reversed(range(TRIES)):
            stage.drop()
            try:
                context = ImportContext(
                    **checked_options,
                    source=source,
                    images=PictureFolder(images or source.images, given=images is not None),
                    scratch=None if dry_run else scratch_folder,
                    stage=stage,
                )
                reports = _attempt(context, skip_bad, progress, cancelled, checked, finish)
                break
            except (IntegrityError, writer.Outdated):
                if not left:
                    raise
            except (OperationalError, OSError) as error:
                if left and any(words in str(error) for words in LOCKED):
                    continue
                if words := outage(error):
                    raise NotNow(f"{words} Nothing was imported; try again when it is over.") from None
                raise
        for report in reports.values() if opened != path else ():
            for listed in (report.problems, report.warnings):
                listed[:] = [fault._replace(where=place_as_sent(fault.where, opened, path)) for fault in listed]
    registry.imported(sum(report.rows for report in reports.values() if report.written))
    return reports


def _attempt(
    context: ImportContext,
    skip_bad: bool,
    progress: Progress,
    cancelled: Callable[[], bool],
    checked: Callable[[dict[str, Report]], None],
    finish: Finish,
) -> dict[str, Report]:
    """Check all rows and, where that may be, write them."""
    thresholds = gc.get_threshold()
    gc.set_threshold(*GARBAGE)
    try:
        importers = {name: registry.importer(name, context) for name in context.source.parts}
        reports = {name: Report() for name in importers}
        complete = True
        for name, importer in importers.items():
            complete &= _check(context, name, importer, reports[name], progress, cancelled)
        if complete:
            context.images.refuse_if_wrong()
        checked(reports)
        bad = any(report.problems for report in reports.values())
        if context.scratch is None or not complete or (bad and not skip_bad):
            return reports
        with writer.open_writer(folder=context.scratch().name, cancelled=cancelled) as context.writer, context.stage:
            _write(context, importers, progress, cancelled)
            context.store_pictures()
            with context.writer.publish():
                context.finish()
                for importer in importers.values():
                    importer.finish()
                if "samples" in reports and (missing := missing_from(context.open()))[0]:
                    reports["samples"].made[f"samples of version {missing[1]} that are not in this one"] = missing[0]
                finish(context.open(), reports)
                if cancelled():
                    raise Cancelled
        for report in reports.values():
            report.written = True
        return reports
    finally:
        gc.set_threshold(*thresholds)


def _check(
    context: ImportContext,
    name: str,
    importer: Importer,
    report: Report,
    progress: Progress,
    cancelled: Callable[[], bool],
) -> bool:
    """Whether the file could be read to its end."""

    try:
        given = picked(context, ("model", "judge", "annotator"))
        rows_of_part = formats.reader(context.source.module, name, given)(context.source.path)
        for rows in _batches(rows_of_part, report, getattr(importer, "weigh", None)):
            if cancelled():
                raise Cancelled
            importer.check(rows, report)
            progress(name, report.rows)
        complete = True
    except BadFile as error:
        report.add(error.problem)
        complete = False
    told = len(report.problems)
    importer.settle(report)
    if 0 < told < len(report.problems):
        report.problems.sort(key=lambda problem: context.stage.places([problem.where])[0])
    if complete and not report.rows and not report.problems:
        report.refuse(Where("the file"), "", "holds no rows")
    return complete


def _batches(
    source: Iterator[Row | Problem], report: Report, weigh: Callable[[Row], int] | None
) -> Iterator[list[Row]]:
    """Rows by two thousand, or fewer if they are heavy because they contain their pictures."""
    batch: list[Row] = []
    weight = 0
    for entry in source:
        if isinstance(entry, Problem):
            bad = report.bad
            report.add(entry)
            report.rows += report.bad - bad  # a row that cannot be read is a row, once
            continue
        report.rows += 1
        batch.append(entry)
        weight += weigh(entry) if weigh else 0
        if len(batch) == BATCH or weight > HEAVY:
            yield batch
            batch, weight = [], 0
    if batch:
        yield batch


def _write(
    context: ImportContext, importers: dict[str, Importer], progress: Progress, cancelled: Callable[[], bool]
) -> None:
    expected: Counter[type[Model]] = Counter(context.expected_rows())
    for importer in importers.values():
        expected.update(importer.expected_rows())
    context.writer.reserve(expected)
    context.open()
    context.writer.flush()
    done = 0
    for importer in importers.values():
        for rows in importer.write():
            context.writer.flush()
            done += rows
            progress(WRITING, done)
            if cancelled():
                raise Cancelled
        context.writer.flush()


def missing_from(benchmark: Benchmark) -> tuple[int, str]:
    """How many samples of the previous version this one lacks, and that version: it stays as it is."""
    older = Benchmark.objects.filter(slug=benchmark.slug, pk__lt=benchmark.pk).order_by("-pk").first()
    if older is None:
        return 0, ""
    keys = benchmark.samples.order_by().values("key")
    return older.samples.exclude(key__in=keys).count(), older.version
