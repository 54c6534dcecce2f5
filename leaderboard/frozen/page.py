"""A snapshot, the history of a benchmark's snapshots, and what changed between two."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Max
from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import SafeString

from annotations.models import Label
from bank import guard
from judging.judgments.analyses import sees_usage
from judging.models import Run
from judging.protocols.in_words import settings_in_words
from leaderboard.kinds import KINDS
from leaderboard.models import Snapshot
from leaderboard.rows import JSON, Number, number_in
from leaderboard.scope import DEFINITIONS
from leaderboard.show import marks, plots
from leaderboard.show.files import columns, three
from leaderboard.show.marks import Cell
from leaderboard.show.provenance import verdicts_link
from leaderboard.show.table import Column, Table, axis_of, interval_of, names, table, text
from leaderboard.view import PEOPLE_IN_WORDS, RULES_IN_WORDS, Address
from stats.figures import NONE, number_of, percent, short, signed, with_interval

NAMES = {"models": "Models", "judges": "Judges", "agreement": "Agreement", "bias": "Bias"}
# The columns that identify a row of a board, and the numbers that are tracked from one snapshot to the next.
KEYS = {
    "models": ("model",),
    "judges": ("judge", "run", "source_dataset", "reference", "metric"),
    "agreement": ("a", "b", "metric"),
    "bias": ("judge", "run", "bias"),
}
NUMBERS = {"bt": "rating", "win_rate": "win rate, %", "circular": "circular accuracy, %", "vanilla": "accuracy, %"}
SHARES = ("circular", "vanilla", "accuracy", "win_rate")
FOLLOWED = ("bt", "score", "circular", "vanilla", "accuracy", "win_rate", "value")


def rows_table(snapshot: Snapshot) -> Table:
    """The rows as the command prints them."""
    printed = columns(snapshot.what, snapshot.rows)
    return table(
        [text(f"{name[:1].upper()}{name[1:]}", cell, css="num", head="") for name, cell in printed],
        snapshot.rows,
        label="Rows",
        caption="Rows of the snapshot",
        css="cmpt frozen",
    )


def title_of(snapshot: Snapshot) -> str:
    """``Models, pairs, judged by gpt-4``."""
    inputs = snapshot.made_from
    parts = [
        NAMES.get(snapshot.what, snapshot.what),
        kind.title.lower() if (kind := KINDS.get(inputs.get("kind", ""))) else "",
    ]
    if snapshot.what == "models" and inputs.get("source"):
        parts.append(f"by {PEOPLE_IN_WORDS.get(inputs['source'], inputs['source'])}")
    parts += [f"{name.replace('_', ' ')} {snapshot.scope[name]}" for name in FILTERS if snapshot.scope.get(name)]
    return ", ".join(part for part in parts if part)


FILTERS = ("level", "question_type", "split", "campaign", "anchor")


def made_of(snapshot: Snapshot) -> dict[str, Any]:
    """What made it, as ``_facts.html`` lists it: runs with their settings, the rule, definitions."""
    inputs = snapshot.made_from
    kind = KINDS.get(inputs.get("kind", ""))
    asked = ((definition, snapshot.scope.get(name, "")) for name, definition in DEFINITIONS.items())
    return {
        "snapshot": snapshot,
        "runs": [(run, settings_in_words(run["protocol"], run["settings"])) for run in inputs.get("runs", [])],
        "rule": RULES_IN_WORDS.get(inputs["majority"], inputs["majority"]) if kind and kind.pairwise else "",
        "counted": list(inputs.get("counted", {}).items()),
        "definitions": [(each.label, each.ways[value].label) for each, value in asked if value in each.ways],
    }


def citation_of(title: str, key: str, permalink: str) -> str:
    """BibTeX of a page that goes on changing, as of today."""
    today = timezone.now()
    note = f"as of {today:%-d %B %Y}"
    return _bibtex(key.replace("@", "-"), title, year=f"{today:%Y}", note=note, url=permalink)


def _bibtex(key: str, title: str, **more: str) -> str:
    fields = {"title": re.sub(r"([&%$#_{}])", r"\\\1", title), "howpublished": "evalsite leaderboard"} | more
    said = ",\n".join(f"  {name} = {{{value}}}" for name, value in fields.items())
    return f"@misc{{evalsite-{key},\n{said}\n}}"


def citations(snapshot: Snapshot, title: str, permalink: str) -> list[tuple[str, str]]:
    """How to cite a snapshot: in words, as BibTeX and as CSL JSON."""
    name = f"{snapshot.benchmark.title} {snapshot.benchmark.version}, {title}"
    made = snapshot.computed_at
    note = f"Snapshot {snapshot.code}, data {snapshot.fingerprint[:8]}"
    bibtex = _bibtex(snapshot.code, name, year=f"{made:%Y}", month=f"{made:%b}", note=note, url=permalink)
    csl = {
        "id": f"evalsite-{snapshot.code}",
        "type": "dataset",
        "title": name,
        "issued": {"date-parts": [[made.year, made.month, made.day]]},
        "note": note,
        "URL": permalink,
    }
    return [
        ("BibTeX", bibtex),
        ("Text", f"{name}. {note}, {made:%-d %B %Y}. {permalink}"),
        ("CSL JSON", json.dumps(csl, ensure_ascii=False)),
    ]


# ---- history ----


def same_view(a: Snapshot, b: Snapshot) -> bool:
    return (a.what, a.benchmark_id, a.scope) == (b.what, b.benchmark_id, b.scope)


def entries_of(snapshot: Snapshot) -> list[str]:
    """The names of the rows, as the parameter ``entry`` has them."""
    return [entry_of(snapshot.what, row) for row in snapshot.rows]


def entry_of(what: str, row: JSON) -> str:
    return ", ".join(str(row[name]) for name in KEYS[what] if row.get(name) is not None)


@dataclass(frozen=True, slots=True)
class Line:
    """The snapshots of a benchmark; the chosen one, those of its view (oldest first), and the row that is tracked."""

    every: list[Snapshot]
    chosen: Snapshot | None
    same: list[Snapshot]
    entry: str


def line_of(address: Address) -> Line:
    """What the parameters ``of`` and ``entry`` ask for; by default the newest snapshot and its first row."""
    snapshots = list(
        Snapshot.objects.visible_to(address.viewer).filter(benchmark=address.benchmark).select_related("by")
    )
    selected = next(
        (snapshot for snapshot in snapshots if snapshot.code == address.params.get("of")),
        snapshots[0] if snapshots else None,
    )
    if selected is None:
        return Line(snapshots, None, [], "")
    of_view = sorted(
        (snapshot for snapshot in snapshots if same_view(snapshot, selected)), key=lambda snapshot: snapshot.pk
    )
    return Line(snapshots, selected, of_view, address.params.get("entry", "") or entries_of(selected)[0])


def _day(snapshot: Snapshot) -> str:
    made = snapshot.computed_at
    return f"{made:%-d %b}" if made.year == timezone.now().year else f"{made:%-d %b %Y}"


def plot_of(line: Line, *, links: bool = True) -> SafeString:
    """The tracked number over the snapshots of a line, each a dot that opens it; empty if no snapshot has it."""
    tracked = _tracked(line)
    name = _number_of(tracked)
    write, unit = (percent, 0.01) if name in SHARES else (three, 1.0)
    with_value = [each for each in tracked if each.row.get(name) is not None]
    moments: list[plots.Step] = []
    before = None
    for each in with_value:
        snapshot, row = each.snapshot, each.row
        number = number_in(row, name)
        rank = f"rank {row['rank']}" if row.get("rank") else ""
        changed: list[str] = changed_in_words(before, snapshot) if before else []
        link = _page(snapshot) if links else ""
        said = (_day(snapshot), with_interval(number, write), rank, *changed)
        moments.append(plots.Step(len(moments), number, said, link, ", ".join(changed[:1])))
        before = snapshot
    if not moments:
        return SafeString()
    last, step = len(moments) - 1, -(-len(moments) // 6)  # as many days as have room
    return plots.lines(
        *("overtime", moments),
        title=f"{line.entry}: {number_name(name)} over snapshots, 95% intervals",
        x=marks.Axis(min(0, last - 1), max(1, last), ()),
        y=axis_of(moments, "number", unit=unit),
        ticks=[(moment.x, moment.said[0]) for moment in moments[::step]],
        write=lambda value: short(100 * value if unit != 1.0 else value),
    )


def followed_in(line: Line) -> str:
    """What the tracked number of a line is called."""
    return number_name(_number_of(_tracked(line)))


def number_name(name: str) -> str:
    """What a tracked number is called."""
    return NUMBERS.get(name, name.replace("_", " "))


def changed_in_words(before: Snapshot, after: Snapshot) -> list[str]:
    """What is no longer as it was, in a few words each: the judge, its prompt, the method, the data."""
    old, new = before.made_from, after.made_from
    judge = _changed_judge(old.get("runs", []), new.get("runs", []))
    words = [judge] if judge else []
    if old.get("methods") != new.get("methods"):
        words.append("method changed")
    if counted := [f"{n:,} {name}" for name, _, n in _counted_otherwise(before, after)]:
        words.append(f"data changed: {', '.join(counted)}")
    return words


def _changed_judge(then: Sequence[JSON], now: Sequence[JSON]) -> str:
    models = sorted({str(run["model"]) for run in now})
    if models != sorted({str(run["model"]) for run in then}):
        return f"judge changed: {', '.join(models)}"
    if {str(run["prompt_sha256"]) for run in then} != {str(run["prompt_sha256"]) for run in now}:
        return "prompt changed"
    return "runs changed" if {run["run"] for run in then} != {run["run"] for run in now} else ""


@dataclass(frozen=True, slots=True)
class _Tracked:
    """The tracked row as a snapshot has it."""

    snapshot: Snapshot
    row: JSON


def _tracked(line: Line) -> list[_Tracked]:
    found = []
    for snapshot in line.same:
        found += [_Tracked(snapshot, row) for row in snapshot.rows if entry_of(snapshot.what, row) == line.entry]
    return found


def _number_of(tracked: Sequence[_Tracked]) -> str:
    """The name of the number that is followed; "" where no snapshot has one."""
    for name in FOLLOWED:
        if any(each.row.get(name) is not None for each in tracked):
            return name
    return ""


def history(line: Line) -> Table:
    """The tracked number of one row over snapshots of the same view, oldest first."""
    rows = _tracked(line)
    name = _number_of(rows)

    def number(each: _Tracked) -> Number:
        return number_in(each.row, name)

    def made(each: _Tracked) -> str:
        return f"{_day(each.snapshot)}, {each.snapshot.computed_at:%H:%M}"

    def ends(each: _Tracked) -> str:
        return " to ".join(map(three, number(each).between)) or NONE

    return table(
        [
            names("Snapshot", made, opens=lambda each: _page(each.snapshot)),
            Column("Rank", lambda each: str(each.row.get("rank") or NONE)),
            Column(f"{number_name(name).capitalize()}", lambda each: Cell(three(each.row.get(name)), strong=True)),
            interval_of(number, axis_of(rows, number, width=marks.WIDE), short),
            Column("95%", ends),
        ],
        rows,
        label="History",
        caption=f"{number_name(name)} of {line.entry} over snapshots",
        css="cmpt",
    )


def _page(snapshot: Snapshot) -> str:
    return reverse("leaderboard:snapshot-detail", args=[snapshot.code])


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
    """Rows whose tracked number has changed, that are new, or that are gone."""
    old = {entry_of(before.what, row): row for row in before.rows}
    new = {entry_of(after.what, row): row for row in after.rows}
    names = [*new, *(name for name in old if name not in new)]
    return list(filter(None, (_change(name, old.get(name), new.get(name)) for name in names)))


def _change(name: str, old_row: JSON | None, new_row: JSON | None) -> ChangeRow | None:
    """None where both rows say the same."""
    old, new = old_row or {}, new_row or {}
    key = next((key for key in FOLLOWED if key in (new or old)), "")
    then, now = old.get(key), new.get(key)
    rank_then, rank = old.get("rank"), new.get("rank")
    kind = "new" if old_row is None else "gone" if new_row is None else "changed"
    if kind == "changed" and (then, rank_then) == (now, rank):
        return None
    change = "" if then is None or now is None else signed(now - then)
    return ChangeRow(name, three(then), three(now), change, _moved(rank_then, rank), kind)


def _moved(rank_then: int | None, rank: int | None) -> str:
    return "" if rank_then == rank else f"{rank_then or NONE} → {rank or NONE}"


@dataclass(frozen=True, slots=True)
class Cause:
    """One thing that made the difference: when it happened, where that is known, and where its rows are."""

    text: str
    link: str = ""
    at: datetime | None = None


def causes(before: Snapshot, after: Snapshot, view: Address) -> list[Cause]:
    """What made the difference, newest first: runs, models or judges, counts, rule, method. ``view`` is the board that
    was frozen, as it is now.
    """
    return sorted(
        _changed(before, after, view), key=lambda cause: (cause.at is None, -cause.at.timestamp() if cause.at else 0)
    )


def _rows_link(view: Address, **parameters: str) -> str:
    return view.to(view.kind.rows_page, **view.view(), **parameters)


def _changed(before: Snapshot, after: Snapshot, view: Address) -> Iterator[Cause]:
    yield from _changed_runs(before, after, view)
    if after.what == "models":  # judges that came or went are told by their runs
        yield from _changed_models(before, after, view)
    yield from _changed_counts(before, after, view)
    old, new = before.made_from, after.made_from
    if old.get("methods") != new.get("methods"):
        link = reverse("leaderboard:formulas")
        yield Cause(f"Version of the methods: {old.get('methods')}, then {new.get('methods')}.", link)
    if old.get("majority") != new.get("majority"):
        yield Cause(f"Majority rule: {old.get('majority')}, then {new.get('majority')}.")


def _changed_runs(before: Snapshot, after: Snapshot, view: Address) -> Iterator[Cause]:
    """A new run of a judge whose run is gone replaces it."""
    of_old, of_new = ({run["run"]: run["judge"] for run in each.made_from.get("runs", [])} for each in (before, after))
    gone = {pk: judge for pk, judge in of_old.items() if pk not in of_new}
    came = {pk: judge for pk, judge in of_new.items() if pk not in of_old}
    stored = Run.objects.in_bulk(list(came))
    for pk, judge in came.items():
        replaced = next((other for other, name in gone.items() if name == judge), None)
        gone.pop(replaced, None)
        said = f"Run {pk} of {judge} {f'replaces run {replaced}' if replaced else 'is new'}."
        yield _new_run(said, stored.get(pk), after, view)
    for pk, judge in gone.items():
        yield Cause(f"Run {pk} of {judge} is gone.")


def _new_run(said: str, run: Run | None, after: Snapshot, view: Address) -> Cause:
    """Its day, for those who may see it, is that of its end."""
    if run is None:
        return Cause(said, _rows_link(view))
    link = verdicts_link(view, run) if after.what != "models" else _rows_link(view)
    return Cause(said, link, run.finished_at or run.created_at if sees_usage(run, view.viewer) else None)


def _changed_models(before: Snapshot, after: Snapshot, view: Address) -> Iterator[Cause]:
    then, now = entries_of(before), entries_of(after)
    added = [name for name in now if name not in then]
    gone = [name for name in then if name not in now]
    if added:
        link = _rows_link(view, model=added[0]) if len(added) == 1 else ""
        yield Cause(f"{number_of(len(added), 'model')} added: {', '.join(added)}.", link)
    if gone:
        yield Cause(f"{number_of(len(gone), 'model')} gone: {', '.join(gone)}.")


def _changed_counts(before: Snapshot, after: Snapshot, view: Address) -> Iterator[Cause]:
    """What is counted otherwise; labels have the day of the last one."""
    for name, n_then, n in _counted_otherwise(before, after):
        at = None
        if name == "labels":
            with guard.working():
                labels = Label.objects.filter(campaign__benchmark=view.benchmark, changed_at__lte=after.computed_at)
            at = labels.aggregate(last=Max("changed_at"))["last"]
        yield Cause(f"{name.capitalize()}: {n_then:,}, then {n:,}.", _rows_link(view), at)


def _counted_otherwise(before: Snapshot, after: Snapshot) -> Iterator[tuple[str, int, int]]:
    """What both counted, and found another number of: its name and both numbers."""
    old, new = (each.made_from.get("counted", {}) for each in (before, after))
    return ((name, old[name], n) for name, n in new.items() if name in old and old[name] != n)


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
        **{name: snapshot.tables[name] for name in ("rows", "order") if name in snapshot.tables},
    }
