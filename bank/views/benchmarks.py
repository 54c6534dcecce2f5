"""Benchmarks: the list, one with its samples, its facts, publishing, export, quality hints."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST, require_safe

import bank.criteria
from accounts.http import done, form_page, person
from accounts.models import User
from accounts.rules import ANYWHERE, BY_NAME, allowed, requires, where
from bank import exposure
from bank.errors import BadInput, Stale
from bank.forms.benchmarks import Export, Facts, NewBenchmark, SplitDraw, facts_of
from bank.intake import export_files, exports
from bank.intake.export_files import Download
from bank.intake.registry import SHAPES
from bank.models import Benchmark, ExportFile
from bank.samples import benchmarks as actions
from bank.samples import quality, splits
from bank.samples.benchmarks import benchmarks_with_counts, by_status, summary_of
from bank.samples.listing import Filter, list_samples
from bank.samples.reviews import rounds_to_review, to_check, to_revise
from bank.views.common import bank_page, benchmark_named, faults_in
from bank.views.exports import answer_of


@requires("read-bank", of=ANYWHERE)
@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """The benchmarks of the bank, and what waits for this person."""
    viewer = person(request)
    context = {
        "lines": benchmarks_with_counts(Benchmark.objects.filter(where(viewer, "read-bank"))),
        "waiting": sum(round.left for round in rounds_to_review(viewer)),
        "checks": to_check(viewer).count(),
        "revisions": to_revise(viewer).count(),
    }
    return bank_page(request, "bank/index.html", context)


@requires("read-bank", of=BY_NAME)
@require_safe
def benchmark_detail(request: HttpRequest, name: str) -> HttpResponse:
    """The samples of one benchmark, filtered by facets and searched by text."""
    benchmark = benchmark_named(name)
    chosen = Filter.from_query(request.GET)
    listing = list_samples(
        benchmark, chosen, after=request.GET.get("after", "")[:40], before=request.GET.get("before", "")[:40]
    )
    context = {
        "benchmark": benchmark,
        "summary": summary_of(benchmark),
        "chosen": chosen,
        "listing": listing,
        "rows": [
            (sample, quality.hints_in(sample.quality_hints), listing.responses.get(sample.pk, 0))
            for sample in listing.rows
        ],
        "query": chosen.address(),
    }
    return bank_page(request, "bank/benchmark.html", context)


@requires("write-bank")
@form_page
def benchmark_new(request: HttpRequest) -> HttpResponse:
    """A form for a new benchmark; it is private until it is published."""
    form = NewBenchmark(request.POST or None, viewer=person(request))
    if form.is_valid():
        fields = {name: value for name, value in form.cleaned_data.items() if name != "edition"}
        with faults_in(form, "slug"):
            benchmark = actions.make_benchmark(**fields)
            return done(
                request,
                f"{benchmark.title} is made. Only staff see it until you publish it.",
                "bank:benchmark-detail",
                benchmark,
            )
    return bank_page(request, "bank/benchmark-form.html", {"form": form})


@requires("write-bank", of=BY_NAME)
@form_page
def benchmark_edit(request: HttpRequest, name: str) -> HttpResponse:
    """A benchmark's facts."""
    benchmark = benchmark_named(name)
    form = Facts(request.POST or None, initial=facts_of(benchmark), viewer=person(request))
    context: dict[str, Any] = {"form": form, "benchmark": benchmark}
    if form.is_valid():
        fields = dict(form.cleaned_data)
        try:
            actions.change_benchmark(benchmark=benchmark, edition=fields.pop("edition") or 0, **fields)
        except Stale as stale:
            context["stale"] = str(stale)
            form.data = {**form.data, "edition": str(benchmark.edition)}
        else:
            return done(request, "Saved.", "bank:benchmark-detail", benchmark)
    return bank_page(request, "bank/benchmark-form.html", context)


@requires("publish", of=BY_NAME)
@form_page
def benchmark_publish(request: HttpRequest, name: str) -> HttpResponse:
    """Who may see the benchmark, with what that shows."""
    benchmark = benchmark_named(name)
    if request.method == "POST":
        if "keys" in request.POST:
            opened = actions.open_keys(benchmark=benchmark, by=person(request))
            return done(
                request,
                f"The keys of {opened:,} samples are open to everybody from now on.",
                "bank:benchmark-publish",
                benchmark,
            )
        visibility = request.POST.get("visibility")
        if visibility in ("public", "private"):
            actions.set_visibility(benchmark=benchmark, visibility=visibility, by=person(request))
            outcome = "is published" if visibility == "public" else "is for staff only again"
            messages.success(request, f"{benchmark.title} {outcome}.")
        return redirect("bank:benchmark-detail", benchmark)
    groups = by_status(benchmark)
    context = {
        "benchmark": benchmark,
        "approved": groups["approved"],
        "others": sum(groups.values()) - groups["approved"],
        "summary": summary_of(benchmark),
        "closed": benchmark.samples.filter(status="approved", closed__gt=0)
        .exclude(split__in=benchmark.hidden_splits)
        .filter(exposure.any_of(exposure.inputs_of_all(bank.criteria.OPENED_AS_KEYS), "closed"))
        .count(),
        "splits": sorted(set(benchmark.samples.in_use().exclude(split="").order_by().values_list("split", flat=True))),
    }
    return bank_page(request, "bank/publish.html", context)


def benchmark_file(by: User, asked: dict[str, Any]) -> Download:
    """A table of a benchmark as a file: ``asked`` is what a valid form has, and the ``benchmark``. Raises
    PermissionDenied, Http404, BadInput.
    """
    benchmark = get_object_or_404(Benchmark, pk=asked["benchmark"])
    if not allowed(by, "write-bank", of=benchmark):
        raise PermissionDenied
    if asked["names"] and not allowed(by, "read-names"):
        raise BadInput("The names of annotators are for curators and administrators of the whole site.", "names")
    table, shape = asked["what"], SHAPES[asked["shape"]]
    wishes = {name: asked[name] for name in ("criteria", "analyses", "names")}
    more = {name: asked[name] for name in ("reason", "run", "model")}
    wanted = exports.ExportRequest(user=by, **more, **wishes)
    ending, content = ("zip", exports.ZIP) if asked["pictures"] else (shape.ending, shape.content)

    def pieces() -> Iterator[bytes]:
        if asked["pictures"]:
            records = exports.records(table, benchmark=benchmark, asked=wanted)
            return exports.zipped(records=records, shape=asked["shape"])
        return exports.file_pieces(what=table, shape=asked["shape"], benchmark=benchmark, asked=wanted)

    secret = "".join(f"-with-{name}" for name, wish in wishes.items() if wish)
    return Download(
        f"{benchmark.slug}-{benchmark.version}-{table}{secret}.{ending}",
        content,
        pieces,
        is_large=partial(export_files.is_large, table, benchmark, asked["shape"], pictures=asked["pictures"]),
        reason=asked["reason"] if asked["criteria"] or asked["analyses"] else "",
    )


def exported(form: Export, benchmark: Benchmark, user: User) -> HttpResponseBase | ExportFile | None:
    """What a valid form asks for, for page and API: the file, or what a worker will write. None, with the form's error,
    if there is neither.
    """
    asked = form.cleaned_data | {"benchmark": benchmark.pk}
    later = asked.pop("later")
    with faults_in(form):
        return export_files.give("benchmark", user, asked, later=later)
    return None


@requires("write-bank", of=BY_NAME)
@form_page
def benchmark_export(request: HttpRequest, name: str) -> HttpResponseBase:
    """Tables of the benchmark as files; hidden text only with a reason, and each page of it is logged."""
    benchmark = benchmark_named(name)
    form = Export(request.POST or None, initial={"what": "samples", "shape": "jsonl"})
    if form.is_valid() and (answer := exported(form, benchmark, person(request))):
        return answer_of(request, answer)
    context = {"benchmark": benchmark, "form": form, "summary": summary_of(benchmark)}
    return bank_page(request, "bank/export.html", context)


@requires("write-bank", of=BY_NAME)
@require_POST
def benchmark_check(request: HttpRequest, name: str) -> HttpResponse:
    """Look for quality hints again."""
    benchmark = benchmark_named(name)
    counts = quality.check(benchmark=benchmark, user=person(request))
    summary = ", ".join(f"{n:,} {quality.BY_NAME[hint].title}" for hint, n in counts.items() if n)
    return done(
        request,
        f"Checked {benchmark.samples.count():,} samples: {summary or 'nothing to look at'}.",
        "bank:benchmark-detail",
        benchmark,
    )


@requires("write-bank", of=BY_NAME)
@form_page
def benchmark_split(request: HttpRequest, name: str) -> HttpResponse:
    """Draw a dev and a test split by stratified sampling: first shown by capability, then written."""
    benchmark = benchmark_named(name)
    form = SplitDraw(request.POST or None)
    drawn = None
    if form.is_valid():
        data = form.cleaned_data
        with faults_in(form):
            drawn = splits.draw(benchmark=benchmark, share=data["share"], seed=data["seed"])
            if "write" in request.POST:
                changed = splits.set_splits(
                    benchmark=benchmark, drawn=drawn, by=person(request), dev=data["dev"], test=data["test"]
                )
                return done(request, f"{changed:,} samples have a new split.", "bank:benchmark-detail", benchmark)
    context = {"benchmark": benchmark, "summary": summary_of(benchmark), "form": form}
    return bank_page(request, "bank/split.html", context | {"drawn": drawn})
