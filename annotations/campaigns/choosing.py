"""The verdicts that may choose items for people below staff.

Which items somebody gets, and in which order, tells the verdicts that these were chosen by. So they are chosen by what
everybody below staff may count, and by nothing else.
"""

from django.contrib.auth.models import AnonymousUser
from django.db.models import Q, QuerySet

from annotations.models import Adjudication, Label, LabelQuerySet
from bank import exposure, guard
from bank.models.catalogue import in_hidden_splits
from judging.models import OVERLAP, Judgment, Run


def _may_choose(*, held: str, item: str) -> Q:
    """The verdicts of judges and people that may; ``held`` and ``item`` are paths, as in ``exposure.counted``."""
    return exposure.counted(held=held, item=item) & ~in_hidden_splits(f"{item}sample__")


@guard.working()
def judgments() -> QuerySet[Judgment]:
    """Those that may choose: also failed ones, since what an answer asks the judge can make it fail."""
    untold = Run.objects.unseen_by(AnonymousUser())
    found = Judgment.objects.filter(_may_choose(held="run__held", item="item__"))
    return found.exclude(run__judge__baseline=OVERLAP).exclude(run__in=untold)


@guard.working()
def labels() -> LabelQuerySet:
    rows: LabelQuerySet = Label.objects.filter(_may_choose(held="campaign__held", item="item__"))
    return rows


def adjudications() -> QuerySet[Adjudication]:
    return Adjudication.objects.filter(_may_choose(held="campaign_item__campaign__held", item="campaign_item__item__"))
