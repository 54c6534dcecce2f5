"""Campaigns, assignments and labels."""

import secrets
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.db import models
from django.db.models import Exists, ExpressionWrapper, F, OuterRef, Q

from accounts.crypto import EncryptedJSONField
from accounts.models import User
from accounts.rules import Viewer
from bank import exposure, guard
from bank.database.unfinished import FinishedManager
from bank.guard import Guarded
from bank.models import Benchmark, Item, Sample, SampleImage, Verdict
from bank.text.names import NameField
from judging.models import Judgment

MAX_QUERY = 3_000  # characters; web servers take about 4,000 of an address


class Annotator(models.Model):
    """Somebody who labels: a person with an account, or a name in an imported file."""

    person = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="annotator"
    )
    name = NameField(max_length=200)  # as the file has it; an account's user name
    origin = models.CharField(max_length=100)  # "account", or the benchmark's slug whose file named them
    pseudonym = models.CharField(max_length=40, unique=True)
    simulated = models.BooleanField(default=False, db_default=False)  # the labels are invented, as the demo's are

    objects = FinishedManager["Annotator"]()

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["origin", "name"], name="annotator_name")]

    def __str__(self) -> str:
        return self.shown(named=False)

    def shown(self, *, named: bool) -> str:
        """The name or the pseudonym, and that the annotator is simulated."""
        return f"{self.name if named else self.pseudonym}{' (simulated)' if self.simulated else ''}"


class CampaignQuerySet(models.QuerySet["Campaign"]):
    @guard.working()
    def complete(self) -> "CampaignQuerySet":
        """Open ones in which every item has its labels, and nobody holds one."""
        items = CampaignItem.objects.filter(campaign=OuterRef("pk"))
        lacking = items.filter(practice=False, gold__isnull=True, taken__lt=F("campaign__overlap"))
        held = items.filter(assignments__state=Assignment.State.LEASED)
        labelled = Label.objects.filter(campaign=OuterRef("pk"))
        return self.filter(~Exists(lacking), ~Exists(held), Exists(labelled), state=Campaign.State.OPEN)


class Campaign(models.Model):
    """Items to label, with the settings for labelling them."""

    class State(models.TextChoices):
        DRAFT = "draft"
        OPEN = "open"
        PAUSED = "paused"
        CLOSED = "closed"

    GOING = (State.OPEN, State.PAUSED)

    class Order(models.TextChoices):
        LEAST = "least", "Least labelled first"
        SHUFFLED = "shuffled", "Shuffled, one item after the other"
        FIXED = "fixed", "In the benchmark's order"
        DISPUTED = "disputed", "Most disputed first"
        PERSON = "by-person", "In an order of each person's own"

    name = NameField(max_length=200, unique=True)
    benchmark = models.ForeignKey(Benchmark, on_delete=models.CASCADE, related_name="campaigns")
    protocol = models.CharField(max_length=30, default="pairwise-criteria")
    ballot = models.JSONField(default=dict, blank=True)  # settings of the protocol, see annotations.ballots
    guidelines = models.TextField(blank=True)
    guidelines_version = models.PositiveSmallIntegerField(default=1, db_default=1)
    guidelines_changed_at = models.DateTimeField(null=True, blank=True)
    guidelines_change = models.CharField(max_length=200, blank=True, db_default="")  # what the last change is about
    overlap = models.PositiveSmallIntegerField(default=1)
    blind = models.BooleanField(default=True)
    shows_criteria = models.BooleanField(default=False)
    held = models.PositiveSmallIntegerField(default=0, db_default=0)  # closed Inputs (bank.exposure) that it has shown
    order = models.CharField(max_length=12, choices=Order.choices, default=Order.LEAST)
    daily_cap = models.PositiveIntegerField(null=True, blank=True)  # labels of one annotator in a day of UTC
    share = models.PositiveIntegerField(null=True, blank=True)  # labels of one annotator, who then has finished
    consent = models.TextField(blank=True, default="", db_default="")  # Markdown, to be agreed to before the first item
    completion_code = models.CharField(max_length=100, blank=True, default="", db_default="")  # told who has finished
    return_url = models.CharField(max_length=500, blank=True, default="", db_default="")  # where they go back to then
    due = models.DateField(null=True, blank=True)
    plan = models.JSONField(default=dict, blank=True)  # how the items were chosen; see annotations.campaigns.sampling
    rule = models.JSONField(
        default=dict, blank=True
    )  # which items are added automatically; see annotations.campaigns.auto_enqueue
    practice_pass = models.FloatField(null=True, blank=True)  # share of the practice items to get right
    gold_rate = models.FloatField(default=0)  # share of hidden gold among an annotator's items
    gold_pass = models.FloatField(default=0.7)  # share of them to get right
    gold_least = models.PositiveSmallIntegerField(default=5)  # number needed before a warning
    gold_stops = models.BooleanField(default=True)  # below the mark again after a warning: no more items
    lease_minutes = models.PositiveSmallIntegerField(default=30)
    seed = models.PositiveIntegerField(default=0)
    state = models.CharField(max_length=6, choices=State.choices, default=State.DRAFT)
    imported = models.BooleanField(default=False)
    open_to_all = models.BooleanField(default=False)  # whoever may label there joins by asking for an item
    created_at = models.DateTimeField(auto_now_add=True)
    closed_at = models.DateTimeField(null=True, blank=True)
    # From then on, items of a blind campaign are blind only as long as they lack labels; without, until it is closed.
    finished_opened_at = models.DateTimeField(null=True, blank=True)
    by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")  # who made it
    members = models.ManyToManyField(Annotator, through="Membership", related_name="campaigns")

    objects = FinishedManager.from_queryset(CampaignQuerySet)()

    class Meta:
        ordering = ["-pk"]
        constraints = [models.CheckConstraint(condition=Q(overlap__gte=1), name="campaign_overlap_positive")]

    def __str__(self) -> str:
        return self.name

    def asks_consent_of(self, annotator: Annotator) -> bool:
        """Whether they have not agreed to the text as it is now."""
        given = Consent.objects.filter(campaign=self, annotator=annotator, text=self.consent)
        return bool(self.consent) and not given.exists()

    @property
    def as_run(self) -> str:
        """The query that fills the form of a run in which a judge is asked the same about the same items; empty where
        judges are not asked this.

        Without categories that are too long for an address; the form asks for them.
        """
        from judging import protocols  # loads the prompts, which models have no other use for
        from judging.protocols.label import as_lines

        if self.protocol not in protocols.all_by_name():
            return ""
        asked = {"benchmark": self.benchmark_id, "protocol": self.protocol, "campaign": self.name}
        if categories := self.ballot.get("categories"):
            whole = asked | {"categories": as_lines(categories), "question": self.ballot.get("question", "")}
            asked = whole if len(urlencode(whole)) < MAX_QUERY else asked
        return urlencode(asked)


class Membership(models.Model):
    """An annotator in a campaign. ``qualified`` is null until a practice round, if there is one, is finished.

    Removed annotators keep the row, so that they cannot rejoin on their own.
    """

    campaign = models.ForeignKey(Campaign, on_delete=models.CASCADE, related_name="memberships", db_index=False)
    annotator = models.ForeignKey(Annotator, on_delete=models.CASCADE, related_name="memberships")
    qualified = models.BooleanField(null=True, blank=True)
    tries = models.JSONField(default=list, blank=True)  # finished practice rounds: [{"right", "of", "at"}]
    warned_at = models.DateTimeField(null=True, blank=True)  # warned about wrong labels on hidden gold
    warning_seen = models.BooleanField(default=False)
    stopped_at = models.DateTimeField(null=True, blank=True)  # no more items are assigned
    guidelines_read = models.PositiveSmallIntegerField(null=True, blank=True)  # the version they have read
    message = models.TextField(blank=True, db_default="")  # to the curators, about the whole round
    message_at = models.DateTimeField(null=True, blank=True)
    withdrawn_at = models.DateTimeField(null=True, blank=True)
    joined_at = models.DateTimeField(auto_now_add=True)
    outside_id = models.CharField(max_length=64, blank=True, db_default="")  # as Prolific or MTurk calls them

    objects = FinishedManager["Membership"]()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["campaign", "annotator"], name="membership_once"),
            models.UniqueConstraint(
                fields=["campaign", "outside_id"], condition=~Q(outside_id=""), name="membership_outside_once"
            ),
        ]


class Consent(models.Model):
    """That somebody agreed to a campaign's text, word for word, and when. It stays when the text changes."""

    campaign = models.ForeignKey(Campaign, on_delete=models.CASCADE, related_name="consents", db_index=False)
    annotator = models.ForeignKey(Annotator, on_delete=models.CASCADE, related_name="consents")
    text = models.TextField()
    at = models.DateTimeField()

    class Meta:
        ordering = ["pk"]
        indexes = [models.Index(fields=["campaign", "annotator"], name="consent_of_annotator")]


class CampaignItemQuerySet(models.QuerySet["CampaignItem"]):
    def assignable(self) -> "CampaignItemQuerySet":
        """Without items of samples that staff have withdrawn, and verdicts under review that tell a closed key. Their
        labels stay, but nobody gets them any more.
        """
        told = Q(reviewed__isnull=True) | exposure.counted(held="reviewed__run__held")
        both = Q(against__isnull=True) | exposure.counted(held="against__run__held")
        return self.filter(told, both, item__sample__status=Sample.Status.APPROVED)


class CampaignItem(models.Model):
    """An item of a campaign. ``taken`` counts the slots that are leased or labelled; of ordinary items at most the
    overlap.

    Hidden gold items (``gold`` is their right verdict in canonical order), practice items (``practice``, with
    ``gold``) and decoys (``decoy``: ordinary items among which gold hides) go to everyone, so their slots are
    unlimited. ``note`` says why that verdict is right. ``reviewed`` is the judgment under review, or the first of two
    whose analyses are compared; the second is ``against``.
    """

    campaign = models.ForeignKey(Campaign, on_delete=models.CASCADE, related_name="campaign_items", db_index=False)
    item = models.ForeignKey(Item, on_delete=models.CASCADE, related_name="campaign_items")
    # RESTRICT: deleting a judgment must not delete people's labels.
    reviewed = models.ForeignKey(Judgment, on_delete=models.RESTRICT, null=True, blank=True, related_name="+")
    against = models.ForeignKey(Judgment, on_delete=models.RESTRICT, null=True, blank=True, related_name="+")
    gold = models.JSONField(null=True, blank=True)
    practice = models.BooleanField(default=False)
    decoy = models.BooleanField(default=False, db_default=False)
    note = models.TextField(blank=True)
    why = models.CharField(max_length=200, blank=True)  # why it was added: "no majority in run 3"
    priority = models.IntegerField(default=0)
    position = models.PositiveIntegerField(default=0)
    taken = models.PositiveSmallIntegerField(default=0)
    asked_since = models.DateTimeField(null=True, blank=True)  # when the round was opened on it; null before and after
    opened_at = models.DateTimeField(null=True, blank=True)  # when its item was last no longer labelled blind

    objects = FinishedManager.from_queryset(CampaignItemQuerySet)()

    class Meta:
        ordering = ["position", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["campaign", "item"], condition=Q(reviewed__isnull=True), name="campaign_item_once"
            ),
            models.UniqueConstraint(
                fields=["campaign", "reviewed"],
                condition=Q(reviewed__isnull=False, against__isnull=True),
                name="campaign_review_once",
            ),
            models.UniqueConstraint(
                fields=["campaign", "reviewed", "against"],
                condition=Q(against__isnull=False),
                name="campaign_comparison_once",
            ),
            # One order for each two, so that none is there twice.
            models.CheckConstraint(
                condition=Q(against__isnull=True) | Q(reviewed__isnull=False, reviewed__lt=F("against")),
                name="campaign_comparison_in_order",
            ),
        ]
        indexes = [
            models.Index(fields=["campaign", "taken", "-priority", "position"], name="campaign_item_next"),
            models.Index(fields=["campaign", "position"], name="campaign_item_in_order"),
        ]

    @property
    def unlimited(self) -> bool:
        """Whether everyone gets it."""
        return self.practice or self.gold is not None or self.decoy

    @property
    def judgments(self) -> tuple[int, ...]:
        """What is labelled, if it is not the item: the judgment under review, or the two that are compared."""
        return tuple(pk for pk in (self.reviewed_id, self.against_id) if pk is not None)

    @property
    def subject(self) -> tuple[int, ...]:
        """What is labelled, once in a campaign: the item, or its ``judgments``."""
        return self.judgments or (self.item_id,)


class Assignment(models.Model):
    """One annotator's assignment of one campaign item.

    It holds a slot while it is leased or submitted; ``slot`` is then its number below the overlap, unique in the
    database. A skipped or expired assignment has no slot and can be leased again; a withdrawn one has an excluded
    label and cannot.
    """

    class State(models.TextChoices):
        LEASED = "leased"
        SUBMITTED = "submitted"
        SKIPPED = "skipped"
        EXPIRED = "expired"
        WITHDRAWN = "withdrawn"  # its label is excluded

    campaign_item = models.ForeignKey(
        CampaignItem, on_delete=models.CASCADE, related_name="assignments", db_index=False
    )
    annotator = models.ForeignKey(Annotator, on_delete=models.PROTECT, related_name="assignments", db_index=False)
    order = models.CharField(max_length=10, default="01")  # canonical positions in presented order, of what is compared
    state = models.CharField(max_length=9, choices=State.choices, default=State.LEASED)
    slot = models.PositiveSmallIntegerField(null=True, blank=True)
    leased_at = models.DateTimeField()
    lease_until = models.DateTimeField()
    draft: Any = EncryptedJSONField(default=dict, blank=True)  # it may quote criteria that the campaign shows
    draft_at = models.DateTimeField(null=True, blank=True)
    feedback_seen = models.BooleanField(default=False)  # of a practice item
    # The judge's analysis as last displayed, for spans: its SHA-256 and its length in characters. Of two that are
    # compared the same of both, one after the other; a length of 0 if they could not be displayed.
    displayed_sha256 = models.CharField(max_length=64, blank=True)
    displayed_length = models.PositiveIntegerField(null=True, blank=True)

    objects = FinishedManager["Assignment"]()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["campaign_item", "annotator"], name="assignment_once"),
            models.UniqueConstraint(fields=["campaign_item", "slot"], name="assignment_slot"),
            models.CheckConstraint(
                condition=Q(state__in=["leased", "submitted"], slot__isnull=False)
                | Q(state__in=["skipped", "expired", "withdrawn"], slot__isnull=True),
                name="assignment_slot_while_held",
            ),
        ]
        indexes = [
            models.Index(fields=["annotator", "state"], name="assignment_of_annotator"),
            models.Index(fields=["lease_until"], condition=Q(state="leased"), name="assignment_lease_end"),
        ]

    @property
    def order_of_answers(self) -> str:
        """Canonical positions of the answers in presented order. Where analyses are compared, the order is that in
        which both judges saw the answers.
        """
        second, first = self.campaign_item.against_id, self.campaign_item.reviewed
        return first.order if second and first else self.order

    # Used by bank.criteria.for_assignment.
    @property
    def shows_criteria(self) -> bool:
        return self.campaign_item.campaign.shows_criteria

    @property
    def sample(self) -> Sample:
        return self.campaign_item.item.sample

    @property
    def reader(self) -> User:
        person = self.annotator.person
        if person is None:
            raise ValueError("An annotator without an account cannot read criteria.")
        return person

    def note_held(self, inputs: int) -> None:
        campaign = self.campaign_item.campaign
        if inputs & ~campaign.held:
            Campaign.objects.filter(pk=campaign.pk).update(held=F("held").bitor(inputs))
            campaign.held |= inputs


class LabelQuerySet(models.QuerySet["Label"]):
    def seen_by(self, viewer: Viewer) -> "LabelQuerySet":
        """Labels that this viewer may see one by one, besides their own."""
        return self.filter(exposure.seen_singly(viewer, held="campaign__held"))

    def with_words(self, viewer: Viewer) -> "LabelQuerySet":
        """With ``in_words``: whether this viewer may read the comment and the flags."""
        seen = exposure.words_seen(viewer, held="campaign__held")
        return self.annotate(in_words=ExpressionWrapper(seen, output_field=models.BooleanField()))

    def of_answers(self) -> "LabelQuerySet":
        """Labels that say something about answers, and not about judges."""
        # Reviews from files do not name the judgment.
        return self.filter(assignment__campaign_item__reviewed__isnull=True, agree__isnull=True)

    def counted(self) -> "LabelQuerySet":
        """Labels that count: not excluded, and not of a practice round."""
        return self.filter(excluded=False, assignment__campaign_item__practice=False)

    def compared(self) -> "LabelQuerySet":
        """Those that are compared with others' verdicts, of people and judges: given without knowing of them, as far
        as that is known.
        """
        return self.counted().filter(changed_late=False)

    def changeable(self) -> "LabelQuerySet":
        """Labels whose author may not have read yet what others say of the item: in campaigns that are not blind every
        one; in others, where the item is blind and was not opened after the label was given.
        """
        opened = "assignment__campaign_item__opened_at"
        unopened = Q(**{f"{opened}__isnull": True}) | Q(created_at__gt=F(opened))
        return self.filter(Q(campaign__blind=False) | (Q(item__blind=True) & unopened))


class Label(Verdict):
    """One annotator's verdict on one item, in canonical order. Every change is kept as a revision."""

    assignment = models.OneToOneField(Assignment, on_delete=models.CASCADE, related_name="label")
    # Copied from the assignment, so that one query covers labels and judgments and the database can forbid duplicates.
    campaign = models.ForeignKey(Campaign, on_delete=models.CASCADE, related_name="labels", db_index=False)
    item = models.ForeignKey(Item, on_delete=models.CASCADE, related_name="labels")
    annotator = models.ForeignKey(Annotator, on_delete=models.PROTECT, related_name="labels", db_index=False)
    seconds = models.FloatField(null=True, blank=True)
    comment = models.TextField(blank=True)
    flags = models.JSONField(default=list, blank=True)
    idempotency_key = models.CharField(max_length=64, null=True, blank=True)
    excluded = models.BooleanField(default=False)
    displayed_sha256 = models.CharField(max_length=64, blank=True)  # of the text that grade and spans refer to
    created_at = models.DateTimeField()
    changed_at = models.DateTimeField()
    # Changed when others' verdicts may have been read, which later versions refuse: see ``compared``.
    changed_late = models.BooleanField(default=False, db_default=False)
    in_words: bool  # of LabelQuerySet.with_words

    BENCHMARK = "campaign__benchmark__"
    objects = Guarded.from_queryset(LabelQuerySet)()

    class Meta(Verdict.Meta):
        constraints = [
            *Verdict.Meta.constraints,
            models.UniqueConstraint(fields=["annotator", "idempotency_key"], name="label_idempotency_key"),
        ]
        indexes = [models.Index(fields=["campaign", "annotator"], name="label_of_annotator")]


class LabelRevision(models.Model):
    """An earlier version of a label: whose it was, when it was given, and when it was replaced."""

    label = models.ForeignKey(Label, on_delete=models.CASCADE, related_name="revisions")
    verdict = models.JSONField()
    seconds = models.FloatField(null=True, blank=True)
    comment = models.TextField(blank=True)
    flags = models.JSONField(default=list, blank=True)
    by = models.ForeignKey(Annotator, on_delete=models.PROTECT, related_name="+")
    given_at = models.DateTimeField()
    replaced_at = models.DateTimeField()

    objects = FinishedManager["LabelRevision"]()

    class Meta:
        ordering = ["pk"]


class LabelReturn(models.Model):
    """A label that staff returned to its annotator with a note. It counts until it is changed or confirmed."""

    label = models.ForeignKey(Label, on_delete=models.CASCADE, related_name="returns")
    note = models.TextField()
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField()
    answered_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["label"], condition=Q(answered_at__isnull=True), name="label_return_open_once"
            )
        ]


class Invitation(models.Model):
    """A signed link into a campaign, for one e-mail address or for anyone who has it; ``outside``: for whom Prolific or
    MTurk sends with an id, without a password.
    """

    campaign = models.ForeignKey(Campaign, on_delete=models.CASCADE, related_name="invitations")
    email = models.EmailField(blank=True)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)
    most = models.PositiveIntegerField(null=True, blank=True)  # people who may join with it
    used = models.PositiveIntegerField(default=0)
    outside = models.BooleanField(default=False, db_default=False)

    class Meta:
        ordering = ["-pk"]


class GuidelinePicture(models.Model):
    """A picture in a campaign's guidelines, shown with ``![words](name)``."""

    campaign = models.ForeignKey(Campaign, on_delete=models.CASCADE, related_name="pictures", db_index=False)
    name = models.CharField(max_length=100)
    sha256 = models.CharField(max_length=64)
    kind = models.CharField(max_length=4)
    width = models.PositiveIntegerField()
    height = models.PositiveIntegerField()

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["campaign", "name"], name="guideline_picture_name")]

    path = SampleImage.path


class Adjudication(Verdict):
    """A curator's verdict on an item that annotators disagreed about. The labels stay."""

    campaign_item = models.OneToOneField(CampaignItem, on_delete=models.CASCADE, related_name="adjudication")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    comment = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now=True)

    class Meta(Verdict.Meta):
        constraints = [*Verdict.Meta.constraints]


def new_pseudonym() -> str:
    """A name that reveals nothing: "annotator-" and ten characters, of which 100,000 hardly ever hold two alike."""
    return f"annotator-{secrets.token_hex(5)}"
