"""manage.py judge --benchmark SLUG --judge NAME --protocol NAME"""

from typing import Any

from django.core.management.base import CommandParser

from judging.management.run_command import RunCommand
from judging.runs.actions import start_run


class Command(RunCommand):
    help = (
        "Judge a benchmark's items. Without --wait a worker does it. The same judge, protocol, settings and items "
        "continue the existing run."
    )
    counted, called = "items", "judge"
    settings_help = 'of the protocol and the request, e.g. {"criteria": false, "items": {"sample": 100, "seed": 1}}'

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--judge", required=True, metavar="NAME")
        parser.add_argument("--protocol", required=True, metavar="NAME", help="e.g. pairwise-criteria")

    def handle(self, *, judge: str, protocol: str, benchmark: str, chosen: str, wait: bool, **options: Any) -> None:
        run = self.start(start_run, judge=judge, benchmark=benchmark, chosen=chosen, options=options, protocol=protocol)
        self.stdout.write(
            f"Run {run.pk}: {run.judge.name} on {run.benchmark}, {run.protocol}, {run.items.count()} items"
        )
        self.work_or_queue(run, wait=wait, give_up_after=options["give_up_after"])
