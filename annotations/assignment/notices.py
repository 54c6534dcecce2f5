"""Notices for an annotator between two items: practice feedback, a warning, a returned label."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as lazy

from annotations.assignment.quality import count_right, finished_practice, needed_to_pass, practice_labels
from annotations.labels.verdicts import describe, is_right, names_as_shown
from annotations.models import Annotator, Assignment, Campaign, Label, LabelReturn, Membership
from bank import guard

WARNING = lazy(
    "For some items in this campaign the right verdict is known, and several of your labels differed from it. "
    "Please read the guidelines again and take the time you need. Nothing is lost, and you can continue."
)


@dataclass(frozen=True, slots=True)
class PracticeFeedback:
    """The result of one practice item, with answers named as the annotator saw them."""

    assignment: int
    right: bool
    given: str
    expected: str
    note: str  # Markdown: why that verdict is right


@dataclass(frozen=True, slots=True)
class PracticeRound:
    """A finished practice round."""

    right: int
    of: int
    needed: int  # right answers to pass
    passed: bool


@dataclass(frozen=True, slots=True)
class Notice:
    """Shown before the next item: practice feedback or a warning."""

    feedback: PracticeFeedback | None = None
    round: PracticeRound | None = None
    warned: bool = False

    @property
    def warning(self) -> str:
        return str(WARNING)


@guard.working()
def open_returns(annotator: Annotator, *, campaigns: Iterable[Campaign]) -> "QuerySet[LabelReturn]":
    """Labels in these campaigns, if they go on, returned to this annotator that they have not answered yet and may
    still change, oldest first.
    """
    labels = Label.objects.filter(annotator=annotator, excluded=False).changeable()
    labels = labels.filter(campaign__in=[campaign.pk for campaign in campaigns], campaign__state__in=Campaign.GOING)
    return LabelReturn.objects.filter(label__in=labels, answered_at__isnull=True).order_by("pk")


@guard.working()
def return_note(assignment: Assignment) -> str:
    """Why this label was returned, until the annotator answers or can no longer change it; otherwise ""."""
    labels = Label.objects.filter(assignment=assignment).changeable()
    returns = LabelReturn.objects.filter(label__in=labels, answered_at__isnull=True)
    return returns.values_list("note", flat=True).first() or ""


def pending_notice(*, campaign: Campaign, annotator: Annotator) -> Notice | None:
    """The notice that this annotator must see before the next item, if there is one."""
    if campaign.practice_pass is not None and (notice := _practice_notice(campaign, annotator)):
        return notice
    return Notice(warned=True) if has_unread_warning(campaign=campaign, annotator=annotator) else None


def has_unread_warning(*, campaign: Campaign, annotator: Annotator) -> bool:
    """Whether a warning about hidden gold items has not been read yet."""
    if not campaign.gold_rate:
        return False
    unread = Membership.objects.filter(campaign=campaign, annotator=annotator, warning_seen=False)
    return unread.filter(warned_at__isnull=False, stopped_at__isnull=True).exists()


@transaction.atomic
def mark_notices_read(*, campaign: Campaign, annotator: Annotator) -> None:
    """Record that the annotator has read the practice feedback or the warning."""
    submitted = Assignment.objects.filter(annotator=annotator, state=Assignment.State.SUBMITTED)
    submitted.filter(campaign_item__campaign=campaign, campaign_item__practice=True).update(feedback_seen=True)
    mark_warning_read(campaign=campaign, annotator=annotator)


def mark_warning_read(*, campaign: Campaign, annotator: Annotator) -> None:
    """Record that the annotator has read the warning about hidden gold items."""
    Membership.objects.filter(campaign=campaign, annotator=annotator, warned_at__isnull=False).update(warning_seen=True)


def _practice_notice(campaign: Campaign, annotator: Annotator) -> Notice | None:
    labels = practice_labels(campaign, annotator)
    unread = labels.filter(assignment__feedback_seen=False).select_related("assignment__campaign_item")
    label = unread.order_by("-pk").first()
    if label is None:
        return None
    return Notice(feedback=practice_feedback(label), round=practice_round(campaign, annotator))


def practice_round(campaign: Campaign, annotator: Annotator) -> PracticeRound | None:
    """The result of this annotator's practice round, or None while it is still running."""
    if not finished_practice(campaign, annotator):
        return None
    right, done = count_right(practice_labels(campaign, annotator))
    needed = needed_to_pass(campaign, done)
    return PracticeRound(right, done, needed, right >= needed)


def practice_feedback(label: Label) -> PracticeFeedback:
    """Compare the label of a practice item with the right verdict."""
    campaign_item = label.assignment.campaign_item
    gold, verdict, protocol = campaign_item.gold or {}, label.verdict(), campaign_item.campaign.protocol
    names = names_as_shown(label.assignment.order, protocol)
    return PracticeFeedback(
        assignment=label.assignment_id,
        right=is_right(verdict, gold),
        given=describe(verdict, protocol, letters=names),
        expected=describe(gold, protocol, letters=names),
        note=campaign_item.note,
    )
