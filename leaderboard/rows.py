"""Rows of boards: what they have in common, and how they are written as JSON and as flat cells (design: Contract)."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from itertools import chain
from typing import Any

from accounts.csv import escape
from judging.models import Run
from stats.figures import Write, two
from stats.results import Estimate

JSON = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Number:
    """A number with the ends of its 95% interval, its standard error, the rows and independent groups behind it and the
    method; None where unknown. ``reason`` says why the number or its interval is missing.

    A field ``x`` of this type is written as the columns of ``SUFFIXES``, and its reason as one of the row's ``notes``.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    se: float | None = None
    n: int | None = None
    groups: int | None = None
    method: str = ""
    reason: str = ""

    @property
    def ends(self) -> tuple[float | None, float | None, float | None]:
        """The number and both ends, all of which an axis must cover."""
        return self.value, self.low, self.high

    @property
    def between(self) -> tuple[float, float] | tuple[()]:
        """Both ends; empty where there is no interval."""
        return () if self.low is None or self.high is None else (self.low, self.high)


UNKNOWN = Number()
SUFFIXES = {
    "": "value",
    "_low": "low",
    "_high": "high",
    "_se": "se",
    "_n": "n",
    "_groups": "groups",
    "_method": "method",
}
ENDS = {end: SUFFIXES[end] for end in ("", "_low", "_high")}


def number_in(row: JSON | None, name: str) -> Number:
    """A number of a row that was written as JSON."""
    value, low, high = ((row or {}).get(f"{name}{end}") for end in ENDS)
    return Number(value, low, high)


def number(estimate: Estimate | None) -> Number:
    """An estimate in the form that rows use."""
    if estimate is None:
        return UNKNOWN
    interval = estimate.interval
    return Number(
        estimate.value,
        estimate.low,
        estimate.high,
        estimate.se,
        estimate.n,
        estimate.groups,
        interval.method if interval else estimate.method,
        estimate.reason,
    )


@dataclass(frozen=True, slots=True)
class Heading:
    """How a field of a row is shown: what heads its column, how its numbers are written, and what it is, in words."""

    label: str
    write: Write
    words: str


def shown(label: str, write: Write = two, words: str = "", **of_field: Any) -> Any:
    """A field of a row with its ``Heading``, which pages and the API's document read; ``of_field``: as
    ``dataclasses.field`` takes it.
    """
    return field(metadata={"shown": Heading(label, write, words)}, **of_field)


class Row:
    """The base class of all rows. They are dataclasses whose fields are the columns, in this order."""

    def as_json(self) -> Any:
        """The columns by name, as commands and the API print them; rows within have numbers with their ends alone."""
        columns = self._columns(SUFFIXES)
        return columns | {"notes": list(self._notes())} if "notes" not in columns else columns

    def _columns(self, suffixes: Mapping[str, str]) -> JSON:
        columns: JSON = {}
        for column in fields(self):  # type: ignore[arg-type]  # every row is a dataclass
            value = getattr(self, column.name)
            if isinstance(value, Number):
                columns |= {f"{column.name}{end}": getattr(value, name) for end, name in suffixes.items()}
            else:
                columns[column.name] = plain(value, within=True)
        return columns

    def _notes(self) -> Iterator[str]:
        """Why numbers, or their intervals, are missing: one sentence for each."""
        for column in fields(self):  # type: ignore[arg-type]
            value = getattr(self, column.name)
            if isinstance(value, Number) and value.reason:
                yield f"{column.name}: {value.reason}"
            elif isinstance(value, Mapping):
                for name, inner in value.items():
                    if isinstance(inner, Row):
                        yield from (f"{name or 'no level'}, {note}" for note in inner._notes())

    @classmethod
    def headings(cls) -> dict[str, Heading]:
        """By name, of the fields that have one."""
        of_fields = fields(cls)  # type: ignore[arg-type]
        return {each.name: each.metadata["shown"] for each in of_fields if "shown" in each.metadata}

    def number(self, name: str) -> Number:
        """The number in this column. Raises TypeError if the column holds something else."""
        value = getattr(self, name)
        if not isinstance(value, Number):
            raise TypeError(f"{name} of {type(self).__name__} is not a number with an interval")
        return value


class OfJudge(Row):
    """A row about a judge. ``simulated``: its verdicts are invented, as those of the demo's judges are."""

    judge: str
    simulated: bool

    @property
    def shown(self) -> str:
        return f"{self.judge} (simulated)" if self.simulated else self.judge


def of_judge(run: Run) -> dict[str, Any]:
    """What a row says of whose run it is about."""
    return {"judge": run.judge.name, "simulated": run.judge.simulated, "run": run.pk}


def with_note(rows: list[JSON], note: str) -> list[JSON]:
    """The rows with one more note on each, if there is one."""
    return [row | {"notes": [note, *row["notes"]]} for row in rows] if note else rows


def plain(value: Any, *, within: bool = False) -> Any:
    """Rows, and the values in them, as JSON types. ``within``: they are part of another row."""
    if isinstance(value, Row):
        return value._columns(ENDS) if within else value.as_json()
    if isinstance(value, Mapping):
        return {key: plain(inner, within=within) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner, within=within) for inner in value]
    return value


# ---- flat cells, for CSV and Parquet ----


def flat(row: JSON) -> JSON:
    """One level deep: ``levels`` becomes ``Perception wins`` and so on; other objects become JSON text."""
    cells: JSON = {}
    for name, value in row.items():
        if name in ("levels", "categories"):
            for level, numbers in value.items():
                columns = numbers if isinstance(numbers, dict) else {"score": numbers}
                cells |= {escape(f"{level or 'no level'} {key}"): cell for key, cell in columns.items()}
        elif name == "notes":
            cells[name] = escape("; ".join(value))
        elif isinstance(value, dict | list):
            cells[name] = json.dumps(value, ensure_ascii=False, sort_keys=True)
        else:
            cells[name] = escape(value) if isinstance(value, str) else value
    return cells


def columns_of(rows: Iterable[JSON]) -> list[str]:
    """Every column that a row has, in order of appearance."""
    return list(dict.fromkeys(chain.from_iterable(rows)))


Order = list[tuple[str, "Order"]]


def order_of(rows: Iterable[JSON]) -> Order:
    """The columns of rows in order of appearance, each with those of the objects it holds."""
    rows = list(rows)
    inner = {name: [row[name] for row in rows if isinstance(row.get(name), dict)] for name in columns_of(rows)}
    return [(name, order_of(objects) if objects else []) for name, objects in inner.items()]


def in_order(row: JSON, order: Order) -> JSON:
    """A row with its columns in this order, because PostgreSQL stores JSON objects in an order of its own."""
    if not order:
        return row
    return {
        name: in_order(row[name], inner) if isinstance(row[name], dict) else row[name]
        for name, inner in order
        if name in row
    }
