"""manage.py judge --benchmark SLUG --judge NAME --protocol NAME"""

from typing import Any

from judging.management.run_command import RunCommand


class Command(RunCommand):
    help = (
        "Judge a benchmark's items. Without --wait a worker does it. The same judge, protocol, settings and items "
        "continue the existing run."
    )
    takes = ("judge", "protocol")
    settings_help = 'of the protocol and the request, e.g. {"criteria": false, "items": {"sample": 100, "seed": 1}}'

    def handle(self, **options: Any) -> None:
        run = self.start(options)
        self.stdout.write(
            f"Run {run.pk}: {run.judge.name} on {run.benchmark}, {run.protocol}, {run.items.count()} items"
        )
        self.work_or_queue(run, options)
