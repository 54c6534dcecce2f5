"""Hashes that nobody can make who has the public source and a guess at hidden text, but not this installation's key."""

import hmac
import os
from hashlib import sha256

from cryptography.exceptions import InvalidTag
from django.apps import apps
from django.db import IntegrityError, models, transaction
from django.db.models.functions import Cast

from accounts.crypto import EncryptedTextField, Unreadable, cipher
from accounts.models import InstallationKey

ONLY = 1  # the id of the one row
_kept: bytes | None = None


class WrongKeys(Exception):
    """CRITERIA_KEYS are not those of this database."""

    def __init__(self) -> None:
        super().__init__(
            "CRITERIA_KEYS (or local-keys.env in the data folder) are not the keys of this database: what is hidden in "
            "it cannot be read. Put back the keys that belong to it. Nothing was changed."
        )


def keyed(purpose: str, message: str) -> str:
    """HMAC-SHA256 of a message, in hex, under this installation's key and a purpose. Raises WrongKeys."""
    return hmac.new(_key(), f"{purpose}\x1f{message}".encode(), sha256).hexdigest()


def check_keys() -> None:
    """Raises WrongKeys where CRITERIA_KEYS do not open this database. A database without its key gets one."""
    global _kept
    _kept = _stored() or _made()


def forget() -> None:
    """Read the key anew when it is next needed: after the database was exchanged, or in a test."""
    global _kept
    _kept = None


def _key() -> bytes:
    global _kept
    if _kept is None:
        _kept = _stored() or _made()
    return _kept


def _stored() -> bytes | None:
    try:
        found = InstallationKey.objects.filter(pk=ONLY).first()
    except Unreadable:
        raise WrongKeys from None
    return bytes.fromhex(found.secret) if found else None


def _made() -> bytes:
    """A new key, unless there are texts that these CRITERIA_KEYS cannot read: then they are the wrong ones."""
    if not _opens_what_is_there():
        raise WrongKeys
    key = os.urandom(32)
    try:
        with transaction.atomic():
            InstallationKey.objects.create(pk=ONLY, secret=key.hex())
    except IntegrityError:  # another process was first
        return _stored() or key
    return key


def _opens_what_is_there() -> bool:
    for model in apps.get_models():
        for field in model._meta.local_concrete_fields:
            if isinstance(field, EncryptedTextField):
                rows = model._base_manager.annotate(token=Cast(field.name, models.TextField())).order_by("-pk")
                token = rows.exclude(token=None).exclude(token="").values_list("token", flat=True).first()
                try:
                    if token:
                        cipher().decrypt(token)
                except InvalidTag:
                    return False
    return True
