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


@dataclass(frozen=True, slots=True)
class Registered:
    """What a name stands for: the path of a function, which is ``async`` if it waits for others than the database.

    ``heavy`` ones compute long or need much memory: they run in a process of their own, one at a time. ``every``: also
    done so often without being deferred.
    """

    path: str
    heavy: bool
    every: timedelta | None = None

    @property
    def queue(self) -> str:
        return "heavy" if self.heavy else "light"


REGISTERED: dict[str, Registered] = {}
STOPPING = threading.Event()  # set in the process of heavy jobs when the worker stops: they end soon


def register(name: str, path: str, *, heavy: bool = False, every: timedelta | None = None) -> None:
    """To be called by an app when it is ready."""
    REGISTERED[name] = Registered(path, heavy, every)


def word(name: str, arguments: dict[str, Any]) -> str:
    """What jobs of the same name and arguments have in common: one waits at most, and one is being done."""
    return f"{name} {json.dumps(arguments, sort_keys=True)}" if arguments else name


def defer(name: str, *, not_before: datetime | None = None, **arguments: Any) -> None:
    """Have a job done once the caller's transaction is stored. Raises KeyError for a name that nobody registered.

    Nothing is added while the same job waits, be it for a later time; one that is being done does not count, for it may
    have looked already.
    """
    registered, once = REGISTERED[name], word(name, arguments)
    if connection.vendor == "sqlite":
        if not Job.objects.filter(once=once, begun=False).exists():  # asking needs no lock
            job = Job(name=name, arguments=arguments, not_before=not_before or timezone.now(), once=once)
            Job.objects.bulk_create([job], ignore_conflicts=True)
        return
    from procrastinate.contrib.django import app
    from procrastinate.exceptions import AlreadyEnqueued

    new = app.configure_task(name, queue=registered.queue, lock=once, queueing_lock=once, schedule_at=not_before)
    try:
        with transaction.atomic():  # of which nothing stays where one waits already
            new.defer(**arguments)
    except AlreadyEnqueued:
        pass


def due(*, heavy: bool = True) -> int:
    """How many jobs there are whose time has come, those being done too; without heavy ones if so asked."""
    now = timezone.now()
    if connection.vendor == "sqlite":
        names = [name for name, registered in REGISTERED.items() if heavy or not registered.heavy]
        return Job.objects.filter(not_before__lte=now, name__in=names).count()
    from procrastinate.contrib.django import app

    queues = ["light", "heavy"] if heavy else ["light"]
    wanted = [(queue, status) for queue in queues for status in ("todo", "doing")]
    found = [job for queue, status in wanted for job in app.job_manager.list_jobs(queue=queue, status=status)]
    return sum(job.scheduled_at is None or job.scheduled_at <= now for job in found)
