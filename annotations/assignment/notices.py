"""What an annotator is told between two items: how a practice item went, a warning, a label that came back."""

from dataclasses import dataclass

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from annotations.assignment.quality import is_practised, practice_labels, score
from annotations.labels.verdicts import in_words, is_right
from annotations.models import Annotator, Assignment, Campaign, Label, LabelReturn, Membership

WARNING = lazy(
    "Some of the items in this campaign have a verdict that is certain, and several of your labels differed from it. "
    "Read the guidelines once more and take the time you need. Nothing is lost, and you can go on."
)


@dataclass(frozen=True, slots=True)
class Feedback:
    """One practice item, in the words of what its annotator saw."""

    assignment: int
    right: bool
    given: str
    wanted: str
    note: str  # Markdown, why that verdict is right


@dataclass(frozen=True, slots=True)
class Round:
    """A practice round that is over."""

    right: int
    of: int
    passed: bool
    wanted: int  # so many right were needed


@dataclass(frozen=True, slots=True)
class Interlude:
    """One of these is shown before the next item."""

    feedback: Feedback | None = None
    round: Round | None = None
    warned: bool = False

    @property
    def warning(self) -> str:
        return str(WARNING)


def returned_to(*, campaign: Campaign, annotator: Annotator) -> int | None:
    """The assignment whose label came back to this annotator, the first one; None without."""
    return returns_to(campaign=campaign, annotator=annotator).values_list("label__assignment", flat=True).first()


def returns_to(*, campaign: Campaign, annotator: Annotator) -> "QuerySet[LabelReturn]":
    """What came back to this annotator and waits for them, oldest first."""
    if campaign.state not in (Campaign.State.OPEN, Campaign.State.PAUSED):
        return LabelReturn.objects.none()
    mine = LabelReturn.objects.filter(label__campaign=campaign, label__annotator=annotator, label__excluded=False)
    return mine.filter(answered_at__isnull=True).order_by("pk")


def note_of(assignment: Assignment) -> str:
    """Why this label came back, while that is open; "" otherwise."""
    found = LabelReturn.objects.filter(label__assignment=assignment, answered_at__isnull=True)
    return found.values_list("note", flat=True).first() or ""


def before_work(*, campaign: Campaign, annotator: Annotator) -> Interlude | None:
    """What this annotator has to be told before the next item; None for nothing."""
    if campaign.practice_pass is not None and (found := _practised(campaign, annotator)):
        return found
    return Interlude(warned=True) if is_warned(campaign=campaign, annotator=annotator) else None


def is_warned(*, campaign: Campaign, annotator: Annotator) -> bool:
    """Whether a warning about hidden gold items has not been read yet."""
    if not campaign.gold_rate:
        return False
    unseen = Membership.objects.filter(campaign=campaign, annotator=annotator, warning_seen=False)
    return unseen.filter(warned_at__isnull=False, stopped_at__isnull=True).exists()


def _practised(campaign: Campaign, annotator: Annotator) -> Interlude | None:
    labels = practice_labels(campaign, annotator)
    unseen = labels.filter(assignment__feedback_seen=False).select_related("assignment__campaign_item")
    label = unseen.order_by("-pk").first()
    if label is None:
        return None
    return Interlude(feedback=feedback_of(label), round=round_of(campaign, annotator))


def round_of(campaign: Campaign, annotator: Annotator) -> Round | None:
    """The result of this annotator's practice round; None while it goes on."""
    if not is_practised(campaign, annotator):
        return None
    right, done = score(practice_labels(campaign, annotator))
    needed = next(n for n in range(done + 1) if n >= (campaign.practice_pass or 0) * done - 1e-9)
    return Round(right, done, right >= needed, needed)


def feedback_of(label: Label) -> Feedback:
    """How the label of a practice item stands to the right verdict."""
    place = label.assignment.campaign_item
    shown = {
        int(canonical): _("Answer {number}").format(number=number)
        for number, canonical in enumerate(label.assignment.order, 1)
    }
    names = [shown[position] for position in sorted(shown)]
    gold, given = place.gold or {}, label.verdict()
    return Feedback(
        assignment=label.assignment_id,
        right=is_right(given, gold),
        given=in_words(given, letters=names),
        wanted=in_words(gold, letters=names),
        note=place.note,
    )


@transaction.atomic
def see_interludes(*, campaign: Campaign, annotator: Annotator) -> None:
    """The annotator has read the feedback on their practice item, or the warning."""
    mine = Assignment.objects.filter(annotator=annotator, campaign_item__campaign=campaign)
    mine.filter(campaign_item__practice=True, state=Assignment.State.SUBMITTED).update(feedback_seen=True)
    see_warning(campaign=campaign, annotator=annotator)


def see_warning(*, campaign: Campaign, annotator: Annotator) -> None:
    """The annotator has read that hidden gold items went wrong."""
    Membership.objects.filter(campaign=campaign, annotator=annotator, warned_at__isnull=False).update(warning_seen=True)
