"""Bringing files in: all or nothing, twice the same as once.

``bundle`` is the way in. ``engine`` reads and checks all rows, writes nothing while it does, and keeps what is to be
written in a file of its own (``spool``); only when all is clean, or bad rows may be skipped, one transaction writes it.
What a kind of rows needs is in its part: ``samples`` and ``responses`` here, judgments and labels in the rooms above.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeVar

from bank.formats.reading import Problem, Where

T = TypeVar("T")
MAX_LISTED = 100_000
Progress = Callable[[str, int], None]


class BadInput(ValueError):
    """What was asked for cannot be done; the message says why, in words. ``field`` names what to set right."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class Cancelled(Exception):
    """Somebody stopped the import; nothing of it is left."""


def no_progress(part: str, done: int) -> None:
    """For imports that nobody watches."""


def never() -> bool:
    """For imports that nobody can cancel."""
    return False


@dataclass
class Report:
    """What an import made or would make of one part: counts by noun, unchanged rows, problems, warnings.

    ``bad`` counts all bad rows; ``problems`` lists the first hundred thousand faults.
    """

    made: Counter[str] = field(default_factory=Counter)
    unchanged: int = 0
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    rows: int = 0
    bad: int = 0
    written: bool = False
    _last: Where | None = None

    def add(self, problem: Problem) -> None:
        """List a fault, or a warning. Several faults of one row come one after the other and count once."""
        listed = self.warnings if problem.warning else self.problems
        if len(listed) < MAX_LISTED:
            listed.append(problem)
        if not problem.warning:
            self.bad += problem.where != self._last
            self._last = problem.where

    def refuse(self, where: Where, field: str, reason: str) -> None:
        self.add(Problem(where, field, reason))


def batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


def chunks(values: Iterable[Any], size: int = 900) -> Iterator[list[Any]]:
    """For ``__in`` lookups that stay below SQLite's limit of variables."""
    return batched(dict.fromkeys(values), size)
