"""Whether this process answers, and whether the installation can work."""

import logging
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.http import HttpRequest, HttpResponse, JsonResponse

from accounts.http import is_local
from accounts.installation_key import WrongKeys, check_keys
from accounts.rules import requires
from bank import database
from bank.errors import outage
from judging.models import WorkerBeat
from leaderboard import changes

log = logging.getLogger(__name__)
OK = "ok"
OLDER = (
    "it was made by a version whose data this one cannot take over. Nothing was changed. Start with a new data folder "
    "(EVALSITE_DATA) and, where DATABASE_URL is set, an empty database; or go back to the version that made it"
)
WORKER_SILENT_AFTER = 60  # seconds
PATIENCE = 2000  # milliseconds that the probe waits for whoever writes
SPARE = 64 * 2**20  # bytes that must be free


@requires("read-public")
def healthz(request: HttpRequest) -> HttpResponse:
    """The process answers."""
    return HttpResponse("ok\n", content_type="text/plain")


@requires("read-public")
def readyz(request: HttpRequest) -> JsonResponse:
    """The state of database, migrations, keys, storage and worker; 503 unless all are well. Writes nothing.

    What is wrong is told to this machine and to the log; others get the status and no reason.
    """
    states = {"database": _database()}
    if states["database"] == OK:
        states |= {
            name: _safely(ask) for name, ask in (("migrations", migrations), ("keys", keys), ("worker", _worker))
        }
    states["storage"] = _storage()
    wrong = {name: state for name, state in states.items() if state != OK}
    if wrong:
        log.warning("Not ready: %s", "; ".join(f"{name}: {state}" for name, state in wrong.items()))
    told = states if is_local(request) else {"status": "not ready" if wrong else OK}
    return JsonResponse(told, status=503 if wrong else 200)


def migrations() -> str:
    """Whether the tables are those of this version."""
    if older(connection):
        return OLDER
    executor = MigrationExecutor(connection)
    waiting = len(executor.migration_plan(executor.loader.graph.leaf_nodes()))
    if waiting:
        return f"{waiting} wait: run `manage.py migrate`"
    tables = [model._meta.db_table for model in changes.without_triggers()]
    return f"the triggers of {', '.join(tables)} are missing: run `manage.py migrate`" if tables else OK


def older(database: BaseDatabaseWrapper) -> bool:
    """Whether the database was made by migrations that are no longer here. A squashed one stands for those that it
    replaces, if the database had them all.
    """
    applied = set(MigrationRecorder(database).applied_migrations())
    ours = MigrationLoader(None).disk_migrations
    replaced = [set(migration.replaces) for migration in ours.values()]
    unknown = applied - set(ours) - set().union(*replaced)
    apps = {app for app, _ in ours}
    return any(app in apps for app, _ in unknown) or any(of & applied and not of <= applied for of in replaced)


def keys() -> str:
    """Whether CRITERIA_KEYS belong to this database."""
    try:
        check_keys()
    except WrongKeys as error:
        return str(error)
    return OK


def _database() -> str:
    """Whether it accepts writes. An update of no row needs all that a write needs, and is rolled back."""
    try:
        with _short_timeout(), transaction.atomic():
            WorkerBeat.objects.filter(pk=-1).update(name="")
            transaction.set_rollback(True)
    except DatabaseError as error:
        return outage(error) or OK  # a table that is not there is a matter of migrations
    return OK


@contextmanager
def _short_timeout() -> Iterator[None]:
    """The connection waits for other writers no longer than a probe may take."""
    _wait_at_most(PATIENCE)
    try:
        yield
    finally:
        if connection.connection is not None:
            _wait_at_most(1000 * settings.DATABASES["default"].get("OPTIONS", {}).get("timeout", 5))


def _wait_at_most(milliseconds: int) -> None:
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute(f"PRAGMA busy_timeout = {int(milliseconds)}")


def _safely(ask: Callable[[], str]) -> str:
    try:
        return ask()
    except DatabaseError as error:
        return outage(error) or "its tables are not there: run `manage.py migrate`"


def _storage() -> str:
    for folder in (Path(settings.MEDIA_ROOT), Path(settings.DATA)):
        place = next(one for one in (folder, *folder.parents) if one.exists())
        if not (place.is_dir() and os.access(place, os.W_OK | os.X_OK)):
            return f"the {folder.name} folder cannot be written"
        try:
            free, inodes = shutil.disk_usage(place).free, os.statvfs(place)
        except OSError as error:
            return f"the {folder.name} folder does not answer ({error.strerror})"
        if free < SPARE or (inodes.f_files and not inodes.f_favail):
            return f"no space is left: {free / 2**20:.0f} MB are free"
    return OK


def _worker() -> str:
    newest, now = WorkerBeat.objects.order_by("-seen_at").first(), database.now()
    if newest is None or newest.seen_at < now - WorkerBeat.FORGOTTEN_AFTER:
        return "none is running: start one by `manage.py worker`"
    silent = (now - newest.seen_at).total_seconds()
    return OK if silent < WORKER_SILENT_AFTER else f"silent for {silent:.0f} s: look at its log, or start it again"
