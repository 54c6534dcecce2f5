"""Items of a benchmark: how many there are, and making more."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods, require_POST

from accounts.http import PageRequest
from accounts.rules import requires
from bank.actions import BadInput
from bank.actions.items import make_some
from bank.forms.items import MakeItems
from bank.models import Benchmark, Item
from bank.params import whole_number
from bank.views.common import benchmark_named

MOST_COUNTED = 100_000
WORDS = {Item.Kind.PAIR: "Pairs", Item.Kind.SCORE: "Single answers", Item.Kind.BATCH: "Batches"}


@requires("write-bank")
@require_http_methods(["GET", "HEAD", "POST"])
def benchmark_items(request: PageRequest, name: str) -> HttpResponse:
    """Items are made for two seconds at a time; the page asks for the next ones by itself until all are there."""
    benchmark = benchmark_named(name)
    form = MakeItems(benchmark, request.POST if request.method == "POST" else None)
    context: dict[str, Any] = {"section": "bank", "benchmark": benchmark, "form": form}
    if request.method == "POST" and form.is_valid():
        try:
            context["step"] = _step(form, request)
        except BadInput as error:
            form.add_error(None, str(error))
    context |= {"there": _there(benchmark), "aside": bool(request.htmx)}
    return render(request, "bank/_items-made.html" if context["aside"] else "bank/items.html", context)


@requires("write-bank")
@require_POST
def items_count(request: HttpRequest, name: str) -> HttpResponse:
    """How many items the form asks for."""
    form = MakeItems(benchmark_named(name), request.POST)
    context: dict[str, Any] = {"form": form}
    if form.is_valid():
        try:
            plan = form.plan()
            context |= {"items": plan.count(), "samples": len(plan.samples), "models": len(plan.wanted)}
        except BadInput as error:
            form.add_error(None, str(error))
    return render(request, "bank/_items-count.html", context)


def _step(form: MakeItems, request: HttpRequest) -> dict[str, Any]:
    """The next items: what is done so far and how to go on."""
    plan = form.plan()
    before = min(_number(request.POST.get("after", "")), len(plan.samples))
    made, after = make_some(plan, after=before)
    fields = [(key, value) for key in form.fields for value in request.POST.getlist(key)]
    return {
        "made": _number(request.POST.get("made", "")) + made,
        "after": after,
        "samples": len(plan.samples),
        "done": after >= len(plan.samples),
        "fields": fields,
    }


def _there(benchmark: Benchmark) -> list[tuple[str, int, bool]]:
    """Of each kind: its name, how many items there are, and whether there are more than were counted."""
    counted = []
    for kind, word in WORDS.items():
        found = Item.objects.filter(sample__benchmark=benchmark, kind=kind).order_by()
        n = found.values("pk")[: MOST_COUNTED + 1].count()
        counted.append((word, min(n, MOST_COUNTED), n > MOST_COUNTED))
    return counted


def _number(text: str) -> int:
    return whole_number(text, below=10**9) or 0
