"""manage.py import_benchmark FORMAT PATH --benchmark SLUG [--version V] [--images DIR] [--anchor MODEL] [--public]
[--open-keys]
"""

from pathlib import Path

from django.core.management.base import CommandParser

from bank.management.importing import ImportCommand


class Command(ImportCommand):
    help = "Bring a benchmark's samples, pictures and hidden criteria in."
    part = "samples"

    def more_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--version", dest="benchmark_version", default="", metavar="V", help="default 1")
        parser.add_argument(
            "--images",
            type=Path,
            metavar="DIR",
            help="the folder that holds the pictures, or from which their paths in the file start; default beside PATH",
        )
        parser.add_argument(
            "--public",
            dest="visibility",
            action="store_const",
            const="public",
            default="",
            help="a new benchmark is seen by everybody at once; else by staff, until it is published",
        )
        parser.add_argument(
            "--open-keys",
            action="store_true",
            help="everybody sees the answer keys, references and weights: for sets whose keys are public anyway",
        )
        parser.add_argument("--anchor", default="", metavar="MODEL", help="the model that others are compared with")
