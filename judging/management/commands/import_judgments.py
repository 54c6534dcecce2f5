"""manage.py import_judgments FORMAT PATH --benchmark SLUG [--judge NAME]"""

from django.core.management.base import CommandParser

from bank.management.importing import ImportCommand


class Command(ImportCommand):
    help = "Bring judges' verdicts in; the items they name are made."
    part, passed = "judgments", ("judge",)

    def more_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--judge", default="", metavar="NAME", help="whose judgments they are")
