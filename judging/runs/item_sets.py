"""Which part of a benchmark a run is about: everything, a filter, a campaign's items, a sample of n by a seed.

Given as ``{"split", "level", "models", "ids", "campaign", "run", "sample", "seed"}``, any of them; kept with the run.
"""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet

from bank.models import Benchmark, Capability, Item, ItemResponse, Sample
from judging.models import Run, RunItem

NAMES = ("split", "level", "models", "ids", "campaign", "run", "sample", "seed")
OFFERED = 300
ItemSet = dict[str, Any]


class BadItemSet(ValueError):
    """A set that cannot be; says what is wrong with which part of it."""


# What higher rooms know: a name to the ids of items, e.g. those of a campaign. Raises LookupError.
_sources: dict[str, Callable[[Benchmark, str], QuerySet[Item]]] = {}


def register(name: str, source: Callable[[Benchmark, str], QuerySet[Item]]) -> None:
    _sources[name] = source


def canonical(given: Any, *, of_items: bool = True) -> ItemSet:
    """The set in one form, parts that say nothing left out. Raises BadItemSet."""
    if given in (None, {}):
        return {}
    if not isinstance(given, Mapping):
        raise BadItemSet('items: an object, e.g. {"sample": 100, "seed": 1}.')
    allowed = NAMES if of_items else ("split", "level", "sample", "seed")
    if unknown := sorted(str(name) for name in set(given) - set(allowed)):
        raise BadItemSet(f"items: {unknown[0][:60]} is not a part of a set. There are: {', '.join(allowed)}.")
    found: ItemSet = {}
    for name in ("split", "level", "campaign"):
        if given.get(name) not in (None, ""):
            found[name] = _text(name, given[name])
    if given.get("models"):
        found["models"] = sorted({_text("models", name) for name in _list("models", given["models"])})
    if given.get("ids") is not None:
        ids = _list("ids", given["ids"])
        if not ids or not all(type(pk) is int and 0 < pk < 2**63 for pk in ids):
            raise BadItemSet("items: ids are whole numbers, at least one.")
        found["ids"] = sorted(set(ids))
    for name, low in (("run", 1), ("sample", 1), ("seed", 0)):
        value = given.get(name)
        if value is not None:
            if type(value) is not int or not low <= value < 2**31:
                raise BadItemSet(f"items: {name} is a whole number from {low} up.")
            found[name] = value
    if "seed" in found and "sample" not in found:
        raise BadItemSet("items: a seed is for a sample; say of how many.")
    if "sample" in found:
        found.setdefault("seed", 0)
    return found


def items(chosen: ItemSet, *, benchmark: Benchmark, query: "QuerySet[Item]") -> "QuerySet[Item]":
    """The items of a query that belong to a set, in the query's order. Raises BadItemSet."""
    query = query.filter(_of_samples(chosen, benchmark, "sample__"))
    if "models" in chosen:
        places = ItemResponse.objects.filter(item=OuterRef("pk"))
        others = places.exclude(response__model__name__in=chosen["models"])
        query = query.filter(Exists(places), ~Exists(others))
    if "ids" in chosen:
        query = query.filter(pk__in=chosen["ids"])
        if query.count() != len(chosen["ids"]):
            raise BadItemSet(
                "items: some of these ids are no items of this kind in this benchmark, or of rejected samples."
            )
    if "campaign" in chosen:
        if "campaign" not in _sources:
            raise BadItemSet("items: there are no campaigns here.")
        try:
            query = query.filter(pk__in=_sources["campaign"](benchmark, chosen["campaign"]).values("pk"))
        except LookupError as error:
            raise BadItemSet(f"items: {error}") from None
    if "run" in chosen:
        if not Run.objects.filter(pk=chosen["run"], benchmark=benchmark).exists():
            raise BadItemSet(f"items: there is no run {chosen['run']} on {benchmark}.")
        query = query.filter(pk__in=RunItem.objects.filter(run=chosen["run"]).values("item"))
    if "sample" in chosen:
        query = query.filter(pk__in=_drawn(query.values_list("pk", "content_hash"), chosen))
    return query


def samples(chosen: ItemSet, *, benchmark: Benchmark, query: "QuerySet[Sample]") -> "QuerySet[Sample]":
    """The same for samples. Raises BadItemSet."""
    query = query.filter(_of_samples(chosen, benchmark, ""))
    if "sample" in chosen:
        query = query.filter(pk__in=_drawn(query.values_list("pk", "key"), chosen))
    return query


def parts(benchmark: Benchmark) -> dict[str, list[str]]:
    """What a form offers of a benchmark: its ``splits`` and ``levels``, some hundreds at most."""
    splits = benchmark.samples.exclude(split="").order_by("split").values_list("split", flat=True).distinct()
    levels = Capability.objects.filter(benchmark=benchmark).order_by("name").values_list("name", flat=True).distinct()
    return {"splits": list(splits[:OFFERED]), "levels": list(levels[:OFFERED])}


def words(chosen: ItemSet) -> str:
    """A set in words; "" for everything."""
    said = []
    if "sample" in chosen:
        said.append(f"{chosen['sample']:,} drawn with seed {chosen['seed']}")
    for name in ("split", "level", "campaign"):
        if name in chosen:
            said.append(f"{name} {chosen[name]}")
    if "run" in chosen:
        said.append(f"the items of run {chosen['run']}")
    if "models" in chosen:
        said.append(f"only {', '.join(chosen['models'])}")
    if "ids" in chosen:
        said.append(f"{len(chosen['ids']):,} chosen one by one")
    return ", ".join(said)


def _of_samples(chosen: ItemSet, benchmark: Benchmark, prefix: str) -> Q:
    condition = Q()
    if "split" in chosen:
        condition &= Q(**{f"{prefix}split": chosen["split"]})
    if "level" in chosen:
        tree = Capability.objects.filter(benchmark=benchmark, name=chosen["level"])
        below = set(tree.values_list("pk", flat=True))
        if not below:
            raise BadItemSet(f"items: there is no level {chosen['level']!r} in {benchmark}.")
        fresh = below
        while fresh:
            fresh = set(Capability.objects.filter(parent__in=fresh).values_list("pk", flat=True)) - below
            below |= fresh
        condition &= Q(**{f"{prefix}capability__in": below})
    return condition


def _drawn(rows: Any, chosen: ItemSet) -> list[int]:
    """The ids of so many, those with the least keyed hashes: the same for the same seed, whatever else is added."""
    key = str(chosen["seed"]).encode()
    ranked = sorted((hashlib.blake2b(name.encode(), key=key, digest_size=16).digest(), pk) for pk, name in rows)
    return [pk for _, pk in ranked[: chosen["sample"]]]


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or len(value) > 200:
        raise BadItemSet(f"items: {name} is a name.")
    return value


def _list(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise BadItemSet(f"items: {name} is a list.")
    return list(value)
