"""Imports: all or nothing, and importing the same file twice changes nothing.

``engine`` is the way in. It reads and checks every row, and what is good waits in tables that nobody else sees
(``stage``). Only when every row is good, or bad rows may be skipped, does it write. Each kind of row has a part:
``samples`` and ``responses`` here, judgments and labels in the apps above.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from bank.intake.formats.reading import Problem, Where

MAX_LISTED = 100_000
Progress = Callable[[str, int], None]


class Cancelled(Exception):
    """Somebody cancelled the import; nothing of it remains."""


def no_progress(part: str, done: int) -> None:
    """For imports that nobody watches."""


def never() -> bool:
    """For imports that nobody can cancel."""
    return False


@dataclass
class Report:
    """What an import made, or would make, of one part: counts by noun, unchanged rows, problems, warnings.

    ``bad`` counts all bad rows; ``problems`` lists the first hundred thousand problems. ``closing`` counts the new
    verdicts that nobody below staff would see, ``closing_stored`` those that such a file would close with them.
    """

    made: Counter[str] = field(default_factory=Counter)
    unchanged: int = 0
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    rows: int = 0
    bad: int = 0
    closing: int = 0
    closing_stored: int = 0
    written: bool = False
    _last: Where | None = None

    def add(self, problem: Problem) -> None:
        """List a problem or a warning. Several problems of one row arrive one after another and count once."""
        listed = self.warnings if problem.warning else self.problems
        if len(listed) < MAX_LISTED:
            listed.append(problem)
        if not problem.warning:
            self.bad += problem.where != self._last
            self._last = problem.where

    def refuse(self, where: Where, field: str, reason: str, *, sample: str = "") -> None:
        self.add(Problem(where, field, reason, sample=sample))
