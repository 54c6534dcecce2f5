"""What a list of judgments shows and in which order, as its address says it; and what there is to choose from."""

from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.http import QueryDict

from accounts.rules import Viewer, allowed
from bank.database.keyset import Keyset
from bank.forms.fields import whole_number
from bank.models import Benchmark
from judging.models import Judge, Run
from judging.runs.queries import STATUSES

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
    """How a list is sorted: by a column, or by the time of making where there is none."""

    words: str
    column: str = ""
    falling: bool = True

    @property
    def keyset(self) -> Keyset:
        return Keyset(self.column, descending=self.falling)


ORDERS = {
    "newest": Order("newest first"),
    "oldest": Order("oldest first", falling=False),
    "slowest": Order("slowest first", "latency"),
    "dearest": Order("dearest first", "cost"),
}


def orders_for(viewer: Viewer) -> dict[str, Order]:
    """The orders that this viewer may choose."""
    return {name: order for name, order in ORDERS.items() if not order.column or allowed(viewer, "read-calls")}


FACTS = ("run", "judge", "protocol", "benchmark", "level", "sample", "item", "show", "differs", "seconds", "cost")


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a list shows, as the address says it; empty values do not filter."""

    run: int | None = None
    judge: str = ""
    protocol: str = ""
    benchmark: str = ""  # SLUG or SLUG@VERSION
    level: str = ""
    sample: str = ""  # a key
    item: int | None = None
    show: str = ""
    differs: str = ""  # orders or repeats: items whose verdicts do
    seconds: float | None = None  # at least so slow
    cost: float | None = None  # at least so dear
    sort: str = "newest"

    @classmethod
    def of(cls, query: QueryDict, viewer: Viewer) -> "Chosen":
        """What an address asks for. By duration and price only staff choose and sort: they tell lengths of criteria."""

        def text(name: str) -> str:
            return query.get(name, "").strip()[:200].replace("\x00", "")

        def one_of(name: str, known: Any, otherwise: str = "") -> str:
            return text(name) if text(name) in known else otherwise

        return cls(
            run=whole_number(text("run")),
            judge=text("judge"),
            protocol=text("protocol"),
            benchmark=text("benchmark"),
            level=text("level"),
            sample=text("sample"),
            item=whole_number(text("item")),
            show=one_of("show", SHOWS),
            differs=one_of("differs", DIFFERS),
            seconds=amount(text("seconds")) if allowed(viewer, "read-calls") else None,
            cost=amount(text("cost")) if allowed(viewer, "read-calls") else None,
            sort=one_of("sort", orders_for(viewer), "newest"),
        )

    @property
    def active(self) -> bool:
        return replace(self, sort="newest") != Chosen()

    def address(self, **changes: Any) -> str:
        """The same list as a query string, with some values changed."""
        given = {name: getattr(self, name) for name in FACTS} | {"sort": self.sort} | changes
        if given["sort"] == "newest":
            given["sort"] = ""
        return urlencode({name: _written(value) for name, value in given.items() if value not in ("", None)})


def _written(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def amount(text: str) -> float | None:
    try:
        number = float(text) if text.isascii() and len(text) < 20 else -1.0
    except ValueError:
        return None
    return number if 0 < number < 1e9 else None


def benchmarks_named(name: str) -> QuerySet[Benchmark]:
    slug, _, version = name.partition("@")
    found = Benchmark.objects.filter(slug=slug)
    return found.filter(version=version) if version else found


@dataclass(frozen=True, slots=True)
class Choices:
    """What the filters offer."""

    judges: list[str]
    protocols: list[str]
    benchmarks: list[tuple[str, str]]  # name and title
    levels: list[str]  # of the one benchmark that is chosen, itself or by its run


def choices(chosen: Chosen, viewer: Viewer) -> Choices:
    runs = Run.objects.visible_to(viewer).order_by()
    benchmarks = list(Benchmark.objects.filter(pk__in=runs.values("benchmark")).order_by("title", "version"))
    one = [benchmark for benchmark in benchmarks if chosen.benchmark in (benchmark.slug, str(benchmark))]
    if chosen.run is not None:
        one = [benchmark for benchmark in benchmarks if runs.filter(pk=chosen.run, benchmark=benchmark).exists()]
    levels: list[str] = []
    if len(one) == 1:
        levels = list(one[0].capabilities.filter(parent=None).values_list("name", flat=True))
    return Choices(
        judges=list(Judge.objects.filter(pk__in=runs.values("judge")).order_by("name").values_list("name", flat=True)),
        protocols=sorted(runs.values_list("protocol", flat=True).distinct()),
        benchmarks=[(str(benchmark), benchmark.title) for benchmark in benchmarks],
        levels=levels,
    )
