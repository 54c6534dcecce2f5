"""Up to four models side by side, level by level: dots on one axis and the table of the numbers."""

from dataclasses import dataclass

from django.utils.safestring import SafeString

from leaderboard.boards.base import ModelsBoard
from leaderboard.methods import PROVISIONAL
from leaderboard.pages import plots, scored
from leaderboard.pages.address import Address, Select, pick, rows_at_level
from leaderboard.pages.marks import Cell
from leaderboard.pages.table import Column, Table, names, table, tick_of
from leaderboard.rows import UNKNOWN
from leaderboard.scope import Scope
from stats.figures import NONE, whole, with_interval

SIDES = ("a", "b", "c", "d")
WORDS = ("One", "Two", "Three", "Four")
DEFAULT = 3  # models shown where none is chosen


@dataclass(frozen=True, slots=True)
class ProfilePage:
    measure: str
    table: Table
    plot: SafeString
    intervals: str  # what the lines are, and whether some are missing


def chosen(address: Address, board: ModelsBoard) -> list[str]:
    """The models of the address that the board has; the first by rank where it names none."""
    names = [row.model for row in board.rows]
    requested = [name for side in SIDES if (name := address.params.get(side, "")) in names]
    if requested:
        return list(dict.fromkeys(requested))
    settled = [row.model for row in board.rows if row.n >= PROVISIONAL and row.rank is not None]
    return (settled or names)[:DEFAULT]


def selects(address: Address, board: ModelsBoard) -> list[Select]:
    names = sorted((row.model for row in board.rows), key=str.casefold)
    selected = dict(zip(SIDES, chosen(address, board), strict=False))
    sides = zip(SIDES, WORDS, strict=True)
    return [pick(side, word, names, selected.get(side, ""), empty="none") for side, word in sides]


def build_profile_page(address: Address, scope: Scope, board: ModelsBoard) -> ProfilePage:
    """Everything that the page shows."""
    chosen_names = chosen(address, board)
    rows = {row.model: row for row in board.rows}
    shape = scored.shape_of(scope, board)
    main, measure, write = shape.main.name, shape.main.label, shape.main.write
    levels, _ = scored.levels_of(address, board)

    def dot(name: str, path: str) -> plots.Dot | None:
        level = rows[name].level(path)
        number = level.number(main) if level else UNKNOWN
        if level is None or number.value is None:
            return None
        said = (with_interval(number, write), f"n = {whole(level.n)}", number.reason)
        return plots.Dot(number, said, rows_at_level(address, scope, name, path))

    def of_model(name: str) -> Column[str]:
        def cell(path: str) -> Cell:
            at = dot(name, path)
            if at is None:
                return Cell(NONE, strong=True)
            number, (_, n, reason) = at.number, at.said
            small = ", ".join(filter(None, [" to ".join(map(write, number.between)), n.replace(" =", "")]))
            return Cell(write(number.value), small, title=reason, small_css="block dim", link=at.link)

        return Column(name, cell)

    listed = ", ".join(chosen_names)
    counted = [drawn for name in chosen_names for path in levels if (drawn := dot(name, path))]
    return ProfilePage(
        measure=measure,
        table=table(
            [names("Level", scored.level_label, css=""), *(of_model(name) for name in chosen_names)],
            levels,
            label="Profiles",
            caption=f"{measure} by level with 95% intervals and n",
            css="cmpt",
        ),
        plot=plots.profiles(
            [scored.level_label(level) for level in levels],
            [plots.Profile(name, tuple(dot(name, path) for path in levels)) for name in chosen_names],
            title=f"{measure} by level, with 95% intervals: {listed}; the table holds the same numbers",
            write=tick_of(write),
            unit=shape.unit,
        ),
        intervals=_intervals({bool(drawn.number.between) for drawn in counted}),
    )


def _intervals(present: set[bool]) -> str:
    """``present``: whether dots have an interval, over all of them."""
    if present == {False}:
        return "no intervals: too few groups of samples on each level"
    return "95% intervals, none where a level has too few groups of samples" if False in present else "95% intervals"
