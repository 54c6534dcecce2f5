"""Making benchmarks in the browser, changing and publishing them."""

from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import validate_slug
from django.db import IntegrityError, transaction
from django.db.models import F

from accounts import audit
from accounts.models import User
from bank.actions.errors import BadInput, Stale
from bank.capability_trees import TREES
from bank.models import Benchmark

RESERVED = ("new",)  # an address of its own
FIELDS = ("title", "description", "licence", "anchor", "majority", "score_scale")


def make_benchmark(*, slug: str, version: str = "1", tree: str = "", **fields: Any) -> Benchmark:
    """A private benchmark without samples; ``tree`` names a capability tree to begin with. Raises BadInput."""
    from bank.actions.capabilities import plant

    try:
        validate_slug(slug)
    except ValidationError:
        raise BadInput(f"{slug!r} is no short name: use letters, digits, - and _.") from None
    if slug in RESERVED:
        raise BadInput(f"{slug!r} is an address of the site; choose another short name.")
    if not version or "@" in version or "/" in version:
        raise BadInput("A version is a short text without @ and /.")
    try:
        with transaction.atomic():
            benchmark = Benchmark.objects.create(
                slug=slug, version=version, visibility=Benchmark.Visibility.PRIVATE, **fields
            )
            if tree:
                plant(benchmark=benchmark, tree=TREES[tree])
    except IntegrityError:
        raise BadInput(
            f"There is a benchmark {slug}@{version} already; choose another short name or version."
        ) from None
    return benchmark


@transaction.atomic
def change_benchmark(*, benchmark: Benchmark, edition: int, **fields: Any) -> None:
    """Set fields, unless somebody else did since ``edition``. Raises Stale."""
    names = {name: fields[name] for name in FIELDS if name in fields}
    changed = Benchmark.objects.filter(pk=benchmark.pk, edition=edition).update(**names, edition=F("edition") + 1)
    if not changed:
        raise Stale("Somebody changed this benchmark while you were editing. Look at what stands now, then save again.")


@transaction.atomic
def set_visibility(*, benchmark: Benchmark, visibility: str, by: User | None = None, command: str = "") -> None:
    """Publish, or take back: who may see the approved samples and the boards. It stands in the audit log."""
    Benchmark.objects.filter(pk=benchmark.pk).update(visibility=visibility, edition=F("edition") + 1)
    action = "benchmark-published" if visibility == Benchmark.Visibility.PUBLIC else "benchmark-withdrawn"
    audit.record(action, by=by, command=command, about=str(benchmark))
