"""Checks of this installation, for ``manage.py check``."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register
from django.db import DatabaseError, connection

# https://sqlite.org/wal.html, section 11: fixed in these versions.
FIXED = ((3, 51, 3), (3, 50, 7), (3, 44, 6))


def sqlite_has_wal_race(version: tuple[int, int, int]) -> bool:
    """Whether this SQLite can, rarely, lose a write in WAL mode when two connections checkpoint at once."""
    same_branch = [fixed for fixed in FIXED if fixed[:2] == version[:2]]
    return version < (same_branch[0] if same_branch else FIXED[0])


@register()
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


@register()
def proxies(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    from evalsite import start

    return [Warning(said, id="evalsite.W002") for said in start.told()]


@register()
def keys(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    from evalsite import start

    return [Error(said, id="evalsite.E001") for said in start.wrong_keys()] if _has_key() else []


@register(deploy=True)
def demo_accounts(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    from evalsite import start

    return [Error(said, id="evalsite.E002") for said in start.demo_accounts()] if _has_database() else []


def _has_key() -> bool:
    """Whether a key is stored: while migrations wait, nothing else says whose texts these are."""
    from accounts.models import InstallationKey

    try:
        return _has_database() and InstallationKey.objects.exists()
    except DatabaseError:
        return False


def _has_database() -> bool:
    """Whether there is one to look into: SQLite would make an empty one."""
    return connection.vendor != "sqlite" or Path(settings.DATABASES["default"]["NAME"]).exists()
