"""Waiting work: what is deferred here is done by a worker.

A job brings something up to date, such as the mails that wait: it may be done at any time and any number of times, and
looks itself for what there is to do. So a job that fails is not lost: what it has left is found by the next one. It is
stored in the transaction of what it is about, and does not exist without that.

On PostgreSQL, Procrastinate keeps and hands out the jobs; on SQLite a table of our own, to one worker at a time.
``evalsite.queues`` has both. Apps register their jobs when they are ready.
"""

import json
import threading
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from accounts.models import Job

LIGHT, PAGES, HEAVY = LANES = ("light", "pages", "heavy")
APART = (PAGES, HEAVY)


@dataclass(frozen=True, slots=True)
class Registered:
    """What a name stands for: the path of a function, which is ``async`` if it waits for others than the database.

    Those of the lane ``heavy`` compute long or need much memory, and those of ``pages`` draw what somebody waits for:
    each of these lanes has a process of its own, and one job at a time. ``every``: also done so often without being
    deferred.
    """

    path: str
    lane: str = LIGHT
    every: timedelta | None = None


REGISTERED: dict[str, Registered] = {}
STOPPING = threading.Event()  # set in the process of heavy jobs when the worker stops: they end soon


def register(name: str, path: str, *, lane: str = LIGHT, every: timedelta | None = None) -> None:
    """To be called by an app when it is ready."""
    REGISTERED[name] = Registered(path, lane, every)


def word(name: str, arguments: dict[str, Any]) -> str:
    """What jobs of the same name and arguments have in common: one waits at most, and one is being done."""
    return f"{name} {json.dumps(arguments, sort_keys=True)}" if arguments else name


def defer(name: str, *, not_before: datetime | None = None, first: bool = False, **arguments: Any) -> None:
    """Have a job done once the caller's transaction is stored, ``first``: before others of its lane that wait. Raises
    KeyError for a name that nobody registered.

    Nothing is added while the same job waits, be it for a later time; one that is being done does not count, for it may
    have looked already.
    """
    registered, once = REGISTERED[name], word(name, arguments)
    if connection.vendor == "sqlite":
        if not Job.objects.filter(once=once, begun=False).exists():  # asking needs no lock
            at = not_before or timezone.now()
            job = Job(name=name, arguments=arguments, not_before=at, priority=int(first), once=once)
            Job.objects.bulk_create([job], ignore_conflicts=True)
        return
    from procrastinate.contrib.django import app
    from procrastinate.exceptions import AlreadyEnqueued

    new = app.configure_task(
        name, queue=registered.lane, lock=once, queueing_lock=once, schedule_at=not_before, priority=int(first)
    )
    try:
        with transaction.atomic():  # of which nothing stays where one waits already
            new.defer(**arguments)
    except AlreadyEnqueued:
        pass


def due(*, apart: bool = True) -> int:
    """How many jobs there are whose time has come, those being done too; if so asked without those that are done in
    processes of their own.
    """
    now = timezone.now()
    if connection.vendor == "sqlite":
        names = [name for name, registered in REGISTERED.items() if apart or registered.lane == LIGHT]
        return Job.objects.filter(not_before__lte=now, name__in=names).count()
    from procrastinate.contrib.django import app

    wanted = [(lane, status) for lane in (LANES if apart else (LIGHT,)) for status in ("todo", "doing")]
    found = [job for lane, status in wanted for job in app.job_manager.list_jobs(queue=lane, status=status)]
    return sum(job.scheduled_at is None or job.scheduled_at <= now for job in found)
