"""Reads for the labelling pages."""

import json
import math
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from string import ascii_uppercase
from typing import Any

from django.db.models import Count, Q, QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

import bank.text.masking
import bank.text.rendering
from accounts.models import User
from annotations import ballots
from annotations.assignment import material, notices, quality
from annotations.ballots import Ballot, Choice, Material
from annotations.ballots.answers import ChoiceExtraction, YesNo
from annotations.ballots.base import Words
from annotations.ballots.pairs import Pair
from annotations.ballots.reviews import Review
from annotations.ballots.scores import Score
from annotations.models import Annotator, Assignment, Campaign, CampaignItem, Label, Membership
from bank import database
from bank.models import Item, ItemResponse, Response, Sample, SampleImage

PACE_OF = 20  # labels

_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")


@dataclass(frozen=True, slots=True)
class Progress:
    """How far one annotator is. ``total`` is what they have done and may still get; others' labels make it smaller."""

    done: int
    total: int
    pace: float | None  # seconds per item, over their last labels
    previous: int | None  # the assignment of their newest label

    @property
    def pace_in_words(self) -> str:
        """ "48 s per item, about 1 h 6 min to go", once there is a pace."""
        if self.pace is None:
            return ""
        minutes = math.ceil((self.total - self.done) * self.pace / 60)
        hours, rest = divmod(minutes, 60)
        if self.pace < 120:
            each = _("{seconds} s per item").format(seconds=f"{self.pace:.0f}")
        else:
            each = _("{minutes} min per item").format(minutes=f"{self.pace / 60:.1f}")
        if not minutes:
            return each
        if hours:
            return f"{each}, " + _("about {hours} h {minutes} min to go").format(hours=hours, minutes=rest)
        return f"{each}, " + _("about {minutes} min to go").format(minutes=rest)

    @property
    def words(self) -> str:
        return _("%(done)s of %(total)s done") % {"done": self.done, "total": self.total}

    @property
    def meter(self) -> float:
        """The width of the filled part of a meter 132 wide."""
        return round(132 * self.done / self.total, 1) if self.total else 0


NOT_COUNTED = Progress(0, 0, None, None)


@dataclass(frozen=True, slots=True)
class Answer:
    """A response as the annotator sees it; nothing here tells whose it is."""

    number: int
    name: str  # "1", or a letter where there are several to rank
    html: SafeString
    raw: SafeString
    words: int

    @property
    def is_empty(self) -> bool:
        return not self.words


@dataclass(frozen=True, slots=True)
class Group:
    """One question and its answers; ``given`` is the value of the one that was chosen."""

    name: str
    question: Words
    buttons: tuple[Choice, ...]
    given: str
    missing: str  # what to say when it was left open
    style: str = ""


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
    shown: material.Shown
    groups: list[Group]
    progress: Progress
    given: dict[str, Any]  # what stands in the form: the draft, or the label that is edited
    label: Label | None
    before: int | None  # the assignment that Back goes to
    after: int | None  # while editing: the label after this one
    returned: str = ""  # the note with which staff gave the label back
    key: str = field(default_factory=lambda: secrets.token_hex(16))

    @property
    def shape(self) -> str:
        """How the answers stand: pair, single, ranking, components, review."""
        shapes = {"batch": "ranking", "components": "components", "review": "review"}
        return shapes.get(self.ballot.protocol) or ("pair" if self.ballot.kind == Item.Kind.PAIR else "single")

    @property
    def answers_template(self) -> str:
        scored = self.shape == "single" and isinstance(self.ballot, Score) and self.ballot.has_rubric
        name = "scored" if scored else {"pair": "answers", "single": "answers"}.get(self.shape, self.shape)
        return f"annotations/ballot/_{name}.html"

    @property
    def pictures(self) -> list[tuple[SampleImage, str]]:
        """Each picture with what a button that shows it is called."""
        total = len(self.images)
        named = _("Picture %(number)s of %(total)s")
        return [(image, named % {"number": number, "total": total}) for number, image in enumerate(self.images, 1)]

    @property
    def columns(self) -> str:
        """The classes of what holds the answers."""
        return {1: "pair one", 2: "pair"}.get(len(self.answers), "pair many")

    @property
    def legend(self) -> str:
        """The classes of a question's title: one alone is seen above the answers already."""
        if len(self.groups) > 1:
            return "gtitle"
        return "gtitle small-only" if self.shape == "review" else "sr"

    @property
    def options(self) -> dict[str, str]:
        """The sample's options, as the model saw them where that is asked about."""
        if isinstance(self.ballot, ChoiceExtraction):
            return {option.shown: option.text for option in self.shown.material.options}
        return dict(self.sample.options)

    @property
    def components(self) -> list[tuple[ballots.Component, str]]:
        """Each component with the points given so far."""
        given = {row["component"]: row["points"] for row in self.given.get("parts") or []}
        return [
            (part, "" if given.get(part.key) is None else f"{given[part.key]:g}")
            for part in self.shown.material.components
        ]

    @property
    def situations(self) -> tuple[tuple[int, ballots.Words, bool], ...]:
        """In which somebody may be unable to decide: number, words, whether it was chosen."""
        known = self.ballot.situations if isinstance(self.ballot, Pair) else {}
        return tuple((number, words, self.given.get("situation") == number) for number, words in known.items())

    @property
    def total_weight(self) -> str:
        return f"{sum(part.weight for part in self.shown.material.components):g}"

    @property
    def ranked(self) -> list[tuple[Answer, int | None]]:
        """The answers in the order they stand in, each with its place; in presented order until one is given."""
        ranking = self.given.get("ranking")
        if not ranking:
            return [(answer, None) for answer in self.answers]
        return [(self.answers[at], place) for place, group in enumerate(ranking, 1) for at in group]

    @property
    def spans(self) -> str:
        """Marked passages as the form holds them."""
        return json.dumps(self.given.get("spans") or [])

    @property
    def editing(self) -> bool:
        return self.label is not None

    @property
    def has_draft(self) -> bool:
        return bool(self.assignment.draft_at and self.given) and not self.editing

    @property
    def expired(self) -> bool:
        return self.assignment.state in (Assignment.State.EXPIRED, Assignment.State.SKIPPED)

    @property
    def is_wide(self) -> bool:
        """Without a picture a short instruction goes on top, and the answers take the whole width."""
        return not self.images and len(self.sample.instruction) <= 600

    @property
    def time_left(self) -> str:
        """Minutes and seconds until the lease ends, when the page is made."""
        left = max(0, int((self.assignment.lease_until - database.now()).total_seconds()))
        return f"{left // 60}:{left % 60:02}"

    @property
    def number(self) -> int:
        """Which of their items this is, from 1."""
        return self.progress.done + (0 if self.editing else 1)


def campaigns_of(annotator: Annotator | None) -> QuerySet[Campaign]:
    """The campaigns that this annotator belongs to, or may join."""
    if annotator is None:
        return Campaign.objects.none()
    known = Membership.objects.filter(annotator=annotator)
    mine = Q(pk__in=known.filter(withdrawn_at__isnull=True).values("campaign"))
    joinable = Q(open_to_all=True, state=Campaign.State.OPEN) & ~Q(pk__in=known.values("campaign"))
    return Campaign.objects.exclude(state=Campaign.State.DRAFT).filter(mine | joinable)


def assignment_of(user: User, pk: int) -> Assignment:
    """An assignment of this person in a campaign they belong to, with all that the labelling actions ask of one.

    Raises Http404 for any other.
    """
    mine = Assignment.objects.filter(annotator__person=user).select_related("annotator", "campaign_item__campaign")
    found = get_object_or_404(mine, pk=pk)
    members = Membership.objects.filter(campaign=found.campaign_item.campaign_id, annotator=found.annotator_id)
    if members.filter(withdrawn_at__isnull=False).exists():
        raise Http404("no such assignment")
    return found


def annotator_of(user: User) -> Annotator | None:
    """The annotator behind an account, if it ever was one."""
    return Annotator.objects.filter(person=user).first()


def progress_of(*, campaign: Campaign, annotator: Annotator) -> Progress:
    labels = Label.objects.filter(campaign=campaign, annotator=annotator)
    newest = list(labels.order_by("-pk").values_list("assignment_id", "seconds")[:PACE_OF])
    times = [seconds for _, seconds in newest if seconds is not None]
    pace = sum(times) / len(times) if len(times) >= 3 else None
    mine = Assignment.objects.filter(annotator=annotator, campaign_item__campaign=campaign)
    previous = newest[0][0] if newest else None
    if in_practice(campaign, annotator):
        done = mine.filter(campaign_item__practice=True, state="submitted")
        ahead = CampaignItem.objects.given_out().filter(campaign=campaign, practice=True)
        ahead = ahead.exclude(pk__in=done.values("campaign_item"))
        return Progress(done.count(), done.count() + ahead.count(), pace, previous)
    items = CampaignItem.objects.filter(campaign=campaign, practice=False)
    plain, gold = Q(campaign_item__gold__isnull=True), Q(campaign_item__gold__isnull=False)
    # The samples are joined only where one was withdrawn: this is asked for at every item.
    if Sample.objects.filter(benchmark=campaign.benchmark_id).exclude(status=Sample.Status.APPROVED).exists():
        items = items.given_out()
        of_items = Q(campaign_item__item__sample__status=Sample.Status.APPROVED)
        plain, gold = plain & of_items, gold & of_items
    held = mine.filter(campaign_item__practice=False).aggregate(
        leased=Count("pk", filter=Q(state="leased")),
        done=Count("pk", filter=Q(state="submitted")),
        not_free=Count(
            "pk",
            filter=plain & Q(state__in=("leased", "submitted"), campaign_item__taken__lt=campaign.overlap),
        ),
        had=Count("pk"),
        had_gold=Count("pk", filter=gold),
        begun=Count("pk", filter=plain & Q(state__in=("skipped", "expired"))),
    )
    labelled, left = held["done"], 0
    if campaign.state in (Campaign.State.OPEN, Campaign.State.PAUSED):
        # What this annotator holds, and what they could still get.
        free = items.filter(gold__isnull=True, taken__lt=campaign.overlap).count()
        others = free - held["not_free"]
        left = others + held["leased"]
        if campaign.gold_rate:
            unseen = items.filter(gold__isnull=False).count() - held["had_gold"]
            fresh = max(0, others - held["begun"])
            left += quality.gold_ahead(campaign, annotator.pk, had=held["had"], fresh=fresh, unseen=unseen)
    return Progress(labelled, labelled + left, pace, previous)


def in_practice(campaign: Campaign, annotator: Annotator) -> bool:
    """Whether this annotator has a practice round before them."""
    if not quality.has_practice(campaign):
        return False
    return not Membership.objects.filter(campaign=campaign, annotator=annotator, qualified=True).exists()


def work_of(assignment: Assignment, *, ahead: bool = False, typed: dict[str, Any] | None = None) -> Work:
    """Everything the page of this assignment shows; criteria that the campaign shows are read and logged.

    ``ahead``: shown later, by a page that counts on its own; its progress is left out. ``typed`` stands in the form in
    place of what is stored.
    """
    place = assignment.campaign_item
    campaign, item = place.campaign, place.item
    progress = NOT_COUNTED if ahead else progress_of(campaign=campaign, annotator=assignment.annotator)
    label = None
    before, after = progress.previous, None
    if assignment.state == Assignment.State.SUBMITTED:
        label = Label.objects.get(assignment=assignment)
        others = Label.objects.filter(campaign=campaign, annotator=assignment.annotator)
        before = others.filter(pk__lt=label.pk).order_by("-pk").values_list("assignment", flat=True).first()
        after = others.filter(pk__gt=label.pk).order_by("pk").values_list("assignment", flat=True).first()
    ballot = ballots.of(campaign)
    shown = material.shown(assignment, ballot)
    given = given_in(assignment, label, ballot, shown.material) if typed is None else typed
    return Work(
        assignment=assignment,
        campaign=campaign,
        ballot=ballot,
        sample=item.sample,
        instruction=bank.text.rendering.markdown(item.sample.instruction),
        images=list(SampleImage.objects.filter(sample=item.sample_id)),
        answers=answers_of(assignment),
        shown=shown,
        groups=groups_of(ballot, shown.material, given),
        progress=progress,
        given=given,
        label=label,
        before=before,
        after=after,
        returned=notices.note_of(assignment) if label else "",
    )


def given_in(
    assignment: Assignment, label: Label | None, ballot: ballots.Ballot, about: ballots.Material
) -> dict[str, Any]:
    """What stands in the form, in presented terms: the newest of draft and label."""
    draft = {name: value for name, value in assignment.draft.items() if name != "skipped"}
    if draft or label is None:
        return draft
    beside = {name: getattr(label, name) for name in ("comment", "flags", "seconds", "confidence")}
    return ballot.shown(label.verdict(), about) | beside


def responses_of(assignment: Assignment) -> list[tuple[str, str]]:
    """Text and status of the responses in presented order, names hidden where the campaign is blind.

    Hidden names stand as ``bank.text.masking.MARK``.
    """
    place = assignment.campaign_item
    found = ItemResponse.objects.filter(item=place.item_id).order_by("position")
    rows = list(found.values_list("response__text", "response__status"))
    rows = [rows[position] for position in ballots.places(assignment.order)[: len(rows)]]
    if not place.campaign.blind:
        return [(text.replace(bank.text.masking.MARK, ""), status) for text, status in rows]
    names = material.hidden_names()
    return [(bank.text.masking.mask(text, names, placeholder=bank.text.masking.MARK), status) for text, status in rows]


def answers_of(assignment: Assignment) -> list[Answer]:
    answers = []
    kind, reviewed = assignment.campaign_item.item.kind, assignment.campaign_item.reviewed_id
    for number, (text, status) in enumerate(responses_of(assignment), 1):
        letter = ascii_uppercase[number - 1]
        name = (
            letter
            if kind == Item.Kind.BATCH
            else f"{number} ({letter})"
            if reviewed and kind == "pair"
            else str(number)
        )
        text = text if text.strip() and status != Response.Status.ERROR else ""
        html, raw = bank.text.rendering.markdown(text, masked=True), bank.text.rendering.raw(text, masked=True)
        answers.append(Answer(number, name, html, raw, words_in(text)))
    return answers


def words_in(text: str) -> int:
    """How many words; a Chinese or Japanese character, which stands without spaces, counts as one."""
    spaced = _UNSPACED.sub(" ", text)
    return len(spaced.split()) + len(_UNSPACED.findall(text))


@dataclass(frozen=True, slots=True)
class Mine:
    """A campaign in an annotator's own list."""

    campaign: Campaign
    ballot: ballots.Ballot | None
    progress: Progress
    open: int  # assignments begun and not submitted

    @property
    def goes_on(self) -> bool:
        """Whether there is something to label."""
        is_open = self.campaign.state == Campaign.State.OPEN and self.ballot is not None
        return is_open and self.progress.done < self.progress.total

    @property
    def begun(self) -> bool:
        return bool(self.progress.done or self.open)


def my_campaigns(annotator: Annotator | None) -> list[Mine]:
    """What somebody may label, open ones first."""
    found = campaigns_of(annotator).select_related("benchmark")
    if annotator is None:
        return []
    rank = {Campaign.State.OPEN: 0, Campaign.State.PAUSED: 1}
    leased = Assignment.objects.filter(annotator=annotator, state=Assignment.State.LEASED)
    begun = dict(leased.order_by().values_list("campaign_item__campaign").annotate(n=Count("pk")))
    mine = [
        Mine(
            campaign,
            ballots.BALLOTS.get(campaign.protocol),
            progress_of(campaign=campaign, annotator=annotator),
            begun.get(campaign.pk, 0),
        )
        for campaign in found
    ]
    return sorted(mine, key=lambda row: (rank.get(Campaign.State(row.campaign.state), 2), -row.campaign.pk))


def groups_of(ballot: Ballot, material: Material, given: Mapping[str, Any]) -> list[Group]:
    """The groups that this ballot asks, in order; none where the verdict is given on the answers themselves."""
    if isinstance(ballot, Pair):
        return [_group("choice", ballot.question, ballot.buttons, given, _("Choose a verdict first"))]
    if isinstance(ballot, Score):
        style = "steps" if len(ballot.buttons) > 7 else "scale"
        return [_group("score", ballot.question, ballot.buttons, given, _("Choose a score first"), style)]
    if isinstance(ballot, ChoiceExtraction):
        buttons = ballot.buttons_of(material)
        return [_group("option", ballot.question, buttons, given, _("Choose an option first"), "options")]
    if isinstance(ballot, YesNo):
        return [_group("answer", ballot.question, ballot.buttons, given, _("Choose yes or no first"))]
    if isinstance(ballot, Review):
        groups = [_group("agree", _("Do you agree with the verdict?"), ballot.agree, given, _("Say whether you agree"))]
        if material.length:
            grades, yes_no = ballot.grades, ballot.agree
            ask = _("Does the analysis say what is not there?")
            groups += [
                _group("grade", _("How good is the analysis?"), grades, given, _("Give the analysis 1 to 5"), "scale"),
                _group("hallucination", ask, yes_no, given, _("Say whether the analysis hallucinates")),
            ]
        return groups
    return []


def _group(
    name: str, question: Words, buttons: Sequence[Choice], given: Mapping[str, Any], missing: str, style: str = ""
) -> Group:
    value = given.get(name)
    if isinstance(value, bool):
        value = "yes" if value else "no"
    shown = "" if value is None else f"{value:g}" if isinstance(value, int | float) else str(value)
    return Group(name, question, tuple(buttons), shown, missing, style)
