"""manage.py recipe {list,import,export}"""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from accounts.management.base import UncheckedCommand, text_of
from bank.errors import BadInput
from bank.models import Recipe
from bank.recipes import spec as specs
from bank.recipes import store


class Command(UncheckedCommand):
    help = "Recipes in and out: how models are asked, and how their answers become a number (docs/recipes.md)."

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True, metavar="{list,import,export}")
        actions.add_parser("list", help="the newest version of each")
        reads = actions.add_parser("import", help="store a recipe from YAML; the same again changes nothing")
        reads.add_argument("file", metavar="FILE", help="a YAML file, or - for the standard input")
        writes = actions.add_parser("export", help="a recipe as YAML")
        writes.add_argument("name", metavar="NAME", help="NAME (its newest version) or NAME@VERSION")
        writes.add_argument("--output", metavar="FILE")

    def handle(self, *, action: str, **options: Any) -> None:
        try:
            getattr(self, f"_{action}")(**options)
        except (BadInput, store.UnknownRecipe) as error:
            raise CommandError(str(error)) from None

    def _list(self, **_: Any) -> None:
        for recipe in store.newest(Recipe.objects.all()):
            spec = store.spec_of(recipe)
            asked = ", ".join(scenario.benchmark for scenario in spec.scenario)
            self.stdout.write(f"{recipe}  {spec.metric}  {asked}")

    def _import(self, *, file: str, **_: Any) -> None:
        recipe, changed = store.save(specs.from_yaml(text_of(file)))
        self.stdout.write(f"{recipe} is stored." if changed else f"{recipe} says the same already.")

    def _export(self, *, name: str, output: str | None, **_: Any) -> None:
        text = specs.to_yaml(store.spec_of(store.get(name)))
        if output:
            Path(output).write_text(text, encoding="utf-8")
        else:
            self.stdout.write(text, ending="")
