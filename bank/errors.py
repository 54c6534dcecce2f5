"""Errors of requests that cannot be met, and failures of the machine itself."""

import errno

from django.db import DatabaseError, InterfaceError

from bank.models.imports import import_in_progress
from bank.objects import Away


class BadInput(ValueError):
    """The request cannot be carried out; the message says why. ``field`` names the field to correct."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class WrongUse(BadInput):
    """The input may be fine, but an argument does not fit it. Commands exit with status 2."""


class Stale(BadInput):
    """Somebody else changed it since it was opened; nothing was written."""


class NotNow(BadInput):
    """The machine failed, which may be over soon; nothing was written."""


RETRY_AFTER = 5  # seconds until it is worth trying again


NO_ANSWER = "The database does not answer."
# Words in SQLite's message, or how PostgreSQL's SQLSTATE begins; the first that fits.
FAILURES: tuple[tuple[tuple[str, ...], tuple[str, ...], str], ...] = (
    (("readonly",), ("25006",), "The database cannot be written: it is read-only."),
    (("locked",), ("55P03", "40001", "40P01"), "The site is busy writing something else."),
    (("is full", "disk i/o"), ("53100",), "The database cannot be written: no space is left."),
    (("unable to open",), ("08", "53", "57"), NO_ANSWER),
)


def outage(error: BaseException | None) -> str | None:
    """A description of the machine's failure if that is the cause of the error; it may recover soon.

    This includes colliding with a row that an import is bringing in.
    """
    if words := import_in_progress(error):
        return words
    if isinstance(error, Away | NotNow):
        return str(error)
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
        return "The data folder cannot be written: no space, or read-only."
    if isinstance(error, InterfaceError):
        return NO_ANSWER
    if not isinstance(error, DatabaseError):
        return None
    state = getattr(error.__cause__, "sqlstate", None) or ""
    return _failure(str(error).lower(), state) or (NO_ANSWER if _no_answer(error) and not state else None)


def _failure(message: str, state: str) -> str | None:
    for words, states, description in FAILURES:
        if any(word in message for word in words) or state.startswith(states):
            return description
    return None


def _no_answer(error: DatabaseError) -> bool:
    """PostgreSQL gives no SQLSTATE when it cannot be reached."""
    return type(error.__cause__).__module__.startswith("psycopg") and type(error).__name__ == "OperationalError"
