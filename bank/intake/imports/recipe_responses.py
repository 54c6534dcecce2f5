"""Imports what models answered by recipes."""

from collections.abc import Iterator
from typing import Any

from django.db.models import QuerySet

from bank.database import chunks
from bank.intake.formats.reading import Row
from bank.intake.formats.records import RecipeResponseRecord
from bank.intake.imports import Report
from bank.intake.imports.context import ImportContext
from bank.intake.imports.responses import AnswerImporter, Place
from bank.models import Recipe, Response
from bank.recipes import store


class RecipeResponses(AnswerImporter):
    """Imports records of answers by recipes to the context's benchmark. The recipes must be stored already."""

    noun = "answers by recipes"
    taken = "the same answer already occurs at"
    another = "a different answer of this model by this recipe is stored"
    place = ("recipe_id", "variant", "repeat", "turn")
    compared = (*AnswerImporter.compared, "likelihoods")

    def __init__(self, context: ImportContext) -> None:
        super().__init__(context)
        self.recipes: dict[str, Recipe | None] = {}

    def known(self, rows: list[Row], report: Report) -> Iterator[tuple[Row, Place]]:
        for row, sample in zip(rows, self.context.sample_ids([row.data.sample for row in rows]), strict=True):
            record: RecipeResponseRecord = row.data
            recipe = self._recipe(record.recipe)
            problems = []
            if not record.model:
                problems.append(("model", "is missing"))
            if not sample:
                problems.append(("sample", f"no sample {record.sample!r} in {self.context}"))
            if recipe is None:
                problems.append(("recipe", f"there is no recipe {record.recipe!r}: bring it in first (recipe import)"))
            elif record.recipe_sha256 not in ("", recipe.sha256):
                problems.append(("recipe_sha256", f"the recipe {recipe} that is stored here asks otherwise"))
            for field, reason in problems:
                report.refuse(row.where, field, reason, sample=record.sample if field == "sample" else "")
            if recipe is not None and not problems:
                yield row, (sample, record.model, recipe.pk, record.variant, record.repeat, record.turn)

    def values(self, record: RecipeResponseRecord) -> tuple[Any, ...]:
        return *super().values(record), record.likelihoods.model_dump() if record.likelihoods else None

    def announce(self, places: list[Place]) -> None:
        """No item or verdict waits for answers by recipes."""

    def stored_answers(self, places: list[Place]) -> "Iterator[QuerySet[Any]]":
        for ids in chunks({place[0] for place in places if place[0] > 0}):
            yield Response.all_objects.filter(recipe__in={place[2] for place in places}, sample__in=ids)

    def _recipe(self, name: str) -> Recipe | None:
        if name not in self.recipes:
            try:
                self.recipes[name] = store.get(name)
            except store.UnknownRecipe:
                self.recipes[name] = None
        return self.recipes[name]
