"""Imports what models answered by recipes."""

from typing import Any

from bank.intake.formats.reading import Row
from bank.intake.formats.records import RecipeResponseRecord
from bank.intake.imports import Report
from bank.intake.imports.context import ImportContext
from bank.intake.imports.responses import AnswerImporter
from bank.models import Recipe
from bank.recipes import store


class RecipeResponses(AnswerImporter):
    """Imports records of answers by recipes to the context's benchmark. The recipes must be stored already."""

    table = "staged_recipe_answer"
    noun = "answers by recipes"
    taken = "the same answer already occurs at"
    another = "a different answer of this model by this recipe is stored"
    place = ("recipe", "variant", "repeat", "turn")
    compared = (*AnswerImporter.compared, "likelihoods")

    def __init__(self, context: ImportContext) -> None:
        super().__init__(context)
        self.recipes: dict[str, Recipe | None] = {}

    def good(self, rows: list[Row], report: Report) -> list[Row]:
        good = []
        for row in rows:
            record: RecipeResponseRecord = row.data
            recipe = self._recipe(record.recipe)
            problems = []
            if not record.model:
                problems.append(("model", "is missing"))
            if recipe is None:
                problems.append(("recipe", f"there is no recipe {record.recipe!r}: bring it in first (recipe import)"))
            elif record.recipe_sha256 not in ("", recipe.sha256):
                problems.append(("recipe_sha256", f"the recipe {recipe} that is stored here asks otherwise"))
            for field, reason in problems:
                report.refuse(row.where, field, reason)
            if not problems:
                good.append(row)
        return good

    def values(self, record: RecipeResponseRecord) -> tuple[Any, ...]:
        variant, *said = super().values(record)
        recipe = self._recipe(record.recipe)
        likelihoods = record.likelihoods.model_dump() if record.likelihoods else None
        return recipe and recipe.pk, variant, record.repeat, record.turn, *said, likelihoods

    def _recipe(self, name: str) -> Recipe | None:
        if name not in self.recipes:
            try:
                self.recipes[name] = store.get(name)
            except store.UnknownRecipe:
                self.recipes[name] = None
        return self.recipes[name]
