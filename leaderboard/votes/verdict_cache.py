"""Items and verdicts as arrays, cached in this process and extended as rows arrive.

A million rows take seconds to read and milliseconds to count. Pair items and judges' verdicts are stored once and never
changed, so rows that were read stay valid. Newer rows are read by id; a count, which the database takes from an index,
tells whether that is all. If it is not (rows were removed, or a transaction with lower ids ended later), or if an
import showed rows with lower ids, everything is read again.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
from django.db import connection
from django.db.models import Count, FilteredRelation, Q, QuerySet

from bank.models import Benchmark, Import, ImportRange, Item
from judging.models import Judgment, Run, RunItem
from leaderboard.cache import until_written
from stats.verdicts import MISSING, VERDICTS

MOST_BYTES = 128_000_000  # of arrays in one process
AT_ONCE = 5_000  # rows from the database
SIDES = ("one", "other")
ID = np.int32  # a larger id raises OverflowError
CHOICES = {name: code for code, name in enumerate(VERDICTS)} | {None: MISSING}

Column = npt.NDArray[Any]


class Rows:
    """Columns of equal length, in the order of the rows' ids; ``top`` is the highest id.

    The arrays have spare room at the end: adding rows does not change the columns that were handed out before.
    """

    def __init__(self, types: Sequence[type], room: int) -> None:
        self._room: tuple[Column, ...] = tuple(np.empty(room, dtype=kind) for kind in types)
        self._length = 0
        self.top = 0
        self.imports = 0  # the last that was done when they were read

    def __len__(self) -> int:
        return self._length

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(column[: self._length] for column in self._room)

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(column.nbytes for column in self._room)

    def add(self, rows: Iterable[Iterable[int]], count: int, top: int) -> None:
        end = self._length + count
        if end > len(self._room[0]):
            room = end + end // 8
            self._room = tuple(np.concatenate([c, np.empty(room - len(c), dtype=c.dtype)]) for c in self._room)
        for column, values in zip(self._room, zip(*rows, strict=True), strict=True):
            column[self._length : end] = np.array(values, dtype=column.dtype)
        self._length, self.top = end, max(self.top, top)

    def sort(self, start: int) -> None:
        """Put the rows from ``start`` on in the order of their first column."""
        ids = self.columns[0][start:]
        if not (ids[1:] > ids[:-1]).all():
            order = np.argsort(ids)
            for column in self.columns:
                column[start:] = column[start:][order]


_kept: OrderedDict[Hashable, Rows] = OrderedDict()
_lock = threading.Lock()


def forget() -> None:
    """Empty the cache, for a database that is thrown away."""
    with _lock:
        _kept.clear()
    _counts.clear()


def verdicts(run: Run) -> tuple[Column, Column, Column, Column]:
    """``item, repeat, choice, turned`` of a run's judgments; choices as codes of ``stats.verdicts``, in the
    item's order; ``turned`` where the second answer was shown first.
    """
    item, repeat, choice, turned = _rows(
        ("verdicts", run.pk),
        Judgment.objects.filter(run=run),
        lambda: rows_per_run(Judgment, run.benchmark_id).get(run.pk, 0),
        lambda rows: rows.values_list("pk", "item_id", "repeat", "choice", "order"),
        lambda row: (row[1], row[2], CHOICES[row[3]], row[4] == "10"),
        (ID, np.int16, np.int8, np.bool_),
    )
    return item, repeat, choice, turned


def lengths(benchmark: Benchmark, unit: str) -> tuple[Column, Column, Column]:
    """``item, first, second`` of the pairs of a benchmark: the lengths of both answers in ``tokens`` or ``words``; -1
    if unknown, for example if a file has no token counts.
    """
    field = "tokens" if unit == "tokens" else "text"
    item, first, second = _rows(
        ("lengths", unit, benchmark.pk),
        Item.objects.filter(kind=Item.Kind.PAIR, sample__benchmark=benchmark),
        lambda: items_by_kind(benchmark).get(Item.Kind.PAIR, 0),
        lambda rows: rows.annotate(**_places()).values_list("pk", *(f"{name}__response__{field}" for name in SIDES)),
        lambda row: (row[0], _length(row[1]), _length(row[2])),
        (ID, np.int32, np.int32),
        by_id=False,
    )
    return item, first, second


def _length(stored: int | str | None) -> int:
    return -1 if stored is None else len(stored.split()) if isinstance(stored, str) else stored


def run_items(run: Run) -> Column:
    """The items of a run."""
    (item,) = _rows(
        ("asked", run.pk),
        RunItem.objects.filter(run=run),
        lambda: rows_per_run(RunItem, run.benchmark_id).get(run.pk, 0),
        lambda rows: rows.values_list("pk", "item_id"),
        lambda row: row[1:],
        (ID,),
    )
    return item


@dataclass(frozen=True, eq=False, slots=True)
class PairItems:
    """Pair items by rising id: the sample, and the places of both sides in ``sides``, (model's id, variant)."""

    item: Column
    sample: Column
    first: Column
    second: Column
    sides: Sequence[tuple[int, str]]


def pair_items(benchmark: Benchmark) -> PairItems:
    """The pairs of a benchmark; incomplete ones are left out."""
    names = [f"{name}__response__{field}" for name in SIDES for field in ("model_id", "variant")]
    item, sample, first, second = _rows(
        ("pairs", benchmark.pk),
        Item.objects.filter(kind=Item.Kind.PAIR, sample__benchmark=benchmark),
        lambda: items_by_kind(benchmark).get(Item.Kind.PAIR, 0),
        lambda rows: rows.annotate(**_places()).values_list("pk", "sample_id", *names),
        lambda row: (row[0], row[1], _sides.code(row[2], row[3]), _sides.code(row[4], row[5])),
        (ID, ID, np.int32, np.int32),
        by_id=False,
    )
    if (complete := (first >= 0) & (second >= 0)).all():
        return PairItems(item, sample, first, second, _sides.known)
    return PairItems(item[complete], sample[complete], first[complete], second[complete], _sides.known)


def _places() -> dict[str, FilteredRelation]:
    """Both places of an item. Made new for each query, because Django modifies them."""
    return {
        name: FilteredRelation("places", condition=Q(places__position=position)) for position, name in enumerate(SIDES)
    }


class _Sides:
    """Codes for models and variants, assigned in order of appearance for as long as the process lives."""

    def __init__(self) -> None:
        self.known: list[tuple[int, str]] = []
        self._codes: dict[tuple[int, str], int] = {}

    def code(self, model: int | None, variant: str) -> int:
        if model is None:
            return -1
        code = self._codes.get((model, variant))
        if code is None:
            code = self._codes[model, variant] = len(self.known)
            self.known.append((model, variant))
        return code


_sides = _Sides()


def _rows(
    key: Hashable,
    queryset: QuerySet[Any],
    total: Callable[[], int],
    values: Callable[[QuerySet[Any]], QuerySet[Any, Any]],
    row: Callable[[Any], Iterable[int]],
    types: Sequence[type],
    *,
    by_id: bool = True,
) -> tuple[Column, ...]:
    """The columns of all rows of the query: the cached ones and newer ones.

    ``total`` gives their number; ``values`` selects what is read, the id first; ``row`` turns that into the columns'
    numbers. ``by_id`` says whether the database has them in that order; otherwise they are sorted here by their first
    column, the id, because a database would sort whole rows.
    """

    def added(stored: Rows, queryset: QuerySet[Any]) -> Rows:
        start = len(stored)
        for batch in _batches(values(queryset).order_by(*(["pk"] if by_id else [])).iterator(chunk_size=AT_ONCE)):
            stored.add(map(row, batch), len(batch), max(values_[0] for values_ in batch))
        if not by_id:
            stored.sort(start)
        return stored

    def read() -> Rows:
        count = total()
        return added(Rows(types, count + count // 64), queryset)

    if connection.in_atomic_block:  # what it sees may be undone
        return read().columns
    with _lock:
        stored, imports = _kept.pop(key, None), Import.objects.last_done()
        if stored is not None and imports != stored.imports:
            late = Import.objects.came_late(queryset.model, since=stored.imports, below=stored.top)
            stored = None if late else stored
        if stored is not None:
            added(stored, queryset.filter(pk__gt=stored.top))
            # The count may be a moment older than the rows.
            if total() != len(stored) and queryset.filter(pk__lte=stored.top).count() != len(stored):
                stored = None
        _kept[key] = stored = stored or read()
        stored.imports = imports
        _kept.move_to_end(key)
        while sum(rows.size for rows in _kept.values()) > MOST_BYTES and len(_kept) > 1:
            _kept.popitem(last=False)
        return stored.columns


def _batches(rows: Iterator[Any]) -> Iterator[list[Any]]:
    while batch := list(islice(rows, AT_ONCE)):
        yield batch


# ---- row counts: counting a million rows takes 40 ms, so counts are cached for as long as they are right ----


Counts = dict[Any, int]
_counts: dict[Hashable, tuple[Hashable, Counts]] = {}


def rows_per_run(model: type[Judgment] | type[RunItem], benchmark: int) -> dict[int, int]:
    """The number of rows of each run that has some, by its id."""

    def count() -> dict[int, int]:
        runs = list(Run.objects.filter(benchmark=benchmark).order_by("pk").values_list("pk", flat=True))
        # Checking for each row whether its import is done takes a third of the time, and mostly no import is running.
        coming = ImportRange.objects.filter(table=model._meta.db_table).exists()
        rows = model.objects if coming else model._base_manager
        counts = rows.filter(run__in=runs).order_by("run").values_list("run").annotate(n=Count("*"))
        return dict(counts)

    return _counted(model, benchmark, count)


def items_by_kind(benchmark: Benchmark) -> dict[str, int]:
    """The number of items of each kind."""

    def count() -> dict[str, int]:
        # Each of these is a count in an index; with GROUP BY, the rows would be sorted.
        return {kind: Item.objects.filter(sample__benchmark=benchmark, kind=kind).count() for kind in Item.Kind}

    return _counted(Item, benchmark.pk, count)


def _counted(model: type[Judgment] | type[RunItem] | type[Item], benchmark: int, count: Callable[[], Counts]) -> Counts:
    """The result of ``count``, cached until rows are added or removed.

    SQLite counts a whole table in a few milliseconds and never reuses an id: the same number of rows, the same last id
    and no import since then mean the same rows. They never move to another run or sample.
    """

    def cached_count() -> Counts:
        if connection.vendor != "sqlite" or connection.in_atomic_block:
            return count()
        rows = model._base_manager  # with the rows of an import under way: only all of them are counted at once
        newest = rows.order_by("-pk").values_list("pk", flat=True).first()
        state = (newest, rows.count(), until_written("last import", Import.objects.last_done))
        last_state, counts = _counts.get((model, benchmark), (None, {}))
        if last_state != state:
            counts = count()
            _counts[model, benchmark] = (state, counts)
        return counts

    return until_written(("totals", model, benchmark), cached_count)
