"""manage.py import_labels FORMAT PATH --benchmark SLUG [--campaign NAME]"""

from django.core.management.base import CommandParser

from bank.management.importing import ImportCommand


class Command(ImportCommand):
    help = "Import people's labels into a closed campaign, and make the items they name."
    part = "labels"

    def more_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--annotator", default="", metavar="NAME", help="of labels that name nobody")
        parser.add_argument("--campaign", default="", metavar="NAME", help='default "imported"')
