"""The table of a board: columns declared once, headings that sort, rows in order, groups without significant
differences. ``_table.html`` draws it.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from django.utils.safestring import SafeString

from leaderboard.methods import PROVISIONAL
from leaderboard.rows import Number, Row
from leaderboard.show import marks
from leaderboard.show.marks import Cell
from stats.figures import (
    NONE,
    Write,
    in_brackets,
    interval,
    p_value,
    two,
    value_or_interval,
    whole,
    without_zeros,
)

if TYPE_CHECKING:
    from leaderboard.view import Address

BLANK = SafeString()
RANK = "rank"
ASCENDING = (RANK, "model", "judge")  # columns that a first click on the head sorts upwards
T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


def _of(row: T, field: Callable[[T], Any] | str) -> Any:
    return getattr(row, field) if isinstance(field, str) else field(row)


@dataclass(frozen=True, slots=True)
class Column(Generic[T]):
    """A column: its heading and what it shows of a row, or the field of rows that it shows as ``write`` has numbers.
    ``kind``: how ``_table.html`` draws its cells: plain (a figure,
    unless ``css`` says otherwise), name (heads the row), rank, interval (on an axis) or heat. ``sort``: what
    addresses call it, where a click on the head sorts by it; ``link``: where else that click leads; ``opens``: where
    one on a cell does.
    """

    label: str
    cell: Callable[[T], Any] | str
    write: Write = two
    _: KW_ONLY
    kind: str = "plain"
    css: str = "n"
    title: str = ""
    under: str = ""
    axis: SafeString = BLANK
    sort: str = ""
    link: str = ""
    opens: Callable[[T], str] | None = None
    head: str = ""  # classes of the heading, where they are others than the cells'
    key: str = ""  # what the chooser calls it, where that is not ``sort``
    choice: str = ""  # its words in the chooser, where they are not the heading
    usual: bool = True  # whether it is shown unasked
    unseen: bool = False  # whether the heading is only there for those who cannot see
    shown: bool = True

    @property
    def name(self) -> str:
        return self.key or self.sort

    def of(self, row: T) -> Cell:
        cell = self._cell(row)
        return replace(cell, link=self.opens(row)) if self.opens and not cell.link else cell

    def _cell(self, row: T) -> Cell:
        value = _of(row, self.cell)
        if isinstance(value, Cell):
            return value
        if isinstance(value, Number):
            return number_cell(value, self.write)
        if isinstance(value, str):
            return Cell(value)
        return Cell(whole(value) if isinstance(value, int) else self.write(value))


def column_of(rows: type[Row], name: str, cell: Callable[[Any], Any] | None = None, **more: Any) -> Column[Any]:
    """The column of a field that says how it is shown; ``cell``: where that is more than its value."""
    heading = rows.headings()[name]
    return Column(heading.label, cell or name, heading.write, title=heading.words, **more)


def columns_of(rows: type[Row]) -> list[Column[Any]]:
    """A column of each field that says how it is shown."""
    return [column_of(rows, name) for name in rows.headings()]


def names(label: str, cell: Callable[[T], Any] | str, **more: Any) -> Column[T]:
    """The column that heads the rows."""
    return Column(label, cell, **{"kind": "name", "css": "stick", **more})


def text(label: str, cell: Callable[[T], Any] | str, **more: Any) -> Column[T]:
    return Column(label, cell, **{"css": "", **more})


def axis_of(rows: Iterable[T], number: Callable[[T], Number] | str, *others: float | None, **size: Any) -> marks.Axis:
    """One that holds a number of each row with its interval, and the ``others``."""
    ends = [*others]
    for row in rows:
        ends += _of(row, number).ends
    return marks.axis(ends, **size)


def on_axis(
    label: str,
    number: Callable[[T], Number] | str,
    scale: marks.Axis,
    ticks: Callable[[float], str],
    write: Write = two,
    **more: Any,
) -> Column[Any]:
    """A number with its interval drawn on the axis of the column; in place of one that is missing the reason."""

    def cell(row: Any) -> Cell:
        value: Number = _of(row, number)
        if value.reason and value.value is None and value.low is None:
            return Cell(value.reason)
        bar = marks.interval_bar(scale, *value.ends, write=write)
        return Cell(value_or_interval(value, write), title=interval(value, write), bar=bar)

    return Column(label, cell, kind="interval", css="", axis=marks.axis_head(scale, ticks), **more)


def tick_of(write: Write) -> Callable[[float], str]:
    """How an axis writes the figures of numbers that ``write`` writes: without zeros at their end."""
    return lambda value: without_zeros(write(value))


def drawn(scale: marks.Axis, ticks: Callable[[float], str], bar: Callable[[T], SafeString], css: str = "") -> Column[T]:
    """A mark on an axis, its heading for those alone who cannot see it."""
    return text("Interval", lambda row: Cell(bar=bar(row)), axis=marks.axis_head(scale, ticks), unseen=True, css=css)


def interval_of(
    number: Callable[[T], Number] | str,
    scale: marks.Axis,
    ticks: Callable[[float], str],
    write: Write = two,
    marked: Callable[[T], dict[str, Any]] = lambda row: {},
    css: str = "",
) -> Column[T]:
    """A number's mark alone, for beside its figure. ``marked``: what else stands on the axis, as ``interval_bar`` has
    it.
    """

    def bar(row: T) -> SafeString:
        return marks.interval_bar(scale, *_of(row, number).ends, write=write, **marked(row))

    return drawn(scale, ticks, bar, css)


def change(scale: marks.Axis, ticks: Callable[[float], str], write: Write) -> list[Column[Any]]:
    """A difference with its interval in figures, and both drawn on an axis."""

    def figures(row: Any) -> Cell:
        number: Number = row.difference
        return Cell(write(number.value), in_brackets(number, write), strong=True, title=number.reason)

    return [Column("Difference, 95%", figures), interval_of("difference", scale, ticks, write)]


def _p(row: Any) -> Cell:
    return Cell(p_value(row.p), strong=bool(row.significant))


P_VALUE: Column[Any] = Column("p", _p)


def upright(label: str, cell: Callable[[T], Cell], title: str = "") -> Column[T]:
    """A column of a matrix: coloured cells below an upright heading."""
    return Column(label, cell, kind="heat", css="mh", title=title or label)


def number_cell(number: Number | None, write: Write, n: int | None = None, **more: Any) -> Cell:
    """A number with ``95%: 0.71 to 0.83, n = 120`` as its title."""
    if number is None:
        return Cell(NONE, **{"title": "not known", **more})
    n = number.n if n is None else n
    parts = [interval(number, write), "" if n is None else f"n = {whole(n)}"]
    return Cell(value_or_interval(number, write), title=", ".join(filter(None, parts)), **more)


SHOW = "show"  # of addresses: the columns that are chosen
ALWAYS = (RANK, "model", "judge", "")


@dataclass(frozen=True, slots=True)
class Chooser:
    """The columns that can be shown: their names, words, and whether they are. ``usual``: where the usual ones are."""

    choices: list[tuple[str, str, bool]]
    usual: str
    others: list[tuple[str, str]]  # parameters of the address that stay

    @property
    def shown(self) -> int:
        return sum(on for _, _, on in self.choices)


def choose(
    columns: Iterable[Column[T]], address: "Address", sorted_by: str = ""
) -> tuple[list[Column[T]], Chooser | None]:
    """The columns that the address asks for, or the usual ones; the one that the table is sorted by is always there. No
    chooser where there is nothing to choose.
    """
    columns = [column for column in columns if column.shown]
    asked = set(filter(None, address.params.get(SHOW, "").split(",")))
    named = {column.name for column in columns if column.name not in ALWAYS}

    def on(column: Column[T]) -> bool:
        wanted = column.name in asked if asked & named else column.usual
        return wanted or column.name in ALWAYS or column.sort == sorted_by

    choices = {
        column.name: (column.name, column.choice or column.label, on(column))
        for column in columns
        if column.name in named
    }
    others = [(name, value) for name, value in address.params.items() if name != SHOW]
    chooser = Chooser(list(choices.values()), address.link(**{SHOW: None}), others)
    return [column for column in columns if on(column)], chooser if len(choices) > 2 else None


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a column: where a click leads, and how the column is sorted now."""

    column: Column[Any]
    link: str
    sorted: str  # "ascending", "descending" or ""


@dataclass(frozen=True, slots=True)
class Over:
    """What stands above the heads of ``span`` columns."""

    label: str = ""
    words: str = ""
    span: int = 1
    css: str = ""


@dataclass(frozen=True, slots=True)
class TableRow:
    """``group``: of the rows that begin with this one; ``worse``: numbers of the rows that are significantly worse."""

    cells: list[tuple[Column[Any], Cell]]
    css: str
    key: str
    group: "Group | None"
    worse: str

    def of_kind(self, kind: str) -> list[Cell]:
        return [cell for column, cell in self.cells if column.kind == kind]


@dataclass(frozen=True, slots=True)
class Table:
    """``label``: what it is called to those who cannot see it; ``caption``: what it shows; ``does``: what a click does;
    ``fill``: whether an empty last column takes the width that is left; ``problem``: what is said in its place;
    ``over``: what stands above all heads.
    """

    heads: list[Head]
    rows: list[TableRow]
    label: str
    caption: str
    css: str = ""
    does: str = ""
    fill: bool = False
    problem: str = ""
    over: Sequence[Over] = ()

    @property
    def names(self) -> set[str]:
        """Of the columns that are there: what is said of a table is said of these."""
        return {head.column.name for head in self.heads}

    @property
    def width(self) -> int:
        """In columns."""
        return len(self.heads) + self.fill


def table(
    columns: Iterable[Column[T]],
    rows: Iterable[T],
    *,
    sorting: "Sorting | None" = None,
    row_css: Callable[[T], str] = lambda row: "",
    row_key: Callable[[T], str] = lambda row: "",
    group: Callable[[T], "Group | None"] = lambda row: None,
    worse: Callable[[T], str] = lambda row: "",
    **more: Any,
) -> Table:
    """The rows under those of the columns that are shown; ``group``: which a row begins or belongs to, None for the one
    above it. ``more``: see ``Table``.
    """
    present = [column for column in columns if column.shown]
    heads = [sorting.head(column) if sorting and column.sort else Head(column, column.link, "") for column in present]
    shown, last = [], None
    for row in rows:
        own = group(row)
        cells = [(column, column.of(row)) for column in present]
        shown.append(TableRow(cells, row_css(row), row_key(row), own if own != last else None, worse(row)))
        last = own or last
    return Table(heads, shown, **more)


@dataclass(frozen=True, slots=True)
class Sorting:
    """The column that an address sorts by: ``rank``, or ``-rank`` downwards; ``usual`` is how addresses do unasked."""

    address: "Address"
    column: str
    descending: bool
    usual: str

    @classmethod
    def of(cls, address: "Address", columns: Collection[str], *, usual: str = RANK) -> "Sorting":
        """The usual one where the address names no column of the table."""
        column = address.params.get("sort", "")
        column = column if column.removeprefix("-") in columns else usual
        return cls(address, column.removeprefix("-"), column.startswith("-"), usual)

    @property
    def is_usual(self) -> bool:
        return self.usual == (f"-{self.column}" if self.descending else self.column)

    def head(self, column: Column[Any]) -> Head:
        name = column.sort
        if name == self.column:
            following = name if self.descending else f"-{name}"
            state = "descending" if self.descending else "ascending"
        else:
            following, state = name if name in ASCENDING else f"-{name}", ""
        return Head(column, self.address.link(sort=None if following == self.usual else following), state)

    def ordered(self, rows: Iterable[T], value: Callable[[T], Any], *, lower_first: bool = False) -> list[T]:
        """Rows by their values, those without one last. ``lower_first``: downwards means from the lowest."""
        rows = list(rows)
        with_value = [row for row in rows if value(row) is not None]
        with_value.sort(key=value, reverse=self.descending != lower_first)
        return with_value + [row for row in rows if value(row) is None]


# ---- groups of rows ----


@dataclass(frozen=True, slots=True)
class Group:
    """Rows that belong together; a line above the first of them says so."""

    name: str
    said: str


UNRANKED = Group("Not ranked yet", f"fewer than {PROVISIONAL} items, so the interval is still wide")
OUTSIDE = {"anchor": "base", "baseline": "base", "ceiling": "base", "provisional": "prov"}  # how unranked rows look


IN_TIERS = "A tier begins where somebody of an earlier one is significantly better."


def tiers(places: Iterable[tuple[K, int | None]]) -> dict[K, Group]:
    """The tier of each row that has one: the rows, in the order of their ranks, of which no two are told apart."""
    members: dict[int, list[K]] = {}
    for row, tier in places:
        if tier is not None:
            members.setdefault(tier, []).append(row)
    groups: dict[K, Group] = {}
    before = 0
    for number, rows in enumerate(members.values(), start=1):
        first, last = before + 1, before + len(rows)
        said = f"places {first} to {last}, no two told apart" if last > first else f"place {first}"
        if before:
            said += f"; somebody above is significantly better than place {first}"
        groups |= dict.fromkeys(rows, Group(f"Tier {number}", said))
        before = last
    return groups
