"""Items: found by their responses, or made."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from django.db import IntegrityError, transaction

from bank import bulk
from bank.formats.reading import Row
from bank.formats.records import VerdictRecord
from bank.imports import Report, chunks
from bank.imports.scene import Scene
from bank.models import Item, ItemResponse, Response
from bank.models.items import content_hash

Rec = TypeVar("Rec", bound=VerdictRecord)


@dataclass(frozen=True, slots=True)
class Spec:
    """An item as a row names it."""

    kind: str
    sample_id: int
    response_ids: tuple[int, ...]

    @property
    def content_hash(self) -> str:
        return content_hash(kind=self.kind, sample_id=self.sample_id, response_ids=self.response_ids)


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
    found: dict[str, Found] = {}
    for hashes in chunks(spec.content_hash for spec in specs):
        for item in Item.objects.filter(content_hash__in=hashes).prefetch_related("places"):
            found[item.content_hash] = Found(item.pk, tuple(place.response_id for place in item.places.all()))
    return found


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
    bulk.insert(ItemResponse, ("item_id", "position", "response_id"), places)
    return {key: Found(pk, spec.response_ids) for pk, (key, spec) in pairs}


def foreseen(specs: Sequence[Spec], scene: Scene) -> tuple[dict[str, Found], int]:
    """The items of a check by content hash, and how many of them the import will make and did not know of before.

    One that is to be made has no id yet (0); the first row that names it gives its canonical order.
    """
    found = find(specs)
    coming: dict[str, Spec] = {}
    for spec in specs:
        if spec.content_hash not in found:
            coming.setdefault(spec.content_hash, spec)
    known = dict(zip(coming, scene.items.find(list(coming)), strict=True))
    new = [key for key, order in known.items() if not order]
    known |= {key: _order_number(coming[key].response_ids) for key in new}
    scene.items.add(new, [known[key] for key in new])
    for key, spec in coming.items():
        found[key] = Found(0, _by_order_number(known[key], spec.response_ids))
    return found, len(new)


def _order_number(ids: Sequence[int]) -> int:
    """The order of these ids as one number: 1, then the rank of each."""
    ranks = sorted(ids)
    return int("1" + "".join(str(ranks.index(one)) for one in ids))


def _by_order_number(number: int, ids: Sequence[int]) -> tuple[int, ...]:
    ranks = sorted(ids)
    return tuple(ranks[int(rank)] for rank in str(number)[1:])


class Resolver:
    """Turns what verdict rows name (sample key, models) into item specs of the scene's benchmark."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.models: set[str] = set()

    def specs(self, rows: list[Row], report: Report) -> list[tuple[Row, Spec]]:
        """Rows with the items they are about; those that name an unknown sample or response become problems."""
        samples = self.scene.sample_ids([row.data.sample for row in rows])
        responses = self._responses(rows, samples)
        resolved = []
        for row, sample in zip(rows, samples, strict=True):
            record: VerdictRecord = row.data
            if not sample:
                report.refuse(row.where, "sample", f"there is no sample {record.sample!r} in {self.scene}")
                continue
            missing = next((r for r in record.responses if not responses.get((sample, r.model, r.variant))), None)
            if missing is not None:
                name = missing.model + (f" ({missing.variant})" if missing.variant else "")
                reason = f"{name!r} has no response to sample {record.sample!r}; import its responses first"
                if not self._known(missing.model):
                    reason = f"unknown model {name!r}: no response of it is in {self.scene}"
                report.refuse(row.where, "responses", reason)
                continue
            ids = tuple(responses[(sample, ref.model, ref.variant)] for ref in record.responses)
            resolved.append((row, Spec(record.kind, sample, ids)))
        if any(row.data.texts for row, _ in resolved):
            resolved = self._of_these_texts(resolved, report)
        return resolved

    def _of_these_texts(self, resolved: list[tuple[Row, Spec]], report: Report) -> list[tuple[Row, Spec]]:
        """Those about the texts that they hold. A text that is only coming is from the same file."""
        wanted = {pk for row, spec in resolved if row.data.texts for pk in spec.response_ids if pk > 0}
        stored: dict[int, str] = {}
        for ids in chunks(wanted):
            stored |= Response.objects.filter(pk__in=ids).values_list("pk", "text")
        same = []
        for row, spec in resolved:
            pairs = zip(spec.response_ids, row.data.texts, row.data.responses, strict=False)
            other = next((ref for pk, text, ref in pairs if stored.get(pk, text) != text), None)
            if other is None:
                same.append((row, spec))
            else:
                reason = f"the stored response of {other.model!r} to sample {row.data.sample!r} has another text"
                report.refuse(row.where, "responses", reason)
        return same

    def written(self, records: Sequence[Rec]) -> list[tuple[Rec, Spec]]:
        """The items of checked records, once their samples and responses are stored."""
        samples = [self.scene.real(sample) for sample in self.scene.sample_ids([record.sample for record in records])]
        responses = self._stored(samples)
        return [
            (
                record,
                Spec(record.kind, sample, tuple(responses[(sample, r.model, r.variant)] for r in record.responses)),
            )
            for record, sample in zip(records, samples, strict=True)
        ]

    def _stored(self, samples: Iterable[int]) -> dict[tuple[int, str, str], int]:
        found: dict[tuple[int, str, str], int] = {}
        for some in chunks(samples):
            stored = Response.objects.filter(sample_id__in=some)
            for pk, of, model, variant in stored.values_list("pk", "sample_id", "model__name", "variant"):
                found[(of, model, variant)] = pk
        return found

    def _responses(self, rows: list[Row], samples: list[int]) -> dict[tuple[int, str, str], int]:
        """Ids of the responses to these samples, those that are only coming included."""
        found = self._stored(sample for sample in samples if sample > 0)
        self.models |= {model for _, model, _ in found}
        if self.scene.responses_coming:
            named = {
                (sample, ref.model, ref.variant)
                for row, sample in zip(rows, samples, strict=True)
                for ref in row.data.responses
            }
            wanted = list(named - found.keys())
            found |= zip(wanted, self.scene.responses.find(wanted), strict=True)
            self.models |= {name[1] for name in wanted if found[name]}
        return found

    def _known(self, model: str) -> bool:
        if model in self.models:
            return True
        stored = Response.objects.filter(model__name=model, sample__benchmark=self.scene.benchmark)
        return self.scene.benchmark is not None and stored.exists()


def describe(ids: Sequence[int]) -> str:
    """Presented or canonical positions as a short string: "10"."""
    return "".join(str(position) for position in ids)
