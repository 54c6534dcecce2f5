"""What those who gave the verdicts of a file may have seen: nothing hidden if whoever brings it says so, else all that
the benchmark has closed. A file does not say it of itself.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from django.db.models import QuerySet

from accounts import audit
from accounts.models import User
from bank import exposure
from bank.database import bulk
from bank.errors import BadInput
from bank.intake.imports import Report
from bank.intake.imports.context import ImportContext
from bank.models import Benchmark, Response
from bank.samples.items import name_openly
from stats.figures import listed, number_of

VERDICTS = ("judgments", "labels")  # the parts that are given by somebody
BEFORE = "of the same giver that came before"
SAID = "saw-nothing-said"


class Closing:
    """Counts the verdicts of a file that nobody below staff will see, see ``bank.exposure.counted``."""

    def __init__(self, context: ImportContext) -> None:
        self.context = context

    def count(self, table: str) -> int:
        """How many of these staged verdicts close, see VerdictItems."""
        if self.context.saw_nothing:
            return 0
        outside = Response.objects.exclude(origin=Response.Origin.STAFF).filter(
            sample__benchmark=self.context.benchmark
        )
        is_outside = bulk.literal(False)
        if self.context.benchmark is not None and outside.exists():
            is_outside = f"""EXISTS (SELECT 1 FROM staged_cited cited
                JOIN bank_response response ON response.id = cited.response
                WHERE cited.i = staged.i AND response.origin <> '{Response.Origin.STAFF}')"""
        kinds = self.context.stage.ask(
            f"""SELECT closed, outside, count(*) FROM (
                SELECT coalesce(stored.closed, pending.closed) AS closed, {is_outside} AS outside
                FROM {table} staged JOIN staged_placed placed ON placed.i = staged.i
                LEFT JOIN bank_sample stored ON stored.id = placed.sample
                LEFT JOIN staged_sample pending ON pending.number = placed.sample
                WHERE coalesce(stored.closed, pending.closed) > 0
            ) verdicts GROUP BY closed, outside"""
        )
        return sum(count for closed, outside, count in kinds if exposure.closes(closed, outside=bool(outside)))

    def stored(self, verdicts: "QuerySet[Any]", *, held: str) -> int:
        """How many of these stored verdicts close with those of this file; ``held``: the path to what was held."""
        if self.context.saw_nothing:
            return 0
        return verdicts.filter(exposure.counted(held=held)).exclude(exposure.counted_if(exposure.UNKNOWN)).count()


def in_words(reports: Mapping[str, Report]) -> str:
    """What of these verdicts would be for staff alone, and why; "" where nothing would."""
    told = []
    for part in VERDICTS:
        new, stored = (reports[part].closing, reports[part].closing_stored) if part in reports else (0, 0)
        noun = part.removesuffix("s")
        told += [number_of(new, noun)] if new else []
        told += [f"{number_of(stored, noun)} {BEFORE}"] if stored else []
    if not told:
        return ""
    return (
        f"{listed(told)} will be for staff alone, with all numbers made of them: whoever gave them may have seen "
        "answer keys, references, weights or other criteria that are closed."
    )


def closed_among(verdicts: "QuerySet[Any]", *, held: str) -> int:
    """How many of these stored verdicts are for staff alone for what they held; ``held``: the path to that."""
    return verdicts.exclude(exposure.counted(held=held)).count()


def open_verdicts(
    giver: Any,
    *,
    items: Iterable[int],
    leaves: int = exposure.NOTHING,
    by: User | None,
    command: str,
    **about: Any,
) -> None:
    """Store of a campaign or run from files that nothing hidden was seen but what it ``leaves``, and that this did not
    choose its ``items`` (ids); and log it.

    Raises BadInput where it is known already what was seen. Call it in a transaction.
    """
    unknown = type(giver)._default_manager.filter(pk=giver.pk, imported=True, held=exposure.UNKNOWN)
    if not unknown.update(held=leaves):
        raise BadInput("What was seen here is known: only of labels and judgments from files it can be said.")
    giver.held = leaves
    name_openly(items)
    audit.record(SAID, by=by, command=command, about=str(giver.benchmark), **about)


def record(benchmark: Benchmark, reports: Mapping[str, Report], *, by: User | None = None, command: str = "") -> None:
    """Write to the audit log that somebody said of these verdicts that nothing hidden was seen. Call it in the import's
    transaction.
    """
    made = {part: reports[part].made[part] for part in VERDICTS if part in reports and reports[part].made[part]}
    if made:
        audit.record(SAID, by=by, command=command, about=str(benchmark), verdicts=made)
