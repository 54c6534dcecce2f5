"""The board of models by pairs as a page."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from types import MappingProxyType
from typing import Any, TypeVar

from django.utils.html import format_html
from django.utils.safestring import SafeString

from leaderboard.boards.base import MAY_BE_BEST, ApartRow, ModelsBoard
from leaderboard.boards.base import ModelRow as Row
from leaderboard.boards.models.pairs import PairRow, PairsBoard, Tally
from leaderboard.kinds import USUAL, Kind
from leaderboard.kinds.base import Shape
from leaderboard.lookups import KnownModel, KnownModels
from leaderboard.methods import IN_STEPS, PROVISIONAL
from leaderboard.rows import UNKNOWN, Number
from leaderboard.scope import DROPPED, HALF, LENGTH, NO_CONTROL, NO_TIES
from leaderboard.show import marks, plots
from leaderboard.show.marks import BLANK, Cell, Chip
from leaderboard.show.pickers import Select, pick
from leaderboard.show.table import (
    IN_TIERS,
    OUTSIDE,
    RANK,
    UNRANKED,
    Chooser,
    Column,
    Sorting,
    Table,
    Write,
    axis_of,
    choose,
    names,
    table,
    text,
    tick_of,
    tiers,
)
from leaderboard.view import Address
from stats.figures import (
    NONE,
    count,
    in_brackets,
    interval,
    listed,
    number_of,
    percent,
    rank_range,
    signed,
    span,
    tick,
    two,
    value_or_interval,
    whole,
    whole_percent,
    with_interval,
)

R = TypeVar("R", bound=Row)


@dataclass(frozen=True, slots=True)
class Ratings:
    """Ratings as they are, and with length or style held equal, by model. ``ranked``: those that rank the board."""

    plain: Mapping[str, Number]
    held: Mapping[str, Number]
    what: str  # length, or what else is held equal
    ranked: str = "plain"

    @classmethod
    def of(cls, board: PairsBoard, beside: PairsBoard | None) -> "Ratings":
        """``beside``: the same board with length held equal, or with nothing where the board has something."""
        own = {row.model: row.bt for row in board.rows}
        other = {row.model: row.bt for row in beside.rows} if beside else {}
        if taken_out(board):
            return cls(other, own, taken_out(board), "held")
        return cls(own, other, LENGTH)

    @property
    def both(self) -> bool:
        """Whether there is anything to set side by side."""
        return any(number.value is not None for number in self.held.values()) and bool(self.plain)

    @property
    def main(self) -> Mapping[str, Number]:
        """Those that rank: the filled dots."""
        return self.held if self.ranked == "held" else self.plain

    @property
    def beside(self) -> Mapping[str, Number]:
        """The open dots, if there are any."""
        if not self.both:
            return {}
        return self.plain if self.ranked == "held" else self.held

    @property
    def columns(self) -> tuple[str, str]:
        """What addresses call the two."""
        return ("held", "bt") if self.ranked == "held" else ("bt", "held")

    @property
    def words(self) -> tuple[str, str]:
        """What the two are, in words; the second empty where there is none."""
        held = f"{self.what} held equal"
        words = (held, "plain rating") if self.ranked == "held" else ("rating", held)
        return words if self.both else (words[0], "")


@dataclass(frozen=True, slots=True)
class ModelsPage:
    """The table and what stands below it."""

    table: Table
    chooser: Chooser | None
    ranked: int
    provisional: int
    told: bool  # whether models are told apart by tests
    rating: str  # what the filled dot is
    other_rating: str  # and the open one, if there is one
    held_word: str  # what a rating has been taken out of, where it stands beside the plain one
    clustered_by: str
    taken_out: str
    worth: SafeString  # what was taken out: a plot, and in words
    worth_in_words: list[str]
    finding: SafeString  # what the table comes to


def finding(board: ModelsBoard, shape: Shape, anchor: str = "") -> SafeString:
    """``A and B may be the best, all together with 95%. A comes first, win % 62.3 [54.0, 70.1].`` Empty where no
    interval is behind it.
    """
    note = next((note for note in board.notes if note.startswith(MAY_BE_BEST)), "")
    of_set, _, names = note.removesuffix(".").rpartition(": ")
    ranked = [row for row in board.rows if row.rank and row.model != anchor and not is_provisional(row, anchor)]
    if not note or not ranked:
        return SafeString()
    first = min(ranked, key=lambda row: row.rank or 0)
    number = first.number(shape.main.name)
    if number.low is None:
        return SafeString()
    of_set = f"{of_set[:1].lower()}{of_set[1:]}"
    figure = with_interval(number, shape.main.write)
    return format_html("<b>{}</b> {}. {} comes first, {} {}.", names, of_set, first.model, shape.short, figure)


def is_provisional(row: Row, anchor: str = "") -> bool:
    """Whether the row is over too few items to be ranked among the others."""
    return row.n < PROVISIONAL and row.model != anchor


def sorted_rows(rows: Sequence[R], sorting: Sorting, value: Callable[[R], Any], anchor: str = "") -> list[R]:
    """Rows by a column: missing values last, provisional ones after them, whatever the direction."""
    by_name = sorted(rows, key=lambda row: row.model.casefold())
    return sorted(sorting.ordered(by_name, value), key=lambda row: is_provisional(row, anchor))


def value_of(row: Row, column: str, number: str) -> Any:
    """What a column is sorted by. ``number``: the one that levels are shown by."""
    if column == RANK:
        return row.rank
    if column == "model":
        return row.model.casefold()
    if column.startswith("level:"):
        level = row.level(column.removeprefix("level:"))
        return level and level.number(number).value
    value = getattr(row, column)
    return value.value if isinstance(value, Number) else value


def build_models_page(
    address: Address, board: PairsBoard, known: KnownModels, *, anchor: str, beside: PairsBoard | None
) -> ModelsPage:
    """Everything that the table and the plot beside it show. ``beside``: see ``Ratings.of``."""
    levels = list(chain.from_iterable(board.level_columns))
    ratings = Ratings.of(board, beside)
    settled = [row for row in board.rows if not is_provisional(row, anchor)]
    shown = _measured(board.rows, "win_rate", "elo") | _measured(settled, "win_rate_lc", "preference")
    columns = _model_columns(address, board, known, ratings, levels, shown, anchor=anchor)
    sorting = Sorting.of(address, {column.sort for column in columns} - {""})

    def sorted_by(row: PairRow) -> Any:
        if sorting.column in ("bt", "held"):
            return (ratings.plain if sorting.column == "bt" else ratings.held).get(row.model, UNKNOWN).value
        return value_of(row, sorting.column, "win_rate")

    rows = sorted_rows(board.rows, sorting, sorted_by, anchor)
    caption = f"Models by rank{f', compared with {anchor}' if anchor else ''}"
    return ModelsPage(
        *ranked_table(address, sorting, columns, rows, caption=caption, anchor=anchor, worse=board.worse),
        told=bool(board.worse),
        rating=ratings.words[0],
        other_rating=ratings.words[1],
        held_word=ratings.what if ratings.both else "",
        clustered_by="picture or prompt" if board.clustered_by == "group" else "item, prompts taken as fixed",
        taken_out=taken_out(board),
        worth=_worth(board),
        worth_in_words=_worth_in_words(board),
        finding=finding(board, USUAL.shape, anchor),
    )


def ranked_table(
    address: Address,
    sorting: Sorting,
    columns: list[Column[R]],
    rows: Sequence[R],
    *,
    anchor: str = "",
    worse: Mapping[str, Sequence[str]] = MappingProxyType({}),
    **more: Any,
) -> tuple[Table, Chooser | None, int, int]:
    """A board of models with its tiers and the chooser of its columns, how many are ranked, and how many not yet.
    ``worse``: by model those that are significantly worse.
    """
    settled = [row for row in rows if not is_provisional(row, anchor)]
    tier_of = tiers((row.model, row.tier) for row in settled if row.model != anchor) if sorting.is_usual else {}
    numbers = {row.model: str(number) for number, row in enumerate(rows)}
    shown, chooser = choose(columns, address, sorting.column)
    drawn = table(
        shown,
        rows,
        sorting=sorting,
        row_css=lambda row: OUTSIDE.get(_outside(row, anchor), ""),
        row_key=lambda row: row.model,
        group=lambda row: UNRANKED if is_provisional(row, anchor) else tier_of.get(row.model),
        worse=lambda row: " ".join(numbers[name] for name in worse.get(row.model, ()) if name in numbers),
        label="Board of models",
        css="lb lines",
        **more,
    )
    ranked = sum(row.rank is not None and row.model != anchor for row in settled)
    return drawn, chooser, ranked, len(rows) - len(settled)


def _measured(rows: Sequence[PairRow], *names: str) -> set[str]:
    """Those of these numbers that some row has."""
    return {name for name in names if any(row.number(name).value is not None for row in rows)}


def _outside(row: Row, anchor: str) -> str:
    """Why the row is not ranked among the others; empty where it is."""
    return "anchor" if row.model == anchor else "provisional" if is_provisional(row) else ""


def _votes(address: Address, model: str, **more: str) -> str:
    """Where the votes on a model are."""
    return address.to("leaderboard:votes", **(address.view() | {"model": model} | more))


def _model_columns(
    address: Address,
    board: PairsBoard,
    known: KnownModels,
    ratings: Ratings,
    levels: list[str],
    shown: set[str],
    *,
    anchor: str,
) -> list[Column[PairRow]]:
    unit = board.rows[0].length_unit if board.rows else ""
    settled = [row for row in board.rows if not is_provisional(row, anchor)]

    def settled_number(label: str, number: Callable[[PairRow], Number], write: Write, **more: Any) -> Column[PairRow]:
        """A number that rows outside the ranking do not show."""

        def cell(row: PairRow) -> Cell:
            settled = UNKNOWN if is_provisional(row, anchor) else number(row)
            return Cell(write(settled.value), title=interval(settled, write) or settled.reason)

        return Column(label, cell, opens=votes, **more)

    def votes(row: PairRow) -> str:
        return _votes(address, row.model)

    return [
        rank_column(lambda row: is_provisional(row, anchor)),
        model_column(known, votes, anchor, chips="items"),
        Column(
            "Win %",
            lambda row: _win_cell(address, row),
            sort="win_rate",
            under=TIES_BELOW.get(board.rows[0].tie_rule, "") if board.rows else "",
            title="Share of items won against the other answer",
            shown="win_rate" in shown,
        ),
        settled_number(
            "LC %",
            lambda row: row.win_rate_lc,
            percent,
            sort="win_rate_lc",
            title=f"Length-controlled: wins if answers were as long as the anchor's, in {unit}; a tie counts half",
            shown="win_rate_lc" in shown,
        ),
        settled_number(
            "Preference",
            lambda row: row.preference,
            two,
            sort="preference",
            title="Mean preference for the model's answers, from 0 to 1; 0.5: no better",
            shown="preference" in shown,
        ),
        Column(
            "n",
            lambda row: n_cell(row, "Win %", votes(row), "win_rate"),
            css="n dim",
            sort="n",
            title="Items",
            choice="Items",
        ),
        _rating_column(address, ratings, settled or board.rows, anchor),
        settled_number(
            "Rating" if ratings.ranked == "held" else ratings.what.capitalize(),
            lambda row: ratings.beside.get(row.model, UNKNOWN),
            signed,
            sort=ratings.columns[1],
            under="plain" if ratings.ranked == "held" else "held equal",
            title=f"The open dot: {ratings.words[1]}",
            choice=f"Rating, {ratings.words[1]}",
            usual=False,
            shown=ratings.both,
        ),
        settled_number(
            "Elo",
            lambda row: row.elo,
            whole,
            sort="elo",
            title="Follows the last votes: read it beside the rating, not instead of it",
            usual=False,
            shown="elo" in shown,
        ),
        length_column(css="n dim len"),
        *(_level_column(address, name, settled, anchor) for name in levels),
    ]


def _win_cell(address: Address, row: PairRow) -> Cell:
    rate = row.win_rate
    if rate.reason:  # an interval alone, or a step, which no list of votes is behind
        missing = rate.value is None and rate.low is None
        small = rate.reason if missing else "or more, in steps" if rate.method == IN_STEPS else ""
        return Cell(value_or_interval(rate, percent), small, title=rate.reason)
    if rate.value is None:
        return Cell(value_or_interval(rate, percent))
    won = _votes(address, row.model, outcome="win")
    return Cell(value_or_interval(rate, percent), title=in_words(row), link=won)


TIES_BELOW = {NO_TIES: "ties not won", HALF: "ties half won", DROPPED: "ties left out"}
FEWEST_ON_LEVEL = 10  # items below which a cell has no colour
LEVEL_LIMITS = (0.30, 0.45, 0.55, 0.65)  # between the five colours of a level's win rates


def _rating_column(address: Address, ratings: Ratings, settled: Sequence[PairRow], anchor: str) -> Column[PairRow]:
    """The rating that ranks, drawn with its interval, and the other one as an open dot."""
    main, beside = ratings.main, ratings.beside
    others = [beside.get(row.model, UNKNOWN).value for row in settled]
    scale = axis_of(settled, lambda row: main.get(row.model, UNKNOWN), 0.0, *others, width=marks.COLUMN)

    def cell(row: PairRow) -> Cell:
        number, provisional = main.get(row.model, UNKNOWN), is_provisional(row, anchor)
        plain = None if provisional else beside.get(row.model, UNKNOWN).value
        bar = marks.interval_bar(scale, *number.ends, write=signed, provisional=provisional, reference=0.0, plain=plain)
        return Cell(signed(number.value), link=_votes(address, row.model), title=interval(number, signed), bar=bar)

    return Column(
        "Rating",
        cell,
        kind="interval",
        css="plotted",
        sort=ratings.columns[0],
        title="Bradley–Terry strength: natural log of the odds; 0 is the average model",
        axis=marks.axis_head(scale, lambda value: "average" if abs(value) < 1e-9 else tick_of(signed)(value)),
    )


def _level_column(address: Address, name: str, settled: list[PairRow], anchor: str) -> Column[PairRow]:
    there = [row.levels[name] for row in settled if name in row.levels]
    counts = sorted(level.n for level in there if level.n)
    label = name.replace("/", "/\u200b") or "No level"  # may break there
    path = " / ".join(part for part in (address.params.get("level", ""), name) if part)

    def cell(row: PairRow) -> Cell:
        if is_provisional(row, anchor):
            return Cell(NONE, css="qx", title=f"fewer than {PROVISIONAL} items")
        level = row.levels.get(name)
        if level is None or level.win_rate.value is None:
            return Cell(NONE, css="qx", title="no items")
        return Cell(
            whole_percent(level.win_rate.value),
            title=f"{percent(level.win_rate.value)} %: {in_words(level)}",
            css=marks.shade(level.win_rate.value, LEVEL_LIMITS) if level.n >= FEWEST_ON_LEVEL else "",
            link=_votes(address, row.model, level=path),
        )

    return Column(
        label,
        cell,
        kind="heat",
        css="c level",
        sort=f"level:{name}",
        key="levels",
        choice="Win % on each level",
        under=f"{span(counts[0], counts[-1])} item{'' if counts[-1] == 1 else 's'}" if counts else "",
        title=f"{name or label}: items per model below",
    )


def taken_out(board: PairsBoard) -> str:
    """``length and style``; empty where nothing is."""
    control = board.rows[0].control if board.rows else NO_CONTROL
    return "" if control == NO_CONTROL else listed(control.split(","))


TWICE = {
    "length": "twice as long",
    "headers": "twice the headers",
    "bold": "twice the bold",
    "lists": "twice the lists",
}


def _worth(board: PairsBoard) -> SafeString:
    """The coefficients of an answer that has twice as much."""
    coefficients = board.rows[0].coefficients if board.rows else {}
    rows = [
        plots.ForestRow(TWICE[name], row.twice) for name, row in coefficients.items() if row.twice.value is not None
    ]
    title = "What an answer gains by twice as much, with 95% intervals; the sentences below say the same"
    return plots.forest(rows, title=title, write=tick) if rows else BLANK


def _worth_in_words(board: PairsBoard) -> list[str]:
    """``Twice as long, in words: +0.23 [+0.10, +0.35], wins 55.7 %``."""
    coefficients = board.rows[0].coefficients if board.rows else {}
    sentences = []
    for name, row in coefficients.items():
        value, unit = row.twice.value, f", in {row.unit}" if name == LENGTH else ""
        if value is None:
            said = row.twice.reason
        else:
            ends = in_brackets(row.twice, signed) or row.twice.reason
            said = f"{signed(value)} {ends}, wins {percent(1 / (1 + math.exp(-value)))} %"
        sentences.append(f"{TWICE[name].capitalize()}{unit}: {said}.")
    return sentences


def in_words(tally: Tally) -> str:
    """``12 won, 3 tied, 5 lost; 95%: 40.1 to 78.3``."""
    won, tied, lost = (count(outcome) for outcome in tally.outcomes)
    ends = interval(tally.win_rate, percent)
    return f"{won} won, {tied} tied, {lost} lost" + (f"; {ends}" if ends else "")


def failed(failures: int | None) -> str:
    """How many items a judge failed on, or answers say nothing; empty without any."""
    return f"{failures:,} failed" if failures else ""


def extremes(label: str, worst: float | None, best: float | None) -> str:
    """What a number would be at worst and at best: ``Win % 40.1 if all of these were lost, 44.0 if they were won``."""
    if worst is None or best is None:
        return ""
    return f"{label.removesuffix(' %')}: {percent(worst)} % if these all count against it, {percent(best)} % if for it"


# ---- columns of every board of models ----


def rank_column(outside: Callable[[R], bool]) -> Column[R]:
    """The range of ranks; none for rows ``outside`` the ranking."""

    def cell(row: R) -> Cell:
        if outside(row) or row.rank is None:
            return Cell(NONE)
        tier = f", tier {row.tier}" if row.tier else ""
        return Cell(rank_range(row.rank, row.rank_low, row.rank_high), title=f"Place {row.rank}{tier}")

    better = f"The 95% range of this model's rank. {IN_TIERS}"
    return Column("Rank", cell, kind="rank", css="n rank", sort=RANK, title=better)


def model_column(
    known: KnownModels, rows_behind: Callable[[R], str], anchor: str = "", chips: str = "provisional"
) -> Column[R]:
    """The model with its maker. ``rows_behind``: where models without a page lead; ``chips``: what a row outside the
    ranking is marked with, ``items`` for their number.
    """

    def cell(row: R) -> Cell:
        chip = [Chip("anchor")] if row.model == anchor else []
        chip += [Chip("simulated")] if known[row.model].simulated else []
        if is_provisional(row, anchor):
            chip.append(Chip(number_of(row.n, "item")) if chips == "items" else Chip("provisional", "warn"))
        return Cell(
            row.model,
            known[row.model].organisation,
            title=". ".join(filter(None, [row.model, length_in_words(row)])),
            link=known[row.model].page or rows_behind(row),
            chips=tuple(chip),
        )

    return names("Model", cell, sort="model")


def n_cell(row: Row, label: str, link: str, number: str) -> Cell:
    """How many rows count, how many failed, and what ``number`` would be at worst and at best."""
    worst, best = (getattr(row, f"{number}_{case}", None) for case in ("worst", "best"))
    small_title = extremes(label, worst, best)
    failures = failed(getattr(row, "failures", None))
    return Cell(whole(row.n), failures, link=link, small_css="failed", small_title=small_title)


def length_column(**more: Any) -> Column[Any]:
    return Column(
        "Length",
        lambda row: Cell(whole(row.mean_length), title=length_in_words(row)),
        sort="mean_length",
        title="Mean length of the model's answers, in characters",
        **more,
    )


def length_in_words(row: Row) -> str:
    """The mean length of a model's answers."""
    if row.mean_length is None:
        return ""
    tokens = f"{whole(row.mean_tokens)} tokens, " if row.mean_tokens is not None else ""
    return f"Answers have a mean of {tokens}{whole(row.mean_length)} characters"


MOST_NEIGHBOURS = 8


def apart_table(board: ModelsBoard, write: Write) -> Table | None:
    """Neighbours that share a rank and that fewest more items would tell apart; nothing where there are none."""
    near = sorted((row for row in board.apart if row.more is not None), key=lambda row: row.more or 0)[:MOST_NEIGHBOURS]
    if not near:
        return None
    columns: list[Column[ApartRow]] = [
        names("Ahead", "a", css=""),
        text("Behind", "b"),
        Column("More items", "more", title="Of each, to find the difference seen at 80% power"),
        Column("Difference", "difference", write, title="In the number that ranks"),
        Column("Could be found", "detectable", write, title="With the items there are, at 80% power"),
        Column("Items", "n", title="Of the one with fewer"),
    ]
    return table(
        columns,
        near,
        label="The same tier",
        caption="Neighbours of one tier, and how many more items would tell them apart",
        css="cmpt",
    )


def forest(board: PairsBoard, known: KnownModels, anchor: str, ratings: Ratings) -> SafeString:
    """Ratings with their intervals, in the order of the ranks; empty where there is none. With something held equal,
    that is the dot, and the plain rating an open one.
    """
    main = ratings.held if ratings.both else ratings.plain or ratings.held
    rated = [
        row for row in board.rows if main.get(row.model, UNKNOWN).value is not None and not is_provisional(row, anchor)
    ]
    rated.sort(key=lambda row: (row.rank or 0, -(row.bt.value or 0.0)))
    if not rated:
        return BLANK
    rows = [_forest_row(row, known, main[row.model], ratings, quiet=row.model == anchor) for row in rated]
    held = f" with {ratings.what} held equal" if ratings.both else ""
    title = f"Ratings{held}, with 95% intervals; the table holds the same numbers"
    return plots.forest(rows, title=title, write=tick_of(signed))


def _forest_row(row: PairRow, known: KnownModels, main: Number, ratings: Ratings, *, quiet: bool) -> plots.ForestRow:
    plain = ratings.plain.get(row.model, UNKNOWN).value if ratings.both else None
    said = (
        with_interval(main, signed),
        f"{signed(plain)} plain, answers of {whole(row.mean_length)} characters" if plain is not None else "",
        in_words(row) if row.win_rate.value is not None else "",
    )
    return plots.ForestRow(known.shown(row.model), main, quiet=quiet, plain=plain, said=said)


# ---- which models are shown ----


def of_all_models(models: int, board: ModelsBoard, kind: Kind, *, rows: int | None = None, anchor: str = "") -> str:
    """``59 of 70 models: 11 without verdicts here``; empty where the board has every model that answered. ``rows``: how
    many are shown, where the ``anchor`` is none of them.
    """
    anchored = rows is not None and any(row.model == anchor for row in board.rows)
    n = len(board.rows) if rows is None else rows
    lacking = models - n - anchored
    if lacking < 0 or not (lacking or anchored) or not n:
        return ""
    why = "not in this edition" if board.edition else "without a number here" if kind.keyed else "without verdicts here"
    reasons = [f"{whole(lacking)} {why}"] if lacking else []
    reasons += [f"{anchor} is what the others are compared with"] if anchored else []
    return f"{whole(n)} of {number_of(models, 'model')}: {', '.join(reasons)}"


FILTERS = ("weights", "organisation", "size")
WEIGHTS = ("open", "closed")
# Groups by billions of parameters, above the first and up to the second (MIA-Bench, Table 1).
SIZES = {"8": ("up to 8B", 0.0, 8.0), "13": ("over 8B to 13B", 8.0, 13.0), "110": ("over 13B", 13.0, math.inf)}
_BILLIONS = re.compile(r"(?:(\d+)\s*[x×]\s*)?(\d+(?:\.\d+)?)\s*B\b", re.IGNORECASE)


def billions(parameters: str) -> float | None:
    """How many billions of parameters a card tells: 7 of ``7B``, 56 of ``8 x 7B``; None where it tells none."""
    found = _BILLIONS.search(parameters)
    return int(found[1] or 1) * float(found[2]) if found else None


@dataclass(frozen=True, slots=True)
class FilteredBoard:
    """The board with the rows that are shown, a note about it, and the controls."""

    board: ModelsBoard
    note: str
    selects: list[Select]


def filtered_board(address: Address, board: ModelsBoard, known: KnownModels) -> FilteredBoard:
    """The rows of the address' models; a control appears where there is something to choose from."""
    asked = {name: value for name in FILTERS if (value := address.params.get(name, ""))}
    rows = [row for row in board.rows if _matches(known[row.model], asked)]
    note = ""
    if asked:
        note = (
            f"{len(rows)} of {len(board.rows)} models are shown. Ranks, strengths and intervals are those among all "
            "models: the filter hides rows and does not recompute anything."
        )
    return FilteredBoard(replace(board, rows=rows), note, _selects(list(known.values()), asked))


def _matches(model: KnownModel, asked: Mapping[str, str]) -> bool:
    weights, organisation, size = (asked.get(name, "") for name in FILTERS)
    if weights and model.is_open is not {"open": True, "closed": False}.get(weights, "no such weights"):
        return False
    if size:
        _, above, most = SIZES.get(size, ("", math.inf, math.inf))
        size_of = billions(model.parameters)
        if size_of is None or not above < size_of <= most:
            return False
    return not organisation or model.organisation == organisation


def _selects(facts: Sequence[KnownModel], asked: Mapping[str, str]) -> list[Select]:
    selects = []

    names = sorted({model.organisation for model in facts if model.organisation}, key=str.casefold)
    sizes = {value: words for value, (words, *_) in SIZES.items()}
    offers = (
        ("weights", "Weights", "open and closed", WEIGHTS, any(model.is_open is not None for model in facts)),
        ("organisation", "Organisation", "all", names, len(names) > 1),
        ("size", "Parameters", "any number", sizes, any(billions(model.parameters) is not None for model in facts)),
    )
    for name, label, every, choices, matters in offers:
        if name in asked or matters:
            selects.append(pick(name, label, choices, asked.get(name, ""), on=name in asked, empty=every))
    return selects
