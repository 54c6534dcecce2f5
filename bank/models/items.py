"""Items: what judges and annotators give verdicts on."""

import hashlib
from collections.abc import Iterable, Sequence

from django.db import models
from django.db.models import Exists, OuterRef, Prefetch, Q

from accounts.rules import Viewer, allowed, where
from bank import exposure
from bank.database.unfinished import FinishedManager
from bank.models.catalogue import Sample
from bank.models.recipes import Recipe
from bank.models.responses import OrdinaryManager, Response


def content_hash(*, kind: str, sample_id: int, response_ids: Iterable[int]) -> str:
    """The identity of an item: the same in whatever order a row names its responses."""
    return hashlib.sha256(f"{kind}:{sample_id}:{sorted(response_ids)}".encode()).hexdigest()


class ItemQuerySet(models.QuerySet["Item"]):
    def visible_to(self, viewer: Viewer) -> "ItemQuerySet":
        """Items of samples that the viewer may see: below staff, none with an answer of somebody else's submission that
        waits for its release, since items name models, and none that a file has chosen by what is closed.
        """
        items = self.filter(sample__in=Sample.objects.visible_to(viewer))
        if allowed(viewer, "manage-submissions"):
            return items
        submitted = ItemResponse.objects.filter(item=OuterRef("pk"), response__submission__isnull=False)
        waiting = submitted.filter(response__submission__released_at=None)
        if viewer.is_authenticated:
            waiting = waiting.exclude(response__submission__by=viewer.pk)
        seen = ~(Exists(waiting) & Q(outside=True)) & exposure.named_openly("")
        return items.filter(seen | where(viewer, "read-hidden", "sample__benchmark__"))


class Item(models.Model):
    """A sample with one response to score, two to compare or several to rank, in canonical order.

    Every stored verdict uses the canonical order (ADR 6). Items of answers that a recipe collected are in
    ``all_objects`` alone.
    """

    class Kind(models.TextChoices):
        SCORE = "score"
        PAIR = "pair"
        BATCH = "batch"

    kind = models.CharField(max_length=5, choices=Kind.choices)
    sample = models.ForeignKey(Sample, on_delete=models.CASCADE, related_name="items")
    content_hash = models.CharField(max_length=64, unique=True)
    responses = models.ManyToManyField(Response, through="ItemResponse", related_name="items")
    recipe = models.ForeignKey(
        Recipe, on_delete=models.PROTECT, null=True, blank=True, related_name="+", db_index=False
    )  # see Meta
    outside = models.BooleanField(default=False, db_default=False)  # an answer in it comes from outside, see Response
    blind = models.BooleanField(
        default=False, db_default=False
    )  # in a blind campaign, see annotations.campaigns.blinding
    # Of a blind one: since when the earliest of these rounds has been open on it. What was said before was open to all.
    blind_since = models.DateTimeField(null=True, blank=True)
    # What those may have held whose verdicts it came with, as ``Run.held``; nothing once staff has named it by a plan.
    held = models.IntegerField(default=0, db_default=0)

    objects = OrdinaryManager.from_queryset(ItemQuerySet)()
    all_objects = FinishedManager.from_queryset(ItemQuerySet)()

    class Meta:
        # An index of all recipes would list every ordinary item under null, and the database would go through it.
        indexes = [
            models.Index(fields=["sample", "kind"], name="item_of_sample", condition=Q(recipe=None)),
            models.Index(fields=["recipe"], name="item_of_recipe", condition=Q(recipe__isnull=False)),
            models.Index(fields=["sample"], name="item_sealed", condition=Q(outside=True) | Q(blind=True)),
        ]

    def hides_authors_from(self, viewer: Viewer) -> bool:
        """Whether people label it blind, so that this viewer is not told which models answered."""
        return self.blind and not allowed(viewer, "read-hidden", of=self.sample.benchmark)

    def ordered_responses(self) -> list[Response]:
        """The responses in canonical order (one query unless prefetched as ``places__response``)."""
        return [place.response for place in self.places.all()]

    def readable_responses(self, viewer: Viewer) -> list[Response]:
        """The same with their models; none unless this viewer may read all of them."""
        places = ItemResponse.objects.filter(item=self).order_by("position").values_list("response", flat=True)
        seen = Response.all_objects.seen_by(viewer).select_related("model").in_bulk(list(places))
        return [seen[pk] for pk in places if len(seen) == len(places)]


class ItemResponse(models.Model):
    """The position of a response in an item."""

    item = models.ForeignKey(Item, on_delete=models.CASCADE, related_name="places", db_index=False)
    position = models.PositiveSmallIntegerField()
    response = models.ForeignKey(Response, on_delete=models.CASCADE, related_name="places")

    objects = FinishedManager["ItemResponse"]()

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["item", "position"], name="item_position"),
            models.UniqueConstraint(fields=["item", "response"], name="item_response"),
        ]


def kind_of(responses: Sequence[object]) -> Item.Kind:
    """The kind of item that this many responses make."""
    return {0: Item.Kind.SCORE, 1: Item.Kind.SCORE, 2: Item.Kind.PAIR}.get(len(responses), Item.Kind.BATCH)


def with_answers(path: str = "") -> Prefetch:
    """For ``prefetch_related``: the answers of items in canonical order, with their models; ``path`` leads to the item
    and has been selected. A join, since SQLite takes no more than 1,000 keys where Django fetches a foreign key.
    """
    return Prefetch(f"{path}places", ItemResponse.objects.select_related("response__model"))
