"""The faults of an installation, in words and with what to run: for ``manage.py doctor``, ``/readyz``,
``manage.py check`` and every start.

Each examination answers with one Finding. None of them writes anything.
"""

import json
import logging
import os
import platform
import pwd
import re
import shutil
import socket
import sqlite3
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.staticfiles.storage import staticfiles_storage
from django.core import signing
from django.core.mail import get_connection
from django.db import DatabaseError, OperationalError, connection, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.db.models import Max
from django.db.models.functions import Coalesce, Greatest
from django.utils import timezone

from accounts import mail
from accounts.installation_key import WrongKeys, check_keys
from accounts.jobs import REGISTERED
from accounts.models import AuditEntry, Job, Mail, Role, Session, User
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
from leaderboard.kept import counters

log = logging.getLogger(__name__)
OLDER = (
    "it was made by a version whose data this one cannot take over. Nothing was changed. Start with a new data folder "
    "(EVALSITE_DATA) and, where DATABASE_URL is set, an empty database; or go back to the version that made it"
)
NEWER = (
    "it was made by a newer version than this one. Nothing was changed. Install that version (docs/upgrading.md), or "
    "go back to the backup of before the update"
)
PATIENCE = 1000  # milliseconds that a probe waits for whoever writes
SPARE, SCARCE = 64 * 2**20, 2**30  # bytes that must be free, and that should be
ANSWERS_WITHIN = 5  # seconds, of what is asked by network
STARTS_WITHIN = 60  # seconds, of the database after the machine
CLOCK_OFF = 5  # seconds that the clocks of machines may differ
BACKUP_DUE = timedelta(days=2)  # at the latest
JOB_DUE = timedelta(hours=1)  # at the latest, since its time has come
SESSIONS = 5  # of the newest that are tried
PICTURES = 200  # of the newest that are looked for
SAID = 2**20  # bytes that are read of what another server says
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
    of_metrics = os.environ.get("PROMETHEUS_MULTIPROC_DIR")
    for folder in (*([Path(of_metrics)] if of_metrics else []), Path(settings.MEDIA_ROOT), Path(settings.DATA)):
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
        file = Path(connection.settings_dict["NAME"])
        owned = _of_another(file) if connection.vendor == "sqlite" and "readonly" in str(error) else ""
        if words := owned or _damage(error) or outage(error):  # else a table that is not there: a matter of migrations
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
        if connection.vendor == "sqlite" and (words := _of_another(Path(connection.settings_dict["NAME"]))):
            return words
        return f"The database does not answer: {why}. DATABASE_URL says where it is."
    return ""


def _of_another(file: Path) -> str:
    """The way out if the database's file, or its folder, is another user's; else ""."""
    for path in (file.parent, file):
        try:
            owner = path.stat().st_uid
        except OSError:
            return ""  # it is not there; or its folder may not be entered, which was found before
        needed = os.R_OK | os.W_OK | (os.X_OK if path.is_dir() else 0)
        if owner != os.geteuid() and not os.access(path, needed, effective_ids=True):
            theirs, ours = _user(owner), _user(os.geteuid())
            chown = f"chown {ours} {path}{'*' if path == file else ''}"
            return f"{path} belongs to {theirs}, and this runs as {ours}: run `{chown}`, or run this as {theirs}"
    return ""


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


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
    if other := of_other_version(connection):
        return fault(other)
    executor = MigrationExecutor(connection)
    waiting = len(executor.migration_plan(executor.loader.graph.leaf_nodes()))
    if waiting:
        return fault(f"{waiting} wait: run `manage.py migrate`")
    tables = [model._meta.db_table for model in counters.without_triggers()]
    return fault(f"the triggers of {', '.join(tables)} are missing: run `manage.py migrate`") if tables else ok()


def of_other_version(database: BaseDatabaseWrapper) -> str:
    """What to say of a database that was made by migrations which are not here, or not any more; else "".

    Squashed ones may have gone: Django records those that they replace as well.
    """
    applied = set(MigrationRecorder(database).applied_migrations())
    ours = set(MigrationLoader(None).disk_migrations)
    newest: dict[str, str] = {}
    for app, name in ours:
        newest[app] = max(newest.get(app, ""), name)
    unknown = [(app, name) for app, name in applied - ours if app in newest and "_squashed_" not in name]
    if not unknown:
        return ""
    return NEWER if all(name[:4] > newest[app][:4] for app, name in unknown) else OLDER


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


def queue() -> Finding:
    """Whether the queue's tables are whole, and its oldest job is not too old."""
    try:
        if missing := _missing_of_queue():
            return fault(f"{', '.join(missing)} of the database is missing, so no job is done: {RESTORE}")
        name, since = _oldest_job()
    except DatabaseError as error:
        if words := _damage(error) or outage(error):
            return fault(words)
        return fault(f"its tables are damaged ({' '.join(str(error).split())}), so no job is done: {RESTORE}")
    if since is None or (age := timezone.now() - since) < JOB_DUE:
        return ok()
    return warning(
        f"`{name}` has waited, or been under way, for {age.total_seconds() / 3600:.0f} h: look at the worker's log, "
        "and start the worker again if it stands still"
    )


RESTORE = "run `manage.py restore` of the newest backup"


def _missing_of_queue() -> list[str]:
    """What Procrastinate made in the database and is not there any more; the table of SQLite is asked itself."""
    if connection.vendor == "sqlite":
        return []
    from procrastinate.schema import SchemaManager

    wanted = set(re.findall(r"^CREATE (?:TABLE|FUNCTION) (\w+)", SchemaManager.get_schema(), re.MULTILINE))
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname FROM pg_class WHERE pg_table_is_visible(oid) "
            "UNION SELECT proname FROM pg_proc WHERE pg_function_is_visible(oid)"
        )
        return sorted(wanted - {name for (name,) in cursor.fetchall()})


def _oldest_job() -> tuple[str, datetime | None]:
    """The name of the job whose time came first, and when that was."""
    now = timezone.now()
    if connection.vendor == "sqlite":
        jobs = Job.objects.filter(not_before__lte=now, name__in=list(REGISTERED))
        return jobs.order_by("not_before").values_list("name", "not_before").first() or ("", None)
    from procrastinate.contrib.django.models import ProcrastinateEvent

    came = Greatest("at", Coalesce("job__scheduled_at", "at"))
    events = ProcrastinateEvent._default_manager.filter(type="deferred", job__status__in=("todo", "doing"))
    rows = events.annotate(came=came).filter(came__lte=now).order_by("came")
    return rows.values_list("job__task_name", "came").first() or ("", None)


def sessions() -> Finding:
    """Whether SECRET_KEY signed one of the newest sessions."""
    store = Session.get_session_store_class()()
    newest = Session.objects.order_by("-expire_date").values_list("session_data", flat=True)[:SESSIONS]
    wrong = [_is_forged(data, store) for data in newest]
    if not wrong or not all(wrong):
        return ok()
    return warning(
        "SECRET_KEY is another one than signed the newest sessions: put the old one back (also as it stands in the "
        "backup), or everybody signs in again and links that were mailed are dead"
    )


def _is_forged(data: str, store: Any) -> bool:
    try:
        signing.loads(data, salt=store.key_salt, serializer=store.serializer)
    except signing.BadSignature:
        return True
    return False


def sign_on() -> Finding:
    """Whether the provider of single sign-on answers, and calls itself as SSO_ISSUER does."""
    if not settings.SSO_ISSUER:
        return ok("no provider is set")
    url = f"{settings.SSO_ISSUER.rstrip('/')}/.well-known/openid-configuration"
    try:
        with urllib.request.urlopen(url, timeout=ANSWERS_WITHIN) as reply:  # noqa: S310 (an address of the settings)
            issuer = json.loads(reply.read(SAID))["issuer"]
    except (OSError, ValueError, LookupError, TypeError) as error:
        reason = getattr(error, "reason", error)
        who = "nobody can sign in" if not settings.SSO_PASSWORDS else "only who has a password can sign in"
        return fault(f"{url} does not answer as a provider does ({reason}), so {who}: look at it, or at SSO_ISSUER")
    if issuer != settings.SSO_ISSUER:
        return fault(f"the provider calls itself {str(issuer)[:200]!r}: set SSO_ISSUER to that")
    return ok(f"{settings.SSO_ISSUER} answers")


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
    if not gone and (closed := [words for one in newest if (words := _why_not_read(one.path))]):
        return fault(
            f"{len(closed)} of the newest {len(newest)} pictures cannot be read ({closed[0]}): they must belong to the "
            f"user that runs this, as {media.place()} does"
        )
    if gone or not media_matches_database():
        return fault(
            f"{len(gone)} of the newest {len(newest)} pictures are not in {media.place()}: mount the folder, or set "
            "S3_BUCKET to the one, that belongs to this database, or restore it from the backup"
        )
    if newest and (away := objects.of("default")) and _is_public(away.address(newest[0].path)):
        return fault("anybody can read the pictures in S3_BUCKET: remove its public policy or ACL")
    return ok(f"{SampleImage.objects.count()} pictures")


def _why_not_read(name: str) -> str:
    """Why the file of a picture cannot be read, "" if it can. Of storage elsewhere, it was asked for already."""
    if objects.of("default"):
        return ""
    try:
        media.opened(name).close()
    except OSError as error:
        return f"{name}: {error.strerror}"
    return ""


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
    if connection.vendor == "postgresql" and not shutil.which("pg_dump"):
        return fault("pg_dump is not here, and makes them: install PostgreSQL's client (Debian's postgresql-client)")
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
    "queue": queue,
    "sessions": sessions,
    "static files": static_files,
    "single sign-on": sign_on,
    "mail": mails,
    "proxy": proxy,
    "clock": clock,
    "endpoints": endpoints,
    "pictures": pictures,
    "backup": backups,
}
NEED_NO_TABLES = ("python", "storage", "database", "static files", "single sign-on", "proxy", "backup")


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
