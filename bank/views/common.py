"""What the bank's pages share."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.contrib import messages
from django.forms import BaseForm
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from accounts.rules import through
from bank.errors import BadInput
from bank.models import Benchmark, Sample
from bank.samples.benchmarks import groups_of
from bank.samples.listing import Filter, chosen_samples

OF_SAMPLE = through(Sample, "benchmark__slug")


def bank_page(request: HttpRequest, template: str, context: dict[str, Any], status: int = 200) -> HttpResponse:
    """A page of this part of the site."""
    return render(request, template, {"section": "bank"} | context, status=status)


def benchmark_named(name: str) -> Benchmark:
    """The benchmark of an address, or 404."""
    try:
        return Benchmark.objects.select_related("anchor").named(name)
    except Benchmark.DoesNotExist:
        raise Http404("no such benchmark") from None


@contextmanager
def told(request: HttpRequest, *also: type[Exception]) -> Iterator[None]:
    """Says on the next page what was refused within."""
    refusals: tuple[type[Exception], ...] = (BadInput, *also)
    try:
        yield
    except refusals as refusal:
        messages.error(request, str(refusal))


@contextmanager
def faults_in(form: BaseForm, elsewhere: str | None = None) -> Iterator[None]:
    """What was refused within is a fault of the form: at the field that it names, if there is one."""
    try:
        yield
    except BadInput as error:
        form.add_error(error.field if error.field in form.fields else elsewhere, str(error))


def act(request: HttpRequest, action: Callable[..., Any], success: str = "{}", **values: Any) -> bool:
    """Do what a button asks for, and say what came of it; whether it was done. ``{}`` is what the action returns."""
    with told(request):
        messages.success(request, success.format(action(**values)))
        return True
    return False


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
