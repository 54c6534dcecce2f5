"""Rows by their columns, past the building of a query, which takes the ORM several times as long as the database takes
to run it.

For what is done at every few calls of a run; elsewhere ``Model.objects`` reads better. Rows of an import under way are
found by neither. Names are those of columns; a list of values, not empty, stands for any one of them.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from django.db import connection
from django.db.models import Model

from bank.database.unfinished import FinishedManager, includes_unfinished, unfinished_ids

M = TypeVar("M", bound=Model)
Shape = tuple[tuple[str, int], ...]  # columns, with how many values each may have; 0: the one given


def find(model: type[M], *, only: Sequence[str] = (), lock: bool = False, **columns: Any) -> M | None:
    """The row with these values; None without one.

    ``only`` names the columns to read, the id among them. With ``lock`` nobody else changes the row until the end of
    the transaction.
    """
    shape, values = _shape(columns)
    lock = lock and connection.features.has_select_for_update
    statement = _select(model, tuple(only), shape, lock=lock, arrived=_only_arrived(model))
    try:
        return next(iter(model._default_manager.raw(statement, values)), None)
    except OverflowError:  # a number that SQLite cannot hold, so no row has it
        return None


def read(model: type[Model], names: Sequence[str], **columns: Any) -> list[tuple[Any, ...]]:
    """Columns of the rows with these values, as the database gives them: text, numbers, None."""
    shape, values = _shape(columns)
    with connection.cursor() as cursor:
        cursor.execute(_select(model, tuple(names), shape, arrived=_only_arrived(model)), values)
        return list(cursor.fetchall())


def change(model: type[Model], changes: Mapping[str, Any], **columns: Any) -> int:
    """Change columns of the rows with these values; returns of how many."""
    shape, values = _shape(columns)
    fields: list[Any] = [model._meta.get_field(name) for name in changes]
    prepared = [
        field.get_db_prep_save(value, connection) for field, value in zip(fields, changes.values(), strict=True)
    ]
    with connection.cursor() as cursor:
        cursor.execute(_update(model, tuple(changes), shape), [*prepared, *values])
        return int(cursor.rowcount)


def _only_arrived(model: type[Model]) -> bool:
    """Whether rows of an import under way are to be left out."""
    return isinstance(model._default_manager, FinishedManager) and not includes_unfinished()


def _shape(columns: Mapping[str, object]) -> tuple[Shape, list[Any]]:
    shape: list[tuple[str, int]] = []
    values: list[Any] = []
    for name, value in columns.items():
        several = value if isinstance(value, list) else []
        shape.append((name, len(several)))
        values.extend(several or [value])
    return tuple(shape), values


@lru_cache(maxsize=512)
def _select(model: type[Model], names: tuple[str, ...], shape: Shape, *, lock: bool = False, arrived: bool) -> str:
    table = model._meta.db_table
    named = ", ".join(f'"{name}"' for name in names) or "*"
    sql = f'SELECT {named} FROM "{table}" WHERE {_where(shape)}'  # noqa: S608 (names of ours)
    if arrived:
        sql += f" AND NOT ({unfinished_ids(table)})"
    return f"{sql} FOR NO KEY UPDATE" if lock else sql


@lru_cache(maxsize=512)
def _update(model: type[Model], names: tuple[str, ...], shape: Shape) -> str:
    sets = ", ".join(f'"{name}" = %s' for name in names)
    return f'UPDATE "{model._meta.db_table}" SET {sets} WHERE {_where(shape)}'  # noqa: S608 (names of ours)


def _where(shape: Shape) -> str:
    return " AND ".join(
        f'"{name}" IN ({", ".join(["%s"] * number)})' if number else f'"{name}" = %s' for name, number in shape
    )
