"""manage.py leaderboard {models,judges,agreement,bias,stand-in,...} --benchmark SLUG ..."""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from accounts.management.base import InstallationCommand
from accounts.models import Role, User
from bank.errors import BadInput
from bank.samples.benchmarks import find_benchmark
from leaderboard.boards.standin import EPSILON
from leaderboard.definitions import DEFINITIONS, POOL, POOLED
from leaderboard.files import PRINTED, print_rows
from leaderboard.kinds import KINDS
from leaderboard.scope import ELO, BadScope, scope_of
from leaderboard.tables import TABLES, VIEW, Asked, Rows, checked_epsilon

OF_ASKED = ("epsilon", "part", "a", "b")


class Command(InstallationCommand):
    help = "Print a leaderboard, or what a page shows beside it: the rows of the page and the API."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("what", choices=list(TABLES))
        parser.add_argument("--benchmark", required=True, metavar="SLUG")
        parser.add_argument("--source", default="", metavar="NAME", help="JUDGE, humans, individuals or adjudicated")
        parser.add_argument("--run", type=int, metavar="ID")
        parser.add_argument("--kind", default="", help=f"{', '.join(KINDS)}; default: the first with data")
        parser.add_argument("--campaign", default="", metavar="NAME")
        parser.add_argument("--anchor", default="", metavar="MODEL")
        parser.add_argument("--majority", default="", metavar="RULE")
        parser.add_argument("--elo", default="", choices=ELO, help=f"default {ELO[0]}")
        for definition in DEFINITIONS.values():
            bare: dict[str, Any] = {"nargs": "?", "const": POOLED} if definition is POOL else {}
            parser.add_argument(
                f"--{definition.name}", default="", choices=definition.ways, help=definition.help, **bare
            )
        parser.add_argument("--level", default="", metavar="PATH", help='a capability: "Perception / Reading"')
        parser.add_argument("--question-type", default="", metavar="TYPE")
        parser.add_argument("--split", default="", metavar="NAME")
        parser.add_argument("--epsilon", type=float, metavar="E", help=f"of stand-in, 0 to 1; default {EPSILON}")
        parser.add_argument("--part", default="", help="correlation: pairs, ranks, repeats, languages; compare: levels")
        parser.add_argument("--a", default="", metavar="A", help="of compare: a model, or a judge's run as run-3")
        parser.add_argument("--b", default="", metavar="B", help="of compare: the other")
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
        for name in (*VIEW, *OF_ASKED):
            if name in given and name not in (*table.view, *table.takes):
                raise BadScope(f"--{name.replace('_', '-')} says nothing about {what}.")
        benchmark = find_benchmark(given["benchmark"])
        if "epsilon" in given:
            given["epsilon"] = checked_epsilon(given["epsilon"])
        # Whoever may run commands may see everything.
        of_asked = {name: given[name] for name in OF_ASKED if name in given}
        asked = Asked(viewer=User(role=Role.ADMINISTRATOR), named="source" in given or "run" in given, **of_asked)
        view = {name: given[name] for name in VIEW if name in given}
        kind = view.pop("kind", "") or table.default_kind(benchmark, asked, staff=True)
        return table.make(scope_of(benchmark=benchmark, kind=kind, **view, staff=True), asked)
