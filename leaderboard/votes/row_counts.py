"""How many rows a benchmark has. Of a million each count takes 40 ms, so they are kept as long as they are right."""

from collections.abc import Callable, Hashable
from typing import Any

from django.db import connection
from django.db.models import Count

from bank.models import Benchmark, Import, ImportRange, Item
from judging.models import Judgment, Run, RunItem
from leaderboard.cache import until_written

Counts = dict[Any, int]
_kept: dict[Hashable, tuple[Hashable, Counts]] = {}


def forget() -> None:
    """Keep nothing: for a database that is thrown away."""
    _kept.clear()


def per_run(model: type[Judgment] | type[RunItem], benchmark: int) -> dict[int, int]:
    """Rows of each run that has some, by their ids."""

    def count() -> dict[int, int]:
        runs = list(Run.objects.filter(benchmark=benchmark).order_by("pk").values_list("pk", flat=True))
        # Looking at each row whether it has arrived takes a third of the time, and mostly no import is under way.
        coming = ImportRange.objects.filter(table=model._meta.db_table).exists()
        every = model.objects if coming else model._base_manager
        found = every.filter(run__in=runs).order_by("run").values_list("run").annotate(n=Count("*"))
        return dict(found)

    return _counted(model, benchmark, count)


def items(benchmark: Benchmark) -> dict[str, int]:
    """Items of each kind."""

    def count() -> dict[str, int]:
        # One by one each is a count in an index; grouped, the rows would be sorted.
        return {kind: Item.objects.filter(sample__benchmark=benchmark, kind=kind).count() for kind in Item.Kind}

    return _counted(Item, benchmark.pk, count)


def _counted(model: type[Judgment] | type[RunItem] | type[Item], benchmark: int, count: Callable[[], Counts]) -> Counts:
    """What ``count`` gives, kept until rows came or went.

    SQLite counts a whole table in a few milliseconds and gives no id twice: with the same number of rows, the same last
    id and no import done since they are the same rows. They never move to another run or sample.
    """

    def made() -> Counts:
        if connection.vendor != "sqlite" or connection.in_atomic_block:
            return count()
        every = model._base_manager  # with the rows of an import under way: only all of them are counted at once
        newest = every.order_by("-pk").values_list("pk", flat=True).first()
        rows = (newest, every.count(), until_written("last import", Import.objects.last_done))
        seen, found = _kept.get((model, benchmark), (None, {}))
        if seen != rows:
            found = count()
            _kept[model, benchmark] = (rows, found)
        return found

    return until_written(("totals", model, benchmark), made)
