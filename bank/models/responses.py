"""Evaluated models and their answers."""

from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models import OuterRef, Q, Subquery

from accounts.rules import allowed, where
from bank import exposure
from bank.database.unfinished import FinishedManager
from bank.guard import Guarded, working
from bank.models.catalogue import Sample
from bank.models.recipes import Recipe
from bank.text.names import NameField

if TYPE_CHECKING:
    from bank.models.catalogue import Viewer


class EvaluatedModel(models.Model):
    """A multimodal model under evaluation, known by its name as files write it."""

    name = NameField(max_length=200, unique=True)
    organisation = models.CharField(max_length=200, blank=True)
    open = models.BooleanField(null=True, blank=True)
    family = models.CharField(max_length=100, blank=True)
    licence = models.CharField(max_length=200, blank=True)  # of the weights
    parameters = models.CharField(max_length=60, blank=True)  # how many, as its makers say: 7B, 8 x 7B
    architecture = models.CharField(
        max_length=200, blank=True, db_default=""
    )  # how its parts are joined: Q-Former, MLP
    vision = models.CharField(max_length=200, blank=True, db_default="")  # the part that sees: EVA-G, CLIP ViT-L/14
    language = models.CharField(max_length=200, blank=True, db_default="")  # the part that writes: Vicuna 7B
    released = models.DateField(null=True, blank=True)
    homepage = models.URLField(max_length=500, blank=True)
    price_in = models.FloatField(null=True, blank=True)  # US dollars per million tokens
    price_out = models.FloatField(null=True, blank=True)
    simulated = models.BooleanField(default=False, db_default=False)  # its answers are invented, as the demo's are

    CARD = (
        *("organisation", "open", "family", "licence", "parameters", "architecture", "vision", "language"),
        *("released", "homepage", "price_in", "price_out"),
    )

    objects = FinishedManager["EvaluatedModel"]()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


def models_with(answers: "models.QuerySet[Response]") -> "models.QuerySet[EvaluatedModel]":
    """The models with one of these answers. It is looked for model by model: for EXISTS, PostgreSQL reads them all."""
    one = answers.filter(model=OuterRef("pk")).order_by().values("pk")[:1]
    return EvaluatedModel.objects.alias(one=Subquery(one)).exclude(one=None)


class ResponseQuerySet(models.QuerySet["Response"]):
    def visible_to(self, viewer: "Viewer") -> "ResponseQuerySet":
        """Responses that the viewer may know to be there; other people's submissions are for staff."""
        if allowed(viewer, "manage-submissions"):
            return self
        own = Q(submission__by=viewer.pk) if viewer.is_authenticated else Q()
        curated = where(viewer, "read-hidden", "sample__benchmark__")
        return self.filter(Q(submission=None) | own | curated, sample__in=Sample.objects.visible_to(viewer))

    def seen_by(self, viewer: "Viewer") -> "ResponseQuerySet":
        """Responses that the viewer may read: one's own submission; others unless the sample's answers are closed, or
        people still label them blind.
        """
        if allowed(viewer, "manage-submissions"):
            return self
        own = Q(submission__by=viewer.pk) if viewer.is_authenticated else Q(pk__in=[])
        open_answers = ~exposure.answers_closed("sample__") & ~Q(places__item__blind=True)
        curated = where(viewer, "read-hidden", "sample__benchmark__")
        return self.visible_to(viewer).filter(own | open_answers | curated)


class OrdinaryManager(FinishedManager[Any]):
    """The rows that belong to no recipe: all that boards, items, exports and pages count unless they mean recipes."""

    def get_queryset(self) -> models.QuerySet[Any]:
        return super().get_queryset().filter(recipe=None)


class GuardedResponses(Guarded):
    def visible_to(self, viewer: "Viewer") -> Any:
        with working():
            rows = self.get_queryset()
        return rows.visible_to(viewer)


class OrdinaryResponses(OrdinaryManager, GuardedResponses):
    """Answers of no recipe, guarded."""


class Response(models.Model):
    """One model's answer to one sample. It is never changed: a different answer is a different variant.

    The answers of a recipe are kept apart: ``all_objects`` has them, ``objects`` does not. Their ``variant`` is the
    condition that they were given under ("" for the plain question, ``circular-k``, ``shots-2``, ``corrupted``, ...).
    ``likelihoods``: {"by", "sum", "pool": [[answer, log-likelihood or null], ...], "mass"}.
    """

    class Status(models.TextChoices):
        OK = "ok"
        REFUSED = "refused"
        FILTERED = "filtered"
        TRUNCATED = "truncated"
        EMPTY = "empty"
        ERROR = "error"
        SKIPPED = "skipped"  # a rotation that was not asked: an earlier one was wrong

    class Origin(models.TextChoices):
        STAFF = "staff"  # imported or collected
        SUBMISSION = "submission"
        UNTRUSTED = "untrusted"  # staff say so: it may hold instructions to a judge

    sample = models.ForeignKey(Sample, on_delete=models.CASCADE, related_name="responses")
    model = models.ForeignKey(EvaluatedModel, on_delete=models.PROTECT, related_name="responses")
    variant = models.CharField(max_length=60, blank=True)
    text = models.TextField(blank=True)
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.OK)
    reason = models.TextField(blank=True)
    option_order = models.JSONField(null=True, blank=True)
    tokens = models.PositiveIntegerField(null=True, blank=True)
    submission = models.ForeignKey(
        "bank.Submission", on_delete=models.PROTECT, null=True, blank=True, related_name="responses", db_index=False
    )
    origin = models.CharField(max_length=10, choices=Origin.choices, default=Origin.STAFF, db_default=Origin.STAFF)
    recipe = models.ForeignKey(
        Recipe, on_delete=models.PROTECT, null=True, blank=True, related_name="+", db_index=False
    )  # see Meta
    repeat = models.PositiveSmallIntegerField(default=0, db_default=0)
    turn = models.PositiveSmallIntegerField(default=0, db_default=0)
    likelihoods = models.JSONField(null=True, blank=True)

    BENCHMARK = "sample__benchmark__"
    objects = OrdinaryResponses.from_queryset(ResponseQuerySet)()
    all_objects = GuardedResponses.from_queryset(ResponseQuerySet)()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["sample", "model", "variant"], condition=Q(recipe=None), name="response_once"
            ),
            models.UniqueConstraint(
                fields=["recipe", "sample", "model", "variant", "repeat", "turn"],
                condition=Q(recipe__isnull=False),
                name="response_of_recipe_once",
            ),
        ]
        indexes = [
            models.Index(fields=["submission"], name="response_submitted", condition=Q(submission__isnull=False)),
            models.Index(fields=["sample"], name="response_from_outside", condition=~Q(origin="staff")),
        ]

    def __str__(self) -> str:
        return f"{self.model_id}:{self.sample_id}"
