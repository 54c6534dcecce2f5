"""Imports what models answered by recipes."""

import json
from collections.abc import Sequence
from typing import Any

from django.db.models import Model

from bank.database import bulk, chunks
from bank.intake.formats.reading import Row
from bank.intake.formats.records import RecipeResponseRecord
from bank.intake.imports import Report
from bank.intake.imports.context import ImportContext
from bank.intake.imports.name_index import SeenNames
from bank.models import EvaluatedModel, Recipe, Response
from bank.recipes import store

COMPARED = ("status", "text", "reason", "option_order", "tokens", "likelihoods")
PLACE = ("variant", "repeat", "turn")
FIELDS = (*PLACE, *COMPARED)
AS_JSON = ("option_order", "likelihoods")
Place = tuple[int, int, str, str, int, int]  # recipe, sample, model and PLACE: unique for each answer
Batch = tuple[list[Place], tuple[bulk.Column, ...]]


class RecipeResponses:
    """Imports records of answers by recipes to the context's benchmark. The recipes must be stored already."""

    def __init__(self, context: ImportContext) -> None:
        self.context = context
        self.seen = SeenNames()
        self.models: dict[str, int] = dict(EvaluatedModel.objects.values_list("name", "pk"))
        self.recipes: dict[str, Recipe | None] = {}
        self.new_models: set[str] = set()
        self.new = 0

    def check(self, rows: list[Row], report: Report) -> Batch | None:
        samples = self.context.sample_ids([row.data.sample for row in rows])
        known = [(row, sample) for row, sample in zip(rows, samples, strict=True) if self._known(row, sample, report)]
        places = [self._place(row.data, sample) for row, sample in known]
        taken = self.seen.claim(places, [row.where for row, _ in known])
        stored = self._stored(places)
        fresh: list[tuple[Place, RecipeResponseRecord]] = []
        for number, ((row, _), place) in enumerate(zip(known, places, strict=True)):
            if number in taken:
                report.refuse(row.where, "sample", f"the same answer already occurs at {taken[number]}")
            elif place not in stored:
                fresh.append((place, row.data))
            elif stored[place] == _values(row.data):
                report.unchanged += 1
            else:
                report.refuse(row.where, "text", "a different answer of this model by this recipe is stored")
        names = {place[2] for place, _ in fresh} - self.models.keys() - self.new_models
        self.new_models |= names
        self.new += len(fresh)
        report.made["models"] += len(names)
        report.made["answers by recipes"] += len(fresh)
        if not fresh or not self.context.writes:
            return None
        columns = zip(*(_as_columns(record) for _, record in fresh), strict=True)
        return [place for place, _ in fresh], tuple(map(bulk.compact, columns))

    def expected_rows(self) -> dict[type[Model], int]:
        return {EvaluatedModel: len(self.new_models), Response: self.new}

    def write(self, batch: Batch) -> None:
        places, values = batch
        for name in sorted({place[2] for place in places} - self.models.keys()):
            # Another part of this import, or another process, may have made it since the names were read.
            model = EvaluatedModel.objects.filter(name=name).first()
            self.models[name] = (model or self.context.writer.make(EvaluatedModel(name=name))).pk
        own: dict[str, Sequence[Any]] = {
            "recipe_id": [place[0] for place in places],
            "sample_id": [self.context.stored_sample_id(place[1]) for place in places],
            "model_id": [self.models[place[2]] for place in places],
        }
        self.context.writer.put(Response, own | dict(zip(FIELDS, values, strict=True)))

    def finish(self) -> None:
        """Answers are never changed."""

    def _known(self, row: Row, sample: int, report: Report) -> bool:
        """Whether the row names a model, and a sample and a recipe that are there; otherwise it becomes a problem."""
        record: RecipeResponseRecord = row.data
        problems = []
        if not record.model:
            problems.append(("model", "is missing"))
        if not sample:
            problems.append(("sample", f"no sample {record.sample!r} in {self.context}"))
        recipe = self._recipe(record.recipe)
        if recipe is None:
            problems.append(("recipe", f"there is no recipe {record.recipe!r}: bring it in first (recipe import)"))
        elif record.recipe_sha256 not in ("", recipe.sha256):
            problems.append(("recipe_sha256", f"the recipe {recipe} that is stored here asks otherwise"))
        for field, reason in problems:
            report.refuse(row.where, field, reason)
        return not problems

    def _recipe(self, name: str) -> Recipe | None:
        if name not in self.recipes:
            try:
                self.recipes[name] = store.get(name)
            except store.UnknownRecipe:
                self.recipes[name] = None
        return self.recipes[name]

    def _place(self, record: RecipeResponseRecord, sample: int) -> Place:
        recipe = self.recipes[record.recipe]
        assert recipe is not None
        return recipe.pk, sample, record.model, record.variant, record.repeat, record.turn

    def _stored(self, places: list[Place]) -> dict[Place, tuple[Any, ...]]:
        """What is stored in these places."""
        wanted, found = set(places), {}
        for ids in chunks({place[1] for place in places if place[1] > 0}):
            rows = Response.all_objects.filter(recipe__in={place[0] for place in places}, sample__in=ids)
            for row in rows.values_list("recipe", "sample", "model__name", *FIELDS).iterator(chunk_size=2000):
                if row[:6] in wanted:
                    found[row[:6]] = row[6:]
        return found


def _values(record: RecipeResponseRecord) -> tuple[Any, ...]:
    likelihoods = record.likelihoods.model_dump() if record.likelihoods else None
    return record.known_status, record.text, record.reason, record.option_order, record.tokens, likelihoods


def _as_columns(record: RecipeResponseRecord) -> tuple[Any, ...]:
    values = dict(zip(COMPARED, _values(record), strict=True))
    values |= {name: None if values[name] is None else json.dumps(values[name]) for name in AS_JSON}
    return (*(getattr(record, name) for name in PLACE), *values.values())
