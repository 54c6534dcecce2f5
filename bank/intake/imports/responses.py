"""Imports models' responses."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

from django.db.models import Model, QuerySet

from bank.database import bulk, chunks
from bank.intake.formats.reading import BadFile, Problem, Row
from bank.intake.formats.records import ModelRecord, ResponseRecord
from bank.intake.formats.seen import SeenNames
from bank.intake.imports import Report
from bank.intake.imports.addressing import Addresses
from bank.intake.imports.context import ImportContext
from bank.models import EvaluatedModel, Response

Place = tuple[Any, ...]  # sample, model, and the values of ``place``: unique for each answer
AS_JSON = ("option_order", "likelihoods")
# New answers by column: their samples (see ImportContext), the names of their models, and what is stored of them.
# Plain lists, because millions of values go through the spool.
Batch = tuple[list[int], list[str], dict[str, bulk.Column]]


class AnswerImporter(ABC):
    """What importers of models' answers share. Answers are never changed."""

    noun = "responses"
    taken = "the same response already occurs at"
    another = "a different response of this model to this sample is stored; give this one a variant"
    place: tuple[str, ...] = ("variant",)
    compared: tuple[str, ...] = ("status", "text", "reason", "option_order", "tokens")

    def __init__(self, context: ImportContext) -> None:
        self.context = context
        self.seen = SeenNames()
        self.models: dict[str, int] = dict(EvaluatedModel.objects.values_list("name", "pk"))
        self.new_models: set[str] = set()
        self.new = 0
        self.cards = _cards(context)

    @abstractmethod
    def known(self, rows: list[Row], report: Report) -> Iterator[tuple[Row, Place]]:
        """The rows whose sample exists, each with the place of its answer; the others become problems."""

    @abstractmethod
    def stored_answers(self, places: list[Place]) -> "Iterable[QuerySet[Any]]":
        """Queries that find what may be stored in these places."""

    def values(self, record: Any) -> tuple[Any, ...]:
        """The values of ``compared``."""
        return record.known_status, record.text, record.reason, record.option_order, record.tokens

    def check(self, rows: list[Row], report: Report) -> Batch | None:
        fresh = self._fresh(rows, report)
        names = [place[1] for place, _ in fresh]
        new_models = set(names) - self.models.keys() - self.new_models
        self.new_models |= new_models
        self.new += len(fresh)
        report.made["models"] += len(new_models)
        report.made[self.noun] += len(fresh)
        self.announce([place for place, _ in fresh])
        if not fresh or not self.context.writes:
            return None
        by_column = zip(*((*place[2:], *values) for place, values in fresh), strict=True)
        columns: dict[str, bulk.Column] = dict(zip((*self.place, *self.compared), by_column, strict=True))
        for name in AS_JSON:
            if name in columns:
                columns[name] = [None if value is None else json.dumps(value) for value in columns[name]]
        columns = {name: bulk.compact(column) for name, column in columns.items()}
        return [place[0] for place, _ in fresh], names, columns

    def _fresh(self, rows: list[Row], report: Report) -> list[tuple[Place, tuple[Any, ...]]]:
        """The places where nothing is stored, with their values; what stands there twice, or otherwise, is refused."""
        known = list(self.known(rows, report))
        places = [place for _, place in known]
        taken = self.seen.claim(places, [row.where for row, _ in known])
        stored = self._stored(places)
        fresh: list[tuple[Place, tuple[Any, ...]]] = []
        for number, (row, place) in enumerate(known):
            values = self.values(row.data)
            if number in taken:
                report.refuse(row.where, "sample", f"{self.taken} {taken[number]}")
            elif place not in stored:
                fresh.append((place, values))
            elif stored[place] == values:
                report.unchanged += 1
            else:
                report.refuse(row.where, "text", self.another)
        return fresh

    @abstractmethod
    def announce(self, places: list[Place]) -> None:
        """Answers in these places will be made."""

    def expected_rows(self) -> dict[type[Model], int]:
        return {EvaluatedModel: len(self.new_models), Response: self.new}

    def write(self, batch: Batch) -> None:
        samples, names, columns = batch
        for name in sorted(set(names) - self.models.keys()):
            # Another part of this import, or another process, may have made it since the names were read.
            model = EvaluatedModel.objects.filter(name=name).first()
            self.models[name] = (model or self.context.writer.make(EvaluatedModel(name=name))).pk
        origin = Response.Origin.UNTRUSTED if self.context.untrusted else Response.Origin.STAFF
        own: dict[str, bulk.Column] = {
            "sample_id": [self.context.stored_sample_id(sample) for sample in samples],
            "model_id": [self.models[name] for name in names],
            "origin": bulk.Constant(str(origin), len(names)),
        }
        self.context.writer.put(Response, own | columns)

    def finish(self) -> None:
        """Write down what the files say of models, where nothing was known."""
        for names in chunks(self.cards):
            for model in EvaluatedModel.objects.filter(name__in=names):
                unknown = [field for field in model.CARD if getattr(model, field) in (None, "")]
                for field in unknown:
                    setattr(model, field, getattr(self.cards[model.name], field))
                model.save(update_fields=unknown)

    def _stored(self, places: list[Place]) -> dict[Place, tuple[Any, ...]]:
        """What is stored in these places."""
        wanted, found = set(places), {}
        key = 2 + len(self.place)
        for answers in self.stored_answers(places):
            for row in answers.values_list("sample", "model__name", *self.place, *self.compared).iterator(2000):
                if row[:key] in wanted:
                    found[row[:key]] = row[key:]
        return found


class Responses(AnswerImporter):
    """Imports response records of the context's benchmark.

    ``context.model`` names the model of rows that name none; rows of other models are then left out.
    """

    def __init__(self, context: ImportContext) -> None:
        super().__init__(context)
        self.answering: dict[str, bool] = {}  # whether the model has stored responses to this benchmark
        self.addresses = Addresses(context.benchmark, context.addresses)

    def known(self, rows: list[Row], report: Report) -> Iterator[tuple[Row, Place]]:
        if any(row.data.image_url or row.data.rotation for row in rows):
            rows = list(self._settled(rows, report))
        only = self.context.model
        for row, sample in zip(rows, self.context.sample_ids([row.data.sample for row in rows]), strict=True):
            record: ResponseRecord = row.data
            name = record.model or only
            if only and name != only:
                report.made["rows of other models left out"] += 1
            elif not name:
                report.refuse(row.where, "model", "is missing; name it with --model")
            elif not sample:
                report.refuse(
                    row.where, "sample", f"no sample {record.sample!r} in {self.context}", sample=record.sample
                )
            else:
                yield row, (sample, name, record.variant)

    def announce(self, places: list[Place]) -> None:
        self.context.announce_responses(places)

    def stored_answers(self, places: list[Place]) -> "Iterator[QuerySet[Any]]":
        models = [name for name in {place[1] for place in places} if self._answers(name)]
        for ids in chunks(place[0] for place in places if place[0] > 0 and models):
            yield Response.objects.filter(sample__in=ids, model__name__in=models)

    def _settled(self, rows: list[Row], report: Report) -> Iterator[Row]:
        for row in self.addresses.resolved(rows):
            if isinstance(row, Row):
                yield row
            else:
                report.add(row)

    def _answers(self, name: str) -> bool:
        """Whether the model has stored responses to samples of the benchmark."""
        if name not in self.answering:
            stored = Response.objects.filter(model__name=name, sample__benchmark=self.context.benchmark)
            self.answering[name] = self.context.benchmark is not None and name in self.models and stored.exists()
        return self.answering[name]


def _cards(context: ImportContext) -> dict[str, ModelRecord]:
    """What the files say of models, by name. Raises BadFile at the first bad row."""
    read: dict[str, ModelRecord] = {}
    source = context.source
    for row in source.module.cards(source.path) if hasattr(source.module, "cards") else ():
        if isinstance(row, Problem):
            raise BadFile(row.where, f"{row.field} {row.reason}")
        read[row.data.name] = row.data
    return read
