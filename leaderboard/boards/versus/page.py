"""Two models or judges side by side, as a page: measures with the interval of their difference, levels, items."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
from django.utils.safestring import SafeString

from bank.models import Sample
from judging.protocols.in_words import settings_in_words
from leaderboard import votes
from leaderboard.boards.behind.votes_page import verdict_words
from leaderboard.boards.versus.board import STRENGTH, LevelMeasure, Measure, Versus
from leaderboard.hidden import sealed_from, sealed_samples
from leaderboard.kinds import Kind
from leaderboard.lookups import items_with_samples, model_names, samples_by_id
from leaderboard.scope import Scope
from leaderboard.show import marks
from leaderboard.show.marks import Cell
from leaderboard.show.pickers import Select, pick
from leaderboard.show.table import P_VALUE, Column, Table, Write, axis_of, change, drawn, names, table, text
from leaderboard.view import Address
from leaderboard.votes import SPLIT, scores
from stats.figures import NONE, in_brackets, listed, percent, short, signed, signed_points, two, whole_percent

METHODS = {
    "mcnemar, exact": "McNemar, exact",
    "sign flips by group": "sign flips by sample",
    "williams t": "Williams",
    "difference of two pearson, fisher z, jackknife by group": "jackknife by sample",
    "difference of two spearman, fisher z, jackknife by group": "jackknife by sample",
}


@dataclass(frozen=True, slots=True)
class VersusPage:
    """``said``: the first measure in a sentence; ``paired``: whether the two have rows in common."""

    measures: Table
    levels: Table | None
    said: str
    paired: bool


def columns_in_words(versus: Versus, what: str, kind: Kind) -> str:
    """What the columns of the two say in the list where they differ."""
    first = versus.measures[0].measure if versus.measures else ""
    if what == "judges":
        return "A column is that judge's verdict; the last is what people said."
    if kind.pairwise:
        against = first.partition(" against ")[2]
        than = f"that of {against}" if against and against != "each other" else "the other's"
        return f"Won: its answer was judged better than {than}; not won: it tied or lost."
    if kind.keyed:
        return "Right: the answer is the key; a figure is the share of right answers over several passes."
    return f"A column is that model's own: {first[:1].lower()}{first[1:]}."


def yes_and_no(what: str, kind: Kind) -> tuple[str, str]:
    """What 1 and 0 are called there."""
    if what == "judges":
        return "agrees", "differs"
    return ("won", "not won") if kind.pairwise else ("right", "wrong")


@dataclass(frozen=True, slots=True)
class DifferRow:
    link: str
    sample: Sample
    pair: str  # the models whose answers are compared, in words
    a: str
    b: str
    people: str


def side_selects(address: Address, choices: Mapping[str, str] | Iterable[str]) -> list[Select]:
    sides = {"a": "One", "b": "Other"}
    return [pick(side, label, choices, address.params.get(side, ""), empty="choose") for side, label in sides.items()]


def judge_choices(scope: Scope) -> dict[str, str]:
    """Every judge and setting with verdicts of the view's kind."""
    newest = [runs[-1] for runs in votes.judge_groups(scope)]
    settings = Counter(run.judge_id for run in newest)

    def words(run: Any) -> str:
        more = f": {settings_in_words(run.protocol, run.settings)}" if settings[run.judge_id] > 1 else ""
        return f"{run.judge.titled}, run {run.pk}{more}"

    return {f"run-{run.pk}": words(run) for run in newest}


def build_versus_page(versus: Versus) -> VersusPage:
    return VersusPage(
        measures_table(versus.a, versus.b, versus.measures, versus.unit),
        _levels(versus) if versus.levels else None,
        _said(versus),
        any(row.difference.value is not None and row.measure != STRENGTH for row in versus.measures),
    )


def _levels(versus: Versus) -> Table:
    return table(
        [
            names("Level", lambda row: row.level or "No level", css=""),
            *change(_scale(versus.levels), _ticks(versus.unit), _writer(versus.unit)),
            Column("n", "n"),
        ],
        versus.levels,
        label="By level",
        caption="Difference by level",
        css="cmpt versus",
    )


def measures_table(a: str, b: str, measures: Sequence[Measure], unit: str) -> Table:
    """Measures of two, on one axis of their differences; strengths, of another unit, have one of their own."""
    known = [row for row in measures if row.difference.value is not None]
    shares = [row for row in known if row.measure != STRENGTH]
    scale = _scale(shares or known)

    def value(row: Measure, of: float | None) -> str:
        return signed(of) if row.measure == STRENGTH else percent(of) if unit == "points" else two(of)

    def difference(row: Measure) -> Cell:
        write = signed if row.measure == STRENGTH else _writer(unit)
        return Cell(write(row.difference.value), in_brackets(row.difference, write), strong=True)

    def bar(row: Measure) -> SafeString:
        own = row.measure == STRENGTH and bool(shares)
        axis = axis_of([row], "difference", 0.0, width=marks.WIDE) if own else scale
        axis = replace(axis, ticks=(0.0,)) if own else axis  # its lines would not be those of the head
        return marks.interval_bar(axis, *row.difference.ends)

    return table(
        [
            names("Measure", "measure", css=""),
            Column(a, lambda row: value(row, row.a), head="n name"),
            Column(b, lambda row: value(row, row.b), head="n name"),
            Column("Difference, 95%", difference),
            drawn(scale, _ticks(unit if shares else STRENGTH), bar),
            P_VALUE,
            text("Test", lambda row: METHODS.get(row.method, row.method) or NONE, css="dim"),
            Column("n", "n"),
        ],
        measures,
        label="Measures",
        caption=f"{a} against {b}: each measure with the 95% interval of the difference and p",
        css="versus",
    )


def _scale(rows: Sequence[Measure | LevelMeasure]) -> marks.Axis:
    """One axis with 0 on it."""
    if all(row.difference.value is None for row in rows):
        return marks.Axis(-1.0, 1.0, (0.0,), marks.WIDE)
    return axis_of(rows, "difference", 0.0, width=marks.WIDE, unit=0.01)


def _ticks(unit: str) -> Callable[[float], str]:
    return whole_percent if unit == "points" else short


def _writer(unit: str) -> Write:
    return signed_points if unit == "points" else signed


def _said(versus: Versus) -> str:
    """The first measure in a sentence."""
    first = versus.measures[0] if versus.measures else None
    if first is None or first.difference.value is None:
        return "They have nothing in common that could be compared."
    if first.significant is None:
        return "Too little in common for a test."
    others = [row.measure for row in versus.measures[1:] if row.significant]
    if not first.significant:
        said = f"{first.measure}: no significant difference between the two at the 5% level"
        return f"{said}. By {listed(others)} they do differ." if others else f"{said}."
    lower = "lower is better" in first.measure
    ahead = versus.a if (first.difference.value > 0) != lower else versus.b
    return f"{first.measure}: {ahead} is ahead, and by more than chance at the 5% level."


# ---- the items ----


def differing_items(versus: Versus, scope: Scope, address: Address) -> tuple[pd.DataFrame, int]:
    """The items where they differ that this viewer may see, the largest difference first; how many are held back, of
    all that are compared: how many of these differ would be a number about few.
    """
    table = versus.table
    if table.empty:
        return table, 0
    if not versus.single and not address.staff:
        return table.iloc[:0], len(table)
    hidden = _hidden(pd.Series(table.index, index=table.index), versus, scope, address)
    differing = table[~hidden & (table["apart"].fillna(0) > 0)]
    return differing.sort_values("apart", ascending=False, kind="stable"), int(hidden.sum())


def _hidden(ids: "pd.Series[int]", versus: Versus, scope: Scope, address: Address) -> "pd.Series[bool]":
    """Which of these items or samples this viewer may not see singly."""
    if versus.by == "sample":
        return ids.isin(set() if address.staff else sealed_samples(scope.benchmark))
    return ids.isin(sealed_from(scope))


def rows(address: Address, versus: Versus, table: pd.DataFrame, words: tuple[str, str]) -> list[DifferRow]:
    """Rows of ``differing_items``, with their samples and verdicts in words. ``words``: see ``yes_and_no``."""
    if table.empty:
        return []
    if versus.by == "sample":
        samples = samples_by_id(table.index)
        names: dict[int, list[str]] = {}
    else:
        items = items_with_samples(table.index)
        samples = {pk: item.sample for pk, item in items.items()}
        names = model_names(table.index)
    differing = []
    for pk, row in zip(table.index.tolist(), table.to_dict("records"), strict=True):
        item = pk if versus.by == "item" else row.get("item")
        has_item = item is not None and item == item  # NaN is not itself
        verdicts = [_in_words(row[side], names.get(pk, []), versus.unit, words) for side in ("a", "b", "people")]
        differing.append(
            DifferRow(
                address.to("leaderboard:item", int(item), **address.view()) if has_item else "",
                samples[pk],
                " and ".join(names.get(pk, [])),
                *verdicts,
            )
        )
    return differing


def _in_words(value: Any, names: Sequence[str], unit: str, words: tuple[str, str]) -> str:
    if value is None or value != value:
        return ""
    if isinstance(value, tuple):
        return scores.as_letters(value)
    if isinstance(value, str):
        return verdict_words(value, names) if value in ("first", "second", "tie", "undecided", SPLIT) else value
    if unit == "points":
        return dict(zip((1.0, 0.0), words, strict=True)).get(float(value), percent(float(value)))
    return f"{float(value):.1f}" if unit == "percent" else two(float(value))
