"""What those who gave the labels of a file saw: said when the file comes in or later, and never by the file itself."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction

from accounts.models import User
from accounts.rules import Viewer
from annotations import ballots
from annotations.models import Campaign, Label
from bank import exposure
from bank.intake.imports import provenance
from bank.models.verdict import is_of_categories


def shown_by(protocol: str) -> int:
    """What this protocol shows to everybody who labels by it, of what may be hidden (``exposure.Inputs``)."""
    shows_parts = protocol in ballots.BALLOTS and ballots.BALLOTS[protocol].shows == ballots.COMPONENTS
    return exposure.inputs_of("component") if shows_parts else exposure.NOTHING


@transaction.atomic
def say_saw_nothing(*, campaign: Campaign, by: User | None = None, command: str = "") -> None:
    """Note that those who gave the labels of a file saw nothing hidden, so that everybody may see them. It is logged.
    Raises BadInput of labels that were given here.
    """
    left = shown_by(campaign.protocol)
    items = campaign.campaign_items.values_list("item", flat=True)
    provenance.open_verdicts(campaign, items=items, leaves=left, by=by, command=command, campaign=campaign.name)


def ballot_seen_by(viewer: Viewer, campaign: Campaign) -> dict[str, Any]:
    """The settings of the ballot. The categories of labels from a file are what these say: those alone of labels that
    this viewer sees.
    """
    kept = campaign.ballot.get("categories")
    if not campaign.imported or not kept:
        return campaign.ballot
    seen = Label.objects.seen_by(viewer).filter(campaign=campaign).order_by().values_list("option", flat=True)
    said = set(seen.distinct())
    return campaign.ballot | {"categories": [category for category in kept if category["value"] in said]}


def offered_by(campaign: Campaign) -> Sequence[Mapping[str, Any]]:
    """The verdicts that the ballot has; no categories of a file, which may be those of labels for staff alone."""
    from_labels = campaign.imported and is_of_categories(campaign.protocol)
    return () if from_labels else ballots.of(campaign).verdicts


def for_staff(campaign: Campaign) -> int:
    """How many labels of a file are for staff alone, since nobody said what those who gave them saw."""
    if not campaign.imported or campaign.held != exposure.UNKNOWN:
        return 0
    return provenance.closed_among(Label.objects.filter(campaign=campaign, excluded=False), held="campaign__held")
