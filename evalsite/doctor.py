"""The faults of an installation, in words and with what to run: for ``manage.py doctor``, ``/readyz``,
``manage.py check`` and every start.

Each examination answers with one Finding. None of them writes anything.
"""

import logging
import os
import platform
import shutil
import socket
import sqlite3
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.staticfiles.storage import staticfiles_storage
from django.core.mail import get_connection
from django.db import DatabaseError, OperationalError, connection, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.db.models import Max
from django.utils import timezone

from accounts import mail
from accounts.installation_key import WrongKeys, check_keys
from accounts.models import AuditEntry, Mail, Role, User
from bank import database, media, objects
from bank.database import execute
from bank.errors import outage
from bank.images import media_matches_database
from bank.models import SampleImage
from bank.objects import Away
from evalsite.backups import nightly
from evalsite.backups.folders import Failed
from evalsite.demo.accounts import still_open
from judging.endpoints.judges import readiness
from judging.models import Judge, WorkerBeat
from leaderboard import changes

log = logging.getLogger(__name__)
OLDER = (
    "it was made by a version whose data this one cannot take over. Nothing was changed. Start with a new data folder "
    "(EVALSITE_DATA) and, where DATABASE_URL is set, an empty database; or go back to the version that made it"
)
PATIENCE = 2000  # milliseconds that a probe waits for whoever writes
SPARE, SCARCE = 64 * 2**20, 2**30  # bytes that must be free, and that should be
ANSWERS_WITHIN = 5  # seconds, of what is asked by network
STARTS_WITHIN = 60  # seconds, of the database after the machine
CLOCK_OFF = 5  # seconds that the clocks of machines may differ
BACKUP_DUE = timedelta(days=2)  # at the latest
PICTURES = 200  # of the newest that are looked for
STATIC = "favicon.svg"  # any file that pages link to
# https://sqlite.org/wal.html, section 11: fixed in these versions.
FIXED = ((3, 51, 3), (3, 50, 7), (3, 44, 6))


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of an examination. ``level``: "ok", "warning" (it works, but) or "fault"."""

    level: str
    words: str

    @property
    def is_fault(self) -> bool:
        return self.level == "fault"


def ok(words: str = "ok") -> Finding:
    return Finding("ok", words)


def warning(words: str) -> Finding:
    return Finding("warning", words)


def fault(words: str) -> Finding:
    return Finding("fault", words)


def python() -> Finding:
    return ok(f"Python {platform.python_version()} on {platform.system()} {platform.machine()}")


def _room(folder: Path) -> tuple[int, str]:
    """The bytes that are free in a folder, or where it will be, and why it cannot be used, if so."""
    place = next(one for one in (folder, *folder.parents) if one.exists())
    if not (place.is_dir() and os.access(place, os.W_OK | os.X_OK)):
        return 0, f"the {folder.name} folder cannot be written: {folder} must belong to the user that runs this"
    try:
        free, inodes = shutil.disk_usage(place).free, os.statvfs(place)
    except OSError as error:
        return 0, f"the {folder.name} folder does not answer ({error.strerror})"
    if free < SPARE or (inodes.f_files and not inodes.f_favail):
        return free, f"no space is left: {free / 2**20:.0f} MB are free in {folder}"
    return free, ""


def storage() -> Finding:
    """Whether the folders can be written and have room, and whether only we can read them."""
    for folder in (Path(settings.MEDIA_ROOT), Path(settings.DATA)):
        free, words = _room(folder)
        if words:
            return fault(words)
    try:
        if away := objects.of("default"):
            away.opened(media.MARK).close()
    except FileNotFoundError:
        pass  # it answers, and holds no pictures yet
    except Away as error:
        return fault(f"{error} S3_BUCKET, S3_ENDPOINT, S3_REGION and the keys of S3 say where it is")
    if free < SCARCE:
        return warning(f"{free / 2**20:.0f} MB are free in {folder}: `manage.py tidy` says what takes the space")
    opened = [path for path in (folder, *folder.glob("*.sqlite3*"), *folder.glob("*.env")) if _others_read(path)]
    if opened:
        names = " ".join(map(str, opened))
        return warning(f"other users of this machine may read what is hidden: run `chmod go-rwx {names}`")
    return ok(f"{folder}, {free / 2**30:.0f} GB free")


def _others_read(path: Path) -> bool:
    return path.exists() and bool(path.stat().st_mode & 0o077)


def writable() -> Finding:
    """Whether the database accepts writes. An update of no row needs all that a write needs, and is rolled back."""
    if no_answer := _no_answer():
        return fault(no_answer)
    try:
        with _short_timeout(), transaction.atomic():
            WorkerBeat.objects.filter(pk=-1).update(name="")
            transaction.set_rollback(True)
    except DatabaseError as error:
        if words := _damage(error) or outage(error):  # else a table that is not there: a matter of migrations
            return fault(words)
    return server()


def _no_answer() -> str:
    """Why the database takes no connection, and what says where it is; "" if it takes one."""
    try:
        connection.ensure_connection()
    except OperationalError as error:
        words, why = outage(error), " ".join(str(error).split())
        if words and "does not answer" not in words:
            return words
        return f"The database does not answer: {why}. DATABASE_URL says where it is."
    return ""


def _damage(error: DatabaseError) -> str:
    """The way out if the file is no database any more, or not a whole one; else ""."""
    if any(words in str(error) for words in ("malformed", "not a database")):
        return f"its file is damaged ({error}): put it aside, and run `manage.py restore` of the newest backup"
    return ""


def server() -> Finding:
    """The database's version, and whether that has a known fault."""
    name = connection.settings_dict["NAME"]
    if connection.vendor == "sqlite":
        version = sqlite3.sqlite_version
        if not sqlite_has_wal_race(sqlite3.sqlite_version_info):
            return ok(f"SQLite {version}, {name}")
        return warning(
            f"SQLite {version} has a rare race in WAL mode that can lose a write: install pysqlite3 (it brings a fixed "
            "SQLite), update SQLite to 3.51.3 or later, or use PostgreSQL"
        )
    return ok(f"PostgreSQL {execute('SHOW server_version')}, {name}")


def sqlite_has_wal_race(version: tuple[int, int, int]) -> bool:
    """Whether this SQLite can, rarely, lose a write in WAL mode when two connections checkpoint at once."""
    same_branch = [fixed for fixed in FIXED if fixed[:2] == version[:2]]
    return version < (same_branch[0] if same_branch else FIXED[0])


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
        execute(f"PRAGMA busy_timeout = {int(milliseconds)}")


def migrations() -> Finding:
    """Whether the tables are those of this version."""
    if older(connection):
        return fault(OLDER)
    executor = MigrationExecutor(connection)
    waiting = len(executor.migration_plan(executor.loader.graph.leaf_nodes()))
    if waiting:
        return fault(f"{waiting} wait: run `manage.py migrate`")
    tables = [model._meta.db_table for model in changes.without_triggers()]
    return fault(f"the triggers of {', '.join(tables)} are missing: run `manage.py migrate`") if tables else ok()


def older(database: BaseDatabaseWrapper) -> bool:
    """Whether the database was made by migrations that are no longer here.

    Squashed ones may have gone: Django records those that they replace as well.
    """
    applied = set(MigrationRecorder(database).applied_migrations())
    ours = set(MigrationLoader(None).disk_migrations)
    apps = {app for app, _ in ours}
    return any(app in apps and "_squashed_" not in name for app, name in applied - ours)


def keys() -> Finding:
    """Whether CRITERIA_KEYS belong to this database."""
    try:
        check_keys()
    except WrongKeys as error:
        return fault(str(error))
    return ok()


def demo_accounts() -> Finding:
    """Demo accounts with the password from our source, if others than this machine may sign in."""
    names = [] if settings.LOCAL else [person.username for person in still_open()]
    if names:
        return fault(
            f"The demo's password, which everybody can read in the source, still opens {', '.join(names)}. "
            "Switch these accounts off with\n  manage.py remove_demo_accounts\n"
            "then make your own with `manage.py make_user NAME --role administrator`."
        )
    if not User.objects.filter(role=Role.ADMINISTRATOR, is_active=True).exists():
        return warning("nobody is an administrator: run `manage.py make_user NAME --role administrator`")
    return ok()


def static_files() -> Finding:
    try:
        staticfiles_storage.url(STATIC)
    except ValueError:  # the list of what was collected does not name it, or is not there
        return fault("The style sheets and scripts are not collected. Run `manage.py collectstatic --no-input`.")
    return ok()


def worker() -> Finding:
    newest, now = WorkerBeat.objects.order_by("-seen_at").first(), database.now()
    if newest is None or newest.seen_at < now - WorkerBeat.FORGOTTEN_AFTER:
        return fault("none is running: start one by `manage.py worker`")
    silent = now - newest.seen_at
    if silent >= WorkerBeat.SILENT_AFTER:
        return fault(f"silent for {silent.total_seconds():.0f} s: look at its log, or start it again")
    return ok(f"{WorkerBeat.objects.living().count()}, the newest seen {silent.total_seconds():.0f} s ago")


def mails() -> Finding:
    """Whether the mail server takes us in, and whether mails have waited long."""
    if not mail.is_set_up():
        return warning("only printed by the worker: set EMAIL_URL, for invitations and links for new passwords")
    try:
        with get_connection(timeout=ANSWERS_WITHIN):
            pass
    except (OSError, ValueError) as error:
        return fault(f"{settings.EMAIL_HOST}:{settings.EMAIL_PORT} takes no mail ({error}): correct EMAIL_URL")
    waiting = Mail.objects.filter(tries__gt=0).count()
    return warning(f"{waiting} mails were refused and wait: look at the worker's log") if waiting else ok()


def proxy() -> Finding:
    """Whether the site answers under its name, by HTTPS, to somebody who asks from outside."""
    if (name := proxy_setting()).level != "ok":
        return name
    if settings.LOCAL:
        return ok("none is needed: only this machine is served")
    if settings.TRUSTED_PROXIES < 1:
        return warning(
            "TRUSTED_PROXIES is 0: behind a proxy, all clients would count as one and redirects never end. Set it to "
            "the number of proxies (docs/operations.md)"
        )
    url = f"https://{settings.ALLOWED_HOSTS[0].removeprefix('.')}/healthz"
    try:
        with urllib.request.urlopen(url, timeout=ANSWERS_WITHIN) as reply:
            said = reply.read(10)
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        return warning(f"{url} does not answer from here ({reason}): look at the proxy and at DNS")
    return ok(f"{url} answers") if said == b"ok\n" else warning(f"{url} is somebody else's site: look at DNS")


def proxy_setting() -> Finding:
    if settings.BEHIND_PROXY:
        return warning(
            "BEHIND_PROXY is the old name: set TRUSTED_PROXIES=1, the number of proxies that stand before us"
        )
    return ok()


def clock() -> Finding:
    """Whether this machine's clock is the database's, and none was set back."""
    ahead = (timezone.now() - database.now()).total_seconds()
    if abs(ahead) > CLOCK_OFF:
        return fault(f"this machine's clock is {ahead:+.0f} s from the database's: let both follow NTP (`timedatectl`)")
    latest = AuditEntry.objects.aggregate(at=Max("at"))["at"]
    if latest and latest > timezone.now() + timedelta(seconds=CLOCK_OFF):
        at = timezone.localtime(latest)
        return fault(f"the audit log has an entry of {at:%Y-%m-%d %H:%M %Z}, after now: the clock was set back")
    return ok(f"{timezone.localtime():%Y-%m-%d %H:%M %Z}")


def endpoints() -> Finding:
    """Whether each judge's key is set here and its endpoint accepts connections."""
    wrong, judges = [], list(Judge.objects.exclude(base_url="").order_by("name"))
    reached: dict[tuple[str, int], str] = {}
    for judge in judges:
        address = urlsplit(judge.base_url)
        place = address.hostname or "", address.port or (443 if address.scheme == "https" else 80)
        if place not in reached:
            reached[place] = _unreachable(place)
        if readiness(judge)["key_set"] is False:
            wrong.append(f"{judge.name}: {judge.key_env} is not set here; the worker needs it")
        elif reached[place]:
            wrong.append(f"{judge.name}: {place[0]}:{place[1]} is out of reach ({reached[place]})")
    return warning("; ".join(wrong)) if wrong else ok(f"{len(judges)} judges' endpoints accept connections")


def _unreachable(place: tuple[str, int]) -> str:
    """Why no connection is made, "" if one is."""
    try:
        socket.create_connection(place, timeout=ANSWERS_WITHIN).close()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def pictures() -> Finding:
    """Whether the media folder is the one of the database, with its newest pictures."""
    newest = list(SampleImage.objects.order_by("-pk")[:PICTURES])
    gone = [one.path for one in newest if not media.exists(one.path)]
    if gone or not media_matches_database():
        return fault(
            f"{len(gone)} of the newest {len(newest)} pictures are not in {media.place()}: mount the folder, or set "
            "S3_BUCKET to the one, that belongs to this database, or restore it from the backup"
        )
    if newest and (away := objects.of("default")) and _is_public(away.address(newest[0].path)):
        return fault("anybody can read the pictures in S3_BUCKET: remove its public policy or ACL")
    return ok(f"{SampleImage.objects.count()} pictures")


def _is_public(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=ANSWERS_WITHIN):  # noqa: S310 (an address of the settings)
            return True
    except (OSError, ValueError):
        return False


def backups() -> Finding:
    """Whether the backup that a worker makes each day is there."""
    if not (folder := settings.BACKUP_FOLDER):
        return ok("none by itself: set BACKUP_FOLDER, or run `manage.py backup` each day")
    try:
        newest = nightly.newest()
    except Failed as error:
        return fault(str(error))
    if newest is None or newest < timezone.now() - BACKUP_DUE:
        when = f"since {timezone.localtime(newest):%Y-%m-%d %H:%M %Z}" if newest else "yet"
        return warning(f"none in {folder} {when}: look at the worker's log, and whether the folder is mounted here")
    return ok(f"the newest in {folder} is of {timezone.localtime(newest):%Y-%m-%d %H:%M %Z}")


Examination = Callable[[], Finding]
# Those that /readyz asks, by the names it gives them; it says all is well of a warning.
READY: dict[str, Examination] = {"migrations": migrations, "keys": keys, "worker": worker}
EXAMINATIONS: dict[str, Examination] = {
    "python": python,
    "storage": storage,
    "database": writable,
    **READY,
    "accounts": demo_accounts,
    "static files": static_files,
    "mail": mails,
    "proxy": proxy,
    "clock": clock,
    "endpoints": endpoints,
    "pictures": pictures,
    "backup": backups,
}
NEED_NO_TABLES = ("python", "storage", "database", "static files", "proxy", "backup")


def examine() -> Iterator[tuple[str, Finding]]:
    """Every examination that can be made: without a database, or its tables, those that need none."""
    has_tables = True
    for name, examination in EXAMINATIONS.items():
        if has_tables or name in NEED_NO_TABLES:
            finding = safely(examination)
            has_tables = has_tables and not (finding.is_fault and name in ("database", "migrations"))
            yield name, finding


def safely(examination: Examination) -> Finding:
    try:
        return examination()
    except Away as error:
        return fault(str(error))
    except DatabaseError as error:
        return fault(_damage(error) or outage(error) or "its tables are not there: run `manage.py migrate`")


def of_another_version(words: str) -> str:
    """What is said where the tables have to be those of this version, and are not; ``words``: why not. It names the
    database: without EVALSITE_DATA that is another one.
    """
    name, words = connection.settings_dict["NAME"], words.replace("wait", "migrations wait", 1)
    return f"The database {name} is not that of this version: {words}."


def faults(*, web: bool) -> Iterator[str]:
    """Each reason not to start; ``web`` also checks what only pages need."""
    if no_answer := _no_answer():
        yield no_answer
        return
    if (found := migrations()).is_fault:
        yield of_another_version(found.words)
        return
    for examination in (keys, demo_accounts, *([static_files] if web else [])):
        if (found := examination()).is_fault:
            yield found.words


def wait_for_database(seconds: float = STARTS_WITHIN) -> None:
    """Wait until the database takes connections: that it is just starting is no reason to end."""
    deadline = time.monotonic() + seconds
    told = False
    while True:
        try:
            connection.ensure_connection()
        except OperationalError as error:
            starting = any(words in str(error) for words in ("refused", "the database system is", "name"))
            if not starting or time.monotonic() > deadline:
                return  # who looks next says why
            if not told:
                log.info("The database does not answer yet: waiting up to %.0f s", seconds)
                told = True
            time.sleep(0.5)
        else:
            return
