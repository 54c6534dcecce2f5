"""An annotator's own labels in numbers: how many, how long they took, and how they agree with those of others.

Agreement is told for closed rounds alone: while one runs, it would tell what others say.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from statistics import median
from typing import Any

from django.db.models import Count, Exists, F, Min, OuterRef
from django.utils import timezone

from annotations import ballots
from annotations.ballots.pairs import LEFT_RIGHT
from annotations.labels.agreement import (
    LabelRow,
    LabelsByItem,
    Matches,
    by_item,
    label_rows,
    one_by_one,
    own_and_others,
    with_majority,
)
from annotations.models import Annotator, Campaign, Label, LabelReturn, LabelRevision
from bank import guard
from bank.models.catalogue import in_hidden_splits
from stats.disclosure import MIN_SAMPLES
from stats.proportions import rate
from stats.results import Estimate

DAYS = 7
NEWEST = 300  # labels that tell how long one usually takes
CAMPAIGNS = 20  # of the same protocol, in which they are looked for
FEWEST_TIMED = 10  # labels


@guard.working()
def usual_seconds(protocol: str) -> tuple[float, int]:
    """How long a label of this protocol usually takes here, and of how many; without enough labels a guess, of 0."""
    campaigns = Campaign.objects.filter(protocol=protocol).order_by("-pk").values_list("pk", flat=True)[:CAMPAIGNS]
    timed = Label.objects.filter(campaign__in=list(campaigns), seconds__gt=0).order_by("-pk")
    seconds = [float(taken or 0) for taken in timed.values_list("seconds", flat=True)[:NEWEST]]
    if len(seconds) < FEWEST_TIMED:
        ballot = ballots.BALLOTS.get(protocol)
        return float(ballot.usual_seconds if ballot else 45), 0
    return median(seconds), len(seconds)


def own_matches(items: LabelsByItem, annotator: int) -> Matches:
    """How often somebody's labels say what another label on the same item says."""
    same = [own.verdict == other.verdict for own, others in own_and_others(items, annotator) for other in others]
    return Matches(sum(same), len(same))


def own_shares(items: LabelsByItem, annotator: int, *, fewest: int) -> list[Estimate]:
    """The share of the same verdicts with each other person who labelled ``fewest`` of the same items, the most like
    them first.
    """
    compared: dict[int, list[tuple[LabelRow, str]]] = defaultdict(list)
    for own, others in own_and_others(items, annotator):
        for other in others:
            compared[other.annotator].append((own, other.verdict))
    shares = [share_of(rows) for rows in compared.values() if items_of(rows) >= fewest]
    return sorted(shares, key=lambda share: -(share.value or 0))


def items_of(compared: Sequence[tuple[LabelRow, str]]) -> int:
    """How many items these are about."""
    return len({own.item for own, _verdict in compared})


def share_of(compared: Sequence[tuple[LabelRow, str]]) -> Estimate:
    """The share of own labels that are the verdict beside them."""
    return rate(hits=[own.verdict == verdict for own, verdict in compared], cluster=[own.group for own, _ in compared])


@dataclass(frozen=True, slots=True)
class Sides:
    """Verdicts on pairs as they were shown: the left answer is the first."""

    first: int
    tie: int
    second: int
    unable: int

    @property
    def total(self) -> int:
        return self.first + self.tie + self.second + self.unable

    @property
    def shares(self) -> str:
        decided = self.tie + self.unable
        return ", ".join(f"{100 * count / self.total:.0f}%" for count in (self.first, decided, self.second))


@dataclass(frozen=True, slots=True)
class Statistics:
    """Somebody's own numbers, over all campaigns."""

    days: Mapping[date, int]
    week_time: float  # seconds
    labels: int
    since: datetime | None
    sides: Sides
    agreed: Estimate
    reviewed: int  # labels that a reviewer sent back and they answered
    kept: int  # of them, those they left as they were

    @property
    def week(self) -> int:
        return sum(self.days.values())

    @property
    def most(self) -> int:
        """The labels of the longest day."""
        return max(self.days.values())


@guard.working()
def statistics_of(annotator: Annotator, closed: Mapping[int, LabelsByItem]) -> Statistics:
    """``closed``: the labels of the closed rounds they took part in, by campaign."""
    labels = Label.objects.filter(annotator=annotator)
    today = timezone.now().date()
    first = today - timedelta(days=DAYS - 1)
    recent = labels.filter(created_at__date__gte=first).values_list("created_at", "seconds")
    per_day = dict.fromkeys((first + timedelta(days=day) for day in range(DAYS)), 0)
    spent = 0.0
    for at, seconds in recent:
        per_day[at.date()] = per_day.get(at.date(), 0) + 1
        spent += seconds or 0
    compared = [pair for items in closed.values() for pair in with_majority(items, annotator.pk)]
    totals = labels.aggregate(n=Count("pk"), since=Min("created_at"))
    changed = LabelRevision.objects.filter(label=OuterRef("label"), replaced_at=OuterRef("answered_at"))
    answered = LabelReturn.objects.filter(label__annotator=annotator, answered_at__isnull=False)
    return Statistics(
        days=per_day,
        week_time=spent,
        labels=totals["n"],
        since=totals["since"],
        sides=sides_of(labels.filter(assignment__campaign_item__practice=False)),
        agreed=share_of(compared),
        reviewed=answered.count(),
        kept=answered.exclude(Exists(changed)).count(),
    )


def sides_of(labels: Any) -> Sides:
    """Of these labels, those on pairs as their annotator saw them."""
    counts = dict.fromkeys(LEFT_RIGHT, 0)
    rows = labels.filter(choice__isnull=False).values_list("choice", "assignment__order").annotate(n=Count("pk"))
    for choice, order, n in rows.order_by():
        counts[ballots.presented({"choice": choice}, order)["choice"]] += n
    return Sides(counts["left"], counts["tie"], counts["right"], counts["undecided"])


@guard.working()
def labels_behind_numbers(campaign: Campaign, annotator: Annotator) -> LabelsByItem:
    """The labels that somebody's numbers about a closed round are made of, ``one_by_one``: none on items that people
    label blind in another, and none on hidden splits unless they and others labelled MIN_SAMPLES of their samples.
    """
    labels = Label.objects.filter(campaign=campaign)
    blind = set(labels.filter(item__blind=True).values_list("item", flat=True))
    hidden = dict(labels.filter(in_hidden_splits("item__sample__")).values_list("item", "item__sample"))
    rows = [row for row in label_rows(campaign) if row.item not in blind]
    shared = {hidden.get(mine.item) for mine, _others in own_and_others(by_item(rows), annotator.pk)} - {None}
    few = len(shared) < MIN_SAMPLES
    return by_item(one_by_one(row for row in rows if not (few and row.item in hidden)))


@guard.working()
def closed_rounds(annotator: Annotator, *, most: int) -> dict[int, LabelsByItem]:
    """``labels_behind_numbers`` of the newest closed campaigns in which somebody has labelled, by campaign."""
    own = Label.objects.filter(annotator=annotator, campaign=OuterRef("pk"))
    closed = Campaign.objects.filter(Exists(own), state=Campaign.State.CLOSED)
    newest = closed.order_by(F("closed_at").desc(nulls_last=True), "-pk")[:most]
    return {campaign.pk: labels_behind_numbers(campaign, annotator) for campaign in newest.select_related("benchmark")}
