"""Fields that tables of several apps have."""

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import models

if TYPE_CHECKING:
    from accounts.models import User


def doer(**options: Any) -> "models.ForeignKey[User | None, User | None]":
    """Who did it, None where no person is known. Whoever did something stays in the database."""
    return models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+", **options)
