"""The boards of models by scores, components, marks, multiple choice and yes or no, as pages: one table for all."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from django.utils.safestring import SafeString

from bank.forms.fields import whole_number
from leaderboard.boards.base import Board, ModelRow, ModelsBoard
from leaderboard.boards.models.abilities import AbilityRow
from leaderboard.boards.models.keyed import ChoiceBoard, ChoiceRow
from leaderboard.boards.models.page import (
    FEWEST_ON_LEVEL,
    finding,
    is_provisional,
    length_column,
    model_column,
    n_cell,
    rank_column,
    ranked_table,
    sorted_rows,
    value_of,
)
from leaderboard.kinds.base import NumberColumn, Shape
from leaderboard.lookups import KnownModels
from leaderboard.rows import UNKNOWN
from leaderboard.scope import Scope
from leaderboard.show import marks
from leaderboard.show.marks import Cell
from leaderboard.show.pickers import Segment
from leaderboard.show.table import Chooser, Column, Sorting, Table, axis_of, interval_of, names, table
from leaderboard.sight import Sight
from leaderboard.view import Address, rows_at_level
from stats.figures import NONE, in_brackets, interval, percent, short, value_or_interval, whole, whole_percent


@dataclass(frozen=True, slots=True)
class ScoredPage:
    """The table, and for multiple choice those of ``steps`` and ``letters`` below it."""

    table: Table
    chooser: Chooser | None
    ranked: int
    provisional: int
    main: NumberColumn
    beside: tuple[NumberColumn, ...]
    in_words: str
    level_word: str
    depths: list[Segment]
    heat_low: str
    heat_high: str
    letters: Table | None
    steps: Table | None
    has_key: bool  # whether the first row of ``letters`` is the key's
    finding: SafeString  # what the table comes to


def build_scored_page(address: Address, sight: Sight, board: ModelsBoard, known: KnownModels) -> ScoredPage:
    """Everything that the table and the panels below it show."""
    scope = sight.scope
    shape = shape_of(scope, board)
    main = shape.main
    levels, depths = levels_of(address, board)
    low, high = scope.kind.ends(scope.benchmark)
    choices = cast(ChoiceBoard, board) if scope.kind.rotates else None
    columns = _scored_columns(address, sight, shape, board.rows, known, levels, (low, high))
    sorting = Sorting.of(address, {column.sort for column in columns} - {""})
    rows = sorted_rows(board.rows, sorting, lambda row: value_of(row, sorting.column, main.name))
    return ScoredPage(
        *ranked_table(address, sorting, columns, rows, caption=f"Models by {main.title.lower()}", fill=True),
        main=main,
        beside=shape.beside,
        in_words=shape.in_words,
        level_word=scope.kind.part_word,
        depths=depths,
        heat_low=main.write(low),
        heat_high=main.write(high),
        letters=_letters(address, sight, choices) if choices and choices.letters else None,
        steps=_steps(address, sight, choices) if choices else None,
        has_key=bool(choices and choices.right),
        finding=finding(board, shape),
    )


def _scored_columns(
    address: Address,
    sight: Sight,
    shape: Shape,
    rows: Sequence[ModelRow],
    known: KnownModels,
    levels: list[str],
    ends: tuple[float, float],
) -> list[Column[ModelRow]]:
    """Of what is seen as an edition the rows lead nowhere."""
    main, kind = shape.main, sight.scope.kind
    settled = [row for row in rows if not is_provisional(row)]
    scale = axis_of(settled or rows, lambda row: row.number(main.name), unit=shape.unit, width=marks.COLUMN)

    def answers(row: ModelRow) -> str:
        return _answers(address, sight, row.model)

    def main_cell(row: ModelRow) -> Cell:
        number = row.number(main.name)
        bar = marks.interval_bar(scale, *number.ends, write=main.write, provisional=is_provisional(row))
        return Cell(value_or_interval(number, main.write), title=interval(number, main.write), bar=bar)

    def beside(column: NumberColumn) -> Column[ModelRow]:
        return Column(column.label, column.name, column.write, opens=answers, sort=column.name, title=column.title)

    def at_level(name: str) -> Column[ModelRow]:
        def cell(row: ModelRow) -> Cell:
            level = row.level(name)
            number = level.number(main.name) if level else UNKNOWN
            at = number.high if number.value is None else number.value  # an interval of an edition has no value
            if level is None or at is None:
                return Cell(NONE, css="qx", title=f"{name}: nothing counted")
            title = f"{name}: {interval(number, main.write)}".rstrip(": ")
            title = f"{title}; n = {whole(level.n)}"
            link = rows_at_level(address, sight, row.model, name)
            css = marks.heat(at, *ends) if level.n >= FEWEST_ON_LEVEL else ""
            return Cell(value_or_interval(number, main.write), css=css, title=title, link=link)

        return Column(
            level_label(name),
            cell,
            kind="heat",
            css="c level",
            sort=f"level:{name}",
            key="levels",
            choice=f"{main.label} on each {kind.part_word}",
            title=f"{main.label} on {name}",
        )

    return [
        rank_column(is_provisional),
        model_column(known, answers),
        Column(
            main.label,
            main_cell,
            kind="interval",
            css="plotted",
            opens=answers,
            sort=main.name,
            title=main.title,
            axis=marks.axis_head(scale, whole_percent if shape.unit != 1.0 else short),
        ),
        Column("n", lambda row: n_cell(row, main.label, answers(row), main.name), sort="n", title="Samples or items"),
        *(beside(column) for column in shape.beside),
        length_column(),
        *(at_level(name) for name in levels),
    ]


def _answers(address: Address, sight: Sight, model: str) -> str:
    """Where the rows behind a model's numbers are; nowhere for what is seen as an edition alone."""
    return "" if sight.only_editions else address.to(sight.scope.kind.rows_page, **address.view(), model=model)


def shape_of(scope: Scope, board: ModelsBoard) -> Shape:
    """The shape of the board, by what ranks it where its kind has several."""
    return scope.kind.shapes.get(board.ranked_by, scope.kind.shape)


def levels_of(address: Address, board: ModelsBoard) -> tuple[list[str], list[Segment]]:
    """The columns by level or category, and the switch between depths of the tree."""
    depths = board.level_columns
    asked = whole_number(address.params.get("depth")) or 1
    current = asked - 1 if asked <= len(depths) else 0
    groups = [
        Segment(f"L-{depth + 1}", address.link(depth=str(depth + 1) if depth else None, sort=None), depth == current)
        for depth in range(len(depths))
    ]
    return depths[current] if depths else [], groups if len(groups) > 1 else []


def level_label(path: str) -> str:
    name = path.rpartition(" / ")[2] or "No level"
    return name.replace("_", " ").replace("/", "/\u200b")


def abilities_of(board: Board[AbilityRow], main: NumberColumn, unit: float) -> Table | None:
    """All models together on each ability, hardest first; None where one model or ability is all there is."""
    rows = board.rows
    if len(rows) < 2 or max(row.models for row in rows) < 2:
        return None
    scale = axis_of(rows, "mean", unit=unit, width=marks.WIDE)
    return table(
        [
            names("Ability", "ability", css=""),
            Column(main.label, lambda row: Cell(main.write(row.mean.value), in_brackets(row.mean, main.write))),
            interval_of("mean", scale, whole_percent if unit != 1.0 else short, main.write),
            Column("n", "n"),
        ],
        rows,
        label="All models together, by ability",
        caption="The mean of all models on each ability, hardest first",
        css="cmpt",
    )


STEPS = {
    "label": "By its label",
    "judge": "By a judge",
    "random": "Drawn",
    "none": "None",
    "no_text": "No answer",
}


def _steps(address: Address, sight: Sight, board: ChoiceBoard) -> Table:
    """How the options of each model's answers were found."""

    def answers(row: ChoiceRow) -> str:
        return _answers(address, sight, row.model)

    def extracted(row: ChoiceRow) -> float | None:
        total = sum(row.extraction.values())
        return (row.extraction["label"] + row.extraction["judge"]) / total if total else None

    def counted(step: str) -> Column[ChoiceRow]:
        return Column(STEPS[step], lambda row: row.extraction[step], opens=answers)

    columns = [
        names("Model", "model"),
        *(counted(step) for step in STEPS),
        Column("Found %", extracted, percent, opens=answers),
    ]
    rows = sorted(board.rows, key=lambda row: row.model.casefold())
    caption = "How the option of each answer was found"
    return table(columns, rows, label="How the options were found", caption=caption, css="cmpt")


@dataclass(frozen=True, slots=True)
class _Letters:
    """The share of each option that a model chose, or of the key."""

    name: str
    shares: dict[str, float]


def _letters(address: Address, sight: Sight, board: ChoiceBoard) -> Table:
    """Shares of chosen options, of the key first."""
    key = [_Letters("Key", board.right)] if board.right else []
    of_models = [_Letters(model, shares) for model, shares in sorted(board.letters.items())]
    letters = sorted(set(board.right).union(*board.letters.values()) - {""})

    def of_letter(letter: str) -> Column[_Letters]:
        def cell(row: _Letters) -> Cell:
            share = row.shares.get(letter, 0.0)
            link = _answers(address, sight, row.name) if row not in key else ""
            return Cell(percent(share), css=marks.heat(share, 0.0, 0.6), link=link)

        return Column(letter, cell, kind="heat", css="c")

    return table(
        [names("Model", "name"), *(of_letter(letter) for letter in letters)],
        [*key, *of_models],
        row_css=lambda row: "base" if row in key else "",
        label="Chosen options",
        caption="Share of each option among those chosen",
        css="cmpt",
        fill=True,
    )
