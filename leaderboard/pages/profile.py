"""Up to four models beside each other, ability by ability: a radar and the table of its numbers."""

from dataclasses import dataclass

from django.utils.safestring import SafeString

from leaderboard.boards import Board
from leaderboard.boards.base import Row
from leaderboard.figures import NONE, whole
from leaderboard.methods import PROVISIONAL
from leaderboard.pages import models as models_page
from leaderboard.pages import plots, scored
from leaderboard.pages.address import Address, Choice, Select
from leaderboard.scope import Scope

SIDES = ("a", "b", "c", "d")
WORDS = ("One", "Two", "Three", "Four")
DEFAULT = 3  # models shown where none is chosen


@dataclass(frozen=True, slots=True)
class Cell:
    text: str
    interval: str
    n: str


@dataclass(frozen=True, slots=True)
class ProfilePage:
    measure: str
    names: list[str]
    rows: list[tuple[str, list[Cell]]]
    radar: SafeString
    few: bool  # fewer than three levels: no radar


def chosen(address: Address, board: Board) -> list[str]:
    """The models of the address that the board has; the first by rank where it names none."""
    there = [row["model"] for row in board.rows]
    asked = [name for side in SIDES if (name := address.given.get(side, "")) in there]
    if asked:
        return list(dict.fromkeys(asked))
    settled = [row["model"] for row in board.rows if row["n"] >= PROVISIONAL and row.get("rank") is not None]
    return (settled or there)[:DEFAULT]


def selects(address: Address, board: Board) -> list[Select]:
    names = sorted((row["model"] for row in board.rows), key=str.casefold)
    shown = dict(zip(SIDES, chosen(address, board), strict=False))
    choices = [Choice(name, name) for name in names]
    return [
        Select(side, word, [("", [Choice("", "none")]), ("", choices)], shown.get(side, ""))
        for side, word in zip(SIDES, WORDS, strict=True)
    ]


def page_of(address: Address, scope: Scope, board: Board) -> ProfilePage:
    """Everything that the page shows."""
    names = chosen(address, board)
    rows = {row["model"]: row for row in board.rows}
    shape = scored.shape_of(scope, board)
    main, measure, write = shape.main.name, shape.main.label, shape.main.write
    low, high = scope.kind.ends(scope.benchmark)
    cell: scored.Levels
    if scope.kind.pairwise:
        levels, cell = models_page.levels_of(board), _of_level
    else:
        levels, cell, _ = scored.levels_of(address, scope, board)
    numbers = {name: [cell(rows[name], level) for level in levels] for name in names}
    profiles = [
        plots.Profile(name, tuple(_share((one or {}).get(main), low, high) for one in numbers[name])) for name in names
    ]
    return ProfilePage(
        measure=measure,
        names=names,
        rows=[
            (scored.short(level), [_cell(numbers[name][at], main, write) for name in names])
            for at, level in enumerate(levels)
        ],
        radar=plots.radar(
            [level.rpartition(" / ")[2] or "No level" for level in levels],
            profiles,
            title=f"{measure} by level: {', '.join(names)}",
            ends=(_plain(write(low)), _plain(write(high))),
        ),
        few=len(levels) < 3,
    )


def _of_level(row: Row, level: str) -> Row | None:
    found: Row | None = row["levels"].get(level)
    return found


def _plain(number: str) -> str:
    return number.rstrip("0").rstrip(".") if "." in number else number


def _share(value: float | None, low: float, high: float) -> float | None:
    return None if value is None else (value - low) / (high - low)


def _cell(numbers: Row | None, main: str, write: scored.Write) -> Cell:
    if not numbers or numbers.get(main) is None:
        return Cell(NONE, "", "")
    low, high = numbers.get(f"{main}_low"), numbers.get(f"{main}_high")
    return Cell(write(numbers[main]), "" if low is None else f"{write(low)} to {write(high)}", whole(numbers["n"]))
