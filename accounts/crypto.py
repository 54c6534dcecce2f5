"""Fields that are encrypted at rest."""

import json
import os
import zlib
from base64 import b64encode, urlsafe_b64decode
from binascii import Error, a2b_base64, b2a_base64
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.conf import settings
from django.db import models

NONCE = 12


class Unreadable(Exception):
    """The stored text was changed, or is not encrypted with any of CRITERIA_KEYS."""


class Cipher:
    """AES-256-GCM with a random nonce per text, safe for four billion texts per key (NIST SP 800-38D, 8.3).

    Encrypts with the first key and decrypts with any. A token is base64 of nonce, text and tag.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        self._ciphers = [AESGCM(urlsafe_b64decode(key)) for key in keys]

    def encrypt(self, text: bytes) -> bytes:
        nonce = os.urandom(NONCE)
        return b64encode(nonce + self._ciphers[0].encrypt(nonce, text, None))

    def encrypt_all(self, texts: Iterable[str | None]) -> list[str | None]:
        """Encrypt many texts at once. None and empty texts stay as they are."""
        plain = list(texts)
        nonces, seal = os.urandom(NONCE * len(plain)), self._ciphers[0].encrypt
        tokens: list[str | None] = []
        for number, text in enumerate(plain):
            if not text:
                tokens.append(text)
                continue
            nonce = nonces[NONCE * number : NONCE * number + NONCE]
            tokens.append(b2a_base64(nonce + seal(nonce, text.encode(), None), newline=False).decode("ascii"))
        return tokens

    def decrypt(self, token: str | bytes) -> bytes:
        """Raises InvalidTag."""
        try:
            data = a2b_base64(token, strict_mode=True)
        except (Error, ValueError):
            raise InvalidTag from None
        for key in self._ciphers:
            try:
                return key.decrypt(data[:NONCE], data[NONCE:], None)
            except (InvalidTag, ValueError):  # ValueError: shorter than a nonce
                continue
        raise InvalidTag

    def rotate(self, token: str | bytes) -> bytes:
        """The same text encrypted with the first key."""
        return self.encrypt(self.decrypt(token))


@cache
def _cipher(keys: tuple[str, ...]) -> Cipher:
    return Cipher(keys)


def cipher() -> Cipher:
    """The cipher of the current settings: encrypts with the newest key, decrypts with any."""
    return _cipher(tuple(settings.CRITERIA_KEYS))


class EncryptedTextField(models.TextField):
    """Text stored as an encrypted token. An empty text stays empty.

    It cannot be filtered on, because every write makes a different token.
    """

    description = "encrypted text"

    def get_prep_value(self, value: Any) -> Any:
        return value if value in (None, "") else cipher().encrypt(value.encode()).decode()

    def from_db_value(self, value: Any, expression: object, connection: object) -> Any:
        if value in (None, ""):
            return value
        try:
            return cipher().decrypt(value).decode()
        except InvalidTag:
            place = f"{self.model.__name__}.{self.name}"
            raise Unreadable(f"{place} was changed, or is not encrypted with any of CRITERIA_KEYS") from None

    def get_lookup(self, lookup_name: str) -> Any:
        return super().get_lookup(lookup_name) if lookup_name == "isnull" else None


class EncryptedFloatField(EncryptedTextField):
    """A number, stored as an encrypted token of its text."""

    description = "encrypted number"

    def get_prep_value(self, value: Any) -> Any:
        return None if value is None else super().get_prep_value(repr(float(value)))

    def from_db_value(self, value: Any, expression: object, connection: object) -> Any:
        text = super().from_db_value(value, expression, connection)
        return text if text is None else float(text)

    def to_python(self, value: Any) -> Any:
        return None if value in (None, "") else float(value)


class EncryptedJSONField(EncryptedTextField):
    """An object, stored as an encrypted token of its JSON. An empty one stays empty."""

    description = "encrypted JSON"

    def get_prep_value(self, value: Any) -> Any:
        return super().get_prep_value(json.dumps(value, ensure_ascii=False) if value else "")

    def from_db_value(self, value: Any, expression: object, connection: object) -> Any:
        text = super().from_db_value(value, expression, connection)
        return json.loads(text) if text else {}

    def to_python(self, value: Any) -> Any:
        return json.loads(value) if isinstance(value, str) and value else value or {}


class PackedJSONField(EncryptedJSONField):
    """The same with compression, for large repetitive objects."""

    description = "packed and encrypted JSON"

    def get_prep_value(self, value: Any) -> Any:
        text = b64encode(zlib.compress(json.dumps(value).encode())).decode() if value else ""
        return EncryptedTextField.get_prep_value(self, text)

    def from_db_value(self, value: Any, expression: object, connection: object) -> Any:
        text = EncryptedTextField.from_db_value(self, value, expression, connection)
        return json.loads(zlib.decompress(a2b_base64(text))) if text else {}
