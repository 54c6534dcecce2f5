"""What those who gave the verdicts of a file may have seen: nothing hidden if whoever brings it says so, else all that
the benchmark has closed. A file does not say it of itself.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db.models import QuerySet

from accounts import audit
from accounts.models import User
from bank import exposure
from bank.database import chunks
from bank.errors import BadInput
from bank.intake.imports import Report
from bank.intake.imports.context import FIRST_PENDING, ImportContext
from bank.models import Benchmark, Sample
from bank.samples.items import ItemSpec, name_openly, outside_among
from stats.figures import listed, number_of

VERDICTS = ("judgments", "labels")  # the parts that are given by somebody
BEFORE = "of the same giver that came before"
SAID = "saw-nothing-said"


class Closing:
    """Counts the verdicts of a file that nobody below staff will see, see ``bank.exposure.counted``."""

    def __init__(self, context: ImportContext) -> None:
        self.context = context
        stored = context.benchmark
        self.closed = exposure.closed_in(Sample.objects.filter(benchmark=stored)) if stored else exposure.NOTHING

    def count(self, specs: Sequence[ItemSpec]) -> int:
        """How many of these items' verdicts close."""
        if self.context.saw_nothing or not (self.closed or self.context.pending_closed):
            return 0
        closed_of = self._closed_of({spec.sample_id for spec in specs})
        concerned = [spec for spec in specs if spec.sample_id in closed_of]
        outside = outside_among(pk for spec in concerned for pk in spec.response_ids if pk > 0)
        return sum(
            exposure.closes(closed_of[spec.sample_id], outside=not outside.isdisjoint(spec.response_ids))
            for spec in concerned
        )

    def stored(self, verdicts: "QuerySet[Any]", *, held: str) -> int:
        """How many of these stored verdicts close with those of this file; ``held``: the path to what was held."""
        if self.context.saw_nothing:
            return 0
        return verdicts.filter(exposure.counted(held=held)).exclude(exposure.counted_if(exposure.UNKNOWN)).count()

    def _closed_of(self, samples: Iterable[int]) -> dict[int, int]:
        """What is closed of these samples, stored or pending; without those that are open."""
        stored, pending = [], {}
        for sample in samples:
            if sample > 0:
                stored.append(sample)
            elif closed := self.context.pending_closed[FIRST_PENDING - sample]:
                pending[sample] = closed
        for ids in chunks(stored if self.closed else ()):
            pending |= Sample.objects.filter(pk__in=ids, closed__gt=0).values_list("pk", "closed")
        return pending


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
