"""manage.py import_recipe_responses FORMAT PATH --benchmark SLUG"""

from bank.management.importing import ImportCommand


class Command(ImportCommand):
    help = "Bring in what models answered by recipes. The recipes come first: recipe import FILE."
    part = "recipe_responses"
