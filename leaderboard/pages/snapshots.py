"""A frozen view, the history of a benchmark's views, and what changed between two."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.safestring import SafeString

from leaderboard.figures import NONE, signed
from leaderboard.files import columns, three
from leaderboard.kinds import KINDS
from leaderboard.models import Snapshot
from leaderboard.pages import marks, plots
from leaderboard.pages.address import Address, settings_in_words
from leaderboard.pages.provenance import Fact
from leaderboard.rows import JSON

NAMES = {"models": "Models", "judges": "Judges", "agreement": "Agreement", "bias": "Bias"}
# What tells the rows of a board apart, and the numbers that are followed from one snapshot to the next.
KEYS = {
    "models": ("model",),
    "judges": ("judge", "run", "source_dataset", "reference", "metric"),
    "agreement": ("a", "b", "metric"),
    "bias": ("judge", "run", "bias"),
}
FOLLOWED = ("bt", "score", "circular", "vanilla", "accuracy", "win_rate", "value")


@dataclass(frozen=True, slots=True)
class Table:
    heads: list[str]
    rows: list[list[str]]


def table_of(snapshot: Snapshot) -> Table:
    """The rows as the command prints them."""
    rows = snapshot.rows
    shown = columns(snapshot.what, rows)
    return Table([name for name, _ in shown], [[cell(row) for _, cell in shown] for row in rows])


def title_of(snapshot: Snapshot) -> str:
    """``Models, pairs, judged by gpt-4``."""
    made = snapshot.made_from
    parts = [
        NAMES.get(snapshot.what, snapshot.what),
        kind.title.lower() if (kind := KINDS.get(made.get("kind", ""))) else "",
    ]
    if snapshot.what == "models" and made.get("source"):
        parts.append(f"by {made['source']}")
    parts += [f"{name.replace('_', ' ')} {snapshot.scope[name]}" for name in FILTERS if snapshot.scope.get(name)]
    return ", ".join(part for part in parts if part)


FILTERS = ("level", "question_type", "split", "campaign", "anchor")


def facts(snapshot: Snapshot) -> list[Fact]:
    made = snapshot.made_from
    found = [Fact("Benchmark", f"{snapshot.benchmark.title} {snapshot.benchmark.version}")]
    for run in made.get("runs", []):
        said = settings_in_words(run["protocol"], run["settings"])
        found.append(Fact(f"{run['judge']}, run {run['run']}", f"{run['model'] or 'model not told'}; {said}"))
        if run["prompt"]:
            version = run["prompt_version"] or ""
            found.append(Fact("Prompt", f"{run['prompt']} {version}, {run['prompt_sha256'][:16]}", mono=True))
    if (kind := KINDS.get(made.get("kind", ""))) and kind.pairwise:
        found.append(Fact("Majority", made["majority"]))
    found += [Fact(name.capitalize(), f"{n:,}") for name, n in made.get("counted", {}).items()]
    found.append(Fact("Methods", f"version {made.get('methods')}"))
    found.append(Fact("Fingerprint", snapshot.fingerprint[:16], mono=True))
    return [*found, Fact("Computed", "", at=snapshot.computed_at)]


# ---- history ----


@dataclass(frozen=True, slots=True)
class Point:
    """One number of a model or judge at one snapshot."""

    snapshot: Snapshot
    value: str
    interval: str
    rank: str
    bar: SafeString


def same_view(one: Snapshot, other: Snapshot) -> bool:
    return (one.what, one.benchmark_id, one.scope) == (other.what, other.benchmark_id, other.scope)


def entries_of(snapshot: Snapshot) -> list[str]:
    """The names of the rows, as ``entry`` in an address has them."""
    return [entry_of(snapshot.what, row) for row in snapshot.rows]


def entry_of(what: str, row: JSON) -> str:
    return ", ".join(str(row[name]) for name in KEYS[what] if row.get(name) is not None)


@dataclass(frozen=True, slots=True)
class Line:
    """The snapshots of a benchmark; one of them, those of its view (oldest first), and the row that is followed."""

    every: list[Snapshot]
    chosen: Snapshot | None
    same: list[Snapshot]
    entry: str


def line_of(address: Address) -> Line:
    """What ``of`` and ``entry`` of an address ask for; else the newest snapshot and its first row."""
    every = list(Snapshot.objects.visible_to(address.viewer).filter(benchmark=address.benchmark).select_related("by"))
    chosen = next((one for one in every if one.code == address.given.get("of")), every[0] if every else None)
    if chosen is None:
        return Line(every, None, [], "")
    same = sorted((one for one in every if same_view(one, chosen)), key=lambda one: one.pk)
    return Line(every, chosen, same, address.given.get("entry", "") or entries_of(chosen)[0])


def plot_of(line: Line) -> SafeString:
    """The followed number over the snapshots of a line; empty where no snapshot has it."""
    name, found = _followed(line.same, line.entry)
    moments = [
        plots.Moment(f"{one.computed_at:%Y-%m-%d}", row[name], row.get(f"{name}_low"), row.get(f"{name}_high"))
        for one, row in found
        if row.get(name) is not None
    ]
    title = f"{line.entry}: {name.replace('_', ' ')} over snapshots, 95% intervals"
    return plots.over_time(moments, title=title, write=_axis_tick)


def _axis_tick(value: float) -> str:
    return f"{value:g}".replace("-", "−")


def _followed(snapshots: Sequence[Snapshot], entry: str) -> tuple[str, list[tuple[Snapshot, JSON]]]:
    found = [(one, row) for one in snapshots for row in one.rows if entry_of(one.what, row) == entry]
    return next((name for name in FOLLOWED for _, row in found if row.get(name) is not None), ""), found


def history(snapshots: Sequence[Snapshot], entry: str) -> tuple[str, list[Point], SafeString]:
    """The followed number of one row over snapshots of the same view, oldest first; its name, and the axis."""
    name, found = _followed(snapshots, entry)
    ends = [row.get(end) for _, row in found for end in (name, f"{name}_low", f"{name}_high")]
    scale = marks.axis(ends, width=marks.WIDE)
    points = [
        Point(
            one,
            three(row.get(name)),
            "" if row.get(f"{name}_low") is None else f"{three(row[f'{name}_low'])} to {three(row[f'{name}_high'])}",
            str(row.get("rank") or NONE),
            marks.interval_bar(scale, row.get(name), row.get(f"{name}_low"), row.get(f"{name}_high")),
        )
        for one, row in found
    ]
    return name.replace("_", " "), points, marks.axis_head(scale, _axis_tick)


# ---- changes ----


@dataclass(frozen=True, slots=True)
class ChangeRow:
    name: str
    before: str
    after: str
    change: str
    rank: str
    kind: str  # changed, new, gone


def changes(before: Snapshot, after: Snapshot) -> list[ChangeRow]:
    """Rows whose followed number is another one, that are new, or that are gone."""
    old = {entry_of(before.what, row): row for row in before.rows}
    new = {entry_of(after.what, row): row for row in after.rows}
    found = []
    for name in [*new, *(name for name in old if name not in new)]:
        one, other = old.get(name), new.get(name)
        key = next((key for key in FOLLOWED if key in (other or one or {})), "")
        values = [None if row is None else row.get(key) for row in (one, other)]
        ranks = [None if row is None else row.get("rank") for row in (one, other)]
        if one is not None and other is not None and values[0] == values[1] and ranks[0] == ranks[1]:
            continue
        change = "" if None in values else signed(values[1] - values[0])  # type: ignore[operator]
        kind = "new" if one is None else "gone" if other is None else "changed"
        moved = "" if ranks[0] == ranks[1] else f"{ranks[0] or NONE} → {ranks[1] or NONE}"
        found.append(ChangeRow(name, three(values[0]), three(values[1]), change, moved, kind))
    return found


def causes(before: Snapshot, after: Snapshot) -> list[str]:
    """What made the difference: runs, rule, methods, counts."""
    one, other = before.made_from, after.made_from
    said = []
    runs = [{run["run"]: run for run in made.get("runs", [])} for made in (one, other)]
    for pk in runs[1].keys() - runs[0].keys():
        said.append(f"Run {pk} of {runs[1][pk]['judge']} is new.")
    for pk in runs[0].keys() - runs[1].keys():
        said.append(f"Run {pk} of {runs[0][pk]['judge']} is gone.")
    for name, words in (("methods", "Version of the methods"), ("majority", "Majority rule")):
        if one.get(name) != other.get(name):
            said.append(f"{words}: {one.get(name)}, then {other.get(name)}.")
    for name in other.get("counted", {}):
        numbers = [made.get("counted", {}).get(name) for made in (one, other)]
        if numbers[0] != numbers[1]:
            said.append(f"{name.capitalize()}: {numbers[0]}, then {numbers[1]}.")
    return said


def as_json(snapshot: Snapshot) -> dict[str, Any]:
    """The whole snapshot for scripts."""
    return {
        "code": snapshot.code,
        "benchmark": str(snapshot.benchmark),
        "what": snapshot.what,
        "scope": snapshot.scope,
        "fingerprint": snapshot.fingerprint,
        "computed_at": snapshot.computed_at.isoformat(),
        "made_from": snapshot.made_from,
        **snapshot.tables,
    }
