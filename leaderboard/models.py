"""Views of boards, frozen."""

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import models
from django.db.models import Q

from accounts.crypto import PackedJSONField
from accounts.rules import allowed, where
from bank.models import Benchmark
from bank.models.catalogue import known_to
from bank.text.names import NameField
from leaderboard.rows import in_order

if TYPE_CHECKING:
    from accounts.rules import Viewer


# Kinds of verdicts that rest on hidden criteria, and whose live boards were frozen before there were editions.
ONCE_FROZEN_LIVE = ("components", "choice", "yes-no", "reference", "reasoning")


class Edition(models.Model):
    """A board that rests on hidden inputs, as it was published for everybody. It is never changed.

    ``board`` holds rows, notes and what stands beside them, as JSON in the order of the board. ``cells`` holds what
    each number is made of, by model (or judge), number and sample: a keyed hash, behind a colon another one of what was
    read of the answer, where that is something else. Against these the next edition is checked. ``inputs`` are those of
    ``bank.exposure`` that its numbers depend on, of kinds for which the verdicts decide that.
    """

    class What(models.TextChoices):
        MODELS = "models"
        JUDGES = "judges"

    what = models.CharField(max_length=6, choices=What.choices, default=What.MODELS, db_default=What.MODELS)
    benchmark = models.ForeignKey(Benchmark, on_delete=models.CASCADE, related_name="editions", db_index=False)
    kind = models.CharField(max_length=10)
    split = models.CharField(max_length=40, blank=True)  # a hidden one, else ""
    number = models.PositiveIntegerField()
    run = models.ForeignKey("judging.Run", on_delete=models.PROTECT, null=True, related_name="+")  # that was read
    board = models.TextField()
    cells: Any = PackedJSONField()
    inputs = models.PositiveIntegerField(default=0, db_default=0)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+")
    published_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["benchmark_id", "what", "kind", "split", "number"]
        constraints = [
            models.UniqueConstraint(fields=["benchmark", "what", "kind", "split", "number"], name="edition_number")
        ]

    def __str__(self) -> str:
        return f"edition {self.number} of {self.kind} on {self.benchmark_id}"


class HeldOutRelease(models.Model):
    """What a judge's run reaches on the half that its benchmark holds out, told because somebody asked. Each request is
    a row with its ``number``, also one for the same run again; none is changed or removed. ``board`` holds the rows.
    """

    benchmark = models.ForeignKey(Benchmark, on_delete=models.CASCADE, related_name="held_out_releases", db_index=False)
    run = models.ForeignKey("judging.Run", on_delete=models.PROTECT, related_name="+")
    number = models.PositiveIntegerField()
    board = models.TextField()
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+")
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["benchmark_id", "number"]
        constraints = [models.UniqueConstraint(fields=["benchmark", "number"], name="held_out_release_number")]


class SnapshotQuerySet(models.QuerySet["Snapshot"]):
    def visible_to(self, viewer: "Viewer") -> "SnapshotQuerySet":
        """Below staff none of a live board that rests on hidden inputs: as were made before there were editions."""
        if allowed(viewer, "read-hidden"):
            return self
        can = Q(what="models") & Q(made_from__kind__in=ONCE_FROZEN_LIVE)
        visible = Q(made_from__has_key="edition") | Q(made_from__has_key="open")
        known = self.filter(known_to(viewer, "benchmark__"))
        return known.exclude(can & ~visible & ~where(viewer, "read-hidden", "benchmark__"))


class Snapshot(models.Model):
    """The rows of a view as they were, as everybody could see them, with what made them. It is never changed.

    ``scope`` holds the parameters of the view's address; ``tables`` the ``rows`` and the ``order`` of their columns;
    ``made_from`` the judges' runs with settings and prompts, the majority rule, counts and versions of the methods.
    """

    code = models.CharField(max_length=12, unique=True)  # stands in the address: the fingerprint's beginning
    benchmark = models.ForeignKey(Benchmark, on_delete=models.CASCADE, related_name="snapshots")
    what = models.CharField(max_length=12)  # models, judges, agreement, bias
    scope = models.JSONField(default=dict)
    fingerprint = models.CharField(max_length=64)  # of the view with its data: equal ones hold equal numbers
    tables = models.JSONField()
    made_from = models.JSONField(default=dict)
    computed_at = models.DateTimeField()
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = SnapshotQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        constraints = [models.UniqueConstraint(fields=["what", "fingerprint"], name="snapshot_once")]

    def __str__(self) -> str:
        return f"{self.what} of {self.benchmark_id}, {self.code}"

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows, their columns in the order of the board."""
        return [in_order(row, self.tables.get("order", [])) for row in self.tables["rows"]]


class OutsideScore(models.Model):
    """A model's score on a benchmark that is not held here, as somebody typed it from where it was published.

    It takes part in rankings of models over several benchmarks (MIA-Bench, arXiv 2407.01509, Table 2), and nowhere
    else. ``score`` is in the benchmark's own unit.
    """

    board = models.CharField(max_length=120)  # the benchmark's name
    model = NameField(max_length=200)
    score = models.FloatField()
    lower_is_better = models.BooleanField(default=False)
    source = models.CharField(max_length=500)  # where it was published
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+")
    at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["board", "model"]
        constraints = [models.UniqueConstraint(fields=["board", "model"], name="outside_score_once")]


class RecipeEdition(models.Model):
    """What models reach by a recipe in scenarios that rest on hidden keys, as it was published. It is never changed.

    ``board`` holds the rows as JSON. ``cells`` holds what each number is made of: by benchmark (its slug), model,
    number and sample, as in an ``Edition``.
    """

    recipe = models.ForeignKey("bank.Recipe", on_delete=models.PROTECT, related_name="editions", db_index=False)
    number = models.PositiveIntegerField()
    board = models.TextField()
    cells: Any = PackedJSONField()
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+")
    published_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["recipe_id", "number"]
        constraints = [models.UniqueConstraint(fields=["recipe", "number"], name="recipe_edition_number")]

    def __str__(self) -> str:
        return f"edition {self.number} of recipe {self.recipe_id}"


class Change(models.Model):
    """What ``counters.version`` adds up; only triggers write it. ``benchmark`` is an id, 0 for all; ``effect``: of the
    writes that draw the number.
    """

    class Effect(models.IntegerChoices):
        ADDS = 0  # whatever is not one of these
        HIDES = 1  # after it something may have to be hidden
        VOTES = 2  # a verdict comes in, or a run or an annotator goes on

    benchmark = models.BigIntegerField(db_index=True)
    effect = models.PositiveSmallIntegerField(choices=Effect.choices, default=Effect.ADDS, db_default=Effect.ADDS)
    number = models.BigIntegerField()


class PreparedPage(models.Model):
    """A page over many verdicts as a job drew it, see ``leaderboard.kept.pages``. Any row may be deleted.

    ``asked``: what the request was, as far as the page depends on it. ``benchmark``: whose data it shows, else all.
    ``version``, ``hiding``: see ``counters``. ``status``: of the answer, as HTTP has it; None until it is drawn.
    ``sealed``: whether it may rest on hidden inputs.
    """

    key = models.CharField(max_length=64, unique=True)
    asked = models.JSONField()
    asked_at = models.DateTimeField(auto_now_add=True)
    benchmark = models.ForeignKey("bank.Benchmark", on_delete=models.CASCADE, null=True, related_name="+")
    version = models.CharField(max_length=100)
    hiding = models.CharField(max_length=100)
    status = models.PositiveSmallIntegerField(null=True)
    content: Any = PackedJSONField()
    sealed = models.BooleanField(default=False)
    made_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return str(self.asked["path"])


class HourlyValue(models.Model):
    """A part of a board that takes long, as it was last computed, see ``leaderboard.kept.hourly``. Any row may be
    deleted. ``view``, ``data``: hashes of the view and of what it counted then; ``hiding``: see ``counters``.
    """

    view = models.CharField(max_length=64, unique=True)
    benchmark = models.ForeignKey("bank.Benchmark", on_delete=models.CASCADE, related_name="+")
    data = models.CharField(max_length=64)
    hiding = models.CharField(max_length=100)
    value: Any = PackedJSONField()
    at = models.DateTimeField()

    def __str__(self) -> str:
        return f"of benchmark {self.benchmark_id}, {self.at}"
