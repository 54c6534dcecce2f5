"""The base of the commands that start a run: their arguments, and working the run here with its progress shown."""

import asyncio
import json
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, ClassVar

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from accounts import loop
from accounts.loop import db
from accounts.management.base import UncheckedCommand
from accounts.models import Role, User
from bank.errors import BadInput
from judging.inputs import add_arguments, checked, fields_of
from judging.models import Judgment, Run
from judging.protocols.settings import AS_PRINTED
from judging.runs.actions import pause_run, retry_failed
from judging.runs.inputs import RunIn
from judging.runs.queries import endpoint_says, failures_in_words
from judging.work import Ended, Patience, Progress, Shared, leases, work

PLAIN_EVERY = 5.0  # seconds between plain lines
LOOK_EVERY = 1.0
BY_HAND = "Stopped at the terminal. Start it again, there or here, to continue."


class RunCommand(UncheckedCommand):
    """A command that starts a run: options for the fields of ``RunIn``, and for working it here."""

    takes: tuple[str, ...]  # fields of RunIn, beside those of every run
    spelled: ClassVar[dict[str, str]] = {"reuse": "cache", "batched": "batch"}
    settings_help: str

    def create_parser(self, prog_name: str, subcommand: str, **options: Any) -> CommandParser:
        return super().create_parser(prog_name, subcommand, conflict_handler="resolve", **options)

    def add_arguments(self, parser: CommandParser) -> None:
        names = ("benchmark", "limit", "budget", "new", "reuse", "batched", *self.takes)
        add_arguments(parser, RunIn, names, required=("protocol",), spelled=self.spelled)
        # Replaces Django's own --settings; manage.py passes it under the second name.
        parser.add_argument(
            "--settings",
            "--protocol-settings",
            default="{}",
            metavar="JSON",
            dest="chosen",
            help=self.settings_help,
        )
        parser.set_defaults(settings=None)
        parser.add_argument("--as-printed", action="store_true", help="ask as the paper of this protocol or kind does")
        parser.add_argument("--wait", action="store_true", help="work the run in this process")
        parser.add_argument(
            "--give-up-after",
            type=float,
            metavar="MINUTES",
            help="with --wait: pause after so long of nothing but errors, tries again included (as the judge has it)",
        )
        parser.add_argument(
            "--retry",
            nargs="?",
            const=",".join(Judgment.FAILURES),
            metavar="STATUS,...",
            help=f"continue and retry what failed: all, or these statuses: {', '.join(Judgment.FAILURES)}",
        )

    def start(self, options: Mapping[str, Any], **values: Any) -> Run:
        """Start the run as the options say. Raises CommandError."""
        try:
            settings = json.loads(options["chosen"])
        except ValueError as error:
            raise CommandError(f"--settings is not JSON: {error}", returncode=2) from None
        if options["as_printed"] and isinstance(settings, dict):
            settings[AS_PRINTED] = True
        if options.get("no_pictures") and isinstance(settings, dict):
            settings["no_pictures"] = True
        statuses = _statuses(options["retry"])
        if statuses and options["new"]:
            raise CommandError("--retry continues the existing run, --new starts another.", returncode=2)
        typed = {name: options.get(self.spelled.get(name, name)) for name in fields_of(RunIn)}
        given = checked(RunIn, typed | {"settings": settings} | values)
        try:
            run: Run = given.start()
            if statuses:
                self.stdout.write(f"Retrying {retry_failed(run=run, statuses=statuses):,} failed calls.")
                run.refresh_from_db()
        except BadInput as error:
            raise CommandError(str(error)) from None
        return run

    def work_or_queue(
        self,
        run: Run,
        options: Mapping[str, Any],
        made: str = "verdicts",
        doing: str = "Judging",
    ) -> None:
        """Work the run here, or leave it to a worker."""
        if options["wait"]:
            follow(self, run, made=made, doing=doing, give_up_after=options["give_up_after"])
        else:
            self.stdout.write("A worker will take it (manage.py worker); --wait works it in this process.")


def _statuses(typed: str | None) -> list[str]:
    """The statuses of ``--retry``; none without it. Raises CommandError."""
    statuses = [] if typed is None else [name.strip() for name in typed.split(",")]
    if unknown := set(statuses) - set(Judgment.FAILURES):
        known = ", ".join(Judgment.FAILURES)
        raise CommandError(f"--retry: {sorted(unknown)[0]!r} is not one of {known}.", returncode=2)
    return statuses


def follow(
    command: BaseCommand,
    run: Run,
    *,
    made: str = "verdicts",
    doing: str = "Judging",
    give_up_after: float | None = None,
) -> None:
    """Work a run until it ends and print the result. Raises CommandError if it paused or was cancelled.

    Where its endpoint fails it is tried again, as long as the judge has it, or for ``give_up_after`` minutes.
    """
    loop.settle()
    patience = Patience() if give_up_after is None else Patience(give_up_after=60 * give_up_after)
    with Display(command, doing) as display:
        loop.run(lambda: _follow(run, display, patience))
    run.refresh_from_db()
    cost = f", ${run.spent:.2f} spent" if run.spent else ""
    saved = f" {run.saved:,} calls saved after a wrong rotation." if run.saved else ""
    cached = f", {run.cached:,} of them from stored calls" if run.cached else ""
    command.stdout.write(
        f"Run {run.pk} is {run.state}: {run.verdicts:,} {made}{cached}, {run.failures:,} without "
        f"{'an' if made[0] in 'aeiou' else 'a'} {made[:-1]}{cost}.{saved}"
    )
    if run.dropped:
        command.stdout.write(f"Not sent, since the endpoint does not take it: {', '.join(run.dropped)}.")
    tell_failures(command, run)
    if run.state == Run.State.PAUSED:
        raise CommandError(run.state_reason or "Somebody paused the run.")
    if run.state == Run.State.CANCELLED:
        raise CommandError("Somebody cancelled the run.")


def tell_failures(command: BaseCommand, run: Run) -> None:
    """Say why calls ended without a result, and how they are made again."""
    if not run.failures:
        return
    lines, were_made = failures_in_words(run)
    for line in lines:
        command.stderr.write(f"  {line}")
    if said := endpoint_says(run, viewer=User(role=Role.ADMINISTRATOR)):
        command.stderr.write(f"  The endpoint says: {said}")
    if were_made:
        command.stderr.write("The same command with --retry asks these again.")


async def _follow(run: Run, display: "Display", patience: Patience) -> None:
    """Work the run here; while a worker has it to itself, or its endpoint fails, wait."""
    stop = asyncio.Event()
    shared = Shared()
    stopped = Ended(Run.State.PAUSED, BY_HAND)
    with loop.signals(stop.set, signal.SIGTERM, signal.SIGINT):
        while not stop.is_set():
            if await db(leases.take, run, worker=leases.worker_name()):
                await work(run, shared=shared, stop=stop, stopped=stopped, patience=patience, watch=display.show)
            await db(run.refresh_from_db)
            if run.state not in Run.GOING:
                break
            if run.state == Run.State.WAITING and run.next_try_at:
                display.say(f"{run.state_reason} Try {run.tries} at {timezone.localtime(run.next_try_at):%H:%M:%S %Z}.")
            else:
                display.say(f"Another worker has run {run.pk} to itself, or was just killed; waiting.")
            await loop.comes(stop, LOOK_EVERY)
    if run.state == Run.State.WAITING:  # stopped meanwhile
        await db(pause_run, run=run, reason=BY_HAND)
    await shared.endpoints.close()


class Display:
    """Progress as a bar on a terminal and as plain lines elsewhere."""

    def __init__(self, command: BaseCommand, doing: str) -> None:
        self._doing = doing
        self._command = command
        self._last_line = ""
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
        if words != self._last_line:
            self._last_line = words
            self._write(words)

    def _write(self, words: str) -> None:
        """Print a line; a closed pipe is no reason to stop the work."""
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
