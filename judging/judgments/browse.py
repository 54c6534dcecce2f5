"""The list of judgments: filters and orders whose pages stay fast with a million rows.

Every order has an index within a run, so a page is merged from the first rows of each run that it may come from, and
starts where the page before ended. What no index covers (a level, a side, what a viewer may not see) is searched for in
a bounded stretch. A page that ends before it is full says so and can be continued. Nothing is counted.
"""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Count, Q, QuerySet

from accounts.rules import Viewer, allowed
from bank import guard
from bank.database import keyset
from bank.database.keyset import Place
from bank.forms.fields import whole_number
from bank.models import Item, Sample, visible_stretches, with_answers
from judging.judgments import analyses
from judging.judgments.filters import ORDERS, STATUSES, JudgmentFilters, Order, benchmarks_named
from judging.models import Judgment, Run

PAGE = 50
SEARCHED = 20_000  # judgments that one page looks at, over all runs
MOST_RUNS = 400  # newest runs, if the filters choose none
STRETCH = 4_000  # judgments read at once when searching for items whose verdicts differ
VERDICT = ("choice", "score", "option", "answer", "ranking")
GROUPED_BY = {"orders": "repeat", "repeats": "order"}  # what stays the same while the other is compared


@dataclass(slots=True)
class Listing:
    """A page of judgments. ``after`` is where the next page starts, "" at the end."""

    rows: list[Judgment] = field(default_factory=list)
    after: str = ""
    unfinished: bool = False  # the search stopped here; there may be more further on
    many_runs: bool = False  # only the newest runs were searched

    @property
    def has_figures(self) -> bool:
        """Whether the viewer may see tokens, cost or seconds of any row."""
        figures = ("prompt_tokens", "cost", "latency")
        return any(getattr(row, name) is not None for row in self.rows for name in figures)

    @property
    def held(self) -> bool:
        return any(row.run.held for row in self.rows)


def listing(filters: JudgmentFilters, viewer: Viewer, *, after: str = "") -> Listing:
    """The page that starts after a position, as given by the page before."""
    selection = _Selection.from_filters(filters, viewer)
    page = Listing(many_runs=selection.many_runs)
    if selection.is_empty:
        return page
    search = selection.differing if filters.differs else selection.sorted
    keys, page.after, page.unfinished = search(after)
    page.rows = rows(keys, viewer)
    return page


def rows(keys: Sequence[int], viewer: Viewer) -> list[Judgment]:
    """Judgments by primary key, in this order, with everything a list shows of them."""
    seen = Judgment.objects.seen_by(viewer).filter(pk__in=keys)
    judgments = seen.select_related("run__judge", "run__benchmark", "item__sample")
    judgments = judgments.prefetch_related("item__sample__images", with_answers("item__"))
    by_key = {row.pk: row for row in analyses.as_seen(judgments.defer("analysis", "raw"), viewer)}
    return [by_key[key] for key in keys if key in by_key]


def all_keys(filters: JudgmentFilters, viewer: Viewer) -> Iterator[list[int]]:
    """Keys of all judgments of a selection, in chunks, run by run in the order they were made: for exports."""
    selection = _Selection.from_filters(filters, viewer, all_runs=True)
    if selection.is_empty:
        return
    if filters.differs:
        after, more = "", True
        while more:
            keys, after, _ = selection.differing(after)
            yield keys
            more = bool(after)
        return
    for source in selection.sources():
        last = 0
        judgments = selection.restricted(Judgment.objects.seen_by(viewer).filter(**source)).order_by("pk")
        while keys := list(judgments.filter(pk__gt=last).values_list("pk", flat=True)[:1_000]):
            yield keys
            last = keys[-1]


def _of_runs(filters: JudgmentFilters) -> dict[str, Any]:
    """The conditions on runs."""
    conditions: dict[str, Any] = {"pk": filters.run, "judge__name": filters.judge, "protocol": filters.protocol}
    if filters.benchmark:
        conditions["benchmark__in"] = benchmarks_named(filters.benchmark)
    return {name: value for name, value in conditions.items() if value not in ("", None)}


@dataclass(frozen=True, slots=True)
class _Selection:
    """Filters with their runs and items looked up. ``runs`` and ``items`` are None if any will do."""

    filters: JudgmentFilters
    viewer: Viewer
    runs: list[int] | None
    items: list[int] | None
    many_runs: bool = False
    unseen: Sequence[int] = ()  # runs, see RunQuerySet.unseen_by

    @classmethod
    def from_filters(cls, filters: JudgmentFilters, viewer: Viewer, *, all_runs: bool = False) -> "_Selection":
        unseen = Run.objects.unseen_by(viewer)
        conditions = _of_runs(filters)
        runs = Run.objects.visible_to(viewer).exclude(pk__in=unseen).filter(**conditions)
        items = _items(filters)
        by_primary_key = not ORDERS[filters.sort].column and not filters.differs and filters.show in ("", "verdicts")
        if not conditions and (by_primary_key or items is not None):
            return cls(filters, viewer, None, items, unseen=unseen)
        most = None if all_runs else MOST_RUNS
        keys = list(runs.order_by("-pk").values_list("pk", flat=True)[: most and most + 1])
        return cls(filters, viewer, keys[:most], items, bool(most) and len(keys) > MOST_RUNS)

    @property
    def is_empty(self) -> bool:
        return self.runs == [] or self.items == []

    def sources(self) -> Sequence[dict[str, Any]]:
        """Filters to search one by one, each through an index of its own."""
        if self.items is not None:
            return [{"item__in": self.items} | ({} if self.runs is None else {"run__in": self.runs})]
        return visible_stretches(Judgment) if self.runs is None else [{"run": run} for run in self.runs]

    def indexed(self, judgments: QuerySet[Judgment]) -> QuerySet[Judgment]:
        """The conditions that a source's index covers."""
        order = ORDERS[self.filters.sort]
        if order.column:
            judgments = judgments.filter(**{f"{order.column}__isnull": False})
            least = self.filters.seconds if order.column == "latency" else self.filters.cost
            return judgments if least is None else judgments.filter(**{f"{order.column}__gte": least})
        return self._shown(judgments)

    def restricted(self, judgments: QuerySet[Judgment]) -> QuerySet[Judgment]:
        """All conditions besides run, judge, protocol, benchmark and sample."""
        filters = self.filters
        judgments = self._shown(judgments)
        if filters.level:
            judgments = judgments.filter(_in_level(filters.level))
        if filters.seconds is not None:
            judgments = judgments.filter(latency__gte=filters.seconds)
        return judgments if filters.cost is None else judgments.filter(cost__gte=filters.cost)

    def _shown(self, judgments: QuerySet[Judgment]) -> QuerySet[Judgment]:
        show = self.filters.show
        if show == "verdicts":
            return judgments.filter(status=Judgment.Status.OK)
        if show == "failed":
            return judgments.filter(status__in=list(STATUSES))
        if show in STATUSES:
            return judgments.filter(status=show)
        return judgments.filter(choice=show) if show else judgments

    @property
    def has_unindexed(self) -> bool:
        """Whether rows may have to be searched for a condition that no index covers."""
        filters = self.filters
        column = ORDERS[filters.sort].column
        least = {"latency": filters.cost, "cost": filters.seconds}.get(column, filters.seconds or filters.cost)
        return bool(filters.level or least or (column and filters.show) or not allowed(self.viewer, "read-hidden"))

    # -- in an order --------------------------------------------------------------------------------------------

    def sorted(self, after: str) -> tuple[list[int], str, bool]:
        """Keys of a page, where the next one starts, and whether the search stopped before the page was full."""
        order, position = ORDERS[self.filters.sort], keyset.read(after)
        sources = self.sources()
        limit = max(1_000, SEARCHED // len(sources)) if self.has_unindexed and self.items is None else None
        first_rows: list[list[Place]] = []
        ends: list[Place] = []
        for source in sources:
            # Where a page ends tells how many rows there are: rows of unseen runs do not count, and below staff all
            # others do, whatever their verdict.
            with guard.working():
                stored = Judgment.objects.filter(**source).exclude(run__in=self.unseen)
            if order.column or allowed(self.viewer, "read-hidden"):
                stretch = order.keyset.beyond(self.indexed(stored), position)
            else:
                stretch = order.keyset.beyond(stored, position)
            visible = Judgment.objects.seen_by(self.viewer).filter(**source)
            matching = self.restricted(order.keyset.beyond(self.indexed(visible), position))
            if limit is not None and (last := _positions(stretch, order, limit, limit + 1)):
                ends += last
                matching = order.keyset.up_to(matching, last[0])
            first_rows.append(_positions(matching, order, 0, PAGE + 1))
        sign = -1 if order.descending else 1

        def rank(position: Place) -> tuple[float, int]:
            return sign * position[0], sign * position[1]

        # Beyond the nearest end of a search, another source might still have a row that belongs in between.
        end = min(ends, key=rank) if ends else None
        merged = [row for row in heapq.merge(*first_rows, key=rank) if end is None or rank(row) <= rank(end)]
        if len(merged) > PAGE:
            return [pk for _, pk in merged[:PAGE]], keyset.written(merged[PAGE - 1]), False
        return [pk for _, pk in merged], keyset.written(end) if end else "", end is not None

    # -- items whose verdicts differ ----------------------------------------------------------------------------

    def differing(self, after: str) -> tuple[list[int], str, bool]:
        """As ``sorted``, for the judgments of items whose verdicts differ: by run, newest first, and item."""
        from_run, from_item = _parse_run_and_item(after)
        page: list[int] = []
        searched = 0
        for run in self.runs or []:
            if from_run is not None and run > from_run:
                continue
            last = from_item if run == from_run else 0
            while stretch := self._stretch(run, last):
                last = stretch[-1]
                searched += len(stretch)
                for item, keys in self._differing_in(run, stretch):
                    page += keys
                    if len(page) >= PAGE:
                        return page, f"{run}.{item}", False
                if searched >= SEARCHED:
                    return page, f"{run}.{last}", True
        return page, "", False

    @guard.working()
    def _stretch(self, run: int, last: int) -> list[int]:
        """The items of the run's next judgments, one entry per judgment, without an incomplete last item."""
        judgments = self._of_items(Judgment.objects.filter(run=run, item__gt=last)).order_by("item")
        items = list(judgments.values_list("item_id", flat=True)[:STRETCH])
        if len(items) == STRETCH and items[0] != items[-1]:
            items = [item for item in items if item != items[-1]]
        return items

    def _of_items(self, judgments: QuerySet[Judgment]) -> QuerySet[Judgment]:
        return judgments if self.items is None else judgments.filter(item__in=self.items)

    def _differing_in(self, run: int, stretch: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
        seen = Judgment.objects.seen_by(self.viewer).filter(run=run, item__gte=stretch[0], item__lte=stretch[-1])
        judgments = self._of_items(seen)
        if self.filters.level:
            judgments = judgments.filter(_in_level(self.filters.level))
        distinct = {f"distinct_{name}": Count(name, distinct=True) for name in VERDICT}
        several = Q()
        for name in distinct:
            several |= Q(**{f"{name}__gt": 1})
        verdicts = judgments.filter(status=Judgment.Status.OK).order_by()
        groups = verdicts.values("item", GROUPED_BY[self.filters.differs]).annotate(**distinct)
        items = sorted(set(groups.filter(several).values_list("item", flat=True)))
        keys: dict[int, list[int]] = {item: [] for item in items}
        differing = judgments.filter(item__in=items).order_by("item", "repeat", "order")
        for item, key in differing.values_list("item_id", "pk"):
            keys[item].append(key)
        yield from keys.items()


def _in_level(level: str) -> Q:
    path = "item__sample__capability__path"
    return Q((path, level)) | Q((f"{path}__startswith", f"{level} / "))


def _items(filters: JudgmentFilters) -> list[int] | None:
    """The items of the chosen sample or item number; None if neither is chosen."""
    if filters.item is None and not filters.sample:
        return None
    items = Item.objects.order_by()
    if filters.item is not None:
        items = items.filter(pk=filters.item)
    if filters.sample:
        samples = Sample.objects.filter(key=filters.sample)
        if filters.benchmark:
            samples = samples.filter(benchmark__in=benchmarks_named(filters.benchmark))
        items = items.filter(sample__in=list(samples.order_by().values_list("pk", flat=True)[:200]))
    return list(items.values_list("pk", flat=True)[:5_000])


def _positions(judgments: QuerySet[Judgment], order: Order, start: int, stop: int) -> list[Place]:
    ordered = judgments.order_by(*order.keyset.ordering())[start:stop]
    if order.column:
        return list(ordered.values_list(order.column, "pk"))
    return [(0.0, pk) for pk in ordered.values_list("pk", flat=True)]


def _parse_run_and_item(text: str) -> tuple[int | None, int]:
    run_text, _, item_text = text.partition(".")
    run = whole_number(run_text)
    return (None, 0) if run is None else (run, whole_number(item_text) or 0)
