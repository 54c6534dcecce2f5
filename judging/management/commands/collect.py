"""manage.py collect {responses,captions} --benchmark SLUG --endpoint NAME"""

from typing import Any, ClassVar

from django.core.management.base import CommandParser

from judging.collecting.collectors import COLLECTORS
from judging.management.run_command import RunCommand


class Command(RunCommand):
    help = (
        "Let an endpoint answer a benchmark's samples, or describe its pictures. Without --wait a worker does it. What "
        "is already stored is left out; the same command continues the existing run."
    )
    takes = ("judge", "model")
    spelled: ClassVar = {**RunCommand.spelled, "judge": "endpoint"}
    settings_help = 'e.g. {"circular": true, "temperature": 0, "max_tokens": 1024, "items": {"split": "dev"}}'

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("kind", choices=list(COLLECTORS))
        super().add_arguments(parser)
        parser.add_argument(
            "--no-pictures",
            action="store_true",
            help="answers without the samples' pictures, as a model of its own: what the text alone gives away",
        )

    def handle(self, **options: Any) -> None:
        run = self.start(options)
        self.stdout.write(f"Run {run.pk}: {run.kind} of {run.model_name} for {run.benchmark}, {run.planned:,} calls")
        self.work_or_queue(run, options, made=run.kind, doing="Collecting")
