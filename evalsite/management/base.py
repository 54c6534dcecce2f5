"""The base of the installation's commands."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.core.management.base import CommandError
from django.db import DatabaseError

from accounts.installation_key import WrongKeys
from evalsite.backups.folders import Failed

EXPECTED: tuple[type[Exception], ...] = (Failed, WrongKeys, OSError, DatabaseError)


@contextmanager
def in_words(*others: type[Exception]) -> Iterator[None]:
    """A fault of the machine or of what was asked, or of these kinds, ends the command with its words, and status 1."""
    try:
        yield
    except (*EXPECTED, *others) as error:
        raise CommandError(str(error).strip()) from error
