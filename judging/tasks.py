"""The worker: takes waiting runs, works them, says that it lives."""

import asyncio
import logging
import os
import socket
from collections.abc import Sequence
from datetime import timedelta

from django.db import Error as DatabaseError
from django.db import transaction
from django.utils import timezone

from bank.uploads.beside import LINGER, Beside
from judging.models import LEASE, Run, WorkerBeat
from judging.work import Shared, holds, work
from judging.work.loop import db

log = logging.getLogger(__name__)

AT_ONCE = 4  # runs that one worker holds
LOOK_EVERY = 1.0  # seconds between looks for a waiting run
BEAT_EVERY = 10.0
FORGOTTEN_AFTER = timedelta(days=1)


def worker_name() -> str:
    return f"{socket.gethostname()[:80]}:{os.getpid()}"


async def serve(*, stop: asyncio.Event, name: str | None = None, until_idle: bool = False) -> None:
    """Work waiting runs until ``stop`` is set, then let the calls in flight end and give the runs back. Uploads that
    wait are worked beside them, in a process of their own.

    What a worker that died had claimed is free again when its lease is over, so no other watchman is needed. With
    ``until_idle`` it ends when no run waits. To be called in ``judging.work.loop.run``.
    """
    name = name or worker_name()
    shared, beside = Shared(), Beside(linger=0 if until_idle else LINGER)
    active: dict[int, asyncio.Task[bool]] = {}
    resting: dict[int, float] = {}  # runs that were left, and until when they are left to others that are at them
    beaten = -BEAT_EVERY
    try:
        while not stop.is_set():
            now = asyncio.get_running_loop().time()
            try:
                if now - beaten >= BEAT_EVERY:
                    await db(beat, name)
                    beaten = now
                await db(beside.look)
                left = [pk for pk, until in resting.items() if until > now]
                for run in await db(take, AT_ONCE - len(active), busy=list(active), resting=left, name=name):
                    log.info("Run %s begins", run.pk)
                    active[run.pk] = asyncio.create_task(work(run, shared=shared, stop=stop))
            except DatabaseError as error:
                log.warning("The database does not answer (%s), trying again", type(error).__name__)
            if until_idle and not active and not beside.is_busy:
                return
            await _either(stop, active)
            for pk in [pk for pk, task in active.items() if task.done()]:
                task = active.pop(pk)
                crash = task.exception()
                if crash or task.result():
                    resting[pk] = asyncio.get_running_loop().time() + LEASE.total_seconds()
                log.log(logging.ERROR if crash else logging.INFO, "Run %s is left", pk, exc_info=crash)
    finally:
        await asyncio.gather(*active.values(), return_exceptions=True)
        await asyncio.to_thread(beside.stop)
        await shared.endpoints.close()
        await db(leave, name)


async def _either(stop: asyncio.Event, active: dict[int, asyncio.Task[bool]]) -> None:
    """Wait for the stop, for the end of a run, or until it is time to look again."""
    stopped = asyncio.ensure_future(stop.wait())
    await asyncio.wait({stopped, *active.values()}, timeout=LOOK_EVERY, return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()


def take(most: int, *, busy: Sequence[int], resting: Sequence[int] = (), name: str = "") -> list[Run]:
    """Take up to so many runs, those that no worker is at first, then the oldest.

    ``busy`` are this worker's already; ``resting`` those that it has left: others may go on with them.
    """
    waiting = holds.waiting().exclude(pk__in=busy).exclude(pk__in=resting, workers__gt=0)
    return [run for run in waiting[: max(0, most)] if holds.take(run, worker=name)]


@transaction.atomic
def beat(name: str) -> None:
    now = timezone.now()
    WorkerBeat.objects.update_or_create(name=name, defaults={"seen_at": now})
    WorkerBeat.objects.filter(seen_at__lt=now - FORGOTTEN_AFTER).delete()


def leave(name: str) -> None:
    WorkerBeat.objects.filter(name=name).delete()
