"""manage.py leaderboard {models,judges,agreement,bias,stand-in,...} --benchmark SLUG ..."""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from accounts.management.base import InstallationCommand
from accounts.models import Role, User
from bank.errors import BadInput
from bank.samples.benchmarks import find_benchmark
from leaderboard.files import PRINTED, print_rows
from leaderboard.scope import BadScope
from leaderboard.tables import TABLES, Rows
from leaderboard.view import PARAMETERS


class Command(InstallationCommand):
    help = "Print a leaderboard, or what a page shows beside it: the rows of the page and the API."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("what", choices=list(TABLES))
        parser.add_argument("--benchmark", required=True, metavar="SLUG")
        for parameter in PARAMETERS.values():
            parser.add_argument(f"--{parameter.name.replace('_', '-')}", **parameter.option)
        parser.add_argument("--format", dest="shape", default="table", choices=PRINTED)

    def handle(self, *args: Any, **options: Any) -> None:
        what, shape = options["what"], options["shape"]
        try:
            rows = self._rows(what, {name: value for name, value in options.items() if value not in ("", None)})
        except BadInput as error:
            raise CommandError(str(error), returncode=1) from None
        except BadScope as error:
            raise CommandError(str(error), returncode=2) from None
        print_rows(self, rows.rows, shape, title=what, notes=rows.notes)

    def _rows(self, what: str, given: dict[str, Any]) -> Rows:
        """The rows for these options, of those that were given. Raises BadInput, BadScope."""
        table = TABLES[what]
        for name in PARAMETERS:
            if name in given and name not in (*table.view, *table.takes):
                raise BadScope(f"--{name.replace('_', '-')} says nothing about {what}.")
        # Whoever may run commands may see everything.
        viewer = User(role=Role.ADMINISTRATOR)
        return table.rows(find_benchmark(given["benchmark"]), given, viewer)
