"""Judges, their runs and their judgments."""

import secrets
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Coalesce
from django.utils import timezone

from bank.fields import EncryptedTextField
from bank.models import Benchmark, Item, Response, Sample, User, Verdict
from bank.models.catalogue import in_hidden_splits, is_staff
from judging.prompts import Prompt

if TYPE_CHECKING:
    from bank.access import Viewer

# How long a worker that stopped renewing keeps its run. Workers renew every second.
LEASE = timedelta(seconds=30)

BASELINES = ("random", "first", "longest", "criteria-overlap")
OVERLAP = "criteria-overlap"  # its verdicts are an oracle on the criteria


class Judge(models.Model):
    """An LLM behind an OpenAI-compatible endpoint, a built-in baseline, or the author of imported judgments."""

    name = models.CharField(max_length=200, unique=True)
    base_url = models.URLField(max_length=500, blank=True)
    model = models.CharField(max_length=200, blank=True)
    key_env = models.CharField(max_length=100, blank=True)  # the variable's name; the key itself is never stored
    baseline = models.CharField(max_length=20, blank=True)  # random, first, longest, criteria-overlap
    family = models.CharField(max_length=100, blank=True)
    concurrency = models.PositiveIntegerField(default=16)
    rpm = models.PositiveIntegerField(null=True, blank=True)
    tpm = models.PositiveIntegerField(null=True, blank=True)
    timeout = models.PositiveIntegerField(default=120)  # seconds one call may take
    paced_until = models.DateTimeField(null=True, blank=True)  # calls up to here are given out, over all workers
    price_in = models.FloatField(null=True, blank=True)  # US dollars per million tokens
    price_out = models.FloatField(null=True, blank=True)
    abilities = models.JSONField(default=dict, blank=True)
    any_host = models.BooleanField(default=False)  # made by command: not bound to JUDGE_HOSTS
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def is_baseline(self) -> bool:
        return bool(self.baseline)

    @property
    def can_run(self) -> bool:
        return bool(self.baseline or self.base_url)

    @property
    def host(self) -> str:
        """Where its endpoint is, without the path."""
        return urlsplit(self.base_url).netloc.rpartition("@")[2]


class PromptTemplate(models.Model):
    """A version of a prompt that staff wrote. Made once and never changed; one that no run used may be thrown away."""

    protocol = models.CharField(max_length=30)
    name = models.CharField(max_length=40)
    version = models.PositiveIntegerField()
    text = models.TextField()
    sha256 = models.CharField(max_length=64)
    note = models.CharField(max_length=300, blank=True)  # what is different, for those who choose
    by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["protocol", "name", "-version"]
        constraints = [
            models.UniqueConstraint(fields=["protocol", "name", "version"], name="prompt_template_once"),
        ]

    def __str__(self) -> str:
        return f"{self.protocol}.{self.name} {self.version}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if self.pk is not None:
            raise ValueError("A version of a prompt is never changed; write another one.")
        super().save(*args, **kwargs)

    @property
    def prompt(self) -> Prompt:
        return Prompt(self.protocol, self.name, self.version, self.text, self.sha256)


class RunQuerySet(models.QuerySet["Run"]):
    def visible_to(self, viewer: "Viewer") -> "RunQuerySet":
        return self if is_staff(viewer) else self.filter(benchmark__visibility=Benchmark.Visibility.PUBLIC)

    def waiting(self) -> "RunQuerySet":
        """Runs that a worker should take: queued, or left behind by a worker that died.

        A lease further ahead than anybody grants was written by a clock that has been set back since.
        """
        now = timezone.now()
        left = Q(lease_until__lt=now) | Q(lease_until__gt=now + 2 * LEASE)
        return self.filter(Q(state=Run.State.QUEUED) | Q(left, state=Run.State.RUNNING))


class Run(models.Model):
    """One judge, one protocol and settings over a fixed set of items."""

    class Kind(models.TextChoices):
        JUDGMENTS = "judgments"
        RESPONSES = "responses"
        CAPTIONS = "captions"

    class State(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        PAUSED = "paused"
        FINISHED = "finished"
        CANCELLED = "cancelled"

    kind = models.CharField(max_length=9, choices=Kind.choices, default=Kind.JUDGMENTS)
    judge = models.ForeignKey(Judge, on_delete=models.PROTECT, related_name="runs")
    benchmark = models.ForeignKey(Benchmark, on_delete=models.CASCADE, related_name="runs")
    protocol = models.CharField(max_length=30)
    settings = models.JSONField(default=dict)
    settings_hash = models.CharField(max_length=64)
    items_hash = models.CharField(max_length=64, blank=True)
    template = models.CharField(max_length=80, blank=True)  # name
    template_version = models.PositiveIntegerField(null=True, blank=True)
    template_sha256 = models.CharField(max_length=64, blank=True)
    criteria_fingerprint = models.CharField(max_length=64, blank=True)
    items = models.ManyToManyField(Item, through="RunItem", related_name="runs")
    item_set = models.JSONField(default=dict, blank=True)  # how they were chosen, see judging.item_sets
    model_name = models.CharField(max_length=200, blank=True)  # under which collected texts are kept
    seed = models.PositiveIntegerField(default=0)
    budget = models.FloatField(null=True, blank=True)  # US dollars
    state = models.CharField(max_length=9, choices=State.choices, default=State.QUEUED)
    state_reason = models.TextField(blank=True)  # why it paused, in words
    imported = models.BooleanField(default=False)
    reported_model = models.CharField(max_length=200, blank=True)  # as the endpoint names it, newest
    reported = models.JSONField(default=list, blank=True)  # [{"model", "fingerprint", "replies"}], oldest first
    reuse = models.BooleanField(default=False, db_default=False)  # identical calls are answered from stored ones
    abilities = models.JSONField(default=dict, blank=True)  # the judge's when the run started: requests go by them
    batched = models.BooleanField(default=False, db_default=False)  # calls go by the endpoint's batch interface
    batches = models.JSONField(default=list, blank=True)  # [{"id", "input", "number", "at"}] that were handed in
    cached = models.PositiveIntegerField(default=0, db_default=0)  # judgments answered from stored calls
    calls = models.PositiveIntegerField(default=0)  # made so far, retries and removed failures included
    spent = models.FloatField(default=0)  # US dollars for them
    # How much there is to make and has been made, so that nobody counts a million rows; None where it was not counted.
    planned = models.PositiveIntegerField(null=True, blank=True)
    verdicts = models.PositiveIntegerField(null=True, blank=True)
    failures = models.PositiveIntegerField(null=True, blank=True)
    undecided = models.PositiveIntegerField(null=True, blank=True)
    live = models.JSONField(default=dict, blank=True)  # what its worker says: in_flight, limit, rate, retrying, history
    by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    # Researchers read the analyses, redacted, from here on.
    analyses_released_at = models.DateTimeField(null=True, blank=True)
    analyses_released_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    # A worker holds the run while its token stands here and lease_until is ahead; a write under an old one is refused.
    lease_token = models.CharField(max_length=32, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)

    objects = RunQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        indexes = [models.Index(fields=["state", "lease_until"], name="run_waiting")]
        constraints = [
            # What import_judgments adds to: one run per judge, protocol and settings.
            models.UniqueConstraint(
                fields=["benchmark", "judge", "protocol", "settings_hash"],
                condition=Q(imported=True),
                name="run_imported_once",
            )
        ]

    def __str__(self) -> str:
        return f"run {self.pk}"

    @property
    def reads_criteria(self) -> bool:
        return bool(self.settings.get("criteria", True))

    @property
    def orders(self) -> str:
        """both, shuffled or fixed."""
        return str(self.settings.get("order", "fixed"))

    @property
    def repeats(self) -> int:
        return int(self.settings.get("repeats", 1))

    @property
    def analyses_released(self) -> bool:
        return self.analyses_released_at is not None

    def claim(self) -> bool:
        """Take the run for this worker; False when another one holds it."""
        now, token = timezone.now(), secrets.token_hex(16)
        taken = (
            Run.objects.waiting()
            .filter(pk=self.pk)
            .update(
                state=Run.State.RUNNING,
                state_reason="",
                lease_token=token,
                lease_until=now + LEASE,
                started_at=Coalesce(F("started_at"), now),
            )
        )
        if taken:
            self.refresh_from_db(from_queryset=Run.objects.select_related("judge", "benchmark"))
        return bool(taken)

    @property
    def is_held(self) -> bool:
        """Whether a worker is at it now."""
        return bool(self.lease_token and self.lease_until and self.lease_until > timezone.now())


class RunItem(models.Model):
    """The items of a run, fixed when it starts."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="run_items")
    item = models.ForeignKey(Item, on_delete=models.CASCADE, related_name="+")

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["run", "item"], name="run_item_once")]


class RunTask(models.Model):
    """The tasks of a collecting run, fixed when it starts: a sample, and the rotation or picture meant."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="tasks")
    sample = models.ForeignKey(Sample, on_delete=models.CASCADE, related_name="+")
    place = models.PositiveSmallIntegerField(default=0)

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["run", "sample", "place"], name="run_task_once")]


class Collected(models.Model):
    """What came of one task of a collecting run. Stored once, when it is known."""

    class Status(models.TextChoices):
        OK = "ok"
        REFUSED = "refused"
        FILTERED = "filtered"
        TRUNCATED = "truncated"
        EMPTY = "empty"
        ERROR = "error"

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="collected")
    sample = models.ForeignKey(Sample, on_delete=models.CASCADE, related_name="+")
    place = models.PositiveSmallIntegerField(default=0)  # rotation of the options, or position of the picture
    response = models.ForeignKey(Response, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    text = models.TextField(blank=True)  # a description, or what was no answer; an answer stands in its response
    thinking = models.TextField(blank=True)  # what the endpoint returned beside the text
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.OK)
    reason = models.TextField(blank=True)
    prompt_sha256 = models.CharField(max_length=64, blank=True)
    reported_model = models.CharField(max_length=200, blank=True)
    prompt_tokens = models.PositiveIntegerField(null=True, blank=True)
    completion_tokens = models.PositiveIntegerField(null=True, blank=True)
    cost = models.FloatField(null=True, blank=True)
    latency = models.FloatField(null=True, blank=True)
    cached = models.BooleanField(default=False)  # answered from an earlier identical call
    call_key = models.CharField(max_length=64, blank=True)  # the same for identical calls
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["run", "sample", "place"], name="collected_once")]
        indexes = [
            models.Index(fields=["run", "status"], name="collected_of_status"),
            models.Index(fields=["call_key"], name="collected_call", condition=~Q(call_key="")),
        ]


class JudgmentQuerySet(models.QuerySet["Judgment"]):
    def visible_to(self, viewer: "Viewer") -> "JudgmentQuerySet":
        """Verdicts that this viewer may see one by one; analyses and raw replies are for staff alone.

        What the overlap baseline says about a sample tells which answer names its criteria: staff only. So are single
        verdicts about a hidden split.
        """
        if is_staff(viewer):
            return self
        return self.filter(
            item__sample__benchmark__visibility=Benchmark.Visibility.PUBLIC,
            item__sample__status=Sample.Status.APPROVED,
        ).exclude(Q(run__judge__baseline=OVERLAP) | in_hidden_splits("item__sample__"))


class Judgment(Verdict):
    """One judge's verdict on one item, in one presented order, one repeat. Stored once, when it is known."""

    class Status(models.TextChoices):
        OK = "ok"
        PARSE_FAILED = "parse_failed"
        REFUSED = "refused"
        FILTERED = "filtered"
        TRUNCATED = "truncated"
        EMPTY = "empty"
        ERROR = "error"
        SKIPPED_BUDGET = "skipped_budget"

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="judgments")
    item = models.ForeignKey(Item, on_delete=models.CASCADE, related_name="judgments")
    order = models.CharField(max_length=10, default="01")  # canonical positions in presented order: "10" = turned
    repeat = models.PositiveSmallIntegerField(default=0)
    status = models.CharField(max_length=14, choices=Status.choices, default=Status.OK)
    analysis = EncryptedTextField(null=True, blank=True)
    raw = EncryptedTextField(null=True, blank=True)
    prompt_sha256 = models.CharField(max_length=64, blank=True)
    reported_model = models.CharField(max_length=200, blank=True)  # what the endpoint says answered
    prompt_tokens = models.PositiveIntegerField(null=True, blank=True)
    completion_tokens = models.PositiveIntegerField(null=True, blank=True)
    cost = models.FloatField(null=True, blank=True)
    latency = models.FloatField(null=True, blank=True)  # seconds of the last attempt
    weighted_score = models.FloatField(null=True, blank=True)  # expected score by the log-probabilities of its token
    cached = models.BooleanField(default=False, db_default=False)  # answered from an earlier identical call
    call_key = models.CharField(max_length=64, blank=True, db_default="")  # the same for identical calls
    created_at = models.DateTimeField(auto_now_add=True)

    objects = JudgmentQuerySet.as_manager()

    class Meta(Verdict.Meta):
        constraints = [
            *Verdict.Meta.constraints,
            models.UniqueConstraint(fields=["run", "item", "order", "repeat"], name="judgment_once"),
            models.CheckConstraint(
                condition=Q(status="ok") | Q(choice__isnull=True, score__isnull=True, ranking__isnull=True),
                name="judgment_verdict_only_if_ok",
            ),
        ]
        indexes = [
            models.Index(fields=["run", "status"], name="judgment_of_run_status"),
            models.Index(fields=["run", "-id"], name="judgment_newest"),
            models.Index(fields=["run", "choice"], name="judgment_of_run_choice"),
            models.Index(fields=["run", "latency"], name="judgment_slowest", condition=Q(latency__isnull=False)),
            models.Index(fields=["run", "cost"], name="judgment_dearest", condition=Q(cost__isnull=False)),
            models.Index(fields=["call_key"], name="judgment_call", condition=~Q(call_key="")),
        ]


class Attempt(models.Model):
    """One call that brought no verdict. A log: it outlives the judgments that a retry removes.

    The call that brought a verdict is told by its judgment, which is never removed.
    """

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="attempts")
    item = models.ForeignKey(Item, on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    sample = models.ForeignKey(Sample, on_delete=models.CASCADE, null=True, blank=True, related_name="+")  # of a task
    order = models.CharField(max_length=10)  # a task's place
    repeat = models.PositiveSmallIntegerField()
    at = models.DateTimeField()
    outcome = models.CharField(max_length=20)  # see judging.client.Outcome
    http_status = models.PositiveSmallIntegerField(null=True, blank=True)
    seconds = models.FloatField()
    prompt_tokens = models.PositiveIntegerField(null=True, blank=True)
    completion_tokens = models.PositiveIntegerField(null=True, blank=True)
    cost = models.FloatField(null=True, blank=True)
    detail = EncryptedTextField(blank=True, default="")  # a provider's error can echo the prompt

    class Meta:
        ordering = ["pk"]
        indexes = [models.Index(fields=["run", "item"], name="attempt_of_item")]


class WorkerBeat(models.Model):
    """When each worker was last seen, for /readyz and the run page."""

    name = models.CharField(max_length=100, unique=True)
    seen_at = models.DateTimeField()
