"""What was changed in the bank, by whom and when. Changes of criteria are kept in ``bank.criteria``."""

from django.conf import settings
from django.db import models

from bank.models.catalogue import Sample


class SampleRevision(models.Model):
    """One change of a sample: ``changes`` holds the old and the new value by field. Never hidden text."""

    sample = models.ForeignKey(Sample, on_delete=models.CASCADE, related_name="revisions")
    edition = models.PositiveIntegerField()  # the sample's, after the change
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+")
    at = models.DateTimeField(auto_now_add=True)
    changes = models.JSONField(default=dict)  # {field: [old, new]}
    note = models.TextField(blank=True)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.sample_id}.{self.edition}"
