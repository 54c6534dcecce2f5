"""The half of a benchmark's samples on which no judge is compared with people before somebody asks for it (ADR 38).

Every picture or prompt has a place, which follows from its name, the benchmark's short name and the key of the
installation. Those below the middle one are held out: samples that come later move none, and versions of a benchmark
hold out the same.
"""

from collections.abc import Mapping
from itertools import pairwise

from django.db import transaction

from accounts import audit
from accounts.installation_key import keyed
from accounts.models import User
from bank.errors import BadInput
from bank.models import Benchmark, HeldOutHalf

FEWEST = 2  # pictures or prompts, of which each half has one


def _place(benchmark: Benchmark, cluster: str) -> str:
    return keyed("held-out", f"{benchmark.slug}\x1f{cluster}")


def held_out_samples(benchmark: Benchmark) -> set[int]:
    """The samples (ids) of the half that is held out; none where no half is."""
    half = HeldOutHalf.objects.filter(benchmark=benchmark).first()
    if half is None:
        return set()
    samples = benchmark.samples.order_by().values_list("pk", "group", "key")
    return {pk for pk, group, key in samples if _place(benchmark, group or key) < half.below}


@transaction.atomic
def draw(
    *, benchmark: Benchmark, labelled: Mapping[str, int], by: User | None = None, command: str = ""
) -> HeldOutHalf:
    """Hold a half out, for good. Recorded in the audit log. Raises BadInput.

    ``labelled``: how many items with labels there are of each picture or prompt (``Sample.cluster``); about half of
    them come into the half. What another version of the benchmark holds out is held out here, too.
    """
    Benchmark.objects.select_for_update().get(pk=benchmark.pk)
    if HeldOutHalf.objects.filter(benchmark=benchmark).exists():
        raise BadInput(f"{benchmark} has a half that is held out: it is drawn once.", "benchmark")
    if len(labelled) < FEWEST:
        raise BadInput(f"It takes items of {FEWEST} pictures or prompts that people have labelled.", "benchmark")
    earlier = HeldOutHalf.objects.filter(benchmark__slug=benchmark.slug).order_by("pk").first()
    below = earlier.below if earlier else _middle({_place(benchmark, name): n for name, n in labelled.items()})
    half = HeldOutHalf.objects.create(benchmark=benchmark, below=below, by=by)
    audit.record("half-held-out", by=by, command=command, about=str(benchmark))
    return half


def _middle(items_at: Mapping[str, int]) -> str:
    """The place that parts the items most evenly; neither side is empty."""
    before, uneven = 0, {}
    for place, following in pairwise(sorted(items_at)):
        before += items_at[place]
        uneven[following] = abs(2 * before - sum(items_at.values()))
    return min(uneven, key=lambda place: (uneven[place], place))
