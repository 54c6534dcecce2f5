"""What commands of the installation share."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from django.core.management.base import CommandError
from django.db import DatabaseError

from accounts.installation_key import WrongKeys
from evalsite.backups.folders import Failed


@contextmanager
def in_words() -> Iterator[None]:
    """A fault of the machine or of what was asked ends the command with its words, and status 1."""
    try:
        yield
    except (Failed, WrongKeys, OSError, DatabaseError, psycopg.Error) as error:
        raise CommandError(str(error).strip()) from error
