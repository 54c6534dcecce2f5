"""The boards of models by scores, components, multiple choice and yes or no, as pages: one table for all four."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.safestring import SafeString

from bank.models import EvaluatedModel
from leaderboard.boards import Board
from leaderboard.boards.base import Row
from leaderboard.figures import NONE, percent, span, whole
from leaderboard.hidden import is_kept_back
from leaderboard.kinds.base import Column, Shape
from leaderboard.methods import PROVISIONAL
from leaderboard.pages import marks
from leaderboard.pages.address import Address
from leaderboard.pages.models import Head
from leaderboard.scope import Scope

BLANK = SafeString()
Write = Callable[[float | None], str]


@dataclass(frozen=True, slots=True)
class Cell:
    text: str
    css: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True)
class ScoredRow:
    name: str
    organisation: str
    link: str
    rank: str
    ranks: str
    provisional: bool
    tinted: bool
    last_of_tier: bool
    value: str
    title: str
    bar: SafeString
    n: str
    beside: list[Cell]
    levels: list[Cell]


@dataclass(frozen=True, slots=True)
class Group:
    """Columns of one depth of the tree, or of the categories; ``link`` leads to the next depth."""

    label: str
    link: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class Letters:
    """Shares of chosen options: the letters, the key's, and each model's, as cells."""

    letters: list[str]
    rows: list[tuple[str, list[Cell]]]
    key: bool  # whether the first row is the key's


@dataclass(frozen=True, slots=True)
class ScoredPage:
    main: Column
    in_words: str
    heads: dict[str, Head]
    beside: list[Head]
    levels: list[Head]
    level_word: str
    rows: list[ScoredRow]
    ranked: int
    provisional: int
    depths: list[Group]
    heat_low: str
    heat_high: str
    letters: Letters | None = None
    steps: list[tuple[str, list[str]]] = field(default_factory=list)
    tinted: bool = False


def page_of(address: Address, scope: Scope, board: Board) -> ScoredPage:
    """Everything that the table and the panels below it show."""
    shape = shape_of(scope, board)
    names, cells_of, depths = levels_of(address, scope, board)
    key, descending = _sorting(address, shape, names)
    rows = _ordered(board.rows, key, descending, shape, cells_of)
    settled = [row for row in rows if row["n"] >= PROVISIONAL]
    ends = [row[end] for row in settled or rows for end in _ends(shape.main.name)]
    scale = marks.axis(ends, unit=shape.unit)
    tints = _tints(settled) if (key, descending) == ("rank", False) else {}
    organisations = dict(EvaluatedModel.objects.exclude(organisation="").values_list("name", "organisation"))
    low, high = scope.kind.ends(scope.benchmark)
    kept_back = is_kept_back(scope)
    shown = []
    for place, row in enumerate(rows):
        following = rows[place + 1]["model"] if place + 1 < len(rows) else None
        cells = [(name, cells_of(row, name)) for name in names]
        own = tints.get(row["model"])
        shown.append(
            _row(
                address,
                row,
                shape,
                scale,
                organisation=organisations.get(row["model"], ""),
                tinted=bool(own),
                last=bool(tints) and following is not None and tints.get(following) is not own,
                levels=[_level_cell(name, one, shape, low, high) for name, one in cells],
                kept_back=kept_back,
            )
        )
    return ScoredPage(
        main=shape.main,
        in_words=shape.in_words,
        heads=_heads(address, shape, key, descending, scale),
        beside=[_head(address, one.label, one.name, key, descending, title=one.title) for one in shape.beside],
        levels=[
            _head(address, short(name), f"in:{name}", key, descending, title=f"{shape.main.label} on {name}")
            for name in names
        ],
        level_word=scope.kind.part_word,
        rows=shown,
        ranked=sum(row["rank"] is not None for row in settled),
        provisional=len(rows) - len(settled),
        depths=depths,
        heat_low=shape.main.write(low),
        heat_high=shape.main.write(high),
        letters=_letters(board) if board.extra.get("letters") else None,
        steps=_steps(board) if scope.kind.rotates else [],
        tinted=bool(tints),
    )


def shape_of(scope: Scope, board: Board) -> Shape:
    """The shape of the board, by what ranks it where its kind has several."""
    return scope.kind.shapes.get(board.extra.get("ranked_by", ""), scope.kind.shape)


Levels = Callable[[Row, str], Row | None]


def levels_of(address: Address, scope: Scope, board: Board) -> tuple[list[str], Levels, list[Group]]:
    """The columns by level or category, how a row's numbers of one are had, and the switch between depths."""
    extra = board.extra
    if "within" in extra:
        names = extra["order"] if len(extra["order"]) > 1 else []
        return names, lambda row, name: extra["within"][row["model"]].get(name), []
    depths: list[list[str]] = extra.get("depths", [])
    if not depths:
        return [], lambda row, name: None, []
    wanted = address.given.get("depth", "1")
    at = int(wanted) - 1 if wanted.isdigit() and 0 < int(wanted[:3]) <= len(depths) else 0
    groups = [
        Group(f"L-{n + 1}", address.link(depth=str(n + 1) if n else None, sort=None), n == at)
        for n in range(len(depths))
    ]
    within = extra["levels"]
    if scope.kind.rotates:
        return depths[at], lambda row, name: row["levels"].get(name), groups if len(depths) > 1 else []
    return depths[at], lambda row, name: within[row["model"]].get(name), groups if len(depths) > 1 else []


def short(path: str) -> str:
    name = path.rpartition(" / ")[2] or "No level"
    return name.replace("_", " ").replace("/", "/\u200b")


def _ends(name: str) -> tuple[str, str, str]:
    return name, f"{name}_low", f"{name}_high"


def _tints(rows: Sequence[Row]) -> dict[str, bool]:
    tints: dict[str, bool] = {}
    tinted, tier = False, object()
    for row in rows:
        if row.get("tier") != tier:
            tinted, tier = not tinted, row.get("tier")
        tints[row["model"]] = tinted and row.get("tier") is not None
    return tints


def _sorting(address: Address, shape: Shape, names: Sequence[str]) -> tuple[str, bool]:
    asked = address.given.get("sort", "")
    key = asked.removeprefix("-")
    known = {"rank", "model", "n", shape.main.name, *(one.name for one in shape.beside), *(f"in:{n}" for n in names)}
    return (key, asked.startswith("-")) if key in known else ("rank", False)


def _ordered(rows: list[Row], key: str, descending: bool, shape: Shape, cells_of: Levels) -> list[Row]:
    """Rows by a column: missing values last, provisional rows after them, whatever the direction."""

    def value(row: Row) -> Any:
        if key == "rank":
            return None if row["rank"] is None else (row.get("tier") or row["rank"], row["rank"])
        if key == "model":
            return row["model"].casefold()
        if key.startswith("in:"):
            return (cells_of(row, key.removeprefix("in:")) or {}).get(shape.main.name)
        return row[key]

    rows = sorted(rows, key=lambda row: row["model"].casefold())
    known = sorted((row for row in rows if value(row) is not None), key=value, reverse=descending)
    order = known + [row for row in rows if value(row) is None]
    return sorted(order, key=lambda row: row["n"] < PROVISIONAL)


def _row(
    address: Address,
    row: Row,
    shape: Shape,
    scale: marks.Axis,
    *,
    organisation: str,
    tinted: bool,
    last: bool,
    levels: list[Cell],
    kept_back: bool,
) -> ScoredRow:
    main, few = shape.main, row["n"] < PROVISIONAL
    value, low, high = (row[end] for end in _ends(main.name))
    return ScoredRow(
        name=row["model"],
        organisation=organisation,
        link="" if kept_back else address.to("leaderboard:answers", **address.view(), model=row["model"]),
        rank=NONE if few or row["rank"] is None else str(row.get("tier") or row["rank"]),
        ranks="" if few else span(row.get("rank_low"), row.get("rank_high")),
        provisional=few,
        tinted=tinted,
        last_of_tier=last,
        value=main.write(value),
        title=_interval(row, main),
        bar=marks.interval_bar(scale, value, low, high, write=main.write, provisional=few),
        n=whole(row["n"]),
        beside=[Cell(one.write(row[one.name]), title=_interval(row, one)) for one in shape.beside],
        levels=levels,
    )


def _interval(row: Row, column: Column) -> str:
    low, high = row[f"{column.name}_low"], row[f"{column.name}_high"]
    return "" if low is None else f"95%: {column.write(low)} to {column.write(high)}"


def _level_cell(name: str, numbers: Row | None, shape: Shape, low: float, high: float) -> Cell:
    main = shape.main
    value = (numbers or {}).get(main.name)
    if numbers is None or value is None:
        return Cell(NONE, "qx", f"{name}: nothing counted")
    title = f"{name}: {_interval(numbers, main)}".rstrip(": ")
    return Cell(main.write(value), marks.heat(value, low, high), f"{title}; n = {whole(numbers['n'])}")


def _head(address: Address, label: str, column: str, key: str, descending: bool, **more: Any) -> Head:
    best_first = column not in ("rank", "model")
    if column == key:
        following, state = (column, "descending") if descending else (f"-{column}", "ascending")
    else:
        following, state = (f"-{column}" if best_first else column), ""
    return Head(label, address.link(sort=None if following == "rank" else following), state, **more)


def _heads(address: Address, shape: Shape, key: str, descending: bool, scale: marks.Axis) -> dict[str, Head]:
    def made(label: str, column: str, **more: Any) -> Head:
        return _head(address, label, column, key, descending, **more)

    percents = shape.unit != 1.0
    ticks = marks.axis_head(scale, lambda value: whole(100 * value) if percents else f"{value:g}")
    return {
        "rank": made("Rank", "rank", title="1 + the number of models that are significantly better; its 95% range"),
        "model": made("Model", "model"),
        "main": made(shape.main.label, shape.main.name, title=shape.main.title, marks=ticks),
        "n": made("n", "n", title="Samples or items"),
    }


STEPS = {
    "label": "named by its label",
    "judge": "read by a judge",
    "random": "drawn",
    "none": "no option found",
    "no_text": "no answer",
}


def _steps(board: Board) -> list[tuple[str, list[str]]]:
    """How the options of each model's answers were found: counts and shares, in the order of ``STEPS``."""
    found = []
    for row in sorted(board.rows, key=lambda row: row["model"].casefold()):
        total = sum(row["extraction"].values())
        cells = [f"{row['extraction'][step]:,}" for step in STEPS]
        success = sum(row["extraction"][step] for step in ("label", "judge"))
        found.append((row["model"], [*cells, percent(success / total if total else None)]))
    return found


def _letters(board: Board) -> Letters:
    every = [*board.extra["letters"].values(), board.extra["key"]]
    letters = sorted({letter for shares in every for letter in shares if letter})

    def cells(shares: dict[str, float]) -> list[Cell]:
        return [
            Cell(percent(shares.get(letter, 0.0)), marks.heat(shares.get(letter, 0.0), 0.0, 0.6)) for letter in letters
        ]

    rows = [("Key", cells(board.extra["key"]))] if board.extra["key"] else []
    rows += [(name, cells(shares)) for name, shares in sorted(board.extra["letters"].items())]
    return Letters(letters, rows, bool(board.extra["key"]))
