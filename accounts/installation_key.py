"""Hashes that need this installation's key, so that nobody can check a guess at hidden text with the public source."""

import hmac
import os
from collections.abc import Sequence
from hashlib import sha256

from cryptography.exceptions import InvalidTag
from django.apps import apps
from django.db import IntegrityError, models, transaction
from django.db.models.functions import Cast

from accounts.crypto import Cipher, EncryptedTextField, Unreadable
from accounts.models import InstallationKey

ONLY = 1  # the id of the one row
_kept: bytes | None = None


class WrongKeys(Exception):
    """CRITERIA_KEYS are not the keys of this database."""

    def __init__(self) -> None:
        super().__init__(
            "CRITERIA_KEYS (or local-keys.env in the data folder) are not the keys of this database: its hidden text "
            "cannot be read. Restore the keys that belong to it. Nothing was changed."
        )


def keyed(purpose: str, message: str) -> str:
    """HMAC-SHA256 of a message, in hex, under this installation's key and a purpose. Raises WrongKeys."""
    return hmac.new(_key(), f"{purpose}\x1f{message}".encode(), sha256).hexdigest()


def check_keys() -> None:
    """Create the key in a new database. Raises WrongKeys if CRITERIA_KEYS do not decrypt this one.

    The key that is kept stays until the new one is read: other threads hash meanwhile, and may not ask the database.
    """
    global _kept
    _kept = _stored_key() or _create_key()


def sealed() -> str:
    """The key as the database holds it, encrypted; "" if there is none."""
    stored = InstallationKey.objects.filter(pk=ONLY).annotate(token=Cast("secret", models.TextField()))
    return stored.values_list("token", flat=True).first() or ""


def opens(token: str, keys: Sequence[str]) -> bool:
    """Whether CRITERIA_KEYS like these belong to the database that holds its key like this."""
    try:
        InstallationKey._meta.get_field("secret").open(token, Cipher(keys))
    except InvalidTag:
        return False
    return True


def forget() -> None:
    """Read the key again when it is next needed: after the database was replaced, or in a test."""
    global _kept
    _kept = None


def _key() -> bytes:
    global _kept
    if _kept is None:
        _kept = _stored_key() or _create_key()
    return _kept


def _stored_key() -> bytes | None:
    try:
        row = InstallationKey.objects.filter(pk=ONLY).first()
    except Unreadable:
        raise WrongKeys from None
    return bytes.fromhex(row.secret) if row else None


def _create_key() -> bytes:
    """Create the key, unless there are texts that CRITERIA_KEYS cannot decrypt."""
    if not _can_decrypt_existing():
        raise WrongKeys
    key = os.urandom(32)
    try:
        with transaction.atomic():
            InstallationKey.objects.create(pk=ONLY, secret=key.hex())
    except IntegrityError:  # another process was first
        return _stored_key() or key
    return key


def _can_decrypt_existing() -> bool:
    for model in apps.get_models():
        for field in model._meta.local_concrete_fields:
            if isinstance(field, EncryptedTextField):
                rows = model._base_manager.annotate(token=Cast(field.name, models.TextField())).order_by("-pk")
                token = rows.exclude(token=None).exclude(token="").values_list("token", flat=True).first()
                try:
                    if token:
                        field.open(token)
                except InvalidTag:
                    return False
    return True
