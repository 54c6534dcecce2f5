"""manage.py work_uploads"""

import os
import signal
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from bank.intake.uploads import worker


class Command(BaseCommand):
    requires_system_checks: list[str] = []  # `serve` and `check` make them; they load the code of every page
    help = "Check and bring in the uploads that wait, then end. `manage.py worker` starts this by itself."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--linger", type=float, default=0, metavar="SECONDS", help="wait so long for another one")

    def handle(self, *args: Any, **options: Any) -> None:
        stopped: list[int] = []
        parent = os.getppid()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda number, frame: stopped.append(number))
        os.nice(5)  # pages and judges come first
        # A worker that was killed takes this process with it: its successor starts another.
        worker.work_all(stop=lambda: bool(stopped) or os.getppid() != parent, linger=options["linger"])
