"""How many rows a benchmark has, counted once for each state of the database: of a million a count takes 40 ms."""

from django.db.models import Count

from bank.models import Benchmark, Item
from judging.models import Judgment, Run, RunItem
from leaderboard.unchanged import until_written


def per_run(model: type[Judgment] | type[RunItem], benchmark: int) -> dict[int, int]:
    """Rows of each run that has some, by their ids."""

    def count() -> dict[int, int]:
        runs = list(Run.objects.filter(benchmark=benchmark).order_by("pk").values_list("pk", flat=True))
        found = model.objects.filter(run__in=runs).order_by("run").values_list("run").annotate(n=Count("*"))
        return dict(found)

    return until_written(("rows of runs", model, benchmark), count)


def items(benchmark: Benchmark) -> dict[str, int]:
    """Items of each kind."""

    def count() -> dict[str, int]:
        # One by one each is a count in an index; grouped, the rows would be sorted.
        return {kind: Item.objects.filter(sample__benchmark=benchmark, kind=kind).count() for kind in Item.Kind}

    return until_written(("items", benchmark.pk), count)
