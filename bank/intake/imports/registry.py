"""The parts of an import, in the order in which they come in, and what each must be able to do.

A room above the bank registers its parts when it starts (``AppConfig.ready``): imports go downwards only.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from django.db.models import Model
from django.utils.module_loading import import_string

from bank.intake.imports import Report

if TYPE_CHECKING:
    from bank.intake.imports.context import Scene

ORDER = ("samples", "responses", "judgments", "labels")


class Taker(Protocol):
    """Takes the rows of one part in batches: first all are checked, then, perhaps, written.

    Of a format that gives blocks, the takers of those parts get them as they are.

    A taker whose rows may hold much has ``weigh(row)`` as well, in bytes: its batches are cut by that, too.
    """

    def check(self, rows: Any, report: Report) -> Any:
        """Report the problems of these rows and count what they would make; writes nothing.

        Returns what ``write`` needs of them, picklable; something empty where nothing is to be written.
        """

    def coming(self) -> Mapping[type[Model], int]:
        """How many rows of each table ``write`` will make of all that was checked, at most; referred to ones first."""

    def write(self, batch: Any) -> None:
        """Hand what a check returned to ``scene.intake``. Outside of any transaction; nobody sees the rows yet."""

    def show(self) -> None:
        """Change what there was before. In the last transaction, which shows everything: keep it short."""


_takers: dict[str, str] = {}


def register(name: str, taker: str) -> None:
    """``taker`` is the dotted path of a class that is made with the Scene; it is loaded when it is needed."""
    if name not in ORDER:
        raise ValueError(f"{name!r} is not one of {ORDER}")
    _takers[name] = taker


def taker(name: str, scene: "Scene") -> Taker:
    made: Taker = import_string(_takers[name])(scene)
    return made


def known() -> tuple[str, ...]:
    """The registered parts, in order."""
    return tuple(name for name in ORDER if name in _takers)
