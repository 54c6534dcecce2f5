"""Pages of long lists that begin where another page ended: the thousandth is as fast as the first."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TypeVar

from django.db.models import Model, Q, QuerySet

from bank.forms.fields import whole_number

M = TypeVar("M", bound=Model)
T = TypeVar("T")
Place = tuple[float, int]  # a row's value in the column of the order, 0 where there is none, and its key


@dataclass(frozen=True, slots=True)
class Keyset:
    """An order by a column and then by key, both in one direction; without a column by key alone."""

    column: str = ""
    descending: bool = False
    key: str = "pk"

    def ordering(self, *, backwards: bool = False) -> list[str]:
        """For ``order_by``."""
        sign = "-" if self.descending != backwards else ""
        return [f"{sign}{name}" for name in (self.column, self.key) if name]

    def beyond(self, rows: "QuerySet[M]", place: Place | None, *, backwards: bool = False) -> "QuerySet[M]":
        """The rows after a place, or backwards those before it; all without a place."""
        return rows if place is None else self._bounded(rows, place, "lt" if self.descending != backwards else "gt")

    def up_to(self, rows: "QuerySet[M]", place: Place) -> "QuerySet[M]":
        """The rows before a place, and the one at it."""
        return self._bounded(rows, place, "gt" if self.descending else "lt", at_place="e")

    def _bounded(self, rows: "QuerySet[M]", place: Place, side: str, *, at_place: str = "") -> "QuerySet[M]":
        value, key = place
        by_key = Q(**{f"{self.key}__{side}{at_place}": key})
        if not self.column:
            return rows.filter(by_key)
        # Beside the exact condition one that the index can start from.
        return rows.filter(Q(**{f"{self.column}__{side}": value}) | by_key, **{f"{self.column}__{side}e": value})


def written(place: Place) -> str:
    """A place as addresses name it."""
    value, key = place
    return f"{value!r}_{key}" if value else str(key)


def read(text: str) -> Place | None:
    """The place that an address names; None where it names none."""
    value, _, key = text.rpartition("_")
    number = whole_number(key)
    try:
        at = float(value) if value.isascii() and len(value) < 25 and value else 0.0
    except ValueError:
        return None
    return None if number is None or not isfinite(at) or not 0 <= at < 1e15 else (at, number)


def cut(rows: Sequence[T], size: int, *, begun: bool, backwards: bool = False) -> tuple[list[T], bool, bool]:
    """Of ``size + 1`` rows that were read, one page in the order of the list, and whether some come before and after.

    ``begun``: the page begins at a place. ``backwards``: the rows were read towards the start of the list.
    """
    more, page = len(rows) > size, list(rows[:size])
    return (page[::-1], more, True) if backwards else (page, begun, more)
