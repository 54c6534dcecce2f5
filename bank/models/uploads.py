"""Files that staff send to be checked and imported."""

from datetime import timedelta
from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.utils import timezone

from accounts.crypto import EncryptedJSONField, EncryptedTextField
from accounts.rules import Viewer, allowed


class UploadQuerySet(models.QuerySet["Upload"]):
    def waiting(self) -> "UploadQuerySet":
        """What a worker should take, oldest first."""
        return self.filter(state__in=Upload.WORKED).order_by("pk")

    def open(self) -> "UploadQuerySet":
        """Uploads that may still become an import."""
        return self.exclude(state__in=Upload.ENDED)

    def seen_by(self, viewer: Viewer) -> "UploadQuerySet":
        """Those of everybody, or for who curates single benchmarks their own."""
        return self if allowed(viewer, "write-bank") else self.filter(by=viewer.pk)


class Upload(models.Model):
    """One or several files on their way into the bank. The files are in their own folder, see ``bank.intake.uploads``.

    Nothing plain here quotes a file: only names, counts and reasons, because files contain criteria.
    """

    class State(models.TextChoices):
        RECEIVING = "receiving"
        RECEIVED = "received", "Waiting for the check"
        CHECKING = "checking"
        MAPPING = "mapping", "Name its columns"
        CHECKED = "checked", "Waits for you"
        IMPORTING = "importing"
        DONE = "done", "Imported"
        FAILED = "failed"
        CANCELLED = "cancelled"

    TOLD = timedelta(minutes=1)  # a worker that is at it says so more often
    WORKED = (State.RECEIVED, State.CHECKING, State.IMPORTING)
    ENDED = (State.DONE, State.FAILED, State.CANCELLED)
    AT_THE_END: ClassVar[dict[str, Any]] = {"shown": {}, "pieces": [], "cancelling": False}  # what goes with its files

    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=255)  # as it was dropped: shown, never used as a path
    files = models.JSONField()  # [[path, bytes], ...]: their order is that of the bytes received
    size = models.BigIntegerField()
    received = models.BigIntegerField(default=0)
    pieces = models.JSONField(default=list)  # the names of what came in, in its order
    sha256 = models.CharField(max_length=64, blank=True)  # of all bytes in order: promised by the sender, or computed
    folder = models.CharField(max_length=32, unique=True)  # its name below the staged folder, random
    secret = EncryptedTextField()  # the key of its files, 32 bytes in hex
    state = models.CharField(max_length=9, choices=State.choices, default=State.RECEIVING)
    tries = models.PositiveSmallIntegerField(default=0)  # how often the present step was begun
    cancelling = models.BooleanField(default=False)  # whether the worker that is at it was asked to end it
    progress = models.JSONField(default=dict, blank=True)  # phase, part, rows, of: how far that is
    fault = models.TextField(blank=True)  # why it failed or was cancelled, in words
    found = models.JSONField(default=dict, blank=True)  # what the check found: format, counts, problems by reason, diff
    shown: Any = EncryptedJSONField(default=dict, blank=True)  # until it ends: the first samples, and a table's columns
    choices = models.JSONField(default=dict, blank=True)  # slug, version, title, ..., as the person confirmed them
    map = models.JSONField(default=dict, blank=True)  # what its columns hold, as a person said: see formats.mapping
    keeps_map = models.BooleanField(default=True)  # whether the map is kept for files with the same columns
    report = models.JSONField(default=dict, blank=True)  # what the import made
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now=True)

    objects = UploadQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        indexes = [models.Index(fields=["state", "id"], name="upload_waiting")]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(received__gte=0, received__lte=models.F("size")), name="upload_received_in_size"
            )
        ]

    def __str__(self) -> str:
        return self.name

    def move(self, before: str, to: str, **values: Any) -> bool:
        """Store that it has come from one state to another, unless it has left the first meanwhile, or is to end."""
        unmoved = Upload.objects.filter(pk=self.pk, state=before)
        if to not in (self.State.FAILED, self.State.CANCELLED):
            unmoved = unmoved.filter(cancelling=False)
        if to in self.ENDED:
            values |= self.AT_THE_END
        return bool(unmoved.update(state=to, changed_at=timezone.now(), **values))

    @property
    def is_limited(self) -> bool:
        """Whether its sender may only write to single benchmarks: samples of the one that it was begun for come in, and
        nothing of others is told or kept (ADR 42).
        """
        return not allowed(self.by, "write-bank")

    @property
    def is_worked(self) -> bool:
        """Whether a worker has it, or should."""
        return self.state in self.WORKED

    @property
    def is_held(self) -> bool:
        """Whether a worker is at it."""
        return self.is_worked and self.tries > 0 and self.changed_at > timezone.now() - self.TOLD

    @property
    def has_ended(self) -> bool:
        return self.state in self.ENDED

    @property
    def stages(self) -> list[tuple[str, str]]:
        """The way of a file, each stage ``done``, ``now`` or empty; columns are named where no format is known."""
        stages = ["Upload", *(["Name the columns"] if self.map or self.state == self.State.MAPPING else []), "Import"]
        if self.state in (self.State.CHECKED, self.State.IMPORTING):
            now = len(stages) - 1
        else:
            now = len(stages) if self.state == self.State.DONE else len(stages) - 2
        marks = ["done"] * now + ["now"] + [""] * len(stages)
        return list(zip([*stages, "Done"], marks, strict=False))

    @property
    def percent(self) -> float:
        """How much of it has been received."""
        return 100 * self.received / self.size if self.size else 100.0

    @property
    def own_bad(self) -> int:
        """Bad rows that are not bad only since the sample that they name is."""
        return int(self.found.get("bad", 0)) - int(self.found.get("following", 0))

    @property
    def counts(self) -> dict[str, Any]:
        """What was made, or would be, by noun."""
        return (self.report or self.found).get("made", {})


class KeptMap(models.Model):
    """What the columns of a table hold, for the next file with the same columns, whoever sends it."""

    digest = models.CharField(max_length=64, unique=True)  # of the names of the columns
    map = models.JSONField()
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    changed_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"map {self.pk}"
