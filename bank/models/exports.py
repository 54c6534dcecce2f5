"""Files of exports that a worker writes, to be downloaded later."""

from django.conf import settings
from django.db import models

from accounts.crypto import EncryptedTextField


class ExportFile(models.Model):
    """A file that somebody asked for; it is theirs alone. See ``bank.intake.export_files``."""

    class State(models.TextChoices):
        WAITING = "waiting", "Being written"
        READY = "ready"
        FAILED = "failed"

    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    maker = models.CharField(max_length=40)  # what makes it, by its name in ``registry.DOWNLOADS``
    asked = models.JSONField()  # which file, as its maker takes it
    name = models.CharField(max_length=255)
    state = models.CharField(max_length=7, choices=State.choices, default=State.WAITING)
    tries = models.PositiveSmallIntegerField(default=0)  # how often it was begun
    fault = models.TextField(blank=True)  # why it failed, in words
    size = models.BigIntegerField(default=0)
    place = models.CharField(max_length=32, blank=True)  # its name where exports lie, random; once it is ready
    secret = EncryptedTextField(blank=True)  # its key, 32 bytes in hex
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.name
