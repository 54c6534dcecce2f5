"""Fields that are encrypted at rest, so that a copy of the database without CRITERIA_KEYS opens none of them.

What is encrypted is padded, so that a token's length does not tell yes from no, and authenticated with its table and
column. Fields of a ``row`` hold, inside, whose text it is, so that a token opens in its own row alone. Tokens written
before this was so have no mark; they can be read until ``rotate_criteria_key`` seals them again.
"""

import json
import os
import zlib
from base64 import b64encode, urlsafe_b64decode
from binascii import Error, a2b_base64, b2a_base64
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from hashlib import sha256
from itertools import repeat
from typing import Any, NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.conf import settings
from django.db import models

NONCE = 12
MARK = "2:"
LEAST = 64  # bytes of the shortest padded text; longer ones fill the next power of two
OWNER = 16  # bytes of what stands for a row inside a token


class Unreadable(Exception):
    """The stored text was changed or moved here, or is not encrypted with any of CRITERIA_KEYS."""


class Opened(NamedTuple):
    """What was in a token. ``owner`` stands for its row: empty if it has none, None if it was sealed before there were
    any; ``current`` says whether it has today's format.
    """

    text: str
    owner: bytes | None
    current: bool = True


class Cipher:
    """AES-256-GCM with a random nonce per text, safe for four billion texts per key (NIST SP 800-38D, 8.3).

    Seals with the first key and opens with any. A token is ``2:`` and the base64 of nonce, ciphertext and tag. Sealed
    are the owner and the text, padded; the associated data is ``2:table.column``.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        self._ciphers = [AESGCM(urlsafe_b64decode(key)) for key in keys]

    def seal(self, text: str, place: str, owner: bytes = b"") -> str:
        """The token of a text that is stored at ``place``, a table and its column (``bank_draft.text``)."""
        return next(self._tokens([text], place, [owner]))

    def seal_all(self, texts: Iterable[str | None], place: str) -> list[str | None]:
        """The tokens of many texts at once. None and empty texts stay as they are."""
        plain = list(texts)
        tokens = self._tokens([text for text in plain if text], place, repeat(b""))
        return [next(tokens) if text else text for text in plain]

    def seal_rows(self, texts: Sequence[str], place: str, owners: Sequence[bytes]) -> list[str]:
        """The tokens of the texts of many rows, the empty ones too."""
        return list(self._tokens(texts, place, owners))

    def _tokens(self, texts: Sequence[str], place: str, owners: Iterable[bytes]) -> Iterator[str]:
        nonces, seal, about = os.urandom(NONCE * len(texts)), self._ciphers[0].encrypt, _about(place)
        for number, (text, owner) in enumerate(zip(texts, owners, strict=False)):
            nonce = nonces[NONCE * number : NONCE * number + NONCE]
            sealed = seal(nonce, owner + padded(text.encode()), about)
            yield MARK + b2a_base64(nonce + sealed, newline=False).decode("ascii")

    def open(self, token: str, place: str, *, owned: bool = False) -> Opened:
        """What is in a token that is stored at ``place``; ``owned``: it belongs to a row. Raises InvalidTag."""
        current = token.startswith(MARK)
        try:
            data = a2b_base64(token.removeprefix(MARK), strict_mode=True)
        except (Error, ValueError):
            raise InvalidTag from None
        content = self._content(data, _about(place) if current else None)
        if not current:
            return Opened(content.decode(), None, current=False)
        size = OWNER if owned else 0
        return Opened(content[size:].rstrip(b"\0")[:-1].decode(), content[:size])

    def _content(self, data: bytes, about: bytes | None) -> bytes:
        for key in self._ciphers:
            try:
                return key.decrypt(data[:NONCE], data[NONCE:], about)
            except (InvalidTag, ValueError):  # ValueError: shorter than a nonce
                continue
        raise InvalidTag


def padded(text: bytes) -> bytes:
    """The text and a one bit, filled up with zeros to 64 bytes or the next power of two (ISO/IEC 7816-4)."""
    return (text + b"\x80").ljust(max(LEAST, 1 << len(text).bit_length()), b"\0")


@cache
def _about(place: str) -> bytes:
    return f"{MARK}{place}".encode()


def owner_of(values: Iterable[object]) -> bytes:
    """What stands for a row inside its tokens, made of the values that name it."""
    return sha256("\x1f".join(map(str, values)).encode()).digest()[:OWNER]


@cache
def _cipher(keys: tuple[str, ...]) -> Cipher:
    return Cipher(keys)


def cipher() -> Cipher:
    """The cipher of the current settings: seals with the newest key, opens with any."""
    return _cipher(tuple(settings.CRITERIA_KEYS))


class OfRow(NamedTuple):
    """The text of a field that belongs to a row. Only an object of the model is given the text: see OpenedByRow."""

    owner: bytes | None
    text: str | None


class EncryptedTextField(models.TextField):
    """Text stored as an encrypted token. An empty text stays empty.

    It cannot be filtered on, because every write makes a different token. With ``row``, the names of attributes that
    name the row, a token opens in its own row alone, and an empty text or None is sealed too. Then the model is
    OpenedByRow, ``values_list`` gives no text, and ``update``, which knows no rows, is refused. Whoever renames table
    or column seals the tokens again.
    """

    description = "encrypted text"
    non_db_attrs = (*models.TextField.non_db_attrs, "row")  # the column stays as it is

    def __init__(self, *args: Any, row: Sequence[str] = (), **options: Any) -> None:
        self.row = tuple(row)
        super().__init__(*args, **options)

    def deconstruct(self) -> Any:
        name, path, args, options = super().deconstruct()
        return name, path, args, options | ({"row": self.row} if self.row else {})

    @property
    def place(self) -> str:
        """Table and column, which its tokens are authenticated with."""
        return f"{self.model._meta.db_table}.{self.column}"

    def to_text(self, value: Any) -> str | None:
        """The text that is sealed for a value."""
        return value

    def of_text(self, text: str | None) -> Any:
        """The value that was stored as this text."""
        return text

    def open(self, token: str, by: Cipher | None = None) -> Opened:
        """What is in one of its tokens. Raises InvalidTag."""
        return (by or cipher()).open(token, self.place, owned=bool(self.row))

    def pre_save(self, model_instance: Any, add: bool) -> Any:
        value = super().pre_save(model_instance, add)
        if not self.row:
            return value
        return OfRow(owner_of(getattr(model_instance, name) for name in self.row), self.to_text(value))

    def get_prep_value(self, value: Any) -> Any:
        if isinstance(value, OfRow):
            return cipher().seal(value.text or "", self.place, value.owner or b"")
        if self.row:
            raise TypeError(f"{self.place} is sealed with its row: save an object instead.")
        text = self.to_text(value)
        return text if text in (None, "") else cipher().seal(text, self.place)

    def from_db_value(self, value: Any, expression: object, connection: object) -> Any:
        if value in (None, ""):
            return OfRow(None, value) if self.row else self.of_text(value)
        try:
            opened = self.open(value)
        except InvalidTag:
            raise self.unreadable() from None
        return (
            OfRow(opened.owner, opened.text or (None if self.null else "")) if self.row else self.of_text(opened.text)
        )

    def unreadable(self) -> Unreadable:
        place = f"{self.model.__name__}.{self.name}"
        return Unreadable(f"{place} was changed or moved, or is not encrypted with any of CRITERIA_KEYS")

    def get_lookup(self, lookup_name: str) -> Any:
        return super().get_lookup(lookup_name) if lookup_name == "isnull" else None


class OpenedByRow(models.Model):
    """A model with fields of a ``row``: what stands in them is checked against the row that it was loaded with."""

    class Meta:
        abstract = True

    @classmethod
    def from_db(cls, db: Any, field_names: Any, values: Any, **options: Any) -> Any:
        """The object of a row. Raises Unreadable; TypeError if what names the row was not loaded with its texts."""
        instance = super().from_db(db, field_names, values, **options)
        loaded = instance.__dict__
        stored = {name: value for name, value in loaded.items() if isinstance(value, OfRow)}
        loaded |= {name: value.text for name, value in stored.items()}
        owners: dict[tuple[str, ...], bytes] = {}
        for name, value in stored.items():
            field: Any = cls._meta.get_field(name)
            if field.row not in owners:
                if missing := [part for part in field.row if part not in loaded]:
                    raise TypeError(f"{cls.__name__}.{name} is loaded without {', '.join(missing)}.")
                owners[field.row] = owner_of([loaded[part] for part in field.row])
            if value.owner is not None and value.owner != owners[field.row]:
                raise field.unreadable()
            loaded[name] = field.of_text(value.text)
        return instance


class EncryptedFloatField(EncryptedTextField):
    """A number, stored as an encrypted token of its text."""

    description = "encrypted number"

    def to_text(self, value: Any) -> str | None:
        return None if value is None else repr(float(value))

    def of_text(self, text: str | None) -> Any:
        return float(text) if text else None

    def to_python(self, value: Any) -> Any:
        return None if value in (None, "") else float(value)


class EncryptedJSONField(EncryptedTextField):
    """An object, stored as an encrypted token of its JSON. An empty one stays empty."""

    description = "encrypted JSON"

    def to_text(self, value: Any) -> str | None:
        return json.dumps(value, ensure_ascii=False) if value else ""

    def of_text(self, text: str | None) -> Any:
        return json.loads(text) if text else {}

    def to_python(self, value: Any) -> Any:
        return json.loads(value) if isinstance(value, str) and value else value or {}


class OncePlainJSONField(EncryptedJSONField):
    """The same in a column that was plain JSON: what was stored then is read until ``rotate_criteria_key`` seals it."""

    def open(self, token: str, by: Cipher | None = None) -> Opened:
        return Opened(token, None, current=False) if token.startswith("{") else super().open(token, by)


class PackedJSONField(EncryptedJSONField):
    """The same with compression, for large repetitive objects."""

    description = "packed and encrypted JSON"

    def to_text(self, value: Any) -> str | None:
        return b64encode(zlib.compress(json.dumps(value).encode())).decode() if value else ""

    def of_text(self, text: str | None) -> Any:
        return json.loads(zlib.decompress(a2b_base64(text))) if text else {}
