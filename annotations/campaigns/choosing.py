"""The verdicts that may choose items for people below staff.

Which items somebody gets, and in which order, tells the verdicts that these were chosen by. So they are chosen by what
everybody below staff may count, and by nothing else.
"""

from django.contrib.auth.models import AnonymousUser
from django.db.models import Q, QuerySet

from annotations.models import Adjudication, Campaign, Label, LabelQuerySet
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
def labels(*, in_own_round: bool = False) -> LabelQuerySet:
    """Those that may choose: of a blind round that goes on only for itself, where nobody gets an item twice."""
    rows: LabelQuerySet = Label.objects.filter(_may_choose(held="campaign__held", item="item__"))
    going = Q(campaign__blind=True, campaign__state__in=Campaign.GOING, item__blind=True)
    return rows if in_own_round else rows.exclude(going)


def adjudications() -> QuerySet[Adjudication]:
    """Those that may choose: of no blind round that goes on."""
    place = "campaign_item__"
    going = {
        f"{place}campaign__blind": True,
        f"{place}campaign__state__in": Campaign.GOING,
        f"{place}item__blind": True,
    }
    return Adjudication.objects.filter(_may_choose(held=f"{place}campaign__held", item=f"{place}item__")).exclude(
        **going
    )
