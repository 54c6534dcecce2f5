"""What the bank's pages share."""

from typing import cast

from django.http import Http404, HttpRequest
from django.views.decorators.http import require_http_methods

from accounts.models import User
from bank.models import Benchmark, Sample
from bank.samples.benchmarks import groups_of
from bank.samples.listing import Filter, chosen_samples

form_page = require_http_methods(["GET", "HEAD", "POST"])  # a page whose form is sent back to it


def benchmark_named(name: str) -> Benchmark:
    """The benchmark of an address, or 404."""
    try:
        return Benchmark.objects.select_related("anchor").named(name)
    except Benchmark.DoesNotExist:
        raise Http404("no such benchmark") from None


def person(request: HttpRequest) -> User:
    return cast(User, request.user)


def suggestions(benchmark: Benchmark) -> dict[str, list[str]]:
    """Values in use, offered while typing."""
    groups = groups_of(benchmark)
    types = sorted({group[1] for group in groups if group[1]})[:50]
    splits = sorted({group[2] for group in groups if group[2]})[:50]
    return {
        "splits": sorted({*splits, "dev", "test"}),
        "types": sorted({*types, "open-ended", "closed-ended", "compound", "multiple-choice"}),
    }


def following(sample: Sample, chosen: Filter, *, back: bool = False) -> Sample | None:
    """The neighbour of a sample in the filtered list."""
    samples = (
        chosen_samples(sample.benchmark, chosen)
        if chosen.active
        else sample.benchmark.samples.order_by("position", "pk")
    )
    if back:
        earlier = samples.filter(position=sample.position, pk__lt=sample.pk) | samples.filter(
            position__lt=sample.position
        )
        return earlier.order_by("-position", "-pk").only("pk").first()
    later = samples.filter(position=sample.position, pk__gt=sample.pk) | samples.filter(position__gt=sample.position)
    return later.only("pk").first()
