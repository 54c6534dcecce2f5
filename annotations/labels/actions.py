"""Drafts, labels and their changes."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from accounts.models import User
from annotations import ballots
from annotations.assignment import material, quality
from annotations.assignment.errors import (
    AlreadyLabelled,
    CampaignNotOpen,
    KeyReused,
    PracticeIsOver,
    Refused,
    SlotTaken,
    StaleEdit,
)
from annotations.assignment.leases import LABELLED, LEASED, SUBMITTED, lock_membership, start_next_lease, take_slot
from annotations.ballots import BadVerdict
from annotations.models import (
    Assignment,
    Campaign,
    Label,
    LabelReturn,
    LabelRevision,
    Membership,
)
from bank.errors import BadInput

MAX_COMMENT = 5_000

MAX_FLAGS = 12

DRAFT_FIELDS = (*ballots.FIELDS, "comment", "flags", "seconds", "confidence")


@dataclass(frozen=True, slots=True)
class Submitted:
    """The stored label, whether this call stored it, and when the time for the item leased ahead ends."""

    label: Label
    created: bool
    next_until: datetime | None = None


def save_draft(*, assignment: Assignment, draft: Mapping[str, Any], now: datetime, editing: bool = False) -> None:
    """Keep what is typed so far. ``editing`` says that it is a change of a label that was submitted.

    A draft is kept even when the lease ran out. Raises AlreadyLabelled when it comes after the label.
    """
    kept = {name: draft[name] for name in DRAFT_FIELDS if draft.get(name) not in (None, "", [])}
    if isinstance(kept.get("comment"), str):
        kept["comment"] = _clean("comment", kept["comment"], MAX_COMMENT)
    mine = Assignment.objects.filter(pk=assignment.pk)
    mine = mine.filter(state=SUBMITTED) if editing else mine.exclude(state__in=LABELLED)
    if assignment.draft.get("skipped"):
        kept["skipped"] = True
    if not mine.update(draft=kept, draft_at=now):
        raise AlreadyLabelled


@transaction.atomic
def submit_label(
    *,
    assignment: Assignment,
    verdict: Mapping[str, Any],
    now: datetime,
    seconds: float | None = None,
    comment: str = "",
    flags: Iterable[str] = (),
    confidence: float | None = None,
    idempotency_key: str = "",
) -> Submitted:
    """Store the annotator's verdict, given in presented terms.

    The same idempotency key gives the same label again. A lease that ran out does not matter while a slot is free.
    Practice and hidden gold are held against their right verdict. Raises BadVerdict, AlreadyLabelled, SlotTaken,
    CampaignNotOpen, KeyReused, NotInvited.
    """
    campaign = assignment.campaign_item.campaign
    key = _clean("idempotency_key", idempotency_key, 64) or None
    member = lock_membership(campaign=campaign, annotator=assignment.annotator)
    campaign.refresh_from_db(fields=["state", "ballot"])  # behind the lock nobody changes the ballot
    try:
        columns = _columns(campaign, assignment, verdict, seconds, comment, flags, confidence)
        if campaign.state not in (Campaign.State.OPEN, Campaign.State.PAUSED):
            raise CampaignNotOpen(campaign.state)
        _fill_slot(assignment, campaign)
    except (BadVerdict, Refused):
        # A request that comes again gets its label, whatever has changed since.
        known = Label.objects.filter(assignment=assignment, idempotency_key=key).first() if key else None
        if known is None:
            raise
        return Submitted(known, created=False)
    label = Label(
        assignment=assignment,
        campaign=campaign,
        item_id=assignment.campaign_item.item_id,
        annotator=assignment.annotator,
        idempotency_key=key,
        created_at=now,
        changed_at=now,
        **columns,
    )
    try:
        label.save(force_insert=True)
    except IntegrityError:  # the assignment is ours, so it is the key
        raise KeyReused from None
    quality.check_quality(label=label, campaign_item=assignment.campaign_item, member=member, now=now)
    next_until = start_next_lease(campaign=campaign, annotator=assignment.annotator, now=now)
    return Submitted(label, created=True, next_until=next_until)


@transaction.atomic
def change_label(
    *,
    assignment: Assignment,
    verdict: Mapping[str, Any],
    now: datetime,
    seconds: float | None = None,
    comment: str = "",
    flags: Iterable[str] = (),
    confidence: float | None = None,
    seen: datetime | None = None,
) -> bool:
    """Change the annotator's own label, keeping what it was as a revision; False when nothing differs.

    ``seen`` is the ``changed_at`` that the annotator was shown. Raises BadVerdict, StaleEdit, CampaignNotOpen,
    NotInvited, Label.DoesNotExist.
    """
    campaign = assignment.campaign_item.campaign
    member = lock_membership(campaign=campaign, annotator=assignment.annotator)
    campaign.refresh_from_db(fields=["state", "ballot"])
    if assignment.campaign_item.practice:
        raise PracticeIsOver
    label = Label.objects.get(assignment=assignment)
    columns = _columns(campaign, assignment, verdict, seconds, comment, flags, confidence)
    if columns["confidence"] is None:
        columns["confidence"] = label.confidence
    if columns["seconds"] is None:
        columns["seconds"] = label.seconds
    Assignment.objects.filter(pk=assignment.pk).update(draft={})
    label.returns.filter(answered_at__isnull=True).update(answered_at=now)  # looked at again, changed or not
    if all(getattr(label, name) == value for name, value in columns.items() if name != "seconds"):
        return False
    if seen is not None and seen != label.changed_at:
        raise StaleEdit
    if campaign.state not in (Campaign.State.OPEN, Campaign.State.PAUSED):
        raise CampaignNotOpen(campaign.state)
    LabelRevision.objects.create(
        label=label,
        verdict=label.verdict(),
        seconds=label.seconds,
        comment=label.comment,
        flags=label.flags,
        by=assignment.annotator,
        given_at=label.changed_at,
        replaced_at=now,
    )
    for name, value in columns.items():
        setattr(label, name, value)
    label.changed_at = now
    label.save(update_fields=[*columns, "changed_at"])
    quality.check_quality(label=label, campaign_item=assignment.campaign_item, member=member, now=now)
    return True


def _fill_slot(assignment: Assignment, campaign: Campaign) -> None:
    """Turn the lease into a label's place, or take a free slot when the lease is gone."""
    mine = Assignment.objects.filter(pk=assignment.pk)
    if mine.filter(state=LEASED).update(state=SUBMITTED, draft={}):
        return
    if mine.filter(state__in=LABELLED).exists():
        raise AlreadyLabelled
    place = assignment.campaign_item
    slot = take_slot(campaign_item_id=place.pk, unlimited=place.practice or place.gold is not None)
    if slot is None:
        raise SlotTaken
    mine.update(state=SUBMITTED, slot=slot, draft={})


def _columns(
    campaign: Campaign,
    assignment: Assignment,
    verdict: Mapping[str, Any],
    seconds: float | None,
    comment: str,
    flags: Iterable[str],
    confidence: float | None,
) -> dict[str, Any]:
    ballot = ballots.of(campaign)
    return {
        **ballot.parse(verdict, material.material_for(assignment, ballot)),
        "seconds": _seconds(seconds, timedelta(minutes=campaign.lease_minutes)),
        "comment": _clean("comment", comment, MAX_COMMENT),
        "flags": _flags(flags),
        "confidence": _confidence(confidence),
        "displayed_sha256": assignment.displayed_sha256,
    }


def _clean(field: str, text: object, longest: int) -> str:
    if not isinstance(text, str):
        raise BadVerdict(field, _("A text."))
    text = text.strip()
    if len(text) > longest:
        words = _("At most {most} characters; these are {count}.")
        raise BadVerdict(field, words.format(most=f"{longest:,}", count=f"{len(text):,}"))
    # What PostgreSQL refuses, SQLite must not take either.
    if "\x00" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise BadVerdict(field, "Holds a character that is none (NUL or half of a surrogate pair).")
    return text


def _seconds(seconds: object, lease: timedelta) -> float | None:
    """Within 0 and the lease: the browser counts, and a browser's clock may say anything."""
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not math.isfinite(seconds):
        raise BadVerdict("seconds", "A number of seconds.")
    return min(max(float(seconds), 0.0), lease.total_seconds())


def _flags(flags: object) -> list[str]:
    if isinstance(flags, str) or not isinstance(flags, Iterable):
        raise BadVerdict("flags", "A list of short texts.")
    cleaned = [_clean("flags", flag, 60) for flag in flags]
    if len(cleaned) > MAX_FLAGS:
        raise BadVerdict("flags", f"At most {MAX_FLAGS}.")
    return sorted({flag for flag in cleaned if flag})


def _confidence(confidence: object) -> float | None:
    if confidence is None:
        return None
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0 <= confidence <= 1:
        raise BadVerdict("confidence", "A number from 0 to 1.")
    return float(confidence)


MAX_NOTE = 5_000


@transaction.atomic
def return_label(*, label: Label, by: User, note: str, now: datetime) -> LabelReturn:
    """Give a label back to its annotator, who is shown it with the note before anything else. Raises Refused, BadInput.

    It stands and counts until it is changed. A note that is still unanswered is replaced.
    """
    note = clean_note(note)
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


def clean_note(text: str) -> str:
    text = text.replace("\r\n", "\n").strip()
    if len(text) > MAX_NOTE or "\x00" in text:
        raise BadInput(f"A note is text of at most {MAX_NOTE:,} characters.")
    return text
