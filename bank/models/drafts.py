"""What endpoints wrote for samples, kept apart from them until a person has read it."""

from django.db import models

from accounts.crypto import EncryptedTextField
from accounts.fields import doer
from bank.models.catalogue import Sample

# How a question is said in other words (ChEF, arXiv 2311.02692, Table 3: sentences).
REWRITINGS = ("passive", "active", "casual", "formal", "back-translation")


class Draft(models.Model):
    """A text that an endpoint wrote about a sample. It counts for nothing until a person takes it.

    ``part`` is one of ``REWRITINGS``, whose text is the question in other words; or ``sample``, whose text is JSON:
    ``{"instruction": ..., "criteria": [{"text", "weight", "category"}]}``. It may hold what will be hidden, so the text
    is encrypted. It never changes, so that what a run used stays known.
    """

    SAMPLE = "sample"

    class State(models.TextChoices):
        WAITING = "waiting"
        TAKEN = "taken"
        DISMISSED = "dismissed"

    sample = models.ForeignKey(Sample, on_delete=models.CASCADE, related_name="drafts")
    part = models.CharField(max_length=20)
    text = EncryptedTextField()
    origin = models.CharField(max_length=240)  # the model that wrote it, and its run
    state = models.CharField(max_length=9, choices=State.choices, default=State.WAITING)
    by = doer()
    decided_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]
        indexes = [models.Index(fields=["state", "part"], name="draft_state")]
