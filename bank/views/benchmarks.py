"""Benchmarks: the list, one with its samples, its facts, publishing, export, quality hints."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST, require_safe

import bank.criteria
from accounts.http import attached, done, form_page, person
from accounts.models import User
from accounts.rules import ANYWHERE, BY_NAME, allowed, requires, where
from bank import exposure
from bank.errors import Stale
from bank.forms.benchmarks import Export, Facts, NewBenchmark, SplitDraw, facts_of
from bank.intake import exports
from bank.intake.registry import SHAPES
from bank.models import Benchmark
from bank.samples import benchmarks as actions
from bank.samples import quality, splits
from bank.samples.benchmarks import benchmarks_with_counts, by_status, summary_of
from bank.samples.listing import Filter, list_samples
from bank.samples.reviews import rounds_to_review, to_check, to_revise
from bank.views.common import bank_page, benchmark_named, faults_in


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


def exported(form: Export, benchmark: Benchmark, user: User) -> StreamingHttpResponse | None:
    """The file that a valid form asks for, for the page and the API; None, with the form's error, if there is none."""
    values = form.cleaned_data
    if values["names"] and not allowed(user, "read-names"):
        form.add_error("names", "The names of annotators are for curators and administrators of the whole site.")
        return None
    table, shape = values["what"], SHAPES[values["shape"]]
    wishes = {name: values[name] for name in ("criteria", "analyses", "names")}
    asked = exports.ExportRequest(
        user=user, reason=values["reason"], run=values["run"], model=values["model"], **wishes
    )
    ending, content = shape.ending, shape.content
    with faults_in(form):
        if values["pictures"]:
            records = exports.records(table, benchmark=benchmark, asked=asked)
            pieces, ending, content = exports.zipped(records=records, shape=values["shape"]), "zip", exports.ZIP
        else:
            pieces = exports.file_pieces(what=table, shape=values["shape"], benchmark=benchmark, asked=asked)
    if form.errors:
        return None
    secret = "".join(f"-with-{name}" for name, wanted in wishes.items() if wanted)
    filename = f"{benchmark.slug}-{benchmark.version}-{table}{secret}.{ending}"
    return attached(StreamingHttpResponse(pieces, content_type=content), filename, kept=False)


@requires("write-bank", of=BY_NAME)
@form_page
def benchmark_export(request: HttpRequest, name: str) -> HttpResponseBase:
    """Tables of the benchmark as files; hidden text only with a reason, and each page of it is logged."""
    benchmark = benchmark_named(name)
    form = Export(request.POST or None, initial={"what": "samples", "shape": "jsonl"})
    if form.is_valid() and (answer := exported(form, benchmark, person(request))):
        return answer
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
