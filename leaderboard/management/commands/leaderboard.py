"""manage.py leaderboard {models,judges,agreement,bias} --benchmark SLUG ..."""

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from bank.errors import BadInput
from bank.samples.benchmarks import find_benchmark
from leaderboard import boards
from leaderboard.files import csv_text, print_table
from leaderboard.kinds import KINDS, default_of
from leaderboard.scope import ELO, BadScope, scope_of


class Command(BaseCommand):
    help = "Print a leaderboard: the rows of the page and the API."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("what", choices=list(boards.BOARDS))
        parser.add_argument("--benchmark", required=True, metavar="SLUG")
        parser.add_argument("--source", default="", metavar="NAME", help="JUDGE, humans, individuals or adjudicated")
        parser.add_argument("--run", type=int, metavar="ID")
        parser.add_argument("--kind", default="", help=f"{', '.join(KINDS)}; default: the first with data")
        parser.add_argument("--campaign", default="", metavar="NAME")
        parser.add_argument("--anchor", default="", metavar="MODEL")
        parser.add_argument("--majority", default="", metavar="RULE")
        parser.add_argument("--elo", default=ELO[0], choices=ELO)
        parser.add_argument("--format", dest="shape", default="table", choices=["table", "json", "csv"])

    def handle(self, *args: Any, **options: Any) -> None:
        names = ("benchmark", "source", "run", "kind", "campaign", "anchor", "majority", "elo")
        try:
            arguments = {name: options[name] for name in names}
            benchmark = find_benchmark(arguments.pop("benchmark"))
            kind = arguments.pop("kind") or default_of(benchmark, options["what"], staff=True)
            board = boards.BOARDS[options["what"]](scope_of(benchmark=benchmark, kind=kind, **arguments, staff=True))
        except BadInput as error:
            raise CommandError(str(error), returncode=1) from None
        except BadScope as error:
            raise CommandError(str(error), returncode=2) from None
        rows = board.as_json()
        if options["shape"] == "json":
            self.stdout.write(json.dumps(rows, ensure_ascii=False, indent=1))
        elif options["shape"] == "csv":
            self.stdout.write(csv_text(rows), ending="")
        else:
            print_table(options["what"], rows, stream=self.stdout)
            for note in board.notes:
                self.stdout.write(note)
