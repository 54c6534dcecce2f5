"""Which analyses researchers may read, and which two people said so."""

from typing import ClassVar

from django.db import models
from django.db.models import F, Q

from accounts.models import User
from judging.models.made import Judgment
from judging.models.runs import Run


class AnalysisRelease(models.Model):
    """Where the release of one analysis stands: proposed by one person, confirmed by another, or kept back.

    ``DESPITE`` is proposed and confirmed for one analysis alone, which would be held back otherwise.
    """

    class Decision(models.TextChoices):
        RELEASE = "release"
        DESPITE = "despite"
        KEEP = "keep"

    OPENING: ClassVar[list[str]] = [Decision.RELEASE, Decision.DESPITE]

    judgment = models.OneToOneField(Judgment, on_delete=models.CASCADE, related_name="release")
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="releases")  # the judgment's, for counts
    decision = models.CharField(max_length=7, choices=Decision.choices, default=Decision.RELEASE)
    held = models.CharField(max_length=200, blank=True)  # why it was to be held back when somebody decided
    proposed_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    proposed_at = models.DateTimeField()
    confirmed_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    confirmed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["judgment"]
        indexes = [models.Index(fields=["run", "decision", "confirmed_at"], name="release_of_run")]
        constraints = [
            models.CheckConstraint(
                condition=Q(confirmed_by=None) | ~Q(confirmed_by=F("proposed_by")), name="release_by_two_people"
            ),
            models.CheckConstraint(
                condition=Q(confirmed_by=None, confirmed_at=None)
                | Q(confirmed_by__isnull=False, confirmed_at__isnull=False),
                name="release_confirmed_by_somebody",
            ),
        ]

    @property
    def is_open(self) -> bool:
        return self.confirmed_at is not None and self.decision in self.OPENING
