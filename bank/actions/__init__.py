"""Writes over several tables of the bank."""

from bank.actions.items import make_items, plan_items
from bank.imports import BadInput
from bank.models import Benchmark

__all__ = ["BadInput", "find_benchmark", "make_items", "plan_items"]


def find_benchmark(name: str) -> Benchmark:
    """The benchmark ``SLUG`` or ``SLUG@VERSION``. Raises BadInput."""
    try:
        return Benchmark.objects.named(name)
    except Benchmark.DoesNotExist:
        known = ", ".join(Benchmark.objects.order_by("slug").values_list("slug", flat=True).distinct()[:20])
        raise BadInput(f"There is no benchmark {name!r}. There are: {known or 'none yet'}.") from None
