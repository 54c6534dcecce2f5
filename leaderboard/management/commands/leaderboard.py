"""manage.py leaderboard {models,judges,agreement,bias,stand-in,...} --benchmark SLUG ..."""

from itertools import chain
from typing import Any

from django.core.management.base import CommandError, CommandParser

from accounts.management.base import InstallationCommand
from accounts.models import Role, User
from bank.errors import BadInput
from bank.samples.benchmarks import find_benchmark
from leaderboard.frozen import gate
from leaderboard.kinds import KINDS
from leaderboard.registry import TABLES, Rows, rows_of
from leaderboard.scope import BadScope
from leaderboard.show.files import PRINTED, print_rows
from leaderboard.view import PARAMETERS

LOWER_IS_BETTER = {
    metric.name for metric in chain.from_iterable(kind.metrics for kind in KINDS.values()) if metric.lower_is_better
}


class Command(InstallationCommand):
    help = "Print a leaderboard, or what a page shows beside it: the rows of the page and the API."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("what", choices=list(TABLES))
        parser.add_argument("--benchmark", required=True, metavar="SLUG")
        for parameter in PARAMETERS.values():
            parser.add_argument(f"--{parameter.name.replace('_', '-')}", **parameter.option)
        parser.add_argument("--format", dest="shape", default="table", choices=(*PRINTED, *gate.FORMATS))
        told = "exit status 3 where its interval lies"
        of_gate = parser.add_argument_group("a gate for continuous integration")
        of_gate.add_argument("--fail-under", action="append", metavar="NAME=NUMBER", help=f"{told} below the number")
        of_gate.add_argument("--fail-over", action="append", metavar="NAME=NUMBER", help=f"{told} above it")
        of_gate.add_argument("--against", metavar="SNAPSHOT", help="a snapshot's code or a file of rows: 3 where worse")
        of_gate.add_argument("--where", action="append", metavar="COLUMN=VALUE", help="hold these rows alone to it")
        of_gate.add_argument("--plain", action="store_true", help="the number itself decides, whatever its interval")

    def handle(self, *args: Any, **options: Any) -> None:
        what, shape = options["what"], options["shape"]
        try:
            rows = self._rows(what, {name: value for name, value in options.items() if value not in ("", None)})
            checks = self._checks(rows, options)
        except BadInput as error:
            raise CommandError(str(error), returncode=1) from None
        except BadScope as error:
            raise CommandError(str(error), returncode=2) from None
        if shape not in gate.FORMATS:
            print_rows(self, rows.rows, shape, title=what, notes=rows.notes)
        if checks is not None:
            self._tell(what, checks, shape)

    def _checks(self, rows: Rows, options: dict[str, Any]) -> list[gate.Checked] | None:
        """What the gate finds; None where nothing is held to anything. Raises BadInput."""
        limits = [gate.limit(text) for text in options["fail_under"] or ()]
        limits += [gate.limit(text, at_most=True) for text in options["fail_over"] or ()]
        if not limits and not options["against"]:
            if options["shape"] in gate.FORMATS or options["where"] or options["plain"]:
                raise BadScope("These go with --fail-under, --fail-over or --against.")
            return None
        plain = options["plain"]
        where = options["where"] or ()
        chosen = gate.chosen(rows.rows, where)
        earlier = gate.chosen(gate.earlier_rows(options["against"]), where) if options["against"] else []
        checks = gate.checked(chosen, limits, plain=plain, named=gate.names_one(where), earlier=earlier)
        if options["against"]:
            checks += gate.compared(chosen, earlier, lower_is_better=LOWER_IS_BETTER, plain=plain)
        return checks

    def _tell(self, what: str, checks: list[gate.Checked], shape: str) -> None:
        """The checks, and exit status 3 if one of them did not pass."""
        out = self.stdout if shape in gate.FORMATS else self.stderr
        out.write(gate.told(what, checks, shape), ending="")
        if bad := sum(check.stops for check in checks):
            raise CommandError(f"{bad} of {len(checks)} numbers did not pass.", returncode=3)

    def _rows(self, what: str, given: dict[str, Any]) -> Rows:
        """The rows for these options, of those that were given. Raises BadInput, BadScope."""
        table = TABLES[what]
        for name in PARAMETERS:
            if name in given and name not in (*table.view, *table.takes):
                raise BadScope(f"--{name.replace('_', '-')} says nothing about {what}.")
        # Whoever may run commands may see everything.
        viewer = User(role=Role.ADMINISTRATOR)
        return rows_of(table, find_benchmark(given["benchmark"]), given, viewer)
