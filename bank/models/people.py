"""People who sign in. What each role may do stands in ``bank.access``."""

from django.contrib.auth.models import AbstractUser
from django.db import models


class Role(models.TextChoices):
    ANNOTATOR = "annotator"
    RESEARCHER = "researcher"
    CURATOR = "curator"
    ADMINISTRATOR = "administrator"


class User(AbstractUser):
    role = models.CharField(max_length=16, choices=Role.choices, default=Role.ANNOTATOR)
    # How pages look and speak to this person, on every device; see evalsite.preferences.
    preferences = models.JSONField(default=dict, blank=True, db_default={})

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(role__in=Role.values), name="user_role_known")]
