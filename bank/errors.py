"""What is refused, and failures of the machine rather than the request."""

import errno

from django.db import DatabaseError, InterfaceError

from bank.models.imports import still_coming


class BadInput(ValueError):
    """What was asked for cannot be done; the message says why, in words. ``field`` names what to set right."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class Stale(BadInput):
    """Somebody else changed it since it was opened; nothing was written."""


COME_BACK = 5  # seconds after which to try again


def outage(error: BaseException | None) -> str | None:
    """What is wrong with the machine, in words, if that is why something failed; it may be well again in a moment.

    So it is when something meets a row that an import is bringing in.
    """
    if words := still_coming(error):
        return words
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
        return "The data folder cannot be written: no space, or read-only."
    if isinstance(error, InterfaceError):
        return "The database does not answer."
    if not isinstance(error, DatabaseError):
        return None
    said, state = str(error).lower(), getattr(error.__cause__, "sqlstate", None) or ""
    if "readonly" in said or state == "25006":
        return "The database cannot be written: it is read-only."
    if "locked" in said or state in ("55P03", "40001", "40P01"):
        return "The site is busy writing something else."
    if "is full" in said or "disk i/o" in said or state == "53100":
        return "The database cannot be written: no space is left."
    if "unable to open" in said or state[:2] in ("08", "53", "57") or (_no_answer(error) and not state):
        return "The database does not answer."
    return None


def _no_answer(error: DatabaseError) -> bool:
    """PostgreSQL that is not reached gives no state with its error."""
    return type(error.__cause__).__module__.startswith("psycopg") and type(error).__name__ == "OperationalError"
