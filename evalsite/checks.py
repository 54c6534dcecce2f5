"""Checks of this installation: before it starts, and for ``manage.py check``."""

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.staticfiles.storage import staticfiles_storage
from django.core.checks import CheckMessage, Error, Warning, register
from django.db import DatabaseError, OperationalError, connection

from accounts.installation_key import WrongKeys, check_keys
from accounts.management.base import INSTALLATION
from evalsite import health
from evalsite.demo.accounts import still_open

STATIC = "favicon.svg"  # any file that pages link to


def faults(*, web: bool) -> Iterator[str]:
    """Each reason not to start; ``web`` also checks what only pages need."""
    try:
        connection.ensure_connection()
    except OperationalError as error:
        yield f"The database does not answer: {str(error).strip()}. DATABASE_URL says where it is."
        return
    if (migrations := health.migrations()) != health.OK:
        yield f"The database is not that of this version: {migrations.replace('wait', 'migrations wait', 1)}."
        return
    yield from wrong_keys()
    yield from open_demo_accounts()
    if web:
        yield from _not_collected()


def wrong_keys() -> Iterator[str]:
    """CRITERIA_KEYS that do not belong to the database. Nothing for a database that has no tables yet."""
    try:
        check_keys()
    except WrongKeys as error:
        yield str(error)
    except DatabaseError:
        return


def open_demo_accounts() -> Iterator[str]:
    """Demo accounts with the password from our source, if others than this machine may sign in."""
    if settings.LOCAL:
        return
    try:
        names = [person.username for person in still_open()]
    except DatabaseError:
        return
    if names:
        yield (
            f"The demo's password, which everybody can read in the source, still opens {', '.join(names)}. "
            "Switch these accounts off with\n  manage.py remove_demo_accounts\n"
            "then make your own with `manage.py make_user NAME --role administrator`."
        )


def warnings() -> list[str]:
    """Warnings that do not prevent the start."""
    if settings.BEHIND_PROXY:
        return ["BEHIND_PROXY is the old name: set TRUSTED_PROXIES=1, the number of proxies that stand before us."]
    return []


def _not_collected() -> Iterator[str]:
    try:
        staticfiles_storage.url(STATIC)
    except ValueError:  # the list of what was collected does not name it, or is not there
        yield "The style sheets and scripts are not collected. Run `manage.py collectstatic --no-input`."


# https://sqlite.org/wal.html, section 11: fixed in these versions.
FIXED = ((3, 51, 3), (3, 50, 7), (3, 44, 6))


def sqlite_has_wal_race(version: tuple[int, int, int]) -> bool:
    """Whether this SQLite can, rarely, lose a write in WAL mode when two connections checkpoint at once."""
    same_branch = [fixed for fixed in FIXED if fixed[:2] == version[:2]]
    return version < (same_branch[0] if same_branch else FIXED[0])


@register(INSTALLATION)
def sqlite_version(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    if connection.vendor != "sqlite" or not sqlite_has_wal_race(sqlite3.sqlite_version_info):
        return []
    return [
        Warning(
            f"SQLite {sqlite3.sqlite_version} has a rare race in WAL mode that can lose a write.",
            hint="Install pysqlite3 (it bundles a fixed SQLite), update SQLite to 3.51.3 or later, or use PostgreSQL.",
            id="evalsite.W001",
        )
    ]


@register(INSTALLATION)
def proxies(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:

    return [Warning(message, id="evalsite.W002") for message in warnings()]


@register(INSTALLATION)
def keys(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:

    return [Error(message, id="evalsite.E001") for message in wrong_keys()] if _has_key() else []


@register(deploy=True)
def demo_accounts(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:

    return [Error(message, id="evalsite.E002") for message in open_demo_accounts()] if _has_database() else []


def _has_key() -> bool:
    """Whether a key is stored: before migrations, nothing else says whose texts these are."""
    from accounts.models import InstallationKey

    try:
        return _has_database() and InstallationKey.objects.exists()
    except DatabaseError:
        return False


def _has_database() -> bool:
    """Whether there is a database to look at: SQLite would create an empty one."""
    return connection.vendor != "sqlite" or Path(settings.DATABASES["default"]["NAME"]).exists()
