"""Single statements past the ORM, for what is done at every few calls or clicks.

The ORM takes several times as long to put such a statement together as the database takes to run it. Names are those
of database columns; values go in as the model's fields would send them and come out as the database gives them: text,
numbers, None; JSON as text.
"""

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from django.db import connection
from django.db.models import BooleanField, JSONField, Model

M = TypeVar("M", bound=Model)
Where = Any  # a value, or a list of them (not empty), one of which it is to be


def read(model: type[Model], columns: Sequence[str], *, lock: bool = False, **where: Where) -> list[tuple[Any, ...]]:
    """Rows of a table; with ``lock``, nobody else changes them until the end of the transaction."""
    conditions, values = _conditions(where)
    with connection.cursor() as cursor:
        cursor.execute(_select(model, tuple(columns), conditions, lock and connection.vendor != "sqlite"), values)
        return list(cursor.fetchall())


def read_object(model: type[M], columns: Sequence[str], *, lock: bool = False, **where: Where) -> M | None:
    """A row as an object that knows these columns, the id among them; None where there is none.

    Takes text, numbers, booleans and JSON.
    """
    fields = [field for field in model._meta.concrete_fields if field.attname in columns]  # in from_db's order
    names = [field.attname for field in fields]
    for row in read(model, names, lock=lock, **where):
        values = [_python(field, value) for field, value in zip(fields, row, strict=True)]
        return model.from_db(connection.alias, names, values)
    return None


def update(model: type[Model], changes: Mapping[str, Any], **where: Where) -> int:
    """Change columns of rows; returns of how many."""
    conditions, values = _conditions(where)
    fields: list[Any] = [model._meta.get_field(name) for name in changes]
    given = [field.get_db_prep_save(value, connection) for field, value in zip(fields, changes.values(), strict=True)]
    with connection.cursor() as cursor:
        cursor.execute(_update(model, tuple(changes), conditions), [*given, *values])
        return int(cursor.rowcount)


def _python(field: Any, value: Any) -> Any:
    if isinstance(field, JSONField):
        return None if value is None else json.loads(value)
    return bool(value) if isinstance(field, BooleanField) else value


def _conditions(where: Mapping[str, Where]) -> tuple[tuple[tuple[str, int], ...], list[Any]]:
    """Columns with how many values each may have (0: the one given), and all values."""
    shape, values = [], []
    for name, value in where.items():
        shape.append((name, len(value) if isinstance(value, list) else 0))
        values.extend(value if isinstance(value, list) else [value])
    return tuple(shape), values


@lru_cache(maxsize=512)
def _select(model: type[Model], columns: tuple[str, ...], conditions: tuple[tuple[str, int], ...], lock: bool) -> str:
    named = ", ".join(f'"{name}"' for name in columns)
    sql = f'SELECT {named} FROM "{model._meta.db_table}" WHERE {_where(conditions)}'  # noqa: S608 (names of ours)
    return f"{sql} FOR NO KEY UPDATE" if lock else sql


@lru_cache(maxsize=512)
def _update(model: type[Model], columns: tuple[str, ...], conditions: tuple[tuple[str, int], ...]) -> str:
    sets = ", ".join(f'"{name}" = %s' for name in columns)
    return f'UPDATE "{model._meta.db_table}" SET {sets} WHERE {_where(conditions)}'  # noqa: S608 (names of ours)


def _where(conditions: tuple[tuple[str, int], ...]) -> str:
    return " AND ".join(
        f'"{name}" IN ({", ".join(["%s"] * number)})' if number else f'"{name}" = %s' for name, number in conditions
    )
