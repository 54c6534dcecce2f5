"""Items and verdicts as arrays, cached in this process and extended as rows arrive.

A million rows take half a second to read and milliseconds to count. Pair items and judges' verdicts are stored once and
never changed, so rows that were read stay valid. Newer rows are read by id; a count, which the database takes from an
index, tells whether that is all. If it is not (rows were removed, or a transaction with lower ids ended later), or if
an import showed rows with lower ids, everything is read again.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from django.db import connection
from django.db.models import Aggregate, Case, Count, F, Max, Min, QuerySet, TextField, Value, When

from bank import guard
from bank.models import Benchmark, Import, ImportRange, Item, ItemResponse, Response
from judging.models import Judgment, Run, RunItem
from leaderboard.cache import until_changed
from stats.answer_style import style_of
from stats.verdicts import MISSING, UNASKED, VERDICTS

MOST_BYTES = 128_000_000  # of arrays in one process
AT_ONCE = 50_000  # rows from the database, more or less
FEW = 500  # rows that are looked up one by one
ID = np.int32  # a larger id raises OverflowError
CHOICES = {name: code for code, name in enumerate(VERDICTS)} | {None: MISSING}

Column = npt.NDArray[Any]
Block = tuple[Column, tuple[Column, ...]]  # ids of rows, and their columns


class Packed(Aggregate):
    """The whole numbers of a column, none null, as one text: a row each would take ten times as long."""

    function = "group_concat"
    output_field = TextField()

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        template = "%(function)s((%(expressions)s)::text, ',')"
        return self.as_sql(compiler, connection, function="string_agg", template=template, **context)


def packed(rows: QuerySet[Any], *values: Any) -> list[Column]:
    """These values (n,) of all rows, in any order but the same for each."""
    texts = rows.order_by().aggregate(**{f"values_{n}": Packed(value) for n, value in enumerate(values)})
    return [
        np.fromstring(text, dtype=np.int64, sep=",") if text else np.empty(0, dtype=np.int64) for text in texts.values()
    ]


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

    def add(self, ids: Column, columns: Sequence[Column]) -> None:
        """Add rows, in the order of their ids. Raises OverflowError at a number too large for its column."""
        if not len(ids):
            return
        order: Any = slice(None) if (ids[1:] > ids[:-1]).all() else np.argsort(ids, kind="stable")
        end = self._length + len(ids)
        if end > len(self._room[0]):
            room = end + end // 8
            self._room = tuple(np.concatenate([c, np.empty(room - len(c), dtype=c.dtype)]) for c in self._room)
        for column, values in zip(self._room, columns, strict=True):
            if column.dtype.kind == "i" and values.max() > np.iinfo(column.dtype).max:
                raise OverflowError(f"{values.max()} does not fit {column.dtype}")
            column[self._length : end] = values[order]
        self._length, self.top = end, max(self.top, int(ids.max()))

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


@guard.working()
def verdicts(run: Run) -> tuple[Column, Column, Column, Column]:
    """``item, repeat, choice, turned`` of a run's judgments; choices as codes of ``stats.verdicts``, in the
    item's order; ``turned`` where the second answer was shown first.
    """
    words = [When(choice=name, then=code) for name, code in CHOICES.items() if name]
    left_out = When(status=Judgment.Status.SKIPPED_BUDGET, then=UNASKED)
    choice = Case(*words, left_out, default=Value(MISSING))
    turned = Case(When(order="10", then=1), default=Value(0))

    def read(after: int, count: int) -> Iterator[Block]:
        for rows in _of_run(Judgment, run, after, count):
            ids, *columns = packed(rows, F("pk"), F("item_id"), F("repeat"), choice, turned)
            yield ids, tuple(columns)

    item, repeat, choices, is_turned = _rows(
        ("verdicts", run.pk),
        Judgment.objects.filter(run=run),
        lambda: rows_per_run(Judgment, run.benchmark_id).get(run.pk, 0),
        read,
        (ID, np.int16, np.int8, np.bool_),
    )
    return item, repeat, choices, is_turned


def lengths(benchmark: Benchmark, unit: str) -> tuple[Column, Column, Column]:
    """``item, first, second`` of the pairs of a benchmark: the lengths of both answers in ``tokens`` or ``words``; -1
    if unknown, for example if a file has no token counts.
    """

    def lengths_of(responses: QuerySet[Response]) -> tuple[Column, Column]:
        if unit == "tokens":
            ids, tokens = packed(responses.filter(tokens__isnull=False), F("pk"), F("tokens"))
            return ids, tokens
        words = [(pk, len(text.split())) for pk, text in responses.values_list("pk", "text").iterator()]
        counted = np.array(words, dtype=np.int64).reshape(-1, 2)
        return counted[:, 0], counted[:, 1]

    item, first, second = _pair_rows(
        ("lengths", unit, benchmark.pk), benchmark, lengths_of, (ID, np.int32, np.int32), with_sample=False
    )
    return item, first, second


MOST_MARKS = 2**10 - 1  # of one sort in an answer: three counts fit into 32 bits


def styles(benchmark: Benchmark) -> tuple[Column, Column, Column]:
    """``item, first, second`` of the pairs of a benchmark: the markdown of both answers, see ``style_counts``; -1 where
    there is no text. Each answer is read once, however many pairs it is in.
    """

    def styles_of(responses: QuerySet[Response]) -> tuple[Column, Column]:
        counts = []
        for pk, text in responses.values_list("pk", "text").iterator():
            if text.strip():
                style = style_of(text)
                headers, bold, lists = (min(n, MOST_MARKS) for n in (style.headers, style.bold, style.lists))
                counts.append((pk, headers << 20 | bold << 10 | lists))
        columns = np.array(counts, dtype=np.int64).reshape(-1, 2)
        return columns[:, 0], columns[:, 1]

    item, first, second = _pair_rows(
        ("styles", benchmark.pk), benchmark, styles_of, (ID, np.int32, np.int32), with_sample=False
    )
    return item, first, second


def style_counts(styles: Column) -> dict[str, Column]:
    """The ``headers``, ``bold`` and ``lists`` in a column of ``styles`` that are known."""
    return {name: styles >> shift & MOST_MARKS for name, shift in (("headers", 20), ("bold", 10), ("lists", 0))}


def run_items(run: Run) -> Column:
    """The items of a run."""

    def read(after: int, count: int) -> Iterator[Block]:
        for rows in _of_run(RunItem, run, after, count):
            ids, items = packed(rows, F("pk"), F("item_id"))
            yield ids, (items,)

    (item,) = _rows(
        ("asked", run.pk),
        RunItem.objects.filter(run=run),
        lambda: rows_per_run(RunItem, run.benchmark_id).get(run.pk, 0),
        read,
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

    def among(self, ids: Column) -> "PairItems":
        """Those of these ids."""
        at = np.searchsorted(self.item, wanted := np.unique(ids))
        at = at[at < len(self.item)]
        at = at[self.item[at] == wanted[: len(at)]]
        return PairItems(self.item[at], self.sample[at], self.first[at], self.second[at], self.sides)


def pair_items(benchmark: Benchmark) -> PairItems:
    """The pairs of a benchmark; incomplete ones are left out."""
    item, sample, first, second = _pair_rows(
        ("pairs", benchmark.pk), benchmark, _sides_of, (ID, ID, np.int32, np.int32), with_sample=True
    )
    if (complete := (first >= 0) & (second >= 0)).all():
        return PairItems(item, sample, first, second, _sides.known)
    return PairItems(item[complete], sample[complete], first[complete], second[complete], _sides.known)


def _sides_of(responses: QuerySet[Response]) -> tuple[Column, Column]:
    """The ids of responses, and the codes of their models and variants."""
    ids, models, varied = packed(responses, F("pk"), F("model_id"), Case(When(variant="", then=0), default=Value(1)))
    places, distinct = pd.factorize(models)
    codes = np.array([_sides.code(model, "") for model in distinct.tolist()], dtype=np.int64)[places]
    if varied.any():
        rows = responses.exclude(variant="").values_list("pk", "model_id", "variant")
        of_variant = {pk: _sides.code(model, variant) for pk, model, variant in rows.iterator()}
        codes[varied > 0] = [of_variant.get(pk, -1) for pk in ids[varied > 0].tolist()]
    return ids, codes


@guard.working()
def _pair_rows(
    key: Hashable,
    benchmark: Benchmark,
    values_of: Callable[[QuerySet[Response]], tuple[Column, Column]],
    types: Sequence[type],
    *,
    with_sample: bool,
) -> tuple[Column, ...]:
    """The pair items of a benchmark: their ids, their samples if wanted, and the values of both responses, -1 if
    unknown. ``values_of`` gives the ids of responses that have a value, and the values.

    Items, places and responses are joined here: the database would look each place up by itself.
    """
    pairs = Item.objects.filter(kind=Item.Kind.PAIR, sample__benchmark=benchmark)

    def read(after: int, count: int) -> Iterator[Block]:
        # New pairs come from the end of the table, all of them by sample, so that a part has all it refers to.
        samples = benchmark.samples.aggregate(first=Min("pk"), last=Max("pk"), n=Count("pk"))
        alone = samples["n"] and samples["last"] - samples["first"] + 1 == samples["n"]  # no other samples between
        parts = [{"pk__gt": after}] if after else _windows(benchmark.samples.all(), "sample", count)
        for part in parts:
            rows = Item.objects.filter(kind=Item.Kind.PAIR) if alone and not after else pairs
            items, sample = _sorted(*packed(rows.filter(**part), F("pk"), F("sample_id")))
            if not len(items):
                continue
            places = ItemResponse.objects.filter(item__gte=int(items[0]), item__lte=int(items[-1]))
            if items[-1] - items[0] > 2 * len(items):  # others between them; each place's item is looked up
                of_items = {f"item__{name}".replace("item__pk", "item"): value for name, value in part.items()}
                places = places.filter(item__kind=Item.Kind.PAIR, item__sample__benchmark=benchmark, **of_items)
            item_of, position, response_of = packed(places, F("item_id"), F("position"), F("response_id"))
            if len(response_of) <= FEW:
                responses = Response.objects.filter(pk__in=response_of.tolist())
            else:
                responses = Response.objects.filter(**({"sample__benchmark": benchmark} if after else part))
            value_of = _looked_up(*_sorted(*values_of(responses)), response_of)
            sides = [
                _looked_up(*_sorted(item_of[position == side], value_of[position == side]), items) for side in (0, 1)
            ]
            yield items, (items, *((sample,) if with_sample else ()), *sides)

    return _rows(key, pairs, lambda: items_by_kind(benchmark).get(Item.Kind.PAIR, 0), read, types, by_id=False)


def _sorted(keys: Column, values: Column) -> tuple[Column, Column]:
    order = np.argsort(keys, kind="stable")  # fast where they rise already, and mostly they do
    return keys[order], values[order]


def _looked_up(keys: Column, values: Column, targets: Column) -> Column:
    """The value of each target (n,) among sorted keys; -1 for those that are not among them."""
    if not len(keys):
        return np.full(len(targets), -1, dtype=np.int64)
    if keys[-1] - keys[0] + 1 == len(keys):  # none is left out: no need to look for them
        at = np.clip(targets - keys[0], 0, len(keys) - 1)
    else:
        at = np.searchsorted(keys, targets)
        at[at == len(keys)] = 0
    return np.where(keys[at] == targets, values[at], -1)


def _of_run(model: type[Judgment] | type[RunItem], run: Run, after: int, count: int) -> Iterator[QuerySet[Any]]:
    """The rows of a run with higher ids, about so many, in parts."""
    rows: QuerySet[Any] = model.objects.filter(run=run, pk__gt=after)
    for part in _windows(rows, "pk", count):
        # Most rows between its first and last are of this run: read in the order of the table, without an index.
        dense = part["pk__lt"] - part["pk__gte"] <= 2 * min(count, AT_ONCE)
        table: QuerySet[Any] = model.objects.all()
        yield (table.alias(of_run=F("run_id") + 0).filter(of_run=run.pk) if dense else rows).filter(**part)


def _windows(rows: QuerySet[Any], column: str, count: int) -> Iterator[dict[str, int]]:
    """Conditions on ``column``, which names these rows, that split ``count`` rows into parts of little memory."""
    first, last = (rows.order_by(f"{sign}pk").values_list("pk", flat=True).first() for sign in ("", "-"))
    if first is None or last is None:
        return
    step = max(1, (last - first + 1) * AT_ONCE // max(count, AT_ONCE))
    for start in range(first, last + 1, step):
        yield {f"{column}__gte": start, f"{column}__lt": start + step}


class _Sides:
    """Codes for models and variants, assigned in order of appearance for as long as the process lives."""

    def __init__(self) -> None:
        self.known: list[tuple[int, str]] = []
        self._codes: dict[tuple[int, str], int] = {}

    def code(self, model: int, variant: str) -> int:
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
    read_after: Callable[[int, int], Iterator[Block]],
    types: Sequence[type],
    *,
    by_id: bool = True,
) -> tuple[Column, ...]:
    """The columns of all rows of the query: the cached ones and newer ones.

    ``total`` gives their number; ``read_after(id, count)`` reads those with higher ids, about so many. ``by_id`` says
    whether its blocks come in that order; otherwise the rows are sorted here by their first column, the id.
    """

    def added(stored: Rows, count: int) -> Rows:
        start = len(stored)
        for ids, columns in read_after(stored.top, count):
            stored.add(ids, columns)
        if not by_id:
            stored.sort(start)
        return stored

    def read() -> Rows:
        count = total()
        return added(Rows(types, count + count // 64), count)

    if connection.in_atomic_block:  # what it sees may be undone: not for other connections, nor for longer
        return until_changed(("rows", key), lambda: read().columns)
    with _lock:
        stored, imports = _kept.pop(key, None), Import.objects.last_done()
        if stored is not None and imports != stored.imports:
            late = Import.objects.came_late(queryset.model, since=stored.imports, below=stored.top)
            stored = None if late else stored
        if stored is not None:
            added(stored, total() - len(stored))
            # The count may be a moment older than the rows.
            if total() != len(stored) and queryset.filter(pk__lte=stored.top).count() != len(stored):
                stored = None
        _kept[key] = stored = stored or read()
        stored.imports = imports
        _kept.move_to_end(key)
        while sum(rows.size for rows in _kept.values()) > MOST_BYTES and len(_kept) > 1:
            _kept.popitem(last=False)
        return stored.columns


# ---- row counts: counting a million rows takes 40 ms ----


Counts = dict[Any, int]


@guard.working()
def rows_per_run(model: type[Judgment] | type[RunItem], benchmark: int) -> dict[int, int]:
    """The number of rows of each run that has some, by its id."""

    def count() -> dict[int, int]:
        runs = list(Run.objects.filter(benchmark=benchmark).order_by("pk").values_list("pk", flat=True))
        # Checking for each row whether its import is done takes a third of the time, and mostly no import is running.
        coming = ImportRange.objects.filter(table=model._meta.db_table).exists()
        rows = model.objects if coming else model._base_manager
        counts = rows.filter(run__in=runs).order_by("run").values_list("run").annotate(n=Count("*"))
        return dict(counts)

    return until_changed(("rows", model, benchmark), count, benchmark=benchmark)


@guard.working()
def items_by_kind(benchmark: Benchmark) -> dict[str, int]:
    """The number of items of each kind."""

    def count() -> dict[str, int]:
        # Each of these is a count in an index; with GROUP BY, the rows would be sorted.
        return {kind: Item.objects.filter(sample__benchmark=benchmark, kind=kind).count() for kind in Item.Kind}

    return until_changed(("items", benchmark.pk), count, benchmark=benchmark.pk)


@guard.working()
def answers(benchmark: Benchmark) -> Counts:
    """How many answers there are (``n``), and the newest one's id. Answers are never changed."""

    def count() -> Counts:
        return Response.objects.filter(sample__benchmark=benchmark).aggregate(n=Count("pk"), newest=Max("pk"))

    return until_changed(("answers", benchmark.pk), count, benchmark=benchmark.pk)
