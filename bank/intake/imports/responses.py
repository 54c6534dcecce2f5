"""Imports models' responses."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from django.db.models import Model

from bank.database import bulk, chunks
from bank.intake.formats.reading import BadFile, Problem, Row
from bank.intake.formats.records import ModelRecord
from bank.intake.imports import Report
from bank.intake.imports.addressing import Addresses
from bank.intake.imports.context import ImportContext
from bank.intake.imports.stage import KEY, NUMBER, TEXT, columns_of, seen
from bank.models import EvaluatedModel, Response, Sample

NEW = "staged_new_model"


class AnswerImporter(ABC):
    """What importers of models' answers share. Answers are never changed."""

    table = "staged_answer"
    noun = "responses"
    taken = "the same response already occurs at"
    another = "a different response of this model to this sample is stored; give this one a variant"
    place: tuple[str, ...] = ("variant",)  # with sample and model, what is unique for each answer
    compared: tuple[str, ...] = ("status", "text", "reason", "option_order", "tokens")

    def __init__(self, context: ImportContext) -> None:
        self.context, self.stage = context, context.stage
        self.cards = _cards(context)
        self.rows = 0
        self.new_models: list[str] = []
        columns = columns_of(Response, (*self.place, *self.compared))
        self.stage.make(self.table, n=KEY, place=NUMBER, key=TEXT, name=TEXT, **columns)

    @abstractmethod
    def good(self, rows: list[Row], report: Report) -> list[Row]:
        """The rows that name what they have to; the others become problems."""

    def values(self, record: Any) -> tuple[Any, ...]:
        """The values of ``place`` and ``compared``."""
        said = record.known_status, record.text, record.reason, record.option_order, record.tokens
        return record.variant, *said

    def check(self, rows: list[Row], report: Report) -> None:
        rows = self.good(rows, report)
        if not rows:
            return
        values = zip(*(self.values(row.data) for row in rows), strict=True)
        own: dict[str, bulk.Column] = {
            "n": range(self.rows + 1, self.rows + len(rows) + 1),
            "place": self.stage.places([row.where for row in rows]),
            "key": [row.data.sample for row in rows],
            "name": [row.data.model or self.context.model for row in rows],
        }
        names = (*self.place, *self.compared)
        self.stage.put(self.table, own | bulk.prepared(Response, dict(zip(names, values, strict=True))))
        self.rows += len(rows)

    def settle(self, report: Report) -> None:
        self._refuse_without_sample(report)
        key = {"named.sample": NUMBER, "staged.name": TEXT}
        key |= {f"staged.{column}": kind for column, kind in columns_of(Response, self.place).items()}
        for where, first, _ in self.stage.repeated(self.table, self.named, key, told="n"):
            report.refuse(where, "sample", f"{self.taken} {first}")
        for where, is_same in self.stage.stored(self.table, self._of_stored(), Response, self.compared):
            if is_same:
                report.unchanged += 1
            else:
                report.refuse(where, "text", self.another)
        self._find_new_models(report)
        report.made[self.noun] += self.stage.number(f"SELECT count(*) FROM {self.table}")

    @property
    def named(self) -> str:
        """A join to the samples that answers name, stored or pending."""
        return f"JOIN {self.table}_sample named ON named.n = staged.n"

    def _refuse_without_sample(self, report: Report) -> None:
        stage = self.stage
        stage.make(f"{self.table}_sample", n=KEY, sample=NUMBER)
        stage.look_at(self.table)
        stage.do(
            f"""INSERT INTO {self.table}_sample SELECT staged.n, coalesce(stored.id, pending.number, 0)
            FROM {self.table} staged {self.context.of_sample("staged.key")} ORDER BY staged.n"""
        )
        stage.look_at(f"{self.table}_sample")
        if not stage.number(f"SELECT count(*) FROM {self.table}_sample WHERE sample = 0"):
            return
        for place, key in stage.rows(
            self.table,
            f"""SELECT staged.place, staged.key FROM {self.table} staged {self.named}
            WHERE staged.n BETWEEN %s AND %s AND named.sample = 0 ORDER BY staged.n""",
        ):
            report.refuse(stage.where(place), "sample", f"no sample {key!r} in {self.context}", sample=key)
        stage.do(f"DELETE FROM {self.table} WHERE n IN (SELECT n FROM {self.table}_sample WHERE sample = 0)")

    def _of_stored(self) -> str:
        same = " AND ".join(
            f"stored.{column} = staged.{column}" for column in columns_of(Response, self.place) if column != "recipe_id"
        )
        recipe = "= staged.recipe_id" if "recipe" in self.place else "IS NULL"
        return f"""{self.named} JOIN bank_evaluatedmodel model ON model.name = staged.name JOIN bank_response stored
            ON stored.sample_id = named.sample AND stored.model_id = model.id AND {same}
                AND stored.recipe_id {recipe}"""

    def _find_new_models(self, report: Report) -> None:
        """Models that are not here, other parts of the import included."""
        if not self.stage.has(NEW):
            self.stage.make(NEW, name=f"{TEXT} PRIMARY KEY")
        rows = self.stage.ask(
            f"""SELECT DISTINCT staged.name FROM {self.table} staged
            LEFT JOIN bank_evaluatedmodel model ON model.name = staged.name AND {seen(EvaluatedModel, "model")}
            LEFT JOIN {NEW} new ON new.name = staged.name WHERE model.id IS NULL AND new.name IS NULL"""
        )
        self.new_models = sorted(name for (name,) in rows)
        self.stage.put(NEW, {"name": self.new_models})
        report.made["models"] += len(self.new_models)

    def expected_rows(self) -> dict[type[Model], int]:
        return {EvaluatedModel: len(self.new_models), Response: self.stage.span(self.table)}

    def write(self) -> Iterator[int]:
        writer = self.context.writer
        # Another process may have made one since the names were read.
        there = set(EvaluatedModel.objects.filter(name__in=self.new_models).values_list("name", flat=True))
        writer.put_objects([EvaluatedModel(name=name) for name in self.new_models if name not in there])
        writer.flush()
        origin = Response.Origin.UNTRUSTED if self.context.untrusted else Response.Origin.STAFF
        columns = {
            "id": f"staged.n + {writer.numbered(Response, self.stage, self.table)}",
            "sample_id": self.context.as_stored(Sample, "named.sample"),
            "model_id": "model.id",
            "origin": f"'{origin}'",
        }
        columns |= {column: f"staged.{column}" for column in columns_of(Response, (*self.place, *self.compared))}
        joins = f"{self.named} JOIN bank_evaluatedmodel model ON model.name = staged.name"
        yield from writer.copy(Response, self.stage, self.table, joins, columns)

    def finish(self) -> None:
        """Write down what the files say of models, where nothing was known."""
        for names in chunks(self.cards):
            for model in EvaluatedModel.objects.filter(name__in=names):
                unknown = [field for field in model.CARD if getattr(model, field) in (None, "")]
                for field in unknown:
                    setattr(model, field, getattr(self.cards[model.name], field))
                model.save(update_fields=unknown)


class Responses(AnswerImporter):
    """Imports response records of the context's benchmark.

    ``context.model`` names the model of rows that name none; rows of other models are then left out.
    """

    def __init__(self, context: ImportContext) -> None:
        super().__init__(context)
        self.addresses = Addresses(context.benchmark, context.addresses)

    def good(self, rows: list[Row], report: Report) -> list[Row]:
        if any(row.data.image_url or row.data.rotation for row in rows):
            rows = list(self._settled(rows, report))
        only = self.context.model
        good = []
        for row in rows:
            name = row.data.model or only
            if only and name != only:
                report.made["rows of other models left out"] += 1
            elif not name:
                report.refuse(row.where, "model", "is missing; name it with --model")
            else:
                good.append(row)
        return good

    def settle(self, report: Report) -> None:
        super().settle(report)
        self.context.announce_responses(self.table, self.named)

    def _settled(self, rows: list[Row], report: Report) -> Iterator[Row]:
        for row in self.addresses.resolved(rows):
            if isinstance(row, Row):
                yield row
            else:
                report.add(row)


def _cards(context: ImportContext) -> dict[str, ModelRecord]:
    """What the files say of models, by name. Raises BadFile at the first bad row."""
    read: dict[str, ModelRecord] = {}
    source = context.source
    for row in source.module.cards(source.path) if hasattr(source.module, "cards") else ():
        if isinstance(row, Problem):
            raise BadFile(row.where, f"{row.field} {row.reason}")
        read[row.data.name] = row.data
    return read
