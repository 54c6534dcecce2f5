"""The filters and orders of a list of judgments, as given in its URL, and the choices they offer."""

from dataclasses import dataclass, fields, replace
from typing import Any
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.http import QueryDict

from accounts.rules import Viewer, allowed
from bank.database.keyset import Keyset
from bank.forms.fields import whole_number
from bank.models import Benchmark
from judging.models import Judge, Run

STATUSES = {
    "parse_failed": "No verdict in the reply",
    "refused": "Refused by the judge",
    "filtered": "Stopped by a content filter",
    "truncated": "Cut off at the length limit",
    "empty": "Empty reply",
    "error": "Error",
    "skipped_budget": "Left out for the budget",
}
SHOWS = {
    "verdicts": "with a verdict",
    "failed": "without a verdict",
    **{status: words.lower() for status, words in STATUSES.items()},
    "first": "first is better",
    "second": "second is better",
    "tie": "tie",
    "undecided": "undecided",
}
DIFFERS = {"orders": "differing between orders", "repeats": "differing between repeats"}


@dataclass(frozen=True, slots=True)
class Order:
    """How a list is sorted: by a column, or by age if there is none."""

    words: str
    column: str = ""
    descending: bool = True

    @property
    def keyset(self) -> Keyset:
        return Keyset(self.column, descending=self.descending)


ORDERS = {
    "newest": Order("newest first"),
    "oldest": Order("oldest first", descending=False),
    "slowest": Order("slowest first", "latency"),
    "dearest": Order("dearest first", "cost"),
}


def orders_for(viewer: Viewer) -> dict[str, Order]:
    """The orders this viewer may choose."""
    return {name: order for name, order in ORDERS.items() if not order.column or allowed(viewer, "read-calls")}


@dataclass(frozen=True, slots=True)
class JudgmentFilters:
    """The filters of a list, as given in its URL; empty values do not filter."""

    run: int | None = None
    judge: str = ""
    protocol: str = ""
    benchmark: str = ""  # SLUG or SLUG@VERSION
    level: str = ""
    sample: str = ""  # a key
    item: int | None = None
    show: str = ""
    differs: str = ""  # orders or repeats: only items whose verdicts differ between them
    seconds: float | None = None  # at least this slow
    cost: float | None = None  # at least this expensive
    sort: str = "newest"

    @classmethod
    def from_query(cls, query: QueryDict, viewer: Viewer) -> "JudgmentFilters":
        """Read the URL. Only staff filter and sort by duration and price: these reveal how long criteria are."""

        def text(name: str) -> str:
            return query.get(name, "").strip()[:200].replace("\x00", "")

        values: dict[str, Any] = {name: text(name) for name in ("judge", "protocol", "benchmark", "level", "sample")}
        for name, known in (("show", SHOWS), ("differs", DIFFERS), ("sort", orders_for(viewer))):
            if text(name) in known:
                values[name] = text(name)
        if allowed(viewer, "read-calls"):
            values |= {name: positive_number(text(name)) for name in ("seconds", "cost")}
        return cls(run=whole_number(text("run")), item=whole_number(text("item")), **values)

    @property
    def active(self) -> bool:
        return replace(self, sort="newest") != JudgmentFilters()

    def query_string(self, **changes: Any) -> str:
        """The URL's query for the same list, with some values changed."""
        values = {field.name: getattr(self, field.name) for field in fields(self)} | changes
        if values["sort"] == "newest":
            values["sort"] = ""
        return urlencode({name: _as_text(value) for name, value in values.items() if value not in ("", None)})


def _as_text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def positive_number(text: str) -> float | None:
    try:
        number = float(text) if text.isascii() and len(text) < 20 else -1.0
    except ValueError:
        return None
    return number if 0 < number < 1e9 else None


def benchmarks_named(name: str) -> QuerySet[Benchmark]:
    slug, _, version = name.partition("@")
    benchmarks = Benchmark.objects.filter(slug=slug)
    return benchmarks.filter(version=version) if version else benchmarks


def choices(filters: JudgmentFilters, viewer: Viewer) -> dict[str, Any]:
    """The values that the filters offer; levels are those of the selected benchmark, or of the selected run's."""
    runs = Run.objects.visible_to(viewer).order_by()
    benchmarks = list(Benchmark.objects.filter(pk__in=runs.values("benchmark")).order_by("title", "version"))
    selected = [benchmark for benchmark in benchmarks if filters.benchmark in (benchmark.slug, str(benchmark))]
    if filters.run is not None:
        selected = [benchmark for benchmark in benchmarks if runs.filter(pk=filters.run, benchmark=benchmark).exists()]
    levels: list[str] = []
    if len(selected) == 1:
        levels = list(selected[0].capabilities.filter(parent=None).values_list("name", flat=True))
    judges = Judge.objects.filter(pk__in=runs.values("judge")).order_by("name")
    return {
        "judges": [(judge.name, judge.titled) for judge in judges],
        "protocols": sorted(runs.values_list("protocol", flat=True).distinct()),
        "benchmarks": [(str(benchmark), benchmark.title) for benchmark in benchmarks],
        "levels": levels,
    }
