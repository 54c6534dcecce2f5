"""The backup that a worker makes each day, where BACKUP_FOLDER says where to."""

import logging
from datetime import UTC, datetime
from pathlib import Path

from django.conf import settings
from django.core.management import CommandError, call_command
from django.utils import timezone

from accounts import notices
from accounts.models import Role, User
from evalsite.backups import away, folders

log = logging.getLogger(__name__)


def back_up() -> None:
    """Back up as the command does. What goes wrong is told to the log and to administrators."""
    try:
        call_command("backup", settings.BACKUP_FOLDER, keep=settings.BACKUP_KEEP)
    except CommandError as error:
        log.error("The backup failed: %s", error)
        for person in User.objects.filter(role=Role.ADMINISTRATOR, is_active=True):
            text = "The daily backup failed; the log of the worker says why."
            notices.tell(person, key=f"backup-{timezone.now():%Y-%m-%d}", text=text, link="/")


def newest() -> datetime | None:
    """When the newest complete one was begun. Raises Failed, and Away where the storage does not answer."""
    folder = settings.BACKUP_FOLDER
    if folder.startswith(away.SCHEME):
        names = away.complete(away.at(folder)[0])
    else:
        names = [path.name for path in folders.complete(Path(folder))]
    return datetime.strptime(names[-1], folders.TIME).replace(tzinfo=UTC) if names else None
