"""manage.py desiderata"""

from typing import Any

from django.core.management.base import CommandParser

from accounts.management.base import InstallationCommand
from accounts.models import Role, User
from leaderboard.boards.recipes.desiderata import QUALITIES, desiderata
from leaderboard.show.files import PRINTED, print_rows


class Command(InstallationCommand):
    help = "Print models by accuracy and the six desiderata of ChEF: the rows of the page and the API."

    def add_arguments(self, parser: CommandParser) -> None:
        for name, quality in QUALITIES.items():
            option = f"--{name.replace('_', '-')}"
            parser.add_argument(option, default="", metavar="RECIPE", help=f"measures {quality.title.lower()}")
        parser.add_argument("--part", choices=("models", "together"), default="models")
        parser.add_argument("--format", dest="shape", default="table", choices=PRINTED)

    def handle(self, *args: Any, **options: Any) -> None:
        wanted = {name: options[name] for name in QUALITIES if options[name]}
        board = desiderata(User(role=Role.ADMINISTRATOR), wanted)
        together = options["part"] == "together"
        rows = [row.as_json() for row in (board.together if together else board.rows)]
        names = ("a", "b", "pearson", "p", "n") if together else ("rank", "model", *QUALITIES)
        print_rows(self, rows, options["shape"], title="desiderata", names=names, notes=board.notes)
