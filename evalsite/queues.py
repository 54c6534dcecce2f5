"""Where jobs wait for a worker, and how one does them: see ``accounts.jobs``."""

import asyncio
import fcntl
import inspect
import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import Error as DatabaseError
from django.db import connection, transaction
from django.utils import timezone
from django.utils.module_loading import import_string

from accounts import jobs
from accounts.jobs import REGISTERED, word
from accounts.loop import db
from accounts.models import Job
from evalsite.heavy import HeavyFailed, HeavyProcess, Stopped

log = logging.getLogger(__name__)
AT_ONCE = 8  # light jobs
LOOK_EVERY = 0.3  # seconds between looks at the table
SWEEP_EVERY = 10.0  # seconds between looks for jobs of workers that died
STATEMENT = 15  # seconds that a statement of the queue may take
PATIENCE = 20.0  # seconds that a queue has to let go of the database when the worker stops
LEFT: set[asyncio.Task[Any]] = set()  # tasks that a database which does not answer keeps from ending
NICE = {jobs.PAGES: 0, jobs.HEAVY: 5}  # web pages and judges come before uploads and backups
AGAIN = 1.0  # seconds before a database that does not answer is asked again


class Queue(ABC):
    """What hands out the jobs. ``computes`` says whether this worker may do those of ``jobs.APART`` now."""

    def __init__(self, *, computes: Callable[[], bool]) -> None:
        self.computes = computes
        self.processes = {lane: HeavyProcess(lane, nice=NICE[lane]) for lane in jobs.APART}

    async def do(self, name: str, arguments: dict[str, Any]) -> None:
        """Do a job. What goes wrong is logged: the next one finds what it has left. One that a stop of the worker has
        kept from its end is done again.
        """
        registered = REGISTERED[name]
        try:
            if registered.lane in self.processes:
                try:
                    await self.processes[registered.lane].do(registered.path, arguments)
                except Stopped:
                    await db(jobs.defer, name, **arguments)
            elif inspect.iscoroutinefunction(function := import_string(registered.path)):
                await function(**arguments)
            else:
                await db(function, **arguments)
        except DatabaseError as error:
            log.warning("Job %s: the database does not answer (%s)", word(name, arguments), type(error).__name__)
        except HeavyFailed as error:
            log.error("Job %s failed: %s", word(name, arguments), error)
        except Exception:
            log.exception("Job %s failed", word(name, arguments))

    @abstractmethod
    async def work(self, stop: asyncio.Event) -> None:
        """Do jobs until ``stop`` is set, then let those under way end."""

    def waits(self) -> bool:
        """Whether there is a job for this worker whose time has come, or that it is at; for the database's thread."""
        return jobs.due(apart=self.computes()) > 0

    def stopping(self) -> list[Coroutine[Any, Any, None]]:
        return [process.stop() for process in self.processes.values()]


class Table(Queue):
    """The jobs of an SQLite database, for one worker at a time: the others wait for the lock of a file."""

    def __init__(self, *, computes: Callable[[], bool]) -> None:
        super().__init__(computes=computes)
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._lock: int | None = None

    def waits(self) -> bool:
        return self._has_lock() and super().waits()

    async def work(self, stop: asyncio.Event) -> None:
        begun = False
        try:
            while not stop.is_set():
                try:
                    if self._has_lock():
                        if not begun:
                            await db(_take_over)
                            begun = True
                        for job in await db(self._due):
                            self._tasks[job.once] = asyncio.create_task(self._work(job, stop))
                except DatabaseError as error:
                    log.warning("The database does not answer (%s), trying again", type(error).__name__)
                await wait(stop, self._tasks.values(), LOOK_EVERY)
        finally:
            await asyncio.gather(*self.stopping(), *self._tasks.values())
            if self._lock is not None:
                os.close(self._lock)

    def _has_lock(self) -> bool:
        if self._lock is None:
            name = connection.settings_dict["NAME"]
            path = Path(f"{name}.worker") if Path(name).is_absolute() else settings.DATA / "jobs.worker"
            file = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._lock = file
            except BlockingIOError:
                os.close(file)
        return self._lock is not None

    def _due(self) -> list[Job]:
        """The jobs to begin now, noted as begun."""
        due: list[Job] = []
        room = AT_ONCE - len(self._tasks)
        # Nobody else begins them, so they are read without a transaction, which would lock the database.
        for job in Job.objects.filter(begun=False, not_before__lte=timezone.now()):
            lane = REGISTERED[job.name].lane if job.name in REGISTERED else jobs.LIGHT
            is_next = lane == jobs.LIGHT or (self.computes() and not self._is_at(lane, due))
            if len(due) < room and job.once not in self._tasks and is_next:
                due.append(job)
        if due:
            Job.objects.filter(pk__in=[job.pk for job in due]).update(begun=True)
        return due

    def _is_at(self, lane: str, due: list[Job]) -> bool:
        names = {once.partition(" ")[0] for once in [*self._tasks, *(job.once for job in due)]}
        return any(REGISTERED[name].lane == lane for name in names & set(REGISTERED))

    async def _work(self, job: Job, stop: asyncio.Event) -> None:
        if job.name in REGISTERED:  # else an older or newer version had it
            await self.do(job.name, job.arguments)
        while True:
            try:
                await db(_finish, job)
                break
            except DatabaseError:
                if stop.is_set():
                    log.warning("Job %s is done again by the next worker", job)
                    break
                await wait(stop, (), AGAIN)
        del self._tasks[job.once]


def _take_over() -> None:
    """Have again what a worker had begun that died, and make the jobs that are done every so often."""
    waiting = Job.objects.filter(begun=False).values("once")
    Job.objects.filter(begun=True, once__in=list(waiting.values_list("once", flat=True))).delete()
    Job.objects.update(begun=False)
    now = timezone.now()
    first = [
        _periodic(name, now if registered.lane == jobs.LIGHT else now + registered.every)
        for name, registered in REGISTERED.items()
        if registered.every
    ]
    Job.objects.bulk_create(first, ignore_conflicts=True)


def _periodic(name: str, at: Any) -> Job:
    return Job(name=name, not_before=at, once=f"{name} every so often")


def _finish(job: Job) -> None:
    every = REGISTERED[job.name].every if job.name in REGISTERED else None
    with transaction.atomic():
        Job.objects.filter(pk=job.pk).delete()
        if every and job.once != word(job.name, job.arguments):
            _periodic(job.name, timezone.now() + every).save()


class Procrastinate(Queue):
    """The jobs of a PostgreSQL database, for any number of workers."""

    def __init__(self, *, computes: Callable[[], bool]) -> None:
        super().__init__(computes=computes)
        from procrastinate import App, PsycopgConnector
        from procrastinate.contrib.django.utils import connector_params

        parameters = connector_params()
        options = f"{parameters.get('options', '')} -c statement_timeout={STATEMENT}s".strip()
        # A worker that is to stop waits no longer for a database that is away than it has until it is killed.
        connector = PsycopgConnector(kwargs=parameters | {"options": options}, min_size=1, max_size=8, timeout=8.0)
        self.app = App(connector=connector)
        for name, registered in REGISTERED.items():
            task: Any = self.app.task(name=name, queue=registered.lane)(self._function(name))
            if registered.every:
                self.app.periodic(cron=cron(registered.every), queueing_lock=f"{name} every so often", lock=name)(task)

    def _function(self, name: str) -> Callable[..., Any]:
        async def function(timestamp: int | None = None, **arguments: Any) -> None:
            await self.do(name, arguments)

        return function

    async def work(self, stop: asyncio.Event) -> None:
        beside = [asyncio.create_task(self._work(stop, lane)) for lane in jobs.LANES]
        beside.append(asyncio.create_task(self._sweep(stop)))
        await stop.wait()
        await asyncio.gather(*self.stopping(), within(PATIENCE, *beside))
        await within(PATIENCE, asyncio.create_task(self.app.close_async()))

    async def _work(self, stop: asyncio.Event, lane: str) -> None:
        while not stop.is_set():
            if lane in jobs.APART and not self.computes():
                await wait(stop, (), AGAIN)
                continue
            try:
                await self.app.open_async()
                worker = asyncio.create_task(
                    self.app.run_worker_async(
                        queues=[lane],
                        concurrency=1 if lane in jobs.APART else AT_ONCE,
                        delete_jobs="always",
                        install_signal_handlers=False,
                    )
                )
                await wait(stop, (worker,), None)
                worker.cancel()
                with suppress(asyncio.CancelledError):
                    await worker
            except Exception as error:
                log.warning("The database does not answer (%s), trying again", type(error).__name__)
            await wait(stop, (), AGAIN)

    async def _sweep(self, stop: asyncio.Event) -> None:
        """Have again what workers had begun that died."""
        from procrastinate.exceptions import ConnectorException
        from procrastinate.jobs import Status

        manager = self.app.job_manager
        while not stop.is_set():
            with suppress(ConnectorException):
                for job in await manager.get_stalled_jobs():
                    try:
                        await manager.retry_job(job)
                    except ConnectorException:  # the same job waits already
                        await manager.finish_job(job, status=Status.FAILED, delete_job=True)
            await wait(stop, (), SWEEP_EVERY)


def cron(every: timedelta) -> str:
    """The times of a period of whole minutes below an hour, of whole hours below a day, or of a day."""
    minutes = int(every.total_seconds()) // 60
    if minutes < 60:
        return f"*/{minutes} * * * *"
    return "17 3 * * *" if minutes >= 24 * 60 else f"7 */{minutes // 60} * * *"


async def wait(stop: asyncio.Event, tasks: Any, seconds: float | None) -> None:
    """Wait for the stop, for the end of a task, or for so long."""
    stopped = asyncio.ensure_future(stop.wait())
    await asyncio.wait({stopped, *tasks}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()


async def within(seconds: float, *tasks: asyncio.Task[Any]) -> None:
    """Wait for the end of these tasks, but no longer; what they wait for is then left to itself."""
    _, left = await asyncio.wait(tasks, timeout=seconds)
    if left:
        LEFT.update(left)
        log.warning("The database has not let go of the queue for %.0f seconds: stopping all the same", seconds)


def queue(*, computes: Callable[[], bool]) -> Queue:
    """The queue of this installation's database."""
    suits = Procrastinate if connection.vendor == "postgresql" else Table
    return suits(computes=computes)
