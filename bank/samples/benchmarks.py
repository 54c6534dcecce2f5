"""Benchmarks: found by name, made, changed, published, and counted."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.core.cache import cache
from django.core.exceptions import ValidationError
from django.core.validators import validate_slug
from django.db import IntegrityError, transaction
from django.db.models import Count, F, Q, QuerySet

import bank.criteria
from accounts import audit
from accounts.models import User
from accounts.rules import EVERYTHING
from bank.database.unfinished import newest_id
from bank.errors import BadInput, Stale
from bank.models import Benchmark, Import, Item, Response, Sample, SampleImage, SampleRevision
from bank.picked import present
from bank.samples.capability_trees import TREES, add_template

RESERVED = ("new",)  # part of a URL
FIELDS = ("title", "description", "licence", "anchor", "majority", "score_scale")


def make_benchmark(*, slug: str, version: str = "1", tree: str = "", **fields: Any) -> Benchmark:
    """Create a private benchmark without samples; ``tree`` names a capability tree to start with. Raises BadInput."""
    try:
        validate_slug(slug)
    except ValidationError:
        raise BadInput(f"{slug!r} is not a valid short name: use letters, digits, - and _.") from None
    if slug in RESERVED:
        raise BadInput(f"{slug!r} is reserved for a page of the site; choose another short name.")
    if not version or "@" in version or "/" in version:
        raise BadInput("A version is a short text without @ and /.")
    try:
        with transaction.atomic():
            benchmark = Benchmark.objects.create(
                slug=slug, version=version, visibility=Benchmark.Visibility.PRIVATE, **fields
            )
            if tree:
                add_template(benchmark=benchmark, tree=TREES[tree])
    except IntegrityError:
        raise BadInput(f"Benchmark {slug}@{version} already exists; choose another short name or version.") from None
    return benchmark


@transaction.atomic
def change_benchmark(*, benchmark: Benchmark, edition: int, **fields: Any) -> None:
    """Set fields unless somebody else changed the benchmark since ``edition``. Raises Stale."""
    names = present(fields, FIELDS)
    changed = Benchmark.objects.filter(pk=benchmark.pk, edition=edition).update(**names, edition=F("edition") + 1)
    if not changed:
        raise Stale("Somebody changed this benchmark while you were editing. See what it says now, then save again.")


@transaction.atomic
def set_visibility(*, benchmark: Benchmark, visibility: str, by: User | None = None, command: str = "") -> None:
    """Publish or withdraw: who may see the approved samples and the boards. Recorded in the audit log."""
    Benchmark.objects.filter(pk=benchmark.pk).update(visibility=visibility, edition=F("edition") + 1)
    action = "benchmark-published" if visibility == Benchmark.Visibility.PUBLIC else "benchmark-withdrawn"
    audit.record(action, by=by, command=command, about=str(benchmark))


@transaction.atomic
def open_keys(*, benchmark: Benchmark, by: User | None = None, command: str = "") -> int:
    """Show everybody the answer keys, references and weights of the approved samples outside hidden splits, for good;
    returns of how many samples. What rests on them alone is then open, too. Recorded in the audit log.
    """
    samples = benchmark.samples.filter(status=Sample.Status.APPROVED).exclude(split__in=benchmark.hidden_splits)
    opened = bank.criteria.open_keys(samples=samples)
    audit.record("keys-opened", by=by, command=command, about=str(benchmark), samples=opened)
    return opened


CACHED_FOR = 600  # seconds
GROUPED = ("capability", "question_type", "split", "status", "quality_hints")
Group = tuple[int | None, str, str, str, int]


@dataclass(frozen=True, slots=True)
class Summary:
    samples: int
    images: int
    items: int
    models: int
    responses: int


def _cached(name: str, benchmark: Benchmark, stamp: tuple[Any, ...], count: Callable[[], Any], *, seconds: int) -> Any:
    """The cached result of ``count`` while the stamp is the same and no import has finished."""
    stamp = (*stamp, Import.objects.last_done())
    key = f"bank:{name}:{benchmark.pk}"
    entry = cache.get(key)
    if entry is None or entry[0] != stamp:
        entry = (stamp, count())
        cache.set(key, entry, seconds)
    return entry[1]


def groups_of(benchmark: Benchmark) -> Counter[Group]:
    """Counts of samples by every combination of the list's filters, from an index alone.

    Every change of a sample leaves a revision and every quality check its time: they tell when to count again.
    """

    def count() -> Counter[Group]:
        rows = benchmark.samples.order_by().values_list(*GROUPED).annotate(n=Count("pk"))
        return Counter({(capability, *rest): n for capability, *rest, n in rows})

    stamp = (newest_id(Sample), newest_id(SampleRevision), benchmark.checked_at)
    groups: Counter[Group] = _cached("groups", benchmark, stamp, count, seconds=CACHED_FOR)
    return groups


def by_status(benchmark: Benchmark) -> Counter[str]:
    """Samples by status."""
    counts: Counter[str] = Counter()
    for (_, _, _, status, _), n in groups_of(benchmark).items():
        counts[status] += n
    return counts


def by_capability(benchmark: Benchmark) -> dict[int | None, int]:
    """Samples by capability id, without those of child capabilities."""
    counts: Counter[int | None] = Counter()
    for (capability, *_), n in groups_of(benchmark).items():
        counts[capability] += n
    return dict(counts)


def summary_of(benchmark: Benchmark) -> Summary:
    """The size of a benchmark. A removed picture may be counted for up to a minute."""

    def answered() -> dict[int, int]:
        rows = Response.objects.filter(sample__benchmark=benchmark).order_by()
        return dict(rows.values_list("model").annotate(n=Count("pk")))

    def images() -> int:
        return SampleImage.objects.filter(sample__benchmark=benchmark).count()

    def items() -> int:
        return Item.objects.filter(sample__benchmark=benchmark).count()

    models = _cached("models", benchmark, (newest_id(Response),), answered, seconds=CACHED_FOR)
    return Summary(
        samples=sum(groups_of(benchmark).values()),
        images=_cached("images", benchmark, (newest_id(SampleImage),), images, seconds=60),
        items=_cached("items", benchmark, (newest_id(Item),), items, seconds=CACHED_FOR),
        models=len(models),
        responses=sum(models.values()),
    )


def benchmarks_with_counts(benchmarks: QuerySet[Benchmark]) -> list[tuple[Benchmark, Summary]]:
    """These, newest first within a slug, with their counts."""
    ordered = benchmarks.select_related("anchor").order_by("slug", "-pk")
    return [(benchmark, summary_of(benchmark)) for benchmark in ordered]


def find_benchmark(name: str, among: Q = EVERYTHING) -> Benchmark:
    """The benchmark ``SLUG`` or ``SLUG@VERSION``, ``among`` those that the caller may be told of. Raises BadInput,
    which names no others.
    """
    benchmarks = Benchmark.objects.filter(among)
    try:
        return benchmarks.named(name)
    except Benchmark.DoesNotExist:
        slugs = ", ".join(benchmarks.order_by("slug").values_list("slug", flat=True).distinct()[:20])
        raise BadInput(f"Unknown benchmark {name!r}. Benchmarks: {slugs or 'none yet'}.") from None
