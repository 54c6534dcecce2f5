"""manage.py collect {responses,captions} --benchmark SLUG --endpoint NAME"""

from typing import Any

from django.core.management.base import CommandParser
from django.db.models import QuerySet

from judging.management.run_command import RunCommand
from judging.models import Judge
from judging.runs.actions import start_collecting
from judging.runs.collecting import COLLECTORS


class Command(RunCommand):
    help = (
        "Let an endpoint answer a benchmark's samples, or describe its pictures. Without --wait a worker does it. What "
        "is already stored is left out; the same command continues the existing run."
    )
    counted, called = "samples", "endpoint"
    settings_help = 'e.g. {"circular": true, "temperature": 0, "max_tokens": 1024, "items": {"split": "dev"}}'

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("kind", choices=list(COLLECTORS))
        super().add_arguments(parser)
        parser.add_argument("--endpoint", required=True, metavar="NAME", help="its name in add_judge")
        parser.add_argument("--model", default="", metavar="NAME", help="the model the texts belong to")

    def judges(self) -> QuerySet[Judge]:
        return Judge.objects.exclude(base_url="")

    def handle(
        self, *, kind: str, endpoint: str, model: str, benchmark: str, chosen: str, wait: bool, **options: Any
    ) -> None:
        run = self.start(
            start_collecting,
            judge=endpoint,
            benchmark=benchmark,
            chosen=chosen,
            options=options,
            kind=kind,
            model=model,
        )
        self.stdout.write(f"Run {run.pk}: {kind} of {run.model_name} for {run.benchmark}, {run.planned:,} calls")
        self.work_or_queue(run, wait=wait, give_up_after=options["give_up_after"], made=kind, doing="Collecting")
