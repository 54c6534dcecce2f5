"""A page stands though one of its tables cannot be made: in its place is said that it is missing."""

import logging
from collections.abc import Callable
from typing import TypeVar

from django.db import DatabaseError, InterfaceError

from bank.errors import BadInput
from leaderboard.scope import BadScope
from leaderboard.show.table import Table

log = logging.getLogger(__name__)
T = TypeVar("T")
U = TypeVar("U")
# These are about the whole page: the view does not exist, its reader may not see it, or the database is away.
WHOLE_PAGE = (BadScope, BadInput, PermissionError, DatabaseError, InterfaceError)
MISSING = "{} could not be computed: a fault of the software, which the server's log holds. All else here is right."


def singly(what: str, make: Callable[[], T], instead: Callable[[str], U]) -> T | U:
    """What ``make`` gives; where it fails by a fault of its own, what ``instead`` gives for a sentence that ``what`` is
    missing. The fault is logged. Raises what is about the whole page.
    """
    try:
        return make()
    except WHOLE_PAGE:
        raise
    except Exception:
        log.exception("%s: this part of a page could not be computed", what)
        return instead(MISSING.format(what))


def table_or_words(what: str, make: Callable[[], Table | None]) -> Table | None:
    """The table, or one that says it is missing."""
    return singly(what, make, lambda words: Table([], [], label=what, caption=what, problem=words))
