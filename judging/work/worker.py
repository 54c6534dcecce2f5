"""The worker: takes waiting runs, works them, says that it lives."""

import asyncio
import logging
import os
import socket
from collections.abc import Sequence

from django.db import Error as DatabaseError
from django.db import transaction
from django.db.models import Exists, OuterRef
from django.db.models.functions import Now

from accounts import mail, notices, tokens
from bank import images, media
from bank.intake.uploads.worker import LINGER, UploadWorkerProcess
from bank.objects import Away
from judging.models import LEASE, Run, RunHold, WorkerBeat
from judging.recipes import evaluations
from judging.runs import submissions
from judging.runs.notices import announce_runs, tell_of_runs
from judging.work import Shared, leases, run_kinds, work
from judging.work.deliveries import deliver
from judging.work.loop import db

log = logging.getLogger(__name__)

AT_ONCE = 4  # runs that one worker holds
LOOK_EVERY = 1.0  # seconds between looks for a waiting run
BEAT_EVERY = 10.0
GIVE_UP_AFTER = 300.0  # seconds without a database, of a worker that is to end by itself
NO_PICTURES = (
    "The media folder of this worker (%s) is not the one that this site's pictures are in: it takes no runs that show "
    "pictures, and no uploads. Give it the same EVALSITE_DATA as the others, or mount that folder here."
)


class GaveUp(RuntimeError):
    """A worker that was to go on until nothing waits ends earlier; says why."""


def worker_name() -> str:
    return f"{socket.gethostname()[:80]}:{os.getpid()}"


async def serve(
    *, stop: asyncio.Event, name: str | None = None, until_idle: bool = False, give_up_after: float = GIVE_UP_AFTER
) -> None:
    """Work waiting runs until ``stop`` is set, then let the calls in flight end and give the runs back. Uploads that
    wait are worked beside them, in a process of their own.

    What a worker that died had claimed is free again when its lease is over, so no other watchman is needed. With
    ``until_idle`` it ends when no run waits; raises GaveUp where some do, and the database does not come back or their
    pictures are not here. To be called in ``judging.work.loop.run``.
    """
    name = name or worker_name()
    shared, beside = Shared(), UploadWorkerProcess(linger=0 if until_idle else LINGER)
    active: dict[int, asyncio.Task[bool]] = {}
    resting: dict[int, float] = {}  # runs that were left, and until when they are left to others that are at them
    answered = asyncio.get_running_loop().time()  # when the database last did
    beaten = -BEAT_EVERY
    deliveries = asyncio.create_task(deliver(shared.endpoints))
    pictures = True
    try:
        while not stop.is_set():
            now = asyncio.get_running_loop().time()
            idle = False
            try:
                if now - beaten >= BEAT_EVERY:
                    before, pictures = pictures, await db(beat, name)
                    beaten = now
                    if before and not pictures:
                        log.error(NO_PICTURES, media.place())
                if pictures:
                    await db(beside.poll)
                await db(evaluations.advance_open)
                await db(submissions.advance_open)
                await db(_tell)
                if deliveries.done():
                    deliveries = asyncio.create_task(deliver(shared.endpoints))
                left = [pk for pk, until in resting.items() if until > now]
                room = AT_ONCE - len(active)
                for run in await db(take, room, busy=list(active), resting=left, name=name, pictures=pictures):
                    log.info("Run %s begins", run.pk, extra={"run": run.pk})
                    active[run.pk] = asyncio.create_task(work(run, shared=shared, stop=stop))
                idle = until_idle and not active and not beside.is_busy and await db(is_idle, name, pictures=pictures)
                answered = now
            except DatabaseError as error:
                log.warning("The database does not answer (%s), trying again", type(error).__name__)
                if until_idle and not active and now - answered > give_up_after:
                    raise GaveUp(f"The database has not answered for {now - answered:.0f} seconds.") from None
            if idle:
                await deliveries
                await deliver(shared.endpoints)
                return
            await _either(stop, active)
            for pk in [pk for pk, task in active.items() if task.done()]:
                task = active.pop(pk)
                crash = task.exception()
                if crash or task.result():
                    resting[pk] = asyncio.get_running_loop().time() + LEASE.total_seconds()
                log.log(logging.ERROR if crash else logging.INFO, "Run %s is left", pk, exc_info=crash)
    finally:
        deliveries.cancel()  # those that nobody noted are sent again
        await asyncio.gather(*active.values(), return_exceptions=True)
        await asyncio.to_thread(beside.stop)
        await shared.endpoints.close()
        try:
            await db(leave, name)
        except DatabaseError:
            log.warning("The database does not answer: that %s has left, it will notice later", name)


async def _either(stop: asyncio.Event, active: dict[int, asyncio.Task[bool]]) -> None:
    """Wait for the stop, for the end of a run, or until it is time to look again."""
    stopped = asyncio.ensure_future(stop.wait())
    await asyncio.wait({stopped, *active.values()}, timeout=LOOK_EVERY, return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()


def _tell() -> None:
    tell_of_runs()
    announce_runs()
    tokens.tell_of_ends()
    notices.mail_daily()
    mail.send_waiting()


def take(
    most: int, *, busy: Sequence[int], resting: Sequence[int] = (), name: str = "", pictures: bool = True
) -> list[Run]:
    """Take up to so many runs, those that no worker is at first, then the oldest.

    ``busy`` are this worker's already; ``resting`` those that it has left: others may go on with them. Without
    ``pictures`` those that show some are left to others.
    """
    taken: list[Run] = []
    for run in leases.waiting().exclude(pk__in=busy).exclude(pk__in=resting, workers__gt=0):
        if len(taken) >= most:
            break
        if (pictures or not run_kinds.needs_pictures(run)) and leases.take(run, worker=name):
            taken.append(run)
    return taken


def is_idle(name: str, *, pictures: bool = True) -> bool:
    """Whether no run waits but those that others are at. Raises GaveUp when this worker can take none that wait."""
    others = RunHold.objects.live().exclude(worker=name).filter(run=OuterRef("pk"))
    waiting = list(Run.objects.filter(~Exists(others), state__in=Run.GOING).select_related("judge"))
    if waiting and not pictures and all(run_kinds.needs_pictures(run) for run in waiting):
        raise GaveUp(f"{len(waiting)} runs wait for a worker that has their pictures.")
    return not waiting


def beat(name: str) -> bool:
    """Say that the worker lives, and whether it has the pictures; returns that."""
    try:
        pictures = images.media_matches_database()
    except Away as error:
        log.warning("%s", error)
        pictures = False
    with transaction.atomic():
        WorkerBeat.objects.update_or_create(name=name, defaults={"seen_at": Now(), "lacks_pictures": not pictures})
        WorkerBeat.objects.filter(seen_at__lt=Now() - WorkerBeat.FORGOTTEN_AFTER).delete()
    return pictures


def leave(name: str) -> None:
    WorkerBeat.objects.filter(name=name).delete()
