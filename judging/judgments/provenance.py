"""What judges of files saw: said when the file comes in or later, and never by the file itself."""

from functools import reduce
from operator import or_

from django.db import transaction

from accounts.models import User
from bank import exposure
from bank.errors import BadInput
from bank.intake.imports import provenance
from judging.models import JURY, Judgment, Run


@transaction.atomic
def say_saw_nothing(*, run: Run, by: User | None = None, command: str = "") -> None:
    """Note that the judge of a file saw nothing hidden, so that everybody may see its verdicts. It is logged. Raises
    BadInput of verdicts that were made here, and of a judge that was shown criteria.
    """
    if run.settings.get("criteria") is True:
        raise BadInput("The file says that this judge was shown criteria.")
    if JURY in run.settings:
        raise BadInput("What a jury saw is what its members saw: say it of these.")
    items = Judgment.objects.filter(run=run).order_by().values_list("item", flat=True)
    provenance.open_verdicts(run, items=items, by=by, command=command, run=run.pk)
    note_held_by_juries([run.pk])


def for_staff(run: Run) -> int:
    """How many verdicts of a file are for staff alone, since nobody said what its judge saw."""
    if not run.imported or run.held != exposure.UNKNOWN or JURY in run.settings:
        return 0
    return provenance.closed_among(Judgment.objects.filter(run=run, status=Judgment.Status.OK), held="run__held")


def note_held_by_juries(members: list[int]) -> None:
    """Note what the juries with these runs among their members held: what one or another of them did."""
    for jury in Run.objects.filter(imported=True, settings__has_key=JURY) if members else ():
        if not set(jury.settings[JURY]).isdisjoint(members):
            held = Run.objects.filter(pk__in=jury.settings[JURY]).values_list("held", flat=True)
            Run.objects.filter(pk=jury.pk).update(held=reduce(or_, held, exposure.NOTHING))
