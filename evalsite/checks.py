"""Checks of this installation, for ``manage.py check`` and /readyz."""

import sqlite3
from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Warning, register
from django.db import connection

# https://sqlite.org/wal.html, section 11: fixed in these versions.
FIXED = ((3, 51, 3), (3, 50, 7), (3, 44, 6))


def sqlite_has_wal_race(version: tuple[int, int, int]) -> bool:
    """Whether this SQLite can, rarely, lose a write in WAL mode when two connections checkpoint at once."""
    same_branch = [fixed for fixed in FIXED if fixed[:2] == version[:2]]
    return version < (same_branch[0] if same_branch else FIXED[0])


def sqlite_in_words() -> str | None:
    """Which SQLite is in use, or None on another database."""
    if connection.vendor != "sqlite":
        return None
    race = sqlite_has_wal_race(sqlite3.sqlite_version_info)
    return sqlite3.sqlite_version + (" (has a rare race in WAL mode)" if race else "")


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
