"""The items that imported verdicts are about."""

from collections.abc import Iterable, Sequence

from django.db.models import Model

from bank.database import chunks
from bank.intake.formats.reading import Row
from bank.intake.formats.records import VerdictRecord
from bank.intake.imports import Report
from bank.intake.imports.context import ImportContext
from bank.intake.imports.writer import ImportWriter, Outdated
from bank.models import Item, ItemResponse, Response
from bank.samples.items import PLACE, ItemSpec, StoredItem, find_items, items_by_hash

Place = tuple[str, int, tuple[int, ...]]  # an item: its kind, sample and responses in canonical order


class PendingItems:
    """The items of an import: foreseen by its check, and made if missing when it writes.

    The check's rows may use negative ids (see ImportContext).
    """

    def __init__(self, context: ImportContext) -> None:
        self.context = context
        self.items = self.places = 0

    def foreseen(self, specs: Sequence[ItemSpec]) -> tuple[dict[str, StoredItem], int]:
        """The checked rows' items by content hash, and how many new ones the import will make.

        An item that is still to be made has no id (0); the first row that names it sets its canonical order.
        """
        items = find_items(specs)
        missing: dict[str, ItemSpec] = {}
        for spec in specs:
            if spec.content_hash not in items:
                missing.setdefault(spec.content_hash, spec)
        orders = dict(zip(missing, self.context.items.find(list(missing)), strict=True))
        new = [key for key, order in orders.items() if not order]
        orders |= {key: _order_number(missing[key].response_ids) for key in new}
        self.context.items.add(new, [orders[key] for key in new])
        for key, spec in missing.items():
            items[key] = StoredItem(0, _by_order_number(orders[key], spec.response_ids))
        self.items += len(new)
        self.places += sum(len(missing[key].response_ids) for key in new)
        return items, len(new)

    def rows(self) -> dict[type[Model], int]:
        return {Item: self.items, ItemResponse: self.places}

    def written(self, items: Sequence[Place]) -> list[int]:
        """Ids of these items; missing ones are queued for writing."""
        specs = [
            ItemSpec(
                kind, self.context.stored_sample_id(sample), tuple(map(self.context.stored_response_id, responses))
            )
            for kind, sample, responses in items
        ]
        names = [spec.content_hash for spec in specs]
        stored = items_by_hash(names)
        fresh: dict[str, ItemSpec] = {}
        for name, spec in zip(names, specs, strict=True):
            if name not in stored:
                fresh.setdefault(name, spec)
            elif stored[name].response_ids != spec.response_ids:
                raise Outdated("somebody made an item with a different canonical order")
        ids = {name: stored[name].pk for name in stored}
        if fresh:
            ids |= zip(fresh, _put(self.context.writer, fresh), strict=True)
        return [ids[name] for name in names]


def _put(writer: ImportWriter, fresh: dict[str, ItemSpec]) -> Sequence[int]:
    ids = writer.ids(Item, len(fresh))
    specs = fresh.values()
    kinds, samples = [spec.kind for spec in specs], [spec.sample_id for spec in specs]
    writer.put(Item, {"id": ids, "kind": kinds, "sample_id": samples, "content_hash": list(fresh)})
    places = [
        (pk, n, response) for pk, spec in zip(ids, specs, strict=True) for n, response in enumerate(spec.response_ids)
    ]
    if places:
        writer.put(ItemResponse, dict(zip(PLACE, zip(*places, strict=True), strict=True)))
    return ids


def _order_number(ids: Sequence[int]) -> int:
    """The order of these ids as one number: 1, then the rank of each."""
    ranks = sorted(ids)
    return int("1" + "".join(str(ranks.index(pk)) for pk in ids))


def _by_order_number(number: int, ids: Sequence[int]) -> tuple[int, ...]:
    ranks = sorted(ids)
    return tuple(ranks[int(rank)] for rank in str(number)[1:])


class Resolver:
    """Turns what verdict rows name (sample key, models) into item specs of the context's benchmark."""

    def __init__(self, context: ImportContext) -> None:
        self.context = context
        self.models: set[str] = set()

    def specs(self, rows: list[Row], report: Report) -> list[tuple[Row, ItemSpec]]:
        """Rows with the items they are about; rows that name an unknown sample or response become problems."""
        samples = self.context.sample_ids([row.data.sample for row in rows])
        responses = self._responses(rows, samples)
        resolved = []
        for row, sample in zip(rows, samples, strict=True):
            record: VerdictRecord = row.data
            if not sample:
                report.refuse(row.where, "sample", f"no sample {record.sample!r} in {self.context}")
                continue
            missing = next((r for r in record.responses if not responses.get((sample, r.model, r.variant))), None)
            if missing is not None:
                name = missing.model + (f" ({missing.variant})" if missing.variant else "")
                reason = f"{name!r} has no response to sample {record.sample!r}; import its responses first"
                if not self._known(missing.model):
                    reason = f"unknown model {name!r}: it has no response in {self.context}"
                report.refuse(row.where, "responses", reason)
                continue
            ids = tuple(responses[(sample, ref.model, ref.variant)] for ref in record.responses)
            resolved.append((row, ItemSpec(record.kind, sample, ids)))
        if any(row.data.texts for row, _ in resolved):
            resolved = self._of_these_texts(resolved, report)
        return resolved

    def _of_these_texts(self, resolved: list[tuple[Row, ItemSpec]], report: Report) -> list[tuple[Row, ItemSpec]]:
        """The rows whose stored responses have the texts that the rows quote. A pending text is from the same file."""
        ids_wanted = {pk for row, spec in resolved if row.data.texts for pk in spec.response_ids if pk > 0}
        stored: dict[int, str] = {}
        for ids in chunks(ids_wanted):
            stored |= Response.objects.filter(pk__in=ids).values_list("pk", "text")
        same = []
        for row, spec in resolved:
            pairs = zip(spec.response_ids, row.data.texts, row.data.responses, strict=False)
            other = next((ref for pk, text, ref in pairs if stored.get(pk, text) != text), None)
            if other is None:
                same.append((row, spec))
            else:
                reason = f"the stored response of {other.model!r} to sample {row.data.sample!r} has a different text"
                report.refuse(row.where, "responses", reason)
        return same

    def _stored(self, samples: Iterable[int]) -> dict[tuple[int, str, str], int]:
        ids: dict[tuple[int, str, str], int] = {}
        for batch in chunks(samples):
            stored = Response.objects.filter(sample_id__in=batch)
            for pk, sample, model, variant in stored.values_list("pk", "sample_id", "model__name", "variant"):
                ids[(sample, model, variant)] = pk
        return ids

    def _responses(self, rows: list[Row], samples: list[int]) -> dict[tuple[int, str, str], int]:
        """Ids of the responses to these samples, pending ones included."""
        ids = self._stored(sample for sample in samples if sample > 0)
        self.models |= {model for _, model, _ in ids}
        if self.context.pending_responses:
            named = {
                (sample, ref.model, ref.variant)
                for row, sample in zip(rows, samples, strict=True)
                for ref in row.data.responses
            }
            pending = list(named - ids.keys())
            ids |= zip(pending, self.context.responses.find(pending), strict=True)
            self.models |= {name[1] for name in pending if ids[name]}
        return ids

    def _known(self, model: str) -> bool:
        if model in self.models:
            return True
        stored = Response.objects.filter(model__name=model, sample__benchmark=self.context.benchmark)
        return self.context.benchmark is not None and stored.exists()


def describe(ids: Sequence[int]) -> str:
    """Presented or canonical positions as a short string: "10"."""
    return "".join(str(position) for position in ids)
