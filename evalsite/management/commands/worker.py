"""manage.py worker"""

import asyncio
import logging
import os
import signal
import threading
import time
from typing import Any

from django.core.management import call_command
from django.core.management.base import CommandError, CommandParser

from accounts import loop
from accounts.management.base import UncheckedCommand
from evalsite import doctor, queues, worker
from judging.work import leases

log = logging.getLogger(__name__)
STUCK = 20.0  # seconds that a statement may take once the worker was told to stop
AFTERWARDS = 5.0  # seconds that a worker which is done has to end


class Command(UncheckedCommand):
    help = (
        "Work the runs of judges, and do whatever else waits, until stopped. Several workers may run at once, on one "
        "machine or many."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--until-idle", action="store_true", help="end when nothing waits; exit status 1 if runs still do"
        )

    def handle(self, *, until_idle: bool, verbosity: int, **options: Any) -> None:
        doctor.wait_for_database()
        call_command("may_start")
        if verbosity:
            self.stdout.write(f"Worker {leases.worker_name()} looks for runs. Stop it with Ctrl+C; nothing is lost.")
        loop.settle()
        try:
            loop.run(lambda: self._serve(until_idle))
        except worker.GaveUp as why:
            raise CommandError(f"{why} Runs still wait; nothing stored is lost.") from None

    async def _serve(self, until_idle: bool) -> None:
        stop, ended = asyncio.Event(), threading.Event()

        def stopping() -> None:
            stop.set()
            threading.Thread(target=_end_if_stuck, args=(ended,), daemon=True).start()

        try:
            with loop.signals(stopping, signal.SIGTERM, signal.SIGINT):
                await worker.serve(stop=stop, until_idle=until_idle)
        finally:
            ended.set()
        if queues.LEFT:  # the loop would wait for what is left to itself
            threading.Thread(target=_end, args=(AFTERWARDS, 0), daemon=True).start()


def _end_if_stuck(ended: threading.Event) -> None:
    """End a worker that was told to stop, where a statement keeps it from that. What it held is free when its lease is
    over.
    """
    while not ended.wait(0.5):
        if loop.waits_since() >= STUCK:
            log.error("The database has not answered for %.0f seconds: the worker ends without it", STUCK)
            _end(0, 1)


def _end(seconds: float, status: int) -> None:
    time.sleep(seconds)
    logging.shutdown()
    os._exit(status)
