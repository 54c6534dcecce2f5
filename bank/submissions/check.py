"""Compares a submitted file with its benchmark: every bad row, what is missing, what should not be there."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bank.intake import formats
from bank.intake.formats.reading import BadFile, Problem, Row, Where, kind_of, parquet_length
from bank.intake.formats.records import ResponseRecord
from bank.intake.imports.addressing import Addresses
from bank.intake.parquet import NoPyarrow
from bank.models import Benchmark, SubmissionRules
from bank.picked import picked

ROWS_PER_WANTED = 2  # a file with more rows than this for each that is wanted is not read further
MOST_PROBLEMS = 2_000  # row errors that are listed; further ones are only counted
MOST_IDS = 200_000
MOST_WARNINGS = 20
MANY = 0.1  # of the answers: if so many are empty, the sender is warned
ROTATION = re.compile(r"circular-(\d{1,2})")


@dataclass
class Checked:
    """The contents of a file and its problems. ``missing`` and ``extra`` are sample keys, with the rotation."""

    rows: int = 0
    responses: int = 0
    splits: dict[str, dict[str, int]] = field(default_factory=dict)
    circular: bool = False
    problems: list[list[str]] = field(default_factory=list)  # place, field, reason
    problem_count: int = 0
    missing: list[str] = field(default_factory=list)
    missing_count: int = 0
    extra: list[str] = field(default_factory=list)
    extra_count: int = 0
    warnings: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not (self.problem_count or self.missing_count or self.extra_count)

    def counts(self) -> dict[str, Any]:
        names = ("rows", "responses", "splits", "circular", "warnings")
        return picked(self, names)

    def faults(self) -> dict[str, Any]:
        names = ("problems", "problem_count", "missing", "missing_count", "extra", "extra_count")
        return picked(self, names)

    def add(self, problem: Problem) -> None:
        if problem.warning:
            self.warnings = [*self.warnings, str(problem)][:MOST_WARNINGS]
            return
        self.problem_count += 1
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append([str(problem.where), problem.field, problem.reason])

    def warn_of_empty(self, empty: int) -> None:
        """If many of the answers are."""
        if empty and empty >= MANY * self.responses:
            share = f"{empty:,} of {self.responses:,} answers are empty"
            self.warnings.insert(0, f"{share}: an empty answer is never right.")


@dataclass(frozen=True, slots=True)
class Wanted:
    """A sample as a submission sees it: the labels of its options, none for an open question."""

    key: str
    split: str
    labels: tuple[str, ...]

    def variants(self, *, circular: bool) -> list[str]:
        """The variants of a complete answer: with the rotations, one for each place."""
        places = max(len(self.labels), 1) if circular else 1
        return ["", *(f"circular-{shift}" for shift in range(1, places))]


def wanted_samples(benchmark: Benchmark) -> dict[str, Wanted]:
    """The samples to answer, by key: approved, whoever asks."""
    samples = benchmark.samples.in_use().order_by("position", "pk")
    return {
        key: Wanted(key, split, tuple(options))
        for key, split, options in samples.values_list("key", "split", "options")
    }


def required_splits(rules: SubmissionRules, splits: set[str]) -> set[str]:
    """The splits that a submission must answer: the required ones that exist, else all."""
    return set(rules.required_splits) & splits or splits


def most_rows(samples: dict[str, Wanted]) -> int:
    """How many rows of a file are read at most, where each rotation of each sample is wanted once."""
    return ROWS_PER_WANTED * sum(max(len(sample.labels), 1) for sample in samples.values())


def read_responses(path: Path, *, benchmark: Benchmark, name: str, most: int) -> Iterator[Row | Problem]:
    """The responses in a file, each for this model and with a normalised rotation.

    Raises BadFile, also where the file holds more than ``most`` rows: no more are read, and of Parquet, which says how
    many it holds, none.
    """
    if not path.stat().st_size:
        raise BadFile(path, "is empty")
    if kind_of(path) == "parquet" and parquet_length(path) > most:
        raise too_many(Where(path.name), most)
    reader = formats.reader(_format_of(path), "responses")
    for row in Addresses(benchmark, answerable=True).resolved(_up_to(most, reader(path))):
        if isinstance(row, Problem):
            yield row
            continue
        record: ResponseRecord = row.data
        if record.model and record.model != name:
            yield Problem(row.where, "model", f"is {record.model!r}; this submission is of {name!r}")
            continue
        variant = "" if record.variant == "circular-0" else record.variant
        yield Row(row.where, record.model_copy(update={"model": name, "variant": variant}))


def _up_to(most: int, rows: Iterable[Row | Problem]) -> Iterator[Row | Problem]:
    for number, row in enumerate(rows, 1):
        if number > most:
            raise too_many(row.where, most)
        yield row


def too_many(where: Where, most: int) -> BadFile:
    words = f"the file holds more than {most:,} rows, {ROWS_PER_WANTED} for each answer that the benchmark asks for"
    return BadFile(where, words)


def _format_of(path: Path) -> Any:
    """A file that is not recognised is read as the project's own format, whose problems name row and field."""
    having = [module for module in formats.MODULES.values() if formats.has(module, "responses")]
    return next((module for module in having if module.recognises(path)), formats.MODULES["generic"])


def check(path: Path, *, benchmark: Benchmark, rules: SubmissionRules, name: str) -> Checked:
    """Everything about a file that can be determined without a key."""
    checked = Checked()
    samples = wanted_samples(benchmark)
    sent: dict[tuple[str, str], Where] = {}
    extra: dict[str, None] = {}
    empty = 0
    try:
        for row in read_responses(path, benchmark=benchmark, name=name, most=most_rows(samples)):
            checked.rows += 1
            if isinstance(row, Problem):
                checked.add(row)
                continue
            record: ResponseRecord = row.data
            sample = samples.get(record.sample)
            if sample is None:
                extra[named(record.sample, record.variant)] = None
                continue
            earlier = sent.setdefault((record.sample, record.variant), row.where)
            if earlier is not row.where:
                where = named(record.sample, record.variant)
                checked.add(Problem(row.where, "sample", f"{where} was answered already at {earlier}"))
                continue
            empty += record.known_status == "empty"
            fault = variant_fault(record, sample)
            if fault is not None:
                checked.add(Problem(row.where, *fault))
    except BadFile as error:
        checked.add(error.problem)
        return checked
    except NoPyarrow as error:
        checked.add(Problem(Where(path.name), "", str(error)))
        return checked
    if not checked.rows:
        checked.add(Problem(Where(path.name), "", "holds no rows"))
    checked.responses = len(sent)
    checked.warn_of_empty(empty)
    checked.extra, checked.extra_count = list(extra)[:MOST_IDS], len(extra)
    _completeness(checked, samples=samples, sent=set(sent), rules=rules)
    return checked


def named(key: str, variant: str) -> str:
    return f"{key} ({variant})" if variant else key


def variant_fault(record: ResponseRecord, sample: Wanted) -> tuple[str, str] | None:
    """The fault of a response's rotation or order of options: (field, reason)."""
    labels = sample.labels
    shift = 0
    if record.variant:
        match = ROTATION.fullmatch(record.variant)
        if match is None:
            return (
                "variant",
                f"is {record.variant!r}; it is left out, or circular-1 to circular-{max(len(labels) - 1, 1)}",
            )
        shift = int(match[1])
        if not labels:
            return "variant", f"sample {sample.key} has no options to rotate"
        if shift >= len(labels):
            return "variant", f"sample {sample.key} has {len(labels)} options: circular-{len(labels) - 1} is the last"
    if record.option_order is not None:
        order = tuple(record.option_order)
        if sorted(order) != sorted(labels):
            return "option_order", f"does not name each of {', '.join(labels) or 'no options'} once"
        if record.variant and order != labels[shift:] + labels[:shift]:
            return "option_order", f"is not the rotation {record.variant}: place i shows option i + {shift}"
    return None


def _completeness(
    checked: Checked, *, samples: dict[str, Wanted], sent: set[tuple[str, str]], rules: SubmissionRules
) -> None:
    """Every required split and every started one must be complete; so must the rotations if there are any."""
    checked.circular = any(variant for _, variant in sent)
    begun = {samples[key].split for key, _ in sent}
    needed = begun | required_splits(rules, {sample.split for sample in samples.values()})
    of_split: Counter[str] = Counter()
    rotations: Counter[str] = Counter()
    for sample in samples.values():
        if sample.split not in needed:
            continue
        of_split[sample.split] += 1
        for variant in sample.variants(circular=checked.circular):
            if (sample.key, variant) in sent:
                rotations[sample.split] += 1
                continue
            checked.missing_count += 1
            if len(checked.missing) < MOST_IDS:
                checked.missing.append(named(sample.key, variant))
    checked.splits = {
        split: {"samples": count, "responses": rotations[split]} for split, count in sorted(of_split.items())
    }
