"""Rows of an unfinished import: stored, but not visible to anyone yet.

An import reserves the ids of the rows it will write, table by table (``bank.models.ImportRange``). While such a range
exists, the managers here hide its rows; the import itself sees them inside ``included``. Plain SQL uses
``unfinished_ids``. Everything that a visible row refers to is visible too, so only queries that go from a row to the
rows that refer to it need care: instead of ``Count("runs")`` or ``filter(labels__isnull=False)``, start from the
manager of those rows.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, TypeVar

from django.db import models

from bank.database import execute

M = TypeVar("M", bound=models.Model)
_included: ContextVar[bool] = ContextVar("unfinished imports included", default=False)


class ImportInProgress(Exception):
    """The request collides with a row that a running import is bringing in. It will work once the import is done."""


@contextmanager
def included() -> Iterator[None]:
    """For the running import: it sees its own rows. There is never more than one."""
    token = _included.set(True)
    try:
        yield
    finally:
        _included.reset(token)


@cache
def unfinished_ids(table: str, column: str = "id") -> str:
    """An SQL condition that matches the ids of rows of an unfinished import. Both bounds are looked up once per
    statement; mostly there are none, which is all that is asked for each row then.
    """
    first, last = _bounds(table)
    return f"{first} IS NOT NULL AND {column} BETWEEN {first} AND {last}"


def newest_id(model: type[models.Model]) -> int:
    """The highest id in a table, 0 in an empty one, without the rows of an unfinished import: from the ends of an
    index before and behind them, since a condition on each row would read them all.
    """
    table = model._meta.db_table
    first, last = _bounds(table)
    behind, before = (
        f'SELECT max(id) FROM "{table}" WHERE id {bound}'  # noqa: S608 (names of ours)
        for bound in (f"> coalesce({last}, 0)", f"< {first}")
    )
    return int(execute(f"SELECT coalesce(({behind}), ({before}), 0)"))


def _bounds(table: str) -> tuple[str, str]:
    """SQL for the first and the last id of a table's rows of an unfinished import."""
    of_table = f"FROM bank_importrange WHERE \"table\" = '{table}'"
    return f'(SELECT "first" {of_table})', f'(SELECT "last" {of_table})'


class _IsFinished(models.Func):
    """Whether a row belongs to no unfinished import."""

    conditional = True
    output_field = models.BooleanField()

    def __init__(self, table: str) -> None:
        super().__init__(models.F("pk"))
        self.table = table

    def as_sql(self, compiler: Any, connection: Any, *args: Any, **context: Any) -> Any:
        column, params = compiler.compile(self.source_expressions[0])
        return f"NOT ({unfinished_ids(self.table, column)})", params


@cache
def _finished(kind: type[models.QuerySet[M]], model: type[M]) -> models.QuerySet[M]:
    """Built once and then copied: copying takes a third of the time."""
    return kind(model).filter(_IsFinished(model._meta.db_table))


class FinishedManager(models.Manager[M]):
    """The rows of a table without those of an unfinished import."""

    def get_queryset(self) -> models.QuerySet[M]:
        rows = super().get_queryset()
        return rows if _included.get() else _finished(type(rows), rows.model).all()
