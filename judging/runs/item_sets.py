"""The part of a benchmark that a run covers: everything, a filter, a campaign's items, a random sample with a seed.

Given as ``{"split", "level", "models", "ids", "campaign", "run", "sample", "seed"}``, any of them, and stored with the
run.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet

from bank.models import Benchmark, Capability, Item, ItemResponse, Sample
from bank.text.digests import keyed_digest
from judging.models import Run, RunItem
from judging.protocols import BadSettings

NAMES = ("split", "level", "models", "ids", "campaign", "run", "sample", "seed")
OFFERED = 300
ItemSet = dict[str, Any]


class BadItemSet(BadSettings):
    """An impossible item set; says what is wrong with which part."""


# Item sets that other apps define: a name to its items, e.g. those of a campaign. They raise LookupError.
_sources: dict[str, Callable[[Benchmark, str], QuerySet[Item]]] = {}


def register(name: str, source: Callable[[Benchmark, str], QuerySet[Item]]) -> None:
    _sources[name] = source


def canonical(value: Any, *, of_items: bool = True) -> ItemSet:
    """The set in canonical form, without empty parts. Raises BadItemSet."""
    if value in (None, {}):
        return {}
    if not isinstance(value, Mapping):
        raise BadItemSet('items: an object, e.g. {"sample": 100, "seed": 1}.')
    _check_parts(value, NAMES if of_items else ("split", "level", "sample", "seed"))
    item_set: ItemSet = {}
    for name in ("split", "level", "campaign"):
        if value.get(name) not in (None, ""):
            item_set[name] = _text(name, value[name])
    if value.get("models"):
        item_set["models"] = _models(value["models"])
    if value.get("ids") is not None:
        item_set["ids"] = _ids(value["ids"])
    for name, low in (("run", 1), ("sample", 1), ("seed", 0)):
        if value.get(name) is not None:
            item_set[name] = _whole_number(name, value[name], low)
    return _with_seed(item_set)


def _check_parts(value: Mapping[Any, Any], allowed: Sequence[str]) -> None:
    if unknown := sorted(str(name) for name in set(value) - set(allowed)):
        raise BadItemSet(f"items: {unknown[0][:60]} is not part of an item set. Known parts: {', '.join(allowed)}.")


def _models(value: Any) -> list[str]:
    return sorted({_text("models", name) for name in _list("models", value)})


def _with_seed(item_set: ItemSet) -> ItemSet:
    """A sample is drawn with seed 0 where none is given."""
    if "sample" in item_set:
        return item_set | {"seed": item_set.get("seed", 0)}
    if "seed" in item_set:
        raise BadItemSet("items: a seed needs a sample; say how many items to draw.")
    return item_set


def items(item_set: ItemSet, *, benchmark: Benchmark, query: "QuerySet[Item]") -> "QuerySet[Item]":
    """The items of a query that belong to the set, in the query's order. Raises BadItemSet."""
    query = query.filter(condition(item_set, benchmark, "sample__"))
    if "models" in item_set:
        responses = ItemResponse.objects.filter(item=OuterRef("pk"))
        other_models = responses.exclude(response__model__name__in=item_set["models"])
        query = query.filter(Exists(responses), ~Exists(other_models))
    if "ids" in item_set:
        query = query.filter(pk__in=item_set["ids"])
        if query.count() != len(item_set["ids"]):
            raise BadItemSet(
                "items: some of these ids are not items of this kind in this benchmark, or belong to rejected samples."
            )
    if "campaign" in item_set:
        if "campaign" not in _sources:
            raise BadItemSet("items: this installation has no campaigns.")
        try:
            query = query.filter(pk__in=_sources["campaign"](benchmark, item_set["campaign"]).values("pk"))
        except LookupError as error:
            raise BadItemSet(f"items: {error}") from None
    if "run" in item_set:
        if not Run.objects.filter(pk=item_set["run"], benchmark=benchmark).exists():
            raise BadItemSet(f"items: {benchmark} has no run {item_set['run']}.")
        query = query.filter(pk__in=RunItem.objects.filter(run=item_set["run"]).values("item"))
    if "sample" in item_set:
        query = query.filter(pk__in=_drawn(query.values_list("pk", "content_hash"), item_set))
    return query


def samples(item_set: ItemSet, *, benchmark: Benchmark, query: "QuerySet[Sample]") -> "QuerySet[Sample]":
    """As ``items``, for samples. Raises BadItemSet."""
    query = query.filter(condition(item_set, benchmark))
    if "sample" in item_set:
        query = query.filter(pk__in=_drawn(query.values_list("pk", "key"), item_set))
    return query


def parts(benchmark: Benchmark) -> dict[str, list[str]]:
    """The ``splits`` and ``levels`` of a benchmark that a form offers, a few hundred at most."""
    splits = benchmark.samples.exclude(split="").order_by("split").values_list("split", flat=True).distinct()
    levels = Capability.objects.filter(benchmark=benchmark).order_by("name").values_list("name", flat=True).distinct()
    return {"splits": list(splits[:OFFERED]), "levels": list(levels[:OFFERED])}


def description(item_set: ItemSet) -> str:
    """An item set in words; "" for everything."""
    parts = []
    if "sample" in item_set:
        parts.append(f"{item_set['sample']:,} drawn with seed {item_set['seed']}")
    for name in ("split", "level", "campaign"):
        if name in item_set:
            parts.append(f"{name} {item_set[name]}")
    if "run" in item_set:
        parts.append(f"the items of run {item_set['run']}")
    if "models" in item_set:
        parts.append(f"only {', '.join(item_set['models'])}")
    if "ids" in item_set:
        parts.append(f"{len(item_set['ids']):,} chosen one by one")
    return ", ".join(parts)


def condition(item_set: ItemSet, benchmark: Benchmark, prefix: str = "") -> Q:
    """The split and level of a set as a condition on samples, behind a ``prefix``. Raises BadItemSet."""
    condition = Q()
    if "split" in item_set:
        condition &= Q(**{f"{prefix}split": item_set["split"]})
    if "level" in item_set:
        roots = Capability.objects.filter(benchmark=benchmark, name=item_set["level"])
        subtree = set(roots.values_list("pk", flat=True))
        if not subtree:
            raise BadItemSet(f"items: {benchmark} has no level {item_set['level']!r}.")
        children = subtree
        while children:
            children = set(Capability.objects.filter(parent__in=children).values_list("pk", flat=True)) - subtree
            subtree |= children
        condition &= Q(**{f"{prefix}capability__in": subtree})
    return condition


def _drawn(rows: Any, item_set: ItemSet) -> list[int]:
    """The ids with the smallest keyed hashes: the same for the same seed, whatever items are added."""
    ranked = sorted((keyed_digest(item_set["seed"], name), pk) for pk, name in rows)
    return [pk for _, pk in ranked[: item_set["sample"]]]


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or len(value) > 200:
        raise BadItemSet(f"items: {name} must be a name.")
    return value


def _list(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise BadItemSet(f"items: {name} must be a list.")
    return list(value)


def _ids(value: Any) -> list[int]:
    ids = _list("ids", value)
    if not ids or not all(type(pk) is int and 0 < pk < 2**63 for pk in ids):
        raise BadItemSet("items: ids must be whole numbers, at least one.")
    return sorted(set(ids))


def _whole_number(name: str, value: Any, low: int) -> int:
    if type(value) is not int or not low <= value < 2**31:
        raise BadItemSet(f"items: {name} must be a whole number from {low} up.")
    return value
