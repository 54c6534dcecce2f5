"""The boards of models by scores, components, marks, multiple choice and yes or no, as pages: one table for all."""

from collections.abc import Callable
from dataclasses import dataclass, field

from django.utils.safestring import SafeString

from bank.forms.fields import whole_number
from leaderboard.boards.base import Level, ModelRow, ModelsBoard
from leaderboard.boards.keyed import ChoiceBoard, KeyedBoard
from leaderboard.boards.scores import ScoresBoard
from leaderboard.figures import NONE, interval, percent, rank_range, told, whole
from leaderboard.hidden import is_kept_back
from leaderboard.kinds.base import Column, Shape
from leaderboard.pages import marks
from leaderboard.pages.address import Address
from leaderboard.pages.models import (
    RANK_IN_WORDS,
    extremes,
    failed,
    is_provisional,
    length_cell,
    length_head,
    model_pages,
    organisations,
    rank_heads,
    sorted_rows,
    value_of,
)
from leaderboard.pages.table import Cell, Head, Sorting, ends_of_groups, row_css, tints
from leaderboard.rows import UNKNOWN
from leaderboard.scope import Scope

Write = Callable[[float | None], str]


@dataclass(frozen=True, slots=True)
class ScoredRow:
    name: str
    organisation: str
    page: str  # the model's own
    link: str
    rank: str
    ranks: str
    provisional: bool
    css: str
    value: str
    title: str
    bar: SafeString
    n: str
    failed: str
    failed_title: str
    length: Cell
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


def page_of(address: Address, scope: Scope, board: ModelsBoard) -> ScoredPage:
    """Everything that the table and the panels below it show."""
    shape = shape_of(scope, board)
    names, depths = levels_of(address, board)
    columns = {*("rank", "model", "n", "mean_length", shape.main.name), *(column.name for column in shape.beside)}
    sorting = Sorting.of(address, columns | {f"level:{name}" for name in names})
    rows = sorted_rows(board.rows, sorting, lambda row: value_of(row, sorting.column, shape.main.name))
    settled = [row for row in rows if not is_provisional(row)]
    scale = marks.axis([end for row in settled or rows for end in row.number(shape.main.name).ends], unit=shape.unit)
    tinted = tints((row.model, row.tier) for row in settled) if sorting.is_usual else {}
    made_by, pages = organisations(), model_pages(row.model for row in rows)
    low, high = scope.kind.ends(scope.benchmark)
    link = None if is_kept_back(scope) else address
    table_rows = [
        _row(
            link,
            row,
            shape,
            scale,
            organisation=made_by.get(row.model, ""),
            page=pages.get(row.model, ""),
            tinted=tinted.get(row.model, False),
            last=last,
            levels=[_level_cell(name, row.level(name), shape, low, high) for name in names],
        )
        for row, last in zip(rows, ends_of_groups([row.model for row in rows], tinted), strict=True)
    ]
    return ScoredPage(
        main=shape.main,
        in_words=shape.in_words,
        heads=_heads(sorting, shape, scale),
        beside=[sorting.head(column.label, column.name, title=column.title) for column in shape.beside],
        levels=[sorting.head(short(name), f"level:{name}", title=f"{shape.main.label} on {name}") for name in names],
        level_word=scope.kind.part_word,
        rows=table_rows,
        ranked=sum(row.rank is not None for row in settled),
        provisional=len(rows) - len(settled),
        depths=depths,
        heat_low=shape.main.write(low),
        heat_high=shape.main.write(high),
        letters=_letters(board) if isinstance(board, ChoiceBoard) and board.letters else None,
        steps=_steps(board) if isinstance(board, ChoiceBoard) else [],
        tinted=bool(tinted),
    )


def shape_of(scope: Scope, board: ModelsBoard) -> Shape:
    """The shape of the board, by what ranks it where its kind has several."""
    return scope.kind.shapes.get(board.ranked_by, scope.kind.shape)


def levels_of(address: Address, board: ModelsBoard) -> tuple[list[str], list[Group]]:
    """The columns by level or category, and the switch between depths of the tree."""
    if isinstance(board, ScoresBoard):
        return board.level_order if len(board.level_order) > 1 else [], []
    if not isinstance(board, KeyedBoard) or not board.depths:
        return [], []
    depth_asked = whole_number(address.params.get("depth")) or 1
    current = depth_asked - 1 if depth_asked <= len(board.depths) else 0
    groups = [
        Group(f"L-{depth + 1}", address.link(depth=str(depth + 1) if depth else None, sort=None), depth == current)
        for depth in range(len(board.depths))
    ]
    return board.depths[current], groups if len(groups) > 1 else []


def short(path: str) -> str:
    name = path.rpartition(" / ")[2] or "No level"
    return name.replace("_", " ").replace("/", "/\u200b")


def _row(
    address: Address | None,
    row: ModelRow,
    shape: Shape,
    scale: marks.Axis,
    *,
    organisation: str,
    page: str,
    tinted: bool,
    last: bool,
    levels: list[Cell],
) -> ScoredRow:
    """Without an ``address`` the row leads nowhere."""
    main, provisional = shape.main, is_provisional(row)
    number = row.number(main.name)
    worst, best = (getattr(row, f"{main.name}_{case}", None) for case in ("worst", "best"))
    return ScoredRow(
        name=row.model,
        organisation=organisation,
        page=page,
        link=address.to("leaderboard:answers", **address.view(), model=row.model) if address else "",
        rank=NONE if provisional or row.rank is None else str(row.place),
        ranks="" if provisional else rank_range(row.place, row.rank_low, row.rank_high),
        provisional=provisional,
        css=row_css("provisional" if provisional else "", tinted=tinted, last=last),
        value=told(number, main.write),
        title=interval(number, main.write),
        bar=marks.interval_bar(scale, *number.ends, write=main.write, provisional=provisional),
        n=whole(row.n),
        failed=failed(getattr(row, "failures", None)),
        failed_title=extremes(main.label, worst, best),
        length=length_cell(row),
        beside=[_beside(row, column) for column in shape.beside],
        levels=levels,
    )


def _beside(row: ModelRow, column: Column) -> Cell:
    number = row.number(column.name)
    return Cell(told(number, column.write), title=interval(number, column.write))


def _level_cell(name: str, level: Level | None, shape: Shape, low: float, high: float) -> Cell:
    main = shape.main
    number = level.number(main.name) if level else UNKNOWN
    at = number.high if number.value is None else number.value  # an interval of an edition has no value
    if level is None or at is None:
        return Cell(NONE, "qx", f"{name}: nothing counted")
    title = f"{name}: {interval(number, main.write)}".rstrip(": ")
    return Cell(told(number, main.write), marks.heat(at, low, high), f"{title}; n = {whole(level.n)}")


def _heads(sorting: Sorting, shape: Shape, scale: marks.Axis) -> dict[str, Head]:
    percents = shape.unit != 1.0
    ticks = marks.axis_head(scale, lambda value: whole(100 * value) if percents else f"{value:g}")
    return {
        **rank_heads(sorting),
        "main": sorting.head(shape.main.label, shape.main.name, title=shape.main.title, marks=ticks),
        "n": sorting.head("n", "n", title="Samples or items"),
        "length": length_head(sorting),
    }


def reading(page: ScoredPage) -> list[tuple[str, str]]:
    """What the columns are: a term and what is said of it."""
    words = [
        (True, "Rank", RANK_IN_WORDS),
        (True, page.main.label, f"ranks: {page.in_words}. Bars are 95% intervals."),
        *((bool(head.title), head.label, f"is {head.title[:1].lower()}{head.title[1:]}.") for head in page.beside),
        (True, "n", "is the number of samples or items that count."),
        (bool(page.levels), "", f"A coloured column is {page.main.label} on one {page.level_word}."),
        (True, "", "A click on a head sorts, a click on a number opens what is behind it."),
    ]
    return [(term, said) for shown, term, said in words if shown]


STEPS = {
    "label": "named by its label",
    "judge": "read by a judge",
    "random": "drawn",
    "none": "no option found",
    "no_text": "no answer",
}


def _steps(board: ChoiceBoard) -> list[tuple[str, list[str]]]:
    """How the options of each model's answers were found: counts and shares, in the order of ``STEPS``."""
    steps = []
    for row in sorted(board.rows, key=lambda row: row.model.casefold()):
        total = sum(row.extraction.values())
        cells = [f"{row.extraction[step]:,}" for step in STEPS]
        extracted = sum(row.extraction[step] for step in ("label", "judge"))
        steps.append((row.model, [*cells, percent(extracted / total if total else None)]))
    return steps


def _letters(board: ChoiceBoard) -> Letters:
    letters = sorted({letter for shares in [*board.letters.values(), board.right] for letter in shares if letter})

    def cells(shares: dict[str, float]) -> list[Cell]:
        return [
            Cell(percent(shares.get(letter, 0.0)), marks.heat(shares.get(letter, 0.0), 0.0, 0.6)) for letter in letters
        ]

    rows = [("Key", cells(board.right))] if board.right else []
    rows += [(name, cells(shares)) for name, shares in sorted(board.letters.items())]
    return Letters(letters, rows, bool(board.right))
