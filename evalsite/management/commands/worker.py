"""manage.py worker"""

import asyncio
import signal
from typing import Any

from django.core.management import call_command
from django.core.management.base import CommandError, CommandParser

from accounts import loop
from accounts.management.base import UncheckedCommand
from evalsite import doctor, worker
from judging.work import leases


class Command(UncheckedCommand):
    help = (
        "Work the runs of judges, and do whatever else waits, until stopped. Several workers may run at once, on one "
        "machine or many."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--until-idle", action="store_true", help="end when nothing waits; exit status 1 if runs still do"
        )

    def handle(self, *, until_idle: bool, **options: Any) -> None:
        doctor.wait_for_database()
        call_command("may_start")
        self.stdout.write(f"Worker {leases.worker_name()} looks for runs. Stop it with Ctrl+C; nothing is lost.")
        loop.settle()
        try:
            loop.run(lambda: self._serve(until_idle))
        except worker.GaveUp as why:
            raise CommandError(f"{why} Runs still wait; nothing stored is lost.") from None

    async def _serve(self, until_idle: bool) -> None:
        stop = asyncio.Event()
        with loop.signals(stop.set, signal.SIGTERM, signal.SIGINT):
            await worker.serve(stop=stop, until_idle=until_idle)
