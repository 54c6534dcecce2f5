"""The board of models as a page."""

from dataclasses import dataclass, field
from itertools import pairwise

from django.utils.safestring import SafeString

from bank.models import EvaluatedModel
from leaderboard.boards import Board
from leaderboard.boards.base import Row
from leaderboard.figures import NONE, count, number_of, percent, signed, span, whole
from leaderboard.methods import PROVISIONAL
from leaderboard.pages import marks
from leaderboard.pages.address import Address

BLANK = SafeString()
DEFAULT_SORT = "rank"
DESCENDING = ("win_rate", "n", "bt", "elo", "coverage")  # what a first click on the head shows best first


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a column: where a click leads, and how the column is sorted now."""

    label: str
    link: str
    sorted: str = ""  # "ascending", "descending" or ""
    under: str = ""  # a second line
    title: str = ""
    marks: SafeString = BLANK


@dataclass(frozen=True, slots=True)
class LevelCell:
    text: str
    link: str = ""
    title: str = ""
    bar: SafeString = BLANK


@dataclass(frozen=True, slots=True)
class ModelRow:
    """One row as it is shown."""

    name: str
    organisation: str
    link: str
    rank: str
    ranks: str  # the range
    kind: str  # "", "anchor" or "provisional"
    tinted: bool
    last_of_tier: bool
    win: str
    win_link: str
    win_title: str
    bar: SafeString
    n: str
    bt: str
    bt_title: str
    elo: str
    elo_title: str
    levels: list[LevelCell] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ModelsPage:
    heads: dict[str, Head]
    levels: list[Head]
    rows: list[ModelRow]
    forest: SafeString
    ranked: int
    provisional: int
    by_rank: bool
    has_wins: bool
    has_elo: bool


def sorting(address: Address, board: Board) -> tuple[str, bool]:
    """The column the address names and whether it descends; the default for a column that is not there."""
    asked = address.given.get("sort", "")
    key = asked.removeprefix("-")
    known = {"rank", "model", "win_rate", "n", "bt", "elo", *(f"level:{name}" for name in levels_of(board))}
    return (key, asked.startswith("-")) if key in known else (DEFAULT_SORT, False)


def ordered(rows: list[Row], key: str, *, descending: bool, anchor: str) -> list[Row]:
    """Rows by a column: missing values last, provisional ones after them, whatever the direction."""

    def value(row: Row) -> object:
        if key == "rank":
            return None if row["rank"] is None else (row["tier"] or row["rank"], row["rank"])
        if key == "model":
            return row["model"].casefold()
        if key.startswith("level:"):
            return row["levels"].get(key.removeprefix("level:"), {}).get("win_rate")
        return row[key]

    rows = sorted(rows, key=lambda row: row["model"].casefold())
    known = [row for row in rows if value(row) is not None]
    known.sort(key=value, reverse=descending)  # type: ignore[arg-type]
    whole_order = known + [row for row in rows if value(row) is None]
    return sorted(whole_order, key=lambda row: is_provisional(row, anchor))


def is_provisional(row: Row, anchor: str) -> bool:
    return bool(row["n"] < PROVISIONAL and row["model"] != anchor)


def page_of(address: Address, board: Board, *, anchor: str) -> ModelsPage:
    """Everything that the table and the plot beside it show."""
    key, descending = sorting(address, board)
    rows = ordered(board.rows, key, descending=descending, anchor=anchor)
    settled = [row for row in rows if not is_provisional(row, anchor)]
    ends = [row[end] for row in settled or rows for end in ("win_rate_low", "win_rate_high", "win_rate")]
    scale = marks.axis(ends, unit=0.01)
    levels = levels_of(board)
    by_rank = key == "rank"
    organisations = dict(EvaluatedModel.objects.exclude(organisation="").values_list("name", "organisation"))
    tints = _tints(settled, anchor) if by_rank and not descending else {}
    tint = [tints.get(row["model"]) for row in rows]
    last = [bool(tints) and one is not other for one, other in pairwise(tint)] + [False]
    shown = [
        _row(
            address,
            row,
            anchor=anchor,
            scale=scale,
            levels=levels,
            organisation=organisations.get(row["model"], ""),
            tinted=bool(tint[place]),
            last=last[place],
        )
        for place, row in enumerate(rows)
    ]
    return ModelsPage(
        heads=_heads(address, key, descending, scale),
        levels=[_level_head(address, name, key, descending, settled) for name in levels],
        rows=shown,
        forest=forest(board, anchor),
        ranked=sum(row["rank"] is not None and row["model"] != anchor for row in settled),
        provisional=len(rows) - len(settled),
        by_rank=by_rank and not descending,
        has_wins=any(row["win_rate"] is not None for row in rows),
        has_elo=any(row["elo"] is not None for row in rows),
    )


def levels_of(board: Board) -> list[str]:
    """The level columns; none where the only one would repeat the whole."""
    names = list(board.rows[0]["levels"]) if board.rows else []
    return [] if names == [""] else names


def _tints(rows: list[Row], anchor: str) -> dict[str, bool]:
    """Every second group of models that cannot be told apart gets the tint; the anchor stands between groups."""
    tints: dict[str, bool] = {}
    tinted, tier = False, object()
    for row in rows:
        if row["model"] == anchor:
            continue
        if row["tier"] != tier:
            tinted, tier = not tinted, row["tier"]
        tints[row["model"]] = tinted and row["tier"] is not None
    return tints


def _row(
    address: Address,
    row: Row,
    *,
    anchor: str,
    scale: marks.Axis,
    levels: list[str],
    organisation: str,
    tinted: bool,
    last: bool,
) -> ModelRow:
    name = row["model"]
    provisional = is_provisional(row, anchor)
    kind = "anchor" if name == anchor else "provisional" if provisional else ""
    own = address.view() | {"model": name}
    link = address.to("leaderboard:votes", **own)
    won = row["win_rate"] is not None
    wtl = [row["wins"], row["ties"], row["losses"]]
    return ModelRow(
        name=name,
        organisation=organisation,
        link=link,
        rank=NONE if provisional or row["rank"] is None else str(row["tier"] or row["rank"]),
        ranks="" if provisional else span(row["rank_low"], row["rank_high"]),
        kind=kind,
        tinted=tinted,
        last_of_tier=last,
        win=percent(row["win_rate"]),
        win_link=address.to("leaderboard:votes", **own, outcome="win") if won else "",
        win_title=_title(wtl, row["win_rate_low"], row["win_rate_high"]) if won else "",
        bar=marks.interval_bar(
            scale, row["win_rate"], row["win_rate_low"], row["win_rate_high"], write=percent, provisional=provisional
        ),
        n=whole(row["n"]),
        bt=NONE if provisional else signed(row["bt"]),
        bt_title=_ends(row["bt_low"], row["bt_high"], signed),
        elo=NONE if provisional else whole(row["elo"]),
        elo_title=_ends(row["elo_low"], row["elo_high"], whole),
        levels=[_level(address, row, level, own, provisional=provisional) for level in levels],
    )


def _level(address: Address, row: Row, level: str, own: dict[str, str | None], *, provisional: bool) -> LevelCell:
    numbers = row["levels"].get(level)
    if provisional:
        return LevelCell(NONE, title=f"fewer than {PROVISIONAL} items")
    if not numbers or numbers["win_rate"] is None:
        return LevelCell(NONE)
    wtl = [numbers["wins"], numbers["ties"], numbers["losses"]]
    path = " / ".join(part for part in (address.given.get("level", ""), level) if part)
    return LevelCell(
        text=percent(numbers["win_rate"]),
        link=address.to("leaderboard:votes", **(own | {"level": path})),
        title=_title(wtl, numbers["win_rate_low"], numbers["win_rate_high"]),
        bar=marks.micro_bar(*wtl),
    )


def _title(wtl: list[float], low: float | None, high: float | None) -> str:
    won, tied, lost = (count(number) for number in wtl)
    said = f"{won} won, {tied} tied, {lost} lost"
    return said if low is None else f"{said}; 95%: {percent(low)} to {percent(high)}"


def _ends(low: float | None, high: float | None, write: object) -> str:
    return "" if low is None or not callable(write) else f"95%: {write(low)} to {write(high)}"


# ---- heads ----


def _head(address: Address, label: str, column: str, key: str, descending: bool, **more: object) -> Head:
    best_first = column in DESCENDING or column.startswith("level:")
    if column == key:
        following = column if descending else f"-{column}"
        state = "descending" if descending else "ascending"
    else:
        following, state = (f"-{column}" if best_first else column), ""
    link = address.link(sort=None if following == DEFAULT_SORT else following)
    return Head(label, link, state, **more)  # type: ignore[arg-type]


def _heads(address: Address, key: str, descending: bool, scale: marks.Axis) -> dict[str, Head]:
    def made(label: str, column: str, **more: object) -> Head:
        return _head(address, label, column, key, descending, **more)

    ticks = marks.axis_head(scale, lambda value: whole(100 * value))
    return {
        "rank": made("Rank", "rank", title="1 + the number of models that are significantly better; its 95% range"),
        "model": made("Model", "model"),
        "win": made("Win %", "win_rate", marks=ticks, title="Wins of all items; a tie is no win"),
        "n": made("n", "n", title="Items"),
        "bt": made("BT", "bt", title="Bradley–Terry strength: natural log, mean 0"),
        "elo": made("Elo", "elo", title="Follows the last votes: read it beside BT, not instead of it"),
    }


def _level_head(address: Address, level: str, key: str, descending: bool, rows: list[Row]) -> Head:
    counts = sorted({row["levels"][level]["n"] for row in rows if row["levels"].get(level, {}).get("n")})
    under = "" if not counts else span(counts[0], counts[-1])
    label = level.replace("/", "/\u200b") or "No level"  # may break there
    return _head(
        address, label, f"level:{level}", key, descending, under=under, title=f"{label}: items per model below"
    )


def forest(board: Board, anchor: str) -> SafeString:
    """Strengths with their intervals, in the order of the ranks; empty where there is none."""
    rated = [row for row in board.rows if row["bt"] is not None and not is_provisional(row, anchor)]
    rated.sort(key=lambda row: (row["tier"] or row["rank"] or 0, -row["bt"]))
    if not rated:
        return BLANK
    tints = _tints(rated, anchor)
    rows = [
        marks.ForestRow(
            row["model"],
            row["bt"],
            row["bt_low"],
            row["bt_high"],
            tints.get(row["model"], False),
            row["model"] == anchor,
        )
        for row in rated
    ]
    return marks.forest(
        rows,
        title="Bradley–Terry strengths with 95% intervals; the table holds the same numbers",
        write=lambda value: "0" if abs(value) < 1e-9 else signed(value).removesuffix("0").removesuffix(".0"),
    )


def counted(board: Board, repeats: int) -> str:
    """``2,520 items``; with repeats how many."""
    words = number_of(board.extra.get("items", 0), "item")
    return words if repeats <= 1 else f"{words}, {repeats} repeats"
