"""manage.py make_jury NAME --runs 3,5,7"""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from accounts.management.base import InstallationCommand
from bank.errors import BadInput
from bank.forms.fields import whole_number
from judging.inputs import checked
from judging.runs.inputs import JuryIn


class Command(InstallationCommand):
    help = "Combine several judges into one; its verdicts are computed from their runs. The same call recomputes them."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--runs", required=True, metavar="A,B,...", help="one run of each member")

    def handle(self, *, name: str, runs: str, **options: Any) -> None:
        numbers = [part.strip() for part in runs.split(",")]
        if any(whole_number(part) is None for part in numbers):
            raise CommandError("--runs: run numbers separated by commas, e.g. 3,5,7", returncode=2)
        given = checked(JuryIn, {"name": name, "runs": numbers})
        from judging.extras import juries

        try:
            run = juries.make_jury(**given.validated_data)
        except BadInput as error:
            raise CommandError(str(error)) from None
        self.stdout.write(
            f"Run {run.pk}: {name} on {run.benchmark}, {run.verdicts:,} verdicts, {run.failures:,} items without one."
        )
