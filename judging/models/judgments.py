"""Results of calls: judgments, trials of attacks, collected texts; the log of failed calls; releases of analyses."""

from typing import TYPE_CHECKING, Any, ClassVar, Self

from django.db import models
from django.db.models import F, Q

from accounts.crypto import EncryptedTextField
from accounts.installation_key import keyed
from accounts.models import User
from bank import exposure
from bank.guard import Guarded
from bank.models import Item, Response, Sample, Verdict
from judging.models.runs import Run

if TYPE_CHECKING:
    from accounts.rules import Viewer


def reason_key(reason: str) -> str:
    """The keyed hash by which judgments are grouped and found by their reason, which is encrypted."""
    return keyed("reason", reason) if reason else ""


class CallUsage(models.Model):
    """What a call took; None where nobody knows."""

    prompt_tokens = models.PositiveIntegerField(null=True, blank=True)
    completion_tokens = models.PositiveIntegerField(null=True, blank=True)
    cost = models.FloatField(null=True, blank=True)

    class Meta:
        abstract = True


class CallResult(CallUsage):
    """What the result of a call says about the call."""

    reason = EncryptedTextField(blank=True, default="")  # ours; it can quote criteria or reveal a weight
    reason_hash = models.CharField(max_length=64, blank=True, db_default="")  # keyed; only without a verdict
    prompt_sha256 = models.CharField(max_length=64, blank=True)  # keyed, see judging.runs.requests
    reported_model = models.CharField(max_length=200, blank=True)  # the model that the endpoint reports
    latency = models.FloatField(null=True, blank=True)  # seconds of the last attempt
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        abstract = True


class Collected(CallResult):
    """The result of one task of a collecting run. Stored once, when it is known."""

    class Status(models.TextChoices):
        OK = "ok"
        REFUSED = "refused"
        FILTERED = "filtered"
        TRUNCATED = "truncated"
        EMPTY = "empty"
        ERROR = "error"
        SKIPPED = "skipped"  # a rotation that was not asked: an earlier one was wrong

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="collected", db_index=False)
    sample = models.ForeignKey(Sample, on_delete=models.CASCADE, related_name="+")
    place = models.PositiveSmallIntegerField(default=0)  # rotation of the options, or position of the picture
    step = models.PositiveSmallIntegerField(default=0, db_default=0)  # of a recipe's answer: its calls, in order
    last = models.BooleanField(default=True, db_default=True)  # its task is over with it
    likelihoods = models.JSONField(null=True, blank=True)  # of the answers of a pool, see judging.recipes.likelihoods
    job: Any  # of a recipe's answer, until it is stored: the conversation that its call went on with
    response = models.ForeignKey(Response, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    text = models.TextField(blank=True)  # a description, or a text that is no response; responses hold their own text
    thinking = models.TextField(blank=True)  # reasoning returned beside the text
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.OK)
    cached = models.BooleanField(default=False)  # answered from an earlier identical call
    call_key = models.CharField(max_length=64, blank=True)  # the same for identical calls

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["run", "sample", "place", "step"], name="collected_once")]
        indexes = [
            models.Index(fields=["run", "status"], name="collected_of_status"),
            models.Index(fields=["run", "-id"], name="collected_newest"),
            models.Index(fields=["call_key"], name="collected_call", condition=~Q(call_key="")),
        ]


class JudgedQuerySet(models.QuerySet[Any]):
    def seen_by(self, viewer: "Viewer") -> Self:
        """Verdicts that this viewer may see one by one; analyses and raw replies are for staff only."""
        seen = self.filter(exposure.seen_singly(viewer, held="run__held"))
        unseen = Run.objects.unseen_by(viewer)
        return seen.exclude(run__in=unseen) if unseen else seen


class Judged(CallResult, Verdict):
    """The result of judging an item once: a verdict, or why there is none. Stored once, when it is known."""

    class Status(models.TextChoices):
        OK = "ok"
        PARSE_FAILED = "parse_failed"
        REFUSED = "refused"
        FILTERED = "filtered"
        TRUNCATED = "truncated"
        EMPTY = "empty"
        ERROR = "error"
        SKIPPED_BUDGET = "skipped_budget"

    BENCHMARK = "run__benchmark__"
    FAILURES: ClassVar[list[str]] = [status for status in Status.values if status != "ok"]
    KEY: ClassVar[tuple[str, ...]]  # what identifies it within its run

    order = models.CharField(max_length=10, default="01")  # canonical positions in presented order: "10" = swapped
    repeat = models.PositiveSmallIntegerField(default=0)
    status = models.CharField(max_length=14, choices=Status.choices, default=Status.OK)
    # The judge's words, as ours about them, can quote criteria or reveal a weight: encrypted, and for staff only.
    analysis = EncryptedTextField(null=True, blank=True)
    raw = EncryptedTextField(null=True, blank=True)
    weighted_score = models.FloatField(null=True, blank=True)  # expected score from the log-probabilities of its token
    cached = models.BooleanField(default=False, db_default=False)  # answered from an earlier identical call
    call_key = models.CharField(max_length=64, blank=True, db_default="")  # the same for identical calls

    class Meta(Verdict.Meta):
        abstract = True
        constraints = [
            *Verdict.Meta.constraints,
            models.CheckConstraint(
                condition=Q(status="ok") | Q(choice__isnull=True, score__isnull=True, ranking__isnull=True),
                name="%(class)s_verdict_only_if_ok",
            ),
        ]

    @property
    def attempts(self) -> "models.QuerySet[Attempt]":
        """The calls that brought no verdict."""
        same_key = {name: getattr(self, name) for name in self.KEY}
        return Attempt.objects.filter(run=self.run_id, **same_key)  # type: ignore[attr-defined]


class Judgment(Judged):
    """One judge's verdict on one item, in one presented order, one repeat."""

    KEY = ("item_id", "order", "repeat")

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="judgments", db_index=False)
    item = models.ForeignKey(Item, on_delete=models.CASCADE, related_name="judgments")

    objects = Guarded.from_queryset(JudgedQuerySet)()

    class Meta(Judged.Meta):
        constraints = [
            *Judged.Meta.constraints,
            models.UniqueConstraint(fields=["run", "item", "order", "repeat"], name="judgment_once"),
        ]
        indexes = [
            models.Index(fields=["run", "status"], name="judgment_of_run_status"),
            models.Index(fields=["run", "-id"], name="judgment_newest"),
            models.Index(fields=["run", "choice"], name="judgment_of_run_choice"),
            models.Index(fields=["run", "latency"], name="judgment_slowest", condition=Q(latency__isnull=False)),
            models.Index(fields=["run", "cost"], name="judgment_dearest", condition=Q(cost__isnull=False)),
            models.Index(fields=["call_key"], name="judgment_call", condition=~Q(call_key="")),
        ]


class Trial(Judged):
    """A verdict on an item whose target answer was attacked, or left as it is: see ``judging.extras.attacks``.

    It has its own table, so that no board, jury, export or campaign can mistake it for a verdict about a model.
    """

    KEY = ("item_id", "order", "repeat", "attack")

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="trials", db_index=False)
    item = models.ForeignKey(Item, on_delete=models.CASCADE, related_name="+")
    attack = models.CharField(max_length=40, blank=True)  # NAME@VERSION; "" is the answer as it is
    target = models.PositiveSmallIntegerField(default=0)  # canonical position of the answer under attack

    objects = Guarded.from_queryset(JudgedQuerySet)()

    class Meta(Judged.Meta):
        ordering = ["pk"]
        constraints = [
            *Judged.Meta.constraints,
            models.UniqueConstraint(fields=["run", "item", "attack", "order", "repeat"], name="trial_once"),
        ]
        indexes = [
            models.Index(fields=["run", "status"], name="trial_of_run_status"),
            models.Index(fields=["run", "-id"], name="trial_newest"),
            models.Index(fields=["call_key"], name="trial_call", condition=~Q(call_key="")),
        ]


def judgment_table_of(run: Run) -> type[Judgment] | type[Trial]:
    """The table of a judge's verdicts. Only judgments are verdicts about models."""
    return Trial if run.kind == Run.Kind.ATTACKS else Judgment


def table_of(run: Run) -> type[Judgment] | type[Trial] | type[Collected]:
    """The table of a run's results."""
    return judgment_table_of(run) if run.judges else Collected


class Attempt(CallUsage):
    """A log of calls without a verdict. It outlives the judgments that a retry deletes.

    A call with a verdict is recorded by its judgment, which is never deleted.
    """

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="attempts", db_index=False)
    item = models.ForeignKey(Item, on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    sample = models.ForeignKey(Sample, on_delete=models.CASCADE, null=True, blank=True, related_name="+")  # of a task
    order = models.CharField(max_length=10)  # a task's place
    repeat = models.PositiveSmallIntegerField()
    attack = models.CharField(max_length=40, blank=True, db_default="")  # of a trial
    at = models.DateTimeField()
    outcome = models.CharField(max_length=20)  # see judging.endpoints.answers.Outcome
    http_status = models.PositiveSmallIntegerField(null=True, blank=True)
    seconds = models.FloatField()
    detail = EncryptedTextField(blank=True, default="")  # a provider's error can echo the prompt

    class Meta:
        ordering = ["pk"]
        indexes = [
            models.Index(fields=["run", "item"], name="attempt_of_item"),
            models.Index(fields=["run", "-id"], name="attempt_newest"),
        ]


class AnalysisRelease(models.Model):
    """The release of one analysis to researchers: proposed by one person, confirmed by another, or kept back.

    ``DESPITE`` is proposed and confirmed for a single analysis that would otherwise be held back.
    """

    class Decision(models.TextChoices):
        RELEASE = "release"
        DESPITE = "despite"
        KEEP = "keep"

    OPENING: ClassVar[list[str]] = [Decision.RELEASE, Decision.DESPITE]

    judgment = models.OneToOneField(Judgment, on_delete=models.CASCADE, related_name="release")
    run = models.ForeignKey(
        Run, on_delete=models.CASCADE, related_name="releases", db_index=False
    )  # the judgment's, for counts
    decision = models.CharField(max_length=7, choices=Decision.choices, default=Decision.RELEASE)
    held = models.CharField(max_length=200, blank=True)  # why it would have been held back at the last decision
    proposed_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    proposed_at = models.DateTimeField()
    confirmed_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    confirmed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["judgment"]
        indexes = [models.Index(fields=["run", "decision", "confirmed_at"], name="release_of_run")]
        constraints = [
            models.CheckConstraint(
                condition=Q(confirmed_by=None) | ~Q(confirmed_by=F("proposed_by")), name="release_by_two_people"
            ),
            models.CheckConstraint(
                condition=Q(confirmed_by=None, confirmed_at=None)
                | Q(confirmed_by__isnull=False, confirmed_at__isnull=False),
                name="release_confirmed_by_somebody",
            ),
        ]

    @property
    def is_open(self) -> bool:
        return self.confirmed_at is not None and self.decision in self.OPENING
