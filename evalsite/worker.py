"""The worker: takes waiting runs, works them, does the jobs that wait, says that it lives."""

import asyncio
import logging
from collections.abc import Sequence

from django.db import Error as DatabaseError
from django.db import transaction
from django.db.models import Exists, OuterRef
from django.db.models.functions import Now

from accounts.loop import db
from bank import images, media
from bank.intake.uploads import decrypted
from bank.objects import Away
from evalsite import queues
from judging.models import LEASE, Run, RunHold, WorkerBeat
from judging.work import Shared, leases, run_kinds, work

log = logging.getLogger(__name__)

AT_ONCE = 4  # runs that one worker holds
LOOK_EVERY = 1.0  # seconds between looks for a waiting run
BEAT_EVERY = 10.0
SETTLE = 10.0  # seconds after an outage of the database in which no run is taken: those that live renew their holds
GIVE_UP_AFTER = 300.0  # seconds without a database, of a worker that is to end by itself
NO_PICTURES = (
    "The media of this worker (%s) is not the one that this site's pictures are in: it takes no runs that show "
    "pictures, and no uploads. Give it the same EVALSITE_DATA as the others, or mount that folder here; with object "
    "storage, the same S3_BUCKET and S3_ENDPOINT."
)


class GaveUp(RuntimeError):
    """A worker that was to go on until nothing waits ends earlier; says why."""


async def serve(
    *, stop: asyncio.Event, name: str | None = None, until_idle: bool = False, give_up_after: float = GIVE_UP_AFTER
) -> None:
    """Work waiting runs until ``stop`` is set, then let the calls in flight end and give the runs back. Jobs that wait
    are done beside them.

    What a worker that died had claimed is free again when its lease is over, so no other watchman is needed. With
    ``until_idle`` it ends when neither a run nor a job waits; raises GaveUp where some do, and the database does not
    come back or their pictures are not here. To be called in ``accounts.loop.run``.
    """
    name = name or leases.worker_name()
    shared = Shared()
    active: dict[int, asyncio.Task[bool]] = {}
    resting: dict[int, float] = {}  # runs that were left, and until when they are left to others that are at them
    answered = asyncio.get_running_loop().time()  # when the database last did
    beaten = -BEAT_EVERY
    settled = answered
    pictures = True
    decrypted.remove_left()
    stop_jobs = asyncio.Event()
    queue = queues.queue(computes=lambda: pictures)  # uploads hold pictures, and so do most others
    jobs = asyncio.create_task(queue.work(stop_jobs))
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
                left = [pk for pk, until in resting.items() if until > now]
                room = AT_ONCE - len(active) if now >= settled else 0
                for run in await db(take, room, busy=list(active), resting=left, name=name, pictures=pictures):
                    log.info("Run %s begins", run.pk, extra={"run": run.pk})
                    active[run.pk] = asyncio.create_task(work(run, shared=shared, stop=stop))
                if until_idle and not active:
                    idle = not await db(queue.waits) and await db(is_idle, name, pictures=pictures)
                answered = now
            except DatabaseError as error:
                log.warning("The database does not answer (%s), trying again", type(error).__name__)
                settled = now + SETTLE
                if until_idle and not active and now - answered > give_up_after:
                    raise GaveUp(f"The database has not answered for {now - answered:.0f} seconds.") from None
            if idle:
                return
            await queues.wait(stop, active.values(), LOOK_EVERY)
            for pk in [pk for pk, task in active.items() if task.done()]:
                task = active.pop(pk)
                crash = task.exception()
                if crash or task.result():
                    resting[pk] = asyncio.get_running_loop().time() + LEASE.total_seconds()
                log.log(logging.ERROR if crash else logging.INFO, "Run %s is left", pk, exc_info=crash)
    finally:
        stop_jobs.set()
        await asyncio.gather(*active.values(), jobs, return_exceptions=True)
        await shared.endpoints.close()
        try:
            await db(leave, name)
        except DatabaseError:
            log.warning("The database does not answer: that %s has left, it will notice later", name)


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
