"""Imports models' responses."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from django.db.models import Model

from bank.database import bulk, chunks
from bank.intake.formats.reading import BadFile, Problem, Row, Where
from bank.intake.formats.records import ModelRecord, ResponseRecord
from bank.intake.imports import Report
from bank.intake.imports.addressing import Addresses
from bank.intake.imports.context import ImportContext
from bank.intake.imports.name_index import SeenNames
from bank.models import EvaluatedModel, Response

Place = tuple[int, str, str]  # sample, model, variant: unique for each response
COMPARED = ("text", "reason", "option_order", "tokens")
OWN = ("variant", "status", *COMPARED)
COLUMNS = ("sample_id", "model_id", *OWN)

# New responses by column: their samples (see ImportContext), the names of their models, and OWN. Plain lists, because
# millions of values go through the spool.
Batch = tuple[list[int], list[str], tuple[bulk.Column, ...]]


class Responses:
    """Imports response records of the context's benchmark.

    ``context.model`` names the model of rows that name none; rows of other models are then left out.
    """

    def __init__(self, context: ImportContext) -> None:
        self.context, self.cards = context, _cards(context)
        self.seen = SeenNames()
        self.models: dict[str, int] = dict(EvaluatedModel.objects.values_list("name", "pk"))
        self.answering: dict[str, bool] = {}  # whether the model has stored responses to this benchmark
        self.new_models: set[str] = set()
        self.addresses = Addresses(context.benchmark, context.addresses)

    def check(self, rows: list[Row], report: Report) -> Batch | None:
        if any(row.data.image_url or row.data.rotation for row in rows):
            rows = list(self._settled(rows, report))
        names = [row.data.model or self.context.model for row in rows]
        if self.context.model or not all(names):
            rows, names = self._named(rows, names, report)
        samples = self.context.sample_ids([row.data.sample for row in rows])
        if not all(samples):
            rows, names, samples = self._known(rows, names, samples, report)
        places = list(zip(samples, names, [row.data.variant for row in rows], strict=True))
        stored, taken = self._stored(places), self.seen.claim(places, [row.where for row in rows])
        return self._new(*self._sorted_out(rows, places, taken, stored, report), report)

    def _sorted_out(
        self,
        rows: list[Row],
        places: list[Place],
        taken: dict[int, Where],
        stored: dict[Place, Response],
        report: Report,
    ) -> tuple[list[Place], tuple[Sequence[Any], ...]]:
        """Columns of the rows that are to be made."""
        fresh = [
            (row.data, place)
            for number, (row, place) in enumerate(zip(rows, places, strict=True))
            if self._fresh(row, taken.get(number), stored.get(place), report)
        ]
        records: list[ResponseRecord] = [record for record, _ in fresh]
        orders = [None if r.option_order is None else json.dumps(r.option_order) for r in records]
        values = (
            [record.variant for record in records],
            [record.known_status for record in records],
            [record.text for record in records],
            [record.reason for record in records],
            orders,
            [record.tokens for record in records],
        )
        return [place for _, place in fresh], values

    def _new(self, places: list[Place], values: tuple[Sequence[Any], ...], report: Report) -> Batch | None:
        samples, names = [place[0] for place in places], [place[1] for place in places]
        new_models = set(names) - self.models.keys() - self.new_models
        self.new_models |= new_models
        report.made["models"] += len(new_models)
        report.made["responses"] += len(places)
        self.context.announce_responses(places)
        return (samples, names, tuple(map(bulk.compact, values))) if self.context.writes and places else None

    def expected_rows(self) -> dict[type[Model], int]:
        return {EvaluatedModel: len(self.new_models), Response: self.context.pending_responses}

    def write(self, batch: Batch) -> None:
        samples, names, values = batch
        for name in sorted(set(names) - self.models.keys()):
            # The benchmark has been opened, and its anchor made, since the names were read.
            model = EvaluatedModel.objects.filter(name=name).first()
            if model is None:
                model = self.context.writer.make(EvaluatedModel(name=name))
            self.models[name] = model.pk
        if min(samples) < 0:
            samples = [self.context.stored_sample_id(sample) for sample in samples]
        models = [self.models[name] for name in names]
        origin = Response.Origin.UNTRUSTED if self.context.untrusted else Response.Origin.STAFF
        columns = dict(zip(COLUMNS, (samples, models, *values), strict=True))
        self.context.writer.put(Response, columns | {"origin": bulk.Constant(str(origin), len(samples))})

    def finish(self) -> None:
        """Write down what the files say of models, where nothing was known. Responses are never changed."""
        for names in chunks(self.cards):
            for model in EvaluatedModel.objects.filter(name__in=names):
                unknown = [field for field in model.CARD if getattr(model, field) in (None, "")]
                for field in unknown:
                    setattr(model, field, getattr(self.cards[model.name], field))
                model.save(update_fields=unknown)

    def _settled(self, rows: list[Row], report: Report) -> Iterator[Row]:
        for row in self.addresses.resolved(rows):
            if isinstance(row, Row):
                yield row
            else:
                report.add(row)

    def _fresh(self, row: Row, earlier: Where | None, old: Response | None, report: Report) -> bool:
        """Whether this response is new: it did not occur before, and none is stored."""
        record: ResponseRecord = row.data
        if earlier is not None:
            report.refuse(row.where, "sample", f"the same response already occurs at {earlier}")
            return False
        if old is None:
            return True
        if old.status != record.known_status or any(getattr(old, f) != getattr(record, f) for f in COMPARED):
            reason = "a different response of this model to this sample is stored; give this one a variant"
            report.refuse(row.where, "text", reason)
        else:
            report.unchanged += 1
        return False

    def _named(self, rows: list[Row], names: list[str], report: Report) -> tuple[list[Row], list[str]]:
        """The rows of the requested model, if one is requested; a row without a model is a problem."""
        named = []
        for row, name in zip(rows, names, strict=True):
            if self.context.model and name != self.context.model:
                report.made["rows of other models left out"] += 1
            elif not name:
                report.refuse(row.where, "model", "is missing; name it with --model")
            else:
                named.append((row, name))
        return [row for row, _ in named], [name for _, name in named]

    def _known(
        self, rows: list[Row], names: list[str], samples: list[int], report: Report
    ) -> tuple[list[Row], list[str], list[int]]:
        """The rows whose sample exists; the others become problems."""
        known_rows = []
        for row, name, sample in zip(rows, names, samples, strict=True):
            if sample:
                known_rows.append((row, name, sample))
            else:
                report.refuse(row.where, "sample", f"no sample {row.data.sample!r} in {self.context}")
        return (
            [row for row, *_ in known_rows],
            [name for _, name, _ in known_rows],
            [sample for *_, sample in known_rows],
        )

    def _stored(self, names: list[Place]) -> dict[Place, Response]:
        """The stored responses of these models to these samples."""
        models = [name for name in {name for _, name, _ in names} if self._answers(name)]
        if not models:
            return {}
        responses = {}
        for ids in chunks(sample for sample, _, _ in names if sample > 0):
            for old in Response.objects.filter(sample_id__in=ids, model__name__in=models).select_related("model"):
                responses[(old.sample_id, old.model.name, old.variant)] = old
        return responses

    def _answers(self, name: str) -> bool:
        """Whether the model has stored responses to samples of the benchmark."""
        if name not in self.answering:
            stored = Response.objects.filter(model__name=name, sample__benchmark=self.context.benchmark)
            self.answering[name] = self.context.benchmark is not None and name in self.models and stored.exists()
        return self.answering[name]


def _cards(context: ImportContext) -> dict[str, ModelRecord]:
    """What the files say of models, by name. Raises BadFile at the first bad row."""
    read: dict[str, ModelRecord] = {}
    for row in context.source.module.cards(context.source.path) if hasattr(context.source.module, "cards") else ():
        if isinstance(row, Problem):
            raise BadFile(row.where, f"{row.field} {row.reason}")
        read[row.data.name] = row.data
    return read
