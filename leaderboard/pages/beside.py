"""A frozen view beside the same view as it is now: what moved, row by row."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from leaderboard.boards.judge_board import ALL, MAJORITY
from leaderboard.kinds import KINDS, Kind
from leaderboard.methods import PROVISIONAL
from leaderboard.models import Snapshot
from leaderboard.pages import marks
from leaderboard.pages.marks import Cell, Chip
from leaderboard.pages.models import model_pages, organisations
from leaderboard.pages.table import OUTSIDE, Column, Table, Write, axis_of, names, table, tiers
from leaderboard.rows import JSON, number_in
from stats.figures import MINUS, NONE, number_of, percent, rank_range, short, signed, two

MOST = 200  # rows shown, the first of the board


WAYS = {"up": "good", "down": "bad"}  # how a change is coloured


@dataclass(frozen=True, slots=True)
class Followed:
    """The number of a row that is followed: its field, what it is called, how it is written, the step of its axis."""

    name: str
    label: str
    write: Write
    unit: float = 1.0


@dataclass(frozen=True, slots=True)
class BesideRow:
    """A row of the frozen view, ``old``, and the same today, ``new``."""

    name: str
    old: JSON | None
    new: JSON | None
    rank: str
    rank_now: str
    change: str
    way: str  # up, down, or empty where the number is as it was

    @property
    def chip(self) -> str:
        return "new since" if self.old is None else "gone since" if self.new is None else ""

    @property
    def moved(self) -> bool:
        return bool(self.way or self.chip or self.rank_now != self.rank)


@dataclass(frozen=True, slots=True)
class Beside:
    """Every row beside today's, those alone that moved, how many these are, and the same in a sentence."""

    ranked: bool
    table: Table
    moved: Table
    n_moved: int
    said: str


def beside(frozen: Snapshot, now: Snapshot) -> Beside:
    """Every row of the frozen view in its order, then those that were added since."""
    followed = _followed(frozen)
    old, new = dict(_entries(frozen)), dict(_entries(now))
    rows = [
        _beside_row(name, followed, old.get(name), new.get(name))
        for name in [*old, *(name for name in new if name not in old)][:MOST]
    ]
    moved = [row for row in rows if row.moved]
    ranked = frozen.what == "models"
    columns = _beside_columns(followed, rows, ranked=ranked)
    tier_of = tiers((name, _tier(row)) for name, row in old.items()) if ranked else {}

    def drawn(rows: list[BesideRow]) -> Table:
        return table(
            columns,
            rows,
            row_css=lambda row: OUTSIDE["provisional"] if row.old is None else "",
            group=lambda row: tier_of.get(row.name),
            label="Frozen beside today",
            caption="The frozen view beside today's",
            css="lb lines besidetoday",
        )

    return Beside(ranked, drawn(rows), drawn(moved), len(moved), _said(rows, followed, old, new))


def _beside_columns(followed: Followed, rows: list[BesideRow], *, ranked: bool) -> list[Column[BesideRow]]:
    scale = axis_of(rows, lambda row: number_in(row.old, followed.name), unit=followed.unit)
    pages, made_by = (model_pages(row.name for row in rows), organisations()) if ranked else ({}, {})

    def rank(row: BesideRow) -> Cell:
        if row.old is None or row.rank == NONE:
            return Cell(row.rank)
        ends = rank_range(row.old.get("rank"), row.old.get("rank_low"), row.old.get("rank_high"))
        return Cell(ends or row.rank, title=f"Place {row.rank}")

    def name(row: BesideRow) -> Cell:
        chips = (Chip(row.chip, "on"),) if row.chip else ()
        return Cell(row.name, made_by.get(row.name, ""), link=pages.get(row.name, ""), chips=chips)

    def value_now(row: BesideRow) -> str:
        return followed.write(number_in(row.new, followed.name).value)

    def value(row: BesideRow) -> Cell:
        before = number_in(row.old, followed.name)
        return Cell(
            followed.write(before.value),
            f"now {value_now(row)}, {row.change}",
            bar=marks.interval_bar(scale, *before.ends, write=followed.write),
            small_css="phone-only",
        )

    def change(row: BesideRow) -> Cell:
        return Cell(row.change, css=WAYS.get(row.way, "dim3"), icon=f"arrow-{row.way}" if row.way else "")

    axis = marks.axis_head(scale, lambda value: short(value / followed.unit))
    rated = followed.name != "bt" and any(number_in(row.old, "bt").value is not None for row in rows)
    return [
        Column("Rank", rank, kind="rank", css="n rank", shown=ranked),
        names("Model" if ranked else "Row", name),
        Column(followed.label, value, kind="interval", css="", axis=axis),
        Column("Rating", lambda row: number_in(row.old, "bt").value, signed, css="n wide-only", shown=rated),
        Column("n", lambda row: (row.old or {}).get("n"), css="n dim"),
        Column("Now", value_now, css="n today wide-only"),
        Column("Change", change, css="n wide-only"),
        Column("Rank now", "rank_now", css="n dim", shown=ranked),
    ]


def _followed(snapshot: Snapshot) -> Followed:
    kind: Kind | None = KINDS.get(snapshot.made_from.get("kind", ""))
    if snapshot.what == "judges" and kind:
        return Followed("value", kind.metrics[0].label, two)
    if snapshot.what == "models" and kind:
        for shape in (kind.shape, *kind.shapes.values()):
            if any(row.get(shape.main.name) is not None for row in snapshot.rows):
                return Followed(shape.main.name, shape.main.label, shape.main.write, shape.unit)
        return Followed("bt", "Rating", signed)
    return Followed("value", "Agreement" if snapshot.what == "agreement" else "Bias", two)


def _entries(snapshot: Snapshot) -> Iterator[tuple[str, JSON]]:
    """The rows by name; of the numbers that a row of a board shows in several, the first."""
    kind = KINDS.get(snapshot.made_from.get("kind", ""))
    for row in snapshot.rows:
        if snapshot.what == "models":
            yield row["model"], row
        elif snapshot.what == "judges":
            main = kind.metrics[0].name if kind else row["metric"]
            if (row["source_dataset"], row["reference"], row["metric"]) == (ALL, MAJORITY, main):
                yield f"{row['judge']}, run {row['run']}", row
        elif snapshot.what == "agreement":
            if row["metric"] == "agreement":
                yield f"{row['a']} and {row['b']}", row
        else:
            run = f", run {row['run']}" if row.get("run") else ""
            yield f"{row['judge']}{run}: {row['bias'].replace('_', ' ')}", row


def _tier(row: JSON) -> int | None:
    return None if (row.get("n") or 0) < PROVISIONAL else row.get("tier")


def _rank(row: JSON | None) -> str:
    if row is None or row.get("rank") is None or (row.get("n") or 0) < PROVISIONAL:
        return NONE
    return str(row["rank"])


def _beside_row(name: str, followed: Followed, old: JSON | None, new: JSON | None) -> BesideRow:
    before, after = (number_in(row, followed.name).value for row in (old, new))
    return BesideRow(name, old, new, _rank(old), _rank(new), *_change(before, after, followed))


def _change(before: float | None, after: float | None, followed: Followed) -> tuple[str, str]:
    """The change as it is written, and its direction; a change in digits that are not shown is none."""
    if before is None or after is None:
        return NONE, ""
    if followed.write(before) == followed.write(after):
        return "same", ""
    text = followed.write(abs(after - before))
    return (f"+{text.lstrip('+')}", "up") if after > before else (f"{MINUS}{text.lstrip('+')}", "down")


def _said(rows: list[BesideRow], followed: Followed, old: Mapping[str, JSON], new: Mapping[str, JSON]) -> str:
    """``6 of 14 values moved, by 1.0 at most; 1 row was added; no rank changed.``"""
    moved = [row for row in rows if row.way]
    added, gone = (sum(row.chip == chip for row in rows) for chip in ("new since", "gone since"))
    ranks = sum(row.rank != row.rank_now for row in rows if not row.chip)
    if not moved and not added and not gone and not ranks:
        return "Same as today."
    parts = ["no value moved"]
    if moved:
        most = max(abs(new[row.name][followed.name] - old[row.name][followed.name]) for row in moved)
        points = " points" if followed.write is percent else ""
        parts = [f"{len(moved)} of {len(old)} values moved, by {followed.write(most).lstrip('+')}{points} at most"]
    parts += [f"{number_of(added, 'row')} {'was' if added == 1 else 'were'} added"] if added else []
    parts += [f"{number_of(gone, 'row')} {'is' if gone == 1 else 'are'} gone"] if gone else []
    if any(row.rank != NONE for row in rows):
        parts.append(f"{number_of(ranks, 'rank')} changed" if ranks else "no rank changed")
    return f"Since then {'; '.join(parts)}."
