"""Reads for the labelling pages."""

import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from string import ascii_uppercase
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import Count, Q, QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

import bank.text.masking
import bank.text.rendering
from accounts.models import User
from accounts.rules import where
from annotations import ballots
from annotations.assignment import material, notices, quality
from annotations.models import Annotator, Assignment, Campaign, CampaignItem, Label, Membership
from bank import database, guard
from bank.models import ItemResponse, Response, Sample, SampleImage

PACE_LABELS = 20  # labels
FEWEST_PACED = 5  # labels; the first ones are no pace yet
SHORT = 5 * 60  # seconds of a lease from which on it is shown
BESIDE_VERDICT = ("comment", "flags", "seconds", "confidence")  # what else a label holds

_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")


@dataclass(frozen=True, slots=True)
class Progress:
    """One annotator's progress. ``total`` is what they have done plus what they may still get."""

    done: int
    total: int
    pace: float | None  # seconds per item, over their last labels
    previous: int | None  # the assignment of their newest label


NO_PROGRESS = Progress(0, 0, None, None)


@dataclass(frozen=True, slots=True)
class Answer:
    """A response as the annotator sees it, with nothing that identifies its model."""

    number: int
    name: str  # "1", or a letter where there are several to rank
    html: SafeString
    raw: SafeString
    size: str  # in words; "" for an empty answer

    @property
    def is_empty(self) -> bool:
        return not self.size


@dataclass(frozen=True, slots=True)
class Work:
    """One assignment with everything its page shows."""

    assignment: Assignment
    campaign: Campaign
    ballot: ballots.Ballot
    sample: Sample
    instruction: SafeString
    images: list[SampleImage]
    answers: list[Answer]
    shown: material.ShownMaterial
    groups: list[ballots.Group]
    progress: Progress
    values: dict[str, Any]  # what the form shows: the draft, or the label being edited
    label: Label | None
    before: int | None  # assignment the Back link leads to
    after: int | None  # while editing: assignment of the next label
    returned: str = ""  # staff's note on a returned label
    key: str = field(default_factory=lambda: secrets.token_hex(16))

    @property
    def shape(self) -> str:
        """Layout of the page: single, pair, ranking, components, review or analyses."""
        return self.ballot.layout

    @property
    def answers_template(self) -> str:
        described = self.shape == "single" and self.ballot.rubric
        files = {"pair": "answers", "single": "answers", "analyses": "review"}
        name = "described" if described else files.get(self.shape, self.shape)
        return f"annotations/ballot/_{name}.html"

    @property
    def pictures(self) -> list[tuple[SampleImage, str]]:
        """Each picture with the label of its button."""
        total = len(self.images)
        named = _("Picture %(number)s of %(total)s")
        return [(image, named % {"number": number, "total": total}) for number, image in enumerate(self.images, 1)]

    @property
    def columns(self) -> str:
        """CSS classes of the element around the answers."""
        return {1: "pair one", 2: "pair"}.get(len(self.answers), "pair many")

    @property
    def legend(self) -> str:
        """CSS classes of a question's title. A single question is already shown above the answers."""
        if len(self.groups) > 1:
            return "gtitle"
        return "gtitle small-only" if self.shown.reviews or self.ballot.settings.get("question") else "sr"

    @property
    def given_title(self) -> str:
        """A name for the sample's text: by itself, without a picture or an answer, it is what is judged."""
        return _("Instruction") if self.answers or self.images else _("Text")

    @property
    def options(self) -> dict[str, str]:
        """The sample's options; for choice extraction, as the model saw them."""
        if options := self.shown.material.options:
            return {option.shown: option.text for option in options}
        return dict(self.sample.options)

    @property
    def components(self) -> list[tuple[ballots.Component, str]]:
        """Each component with the points entered so far."""
        points = {row["component"]: row["points"] for row in self.values.get("parts") or []}
        return [
            (part, "" if points.get(part.key) is None else f"{points[part.key]:g}")
            for part in self.shown.material.components
        ]

    @property
    def situations(self) -> tuple[tuple[int, ballots.Words, bool, str], ...]:
        """Reasons to be unable to decide: number, description, whether chosen, and the name of its key."""
        chosen, situations = self.values.get("situation"), self.ballot.situations
        keys = zip(situations.items(), ("first", "second"), strict=False)
        return tuple((number, words, chosen == number, key) for (number, words), key in keys)

    @property
    def answer_names(self) -> str:
        """In the order in which they are shown."""
        return ", ".join(answer.name for answer in self.answers)

    @property
    def total_weight(self) -> str:
        return f"{sum(part.weight for part in self.shown.material.components):g}"

    @property
    def ranked(self) -> list[tuple[Answer, int | None]]:
        """The answers in ranked order, each with its rank; in presented order without ranks until they are ranked."""
        ranking = self.values.get("ranking")
        if not ranking:
            return [(answer, None) for answer in self.answers]
        return [(self.answers[answer], rank) for rank, group in enumerate(ranking, 1) for answer in group]

    @property
    def spans(self) -> str:
        """Marked passages as JSON for the form."""
        return json.dumps(self.values.get("spans") or [])

    @property
    def editing(self) -> bool:
        return self.label is not None

    @property
    def has_draft(self) -> bool:
        return bool(self.assignment.draft_at and self.values) and not self.editing

    @property
    def expired(self) -> bool:
        return self.assignment.state in (Assignment.State.EXPIRED, Assignment.State.SKIPPED)

    @property
    def is_wide(self) -> bool:
        """Whether the answers take the full width, below a short instruction without pictures."""
        return not self.images and len(self.sample.instruction) <= 600

    @property
    def time_left(self) -> str:
        """Minutes and seconds until the lease ends, when the page is rendered; "" while there are SHORT or more."""
        left = int((self.assignment.lease_until - database.now()).total_seconds())
        return "" if self.expired or left >= SHORT else f"{max(0, left) // 60}:{max(0, left) % 60:02}"

    @property
    def number(self) -> int:
        """The number of this item for the annotator, from 1."""
        return self.progress.done + (0 if self.editing else 1)


def campaigns_of(annotator: Annotator | None) -> QuerySet[Campaign]:
    """The campaigns that this annotator belongs to, or may join."""
    if annotator is None:
        return Campaign.objects.none()
    memberships = Membership.objects.filter(annotator=annotator)
    mine = Q(pk__in=memberships.filter(withdrawn_at__isnull=True).values("campaign"))
    joinable = Q(open_to_all=True, state=Campaign.State.OPEN) & ~Q(pk__in=memberships.values("campaign"))
    may_label = where(annotator.person or AnonymousUser(), "label", "benchmark__")
    return Campaign.objects.exclude(state=Campaign.State.DRAFT).filter(mine | joinable).filter(may_label)


def assignment_of(user: User, pk: int) -> Assignment:
    """An assignment of this person in a campaign they belong to, with annotator and campaign loaded. Raises Http404."""
    may_label = where(user, "label", "campaign_item__campaign__benchmark__")
    assignments = Assignment.objects.filter(may_label, annotator__person=user)
    assignment = get_object_or_404(assignments.select_related("annotator", "campaign_item__campaign"), pk=pk)
    memberships = Membership.objects.filter(annotator=assignment.annotator_id)
    if memberships.filter(campaign=assignment.campaign_item.campaign_id, withdrawn_at__isnull=False).exists():
        raise Http404("no such assignment")
    return assignment


def annotator_of(user: User) -> Annotator | None:
    """The annotator of an account, if there is one."""
    return Annotator.objects.filter(person=user).first()


@guard.working()
def progress_of(*, campaign: Campaign, annotator: Annotator, whole: bool = False) -> Progress:
    """``whole``: with a practice round before them, of the campaign after it, and not of the practice round."""
    labels = Label.objects.filter(campaign=campaign, annotator=annotator)
    newest = list(labels.order_by("-pk").values_list("assignment_id", "seconds")[:PACE_LABELS])
    times = [seconds for _, seconds in newest if seconds is not None]
    pace = sum(times) / len(times) if len(times) >= FEWEST_PACED else None
    assignments = Assignment.objects.filter(annotator=annotator, campaign_item__campaign=campaign)
    previous = newest[0][0] if newest else None
    if not whole and in_practice(campaign, annotator):
        submitted = assignments.filter(campaign_item__practice=True, state="submitted")
        practice = CampaignItem.objects.assignable().filter(campaign=campaign, practice=True)
        ahead = practice.exclude(pk__in=submitted.values("campaign_item"))
        return Progress(submitted.count(), submitted.count() + ahead.count(), pace, previous)
    items = CampaignItem.objects.filter(campaign=campaign, practice=False)
    plain, gold = Q(campaign_item__gold__isnull=True), Q(campaign_item__gold__isnull=False)
    decoy = Q(campaign_item__decoy=True)
    if campaign.gold_rate:  # else decoys come as ordinary items
        plain &= ~decoy
    # Join the samples only if one was withdrawn, because this query runs for every item.
    if Sample.objects.filter(benchmark=campaign.benchmark_id).exclude(status=Sample.Status.APPROVED).exists():
        items = items.assignable()
        approved = Q(campaign_item__item__sample__status=Sample.Status.APPROVED)
        plain, gold, decoy = plain & approved, gold & approved, decoy & approved
    held, released = Q(state__in=("leased", "submitted")), Q(state__in=("skipped", "expired"))
    lacks = Q(campaign_item__taken__lt=campaign.overlap)
    counted = {
        "leased": Count("pk", filter=Q(state="leased")),
        "submitted": Count("pk", filter=Q(state="submitted")),
        "held_below_overlap": Count("pk", filter=plain & held & lacks),
    }
    if campaign.gold_rate:
        counted |= {
            "assigned": Count("pk"),
            "assigned_gold": Count("pk", filter=gold),
            "assigned_decoys": Count("pk", filter=decoy),
            "assigned_lacking": Count("pk", filter=decoy & lacks),
            "released": Count("pk", filter=plain & released),
            "released_known": Count("pk", filter=(gold | decoy) & released),
        }
    counts = assignments.filter(campaign_item__practice=False).aggregate(**counted)
    done, left = counts["submitted"], 0
    if campaign.state in (Campaign.State.OPEN, Campaign.State.PAUSED):
        # Items with a free slot that this annotator does not hold, plus those they hold without a label.
        lacking = items.filter(gold__isnull=True, taken__lt=campaign.overlap)
        ordinary = lacking.filter(decoy=False) if campaign.gold_rate else lacking
        free = ordinary.count() - counts["held_below_overlap"]
        left = free + counts["leased"]
        if campaign.gold_rate:
            gold_left = items.filter(gold__isnull=False).count() - counts["assigned_gold"]
            decoys_left = items.filter(decoy=True).count() - counts["assigned_decoys"]
            left += counts["released_known"] + quality.ahead_of(
                campaign,
                annotator.pk,
                assigned=counts["assigned"],
                new=max(0, free - counts["released"]),
                unseen={quality.GOLD: gold_left, quality.DECOY: decoys_left},
                lacking=lacking.filter(decoy=True).count() - counts["assigned_lacking"],
            )
    if campaign.share is not None:
        left = min(left, max(0, campaign.share - done))
    return Progress(done, done + left, pace, previous)


def in_practice(campaign: Campaign, annotator: Annotator) -> bool:
    """Whether this annotator has a practice round before them."""
    if not quality.has_practice(campaign):
        return False
    return not Membership.objects.filter(campaign=campaign, annotator=annotator, qualified=True).exists()


@guard.working()
def load_work(assignment: Assignment, *, ahead: bool = False, typed: dict[str, Any] | None = None) -> Work:
    """Everything the page of this assignment shows. Logs the criteria that are read for it.

    ``ahead``: for a prefetched page, whose progress the script counts itself. ``typed`` fills the form in place of
    what is stored.
    """
    campaign_item = assignment.campaign_item
    campaign, item = campaign_item.campaign, campaign_item.item
    progress = NO_PROGRESS if ahead else progress_of(campaign=campaign, annotator=assignment.annotator)
    label = None
    before, after = progress.previous, None
    if assignment.state == Assignment.State.SUBMITTED:
        label = Label.objects.get(assignment=assignment)
        labels = Label.objects.filter(campaign=campaign, annotator=assignment.annotator)
        before = labels.filter(pk__lt=label.pk).order_by("-pk").values_list("assignment", flat=True).first()
        after = labels.filter(pk__gt=label.pk).order_by("pk").values_list("assignment", flat=True).first()
    ballot = ballots.of(campaign)
    shown = material.shown_material(assignment, ballot)
    values = form_values(assignment, label, ballot, shown.material) if typed is None else typed
    return Work(
        assignment=assignment,
        campaign=campaign,
        ballot=ballot,
        sample=item.sample,
        instruction=bank.text.rendering.markdown(item.sample.instruction),
        images=list(SampleImage.objects.filter(sample=item.sample_id)),
        answers=presented_answers(assignment),
        shown=shown,
        groups=ballot.groups(shown.material, values),
        progress=progress,
        values=values,
        label=label,
        before=before,
        after=after,
        returned=notices.return_note(assignment) if label else "",
    )


def form_values(
    assignment: Assignment, label: Label | None, ballot: ballots.Ballot, subject: ballots.Material
) -> dict[str, Any]:
    """The verdict in the form, in presented terms: the draft if there is one, else the label."""
    draft = {name: value for name, value in assignment.draft.items() if name != "skipped"}
    if draft or label is None:
        return draft
    return ballot.present(label.verdict(), subject) | {name: getattr(label, name) for name in BESIDE_VERDICT}


def submitted_values(given: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a form or a request, as arguments of ``submit_label`` and ``change_label``."""
    verdict = {name: given.get(name) for name in ballots.FIELDS}
    return {"verdict": verdict, **{name: given.get(name) for name in BESIDE_VERDICT}}


def presented_responses(assignment: Assignment, order: str = "") -> list[tuple[str, str]]:
    """Text and status of the responses in presented order, or in another. Blind campaigns mask names with
    ``masking.MARK``.
    """
    campaign_item = assignment.campaign_item
    responses = ItemResponse.objects.filter(item=campaign_item.item_id).order_by("position")
    rows = list(responses.values_list("response__text", "response__status"))
    rows = [rows[position] for position in ballots.places(order or assignment.order_of_answers)[: len(rows)]]
    if not campaign_item.campaign.blind:
        return [(text.replace(bank.text.masking.MARK, ""), status) for text, status in rows]
    names = material.names_to_mask()
    return [(bank.text.masking.mask(text, names, placeholder=bank.text.masking.MARK), status) for text, status in rows]


def presented_answers(assignment: Assignment, order: str = "") -> list[Answer]:
    answers = []
    responses = presented_responses(assignment, order)
    for number, (text, status) in enumerate(responses, 1):
        letter, name = ascii_uppercase[number - 1], str(number)
        if len(responses) > 2:
            name = letter
        elif len(responses) == 2 and assignment.campaign_item.reviewed_id:
            name = f"{number} ({letter})"
        text = text if text.strip() and status != Response.Status.ERROR else ""
        html, raw = bank.text.rendering.markdown(text, masked=True), bank.text.rendering.raw(text, masked=True)
        answers.append(Answer(number, name, html, raw, size_of(text)))
    return answers


def count_words(text: str) -> int:
    """Number of words. A Chinese or Japanese character counts as one, because there are no spaces between words."""
    return len(_UNSPACED.sub(" ", text).split()) + len(_UNSPACED.findall(text))


def size_of(text: str) -> str:
    """How long a text is: "37 words", or "37 characters" where most is Chinese or Japanese. "" for none."""
    words = count_words(text)
    if 2 * len(_UNSPACED.findall(text)) > words:
        characters = len("".join(text.split()))
        return ngettext("{n} character", "{n} characters", characters).format(n=f"{characters:,}")
    return ngettext("{n} word", "{n} words", words).format(n=f"{words:,}") if words else ""
