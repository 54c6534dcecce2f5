"""``manage.py check`` of this installation, by its doctor."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register
from django.db import DatabaseError, connection

from accounts.management.base import INSTALLATION
from evalsite import doctor


def _said(name: str, examination: doctor.Examination) -> list[CheckMessage]:
    """Nothing of a database that has no tables yet."""
    try:
        finding = examination()
    except DatabaseError:
        return []
    if finding.level == "ok":
        return []
    return [Error(finding.words, id=name) if finding.is_fault else Warning(finding.words, id=name)]


@register(INSTALLATION)
def database(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    return _said("evalsite.W001", doctor.server) if _has_database() else []


@register(INSTALLATION)
def proxies(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    return _said("evalsite.W002", doctor.proxy_setting)


@register(INSTALLATION)
def keys(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    return _said("evalsite.E001", doctor.keys) if _has_key() else []


@register(deploy=True)
def demo_accounts(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    return _said("evalsite.E002", doctor.demo_accounts) if _has_database() else []


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
