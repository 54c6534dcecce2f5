"""The sample list: filters, counts and pages that stay fast at 100,000 samples.

Facets and totals come from the counts by every combination of the list's filters (``groups_of``). A page starts where
the previous one ended, so the last is as fast as the first.
"""

import string
from collections import Counter
from dataclasses import dataclass, field
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
from bank.samples.benchmarks import Group, groups_of
from bank.samples.capabilities import Node, tree_of

PAGE = 50
BY_POSITION = keyset.Keyset("position")
ASCII_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
STRETCH, MOST_AT_ONCE = 500, 8000
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
    def of(cls, query: QueryDict) -> "Filter":
        def get(name: str) -> str:
            return query.get(name, "").strip()[:200].replace("\x00", "")

        return cls(
            level=get("level"),
            capability=whole_number(get("capability")),
            question_type=get("question_type"),
            split=get("split"),
            status=get("status"),
            hint=get("hint") if get("hint") in ("any", *quality.BY_NAME) else "",
            text=get("q"),
        )

    @property
    def active(self) -> bool:
        return self != Filter()

    def address(self) -> str:
        """The same filters as a query string."""
        names = ("level", "capability", "question_type", "split", "status", "hint")
        values = {name: getattr(self, name) for name in names} | {"q": self.text}
        return urlencode({name: value for name, value in values.items() if value})


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
    first: int = 0  # the number of the first row, where it is known
    before: str = ""
    after: str = ""
    responses: dict[int, int] = field(default_factory=dict)
    statuses: Counter[str] = field(default_factory=Counter)  # of all samples, ignoring the filter


def _subtrees(nodes: list[Node], chosen: Filter) -> tuple[set[int] | None, set[int] | None]:
    """Ids of capabilities below the chosen level and below the chosen node; None if nothing is chosen."""
    level = node = None
    if chosen.level:
        level = {pk for n in nodes if n.depth == 0 and n.capability.name == chosen.level for pk in n.below}
    if chosen.capability:
        node = {pk for n in nodes if n.capability.pk == chosen.capability for pk in n.below}
    return level, node


def _keeps(group: Group, chosen: Filter, level: set[int] | None, node: set[int] | None, besides: str) -> bool:
    """Whether a group passes every filter except the one named ``besides``."""
    capability, question_type, split, status, mask = group
    return not (
        (besides != "level" and level is not None and capability not in level)
        or (besides != "capability" and node is not None and capability not in node)
        or (besides != "question_type" and chosen.question_type and question_type != chosen.question_type)
        or (besides != "split" and chosen.split and split != chosen.split)
        or (besides != "status" and chosen.status and status != chosen.status)
        or (besides != "hint" and chosen.hint and not _hinted(mask, chosen.hint))
    )


def _hinted(mask: int, name: str) -> bool:
    return bool(mask) if name == "any" else bool(mask & quality.BY_NAME[name].bit)


def _restrict(samples: QuerySet[Sample], chosen: Filter, ids: set[int] | None) -> QuerySet[Sample]:
    for name in ("question_type", "split", "status"):
        if value := getattr(chosen, name):
            samples = samples.filter(**{name: value})
    if ids is not None:
        samples = samples.filter(capability__in=sorted(ids))
    if chosen.hint == "any":
        samples = samples.filter(quality_hints__gt=0)
    elif chosen.hint:
        samples = samples.filter(quality_hints__in=quality.masks_with(quality.BY_NAME[chosen.hint]))
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


def _both(level: set[int] | None, node: set[int] | None) -> set[int] | None:
    if level is None or node is None:
        return level if node is None else node
    return level & node


def chosen_samples(benchmark: Benchmark, chosen: Filter) -> QuerySet[Sample]:
    """All samples that pass the filter, in order."""
    nodes = tree_of(benchmark, counts={})
    samples = _restrict(benchmark.samples.all(), chosen, _both(*_subtrees(nodes, chosen)))
    return (holding(samples, chosen.text) if chosen.text else samples).order_by("position", "pk")


def count_chosen(benchmark: Benchmark, chosen: Filter) -> int:
    """The exact number of samples that pass the filter."""
    if chosen.text:
        return chosen_samples(benchmark, chosen).order_by().count()
    level, node = _subtrees(tree_of(benchmark, counts={}), chosen)
    return sum(n for group, n in groups_of(benchmark).items() if _keeps(group, chosen, level, node, ""))


def list_samples(benchmark: Benchmark, chosen: Filter, *, after: str = "", before: str = "") -> Listing:
    """The page after, or before, a place; the first page without either."""
    groups = groups_of(benchmark)
    nodes = tree_of(benchmark)
    level, node = _subtrees(nodes, chosen)
    facets = _facets(groups, nodes, chosen, level, node)
    passing = sum(n for group, n in groups.items() if _keeps(group, chosen, level, node, ""))
    samples = _restrict(benchmark.samples.all(), chosen, _both(level, node))
    capped = False
    if chosen.text:
        matches = list(holding(samples, chosen.text).order_by()[: MOST_COUNTED + 1].values_list("pk", flat=True))
        capped = len(matches) > MOST_COUNTED
        passing = min(len(matches), MOST_COUNTED)
        if not capped:  # the texts have been searched already
            samples = benchmark.samples.filter(pk__in=matches)
    listing = Listing([], facets, passing, capped)
    for group, count in groups.items():
        listing.statuses[group[3]] += count
    if passing:
        # A rare choice is sorted using the facet index; walking in order would visit every sample.
        rare = not chosen.text and passing * 20 < sum(groups.values())
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


def _facets(
    groups: Counter[Group], nodes: list[Node], chosen: Filter, level: set[int] | None, node: set[int] | None
) -> list[Facet]:
    """Values with the count that choosing them would give under the other filters."""

    def counted(name: str, place: int) -> Counter[Any]:
        counts_by_value: Counter[Any] = Counter()
        for group, count in groups.items():
            if _keeps(group, chosen, level, node, name):
                counts_by_value[group[place]] += count
        return counts_by_value

    facets = []
    roots = counted("level", 0)
    values = [(n.capability.name, n.capability.name, sum(roots[pk] for pk in n.below)) for n in nodes if n.depth == 0]
    facets.append(Facet("level", "Level", values, chosen.level))
    tree = counted("capability", 0)
    inner = [n for n in nodes if level is None or n.capability.pk in level]
    values = [(str(n.capability.pk), f"{n.indent}{n.capability.name}", sum(tree[pk] for pk in n.below)) for n in inner]
    facets.append(Facet("capability", "Capability", values, str(chosen.capability or "")))
    for place, (name, label) in enumerate((("question_type", "Question"), ("split", "Split")), start=1):
        counts_by_value = counted(name, place)
        facets.append(
            Facet(name, label, [(v, v, n) for v, n in sorted(counts_by_value.items()) if v], getattr(chosen, name))
        )
    counts_by_value = counted("status", 3)
    values = [
        (s.value, s.label.lower(), counts_by_value[s.value])
        for s in Sample.Status
        if counts_by_value[s.value] or s == chosen.status
    ]
    facets.append(Facet("status", "Status", values, chosen.status))
    masks = counted("hint", 4)
    values = [("any", "any", sum(n for mask, n in masks.items() if mask))]
    for hint in quality.HINTS:
        values.append((hint.name, hint.title, sum(n for mask, n in masks.items() if mask & hint.bit)))
    values = [value for value in values if value[2] or value[0] == chosen.hint]
    facets.append(Facet("hint", "Hints", values, chosen.hint))
    always = {"hint"}
    return [f for f in facets if f.chosen or len(f.values) > 1 or (f.name in always and f.values)]
