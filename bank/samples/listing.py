"""The sample list: filters, counts and pages that stay fast at 100,000 samples.

Facets and totals come from the counts by every combination of the list's filters (``groups_of``). A page starts where
the previous one ended, so the last is as fast as the first.
"""

import string
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any
from urllib.parse import urlencode

from django.db import connection
from django.db.models import Count, F, Q, QuerySet
from django.db.models.functions import Collate, Lower
from django.http import QueryDict

from bank.database import keyset
from bank.forms.fields import whole_number
from bank.models import Benchmark, Response, Sample
from bank.samples import quality
from bank.samples.benchmarks import GROUPED, Group, groups_of
from bank.samples.capabilities import Node, tree_of

PAGE = 50
BY_POSITION = keyset.Keyset("position")
ASCII_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
STRETCH, MOST_AT_ONCE = 500, 8000
PARAMETERS = ("level", "capability", "question_type", "split", "status", "hint", "q")
MOST_COUNTED = 1000  # matches of a text that are counted; beyond, the list says "more than"


@dataclass(frozen=True, slots=True)
class Filter:
    """The filters of the list, as given in the URL."""

    level: str = ""
    capability: int | None = None
    question_type: str = ""
    split: str = ""
    status: str = ""
    hint: str = ""  # a name of quality.HINTS, or "any"
    text: str = ""

    @classmethod
    def from_query(cls, query: QueryDict) -> "Filter":
        typed = {name: query.get(name, "").strip()[:200].replace("\x00", "") for name in PARAMETERS}
        capability, text = whole_number(typed.pop("capability")), typed.pop("q")
        if typed["hint"] not in ("any", *quality.BY_NAME):
            typed["hint"] = ""
        return cls(capability=capability, text=text, **typed)

    @property
    def active(self) -> bool:
        return self != Filter()

    def address(self) -> str:
        """The same filters as a query string."""
        values = asdict(self)
        values["q"] = values["text"]
        return urlencode({name: values[name] for name in PARAMETERS if values[name]})


@dataclass(frozen=True, slots=True)
class Facet:
    """One filter of the list: its parameter, its name, and its values with their labels and counts."""

    name: str
    label: str
    values: list[tuple[str, str, int]]
    chosen: str


@dataclass(slots=True)
class Listing:
    """A page of samples with its facets."""

    rows: list[Sample]
    facets: list[Facet]
    total: int
    capped: bool = False  # the real total is higher
    before: str = ""
    after: str = ""
    responses: dict[int, int] = field(default_factory=dict)
    statuses: Counter[str] = field(default_factory=Counter)  # of all samples, ignoring the filter


Allowed = dict[str, tuple[str, set[Any]]]  # by filter: a column of GROUPED, and its values that pass


def _allowed(chosen: Filter, nodes: list[Node]) -> Allowed:
    """The values that each chosen filter lets pass, but for the text."""
    allowed: Allowed = {}
    if chosen.level:
        allowed["level"] = "capability", _below_level(chosen.level, nodes)
    if chosen.capability:
        below = next((node.below for node in nodes if node.capability.pk == chosen.capability), [])
        allowed["capability"] = "capability", set(below)
    for name in ("question_type", "split", "status"):
        if value := getattr(chosen, name):
            allowed[name] = name, {value}
    if chosen.hint:
        allowed["hint"] = "quality_hints", _masks(chosen.hint)
    return allowed


def _masks(hint: str) -> set[int]:
    hints = quality.HINTS if hint == "any" else [quality.BY_NAME[hint]]
    return {mask for each in hints for mask in quality.masks_with(each)}


def _below_level(name: str, nodes: list[Node]) -> set[int]:
    roots = [node for node in nodes if node.depth == 0 and node.capability.name == name]
    return {pk for root in roots for pk in root.below}


def _passing(groups: Counter[Group], allowed: Allowed, *, besides: str = "") -> Counter[Group]:
    """The groups that pass every filter except the one named ``besides``."""
    tests = [(GROUPED.index(column), values) for name, (column, values) in allowed.items() if name != besides]
    return Counter({group: n for group, n in groups.items() if all(group[at] in values for at, values in tests)})


def _restrict(samples: QuerySet[Sample], allowed: Allowed) -> QuerySet[Sample]:
    for column, values in allowed.values():
        samples = samples.filter(**{f"{column}__in": sorted(values)})
    return samples


def holding(samples: QuerySet[Sample], text: str) -> QuerySet[Sample]:
    """Samples whose instruction contains the text, or whose key it is. Criteria are never searched.

    Both databases ignore the case of ASCII letters only: SQLite's LIKE knows no others, and PostgreSQL reads 100,000
    instructions three times as fast with the collation "C".
    """
    if connection.vendor == "postgresql":
        samples = samples.alias(folded=Lower(Collate("instruction", "C")))
        return samples.filter(Q(folded__contains=text.translate(ASCII_LOWER)) | Q(key=text))
    return samples.filter(Q(instruction__icontains=text) | Q(key=text))


def chosen_samples(benchmark: Benchmark, chosen: Filter) -> QuerySet[Sample]:
    """All samples that pass the filter, in order."""
    samples = _restrict(benchmark.samples.all(), _allowed(chosen, tree_of(benchmark, counts={})))
    return (holding(samples, chosen.text) if chosen.text else samples).order_by("position", "pk")


def count_chosen(benchmark: Benchmark, chosen: Filter) -> int:
    """The exact number of samples that pass the filter."""
    if chosen.text:
        return chosen_samples(benchmark, chosen).order_by().count()
    return _passing(groups_of(benchmark), _allowed(chosen, tree_of(benchmark, counts={}))).total()


def list_samples(benchmark: Benchmark, chosen: Filter, *, after: str = "", before: str = "") -> Listing:
    """The page after, or before, a place; the first page without either."""
    groups = groups_of(benchmark)
    nodes = tree_of(benchmark, counts={})
    allowed = _allowed(chosen, nodes)
    passing = _passing(groups, allowed).total()
    samples = _restrict(benchmark.samples.all(), allowed)
    capped = False
    if chosen.text:
        matches = list(holding(samples, chosen.text).order_by()[: MOST_COUNTED + 1].values_list("pk", flat=True))
        capped = len(matches) > MOST_COUNTED
        passing = min(len(matches), MOST_COUNTED)
        if not capped:  # the texts have been searched already
            samples = benchmark.samples.filter(pk__in=matches)
    statuses = Counts(groups, {}).of("status", "status")
    listing = Listing([], _facets(Counts(groups, allowed), nodes, chosen), passing, capped, statuses=statuses)
    if passing:
        # A rare choice is sorted using the facet index; walking in order would visit every sample.
        rare = not chosen.text and passing * 20 < groups.total()
        text = chosen.text if capped else ""
        _page(listing, samples, after=keyset.read(after), before=keyset.read(before), rare=rare, text=text)
    return listing


def _page(
    listing: Listing,
    samples: QuerySet[Sample],
    *,
    after: keyset.Place | None,
    before: keyset.Place | None,
    rare: bool,
    text: str,
) -> None:
    """``text`` is a search text that very many samples contain; only those are wanted."""
    backwards = before is not None and after is None
    place = before if backwards else after
    samples = BY_POSITION.beyond(samples, place, backwards=backwards)
    order: list[Any] = BY_POSITION.ordering(backwards=backwards)
    if rare:
        order[0] = (F("position") + 0).desc() if backwards else (F("position") + 0).asc()
    ordered = samples.order_by(*order).values_list("pk", flat=True)
    ids = _walk(ordered, text) if text else list(ordered[: PAGE + 1])
    ids, earlier, later = keyset.cut(ids, PAGE, begun=place is not None, backwards=backwards)
    rows = Sample.objects.filter(pk__in=ids).select_related("capability").prefetch_related("images")
    listing.rows = sorted(rows.defer("metadata", "options"), key=lambda sample: (sample.position, sample.pk))
    if listing.rows:
        first, last = listing.rows[0], listing.rows[-1]
        listing.before = keyset.written((first.position, first.pk)) if earlier else ""
        listing.after = keyset.written((last.position, last.pk)) if later else ""
    counts = Response.objects.filter(sample__in=ids).order_by().values_list("sample").annotate(n=Count("pk"))
    listing.responses = dict(counts)


def _walk(ordered: "QuerySet[Sample, int]", text: str) -> list[int]:
    """The first samples that contain a very common text, searched in order, batch by batch.

    In a single query PostgreSQL, which assumes that any text is rare, would read all of them and sort the result.
    """
    ids: list[int] = []
    start, size = 0, STRETCH
    while len(ids) <= PAGE:
        stretch = list(ordered[start : start + size])
        if not stretch:
            break
        hits = set(holding(Sample.objects.filter(pk__in=stretch), text).order_by().values_list("pk", flat=True))
        ids += [pk for pk in stretch if pk in hits]
        start, size = start + size, min(2 * size, MOST_AT_ONCE)
    return ids[: PAGE + 1]


@dataclass(frozen=True, slots=True)
class Counts:
    """How many samples a value of a filter would give under the other filters."""

    groups: Counter[Group]
    allowed: Allowed

    def of(self, name: str, column: str) -> Counter[Any]:
        counts: Counter[Any] = Counter()
        for group, n in _passing(self.groups, self.allowed, besides=name).items():
            counts[group[GROUPED.index(column)]] += n
        return counts


def _facets(counts: Counts, nodes: list[Node], chosen: Filter) -> list[Facet]:
    """The filters that leave something to choose."""
    facets = [*_tree_facets(counts, nodes, chosen), *_text_facets(counts, chosen), *_state_facets(counts, chosen)]
    return [f for f in facets if f.chosen or len(f.values) > 1 or (f.name == "hint" and f.values)]


def _tree_facets(counts: Counts, nodes: list[Node], chosen: Filter) -> list[Facet]:
    roots, tree = counts.of("level", "capability"), counts.of("capability", "capability")
    _, of_level = counts.allowed.get("level", ("", {node.capability.pk for node in nodes}))
    levels = [(n.capability.name, n.capability.name, _below(roots, n)) for n in nodes if n.depth == 0]
    capabilities = [
        (str(n.capability.pk), f"{n.indent}{n.capability.name}", _below(tree, n))
        for n in nodes
        if n.capability.pk in of_level
    ]
    return [
        Facet("level", "Level", levels, chosen.level),
        Facet("capability", "Capability", capabilities, str(chosen.capability or "")),
    ]


def _below(counts: Counter[Any], node: Node) -> int:
    return sum(counts[pk] for pk in node.below)


def _text_facets(counts: Counts, chosen: Filter) -> Iterator[Facet]:
    for name, label in (("question_type", "Question"), ("split", "Split")):
        values = sorted(counts.of(name, name).items())
        yield Facet(name, label, [(value, value, n) for value, n in values if value], getattr(chosen, name))


def _state_facets(counts: Counts, chosen: Filter) -> Iterator[Facet]:
    statuses, masks = counts.of("status", "status"), counts.of("hint", "quality_hints")
    states = [(status.value, status.label.lower(), statuses[status]) for status in Sample.Status]
    hints = [("any", "any", masks.total() - masks[0])]
    hints += [(h.name, h.title, sum(masks[mask] for mask in quality.masks_with(h))) for h in quality.HINTS]
    for name, label, values in (("status", "Status", states), ("hint", "Hints", hints)):
        value = getattr(chosen, name)
        yield Facet(name, label, [v for v in values if v[2] or v[0] == value], value)
