"""What an annotator is told between two items: how a practice item went, a warning, a label that came back."""

from dataclasses import dataclass

from annotations.actions.quality import is_practised, practice_labels, score
from annotations.models import Annotator, Assignment, Campaign, Label, LabelReturn, Membership
from annotations.verdicts import in_words, is_right


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


def returned_to(*, campaign: Campaign, annotator: Annotator) -> int | None:
    """The assignment whose label came back to this annotator, the first one; None without."""
    open_ones = LabelReturn.objects.filter(
        label__campaign=campaign, label__annotator=annotator, label__excluded=False, answered_at__isnull=True
    )
    if campaign.state not in (Campaign.State.OPEN, Campaign.State.PAUSED):
        return None
    return open_ones.order_by("pk").values_list("label__assignment", flat=True).first()


def note_of(assignment: Assignment) -> str:
    """Why this label came back, while that is open; "" otherwise."""
    found = LabelReturn.objects.filter(label__assignment=assignment, answered_at__isnull=True)
    return found.values_list("note", flat=True).first() or ""


def before_work(*, campaign: Campaign, annotator: Annotator) -> Interlude | None:
    """What this annotator has to be told before the next item; None for nothing."""
    if campaign.practice_pass is not None and (found := _practised(campaign, annotator)):
        return found
    unseen = Membership.objects.filter(campaign=campaign, annotator=annotator, warning_seen=False)
    warned = campaign.gold_rate and unseen.filter(warned_at__isnull=False, stopped_at__isnull=True).exists()
    return Interlude(warned=True) if warned else None


def _practised(campaign: Campaign, annotator: Annotator) -> Interlude | None:
    labels = practice_labels(campaign, annotator)
    unseen = labels.filter(assignment__feedback_seen=False).select_related("assignment__campaign_item")
    label = unseen.order_by("-pk").first()
    if label is None:
        return None
    over = None
    if is_practised(campaign, annotator):
        right, done = score(labels)
        needed = next(n for n in range(done + 1) if n >= (campaign.practice_pass or 0) * done - 1e-9)
        over = Round(right, done, right >= needed, needed)
    return Interlude(feedback=feedback_of(label), round=over)


def feedback_of(label: Label) -> Feedback:
    """How the label of a practice item stands to the right verdict."""
    place = label.assignment.campaign_item
    shown = {int(canonical): f"Answer {number}" for number, canonical in enumerate(label.assignment.order, 1)}
    names = [shown[position] for position in sorted(shown)]
    gold, given = place.gold or {}, label.verdict()
    return Feedback(
        assignment=label.assignment_id,
        right=is_right(given, gold),
        given=in_words(given, letters=names),
        wanted=in_words(gold, letters=names),
        note=place.note,
    )
