"""manage.py import_judgments FORMAT PATH --benchmark SLUG [--judge NAME] [--model NAME]"""

from django.core.management.base import CommandParser

from bank.management.importing import ImportCommand


class Command(ImportCommand):
    help = "Import judges' verdicts and create the items they name."
    part = "judgments"

    def more_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--model", default="", metavar="NAME", help="the model of rows that name none")
        parser.add_argument("--judge", default="", metavar="NAME", help="the judge they belong to")
