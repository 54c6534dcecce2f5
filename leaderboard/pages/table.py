"""The table of a board: headings that sort it, its rows in order, and groups without significant differences."""

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from django.utils.safestring import SafeString

from leaderboard.pages.address import Address

BLANK = SafeString()
RANK = "rank"
ASCENDING = (RANK, "model", "judge")  # columns that a first click on the head sorts upwards
T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a column: where a click leads, and how the column is sorted now."""

    label: str
    link: str
    sorted: str = ""  # "ascending", "descending" or ""
    under: str = ""  # a second line
    title: str = ""
    marks: SafeString = BLANK


@dataclass(frozen=True, slots=True)
class Cell:
    text: str
    css: str = ""
    title: str = ""
    link: str = ""
    bar: SafeString = BLANK


@dataclass(frozen=True, slots=True)
class Sorting:
    """The column that an address sorts by: ``rank``, or ``-rank`` downwards; ``usual`` is how addresses do unasked."""

    address: Address
    column: str
    descending: bool
    usual: str = RANK

    @classmethod
    def of(cls, address: Address, columns: Collection[str], *, usual: str = RANK) -> "Sorting":
        """The usual one where the address names no column of the table."""
        column = address.params.get("sort", "")
        column = column if column.removeprefix("-") in columns else usual
        return cls(address, column.removeprefix("-"), column.startswith("-"), usual)

    @property
    def is_usual(self) -> bool:
        return self.usual == (f"-{self.column}" if self.descending else self.column)

    def head(self, label: str, column: str, **more: Any) -> Head:
        """``more``: ``under``, ``title`` and ``marks`` of the head."""
        if column == self.column:
            following = column if self.descending else f"-{column}"
            state = "descending" if self.descending else "ascending"
        else:
            following, state = column if column in ASCENDING else f"-{column}", ""
        link = self.address.link(sort=None if following == self.usual else following)
        return Head(label, link, state, **more)

    def ordered(self, rows: Iterable[T], value: Callable[[T], Any], *, lower_first: bool = False) -> list[T]:
        """Rows by their values, those without one last. ``lower_first``: downwards means from the lowest."""
        rows = list(rows)
        with_value = [row for row in rows if value(row) is not None]
        with_value.sort(key=value, reverse=self.descending != lower_first)
        return with_value + [row for row in rows if value(row) is None]


def tints(rows: Iterable[tuple[K, int | None]]) -> dict[K, bool]:
    """Tints for every second group of rows with the same tier; rows without a tier have none."""
    tinted: dict[K, bool] = {}
    on, last = False, object()
    for row, tier in rows:
        if tier != last:
            on, last = not on, tier
        tinted[row] = on and tier is not None
    return tinted


def ends_of_groups(rows: Sequence[K], tinted: dict[K, bool]) -> list[bool]:
    """Whether each row is the last of its group, which means that the next one has another tint or none."""
    following = [tinted.get(row) for row in rows[1:]]
    return [bool(tinted) and tinted.get(row) is not after for row, after in zip(rows, following, strict=False)] + [
        False
    ] * bool(rows)


OUTSIDE = {"anchor": "base", "baseline": "base", "ceiling": "base", "provisional": "prov"}  # how unranked rows look


def row_css(kind: str, *, tinted: bool, last: bool) -> str:
    """The classes of a row. ``kind``: what it is where it is not ranked among the others."""
    return " ".join(filter(None, [OUTSIDE.get(kind, "ga" if tinted else ""), "gend" if last else ""]))
