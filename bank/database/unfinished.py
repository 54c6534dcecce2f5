"""Rows of an import that is not done yet: stored, and seen by nobody.

An import reserves the ids of the rows that it will write, table by table (``bank.models.ImportRange``). As long as such
a range stands, the managers here leave its rows out; the import itself sees them within ``everything``. Plain SQL asks
``hidden``. What a visible row refers to is always visible, so only queries that go from a row to those that refer to
it have to look twice: instead of ``Count("runs")`` or ``filter(labels__isnull=False)`` they start from the manager of
those.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, TypeVar

from django.db import models

M = TypeVar("M", bound=models.Model)
_everything: ContextVar[bool] = ContextVar("everything", default=False)


class StillComing(Exception):
    """What was asked for meets a row that an import is bringing in just now: right again when that is done."""


@contextmanager
def everything() -> Iterator[None]:
    """For the import that is under way: its own rows are seen. There is never more than one."""
    token = _everything.set(True)
    try:
        yield
    finally:
        _everything.reset(token)


def sees_everything() -> bool:
    return _everything.get()


@cache
def hidden(table: str, column: str = "id") -> str:
    """SQL that is true of the ids of rows of an import under way; both bounds are looked up once a statement."""
    bounds = (
        f'coalesce((SELECT "{end}" FROM bank_importrange WHERE "table" = \'{table}\'), 0)'  # noqa: S608 (names of ours)
        for end in ("first", "last")
    )
    return f"{column} BETWEEN {next(bounds)} AND {next(bounds)}"


class _Arrived(models.Func):
    """Whether a row is none of an import under way."""

    conditional = True
    output_field = models.BooleanField()

    def __init__(self, table: str) -> None:
        super().__init__(models.F("pk"))
        self.table = table

    def as_sql(self, compiler: Any, connection: Any, *args: Any, **context: Any) -> Any:
        column, params = compiler.compile(self.source_expressions[0])
        return f"NOT ({hidden(self.table, column)})", params


@cache
def _arrived(kind: type[models.QuerySet[M]], model: type[M]) -> models.QuerySet[M]:
    """Put together once: copying it takes a third of the time."""
    return kind(model).filter(_Arrived(model._meta.db_table))


class Arrived(models.Manager[M]):
    """The rows of a table without those of an import under way."""

    def get_queryset(self) -> models.QuerySet[M]:
        found = super().get_queryset()
        return found if _everything.get() else _arrived(type(found), found.model).all()
