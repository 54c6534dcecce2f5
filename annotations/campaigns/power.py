"""What a campaign will be able to tell apart, before it is labelled: two models on the same items, at 80 % power."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from django.db.models import Count, Q

from annotations import ballots
from annotations.labels.agreement import LabelRow, by_item
from annotations.models import Campaign, CampaignItem
from bank.errors import BadInput
from bank.models.items import ItemResponse
from bank.models.verdict import Choice
from stats.generalizability import intraclass
from stats.power import Plan
from stats.results import InvalidCount

TIES, ALIKE, DIFFERENCE = 0.2, 0.5, 0.05  # where nothing is known
FEWEST = 30  # items with two labels, to know how alike labels are; labels, to know how many ties there are
OF_PLAN = {"items": "items", "labels": "labels", "rate": "rate", "tie_rate": "ties", "alike": "alike"}
WHOLE = ("items", "labels")
PLANNED = (*OF_PLAN, "difference")
NO_RATE = ("score", "parts", "ranking")  # columns of verdicts that make no rate
UNFIT = (
    "This is reckoned for campaigns of pairs and of single right or wrong verdicts, not for scores, rankings and what "
    "compares judges."
)


@dataclass(frozen=True, slots=True)
class Outlook:
    """A plan, the smallest difference of two rates it finds, and how many items find ``difference``."""

    name: str
    plan: Plan
    detectable: float
    difference: float
    needed: int


def fits(campaign: Campaign) -> bool:
    """Whether its verdicts make a rate of models: wins, right answers."""
    ballot = ballots.words_of(campaign.protocol)
    return not ballot.of_two and verdict_column(campaign) not in NO_RATE


def verdict_column(campaign: Campaign) -> str:
    """Empty for a protocol of which campaigns have no ballot, as files may name one."""
    ballot = ballots.BALLOTS.get(campaign.protocol)
    return ballot.fields[0] if ballot else ""


def outlooks(campaign: Campaign, rows: Sequence[LabelRow], given: Mapping[str, str]) -> list[Outlook]:
    """The plan of a campaign that has these labels, with what is ``given`` in its place, and beside it one label more
    on each item, and twice the items. Raises BadInput.
    """
    if not fits(campaign):
        raise BadInput(UNFIT)
    numbers = {name: _number(name, text) for name, text in given.items() if text != ""}
    difference = numbers.pop("difference", DIFFERENCE)
    try:
        plan = replace(_usual(campaign, rows), **{OF_PLAN[name]: number for name, number in numbers.items()})
        return [
            Outlook(name, each, each.detectable(), difference, each.items_for(difference))
            for name, each in (
                ("as planned", plan),
                ("one more label an item", replace(plan, labels=plan.labels + 1)),
                ("twice the items", replace(plan, items=2 * plan.items)),
            )
        ]
    except InvalidCount as error:
        raise BadInput(f"{error}.".capitalize()) from None


def _number(name: str, text: str) -> Any:
    whole = name in WHOLE
    try:
        number = int(text) if whole else float(text)
    except ValueError:
        raise BadInput(f"{name}: {text[:30]!r} is not a {'whole ' if whole else ''}number.", name) from None
    most = 10**6 if whole else 1
    if not 0 <= number <= most:
        raise BadInput(f"{name} is a number from 0 to {most:,}.", name)
    return number


def _usual(campaign: Campaign, rows: Sequence[LabelRow]) -> Plan:
    """The items of each model, and what the labels that are there say; where they are too few, what is usual."""
    items = CampaignItem.objects.filter(campaign=campaign, practice=False, gold__isnull=True)
    models = ItemResponse.objects.filter(item__in=items.values("item"))
    anchor = campaign.benchmark.anchor_id
    of_model = models.exclude(response__model=anchor).order_by().values("response__model")
    counts = [row["n"] for row in of_model.annotate(n=Count("item", distinct=True))]
    alone = Q(item__sample__group="")
    groups = sum(
        items.aggregate(
            groups=Count("item__sample__group", filter=~alone, distinct=True),
            others=Count("item__sample", filter=alone, distinct=True),
        ).values()
    )
    each = int(median(counts)) if counts else items.count()
    of_pairs = any(row.raw in Choice.values for row in rows) or verdict_column(campaign) == "choice"
    return Plan(
        items=max(each, 1),
        labels=campaign.overlap,
        ties=_tie_rate(rows) if of_pairs else 0.0,
        alike=_likeness(rows),
        in_group=max(1.0, each / max(groups, 1)),
    )


def _tie_rate(rows: Sequence[LabelRow]) -> float:
    if len(rows) < FEWEST:
        return TIES
    return sum(row.verdict == Choice.TIE for row in rows) / len(rows)


def _likeness(rows: Sequence[LabelRow]) -> float:
    """The intraclass correlation of labels on one item, from 0 to 1, where enough items have several."""
    numbers = [row.verdict_number for row in rows if row.verdict_number is not None]
    shared = sum(len(labels) > 1 for labels in by_item(rows).values())
    if len(numbers) != len(rows) or shared < FEWEST:
        return ALIKE
    correlation = intraclass(
        item=[row.campaign_item for row in rows],
        rater=[row.annotator for row in rows],
        value=numbers,
        cluster=[row.group for row in rows],
    ).one_way.value
    return ALIKE if correlation is None else min(1.0, max(0.0, correlation))
