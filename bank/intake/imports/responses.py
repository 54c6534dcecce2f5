"""Models' responses."""

import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from django.db.models import Model

from bank.database import bulk, chunks
from bank.intake.formats.blocks import Block
from bank.intake.formats.reading import Row, Where
from bank.intake.formats.records import ResponseRecord
from bank.intake.imports import Report
from bank.intake.imports.addressing import Addresses
from bank.intake.imports.context import Scene
from bank.intake.imports.name_index import Seen
from bank.models import EvaluatedModel, Response

Place = tuple[int, str, str]  # sample, model, variant: what no two responses share
COMPARED = ("text", "reason", "option_order", "tokens")
OWN = ("variant", "status", *COMPARED)
COLUMNS = ("sample_id", "model_id", *OWN)

# Responses to be made, by columns: their samples (see Scene), the names of their models, and OWN. Plain lists: millions
# of values go through the spool.
Batch = tuple[list[int], list[str], tuple[bulk.Column, ...]]


class Responses:
    """Takes response records of the scene's benchmark.

    ``scene.model`` names the model of rows that name none; rows of other models are then left out.
    """

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.seen = Seen()
        self.models: dict[str, int] = dict(EvaluatedModel.objects.values_list("name", "pk"))
        self.answering: dict[str, bool] = {}  # whether responses of the model to this benchmark are stored
        self.coming_models: set[str] = set()
        self.addresses = Addresses(scene.benchmark, scene.addressed)

    def check(self, batch: Block | list[Row], report: Report) -> Batch | None:
        if isinstance(batch, Block):
            columns = batch.columns
            names, samples = list(columns["model"]), self.scene.sample_ids(columns["sample"])
            if self.scene.model or not all(names) or not all(samples):
                return self.check(batch.rows(), report)
            places = list(zip(samples, names, columns["variant"], strict=True))
            stored, taken = self._stored(places), self.seen.claim(places, batch.places)
            if stored or taken:
                return self._new(*self._sorted_out(batch.rows(), places, taken, stored, report), report)
            values = (*(columns[name] for name in OWN[:4]), [None] * len(places), columns["tokens"])
            return self._new(places, values, report)
        rows = batch
        if any(row.data.image_url or row.data.rotation for row in rows):
            rows = list(self._settled(rows, report))
        names = [row.data.model or self.scene.model for row in rows]
        if self.scene.model or not all(names):
            rows, names = self._named(rows, names, report)
        samples = self.scene.sample_ids([row.data.sample for row in rows])
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
        """Those of the rows that are to be made, by columns."""
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
        new_models = set(names) - self.models.keys() - self.coming_models
        self.coming_models |= new_models
        report.made["models"] += len(new_models)
        report.made["responses"] += len(places)
        self.scene.announce_responses(places)
        return (samples, names, tuple(map(bulk.packed, values))) if self.scene.writes and places else None

    def coming(self) -> dict[type[Model], int]:
        return {EvaluatedModel: len(self.coming_models), Response: self.scene.responses_coming}

    def write(self, batch: Batch) -> None:
        samples, names, values = batch
        for name in sorted(set(names) - self.models.keys()):
            # The benchmark was opened since the names were read, and its anchor made.
            model = EvaluatedModel.objects.filter(name=name).first()
            if model is None:
                model = self.scene.intake.make(EvaluatedModel(name=name, organisation=self.organisations.get(name, "")))
            self.models[name] = model.pk
        if min(samples) < 0:
            samples = [self.scene.real(sample) for sample in samples]
        models = [self.models[name] for name in names]
        self.scene.intake.put(Response, dict(zip(COLUMNS, (samples, models, *values), strict=True)))

    def show(self) -> None:
        """Responses are never changed."""

    @cached_property
    def organisations(self) -> dict[str, str]:
        module = self.scene.module
        return module.organisations(self.scene.path) if hasattr(module, "organisations") else {}

    def _settled(self, rows: list[Row], report: Report) -> Iterator[Row]:
        for row in self.addresses.settled(rows):
            if isinstance(row, Row):
                yield row
            else:
                report.add(row)

    def _fresh(self, row: Row, before: Where | None, old: Response | None, report: Report) -> bool:
        """Whether this response is to be made: it stood nowhere before, and none is stored."""
        record: ResponseRecord = row.data
        if before is not None:
            report.refuse(row.where, "sample", f"the same response stands already at {before}")
            return False
        if old is None:
            return True
        if old.status != record.known_status or any(getattr(old, f) != getattr(record, f) for f in COMPARED):
            reason = "another response of this model to this sample is stored; name this one by a variant"
            report.refuse(row.where, "text", reason)
        else:
            report.unchanged += 1
        return False

    def _named(self, rows: list[Row], names: list[str], report: Report) -> tuple[list[Row], list[str]]:
        """Those of the one model that is asked for, if one is; a row without a name is a problem."""
        kept = []
        for row, name in zip(rows, names, strict=True):
            if self.scene.model and name != self.scene.model:
                report.made["rows of other models left out"] += 1
            elif not name:
                report.refuse(row.where, "model", "is missing; name it with --model")
            else:
                kept.append((row, name))
        return [row for row, _ in kept], [name for _, name in kept]

    def _known(
        self, rows: list[Row], names: list[str], samples: list[int], report: Report
    ) -> tuple[list[Row], list[str], list[int]]:
        """Those whose sample there is; the others are problems."""
        kept = []
        for row, name, sample in zip(rows, names, samples, strict=True):
            if sample:
                kept.append((row, name, sample))
            else:
                report.refuse(row.where, "sample", f"there is no sample {row.data.sample!r} in {self.scene}")
        return [row for row, *_ in kept], [name for _, name, _ in kept], [sample for *_, sample in kept]

    def _stored(self, names: list[Place]) -> dict[Place, Response]:
        """The stored responses of these models to these samples."""
        models = [name for name in {name for _, name, _ in names} if self._answers(name)]
        if not models:
            return {}
        found = {}
        for ids in chunks(sample for sample, _, _ in names if sample > 0):
            for old in Response.objects.filter(sample_id__in=ids, model__name__in=models).select_related("model"):
                found[(old.sample_id, old.model.name, old.variant)] = old
        return found

    def _answers(self, name: str) -> bool:
        """Whether responses of the model to samples of the benchmark are stored."""
        if name not in self.answering:
            stored = Response.objects.filter(model__name=name, sample__benchmark=self.scene.benchmark)
            self.answering[name] = self.scene.benchmark is not None and name in self.models and stored.exists()
        return self.answering[name]
