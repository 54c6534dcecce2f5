"""Runs and the items or tasks they cover."""

import json
from datetime import UTC
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models import Exists, F, OuterRef, Q
from django.utils import timezone

from accounts.models import User
from accounts.rules import allowed, where
from bank import exposure
from bank.database.unfinished import FinishedManager
from bank.models import Benchmark, Item, Recipe, Sample
from bank.models.catalogue import known_to
from bank.text.names import NameField
from judging.models.judges import OVERLAP, Judge

if TYPE_CHECKING:
    from accounts.rules import Viewer
    from judging.models.workers import RunHold


JURY = "jury"  # the setting that lists the runs of a jury's members
BUDGET_SPENT = "The budget is used up"  # how the reason of a pause begins
UNREAD = "Not one of its first replies can be read"  # what the reason of another pause says
STRICT = "strict"  # verdicts are read on their own line and nowhere else


class RunQuerySet(models.QuerySet["Run"]):
    def visible_to(self, viewer: "Viewer") -> "RunQuerySet":
        """Runs of the overlap baseline, which uses the hidden criteria, are for staff only.

        So are runs of marks, which are given to right answers alone, and tryouts that nobody has gone on with.
        """
        if allowed(viewer, "read-hidden"):
            return self
        told = Q(tryout=False) & ~Q(kind=Run.Kind.MARKS) & ~Q(judge__baseline=OVERLAP)
        return self.filter(known_to(viewer, "benchmark__") & told | where(viewer, "read-hidden", "benchmark__"))

    def unseen_by(self, viewer: "Viewer") -> list[int]:
        """Runs none of whose verdicts, counts and numbers this viewer sees.

        Below staff these are runs of the overlap baseline, whose verdicts tell which answer names the criteria; marks,
        which are given to right answers alone; tryouts; and runs that hold closed inputs until the day after they have
        ended: verdicts that appear one by one tell how long each call took, and so how long hidden text is. Juries with
        such a member count as they do.
        """
        if allowed(viewer, "read-hidden"):
            return []
        rows = self.filter(untold()).exclude(where(viewer, "read-hidden", "benchmark__"))
        unseen = set(rows.order_by().values_list("pk", flat=True))
        if not unseen:
            return []
        juries = self.filter(settings__has_key=JURY).values_list("pk", f"settings__{JURY}")
        return sorted(unseen | {pk for pk, members in juries if unseen & set(members)})

    def uncounted_by(self, viewer: "Viewer") -> list[int]:
        """Runs of which this viewer may not know how many calls gave a verdict: some are about closed keys, or about
        submitted answers, so that no number below staff counts them (``exposure.counted``). What an answer asks the
        judge to do where hidden text has a word would be told by the number of calls that failed.
        """
        if allowed(viewer, "read-hidden"):
            return []
        counted = exposure.counted(held="run__held")
        uncounted = RunItem.objects.filter(run=OuterRef("pk")).exclude(counted).order_by()
        rows = self.filter(Exists(uncounted), held__gt=0).exclude(where(viewer, "read-hidden", "benchmark__"))
        return list(rows.order_by().values_list("pk", flat=True))


def untold() -> Q:
    """Runs that nobody below staff knows the results of; juries with such a member are like it."""
    return Q(judge__baseline=OVERLAP) | Q(kind=Run.Kind.MARKS) | Q(tryout=True) | not_yet_told()


def not_yet_told() -> Q:
    """Runs that hold closed inputs and have not ended before today (UTC)."""
    today = timezone.now().astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    ended = Q(state=Run.State.CANCELLED) | Q(state=Run.State.FINISHED, finished_at__lt=today)
    return Q(held__gt=0, imported=False) & ~ended


class Run(models.Model):
    """One judge, one protocol and settings over a fixed set of items."""

    class Kind(models.TextChoices):
        JUDGMENTS = "judgments"
        RESPONSES = "responses"
        CAPTIONS = "captions"
        OBJECTS = "objects"  # in pictures
        REWRITES = "rewrites"  # questions in other words
        VERBS = "verbs"  # of instructions
        DRAFTS = "drafts"  # of instructions and criteria
        ATTACKS = "attacks"
        RECIPE = "recipe"  # a model's answers by a recipe
        MARKS = "marks"  # a judge's marks for such answers; on no board but the recipe's

    class State(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        WAITING = "waiting"  # its endpoint fails; it is tried again at ``next_try_at``
        PAUSED = "paused"
        FINISHED = "finished"
        CANCELLED = "cancelled"

    GOING = (State.QUEUED, State.RUNNING, State.WAITING)  # by itself
    HALTED = (State.PAUSED, State.WAITING)
    ENDED = (State.FINISHED, State.CANCELLED)

    kind = models.CharField(max_length=9, choices=Kind.choices, default=Kind.JUDGMENTS)
    judge = models.ForeignKey(Judge, on_delete=models.PROTECT, related_name="runs")
    recipe = models.ForeignKey(Recipe, on_delete=models.PROTECT, null=True, blank=True, related_name="runs")
    evaluation = models.ForeignKey(
        "judging.Evaluation", on_delete=models.SET_NULL, null=True, blank=True, related_name="runs"
    )
    benchmark = models.ForeignKey(Benchmark, on_delete=models.CASCADE, related_name="runs")
    protocol = models.CharField(max_length=30)
    settings = models.JSONField(default=dict)
    settings_hash = models.CharField(max_length=64)
    items_hash = models.CharField(max_length=64, blank=True)
    template = models.CharField(max_length=80, blank=True)  # name
    template_version = models.PositiveIntegerField(null=True, blank=True)
    template_sha256 = models.CharField(max_length=64, blank=True)
    criteria_fingerprint = models.CharField(max_length=64, blank=True)
    held = models.PositiveSmallIntegerField(default=0, db_default=0)  # closed Inputs (bank.exposure) in its calls
    items = models.ManyToManyField(Item, through="RunItem", related_name="runs")
    item_set = models.JSONField(default=dict, blank=True)  # how they were chosen, see judging.runs.item_sets
    model_name = NameField(max_length=200, blank=True)  # the model that collected texts belong to
    seed = models.PositiveIntegerField(default=0)
    budget = models.FloatField(null=True, blank=True)  # US dollars
    state = models.CharField(max_length=9, choices=State.choices, default=State.QUEUED)
    state_reason = models.TextField(blank=True)  # why it paused or waits, in words
    next_try_at = models.DateTimeField(null=True, blank=True)
    tries = models.PositiveIntegerField(default=0, db_default=0)  # in vain, since a call last succeeded
    failing_since = models.DateTimeField(null=True, blank=True)  # nothing but errors
    tryout = models.BooleanField(default=False, db_default=False)  # on a few items, and nobody has gone on with it
    told = models.CharField(max_length=9, blank=True, db_default="")  # the state as last told to who started it
    announced = models.CharField(max_length=9, blank=True, db_default="")  # the same to webhooks
    imported = models.BooleanField(default=False)
    reported_model = models.CharField(max_length=200, blank=True)  # newest one that the endpoint reported
    reported = models.JSONField(default=list, blank=True)  # [{"model", "fingerprint", "replies"}], oldest first
    # How its verdicts were read. Anything but STRICT comes from a file, or from when a line that starts with
    # "Judgement:" counted anywhere in the reply.
    reading = models.CharField(max_length=6, blank=True, default="", db_default="")
    reuse = models.BooleanField(default=False, db_default=False)  # answer identical calls from stored ones
    # The judge's when the run started, or failures were last retried; its requests depend on them. ``dropped``: the
    # parameters that the endpoint did not take, when the run asked first.
    abilities = models.JSONField(default=dict, blank=True)
    batched = models.BooleanField(default=False, db_default=False)  # use the endpoint's batch interface
    batches = models.JSONField(
        default=list, blank=True
    )  # [{"id", "input", "number", "at"}] submitted and not yet collected
    cached = models.PositiveIntegerField(default=0, db_default=0)  # judgments answered from stored calls
    calls = models.PositiveIntegerField(default=0)  # made so far, including retries, deleted failures and lost calls
    priced = models.PositiveIntegerField(default=0, db_default=0)  # of them, those with a cost in ``spent``
    lost = models.PositiveIntegerField(default=0, db_default=0)  # of them, those in flight when their worker died
    spent = models.FloatField(default=0)  # US dollars
    # How many results are planned and stored, so that nobody has to count a million rows; None if not counted.
    planned = models.PositiveIntegerField(null=True, blank=True)
    verdicts = models.PositiveIntegerField(null=True, blank=True)
    failures = models.PositiveIntegerField(null=True, blank=True)
    undecided = models.PositiveIntegerField(null=True, blank=True)
    live = models.JSONField(default=dict, blank=True)  # reports of workers that have left: curve, other_model
    by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    hold: "RunHold | None" = None  # set on the object that a worker took, see judging.work.leases
    is_untold = False  # set on the object that a viewer sees who is not told yet whether it has ended

    objects = FinishedManager.from_queryset(RunQuerySet)()

    class Meta:
        ordering = ["-pk"]
        indexes = [models.Index(fields=["state"], name="run_of_state")]
        constraints = [
            # import_judgments adds to one run per judge, protocol and settings.
            models.UniqueConstraint(
                fields=["benchmark", "judge", "protocol", "settings_hash"],
                condition=Q(imported=True),
                name="run_imported_once",
            )
        ]

    def __str__(self) -> str:
        return f"run {self.pk}"

    @property
    def alike(self) -> dict[str, Any]:
        """What selects the runs of the same judge, protocol and settings: one source of verdicts."""
        return {"judge": self.judge_id, "protocol": self.protocol, "settings_hash": self.settings_hash}

    @property
    def dropped(self) -> list[str]:
        """Parameters that are not sent, since the endpoint does not take them."""
        return list(self.abilities.get("dropped", []))

    @property
    def reads_criteria(self) -> bool:
        return bool(self.settings.get("criteria", True))

    def note_held(self, inputs: int) -> None:
        """Note that its calls hold these closed inputs (``bank.exposure``) as well: closed since it started."""
        if inputs & ~self.held:
            Run.objects.filter(pk=self.pk).update(held=F("held").bitor(inputs))
            self.held |= inputs

    @property
    def orders(self) -> str:
        """both, shuffled or fixed."""
        return str(self.settings.get("order", "fixed"))

    @property
    def repeats(self) -> int:
        return int(self.settings.get("repeats", 1))

    @property
    def judges(self) -> bool:
        """Whether it makes verdicts; a collecting run collects texts."""
        return self.kind in (Run.Kind.JUDGMENTS, Run.Kind.ATTACKS, Run.Kind.MARKS)

    @property
    def shows_pictures(self) -> bool:
        """Whether its calls show the images of their samples, if there are any."""
        sees = not self.judge.is_baseline and self.kind not in (Run.Kind.REWRITES, Run.Kind.VERBS)
        sees = sees and not self.settings.get("no_pictures")
        return sees and self.settings.get("context", "image") == "image"

    @property
    def is_out_of_budget(self) -> bool:
        return self.state == Run.State.PAUSED and self.state_reason.startswith(BUDGET_SPENT)

    @property
    def is_unread(self) -> bool:
        """Whether it paused since none of its first replies held a verdict."""
        return self.state == Run.State.PAUSED and UNREAD in self.state_reason

    @property
    def makes(self) -> str:
        """What its results are called."""
        return {"attacks": "trials", "recipe": "answers"}.get(self.kind, self.kind)

    @property
    def saved(self) -> int:
        """Calls that were not made, since an earlier rotation was wrong."""
        return self.collected.filter(status="skipped").count() if self.settings.get("stop_rotations") else 0

    @property
    def attacks(self) -> list[str]:
        """The attacks its judge is tested with, as NAME@VERSION; empty for other runs."""
        return list(self.settings.get("attacks", [])) if self.kind == Run.Kind.ATTACKS else []

    @property
    def can_retry(self) -> bool:
        """Whether failed judgments can be retried."""
        return self.state != Run.State.CANCELLED and not self.imported

    @property
    def state_words(self) -> str:
        if self.settings.get("jury"):
            return "Computed"
        if self.is_untold:
            return "Not finished"
        return "Imported" if self.imported else self.get_state_display()

    @property
    def in_short(self) -> str:
        """Its protocol and settings in a line: "batch, shuffled, no criteria"."""
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
        """The settings as listed on its page, name and value; for a built-in judge only those that it uses."""
        names = [name for name in self.settings if name not in ("jury", "queries")]  # a recipe's page shows its queries
        if self.judge.baseline:
            names = [name for name in names if name in ("order", "repeats", "attacks", "categories")]
        shown = self.settings | {"attacks": ", ".join(self.attacks)}
        return [(name, setting_text(shown[name])) for name in names]

    @property
    def works_alone(self) -> bool:
        """Whether it takes one worker at a time: built-in judges are fast, and batches have one collector."""
        return self.batched or self.judge.is_baseline


class RunItem(models.Model):
    """The items of a run, fixed when it starts."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="run_items", db_index=False)
    item = models.ForeignKey(Item, on_delete=models.CASCADE, related_name="+")

    objects = FinishedManager["RunItem"]()

    class Meta:
        ordering = ["pk"]
        indexes = [models.Index(fields=["run", "-id"], name="run_item_newest")]
        constraints = [models.UniqueConstraint(fields=["run", "item"], name="run_item_once")]


class RunTask(models.Model):
    """The tasks of a collecting run, fixed when it starts: a sample, and a rotation or an image.

    Of a recipe's run, ``place`` counts conditions, repeats and rotations (``judging.recipes.questions``), and ``shows``
    lists the ids of samples: ``examples`` stand before the question, ``pool`` gives answers to choose from.
    """

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="tasks", db_index=False)
    sample = models.ForeignKey(Sample, on_delete=models.CASCADE, related_name="+")
    place = models.PositiveSmallIntegerField(default=0)
    shows = models.JSONField(default=dict, db_default={})

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["run", "sample", "place"], name="run_task_once")]


class Evaluation(models.Model):
    """One model asked by one recipe, over all its scenarios: a run for each, one after the other, within one budget."""

    recipe = models.ForeignKey(Recipe, on_delete=models.PROTECT, related_name="evaluations")
    judge = models.ForeignKey(Judge, on_delete=models.PROTECT, related_name="+")  # the endpoint that answers
    model_name = NameField(max_length=200)
    limit = models.PositiveIntegerField(null=True, blank=True)  # questions of each scenario
    budget = models.FloatField(null=True, blank=True)  # US dollars, for all its runs together
    state_reason = models.TextField(blank=True)  # why it cannot go on, in words
    by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-pk"]
        indexes = [models.Index(fields=["finished_at"], condition=Q(finished_at=None), name="evaluation_open")]

    def __str__(self) -> str:
        return f"evaluation {self.pk}"


def setting_text(value: object) -> str:
    """The value of a setting for people; of categories their names."""
    if value is None:
        return "not sent"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(str(each.get("value", "")) if isinstance(each, dict) else str(each) for each in value)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else str(value)
