"""The board of models by pairs as a page."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from django.urls import reverse
from django.utils.safestring import SafeString

from bank.database import chunks
from bank.models import EvaluatedModel
from leaderboard.boards.base import ModelRow as Row
from leaderboard.boards.base import ModelsBoard
from leaderboard.boards.pairs import PairRow, PairsBoard, Tally
from leaderboard.definitions import LENGTH, NO_CONTROL
from leaderboard.figures import (
    NONE,
    count,
    in_brackets,
    interval,
    listed,
    percent,
    rank_range,
    signed,
    span,
    tick,
    told,
    two,
    whole,
)
from leaderboard.methods import PROVISIONAL
from leaderboard.pages import marks
from leaderboard.pages.address import Address, Choice, Select
from leaderboard.pages.table import BLANK, RANK, Cell, Head, Sorting, ends_of_groups, row_css, tints
from leaderboard.rows import UNKNOWN, Number

R = TypeVar("R", bound=Row)
MOST_LEVELS = 4  # beside both LC % and length: more would cut the table off; names then say the length
COLUMNS = (RANK, "model", "win_rate", "win_rate_lc", "preference", "n", "mean_length", "bt", "held", "elo")


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


@dataclass(frozen=True, slots=True)
class ModelRow:
    """One row as it is shown."""

    name: str
    organisation: str
    page: str  # the model's own
    link: str
    rank: str
    ranks: str  # the range
    kind: str  # "", "anchor" or "provisional"
    css: str
    win: str
    win_link: str
    win_title: str
    bar: SafeString
    lc: str
    lc_title: str
    preference: Cell
    n: str
    failed: str
    failed_title: str
    length: Cell
    bt: str
    bt_title: str
    held: Cell
    elo: str
    elo_title: str
    levels: list[Cell] = field(default_factory=list)


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
    has_lc: bool
    has_preference: bool
    has_length: bool
    has_elo: bool
    has_held: bool
    held_word: str
    elo_css: str
    lc_css: str
    preference_css: str
    clustered_by: str
    taken_out: str
    worth: SafeString  # what was taken out: a plot, and in words
    worth_in_words: list[str]


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
        return None if row.rank is None else (row.place, row.rank)
    if column == "model":
        return row.model.casefold()
    if column in ("n", "mean_length"):
        return getattr(row, column)
    if column.startswith("level:"):
        level = row.level(column.removeprefix("level:"))
        return level and level.number(number).value
    return row.number(column).value


def organisations() -> dict[str, str]:
    """By model, where it is known."""
    return dict(EvaluatedModel.objects.exclude(organisation="").values_list("name", "organisation"))


def model_pages(names: Iterable[str]) -> dict[str, str]:
    """Where the page of each model is; nothing for a variant of one."""
    return {
        name: reverse("leaderboard:model-detail", args=[pk])
        for some in chunks(names)
        for name, pk in EvaluatedModel.objects.filter(name__in=some).values_list("name", "pk")
    }


def page_of(address: Address, board: PairsBoard, *, anchor: str, beside: PairsBoard | None = None) -> ModelsPage:
    """Everything that the table and the plot beside it show. ``beside``: see ``Ratings.of``."""
    levels = levels_of(board)
    ratings = Ratings.of(board, beside)
    sorting = Sorting.of(address, {*COLUMNS, *(f"level:{name}" for name in levels)})

    def sorted_by(row: PairRow) -> Any:
        if sorting.column in ("bt", "held"):
            return (ratings.plain if sorting.column == "bt" else ratings.held).get(row.model, UNKNOWN).value
        return value_of(row, sorting.column, "win_rate")

    rows = sorted_rows(board.rows, sorting, sorted_by, anchor)
    settled = [row for row in rows if not is_provisional(row, anchor)]
    scale = marks.axis([end for row in settled or rows for end in row.win_rate.ends], unit=0.01)
    tinted = _tints(settled, anchor) if sorting.is_usual else {}
    made_by, pages = organisations(), model_pages(row.model for row in rows)
    table_rows = [
        _row(
            address,
            row,
            anchor=anchor,
            scale=scale,
            levels=levels,
            organisation=made_by.get(row.model, ""),
            page=pages.get(row.model, ""),
            ratings=ratings,
            tinted=tinted.get(row.model, False),
            last=last,
        )
        for row, last in zip(rows, ends_of_groups([row.model for row in rows], tinted), strict=True)
    ]
    has_lc = any(row.win_rate_lc.value is not None for row in settled)
    return ModelsPage(
        heads=_heads(sorting, scale, board, ratings),
        levels=[_level_head(sorting, name, settled) for name in levels],
        rows=table_rows,
        forest=forest(board, anchor, ratings, table_rows),
        ranked=sum(row.rank is not None and row.model != anchor for row in settled),
        provisional=len(rows) - len(settled),
        by_rank=sorting.is_usual,
        has_wins=any(row.win_rate.value is not None for row in rows),
        has_lc=has_lc,
        has_preference=any(row.preference.value is not None for row in settled),
        has_length=len(levels) <= MOST_LEVELS or not has_lc,
        has_elo=any(row.elo.value is not None for row in rows),
        has_held=ratings.both,
        held_word=ratings.what,
        elo_css=_where_wide("elo", sorting, ratings),
        lc_css=_where_wide("win_rate_lc", sorting, ratings),
        preference_css=_where_wide("preference", sorting, ratings),
        clustered_by="picture or prompt" if board.clustered_by == "group" else "item, prompts taken as fixed",
        taken_out=taken_out(board),
        worth=_worth(board),
        worth_in_words=_worth_in_words(board),
    )


def _where_wide(column: str, sorting: Sorting, ratings: Ratings) -> str:
    """The class of a column that a narrow screen leaves out for the two ratings, unless it is sorted by."""
    return "n len" if ratings.both and sorting.column != column else "n"


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
        marks.ForestRow(TWICE[name], row.twice.value, row.twice.low, row.twice.high)
        for name, row in coefficients.items()
        if row.twice.value is not None
    ]
    title = "What an answer gains by twice as much, with 95% intervals; the sentences below say the same"
    return marks.forest(rows, title=title, write=tick) if rows else BLANK


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


def levels_of(board: PairsBoard) -> list[str]:
    """The level columns; none where the only one would repeat the whole."""
    names = list(board.rows[0].levels) if board.rows else []
    return [] if names == [""] else names


def _tints(rows: Sequence[PairRow], anchor: str) -> dict[str, bool]:
    """Tints by tier, without the anchor, which belongs to no group."""
    return tints((row.model, row.tier) for row in rows if row.model != anchor)


def _row(
    address: Address,
    row: PairRow,
    *,
    anchor: str,
    scale: marks.Axis,
    levels: list[str],
    organisation: str,
    page: str,
    ratings: Ratings,
    tinted: bool,
    last: bool,
) -> ModelRow:
    provisional = is_provisional(row, anchor)
    bt, held = (UNKNOWN if provisional else of.get(row.model, UNKNOWN) for of in (ratings.plain, ratings.held))
    kind = "anchor" if row.model == anchor else "provisional" if provisional else ""
    own = address.view() | {"model": row.model}
    won = row.win_rate.value is not None
    return ModelRow(
        name=row.model,
        organisation=organisation,
        page=page,
        link=address.to("leaderboard:votes", **own),
        rank=NONE if provisional or row.rank is None else str(row.place),
        ranks="" if provisional else rank_range(row.place, row.rank_low, row.rank_high),
        kind=kind,
        css=row_css(kind, tinted=tinted, last=last),
        win=told(row.win_rate, percent),
        win_link=address.to("leaderboard:votes", **own, outcome="win") if won else "",
        win_title=in_words(row) if won else "",
        bar=marks.interval_bar(scale, *row.win_rate.ends, write=percent, provisional=provisional),
        lc=NONE if provisional else percent(row.win_rate_lc.value),
        lc_title="; ".join(dict.fromkeys(filter(None, [interval(row.win_rate_lc, percent), row.win_rate_lc.reason]))),
        preference=Cell(NONE if provisional else two(row.preference.value), title=interval(row.preference, two)),
        n=whole(row.n),
        failed=failed(row.failures),
        failed_title=extremes("Win %", row.win_rate_worst, row.win_rate_best),
        length=length_cell(row),
        bt=signed(bt.value),
        bt_title=interval(bt, signed),
        held=Cell(signed(held.value), title=interval(held, signed)),
        elo=NONE if provisional else whole(row.elo.value),
        elo_title=interval(row.elo, whole),
        levels=[_level(address, row, level, own, provisional=provisional) for level in levels],
    )


def _level(address: Address, row: PairRow, name: str, own: dict[str, str | None], *, provisional: bool) -> Cell:
    if provisional:
        return Cell(NONE, title=f"fewer than {PROVISIONAL} items")
    level = row.levels.get(name)
    if level is None or level.win_rate.value is None:
        return Cell(NONE)
    path = " / ".join(part for part in (address.params.get("level", ""), name) if part)
    return Cell(
        text=percent(level.win_rate.value),
        link=address.to("leaderboard:votes", **(own | {"level": path})),
        title=in_words(level),
        bar=marks.micro_bar(*(count or 0.0 for count in level.outcomes)),
    )


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


def length_cell(row: Row) -> Cell:
    """The mean length of a model's answers."""
    if row.mean_length is None:
        return Cell(NONE)
    tokens = f"{whole(row.mean_tokens)} tokens, " if row.mean_tokens is not None else ""
    return Cell(whole(row.mean_length), title=f"Answers have a mean of {tokens}{whole(row.mean_length)} characters")


# ---- heads ----


def _heads(sorting: Sorting, scale: marks.Axis, board: PairsBoard, ratings: Ratings) -> dict[str, Head]:
    unit = board.rows[0].length_unit if board.rows else ""
    ticks = marks.axis_head(scale, lambda value: whole(100 * value))
    return {
        **rank_heads(sorting),
        "win": sorting.head(
            "Win %", "win_rate", marks=ticks, title="Share of wins; what a tie counts is said below the table"
        ),
        "lc": sorting.head(
            "LC %",
            "win_rate_lc",
            title=f"Length-controlled: wins if answers were as long as the anchor's, in {unit}; a tie counts half",
        ),
        "preference": sorting.head(
            "Preference", "preference", title="Mean preference for the model's answers, from 0 to 1; 0.5: no better"
        ),
        "n": sorting.head("n", "n", title="Items"),
        "length": length_head(sorting),
        "bt": sorting.head("Rating", "bt", title="Bradley–Terry strength: natural log of the odds, mean 0"),
        "held": sorting.head(
            ratings.what.capitalize(),
            "held",
            under="held equal",
            title=f"The rating if all answers had the same {ratings.what}",
        ),
        "elo": sorting.head("Elo", "elo", title="Follows the last votes: read it beside the rating, not instead of it"),
    }


def length_head(sorting: Sorting) -> Head:
    return sorting.head("Length", "mean_length", title="Mean length of the model's answers, in characters")


def rank_heads(sorting: Sorting) -> dict[str, Head]:
    better = "1 + the number of models that are significantly better; the 95% range of this model by itself"
    return {"rank": sorting.head("Rank", RANK, title=better), "model": sorting.head("Model", "model")}


RANK_IN_WORDS = (
    "is shared, like a tint, where tests at 5% cannot tell models apart, and never better than a stronger model's; "
    "small figures are its 95% range, which holds for each model by itself."
)


def reading(page: ModelsPage, anchor: str) -> list[tuple[str, str]]:
    """What the columns are: a term and what is said of it."""
    against, held = anchor or "the other answer", page.held_word
    words = [
        (True, "Rank", RANK_IN_WORDS),
        (
            page.has_wins,
            "Win %",
            f"is the share of its n items that a model won against {against}, with a 95% interval.",
        ),
        (page.has_lc, "LC %", f"is Win % if answers were as long as those of {against}; a tie counts half."),
        (
            page.has_preference,
            "Preference",
            "is how much better its answers were, the mean over items: 1 all much better, 0.5 no better, 0 much worse.",
        ),
        (
            True,
            "Rating",
            "is Bradley–Terry strength, mean 0: of two models, 1 ahead wins 73% of decided pairs.",
        ),
        (page.has_held, f"{held.capitalize()} held equal", f"is the rating if all answers had the same {held}."),
        (page.has_elo, "Elo", "follows the last votes: read it beside the rating, not instead of it."),
        (bool(page.levels), "", "A column by level shows Win % there, above won, tied and lost as parts of a bar."),
        (True, "", "A click on a head sorts, a click on a number opens the items behind it."),
    ]
    return [(term, said) for shown, term, said in words if shown]


def _level_head(sorting: Sorting, name: str, rows: list[PairRow]) -> Head:
    counts = sorted(level.n for row in rows if (level := row.levels.get(name)) and level.n)
    under = span(counts[0], counts[-1]) if counts else ""
    label = name.replace("/", "/\u200b") or "No level"  # may break there
    return sorting.head(label, f"level:{name}", under=under, title=f"{name or label}: items per model below")


def forest(board: PairsBoard, anchor: str, ratings: Ratings, table: Sequence[ModelRow] = ()) -> SafeString:
    """Ratings with their intervals, in the order of the ranks; empty where there is none. With something held equal,
    that is the dot, and the plain rating an open one. ``table``: the rows whose links the dots have.
    """
    main = ratings.held if ratings.both else ratings.plain or ratings.held
    rated = [
        row for row in board.rows if main.get(row.model, UNKNOWN).value is not None and not is_provisional(row, anchor)
    ]
    rated.sort(key=lambda row: (row.place or 0, -(row.bt.value or 0.0)))
    if not rated:
        return BLANK
    tinted, links = _tints(rated, anchor), {row.name: row for row in table}
    rows = []
    for row in rated:
        number, plain = main[row.model], ratings.plain.get(row.model, UNKNOWN).value if ratings.both else None
        link = links.get(row.model)
        said = (
            f"{signed(number.value)} {in_brackets(number, signed)}".strip(),
            f"{signed(plain)} plain, answers of {whole(row.mean_length)} characters" if plain is not None else "",
            in_words(row) if row.win_rate.value is not None else "",
        )
        rows.append(
            marks.ForestRow(
                row.model,
                number.value or 0.0,
                number.low,
                number.high,
                tinted.get(row.model, False),
                quiet=row.model == anchor,
                plain=plain,
                said=said,
                link=(link.page or link.link) if link else "",
                rows=link.link if link else "",
            )
        )
    held = f" with {ratings.what} held equal" if ratings.both else ""
    title = f"Ratings{held}, with 95% intervals; the table holds the same numbers"
    return marks.forest(rows, title=title, write=_tick)


def _tick(value: float) -> str:
    return "0" if abs(value) < 1e-9 else signed(value).removesuffix("0").removesuffix(".0")


# ---- which models are shown ----


FILTERS = ("weights", "organisation")
WEIGHTS = {"open": "open", "closed": "closed"}


@dataclass(frozen=True, slots=True)
class Shown:
    """The board with the rows that are shown, a note about it, and the controls."""

    board: ModelsBoard
    note: str
    selects: list[Select]


def shown_of(address: Address, board: ModelsBoard) -> Shown:
    """The rows of the address' models; a control appears where there is something to choose from."""
    models = EvaluatedModel.objects.filter(name__in=[row.model for row in board.rows])
    facts = {
        name: (organisation, is_open)
        for name, organisation, is_open in models.values_list("name", "organisation", "open")
    }
    weights, organisation = (address.params.get(name, "") for name in FILTERS)
    rows = [row for row in board.rows if _matches(facts.get(row.model, ("", None)), weights, organisation)]
    note = ""
    if weights or organisation:
        note = (
            f"{len(rows)} of {len(board.rows)} models are shown. Ranks, strengths and intervals are those among all "
            "models: the filter hides rows and does not recompute anything."
        )
    return Shown(replace(board, rows=rows), note, _selects(facts, weights, organisation))


def _matches(facts: tuple[str, bool | None], weights: str, organisation: str) -> bool:
    maker, is_open = facts
    if weights and is_open is not {"open": True, "closed": False}.get(weights, "no such weights"):
        return False
    return not organisation or maker == organisation


def _selects(facts: dict[str, tuple[str, bool | None]], weights: str, organisation: str) -> list[Select]:
    selects = []
    if weights or any(is_open is not None for _, is_open in facts.values()):
        choices = [Choice("", "open and closed"), *(Choice(value, label) for value, label in WEIGHTS.items())]
        selects.append(Select("weights", "Weights", [("", choices)], weights, on=bool(weights)))
    names = sorted({maker for maker, _ in facts.values() if maker}, key=str.casefold)
    if organisation or len(names) > 1:
        choices = [Choice("", "all"), *(Choice(name, name) for name in names)]
        selects.append(Select("organisation", "Organisation", [("", choices)], organisation, on=bool(organisation)))
    return selects
