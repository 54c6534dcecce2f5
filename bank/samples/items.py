"""Items: found by their responses, or made from stored responses."""

import random
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import combinations
from math import comb, inf

from django.db import IntegrityError, transaction
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Length

from bank import guard
from bank.database import analyze, bulk, chunks
from bank.database.unfinished import ImportInProgress
from bank.errors import BadInput
from bank.models import Benchmark, Import, Item, ItemResponse, Response, Sample, Submission, models_with
from bank.models.items import content_hash
from bank.text.names import as_stored

PLACE = ("item_id", "position", "response_id")


@dataclass(slots=True)
class ItemSpec:
    """An item as a row names it."""

    kind: str
    sample_id: int
    response_ids: tuple[int, ...]
    content_hash: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        self.content_hash = content_hash(kind=self.kind, sample_id=self.sample_id, response_ids=self.response_ids)


@dataclass(frozen=True, slots=True)
class StoredItem:
    """A stored item with its responses in canonical order."""

    pk: int
    response_ids: tuple[int, ...]


def find_items(specs: Iterable[ItemSpec]) -> dict[str, StoredItem]:
    """The stored items among these, by content hash."""
    places: dict[str, tuple[int, list[int]]] = {}
    for hashes in chunks(spec.content_hash for spec in specs):
        stored = Item.objects.filter(content_hash__in=hashes).order_by("pk", "places__position")
        for name, pk, response in stored.values_list("content_hash", "pk", "places__response"):
            places.setdefault(name, (pk, []))[1].extend([] if response is None else [response])
    return {name: StoredItem(pk, tuple(responses)) for name, (pk, responses) in places.items()}


@transaction.atomic
def ensure_items(specs: Sequence[ItemSpec]) -> tuple[dict[str, StoredItem], int]:
    """All of these items, created if missing with the spec's order as canonical order; and how many were created. Those
    that a file of verdicts has made are there for everybody now.
    """
    items = find_items(specs)
    name_openly(item.pk for item in items.values())
    while True:
        fresh: dict[str, ItemSpec] = {}
        for spec in specs:
            if spec.content_hash not in items:
                fresh.setdefault(spec.content_hash, spec)  # the first that names an item sets its canonical order
        try:
            with transaction.atomic():
                return items | _insert(fresh), len(fresh)
        except IntegrityError:  # somebody made some of them meanwhile, and the insert waited for their transaction
            made_meanwhile = find_items(fresh.values())
            if not made_meanwhile:
                if Import.objects.under_way().exists():
                    raise ImportInProgress("An import is creating some of these items right now.") from None
                raise
            items |= made_meanwhile


def name_openly(items: Iterable[int]) -> None:
    """Note of these items (ids) that it was not verdicts that chose them, see ``Item.held``."""
    for pks in chunks(items):
        Item.objects.filter(pk__in=pks, held__gt=0).update(held=0)


def _insert(fresh: dict[str, ItemSpec]) -> dict[str, StoredItem]:
    ids = bulk.new_ids(Item, len(fresh))
    pairs = list(zip(ids, fresh.items(), strict=True))
    from_outside = outside_among(response for spec in fresh.values() for response in spec.response_ids)
    items = [
        (pk, spec.kind, spec.sample_id, key, not from_outside.isdisjoint(spec.response_ids))
        for pk, (key, spec) in pairs
    ]
    bulk.insert(Item, ("id", "kind", "sample_id", "content_hash", "outside"), items)
    places = [
        (pk, position, response) for pk, (_, spec) in pairs for position, response in enumerate(spec.response_ids)
    ]
    bulk.insert(ItemResponse, PLACE, places)
    note_blind_twins(ids)
    return {key: StoredItem(pk, spec.response_ids) for pk, (key, spec) in pairs}


def twins(versions: Iterable[int]) -> QuerySet[Item]:
    """Items of other versions of a benchmark whose answers have the same texts as those of the outer query's item.
    ``versions`` are the ids of all.
    """
    answers = ItemResponse.objects.all()
    text, twin, outer = OuterRef("response__text"), OuterRef(OuterRef("pk")), OuterRef(OuterRef(OuterRef("pk")))
    theirs_alone = answers.filter(~Exists(answers.filter(item=outer, response__text=text)), item=OuterRef("pk"))
    ours_alone = answers.filter(~Exists(answers.filter(item=twin, response__text=text)), item=twin)
    found = Item.objects.filter(
        ~Exists(theirs_alone),
        ~Exists(ours_alone),
        sample__benchmark__in=versions,
        sample__key=OuterRef("sample__key"),
        kind=OuterRef("kind"),
    )
    return found.exclude(sample__benchmark=OuterRef("sample__benchmark"))


def note_blind_twins(ids: Iterable[int]) -> None:
    """Note of these new items of a benchmark that they are blind where one of another version with the same answers is:
    it would tell of that. What ends a round looks after them from then on.
    """
    blind = Item.objects.filter(blind=True)
    if not blind.exists():
        return
    for some in chunks(ids):
        slugs = Benchmark.objects.filter(samples__items__in=some).values("slug")
        versions = list(Benchmark.objects.filter(slug__in=slugs).values_list("pk", flat=True))
        if blind.filter(sample__benchmark__in=versions).exists():
            items = Item.objects.filter(pk__in=some)
            items.filter(Exists(twins(versions).filter(blind=True))).update(blind=True)
            note_since_of_twins(items, versions)


def note_since_of_twins(items: QuerySet[Item], versions: Iterable[int]) -> None:
    """Note of these blind items since when their twins have been, where that is earlier, or theirs is not known."""
    first = twins(versions).filter(blind_since__isnull=False).order_by("blind_since").values("blind_since")[:1]
    theirs = items.filter(blind=True).annotate(theirs=Subquery(first)).exclude(theirs=None)
    earlier = theirs.filter(Q(blind_since=None) | Q(theirs__lt=F("blind_since")))
    of_time: dict[datetime, list[int]] = defaultdict(list)
    for pk, since in earlier.values_list("pk", "theirs"):
        of_time[since].append(pk)
    for since, ids in of_time.items():
        for some in chunks(ids):
            Item.objects.filter(pk__in=some).update(blind_since=since)


@guard.working()
def outside_among(response_ids: Iterable[int]) -> set[int]:
    """Those of these responses that come from outside: submitted, or marked untrusted."""
    outside: set[int] = set()
    for some in chunks(response_ids):
        rows = Response.objects.filter(pk__in=some).exclude(origin=Response.Origin.STAFF)
        outside.update(rows.values_list("pk", flat=True))
    return outside


ITEMS_AT_ONCE = 5_000
MOST_IN_BATCH = 26
LENGTHS = 12  # classes of length
ROTATED = r"^circular-[0-9]+$"


@dataclass(frozen=True, slots=True)
class ItemPlan:
    """Items to make: for these samples, the answers of ``names`` in canonical order, the anchor last."""

    kind: str
    benchmark: Benchmark
    names: tuple[str, ...]
    anchor: str
    samples: tuple[int, ...]
    rotations: bool
    bare: bool = False
    picked: Mapping[int, frozenset[str]] | None = None  # by sample, the models whose answers are taken; None: all

    @property
    def wanted(self) -> set[str]:
        return {*self.names, self.anchor} - {""}

    def count(self) -> int:
        """The number of items, including existing ones."""
        if self.bare:
            return len(self.samples)
        if self.picked is not None:
            anchored = [self.anchor in names for names in self.picked.values()]
            counts = zip(self.picked.values(), anchored, strict=True)
            return sum(self._items_of(len(names) - is_in, int(is_in)) for names, is_in in counts)
        answers = Response.objects.filter(sample__benchmark=self.benchmark, variant="", model__name__in=self.wanted)
        anchors = Count("pk", filter=Q(model__name=self.anchor))
        counted = answers.order_by().values_list("sample").annotate(n=Count("pk"), anchors=anchors)
        chosen = set(self.samples)
        items = sum(
            self._items_of(n - anchored, anchored) for sample, n, anchored in counted.iterator() if sample in chosen
        )
        if self.rotations:
            rotated = _rotated(self.names).filter(sample__benchmark=self.benchmark).values_list("sample", flat=True)
            items += sum(sample in chosen for sample in rotated.iterator())
        return items

    def _items_of(self, others: int, anchors: int) -> int:
        """The number of items of a sample with this many answers besides the anchor's."""
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
    bare: bool = False,
    size: int | None = None,
    least: int = 0,
    apart: bool = False,
) -> ItemPlan:
    """Items from the stored responses of variant "". With ``rotations``, also score items of the answers to rotated
    options, whose options a judge may then read (CircularEval). With ``bare``, the samples themselves instead: texts
    and pictures without a response, to be labelled with categories.

    Canonical order is the order of ``models`` (by default all models by name, without withdrawn ones), the anchor last.
    Pairs: with an anchor, each model against it; without one, every pair of models. Batches: one item per sample with
    every model. ``sample`` draws that many samples, seeded. With ``size``, batches of so many answers, or all pairs
    within such a batch, balanced over samples by model and by length (MLLM-as-a-Judge, arXiv 2402.04788, step 3). With
    ``least``, only answers of so many characters that were neither refused nor cut off; ``apart``, only samples without
    items of other kinds, so that the sets do not overlap (2.2 there). Raises BadInput.
    """
    _check_kind(kind, anchor, size=size, rotations=rotations)
    samples = benchmark.samples.order_by("position", "pk")
    if apart:
        others = Item.objects.filter(sample=OuterRef("pk")).exclude(kind=kind)
        samples = samples.filter(~Exists(others))
    if bare:
        _check_bare(kind, models, anchor, rotations=rotations)
        return ItemPlan(kind, benchmark, (), "", _drawn(samples, sample, seed, bare=True), rotations=False, bare=True)
    names = list(map(as_stored, models)) or models_answering(benchmark)
    anchor = as_stored(anchor) or ("" if models or size else _anchor_of(benchmark, kind))
    names_needed = {*names, anchor} - {""}
    _check_present(benchmark, names_needed)
    answers = Response.objects.filter(variant="", model__name__in=names_needed)
    if least:
        longer = answers.annotate(length=Length("text")).filter(length__gte=least, status=Response.Status.OK)
        answers = answers.filter(pk__in=longer.values("pk"))
    ids = _drawn(samples.filter(Exists(answers.filter(sample=OuterRef("pk")))), sample, seed)
    plan = ItemPlan(kind, benchmark, tuple(name for name in names if name != anchor), anchor, ids, rotations)
    if not least and size is None:
        return plan
    lengths = _lengths(answers.filter(sample__benchmark=benchmark))
    return replace(plan, picked=_answering(plan, lengths) if size is None else _balanced(plan, lengths, size, seed))


def _check_kind(kind: str, anchor: str, *, size: int | None, rotations: bool) -> None:
    if size is not None and (kind == Item.Kind.SCORE or anchor or not 3 <= size <= MOST_IN_BATCH):
        raise BadInput(f"--size: 3 to {MOST_IN_BATCH} answers of a batch, for batches or the pairs of them, no anchor.")
    if rotations and kind != Item.Kind.SCORE:
        raise BadInput("--rotations works only with score items: single answers under every rotation of their options.")


def _check_bare(kind: str, models: Sequence[str], anchor: str, *, rotations: bool) -> None:
    if kind != Item.Kind.SCORE or models or anchor or rotations:
        raise BadInput("--bare makes score items of samples alone; models, an anchor and rotations have no part.")


def _check_present(benchmark: Benchmark, names: set[str]) -> None:
    if missing := sorted(names - _present(benchmark)):
        raise BadInput(f"{missing[0]!r} has no responses in {benchmark}.")


def _anchor_of(benchmark: Benchmark, kind: str) -> str:
    """The model that every other one is paired with, if the benchmark has one."""
    return benchmark.anchor.name if benchmark.anchor and kind == Item.Kind.PAIR else ""


def _lengths(answers: QuerySet[Response]) -> dict[int, dict[str, int]]:
    """By sample and model, the characters of these answers."""
    lengths: dict[int, dict[str, int]] = {}
    for sample, name, length in answers.values_list("sample", "model__name", Length("text")).iterator():
        lengths.setdefault(sample, {})[name] = length
    return lengths


def _answering(plan: ItemPlan, lengths: Mapping[int, Mapping[str, int]]) -> dict[int, frozenset[str]]:
    """All models with an answer, by sample."""
    return {sample: frozenset(lengths.get(sample, ())) for sample in plan.samples}


def _balanced(
    plan: ItemPlan, lengths: Mapping[int, Mapping[str, int]], size: int, seed: int
) -> dict[int, frozenset[str]]:
    """For each sample with enough answers, so many of their models: those that were taken least often so far; among
    these, the answers whose length, from the shortest to the longest of their sample in so many classes, was; else by
    the seed.
    """
    of_model, of_length = Counter[str](), Counter[int]()
    rng, picked = random.Random(seed), {}
    for sample in plan.samples:
        of_sample = lengths.get(sample, {})
        if len(of_sample) < size:
            continue
        by_length = sorted(of_sample, key=lambda name: (of_sample[name], name))
        classes = {name: place * LENGTHS // len(by_length) for place, name in enumerate(by_length)}
        left = sorted(of_sample)
        rng.shuffle(left)
        left.sort(key=lambda name: (of_model[name], of_length[classes[name]]))  # ties stay in the seed's order
        picked[sample] = frozenset(left[:size])
        of_model.update(left[:size])
        of_length.update(classes[name] for name in left[:size])
    if not picked:
        raise BadInput(f"--size {size}: no sample has so many answers.")
    return picked


def _drawn(samples: QuerySet[Sample], number: int | None, seed: int, *, bare: bool = False) -> tuple[int, ...]:
    """The ids of all these samples, or of so many drawn with the seed. Raises BadInput."""
    ids = list(samples.values_list("pk", flat=True))
    if number is None:
        return tuple(ids)
    if number > len(ids):
        raise BadInput(f"--sample {number}: only {len(ids)} samples {'are here' if bare else 'have responses'}.")
    return tuple(sorted(random.Random(seed).sample(ids, number)))


def models_answering(benchmark: Benchmark) -> list[str]:
    """The names of models with answers that were not withdrawn, in order."""
    withdrawn = Response.objects.filter(
        submission__benchmark=benchmark, submission__state=Submission.State.WITHDRAWN, variant=""
    )
    return sorted(_present(benchmark) - set(withdrawn.order_by().values_list("model__name", flat=True).distinct()))


@transaction.atomic
def make_items(plan: ItemPlan) -> tuple[int, int]:
    """Make all items of a plan or none: (made, total)."""
    made, everything, _ = _make_until(plan, 0, until=inf)
    return made, everything


def make_some(plan: ItemPlan, *, after: int = 0, seconds: float = 2.0) -> tuple[int, int]:
    """Make items for about this long, starting at sample number ``after``: (made, where to continue).

    Items that were made stay; repeating a step makes nothing twice. Done when the position equals the number of
    samples.
    """
    made, _, after = _make_until(plan, after, until=time.monotonic() + seconds)
    return made, after


def _make_until(plan: ItemPlan, after: int, *, until: float) -> tuple[int, int, int]:
    """Items made, items made or existing, and the position to continue from."""
    made = everything = 0
    while after < len(plan.samples):
        batch = plan.samples[after : after + plan.samples_at_once]
        specs = _specs(plan, batch)
        made += ensure_items(specs)[1]
        everything += len(specs)
        after += len(batch)
        if time.monotonic() > until:
            break
    if made and after >= len(plan.samples):
        analyze(Item, ItemResponse)
    return made, everything, after


def _present(benchmark: Benchmark) -> set[str]:
    answers = Response.objects.filter(sample__benchmark=benchmark, variant="")
    return set(models_with(answers).values_list("name", flat=True))


def _rotated(names: Sequence[str]) -> QuerySet[Response]:
    rotated = Response.objects.filter(variant__regex=ROTATED, model__name__in=names)
    return rotated.exclude(status=Response.Status.SKIPPED).order_by()


def _specs(plan: ItemPlan, ids: Sequence[int]) -> list[ItemSpec]:
    """The items of these samples."""
    if plan.bare:
        return [ItemSpec(plan.kind, pk, ()) for pk in ids]
    answered: dict[int, dict[str, int]] = {pk: {} for pk in ids}
    answers = Response.objects.filter(sample__in=ids, variant="", model__name__in=plan.wanted)
    for pk, sample_id, name in answers.values_list("pk", "sample_id", "model__name"):
        answered[sample_id][name] = pk
    specs = [
        ItemSpec(plan.kind, sample_id, tuple(responses))
        for sample_id, by_model in answered.items()
        for responses in _groups(plan, _picked(plan, sample_id, by_model))
    ]
    if plan.rotations:
        rows = _rotated(plan.names).filter(sample__in=ids)
        rows = rows.order_by("sample__position", "sample", "model__name", "pk")
        specs += [ItemSpec(Item.Kind.SCORE, sample, (pk,)) for sample, pk in rows.values_list("sample", "pk")]
    return specs


def _picked(plan: ItemPlan, sample: int, answered: dict[str, int]) -> dict[str, int]:
    if plan.picked is None:
        return answered
    names = plan.picked.get(sample, frozenset())
    return {name: pk for name, pk in answered.items() if name in names}


def _groups(plan: ItemPlan, answered: dict[str, int]) -> list[list[int]]:
    present = [answered[name] for name in plan.names if name in answered]
    if plan.kind == Item.Kind.SCORE:
        return [[response] for response in present]
    last = [answered[plan.anchor]] if plan.anchor in answered else []
    if plan.kind == Item.Kind.PAIR:
        return _with_anchor(present, last) if plan.anchor else list(map(list, combinations(present, 2)))
    everything = [*present, *last]
    return [everything] if len(everything) > 2 else []


def _with_anchor(responses: Sequence[int], anchor: Sequence[int]) -> list[list[int]]:
    """Each response beside the anchor's, if there is one."""
    return [[response, *anchor] for response in responses if anchor]
