"""Items and verdicts as arrays, kept in this process until something is written.

Each column comes as one text of numbers from a part of its table, and items are joined with their places and answers
here: a row each, and the joins of the database, took four times as long.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from django.db.models import Aggregate, Case, Count, F, Max, Min, QuerySet, TextField, Value, When

from bank import guard
from bank.models import Benchmark, ImportRange, Item, ItemResponse, Response
from judging.models import Judgment, Run, RunItem
from leaderboard.kept.values import kept_until_changed, kept_while_voted, until_changed
from stats.answer_style import style_of
from stats.verdicts import MISSING, UNASKED, VERDICTS

AT_ONCE = 50_000  # rows from the database, more or less
FEW = 500  # rows that are looked up one by one
ID = np.int32  # a larger id raises OverflowError
CHOICES = {name: code for code, name in enumerate(VERDICTS)} | {None: MISSING}

Column = npt.NDArray[Any]


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


def _joined(blocks: Iterable[Sequence[Column]], types: Sequence[type]) -> tuple[Column, ...]:
    """The columns of all blocks, in the order of their first one, the ids of the rows, which is left out. Raises
    OverflowError at a number too large for its column.
    """
    empty = [np.empty(0, dtype=np.int64)] * (len(types) + 1)
    ids, *columns = (np.concatenate(parts) for parts in zip(empty, *blocks, strict=True))
    order: Any = slice(None) if (ids[1:] > ids[:-1]).all() else np.argsort(ids, kind="stable")
    for column, kind in zip(columns, types, strict=True):
        if len(column) and kind is not np.bool_ and column.max() > np.iinfo(kind).max:
            raise OverflowError(f"{column.max()} does not fit {kind.__name__}")
    return tuple(column[order].astype(kind) for column, kind in zip(columns, types, strict=True))


@guard.working()
@kept_until_changed
def verdicts(run: Run) -> tuple[Column, Column, Column, Column]:
    """``item, repeat, choice, turned`` of a run's judgments; choices as codes of ``stats.verdicts``, in the
    item's order; ``turned`` where the second answer was shown first.
    """
    words = [When(choice=name, then=code) for name, code in CHOICES.items() if name]
    left_out = When(status=Judgment.Status.SKIPPED_BUDGET, then=UNASKED)
    choice = Case(*words, left_out, default=Value(MISSING))
    turned = Case(When(order="10", then=1), default=Value(0))
    parts = _of_run(Judgment, run)
    rows = (packed(part, F("pk"), F("item_id"), F("repeat"), choice, turned) for part in parts)
    item, repeat, choices, is_turned = _joined(rows, (ID, np.int16, np.int8, np.bool_))
    return item, repeat, choices, is_turned


@kept_while_voted
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

    item, _, first, second = _pairs(benchmark, lengths_of)
    return item, first, second


MOST_MARKS = 2**10 - 1  # of one sort in an answer: three counts fit into 32 bits


@kept_while_voted
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

    item, _, first, second = _pairs(benchmark, styles_of)
    return item, first, second


def style_counts(styles: Column) -> dict[str, Column]:
    """The ``headers``, ``bold`` and ``lists`` in a column of ``styles`` that are known."""
    return {name: styles >> shift & MOST_MARKS for name, shift in (("headers", 20), ("bold", 10), ("lists", 0))}


@guard.working()
@kept_while_voted
def run_items(run: Run) -> Column:
    """The items of a run."""
    (items,) = _joined((packed(part, F("pk"), F("item_id")) for part in _of_run(RunItem, run)), (ID,))
    return items


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
        wanted = np.unique(ids)
        at = np.searchsorted(self.item, wanted)
        at = at[at < len(self.item)]
        at = at[self.item[at] == wanted[: len(at)]]
        return PairItems(self.item[at], self.sample[at], self.first[at], self.second[at], self.sides)


@kept_while_voted
def pair_items(benchmark: Benchmark) -> PairItems:
    """The pairs of a benchmark; incomplete ones are left out."""
    sides: dict[tuple[int, str], int] = {}
    item, sample, first, second = _pairs(benchmark, lambda responses: _sides_of(responses, sides))
    complete = (first >= 0) & (second >= 0)
    if not complete.all():
        item, sample, first, second = (column[complete] for column in (item, sample, first, second))
    return PairItems(item, sample, first, second, list(sides))


def _sides_of(responses: QuerySet[Response], sides: dict[tuple[int, str], int]) -> tuple[Column, Column]:
    """The ids of responses, and the codes of their models and variants, of which new ones are added to ``sides``."""
    ids, models, varied = packed(responses, F("pk"), F("model_id"), Case(When(variant="", then=0), default=Value(1)))
    places, distinct = pd.factorize(models)
    of_models = [sides.setdefault((model, ""), len(sides)) for model in distinct.tolist()]
    codes = np.array(of_models, dtype=np.int64)[places]
    if varied.any():
        rows = responses.exclude(variant="").values_list("pk", "model_id", "variant")
        of_variant = {pk: sides.setdefault((model, variant), len(sides)) for pk, model, variant in rows.iterator()}
        codes[varied > 0] = [of_variant.get(pk, -1) for pk in ids[varied > 0].tolist()]
    return ids, codes


@guard.working()
def _pairs(
    benchmark: Benchmark, values_of: Callable[[QuerySet[Response]], tuple[Column, Column]]
) -> tuple[Column, Column, Column, Column]:
    """The pair items of a benchmark: their ids, their samples, and the values of both responses, -1 if unknown.
    ``values_of`` gives the ids of responses that have a value, and the values.
    """
    pairs = Item.objects.filter(kind=Item.Kind.PAIR, sample__benchmark=benchmark)
    samples = benchmark.samples.aggregate(first=Min("pk"), last=Max("pk"), n=Count("pk"))
    alone = samples["n"] and samples["last"] - samples["first"] + 1 == samples["n"]  # no other samples between

    def read() -> Iterator[Sequence[Column]]:
        # By sample, so that a part has all it refers to.
        for part in _windows(benchmark.samples.all(), "sample", items_by_kind(benchmark).get(Item.Kind.PAIR, 0)):
            rows = Item.objects.filter(kind=Item.Kind.PAIR) if alone else pairs
            items, sample = _sorted(*packed(rows.filter(**part), F("pk"), F("sample_id")))
            if not len(items):
                continue
            places = ItemResponse.objects.filter(item__gte=int(items[0]), item__lte=int(items[-1]))
            if items[-1] - items[0] > 2 * len(items):  # others between them; each place's item is looked up
                of_items = {f"item__{name}": value for name, value in part.items()}
                places = places.filter(item__kind=Item.Kind.PAIR, item__sample__benchmark=benchmark, **of_items)
            item_of, position, response_of = packed(places, F("item_id"), F("position"), F("response_id"))
            if len(response_of) <= FEW:
                responses = Response.objects.filter(pk__in=response_of.tolist())
            else:
                responses = Response.objects.filter(**part)
            value_of = _looked_up(*_sorted(*values_of(responses)), response_of)
            sides = [
                _looked_up(*_sorted(item_of[position == side], value_of[position == side]), items) for side in (0, 1)
            ]
            yield items, items, sample, *sides

    item, sample, first, second = _joined(read(), (ID, ID, np.int32, np.int32))
    return item, sample, first, second


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


def _of_run(model: type[Judgment] | type[RunItem], run: Run) -> Iterator[QuerySet[Any]]:
    """The rows of a run, in parts."""
    count = rows_per_run(model, run.benchmark_id).get(run.pk, 0)
    rows: QuerySet[Any] = model.objects.filter(run=run)
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


# ---- row counts: counting a million rows takes 40 ms ----


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

    return until_changed(("rows", model, benchmark), count, benchmark=benchmark, votes=model is Judgment)


@guard.working()
@kept_while_voted
def items_by_kind(benchmark: Benchmark) -> dict[str, int]:
    """The number of items of each kind."""
    # Each of these is a count in an index; with GROUP BY, the rows would be sorted.
    return {kind: Item.objects.filter(sample__benchmark=benchmark, kind=kind).count() for kind in Item.Kind}


@guard.working()
@kept_while_voted
def answers(benchmark: Benchmark) -> dict[str, int]:
    """How many answers there are (``n``), and the newest one's id. Answers are never changed."""
    return Response.objects.filter(sample__benchmark=benchmark).aggregate(n=Count("pk"), newest=Max("pk"))
