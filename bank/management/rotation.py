"""Re-encrypts every encrypted text with the newest of CRITERIA_KEYS, so that older keys can be discarded.

The columns are found by walking the models, so a new one is never forgotten. No text leaves this module.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from cryptography.exceptions import InvalidTag
from django.apps import apps
from django.conf import settings
from django.db import connection, models, transaction
from django.db.models.functions import Cast

from accounts.crypto import Cipher, EncryptedTextField, cipher

BATCH = 500


@dataclass(frozen=True, slots=True)
class Column:
    """An encrypted column of a model."""

    model: type[models.Model]
    name: str

    def __str__(self) -> str:
        return f"{self.model._meta.db_table}.{self.db_name}"

    @property
    def db_name(self) -> str:
        return str(self.model._meta.get_field(self.name).column)  # type: ignore[union-attr]


@dataclass(slots=True)
class Count:
    """How the texts of a column are encrypted: with the newest key, an older one, or an unknown one."""

    newest: int = 0
    older: int = 0
    unreadable: int = 0


@dataclass(slots=True)
class Unreadable(Exception):
    """Texts that none of CRITERIA_KEYS decrypts, by column. Nothing was written."""

    columns: dict[str, int] = field(default_factory=dict)

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


def _batches(column: Column) -> Iterator[list[tuple[Any, str]]]:
    """(primary key, token) of every text, in batches; tokens are not decrypted."""
    rows = (
        column.model._base_manager.order_by("pk")
        .annotate(token=Cast(column.name, models.TextField()))
        .exclude(token=None)
        .exclude(token="")
        .values_list("pk", "token")
    )
    after: list[tuple[Any, str]] = list(rows[:BATCH])
    while after:
        yield after
        after = list(rows.filter(pk__gt=after[-1][0])[:BATCH])


def _opens(key: Cipher, token: str) -> bool:
    try:
        key.decrypt(token)
    except InvalidTag:
        return False
    return True


def survey(progress: Callable[[int], None] = lambda done: None) -> dict[str, Count]:
    """How every text is encrypted, by column."""
    newest, *others = [Cipher([key]) for key in settings.CRITERIA_KEYS]
    counts: dict[str, Count] = {}
    done = 0
    for column in columns():
        count = counts[str(column)] = Count()
        for batch in _batches(column):
            for _, token in batch:
                if _opens(newest, token):
                    count.newest += 1
                elif any(_opens(key, token) for key in others):
                    count.older += 1
                else:
                    count.unreadable += 1
            done += len(batch)
            progress(done)
    return counts


def rotate(progress: Callable[[int], None] = lambda done: None) -> int:
    """Re-encrypt with the newest key what an older key encrypted; returns how many texts. Raises Unreadable before any
    write.

    Each batch is its own transaction, and finished work is left alone: after a kill, simply start it again. A text that
    somebody changes meanwhile keeps the change.
    """
    counts = survey()
    if lost := {name: count.unreadable for name, count in counts.items() if count.unreadable}:
        raise Unreadable(lost)
    newest, done = Cipher(settings.CRITERIA_KEYS[:1]), 0
    for column in columns():
        if not counts[str(column)].older:
            continue
        for batch in _batches(column):
            old = [(pk, token) for pk, token in batch if not _opens(newest, token)]
            done += _write(column, old)
            progress(done)
    return done


@transaction.atomic
def _write(column: Column, rows: list[tuple[Any, str]]) -> int:
    meta, quote = column.model._meta, connection.ops.quote_name
    name, key = quote(column.db_name), quote(str(meta.pk.column))
    # By hand: the field encrypts what is assigned to it, and takes no condition on its token.
    statement = f"UPDATE {quote(meta.db_table)} SET {name} = %s WHERE {key} = %s AND {name} = %s"  # noqa: S608
    with connection.cursor() as cursor:
        for pk, token in rows:
            cursor.execute(statement, [cipher().rotate(token).decode(), pk, token])
    return len(rows)
