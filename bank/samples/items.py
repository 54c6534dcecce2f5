"""Items: found by their responses, or made from stored responses."""

import random
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import comb, inf

from django.db import IntegrityError, transaction
from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from bank.database import bulk, chunks
from bank.database.unfinished import StillComing
from bank.errors import BadInput
from bank.models import Benchmark, EvaluatedModel, Import, Item, ItemResponse, Response, Submission
from bank.models.items import content_hash

PLACE = ("item_id", "position", "response_id")


@dataclass(frozen=True, slots=True)
class Spec:
    """An item as a row names it."""

    kind: str
    sample_id: int
    response_ids: tuple[int, ...]
    content_hash: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        found = content_hash(kind=self.kind, sample_id=self.sample_id, response_ids=self.response_ids)
        object.__setattr__(self, "content_hash", found)


@dataclass(frozen=True, slots=True)
class Found:
    """A stored item with its responses in canonical order."""

    pk: int
    response_ids: tuple[int, ...]

    def order_of(self, response_ids: Sequence[int]) -> list[int]:
        """The canonical position of each of these responses."""
        return [self.response_ids.index(response) for response in response_ids]


def find(specs: Iterable[Spec]) -> dict[str, Found]:
    """The stored items among these, by content hash."""
    return found_by(spec.content_hash for spec in specs)


def found_by(content_hashes: Iterable[str]) -> dict[str, Found]:
    """The stored items with these content hashes."""
    places: dict[str, tuple[int, list[int]]] = {}
    for hashes in chunks(content_hashes):
        stored = Item.objects.filter(content_hash__in=hashes).order_by("pk", "places__position")
        for name, pk, response in stored.values_list("content_hash", "pk", "places__response"):
            places.setdefault(name, (pk, []))[1].extend([] if response is None else [response])
    return {name: Found(pk, tuple(responses)) for name, (pk, responses) in places.items()}


@transaction.atomic
def ensure(specs: Sequence[Spec]) -> tuple[dict[str, Found], int]:
    """All of these items, made where absent with the order of the spec as the canonical one; and how many were made."""
    found = find(specs)
    while True:
        fresh: dict[str, Spec] = {}
        for spec in specs:
            if spec.content_hash not in found:
                fresh.setdefault(spec.content_hash, spec)  # the first row that names an item gives its canonical order
        try:
            with transaction.atomic():
                return found | _insert(fresh), len(fresh)
        except IntegrityError:  # somebody made some of them meanwhile, and the insert waited for the end of that
            theirs = find(fresh.values())
            if not theirs:
                if Import.objects.under_way().exists():
                    raise StillComing("Some of these items are coming in by an import just now.") from None
                raise
            found |= theirs


def _insert(fresh: dict[str, Spec]) -> dict[str, Found]:
    ids = bulk.ids(Item, len(fresh))
    pairs = list(zip(ids, fresh.items(), strict=True))
    items = [(pk, spec.kind, spec.sample_id, key) for pk, (key, spec) in pairs]
    bulk.insert(Item, ("id", "kind", "sample_id", "content_hash"), items)
    places = [
        (pk, position, response) for pk, (_, spec) in pairs for position, response in enumerate(spec.response_ids)
    ]
    bulk.insert(ItemResponse, PLACE, places)
    return {key: Found(pk, spec.response_ids) for pk, (key, spec) in pairs}


ITEMS_AT_ONCE = 5_000
ROTATED = r"^circular-[0-9]+$"


@dataclass(frozen=True, slots=True)
class ItemPlan:
    """Which items are to be made: of these samples, the answers of ``names`` in canonical order, the anchor last."""

    kind: str
    benchmark: Benchmark
    names: tuple[str, ...]
    anchor: str
    samples: tuple[int, ...]
    rotations: bool

    @property
    def wanted(self) -> set[str]:
        return {*self.names, self.anchor} - {""}

    def count(self) -> int:
        """How many items it asks for, those included that are there already."""
        answers = Response.objects.filter(sample__benchmark=self.benchmark, variant="", model__name__in=self.wanted)
        anchors = Count("pk", filter=Q(model__name=self.anchor))
        counted = answers.order_by().values_list("sample").annotate(n=Count("pk"), anchors=anchors)
        chosen = set(self.samples)
        items = sum(self._items_of(n - own, own) for sample, n, own in counted.iterator() if sample in chosen)
        if self.rotations:
            rotated = _rotated(self.names).filter(sample__benchmark=self.benchmark).values_list("sample", flat=True)
            items += sum(sample in chosen for sample in rotated.iterator())
        return items

    def _items_of(self, others: int, anchors: int) -> int:
        """The items of a sample with so many answers beside the anchor's."""
        if self.kind == Item.Kind.SCORE:
            return others
        if self.kind == Item.Kind.PAIR:
            return others * anchors if self.anchor else comb(others, 2)
        return int(others + anchors > 2)

    @property
    def samples_at_once(self) -> int:
        return max(1, ITEMS_AT_ONCE // max(1, self._items_of(len(self.names), int(bool(self.anchor)))))


def plan_items(
    *,
    kind: str,
    benchmark: Benchmark,
    models: Sequence[str] = (),
    anchor: str = "",
    sample: int | None = None,
    seed: int = 0,
    rotations: bool = False,
) -> ItemPlan:
    """Items from the stored responses of variant "". With ``rotations`` score items of the answers to rotated options,
    too, whose options a judge may then read (CircularEval).

    Canonical order is the order of ``models`` (where none are given by name, without those that were withdrawn), the
    anchor last. Pairs: with an anchor each model against it, without one every pair of models. Batches: one item a
    sample with every model. ``sample`` draws so many samples, seeded. Raises BadInput.
    """
    if rotations and kind != Item.Kind.SCORE:
        raise BadInput("--rotations: only single answers are read under every rotation of their options.")
    present = _present(benchmark)
    names = list(models) or models_answering(benchmark)
    anchor = anchor or (benchmark.anchor.name if benchmark.anchor and kind == Item.Kind.PAIR and not models else "")
    wanted = {*names, anchor} - {""}
    for name in sorted(wanted - present):
        raise BadInput(f"{name!r} has no responses in {benchmark}.")
    answered = Response.objects.filter(sample=OuterRef("pk"), variant="", model__name__in=wanted)
    samples = benchmark.samples.filter(Exists(answered)).order_by("position", "pk")
    ids = list(samples.values_list("pk", flat=True))
    if sample is not None:
        if sample > len(ids):
            raise BadInput(f"--sample {sample}: only {len(ids)} samples have responses.")
        ids = sorted(random.Random(seed).sample(ids, sample))
    return ItemPlan(kind, benchmark, tuple(name for name in names if name != anchor), anchor, tuple(ids), rotations)


def models_answering(benchmark: Benchmark) -> list[str]:
    """The names of the models with answers that were not withdrawn, in order."""
    withdrawn = Response.objects.filter(
        submission__benchmark=benchmark, submission__state=Submission.State.WITHDRAWN, variant=""
    )
    return sorted(_present(benchmark) - set(withdrawn.order_by().values_list("model__name", flat=True).distinct()))


@transaction.atomic
def make_items(plan: ItemPlan) -> tuple[int, int]:
    """Make the items of a plan, all or none: (made, all)."""
    made, everything, _ = _made(plan, 0, until=inf)
    return made, everything


def make_some(plan: ItemPlan, *, after: int = 0, seconds: float = 2.0) -> tuple[int, int]:
    """Make items for about so long, from the sample at place ``after`` on: (made, where to go on).

    What was made stays; the same step again makes nothing twice. Done when the place is the number of samples.
    """
    made, _, after = _made(plan, after, until=time.monotonic() + seconds)
    return made, after


def _made(plan: ItemPlan, after: int, *, until: float) -> tuple[int, int, int]:
    """Items made, made and there before, and the place to go on."""
    made = everything = 0
    while after < len(plan.samples):
        some = plan.samples[after : after + plan.samples_at_once]
        specs = _specs(plan, some)
        made += ensure(specs)[1]
        everything += len(specs)
        after += len(some)
        if time.monotonic() > until:
            break
    return made, everything, after


def _present(benchmark: Benchmark) -> set[str]:
    answers = Response.objects.filter(model=OuterRef("pk"), sample__benchmark=benchmark, variant="")
    return set(EvaluatedModel.objects.filter(Exists(answers)).values_list("name", flat=True))


def _rotated(names: Sequence[str]) -> QuerySet[Response]:
    return Response.objects.filter(variant__regex=ROTATED, model__name__in=names).order_by()


def _specs(plan: ItemPlan, ids: Sequence[int]) -> list[Spec]:
    """The items of these samples."""
    answered: dict[int, dict[str, int]] = {pk: {} for pk in ids}
    found = Response.objects.filter(sample__in=ids, variant="", model__name__in=plan.wanted)
    for pk, sample_id, name in found.values_list("pk", "sample_id", "model__name"):
        answered[sample_id][name] = pk
    specs = [
        Spec(plan.kind, sample_id, tuple(responses))
        for sample_id, given in answered.items()
        for responses in _groups(plan, given)
    ]
    if plan.rotations:
        rows = _rotated(plan.names).filter(sample__in=ids)
        rows = rows.order_by("sample__position", "sample", "model__name", "pk")
        specs += [Spec(Item.Kind.SCORE, sample, (pk,)) for sample, pk in rows.values_list("sample", "pk")]
    return specs


def _groups(plan: ItemPlan, answered: dict[str, int]) -> list[list[int]]:
    here = [answered[name] for name in plan.names if name in answered]
    if plan.kind == Item.Kind.SCORE:
        return [[response] for response in here]
    last = [answered[plan.anchor]] if plan.anchor in answered else []
    if plan.kind == Item.Kind.PAIR:
        return (
            [[response, *last] for response in here if last]
            if plan.anchor
            else [list(p) for p in combinations(here, 2)]
        )
    everything = [*here, *last]
    return [everything] if len(everything) > 2 else []
