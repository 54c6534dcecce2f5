"""Drafts, labels, changes of labels, and labels that staff return."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.urls import reverse
from django.utils.translation import gettext as _

from accounts import mail, notices
from accounts.models import Notice, User
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
from annotations.campaigns.blinding import note_blind_in, refuse_opened
from annotations.models import (
    Assignment,
    Campaign,
    Label,
    LabelReturn,
    LabelRevision,
    Membership,
)
from bank import guard
from bank.errors import BadInput

MAX_COMMENT = 5_000

MAX_FLAGS = 12

DRAFT_FIELDS = (*ballots.FIELDS, "comment", "flags", "seconds", "confidence")


@dataclass(frozen=True, slots=True)
class Submitted:
    """The stored label, whether this call created it, and when the lease of the prefetched item ends."""

    label: Label
    created: bool
    next_until: datetime | None = None


def save_draft(*, assignment: Assignment, draft: Mapping[str, Any], now: datetime, editing: bool = False) -> None:
    """Store what has been typed so far. ``editing`` means that it changes a submitted label.

    Drafts are kept even after the lease expires. Raises AlreadyLabelled if the label was submitted before.
    """
    stored = {name: draft[name] for name in DRAFT_FIELDS if draft.get(name) not in (None, "", [])}
    if isinstance(stored.get("comment"), str):
        stored["comment"] = _clean("comment", stored["comment"], MAX_COMMENT)
    row = Assignment.objects.filter(pk=assignment.pk)
    row = row.filter(state=SUBMITTED) if editing else row.exclude(state__in=LABELLED)
    if assignment.draft.get("skipped"):
        stored["skipped"] = True
    if not row.update(draft=stored, draft_at=now):
        raise AlreadyLabelled


@transaction.atomic
@guard.working()
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

    The same idempotency key returns the same label again. An expired lease does not matter as long as a slot is free.
    Practice and gold labels are compared with their right verdict. Raises BadVerdict, AlreadyLabelled, SlotTaken,
    CampaignNotOpen, KeyReused, NotInvited.
    """
    campaign = assignment.campaign_item.campaign
    key = _clean("idempotency_key", idempotency_key, 64) or None
    member = lock_membership(campaign=campaign, annotator=assignment.annotator)
    # While the lock is held the ballot cannot change.
    campaign.refresh_from_db(fields=["state", "ballot", "finished_opened_at"])
    try:
        columns = _columns(campaign, assignment, verdict, seconds, comment, flags, confidence)
        if campaign.state not in (Campaign.State.OPEN, Campaign.State.PAUSED):
            raise CampaignNotOpen(campaign.state)
        _fill_slot(assignment, campaign)
    except (BadVerdict, Refused):
        # A repeated request gets its label, whatever has changed since.
        stored = Label.objects.filter(assignment=assignment, idempotency_key=key).first() if key else None
        if stored is None:
            raise
        return Submitted(stored, created=False)
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
    except IntegrityError:  # the assignment is ours, so the key must be the duplicate
        raise KeyReused from None
    quality.check_quality(label=label, campaign_item=assignment.campaign_item, member=member, now=now)
    if campaign.blind and campaign.finished_opened_at:
        note_blind_in(campaign, item=label.item_id)
    next_until = start_next_lease(campaign=campaign, annotator=assignment.annotator, now=now)
    return Submitted(label, created=True, next_until=next_until)


@transaction.atomic
@guard.working()
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
    """Change the annotator's own label and store the old one as a revision. Returns False if nothing differs.

    ``seen`` is the ``changed_at`` that the annotator was shown. Raises BadVerdict, StaleEdit, CampaignNotOpen,
    ItemOpened, NotInvited, Label.DoesNotExist.
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
    # Answered, whether changed or not.
    if label.returns.filter(answered_at__isnull=True).update(answered_at=now):
        notices.mark_read(Notice.objects.filter(person=label.annotator.person_id, link=_page_of(label)))
    if all(getattr(label, name) == value for name, value in columns.items() if name != "seconds"):
        return False
    if seen is not None and seen != label.changed_at:
        raise StaleEdit
    if campaign.state not in (Campaign.State.OPEN, Campaign.State.PAUSED):
        raise CampaignNotOpen(campaign.state)
    refuse_opened(label)
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
    """Turn the lease into a label's slot, or take a free slot if the lease is gone."""
    row = Assignment.objects.filter(pk=assignment.pk)
    if row.filter(state=LEASED).update(state=SUBMITTED, draft={}):
        return
    if row.filter(state__in=LABELLED).exists():
        raise AlreadyLabelled
    campaign_item = assignment.campaign_item
    slot = take_slot(campaign_item_id=campaign_item.pk, unlimited=campaign_item.unlimited)
    if slot is None:
        raise SlotTaken
    row.update(state=SUBMITTED, slot=slot, draft={})


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
    columns = ballot.parse(verdict, material.material_for(assignment, ballot))
    comment = _clean("comment", comment, MAX_COMMENT)
    if ballot.asks_why and not comment:
        raise BadVerdict("comment", _("Say why, in a sentence or two."))
    return {
        **columns,
        "seconds": _seconds(seconds, timedelta(minutes=campaign.lease_minutes)),
        "comment": comment,
        "flags": _flags(flags),
        "confidence": _confidence(confidence),
        "displayed_sha256": assignment.displayed_sha256,
    }


def _clean(field: str, text: object, longest: int) -> str:
    if not isinstance(text, str):
        raise BadVerdict(field, _("This must be a text."))
    text = text.strip()
    if len(text) > longest:
        words = _("At most {most} characters are allowed; this has {count}.")
        raise BadVerdict(field, words.format(most=f"{longest:,}", count=f"{len(text):,}"))
    # PostgreSQL rejects these characters, so SQLite must not accept them.
    if "\x00" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise BadVerdict(field, "Contains an invalid character (NUL or half of a surrogate pair).")
    return text


def _seconds(seconds: object, lease: timedelta) -> float | None:
    """At least 0 and at most the lease. The browser measures it, and its clock may be wrong."""
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not math.isfinite(seconds):
        raise BadVerdict("seconds", "This must be a number of seconds.")
    return min(max(float(seconds), 0.0), lease.total_seconds())


def _flags(flags: object) -> list[str]:
    if isinstance(flags, str) or not isinstance(flags, Iterable):
        raise BadVerdict("flags", "This must be a list of short texts.")
    cleaned = [_clean("flags", flag, 60) for flag in flags]
    if len(cleaned) > MAX_FLAGS:
        raise BadVerdict("flags", f"At most {MAX_FLAGS} flags are allowed.")
    return sorted({flag for flag in cleaned if flag})


def _confidence(confidence: object) -> float | None:
    if confidence is None:
        return None
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0 <= confidence <= 1:
        raise BadVerdict("confidence", "This must be a number from 0 to 1.")
    return float(confidence)


MAX_NOTE = 5_000


@transaction.atomic
def return_label(*, label: Label, by: User, note: str, now: datetime) -> LabelReturn:
    """Return a label to its annotator, who sees it with the note before anything else. Raises Refused, BadInput.

    The label stands and counts until it is changed. An unanswered note is replaced.
    """
    note = clean_note(note)
    if not note:
        raise BadInput("Write in the note what to look at again.")
    if label.campaign.imported or label.campaign.state == "closed":
        raise Refused("The campaign is closed, so its labels are final.")
    if Membership.objects.filter(
        campaign=label.campaign_id, annotator=label.annotator_id, withdrawn_at__isnull=False
    ).exists():
        raise Refused("Its annotator was removed from the campaign and can no longer change it.")
    if label.excluded or label.assignment.campaign_item.practice:
        raise Refused("This label does not count, so it cannot be returned.")
    if not Label.objects.filter(pk=label.pk).changeable().exists():
        raise Refused(
            "What others and judges say of its item may be read by now, so its author can no longer change it. Decide "
            "the item instead."
        )
    returned, _made = LabelReturn.objects.update_or_create(
        label=label, answered_at=None, defaults={"note": note, "by": by, "at": now}
    )
    if person := label.annotator.person:
        with mail.in_language_of(person):
            text = _("A label of yours in {campaign} came back with a note.").format(campaign=label.campaign.name)
        notices.tell(person, key=f"return-{returned.pk}-{now:%Y%m%d%H%M%S}", text=text, link=_page_of(label))
    return returned


def _page_of(label: Label) -> str:
    return reverse("annotations:assignment-detail", args=[label.assignment_id])


def clean_note(text: str) -> str:
    text = text.replace("\r\n", "\n").strip()
    if len(text) > MAX_NOTE or "\x00" in text:
        raise BadInput(f"A note is text of at most {MAX_NOTE:,} characters.")
    return text
