"""Imports: the running one, and finished ones."""

from datetime import timedelta

from django.db import DatabaseError, IntegrityError, models
from django.db.models.functions import Now

from bank.database.unfinished import ImportInProgress

LEASE = timedelta(seconds=60)  # an import silent for this long counts as dead, by the database's clock


class ImportQuerySet(models.QuerySet["Import"]):
    def under_way(self) -> "ImportQuerySet":
        """The import that is writing, or was killed while writing and is not cleaned up yet."""
        return self.filter(state=Import.State.WRITING)

    def last_done(self) -> int:
        """Grows with every finished import. Its rows may have lower ids than older rows, so the newest id of a table
        does not tell whether an import has finished since.
        """
        newest = self.filter(state=Import.State.DONE).order_by("-pk").values_list("pk", flat=True).first()
        return newest or 0


def import_in_progress(error: BaseException | None) -> str | None:
    """A message, if something failed because it collided with a row of the running import; it will work later."""
    if not isinstance(error, ImportInProgress | IntegrityError):
        return None
    try:
        under_way = Import.objects.under_way().exists()
    except DatabaseError:
        return None
    return "An import is bringing in something of this name or place just now." if under_way else None


class Import(models.Model):
    """An import that is writing or done. A failed one leaves no row. Only one writes at a time."""

    class State(models.TextChoices):
        WRITING = "writing"
        DONE = "done"

    state = models.CharField(max_length=7, choices=State.choices, default=State.WRITING)
    holder = models.CharField(max_length=32)  # who may write for it; a process that cleans up takes this over
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
    """Ids that the running import has reserved in a table. Its rows are hidden while this row exists."""

    of = models.ForeignKey(Import, on_delete=models.CASCADE, related_name="ranges")
    table = models.CharField(max_length=63, unique=True)
    first = models.BigIntegerField()
    last = models.BigIntegerField()

    class Meta:
        ordering = ["pk"]


def visible_stretches(model: type[models.Model]) -> list[dict[str, int]]:
    """Conditions on the id, newest first, that leave out the rows of an unfinished import: whoever follows an index
    of ids would go through all of them.
    """
    reserved = ImportRange.objects.filter(table=model._meta.db_table).first()
    return [{"pk__gt": reserved.last}, {"pk__lt": reserved.first}] if reserved else [{}]
