"""Restoring a backup into an empty place."""

import os
from collections import deque
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from cryptography.exceptions import InvalidTag
from django.apps import apps
from django.conf import settings
from django.core.management import call_command
from django.db import connection, transaction

from accounts import audit, installation_key
from accounts.crypto import EncryptedTextField
from bank import media, objects
from bank.database import analyze
from bank.models import FileLease, Import
from evalsite import doctor, keys
from evalsite.backups import databases, folders
from evalsite.backups.folders import DATABASE, MEDIA, Failed, Manifest
from judging.models import JudgeShare, Run, RunHold, WorkerBeat
from judging.work import leases

PAST = datetime(2000, 1, 1, tzinfo=UTC)
OTHER_KIND = {  # by the kind of this installation's database
    "sqlite": "The backup is of a PostgreSQL database, and this installation uses SQLite. Set DATABASE_URL to an empty "
    "PostgreSQL database.",
    "postgresql": "The backup is of an SQLite database, and this installation uses PostgreSQL. Restore it without "
    "DATABASE_URL in an empty data folder, then move it with `manage.py to_postgres URL`.",
}
NOTHING = "Nothing was restored."


def check(backup: Path, manifest: Manifest) -> None:
    """Raises Failed unless this installation is empty and the backup is whole and of its kind."""
    if manifest.database != connection.vendor:
        raise Failed(OTHER_KIND[connection.vendor])
    pictures = [name for name, _ in media.sizes()]
    for place, found in ((databases.NAME, databases.tables()), (media.place(), pictures)):
        if found:
            raise Failed(f"{place} is not empty: it has {_some(found)}. {NOTHING}")
    damaged = [name for name, sha256 in manifest.files.items() if folders.sha256(backup / name) != sha256]
    if damaged:
        raise Failed(f"Damaged or gone in {backup}: {_some(damaged)}. {NOTHING}")


def take_keys(backup: Path, manifest: Manifest) -> str:
    """Put the backup's key file in, where a local installation has lost its own and has just made another.

    Says so then: the process has to start anew with it. Raises Failed if no keys fit.
    """
    if not manifest.key or installation_key.opens(manifest.key, settings.CRITERIA_KEYS):
        return ""
    theirs = keys.read_file(backup / keys.FILE)
    fit = theirs and installation_key.opens(manifest.key, theirs["CRITERIA_KEYS"].split(","))
    if not fit or not settings.LOCAL or any(os.environ.get(name) for name in theirs):
        here = f"what {backup / keys.FILE} says" if fit else "those that it was made with"
        raise Failed(
            f"CRITERIA_KEYS (or {keys.FILE} in {settings.DATA}) are not the keys of this backup: its hidden text could "
            f"not be read. Set SECRET_KEY and CRITERIA_KEYS to {here}. {NOTHING}"
        )
    place = settings.DATA / keys.FILE
    aside = place.with_name(f"{keys.FILE}.before-{datetime.now(UTC):%Y-%m-%dT%H-%M-%SZ}")
    if place.exists():
        place.rename(aside)
    folders.copy(backup / keys.FILE, place)
    return f"The keys of the backup are in {place} now. Those that were there, which do not fit, are in {aside.name}."


def _put_in(backup: Path, pictures: Sequence[str], put: Callable[[Path, Path], object]) -> None:
    """Pictures and rows, or nothing."""
    away = objects.of("default")

    def put_one(name: str) -> None:
        if away is None:
            put(backup / MEDIA / name, settings.MEDIA_ROOT / name)
            return
        away.put_copy(name, backup / MEDIA / name)

    try:
        deque(objects.at_once(put_one, pictures), 0)
        databases.load(backup / DATABASE)
    except BaseException:
        for name in pictures:  # it is as empty as it was
            media.remove(name)
        raise


def restore(backup: Path, manifest: Manifest, *, link: bool = False) -> str:
    """Restore a backup that was checked; returns what came back. Raises Failed if that is not what was backed up.

    ``link``: the pictures are the backup's own files, in a place that is thrown away.
    """
    _put_in(backup, manifest.pictures, folders.link if link else folders.copy)
    rows = databases.rows()
    faults = [f"{table} has another number of rows" for table in rows if rows[table] != manifest.rows.get(table)]
    if doctor.migrations().is_fault:
        call_command("migrate", verbosity=0, interactive=False)
    opened, closed = _sealed_texts()
    faults += [f"{place} holds what cannot be read with CRITERIA_KEYS" for place in closed]
    faults += [f"the audit log is not whole: entry {one.number} {one.why}" for one in audit.broken()]
    forget_the_past()
    analyze()
    if faults:
        raise Failed("It is restored, but:\n" + "\n".join(faults))
    return (
        f"{sum(rows.values()):,} rows of {len(rows)} tables and {len(manifest.pictures):,} files of pictures. All "
        f"{opened:,} sealed texts can be read, and the audit log is whole."
    )


@transaction.atomic
def forget_the_past() -> None:
    """End what processes of the past were at: others need not wait until it has been silent for long enough."""
    for model in (WorkerBeat, JudgeShare, FileLease):
        model._default_manager.all().delete()
    Import.objects.under_way().update(until=PAST)  # the next import removes its rows
    RunHold.objects.update(until=PAST)
    for run in Run.objects.filter(pk__in=RunHold.objects.values("run")):
        leases.sweep(leases.lock(run))  # calls that were in flight count as made, as after any kill


def _sealed_texts() -> tuple[int, set[str]]:
    """How many encrypted texts CRITERIA_KEYS open, and the tables and columns of those that they do not."""
    opened, closed = 0, set()
    fields = [field for model in apps.get_models() for field in model._meta.local_concrete_fields]
    for field in fields:
        if isinstance(field, EncryptedTextField):
            with connection.chunked_cursor() as cursor:
                query = f'SELECT "{field.column}" FROM "{field.model._meta.db_table}" WHERE "{field.column}" <> \'\''
                cursor.execute(query)
                for (token,) in cursor:
                    try:
                        field.open(token)
                        opened += 1
                    except InvalidTag:
                        closed.add(field.place)
    return opened, closed


def _some(names: Sequence[str]) -> str:
    return f"{', '.join(names[:3])} ({len(names):,} in all)"
