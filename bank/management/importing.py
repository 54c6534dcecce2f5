"""The common part of the import commands: arguments, progress, the report, exit status."""

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.management.base import UncheckedCommand
from bank.database.unfinished import ImportInProgress
from bank.errors import BadInput, WrongUse
from bank.intake import formats
from bank.intake.formats import mapping
from bank.intake.formats.mapping import Mapped
from bank.intake.formats.reading import BadFile, Problem
from bank.intake.imports import Progress, Report, provenance
from bank.intake.imports.context import ImportOptions
from bank.intake.imports.engine import nothing_more, run_import
from bank.models import Benchmark

MOST_ALIKE = 50  # warnings
MOST_BAD, MOST_KINDS = 10, 10  # bad rows alike, and kinds of them, unless every one is asked for
ALIKE = re.compile(r"'[^']*'|\d+")


class Failed(CommandError):
    """Bad input: exit status 1."""

    def __init__(self, message: str) -> None:
        super().__init__(message, returncode=1)


def counted(count: int, noun: str) -> str:
    """``3 runs``, ``1 run``."""
    return f"{count:,} {noun[:-1] if count == 1 and noun.endswith('s') else noun}"


@contextmanager
def bad_input_fails() -> Iterator[None]:
    """Report what is wrong with the input and exit with status 1, with the arguments, and exit with status 2."""
    try:
        yield
    except WrongUse as error:
        raise CommandError(str(error), returncode=2) from None
    except (BadInput, BadFile, ImportInProgress, LookupError, Benchmark.DoesNotExist) as error:
        raise Failed(str(error)) from None


class ImportCommand(UncheckedCommand):
    """FORMAT PATH --benchmark SLUG [--dry-run] [--skip-bad] and those of ImportOptions that a subclass adds."""

    part: str

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("format", choices=formats.NAMES, metavar="FORMAT", help=", ".join(formats.NAMES))
        parser.add_argument("path", type=Path, metavar="PATH", help="a file, a directory or a zip")
        parser.add_argument("--benchmark", required=True, metavar="SLUG", help="SLUG or SLUG@VERSION")
        parser.add_argument("--dry-run", action="store_true", help="say what would be made, and every bad row")
        parser.add_argument("--skip-bad", action="store_true", help="import the good rows although others are bad")
        parser.add_argument(
            "--map", type=Path, metavar="FILE.yaml", help="what the columns of a table hold; FORMAT auto"
        )
        parser.add_argument("--propose-map", action="store_true", help="print a map to start from, and import nothing")
        parser.add_argument("--all-parts", action="store_true", help="import all that the file holds, not only this")
        parser.add_argument(
            "--saw-nothing",
            action="store_true",
            help="whoever gave these labels or judgments saw nothing hidden; else they count as having seen all of it",
        )
        self.more_arguments(parser)

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        # The contract's --version is the benchmark's; Django's own option of that name gives way.
        return super().create_parser(prog_name, subcommand, conflict_handler="resolve", **kwargs)

    def more_arguments(self, parser: CommandParser) -> None:
        """For subclasses."""

    def handle(self, *args: Any, **options: Any) -> None:
        if options["propose_map"]:
            with bad_input_fails():
                self.stdout.write(proposed_map(options["path"]), ending="")
            return
        slug, _, version = options["benchmark"].partition("@")
        taken = {field.name: options[field.name] for field in fields(ImportOptions) if options.get(field.name)}
        with bad_input_fails(), progress_of(self) as progress:
            reports = run_import(
                path=options["path"],
                format=format_of(options),
                parts=[] if options["all_parts"] else [self.part],
                slug=slug,
                **taken | {"version": options.get("benchmark_version") or version},
                images=options.get("images"),
                dry_run=options["dry_run"],
                skip_bad=options["skip_bad"],
                progress=progress,
                checked=self.tell_closing,
                finish=partial(provenance.record, command=self.part) if options["saw_nothing"] else nothing_more,
            )
        for report in reports.values():
            self.tell(report, options)
        bad = sum(report.bad for report in reports.values())
        written = all(report.written for report in reports.values())
        if bad and not (written and options["skip_bad"]):
            hint = "" if options["dry_run"] else " --skip-bad imports the good ones."
            raise Failed(f"{counted(bad, 'bad rows')}, nothing was written.{hint}")

    def tell_closing(self, reports: dict[str, Report]) -> None:
        """Say which verdicts will be for staff alone, before they are."""
        if words := provenance.in_words(reports):
            self.stdout.write(f"{words} If they saw nothing hidden, say so with --saw-nothing.")

    def tell(self, report: Report, options: dict[str, Any]) -> None:
        for line in gathered(report.warnings):
            self.stderr.write(f"warning  {line}")
        if options["dry_run"]:
            for problem in report.problems:
                self.stderr.write(f"bad row  {problem}")
        else:
            for line in gathered(report.problems, most=MOST_BAD, kinds=MOST_KINDS):
                self.stderr.write(f"bad row  {line}")
        if report.bad > len(report.problems):
            self.stderr.write(f"... and more; only the first {len(report.problems):,} are listed.")
        if options["dry_run"]:
            self.stdout.write(f"Would make {_counts(report)}. Nothing was written.")
        elif report.written:
            self.stdout.write(f"Made {_counts(report)}.")


def format_of(options: dict[str, Any]) -> str | Mapped:
    """The format that the arguments name, or that of a map. Raises BadInput, WrongUse."""
    if options["map"] is None:
        return str(options["format"])
    if options["format"] != "auto":
        raise WrongUse("--map goes with the format auto.")
    try:
        return Mapped(mapping.ready(mapping.from_text(options["map"].read_text(encoding="utf-8"))))
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{options['map']} cannot be read: {error}.") from None


def proposed_map(path: Path) -> str:
    """A proposed map of the columns of a table, as YAML, with what is left to choose as comments. Raises BadFile."""
    _, columns = mapping.survey(path)
    nearest = mapping.proposals(columns)[0]
    values = {
        name: {word: mapping.meaning_of(name, word) for word in words}
        for name, words in mapping.open_values(nearest.map, columns).items()
    }
    text = nearest.map.model_copy(update={"values": values}).as_yaml()
    if nearest.missing:
        text += f"# not found, and needed: {', '.join(nearest.missing)}\n"
    return text + (f"# left out: {', '.join(nearest.unknown)}\n" if nearest.unknown else "")


def gathered(problems: Sequence[Problem], *, most: int = MOST_ALIKE, kinds: int | None = None) -> Iterator[str]:
    """Problems by file, field and reason; of similar ones (except for names and numbers) the first and the number of
    others. Of more than so many ``kinds``, the commonest.
    """
    alike: dict[tuple[str, str], list[Problem]] = {}
    for problem in problems:
        alike.setdefault((problem.where.file, ALIKE.sub("", f"{problem.field} {problem.reason}")), []).append(problem)
    groups = list(alike.values())
    if kinds is not None and len(groups) > kinds:
        groups.sort(key=len, reverse=True)
    for similar in groups[:kinds]:
        yield from map(str, similar[:most])
        if len(similar) > most:
            yield f"{similar[0].where.file}: {len(similar) - most:,} more like the last one"
    if others := groups[len(groups[:kinds]) :]:
        yield f"and {sum(map(len, others)):,} of {len(others):,} other kinds: --dry-run lists every one"


@contextmanager
def progress_of(command: BaseCommand) -> Iterator[Progress]:
    """A bar on a terminal; elsewhere a plain line every 10,000 rows."""
    if sys.stderr.isatty():
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        columns = (TextColumn("{task.description} {task.completed:,.0f}"), BarColumn(), TimeElapsedColumn())
        with Bar(*columns, transient=True) as bar:
            task = bar.add_task("", total=None)
            yield lambda part, done: bar.update(task, description=f"{part}:", completed=done)
        return
    reported = {"": 0}

    def line(part: str, done: int) -> None:
        if done - reported.get(part, 0) >= 10_000:
            reported[part] = done
            command.stdout.write(f"{part}: {done:,} rows")

    yield line


def _counts(report: Report) -> str:
    """The numbers of new, known and bad rows in words."""
    new = ", ".join(counted(count, noun) for noun, count in report.made.items() if count) or "nothing new"
    were = "was" if report.unchanged == 1 else "were"
    same = f"; {report.unchanged:,} {were} there already" if report.unchanged else ""
    bad = f"; {counted(report.bad, 'bad rows')}" if report.problems else ""
    return f"{new}{same}{bad}"
