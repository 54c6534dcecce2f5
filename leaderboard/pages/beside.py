"""A frozen view beside the same view as it is now: what moved, row by row."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from django.utils.safestring import SafeString

from leaderboard.boards.judge_board import ALL, MAJORITY
from leaderboard.figures import MINUS, NONE, number_of, percent, rank_range, signed, two, whole
from leaderboard.kinds import KINDS, Kind
from leaderboard.methods import PROVISIONAL
from leaderboard.models import Snapshot
from leaderboard.pages import marks
from leaderboard.pages.models import model_pages, organisations
from leaderboard.pages.table import ends_of_groups, row_css, tints
from leaderboard.rows import JSON

MOST = 200  # rows shown, the first of the board

Write = Callable[[float | None], str]


@dataclass(frozen=True, slots=True)
class Followed:
    """The number of a row that is followed: its field, what it is called, how it is written, the step of its axis."""

    name: str
    label: str
    write: Write
    unit: float = 1.0


@dataclass(frozen=True, slots=True)
class BesideRow:
    name: str
    page: str
    organisation: str
    css: str
    rank: str
    ranks: str
    value: str
    bar: SafeString
    rating: str
    n: str
    now: str
    change: str
    way: str  # up, down, or empty where the number is as it was
    rank_now: str
    chip: str  # of a row that is new, or gone

    @property
    def icon(self) -> str:
        return f"arrow-{self.way}"


@dataclass(frozen=True, slots=True)
class Beside:
    """``moved``: the rows that are not as they were; ``said``: the same in a sentence."""

    label: str
    axis: SafeString
    ranked: bool
    rated: bool  # besides the number that is followed, rows have a rating
    rows: list[BesideRow]
    moved: list[BesideRow]
    said: str


def beside(frozen: Snapshot, now: Snapshot) -> Beside:
    """Every row of the frozen view in its order, then those that were added since."""
    followed = _followed(frozen)
    old, new = dict(_entries(frozen)), dict(_entries(now))
    names = [*old, *(name for name in new if name not in old)][:MOST]
    ends = [row.get(f"{followed.name}{end}") for row in old.values() for end in ("", "_low", "_high")]
    scale = marks.axis(ends, unit=followed.unit)
    ranked = frozen.what == "models"
    tinted = tints((name, _tier(row)) for name, row in old.items()) if ranked else {}
    pages, made_by = (model_pages(names), organisations()) if ranked else ({}, {})
    rows = []
    for name, last in zip(names, ends_of_groups(names, tinted), strict=True):
        css = row_css("" if name in old else "provisional", tinted=tinted.get(name, False), last=last)
        row = _row(name, followed, scale, old.get(name), new.get(name), css, pages.get(name, ""), made_by.get(name, ""))
        rows.append(row)
    moved = [row for row in rows if row.way or row.chip or (row.rank_now != row.rank)]
    return Beside(
        followed.label,
        marks.axis_head(scale, lambda value: f"{value / followed.unit:g}".replace("-", MINUS)),
        ranked,
        followed.name != "bt" and any(row.get("bt") is not None for row in old.values()),
        rows,
        moved,
        _said(rows, followed, old, new),
    )


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
    return str(row.get("tier") or row["rank"])


def _row(
    name: str,
    followed: Followed,
    scale: marks.Axis,
    old: JSON | None,
    new: JSON | None,
    css: str,
    page: str,
    organisation: str,
) -> BesideRow:
    before, after = (row.get(followed.name) if row else None for row in (old, new))
    low, high = (old.get(f"{followed.name}{end}") if old else None for end in ("_low", "_high"))
    change, way = _change(before, after, followed)
    ranks = rank_range(old.get("tier"), old.get("rank_low"), old.get("rank_high")) if old else ""
    return BesideRow(
        name=name,
        page=page,
        organisation=organisation,
        css=css,
        rank=_rank(old),
        ranks=ranks if _rank(old) != NONE else "",
        value=followed.write(before),
        bar=marks.interval_bar(scale, before, low, high, write=followed.write),
        rating=signed(old.get("bt")) if old else NONE,
        n=whole(old.get("n")) if old else NONE,
        now=followed.write(after),
        change=change,
        way=way,
        rank_now=_rank(new),
        chip="new since" if old is None else "gone since" if new is None else "",
    )


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
