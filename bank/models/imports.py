"""Imports: what is coming in just now, and what has."""

from datetime import timedelta

from django.db import DatabaseError, IntegrityError, models
from django.db.models.functions import Now

from bank.database.unfinished import ImportInProgress

LEASE = timedelta(seconds=60)  # after which an import that was not heard of counts as dead, by the database's clock


class ImportQuerySet(models.QuerySet["Import"]):
    def under_way(self) -> "ImportQuerySet":
        """The one that writes, or was killed while it did and is not cleared away yet."""
        return self.filter(state=Import.State.WRITING)

    def last_done(self) -> int:
        """Grows with every import that is done. Its rows may have lower ids than rows that were there before, so that
        the newest id of a table does not tell whether an import was done since."""
        newest = self.filter(state=Import.State.DONE).order_by("-pk").values_list("pk", flat=True).first()
        return newest or 0

    def came_late(self, model: type[models.Model], *, since: int, below: int) -> bool:
        """Whether an import that was done after that one brought rows of a table with ids below."""
        spans = self.filter(state=Import.State.DONE, pk__gt=since).values_list("spans", flat=True)
        return any(span[0] < below for found in spans if (span := found.get(model._meta.db_table)))


def import_in_progress(error: BaseException | None) -> str | None:
    """In words, if something failed because it meets a row that an import is bringing in: it is right again later."""
    if not isinstance(error, ImportInProgress | IntegrityError):
        return None
    try:
        under_way = Import.objects.under_way().exists()
    except DatabaseError:
        return None
    return "An import is bringing in something of this name or place just now." if under_way else None


class Import(models.Model):
    """An import that writes, or is done. One that failed leaves no row. Only one writes at a time."""

    class State(models.TextChoices):
        WRITING = "writing"
        DONE = "done"

    state = models.CharField(max_length=7, choices=State.choices, default=State.WRITING)
    holder = models.CharField(max_length=32)  # who may write for it; whoever clears away after it takes that over
    until = models.DateTimeField()
    folder = models.CharField(max_length=40, blank=True)  # of its process; see bank.intake.imports.scratch
    spans = models.JSONField(default=dict)  # of an import that is done: the first and last of its ids, by table
    started_at = models.DateTimeField(db_default=Now())
    done_at = models.DateTimeField(null=True)

    objects = ImportQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["state"], condition=models.Q(state="writing"), name="import_one_at_a_time")
        ]


class ImportRange(models.Model):
    """Ids that the import under way has for its rows of a table. They are hidden as long as this row is there."""

    of = models.ForeignKey(Import, on_delete=models.CASCADE, related_name="ranges")
    table = models.CharField(max_length=63, unique=True)
    first = models.BigIntegerField()
    last = models.BigIntegerField()

    class Meta:
        ordering = ["pk"]
