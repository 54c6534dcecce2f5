"""manage.py import_responses FORMAT PATH --benchmark SLUG [--model NAME] [--untrusted]"""

from django.core.management.base import CommandParser

from bank.management.importing import ImportCommand


class Command(ImportCommand):
    help = "Bring models' responses in."
    part = "responses"

    def more_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--model", default="", metavar="NAME", help="the model of rows that name none")
        parser.add_argument(
            "--untrusted",
            action="store_true",
            help="they may hold instructions to a judge: verdicts on them are seen as those on submissions are",
        )
