"""Benchmarks with what they hold. What is counted over large tables is kept by each process until they change."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.core.cache import cache
from django.db.models import Count, Max

from bank.models import Benchmark, Import, Item, Response, Sample, SampleImage, SampleRevision

KEPT = 600  # seconds
GROUPED = ("capability", "question_type", "split", "status", "quality_hints")
Group = tuple[int | None, str, str, str, int]


@dataclass(frozen=True, slots=True)
class Summary:
    samples: int
    images: int
    items: int
    models: int
    responses: int


def _newest(model: Any) -> int:
    """The id of a table's newest row: an index's end, at once whatever the size."""
    return model.objects.aggregate(last=Max("pk"))["last"] or 0


def _kept(name: str, benchmark: Benchmark, stamp: tuple[Any, ...], count: Callable[[], Any], *, seconds: int) -> Any:
    """What ``count`` gives, from the cache as long as the stamp is the same and no import was done."""
    stamp = (*stamp, Import.objects.last_done())
    key = f"bank:{name}:{benchmark.pk}"
    found = cache.get(key)
    if found is None or found[0] != stamp:
        found = (stamp, count())
        cache.set(key, found, seconds)
    return found[1]


def groups_of(benchmark: Benchmark) -> Counter[Group]:
    """Samples by every combination of what the list filters by, counted from an index alone.

    Every change of a sample leaves a revision, and a look for hints its time: they tell when to count anew.
    """

    def count() -> Counter[Group]:
        rows = benchmark.samples.order_by().values_list(*GROUPED).annotate(n=Count("pk"))
        return Counter({(capability, *rest): n for capability, *rest, n in rows})

    stamp = (_newest(Sample), _newest(SampleRevision), benchmark.checked_at)
    found: Counter[Group] = _kept("groups", benchmark, stamp, count, seconds=KEPT)
    return found


def by_status(benchmark: Benchmark) -> Counter[str]:
    """Samples by status."""
    found: Counter[str] = Counter()
    for (_, _, _, status, _), n in groups_of(benchmark).items():
        found[status] += n
    return found


def by_capability(benchmark: Benchmark) -> dict[int | None, int]:
    """Samples by capability id, those below it not counted."""
    found: Counter[int | None] = Counter()
    for (capability, *_), n in groups_of(benchmark).items():
        found[capability] += n
    return dict(found)


def summary_of(benchmark: Benchmark) -> Summary:
    """What a benchmark holds. A removed picture may be counted for a minute more."""

    def answered() -> dict[int, int]:
        rows = Response.objects.filter(sample__benchmark=benchmark).order_by()
        return dict(rows.values_list("model").annotate(n=Count("pk")))

    def images() -> int:
        return SampleImage.objects.filter(sample__benchmark=benchmark).count()

    def items() -> int:
        return Item.objects.filter(sample__benchmark=benchmark).count()

    models = _kept("models", benchmark, (_newest(Response),), answered, seconds=KEPT)
    return Summary(
        samples=sum(groups_of(benchmark).values()),
        images=_kept("images", benchmark, (_newest(SampleImage),), images, seconds=60),
        items=_kept("items", benchmark, (_newest(Item),), items, seconds=KEPT),
        models=len(models),
        responses=sum(models.values()),
    )


def benchmarks_with_counts() -> list[tuple[Benchmark, Summary]]:
    """Every version of every benchmark, newest first within a slug, with what it holds."""
    found = Benchmark.objects.select_related("anchor").order_by("slug", "-pk")
    return [(benchmark, summary_of(benchmark)) for benchmark in found]
