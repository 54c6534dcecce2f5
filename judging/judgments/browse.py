"""The list of judgments: filters and orders whose pages stay quick at a million.

Every order has an index below each run, so a page is merged from the tops of the runs it may come from and begins where
the one before ended. Whatever no index holds (a level, a side, what a viewer may not see) is looked for in a bounded
stretch; a page that ends before it is full says so and goes on from there. Nothing is counted.
"""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Count, Q, QuerySet

from accounts.rules import Viewer, allowed
from bank.database import keyset
from bank.database.keyset import Place
from bank.forms.fields import whole_number
from bank.models import Item, Sample
from judging.judgments import analyses
from judging.judgments.filters import ORDERS, Chosen, Order, benchmarks_named
from judging.models import Judgment, Run
from judging.runs.queries import STATUSES

PAGE = 50
LOOK = 20_000  # judgments that one page looks through, over all runs
MOST_RUNS = 400  # newest ones, where none is chosen
STRETCH = 4_000  # judgments read at once in the search for items whose verdicts differ
VERDICT = ("choice", "score", "option", "answer", "ranking")

BESIDE = {"orders": "repeat", "repeats": "order"}  # what stays the same where the other is compared


@dataclass(slots=True)
class Listing:
    """A page of judgments. ``after`` is where the next one begins, "" at the end."""

    rows: list[Judgment] = field(default_factory=list)
    after: str = ""
    unfinished: bool = False  # the page ends where the look ended: what follows may hold more
    many_runs: bool = False  # only the newest runs were looked at

    @property
    def has_figures(self) -> bool:
        """Whether tokens, cost or seconds of any row are known to who looks."""
        figures = ("prompt_tokens", "cost", "latency")
        return any(getattr(row, name) is not None for row in self.rows for name in figures)

    @property
    def used_criteria(self) -> bool:
        return any(row.run.used_criteria for row in self.rows)


def listing(chosen: Chosen, viewer: Viewer, *, after: str = "") -> Listing:
    """The page that begins after a place, which the page before gave."""
    view = _View.of(chosen, viewer)
    page = Listing(many_runs=view.many)
    if view.nothing:
        return page
    if chosen.differs:
        keys, page.after, page.unfinished = view.differing(after)
    else:
        keys, page.after, page.unfinished = view.sorted(after)
    page.rows = rows(keys, viewer)
    return page


def rows(keys: Sequence[int], viewer: Viewer) -> list[Judgment]:
    """Judgments by key, in this order, with all that a row of a list tells."""
    found = Judgment.objects.filter(pk__in=keys).select_related("run__judge", "run__benchmark", "item__sample")
    found = found.prefetch_related("item__sample__images", "item__places__response__model").defer("analysis", "raw")
    known = {row.pk: row for row in analyses.as_seen(found, viewer)}
    return [known[key] for key in keys if key in known]


def everything(chosen: Chosen, viewer: Viewer) -> Iterator[list[int]]:
    """Keys of all judgments of a selection, run by run in the order of making, in pieces, for a file."""
    view = _View.of(chosen, viewer, all_runs=True)
    if view.nothing:
        return
    if chosen.differs:
        after, going = "", True
        while going:
            keys, after, _ = view.differing(after)
            yield keys
            going = bool(after)
        return
    for source in view.sources():
        last = 0
        found = view.restricted(Judgment.objects.visible_to(viewer).filter(**source)).order_by("pk")
        while keys := list(found.filter(pk__gt=last).values_list("pk", flat=True)[:1_000]):
            yield keys
            last = keys[-1]


@dataclass(frozen=True, slots=True)
class _View:
    """A selection with its runs and items looked up. ``runs`` and ``items`` are None where any will do."""

    chosen: Chosen
    viewer: Viewer
    runs: list[int] | None
    items: list[int] | None
    many: bool = False
    withheld: Sequence[int] = ()  # runs that go on, see RunQuerySet.withheld_from

    @classmethod
    def of(cls, chosen: Chosen, viewer: Viewer, *, all_runs: bool = False) -> "_View":
        withheld = Run.objects.withheld_from(staff=allowed(viewer, "read-hidden"))
        runs = Run.objects.visible_to(viewer).exclude(pk__in=withheld)
        if chosen.run is not None:
            runs = runs.filter(pk=chosen.run)
        if chosen.judge:
            runs = runs.filter(judge__name=chosen.judge)
        if chosen.protocol:
            runs = runs.filter(protocol=chosen.protocol)
        if chosen.benchmark:
            runs = runs.filter(benchmark__in=benchmarks_named(chosen.benchmark))
        narrowed = any((chosen.run is not None, chosen.judge, chosen.protocol, chosen.benchmark))
        items = _items(chosen)
        column = ORDERS[chosen.sort].column
        anywhere = not column and not chosen.differs and chosen.show in ("", "verdicts")
        if not narrowed and (anywhere or items is not None):
            return cls(chosen, viewer, None, items, withheld=withheld)
        most = None if all_runs else MOST_RUNS
        keys = list(runs.order_by("-pk").values_list("pk", flat=True)[: most and most + 1])
        return cls(chosen, viewer, keys[:most], items, bool(most) and len(keys) > MOST_RUNS)

    @property
    def nothing(self) -> bool:
        return self.runs == [] or self.items == []

    def sources(self) -> list[dict[str, Any]]:
        """What to look through one by one, each by an index of its own."""
        if self.items is not None:
            return [{"item__in": self.items} | ({} if self.runs is None else {"run__in": self.runs})]
        return [{}] if self.runs is None else [{"run": run} for run in self.runs]

    def indexed(self, found: QuerySet[Judgment]) -> QuerySet[Judgment]:
        """The part of a source that its index walks through."""
        order = ORDERS[self.chosen.sort]
        if order.column:
            found = found.filter(**{f"{order.column}__isnull": False})
            least = self.chosen.seconds if order.column == "latency" else self.chosen.cost
            return found if least is None else found.filter(**{f"{order.column}__gte": least})
        return self._shown(found)

    def restricted(self, found: QuerySet[Judgment]) -> QuerySet[Judgment]:
        """All that was chosen beside run, judge, protocol, benchmark and sample."""
        chosen = self.chosen
        found = self._shown(found)
        if chosen.level:
            found = found.filter(_in_level(chosen.level, "item__sample__"))
        if chosen.seconds is not None:
            found = found.filter(latency__gte=chosen.seconds)
        return found if chosen.cost is None else found.filter(cost__gte=chosen.cost)

    def _shown(self, found: QuerySet[Judgment]) -> QuerySet[Judgment]:
        show = self.chosen.show
        if show == "verdicts":
            return found.filter(status=Judgment.Status.OK)
        if show == "failed":
            return found.filter(status__in=list(STATUSES))
        if show in STATUSES:
            return found.filter(status=show)
        return found.filter(choice=show) if show else found

    @property
    def unindexed(self) -> bool:
        """Whether a source may have to be looked through for what no index tells."""
        chosen = self.chosen
        column = ORDERS[chosen.sort].column
        amount = {"latency": chosen.cost, "cost": chosen.seconds}.get(column, chosen.seconds or chosen.cost)
        return bool(chosen.level or amount or (column and chosen.show) or not allowed(self.viewer, "read-hidden"))

    # -- in an order --------------------------------------------------------------------------------------------

    def sorted(self, after: str) -> tuple[list[int], str, bool]:
        """Keys of a page, where the next begins, and whether the look ended before the page was full."""
        order, place = ORDERS[self.chosen.sort], keyset.read(after)
        sources = self.sources()
        look = max(1_000, LOOK // len(sources)) if self.unindexed and self.items is None else None
        tops: list[list[Place]] = []
        ends: list[Place] = []
        for source in sources:
            # Where a page ends tells how many rows there are: not of runs that go on.
            there = Judgment.objects.filter(**source).exclude(run__in=self.withheld)
            stretch = order.keyset.beyond(self.indexed(there), place)
            found = self.restricted(
                order.keyset.beyond(self.indexed(Judgment.objects.visible_to(self.viewer).filter(**source)), place)
            )
            if look is not None and (last := _found(stretch, order, look, look + 1)):
                ends += last
                found = order.keyset.up_to(found, last[0])
            tops.append(_found(found, order, 0, PAGE + 1))
        sign = -1 if order.falling else 1

        def rank(one: Place) -> tuple[float, int]:
            return sign * one[0], sign * one[1]

        # Beyond the nearest end of a look, another source might still have something to put in between.
        end = min(ends, key=rank) if ends else None
        merged = [one for one in heapq.merge(*tops, key=rank) if end is None or rank(one) <= rank(end)]
        if len(merged) > PAGE:
            return [pk for _, pk in merged[:PAGE]], keyset.written(merged[PAGE - 1]), False
        return [pk for _, pk in merged], keyset.written(end) if end else "", end is not None

    # -- items whose verdicts differ ----------------------------------------------------------------------------

    def differing(self, after: str) -> tuple[list[int], str, bool]:
        """As ``sorted``, of the judgments of items whose verdicts differ; by run, newest first, and item."""
        from_run, from_item = _run_and_item(after)
        found: list[int] = []
        looked = 0
        for run in self.runs or []:
            if from_run is not None and run > from_run:
                continue
            last = from_item if run == from_run else 0
            while stretch := self._stretch(run, last):
                last = stretch[-1]
                looked += len(stretch)
                for item, keys in self._differing_in(run, stretch):
                    found += keys
                    if len(found) >= PAGE:
                        return found, f"{run}.{item}", False
                if looked >= LOOK:
                    return found, f"{run}.{last}", True
        return found, "", False

    def _stretch(self, run: int, last: int) -> list[int]:
        """The items of the run's next judgments, one entry a judgment; only whole items."""
        found = Judgment.objects.filter(run=run, item__gt=last).order_by("item")
        if self.items is not None:
            found = found.filter(item__in=self.items)
        items = list(found.values_list("item_id", flat=True)[:STRETCH])
        if len(items) == STRETCH and items[0] != items[-1]:
            items = [item for item in items if item != items[-1]]
        return items

    def _differing_in(self, run: int, stretch: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
        beside = BESIDE[self.chosen.differs]
        judged = Judgment.objects.visible_to(self.viewer).filter(run=run, item__gte=stretch[0], item__lte=stretch[-1])
        if self.items is not None:
            judged = judged.filter(item__in=self.items)
        if self.chosen.level:
            judged = judged.filter(_in_level(self.chosen.level, "item__sample__"))
        kinds = {f"kinds_{name}": Count(name, distinct=True) for name in VERDICT}
        some = Q()
        for name in kinds:
            some |= Q(**{f"{name}__gt": 1})
        groups = judged.filter(status=Judgment.Status.OK).order_by().values("item", beside).annotate(**kinds)
        items = sorted(set(groups.filter(some).values_list("item", flat=True)))
        keys: dict[int, list[int]] = {item: [] for item in items}
        found = judged.filter(item__in=items).order_by("item", "repeat", "order")
        for item, key in found.values_list("item_id", "pk"):
            keys[item].append(key)
        yield from keys.items()


def _in_level(level: str, to_sample: str) -> Q:
    path = f"{to_sample}capability__path"
    return Q(**{path: level}) | Q(**{f"{path}__startswith": f"{level} / "})


def _items(chosen: Chosen) -> list[int] | None:
    """The items that a sample's key, or an item's number, stand for; None where neither is chosen."""
    if chosen.item is None and not chosen.sample:
        return None
    found = Item.objects.order_by()
    if chosen.item is not None:
        found = found.filter(pk=chosen.item)
    if chosen.sample:
        samples = Sample.objects.filter(key=chosen.sample)
        if chosen.benchmark:
            samples = samples.filter(benchmark__in=benchmarks_named(chosen.benchmark))
        found = found.filter(sample__in=list(samples.order_by().values_list("pk", flat=True)[:200]))
    return list(found.values_list("pk", flat=True)[:5_000])


def _found(query: QuerySet[Judgment], order: Order, start: int, stop: int) -> list[Place]:
    rows = query.order_by(*order.keyset.ordering())[start:stop]
    if order.column:
        return list(rows.values_list(order.column, "pk"))
    return [(0.0, pk) for pk in rows.values_list("pk", flat=True)]


def _run_and_item(text: str) -> tuple[int | None, int]:
    run, _, item = text.partition(".")
    return (whole_number(run), whole_number(item) or 0) if whole_number(run) is not None else (None, 0)
