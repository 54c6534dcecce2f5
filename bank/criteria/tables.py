"""The hidden tables. Read them only through the functions of ``bank.criteria``."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import sha256
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q

from accounts.crypto import EncryptedFloatField, EncryptedTextField, OpenedByRow
from accounts.installation_key import keyed
from bank.database.unfinished import FinishedManager

_open: ContextVar[bool] = ContextVar("hidden tables are open", default=False)


class Closed(PermissionError):
    """A hidden table was queried without going through its readers."""


@contextmanager
def opened() -> Iterator[None]:
    """Inside, ``objects`` of the hidden tables works. Only for the readers in bank.criteria."""
    token = _open.set(True)
    try:
        yield
    finally:
        _open.reset(token)


class Guarded(FinishedManager[Any]):
    """Refuses queries outside ``opened``: an import that slips past the contracts fails at run time."""

    def get_queryset(self) -> models.QuerySet[Any]:
        if not _open.get():
            raise Closed(f"{self.model.__name__} is read by the functions of bank.criteria alone.")
        return super().get_queryset()


def hash_of(sample_id: int, hashed: str) -> str:
    """Detects two criteria of one sample with the same key, which is encrypted; ``hashed`` is the keyed hash of the
    key.
    """
    return sha256(f"{sample_id}:{hashed}".encode()).hexdigest()


class KeyHashField(models.CharField):
    """Computed from the sample and the key of its row."""

    def pre_save(self, model_instance: Any, add: bool) -> str:
        value = hash_of(model_instance.sample_id, keyed("criterion", model_instance.key))
        setattr(model_instance, self.attname, value)
        return value


ROW = ("sample_id", "key")  # what a criterion's texts are sealed with


class Criterion(OpenedByRow):
    """What a sample is judged by. Key, category, weight and text exist only in encrypted form."""

    class Kind(models.TextChoices):
        EXACT_REFERENCE = "exact_reference"
        SOFT_REFERENCE = "soft_reference"
        RANGE = "range"
        GUIDELINE = "guideline"
        COMPONENT = "component"
        ANSWER_KEY = "answer_key"

    class ShownTo(models.TextChoices):
        STAFF = "staff"
        CAMPAIGN = "campaign"
        PUBLIC = "public"

    sample = models.ForeignKey("bank.Sample", on_delete=models.CASCADE, related_name="+", db_index=False)  # see Meta
    key = EncryptedTextField(row=ROW)
    key_hash = KeyHashField(max_length=64, editable=False)
    position = models.PositiveSmallIntegerField(default=0)
    kind = models.CharField(max_length=16, choices=Kind.choices, default=Kind.GUIDELINE)
    category = EncryptedTextField(blank=True, default="", row=ROW)
    weight = EncryptedFloatField(null=True, blank=True, row=ROW)
    shown_to = models.CharField(max_length=8, choices=ShownTo.choices, default=ShownTo.STAFF)
    version = models.PositiveIntegerField(default=1)
    text = EncryptedTextField(row=ROW)

    unguarded = models.Manager()  # for Django itself: cascades, dumpdata, migrations; no other code names it
    objects = Guarded()

    class Meta:
        ordering = ["sample_id", "position"]
        default_manager_name = "unguarded"
        constraints = [
            models.UniqueConstraint(fields=["sample", "key_hash"], name="criterion_key"),
            models.CheckConstraint(
                condition=Q(shown_to__in=["staff", "campaign", "public"]), name="criterion_shown_to_known"
            ),
        ]

    def __str__(self) -> str:
        return f"criterion {self.pk}"


class CriterionRevision(OpenedByRow):
    """One change of a criterion. ``old`` and ``new`` hold it as encrypted JSON; null if there was or is none."""

    sample = models.ForeignKey("bank.Sample", on_delete=models.CASCADE, related_name="+")
    key = EncryptedTextField(row=ROW)
    version = models.PositiveIntegerField()
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+")
    at = models.DateTimeField(auto_now_add=True)
    old = EncryptedTextField(null=True, row=ROW)
    new = EncryptedTextField(null=True, row=ROW)

    unguarded = models.Manager()
    objects = Guarded()

    class Meta:
        ordering = ["-pk"]
        default_manager_name = "unguarded"

    def __str__(self) -> str:
        return f"change {self.pk} of a criterion"


class CriteriaAccess(models.Model):
    """One read of criteria: who, when, how, and why. Written only by ``record``, never changed."""

    # Found by the index that begins with it.
    who = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+", db_index=False
    )
    by_command = models.CharField(max_length=100, blank=True)
    at = models.DateTimeField(auto_now_add=True, db_index=True)
    how = models.CharField(max_length=40)
    about = models.CharField(max_length=100, blank=True)
    sample_count = models.PositiveIntegerField()
    reason = models.TextField(blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["who", "id"], name="access_of_person"),
            models.Index(fields=["how", "id"], name="access_how"),
            models.Index(fields=["who", "how", "id"], name="access_way_of_person"),
        ]

    @property
    def sample_ids(self) -> list[int]:
        return list(self.accessed.order_by("pk").values_list("sample_id", flat=True))


class AccessedSample(models.Model):
    """A sample whose criteria were read. Only its id, so that the record outlives the sample."""

    access = models.ForeignKey(CriteriaAccess, on_delete=models.CASCADE, related_name="accessed")
    sample_id = models.BigIntegerField()

    class Meta:
        indexes = [models.Index(fields=["sample_id", "access"], name="access_to_sample")]
