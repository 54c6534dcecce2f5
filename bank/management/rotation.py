"""Seals every encrypted text again with the newest of CRITERIA_KEYS, so that older keys can be discarded, and in
today's format (``accounts.crypto``).

The columns are found by walking the models, so a new one is never forgotten. No text leaves this module.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from cryptography.exceptions import InvalidTag
from django.apps import apps
from django.conf import settings
from django.db import connection, models, transaction
from django.db.models.functions import Cast

from accounts.crypto import Cipher, EncryptedTextField, OfRow, Opened, cipher, owner_of
from bank.database import execute

BATCH = 500


@dataclass(frozen=True, slots=True)
class Column:
    """An encrypted column of a model."""

    model: type[models.Model]
    name: str

    def __str__(self) -> str:
        return self.field.place

    @property
    def field(self) -> EncryptedTextField:
        found = self.model._meta.get_field(self.name)
        assert isinstance(found, EncryptedTextField)
        return found


class Row(NamedTuple):
    """What a column holds in a row: a token, or nothing that is not yet sealed; and the values that name the row."""

    pk: Any
    token: str | None
    names: tuple[Any, ...]


@dataclass(slots=True)
class Count:
    """How the texts of a column are encrypted: with the newest key, in an earlier format, with an older key, or with an
    unknown one.
    """

    newest: int = 0
    former: int = 0
    older: int = 0
    unreadable: int = 0

    @property
    def due(self) -> int:
        """How many are to be encrypted again."""
        return self.former + self.older


@dataclass(slots=True)
class Unreadable(Exception):
    """Texts that none of CRITERIA_KEYS decrypts, by column. Nothing was written."""

    columns: dict[str, int]

    def __str__(self) -> str:
        places = ", ".join(f"{count:,} in {name}" for name, count in self.columns.items())
        return (
            f"Some texts cannot be read with any of CRITERIA_KEYS: {places}. Nothing was written. Put the key that "
            "made them back into CRITERIA_KEYS, after the newest, and start again."
        )


def columns() -> list[Column]:
    """Every encrypted column of every model."""
    return [
        Column(model, field.name)
        for model in apps.get_models(include_auto_created=True)
        for field in model._meta.local_concrete_fields
        if isinstance(field, EncryptedTextField)
    ]


def _batches(column: Column) -> Iterator[list[Row]]:
    """The contents of the rows, in batches; tokens are not decrypted. Left out is what is empty and stays so."""
    rows = column.model._base_manager.order_by("pk").annotate(token=Cast(column.name, models.TextField()))
    if not column.field.row:
        rows = rows.exclude(token=None).exclude(token__in=["", "{}"])  # {}: an empty one of a column that was JSON
    values = rows.values_list("pk", "token", *column.field.row)

    def batch(page: models.QuerySet[Any, Any]) -> list[Row]:
        return [Row(pk, token, tuple(map(_plain, names))) for pk, token, *names in page[:BATCH]]

    after = batch(values)
    while after:
        yield after
        after = batch(values.filter(pk__gt=after[-1].pk))


def _plain(value: Any) -> Any:
    return value.text if isinstance(value, OfRow) else value


def _opened(column: Column, row: Row, by: Cipher) -> Opened | None:
    """The text of a row, if these keys open it."""
    if not row.token:
        return Opened("", None, current=False)
    try:
        return column.field.open(row.token, by)
    except InvalidTag:
        return None


def survey(progress: Callable[[int], None] = lambda done: None) -> dict[str, Count]:
    """How every text is encrypted, by column."""
    newest, all_keys = Cipher(settings.CRITERIA_KEYS[:1]), cipher()
    counts: dict[str, Count] = {}
    done = 0
    for column in columns():
        count = counts[str(column)] = Count()
        for batch in _batches(column):
            for row in batch:
                if opened := _opened(column, row, newest):
                    count.newest += opened.current
                    count.former += not opened.current
                elif _opened(column, row, all_keys):
                    count.older += 1
                else:
                    count.unreadable += 1
            done += len(batch)
            progress(done)
    return counts


def rotate(progress: Callable[[int], None] = lambda done: None) -> int:
    """Seal again, with the newest key and in today's format, what is sealed otherwise; returns how many texts. Raises
    Unreadable before any write.

    Each batch is its own transaction, and finished work is left alone: after a kill, simply start it again. A text that
    somebody changes meanwhile keeps the change.
    """
    counts = survey()
    if lost := {name: count.unreadable for name, count in counts.items() if count.unreadable}:
        raise Unreadable(lost)
    newest, done = Cipher(settings.CRITERIA_KEYS[:1]), 0
    for column in columns():
        if not counts[str(column)].due:
            continue
        for batch in _batches(column):
            done += _write(column, [row for row in batch if not _is_done(column, row, newest)])
            progress(done)
    return done


def compact() -> None:
    """Write SQLite's file anew, without what was written over or deleted; PostgreSQL does so by itself in time."""
    if connection.vendor == "sqlite":
        execute("VACUUM")


def _is_done(column: Column, row: Row, newest: Cipher) -> bool:
    opened = _opened(column, row, newest)
    return opened is not None and opened.current


@transaction.atomic
def _write(column: Column, rows: list[Row]) -> int:
    meta, quote = column.model._meta, connection.ops.quote_name
    name, key = quote(str(column.field.column)), quote(str(meta.pk.column))
    # By hand: the field encrypts what is assigned to it, and takes no condition on its token.
    statement = f"UPDATE {quote(meta.db_table)} SET {name} = %s WHERE {key} = %s AND {name}"  # noqa: S608
    with connection.cursor() as cursor:
        for row in rows:
            sealed = _sealed(column, row)
            if row.token is None:
                cursor.execute(f"{statement} IS NULL", [sealed, row.pk])
            else:
                cursor.execute(f"{statement} = %s", [sealed, row.pk, row.token])
    return len(rows)


def _sealed(column: Column, row: Row) -> str:
    """A row's new token. What a token says of its row is kept, so that one that was moved is not made the row's own."""
    opened = _opened(column, row, cipher())
    assert opened is not None  # rotate has looked
    owner = opened.owner if opened.owner is not None else owner_of(row.names) if column.field.row else b""
    return cipher().seal(opened.text, column.field.place, owner)
