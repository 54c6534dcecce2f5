"""What the commands that start a run share: arguments, and working it in their own process with its progress shown."""

import asyncio
import json
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db.models import QuerySet
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from bank.errors import BadInput
from bank.models import Benchmark
from judging.models import Judge, Judgment, Run
from judging.runs.actions import retry_failed
from judging.work import Progress, Shared, Stopped, leases, loop, work
from judging.work.loop import db
from judging.work.worker import worker_name

PLAIN_EVERY = 5.0  # seconds between plain lines
LOOK_EVERY = 1.0
BY_HAND = "Stopped at the terminal. Start it again, there or here, to go on."


class RunCommand(BaseCommand):
    """--benchmark SLUG --settings JSON and how to go about the calls. A subclass names the judge and the rest."""

    requires_system_checks: list[str] = []  # `serve` and `check` make them; they load the code of every page
    counted: str  # what --limit counts
    settings_help: str
    called: str  # what the command calls a judge

    def create_parser(self, prog_name: str, subcommand: str, **options: Any) -> CommandParser:
        return super().create_parser(prog_name, subcommand, conflict_handler="resolve", **options)

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--benchmark", required=True, metavar="SLUG", help="SLUG, or SLUG@VERSION")
        # In place of Django's own --settings; manage.py hands it on under the second name.
        parser.add_argument(
            "--settings",
            "--protocol-settings",
            default="{}",
            metavar="JSON",
            dest="chosen",
            help=self.settings_help,
        )
        parser.set_defaults(settings=None)
        parser.add_argument("--limit", type=int, metavar="N", help=f"the first N {self.counted} only")
        parser.add_argument("--budget", type=float, metavar="USD", help="pause when this much is spent")
        parser.add_argument("--wait", action="store_true", help="work the run in this process")
        parser.add_argument("--new", action="store_true", help="another run, even if the same was made before")
        parser.add_argument(
            "--retry",
            nargs="?",
            const=",".join(Judgment.FAILURES),
            metavar="STATUS,...",
            help=f"go on, and make again what failed: all, or of these of {', '.join(Judgment.FAILURES)}",
        )
        parser.add_argument("--cache", action="store_true", help="answer identical calls from stored ones, at no cost")
        parser.add_argument("--batch", action="store_true", help="hand calls in by the endpoint's batch interface")

    def start(
        self,
        begin: Callable[..., Run],
        *,
        judge: str,
        benchmark: str,
        chosen: str,
        options: dict[str, Any],
        **given: Any,
    ) -> Run:
        """Start the run by an action, with what the arguments say. Raises CommandError."""
        try:
            settings = json.loads(chosen)
        except ValueError as error:
            raise CommandError(f"--settings is not JSON: {error}", returncode=2) from None
        again = _statuses(options["retry"])
        if again and options["new"]:
            raise CommandError("--retry goes on with the run there is, --new makes another.", returncode=2)
        try:
            run = begin(
                judge=Judge.objects.get(name=judge),
                benchmark=Benchmark.objects.named(benchmark),
                settings=settings,
                limit=options["limit"],
                budget=options["budget"],
                new=options["new"],
                reuse=options["cache"],
                batched=options["batch"],
                **given,
            )
            if again:
                self.stdout.write(f"{retry_failed(run=run, statuses=again):,} that failed are made again.")
                run.refresh_from_db()
            return run
        except Judge.DoesNotExist:
            names = ", ".join(self.judges().values_list("name", flat=True)) or "none yet"
            message = f"There is no {self.called} {judge!r}. There are: {names}. Add one with add_judge."
            raise CommandError(message) from None
        except (Benchmark.DoesNotExist, BadInput) as error:
            raise CommandError(str(error)) from None

    def judges(self) -> QuerySet[Judge]:
        """Those that the command may name."""
        return Judge.objects.all()

    def hand_on(self, run: Run, *, wait: bool, made: str = "verdicts", doing: str = "Judging") -> None:
        """Work the run here, or leave it to a worker."""
        if wait:
            follow(self, run, made=made, doing=doing)
        else:
            self.stdout.write("A worker takes it from here (manage.py worker); --wait works it in this process.")


def _statuses(typed: str | None) -> list[str]:
    """Those of ``--retry``; none where it was not given. Raises CommandError."""
    statuses = [] if typed is None else [name.strip() for name in typed.split(",")]
    if unknown := set(statuses) - set(Judgment.FAILURES):
        known = ", ".join(Judgment.FAILURES)
        raise CommandError(f"--retry: {sorted(unknown)[0]!r} is no status of these: {known}.", returncode=2)
    return statuses


def follow(command: BaseCommand, run: Run, *, made: str = "verdicts", doing: str = "Judging") -> None:
    """Work a run until it ends, and say how. Raises CommandError when it paused or was cancelled."""
    loop.settle()
    with Display(command, doing) as display:
        loop.run(lambda: _follow(run, display))
    run.refresh_from_db()
    cost = f", ${run.spent:.2f} spent" if run.spent else ""
    cached = f", {run.cached:,} of them from stored calls" if run.cached else ""
    command.stdout.write(
        f"Run {run.pk} is {run.state}: {run.verdicts:,} {made}{cached}, {run.failures:,} without a {made[:-1]}{cost}."
    )
    if run.state == Run.State.PAUSED:
        raise CommandError(run.state_reason or "Somebody paused the run.")
    if run.state == Run.State.CANCELLED:
        raise CommandError("Somebody cancelled the run.")


async def _follow(run: Run, display: "Display") -> None:
    """Work the run here; while a worker holds it, look on."""
    stop = asyncio.Event()
    shared = Shared()
    stopped = Stopped(Run.State.PAUSED, BY_HAND)
    with loop.signals(stop.set, signal.SIGTERM, signal.SIGINT):
        while not stop.is_set():
            if await db(leases.take, run, worker=worker_name()):
                await work(run, shared=shared, stop=stop, stopped=stopped, watch=display.show)
            await db(run.refresh_from_db)
            if run.state not in (Run.State.QUEUED, Run.State.RUNNING):
                break
            display.say(f"Another worker is at run {run.pk} alone, or was killed just now; waiting for it.")
            try:
                async with asyncio.timeout(LOOK_EVERY):
                    await stop.wait()
            except TimeoutError:
                pass
    await shared.endpoints.close()


class Display:
    """Progress as a bar on a terminal, as plain lines elsewhere."""

    def __init__(self, command: BaseCommand, doing: str) -> None:
        self._doing = doing
        self._command = command
        self._said = ""
        self._plain_at = 0.0
        self._bar: Bar | None = None
        if command.stdout.isatty():
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            self._bar = Bar(*columns, console=Console(file=sys.stdout))
            self._task = self._bar.add_task(doing, total=None)

    def __enter__(self) -> "Display":
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar:
            self._bar.stop()

    def say(self, words: str) -> None:
        if words != self._said:
            self._said = words
            self._write(words)

    def _write(self, words: str) -> None:
        """A line for whoever still reads. That nobody does is no reason to stop the work."""
        with suppress(BrokenPipeError):
            self._command.stdout.write(words)

    def show(self, progress: Progress) -> None:
        if self._bar:
            failed = f", {progress.failed:,} without a result" if progress.failed else ""
            self._bar.update(
                self._task, total=progress.total, completed=progress.stored, description=f"{self._doing}{failed}"
            )
        elif time.monotonic() - self._plain_at >= PLAIN_EVERY:
            self._plain_at = time.monotonic()
            self._write(
                f"{progress.stored:,} of {progress.total:,} done, {progress.failed:,} without a result, "
                f"{progress.in_flight} in flight, {progress.rate:.1f} a second"
            )
