"""What staff decide about items and labels of a campaign."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from accounts.models import User
from annotations.actions.errors import Refused
from annotations.known import Known
from annotations.models import Adjudication, Assignment, CampaignItem, Label, LabelReturn, Membership
from annotations.verdicts import main_column
from bank.actions import BadInput
from bank.models.verdict import COLUMNS

LONGEST_NOTE = 5_000


@transaction.atomic
def adjudicate(*, place: CampaignItem, by: User, verdict: Mapping[str, Any], comment: str = "") -> Adjudication:
    """Decide about an item, in canonical order; the raw labels stay as they are. Again is a change. Raises BadInput."""
    if main_column(verdict) is None:
        raise BadInput("Choose a verdict.")
    columns: dict[str, Any] = {name: verdict.get(name) for name in COLUMNS if name != "reason"}
    decided, _ = Adjudication.objects.update_or_create(
        campaign_item=place, defaults=columns | {"by": by, "comment": _note(comment)}
    )
    return decided


def withdraw_adjudication(*, place: CampaignItem) -> None:
    """Leave the item to its labels."""
    Adjudication.objects.filter(campaign_item=place).delete()


@transaction.atomic
def make_known(*, place: CampaignItem, verdict: Mapping[str, Any], note: str = "", practice: bool = False) -> None:
    """Make an item hidden gold, or a practice item, of this right verdict.

    Everybody then gets it. An item that somebody holds or has labelled stays what it is. Raises BadInput, Refused.
    """
    if main_column(verdict) is None:
        raise BadInput("Say which verdict is right.")
    gold = {name: value for name, value in verdict.items() if value is not None}
    if not _untouched(place).update(gold=gold, practice=practice, note=_note(note)):
        raise Refused("Somebody has this item, or has labelled it: it stays an ordinary one.")


@transaction.atomic
def make_all_known(*, known: Iterable[Known], practice: bool = False) -> int:
    """Make many items gold or practice, all of them or none; how many. Raises BadInput, Refused naming the sample."""
    marked = list(known)
    for one in marked:
        try:
            make_known(place=one.place, verdict=one.verdict, note=one.note, practice=practice)
        except (BadInput, Refused) as error:
            raise type(error)(f"{one.place.item.sample.key}: {error}") from None
    return len(marked)


@transaction.atomic
def make_ordinary(*, place: CampaignItem) -> None:
    """An item like others again, while nobody has had it. Raises Refused."""
    if not _untouched(place).update(gold=None, practice=False, note=""):
        raise Refused("Annotators have had this item: it stays what it is.")


def _untouched(place: CampaignItem) -> Any:
    begun = Assignment.objects.filter(campaign_item=place).exists()
    return CampaignItem.objects.none() if begun else CampaignItem.objects.filter(pk=place.pk, taken=0)


@transaction.atomic
def return_label(*, label: Label, by: User, note: str, now: datetime) -> LabelReturn:
    """Give a label back to its annotator, who is shown it with the note before anything else. Raises Refused, BadInput.

    It stands and counts until it is changed. A note that is still unanswered is replaced.
    """
    note = _note(note)
    if not note:
        raise BadInput("Say in a note what to look at again.")
    if label.campaign.imported or label.campaign.state == "closed":
        raise Refused("The campaign is closed: its labels are final.")
    if Membership.objects.filter(
        campaign=label.campaign_id, annotator=label.annotator_id, withdrawn_at__isnull=False
    ).exists():
        raise Refused("Its annotator was taken out of the campaign and cannot change it any more.")
    if label.excluded or label.assignment.campaign_item.practice:
        raise Refused("This label does not count, so there is nothing to give back.")
    found, _ = LabelReturn.objects.update_or_create(
        label=label, answered_at=None, defaults={"note": note, "by": by, "at": now}
    )
    return found


def _note(text: str) -> str:
    text = text.replace("\r\n", "\n").strip()
    if len(text) > LONGEST_NOTE or "\x00" in text:
        raise BadInput(f"A note is text of at most {LONGEST_NOTE:,} characters.")
    return text
