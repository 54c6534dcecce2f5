"""Errors of requests that cannot be met, and failures of the machine itself."""

import errno

from django.db import DatabaseError, InterfaceError

from bank.models.imports import import_in_progress


class BadInput(ValueError):
    """The request cannot be carried out; the message says why. ``field`` names the field to correct."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class WrongUse(BadInput):
    """The input may be fine, but an argument does not fit it. Commands exit with status 2."""


class Stale(BadInput):
    """Somebody else changed it since it was opened; nothing was written."""


RETRY_AFTER = 5  # seconds until it is worth trying again


def outage(error: BaseException | None) -> str | None:
    """A description of the machine's failure if that is the cause of the error; it may recover soon.

    This includes colliding with a row that an import is bringing in.
    """
    if words := import_in_progress(error):
        return words
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
        return "The data folder cannot be written: no space, or read-only."
    if isinstance(error, InterfaceError):
        return "The database does not answer."
    if not isinstance(error, DatabaseError):
        return None
    message, state = str(error).lower(), getattr(error.__cause__, "sqlstate", None) or ""
    if "readonly" in message or state == "25006":
        return "The database cannot be written: it is read-only."
    if "locked" in message or state in ("55P03", "40001", "40P01"):
        return "The site is busy writing something else."
    if "is full" in message or "disk i/o" in message or state == "53100":
        return "The database cannot be written: no space is left."
    if "unable to open" in message or state[:2] in ("08", "53", "57") or (_no_answer(error) and not state):
        return "The database does not answer."
    return None


def _no_answer(error: DatabaseError) -> bool:
    """PostgreSQL gives no SQLSTATE when it cannot be reached."""
    return type(error.__cause__).__module__.startswith("psycopg") and type(error).__name__ == "OperationalError"
