"""The items that imported verdicts are about."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, reduce
from operator import or_
from typing import Any

from django.db.models import Model

from bank import exposure
from bank.database import chunks, unfinished
from bank.intake.formats.reading import Row, Where
from bank.intake.formats.records import AS_STORED, Ref, VerdictRecord
from bank.intake.formats.seen import NameIndex
from bank.intake.imports import Report
from bank.intake.imports.context import FIRST_PENDING, ImportContext
from bank.models import EvaluatedModel, Item, ItemResponse, Response, Sample
from bank.models.verdict import GRADED
from bank.samples.items import PLACE, ItemSpec, StoredItem, find_items, note_blind_twins, outside_among

NUMBER = 32  # bits of a pending item's number that say in which order its responses are


Columns = dict[str, Any]  # by name, with one value per row


@dataclass(frozen=True, slots=True)
class Block:
    """Judgments or labels by column, under the names of their record.

    ``responses`` are tuples of model and variant; the verdict columns count positions in them, and so does ``order``,
    the positions in presented order; ``revisions`` are records.
    """

    places: Sequence[Where]
    columns: Columns

    def __len__(self) -> int:
        return len(self.places)

    def without(self, refused: Container[int]) -> "Block":
        """The block without some of its rows, by index."""
        kept = [index for index in range(len(self)) if index not in refused]
        columns = {name: [column[index] for index in kept] for name, column in self.columns.items()}
        return Block([self.places[index] for index in kept], columns)


def block_of(rows: Sequence[Row]) -> Block:
    """Not for empty lists."""
    records: list[VerdictRecord] = [row.data for row in rows]
    values = [vars(record) for record in records]
    columns: Columns = {name: [of_record[name] for of_record in values] for name in type(records[0]).model_fields}
    columns["responses"] = list(map(tuple, columns["responses"]))
    columns |= {name: list(map(stored, records)) for name, stored in AS_STORED.items()}
    graded = [preference is not None for preference in columns["preference"]]
    columns["protocol"] = [GRADED if each else name for each, name in zip(graded, columns["protocol"], strict=True)]
    if "order" in columns:
        columns["order"] = [_presented(record) for record in records]
    if "revisions" in columns:
        columns["revisions"] = [record.earlier() for record in records]  # type: ignore[attr-defined]
    return Block([row.where for row in rows], columns)


def _presented(record: Any) -> tuple[int, ...]:
    return tuple(map(record.responses.index, record.order or record.responses))


@dataclass(slots=True)
class NewItems:
    """Items that a batch of verdicts makes, by column; samples and responses may be pending (see ImportContext)."""

    kinds: list[str] = field(default_factory=list)
    samples: list[int] = field(default_factory=list)
    responses: list[tuple[int, ...]] = field(default_factory=list)
    hashes: list[str] = field(default_factory=list)


class VerdictItems:
    """Finds the items of verdict rows, and makes those that are missing.

    Items are named by a number: the id of a stored item; for one that the import makes a negative number, see
    ImportContext. All items that are announced are written, in the same order.
    """

    def __init__(self, context: ImportContext) -> None:
        self.context = context
        self.announced = self.places = 0
        self.stored = NameIndex()  # stored responses by sample, model and variant
        self.loaded: set[int] = set()  # samples whose responses are in it
        self.models: dict[int, str] = {}
        self.answering: set[int] = set()  # models with responses in it

    def resolved(self, block: Block, report: Report) -> tuple[Block, list[ItemSpec]]:
        """The rows whose sample and responses exist, and the items they are about; the others become problems."""
        columns = block.columns
        samples = self.context.sample_ids(columns["sample"])
        responses = self._responses(samples, columns["responses"])
        refused = {row for row, ids in enumerate(responses) if not samples[row] or 0 in ids}
        for row in sorted(refused):
            self._refuse(block, row, bool(samples[row]), responses[row], report)
        specs = [
            ItemSpec(kind, sample, ids)
            for row, (kind, sample, ids) in enumerate(zip(columns["kind"], samples, responses, strict=True))
            if row not in refused
        ]
        block = block.without(refused) if refused else block
        if any(block.columns.get("texts", ())):
            return self._of_these_texts(block, specs, report)
        return block, specs

    def find(self, block: Block, specs: Sequence[ItemSpec]) -> dict[str, StoredItem]:
        """The items of these rows by content hash, with their numbers as ids: 0 for one that nobody has announced yet.

        The canonical order of a new item is that of the first row that names it; but by name where verdicts of the
        benchmark may be sealed: everybody sees the order, and a row may name the better answer first.
        """
        items = find_items(specs)
        missing: dict[str, tuple[ItemSpec, Sequence[Ref]]] = {}
        for spec, refs in zip(specs, block.columns["responses"], strict=True):
            if spec.content_hash not in items:
                missing.setdefault(spec.content_hash, (spec, refs))
        for (name, (spec, refs)), code in zip(missing.items(), self.context.items.find(list(missing)), strict=True):
            ids = spec.response_ids
            if code:
                order = _by_order_number(code & (1 << NUMBER) - 1, ids)
                items[name] = StoredItem(FIRST_PENDING - (code >> NUMBER), order)
            elif self.by_name:
                items[name] = StoredItem(0, tuple(pk for _, pk in sorted(zip(refs, ids, strict=True))))
            else:
                items[name] = StoredItem(0, ids)
        return items

    def announce(
        self, specs: Iterable[ItemSpec], items: Mapping[str, StoredItem], report: Report
    ) -> tuple[list[int], NewItems]:
        """The numbers of these items, and those of them that the batch must write: they have none in ``items``."""
        numbers, new, codes = [], NewItems(), []
        announced: dict[str, int] = {}
        for spec in specs:
            name = spec.content_hash
            number = items[name].pk or announced.get(name, 0)
            if not number:
                place = self.context.pending_items + len(new.hashes)
                number = announced[name] = FIRST_PENDING - place
                responses = items[name].response_ids
                codes.append(place << NUMBER | _order_number(responses))
                new.kinds.append(spec.kind)
                new.samples.append(spec.sample_id)
                new.responses.append(responses)
                new.hashes.append(name)
            numbers.append(number)
        self.context.items.add(new.hashes, codes)
        self.context.pending_items += len(codes)
        self.announced += len(codes)
        self.places += sum(map(len, new.responses))
        report.made["items"] += len(codes)
        return numbers, new

    def expected_rows(self) -> dict[type[Model], int]:
        return {Item: self.announced, ItemResponse: self.places}

    def write(self, new: NewItems) -> None:
        if not new.hashes:
            return
        context, writer = self.context, self.context.writer
        samples, responses, hashes = new.samples, new.responses, new.hashes
        if min(samples) < 0 or any(min(ids, default=1) < 0 for ids in responses):
            samples = [context.stored_sample_id(sample) for sample in samples]
            responses = [tuple(map(context.stored_response_id, ids)) for ids in responses]
            specs = map(ItemSpec, new.kinds, samples, responses)
            hashes = [spec.content_hash for spec in specs]
        ids = writer.ids(Item, len(hashes))
        from_outside = outside_among(pk for of_item in responses for pk in of_item) if self.may_be_outside else set()
        outside = [not from_outside.isdisjoint(of_item) for of_item in responses]
        columns = {"id": ids, "kind": new.kinds, "sample_id": samples, "content_hash": hashes, "outside": outside}
        columns["held"] = [context.held] * len(ids)
        writer.put(Item, columns)
        places = [
            (pk, position, response)
            for pk, of_item in zip(ids, responses, strict=True)
            for position, response in enumerate(of_item)
        ]
        if places:
            writer.put(ItemResponse, dict(zip(PLACE, zip(*places, strict=True), strict=True)))

    def finish(self) -> None:
        """Note which of the new items people label blind in another version. Runs in the last transaction."""
        if self.announced:
            with unfinished.included():
                note_blind_twins(self.context.writer.reserved(Item))

    @cached_property
    def by_name(self) -> bool:
        """Whether verdicts of the benchmark, those of this import included, may be sealed."""
        context = self.context
        stored = Sample.objects.filter(benchmark=context.benchmark) if context.benchmark else Sample.objects.none()
        closed = exposure.closed_in(stored) | reduce(or_, context.pending_closed, exposure.NOTHING)
        return bool(context.hidden_splits) or bool(context.held & closed & exposure.KEYED)

    @cached_property
    def may_be_outside(self) -> bool:
        """Whether the benchmark has answers from outside, those of this import included."""
        answers = Response.objects.filter(sample__benchmark=self.context.open())
        return answers.exclude(origin=Response.Origin.STAFF).exists()

    def ids(self, numbers: Sequence[int]) -> Sequence[int]:
        """The ids of announced items that are written, or about to be."""
        reserved = self.context.writer.reserved(Item)
        return [number if number > 0 else reserved[FIRST_PENDING - number] for number in numbers]

    def _responses(self, samples: Sequence[int], named: Sequence[tuple[tuple[str, str], ...]]) -> list[tuple[int, ...]]:
        """Ids of the responses that rows name, pending ones included; 0 for those that do not exist."""
        self._load({sample for sample in samples if sample > 0} - self.loaded)
        names = [(sample, *ref) for sample, refs in zip(samples, named, strict=True) for ref in refs]
        ids = self.stored.find(names)
        if self.context.pending_responses:
            pending = self.context.responses.find(names)
            ids = [stored or coming for stored, coming in zip(ids, pending, strict=True)]
        by_row, start = [], 0
        for refs in named:
            by_row.append(tuple(ids[start : start + len(refs)]))
            start += len(refs)
        return by_row

    def _load(self, samples: set[int]) -> None:
        """Read the responses of these samples, so that each is read once, in whatever order rows name them."""
        for batch in chunks(samples):
            responses = Response.objects.filter(sample_id__in=batch)
            rows = list(responses.values_list("pk", "sample_id", "model_id", "variant"))
            models = {row[2] for row in rows}
            if not models <= self.models.keys():
                self.models |= EvaluatedModel.objects.values_list("pk", "name")
            self.answering |= models
            names = [(sample, self.models[model], variant) for _, sample, model, variant in rows]
            self.stored.add(names, [row[0] for row in rows])
        self.loaded |= samples

    def _refuse(self, block: Block, row: int, sample_known: bool, ids: tuple[int, ...], report: Report) -> None:
        sample, where = block.columns["sample"][row], block.places[row]
        if not sample_known:
            report.refuse(where, "sample", f"no sample {sample!r} in {self.context}", sample=sample)
            return
        model, variant = block.columns["responses"][row][ids.index(0)]
        name = model + (f" ({variant})" if variant else "")
        reason = f"{name!r} has no response to sample {sample!r}; import its responses first"
        if not self._known(model):
            reason = f"unknown model {name!r}: it has no response in {self.context}"
        report.refuse(where, "responses", reason)

    def _known(self, model: str) -> bool:
        """Whether the model has responses to the benchmark, pending ones included."""
        if model in self.context.models_answering or any(self.models[pk] == model for pk in self.answering):
            return True
        stored = Response.objects.filter(model__name=model, sample__benchmark=self.context.benchmark)
        return self.context.benchmark is not None and stored.exists()

    def _of_these_texts(self, block: Block, specs: list[ItemSpec], report: Report) -> tuple[Block, list[ItemSpec]]:
        """The rows whose stored responses have the texts that the rows quote. A pending text is from the same file."""
        all_texts, all_refs = block.columns["texts"], block.columns["responses"]
        quoted = {
            pk for spec, texts in zip(specs, all_texts, strict=True) if texts for pk in spec.response_ids if pk > 0
        }
        stored: dict[int, str] = {}
        for ids in chunks(quoted):
            stored |= Response.objects.filter(pk__in=ids).values_list("pk", "text")
        refused = set()
        for row, (spec, texts, refs) in enumerate(zip(specs, all_texts, all_refs, strict=True)):
            pairs = zip(spec.response_ids, texts, refs, strict=False)
            other = next((ref for pk, text, ref in pairs if stored.get(pk, text) != text), None)
            if other is not None:
                refused.add(row)
                sample = block.columns["sample"][row]
                reason = f"the stored response of {other[0]!r} to sample {sample!r} has a different text"
                report.refuse(block.places[row], "responses", reason)
        if not refused:
            return block, specs
        return block.without(refused), [spec for row, spec in enumerate(specs) if row not in refused]


def _order_number(ids: Sequence[int]) -> int:
    """The order of these ids as one number: 1, then the rank of each."""
    ranks = sorted(ids)
    return int("1" + "".join(str(ranks.index(pk)) for pk in ids))


def _by_order_number(number: int, ids: Sequence[int]) -> tuple[int, ...]:
    ranks = sorted(ids)
    return tuple(ranks[int(rank)] for rank in str(number)[1:])


@lru_cache(maxsize=1000)
def describe(positions: tuple[int, ...]) -> str:
    """Positions in presented order as they are stored: "10"; "0" without responses."""
    return "".join(map(str, positions)) or "0"
