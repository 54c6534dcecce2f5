"""manage.py import_labels FORMAT PATH --benchmark SLUG [--campaign NAME]"""

from django.core.management.base import CommandParser

from bank.management.importing import ImportCommand


class Command(ImportCommand):
    help = "Bring people's labels in, into a closed campaign; the items they name are made."
    part, passed = "labels", ("campaign",)

    def more_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--campaign", default="", metavar="NAME", help='default "imported"')
