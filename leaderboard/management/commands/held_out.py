"""manage.py held_out SLUG [--draw | --run ID]"""

from typing import Any

from django.core.management.base import CommandParser

from accounts.management.base import InstallationCommand
from bank.management.importing import bad_input_fails
from bank.models import Benchmark
from bank.samples.benchmarks import find_benchmark
from judging.inputs import add_arguments, checked
from leaderboard.held_out.actions import HeldOutIn, hold_out
from leaderboard.held_out.board import releases
from leaderboard.hidden import held_out_in
from leaderboard.models import HeldOutRelease
from stats.figures import number_of

NONE = "No half is held out."


class Command(InstallationCommand):
    help = (
        "The half of a benchmark on which no judge is compared with people before somebody asks: whether there is one, "
        "and who asked. `leaderboard held-out` prints the figures that were told."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("benchmark", metavar="SLUG", help="SLUG or SLUG@VERSION")
        add_arguments(parser, HeldOutIn, ("draw", "run"))

    def handle(self, *, benchmark: str, draw: bool, run: str | None, **options: Any) -> None:
        with bad_input_fails():
            if draw or run:
                given = checked(HeldOutIn, {"benchmark": benchmark, "draw": draw, "run": run})
                made = hold_out(**given.validated_data, command="held_out")
                self.stdout.write(_told(made) if isinstance(made, HeldOutRelease) else "A half is held out.")
                return
            self._describe(find_benchmark(benchmark))

    def _describe(self, benchmark: Benchmark) -> None:
        held = held_out_in(benchmark)
        self.stdout.write(f"{benchmark}: {number_of(len(held), 'sample')} held out." if held else NONE)
        for asked, _ in releases(benchmark):
            self.stdout.write(_told(asked))


def _told(asked: HeldOutRelease) -> str:
    who = f" by {asked.by}" if asked.by else ""
    return f"Request {asked.number}{who} on {asked.at:%Y-%m-%d}: {asked.run.judge}, run {asked.run_id}."
