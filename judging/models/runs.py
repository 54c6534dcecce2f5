"""Runs, what they are made over, and the workers that work them."""

import hashlib
from typing import TYPE_CHECKING

from django.db import models
from django.db.models import Q

from accounts.models import User
from accounts.rules import allowed
from bank.database.unfinished import FinishedManager
from bank.models import Benchmark, Item, Sample
from judging.models.judges import OVERLAP, Judge

if TYPE_CHECKING:
    from accounts.rules import Viewer
    from judging.models.workers import RunHold


MARKS_AGAINST_REFERENCES = ("reference-score", "reasoning-quality")  # protocols
NO_CRITERIA = hashlib.sha256().hexdigest()  # the fingerprint of samples that have none
JURY = "jury"  # of settings: the runs that a jury's is computed from
STRICT = "strict"  # a verdict is read on the line where it belongs, and on no other


class RunQuerySet(models.QuerySet["Run"]):
    def visible_to(self, viewer: "Viewer") -> "RunQuerySet":
        """Runs of the overlap baseline, which goes by the hidden criteria, are staff's."""
        if allowed(viewer, "read-hidden"):
            return self
        return self.filter(benchmark__visibility=Benchmark.Visibility.PUBLIC).exclude(judge__baseline=OVERLAP)

    def withheld_from(self, *, staff: bool) -> list[int]:
        """Runs of which the viewer sees that they are there and their state, and nothing of what they make.

        Below staff these are runs that hold criteria and wait or are at work: verdicts that come one by one tell how
        long each call took, and so how long its criteria are. Juries that such a run is a member of are, too.
        """
        if staff:
            return []
        told = ("kind", "settings", "imported", "criteria_fingerprint", "state")
        going = {run.pk for run in self.filter(state__in=Run.GOING).only(*told) if run.holds_back}
        if not going:
            return []
        juries = self.filter(settings__has_key=JURY).values_list("pk", f"settings__{JURY}")
        return sorted(going | {pk for pk, members in juries if going & set(members)})


class Run(models.Model):
    """One judge, one protocol and settings over a fixed set of items."""

    class Kind(models.TextChoices):
        JUDGMENTS = "judgments"
        RESPONSES = "responses"
        CAPTIONS = "captions"
        ATTACKS = "attacks"

    class State(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        PAUSED = "paused"
        FINISHED = "finished"
        CANCELLED = "cancelled"

    GOING = (State.QUEUED, State.RUNNING)

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
    item_set = models.JSONField(default=dict, blank=True)  # how they were chosen, see judging.runs.item_sets
    model_name = models.CharField(max_length=200, blank=True)  # under which collected texts are kept
    seed = models.PositiveIntegerField(default=0)
    budget = models.FloatField(null=True, blank=True)  # US dollars
    state = models.CharField(max_length=9, choices=State.choices, default=State.QUEUED)
    state_reason = models.TextField(blank=True)  # why it paused, in words
    imported = models.BooleanField(default=False)
    reported_model = models.CharField(max_length=200, blank=True)  # as the endpoint names it, newest
    reported = models.JSONField(default=list, blank=True)  # [{"model", "fingerprint", "replies"}], oldest first
    # How its verdicts were read. Not STRICT is what a file said, or came about when a line that begins with
    # "Judgement:" counted wherever it stood.
    reading = models.CharField(max_length=6, blank=True, default="", db_default="")
    reuse = models.BooleanField(default=False, db_default=False)  # identical calls are answered from stored ones
    abilities = models.JSONField(default=dict, blank=True)  # the judge's when the run started: requests go by them
    batched = models.BooleanField(default=False, db_default=False)  # calls go by the endpoint's batch interface
    batches = models.JSONField(default=list, blank=True)  # [{"id", "input", "number", "at"}] that were handed in
    cached = models.PositiveIntegerField(default=0, db_default=0)  # judgments answered from stored calls
    calls = models.PositiveIntegerField(default=0)  # made so far: retries, removed failures and lost ones included
    priced = models.PositiveIntegerField(default=0, db_default=0)  # of them, those that ``spent`` counts something for
    lost = models.PositiveIntegerField(default=0, db_default=0)  # of them, those in flight when their worker died
    spent = models.FloatField(default=0)  # US dollars for them
    # How much there is to make and has been made, so that nobody counts a million rows; None where it was not counted.
    planned = models.PositiveIntegerField(null=True, blank=True)
    verdicts = models.PositiveIntegerField(null=True, blank=True)
    failures = models.PositiveIntegerField(null=True, blank=True)
    undecided = models.PositiveIntegerField(null=True, blank=True)
    live = models.JSONField(default=dict, blank=True)  # what workers that left said: curve, other_model
    by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    hold: "RunHold | None" = None  # of the worker that took this very object, see judging.work.leases

    objects = FinishedManager.from_queryset(RunQuerySet)()

    class Meta:
        ordering = ["-pk"]
        indexes = [models.Index(fields=["state"], name="run_of_state")]
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
    def used_criteria(self) -> bool:
        """Whether its calls held criteria: their lengths, prices and durations then tell how long those are.

        Of a file's judgments nobody knows, so they count as such.
        """
        if not self.judges or not self.reads_criteria:
            return False
        return self.imported or self.criteria_fingerprint not in ("", NO_CRITERIA)

    @property
    def holds_back(self) -> bool:
        """Whether it waits or is at work, and its calls hold criteria: see ``RunQuerySet.withheld_from``."""
        return self.state in self.GOING and not self.imported and self.used_criteria

    @property
    def orders(self) -> str:
        """both, shuffled or fixed."""
        return str(self.settings.get("order", "fixed"))

    @property
    def repeats(self) -> int:
        return int(self.settings.get("repeats", 1))

    @property
    def judges(self) -> bool:
        """Whether its judge gives verdicts; a collecting run's writes texts."""
        return self.kind in (Run.Kind.JUDGMENTS, Run.Kind.ATTACKS)

    @property
    def shows_pictures(self) -> bool:
        """Whether its calls show the pictures of their samples, where there are some."""
        return not self.judge.is_baseline and self.settings.get("context", "image") == "image"

    @property
    def makes(self) -> str:
        """What it makes, in words."""
        return "trials" if self.kind == Run.Kind.ATTACKS else self.kind

    @property
    def attacks(self) -> list[str]:
        """The attacks that its judge is tried with, as NAME@VERSION; none of any other run."""
        return list(self.settings.get("attacks", [])) if self.kind == Run.Kind.ATTACKS else []

    @property
    def can_retry(self) -> bool:
        """Whether what ended without a verdict can be asked for once more."""
        return self.state != Run.State.CANCELLED and not self.imported

    @property
    def state_words(self) -> str:
        if self.settings.get("jury"):
            return "Computed"
        return "Imported" if self.imported else self.get_state_display()

    @property
    def asked(self) -> str:
        """In which orders and how often, after a comma each: "both orders, 2 repeats"."""
        orders = "both orders" if self.orders == "both" else f"{self.orders} order"
        return f"{orders}, {self.repeats} repeats" if self.repeats > 1 else orders

    @property
    def in_short(self) -> str:
        """What it is asked to do, in a line: "batch, shuffled, no criteria"."""
        name = f"{self.protocol}, {len(self.attacks)} attacks" if self.kind == Run.Kind.ATTACKS else self.protocol
        words = [f"{name} of {self.model_name}" if self.model_name else name]
        if self.settings.get("order"):
            words.append("both orders" if self.orders == "both" else self.orders)
        if self.settings.get("criteria") is False:
            words.append("no criteria")
        if self.settings.get("prompt", "default") not in ("", None, "default"):
            words.append(str(self.settings["prompt"]))
        if self.repeats > 1:
            words.append(f"{self.repeats} repeats")
        return ", ".join(words)

    @property
    def settings_shown(self) -> list[tuple[str, str]]:
        """The settings as they are listed: name and value; of a built-in judge those that it heeds."""
        names = [name for name in self.settings if name != "jury"]
        if self.judge.baseline:
            names = [name for name in names if name in ("order", "repeats", "attacks")]
        shown = self.settings | {"attacks": ", ".join(self.attacks)}
        return [(name, _in_words(shown[name])) for name in names]

    @property
    def works_alone(self) -> bool:
        """Whether one worker at a time is at it: a built-in judge is quick, and batches are collected by one."""
        return self.batched or self.judge.is_baseline


class RunItem(models.Model):
    """The items of a run, fixed when it starts."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="run_items")
    item = models.ForeignKey(Item, on_delete=models.CASCADE, related_name="+")

    objects = FinishedManager["RunItem"]()

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


def _in_words(value: object) -> str:
    """The value of a setting."""
    if value is None:
        return "not sent"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
