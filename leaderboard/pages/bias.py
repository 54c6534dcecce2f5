"""The board of biases as a page: one row a judge, people's own on top, each bias with its interval."""

from dataclasses import dataclass
from typing import Any

from django.utils.safestring import SafeString

from judging.models import Run
from leaderboard.boards.bias import BiasBoard, Detail
from leaderboard.boards.bias import BiasRow as Row
from leaderboard.figures import NONE, interval, percent, signed, signed_points, whole
from leaderboard.kinds import Kind
from leaderboard.pages import marks
from leaderboard.pages.address import Address, settings_in_words
from leaderboard.pages.provenance import run_link, verdicts_link
from leaderboard.rows import Number

LABELS = {"position": "Position", "length": "Length", "self": "Own family", "high_score": "High scores"}
UNITS = {
    "position": "points to the first place",
    "length": "log odds for the longer",
    "self": "judge minus people, own minus others",
    "high_score": "judge minus people",
}
# From where a bias is notable and strong, in its unit (points as shares).
# Of what counts on a wider scale more: see ``Kind.wide``.
LIMITS = {"position": (0.05, 0.10), "length": (0.15, 0.20), "self": (0.05, 0.08), "high_score": (0.25, 0.5)}


@dataclass(frozen=True, slots=True)
class BiasCell:
    text: str
    bar: SafeString
    title: str
    css: str = ""  # "", "warn" or "bad"
    reason: str = ""


@dataclass(frozen=True, slots=True)
class BiasRow:
    name: str
    people: bool
    baseline: bool
    run: str
    run_link: str
    settings: str
    cells: list[BiasCell]
    consistent: str
    longer: str
    n: str
    link: str


@dataclass(frozen=True, slots=True)
class Distribution:
    """The share of each score from one judge, and from people on the same answers."""

    name: str
    plot: SafeString
    rows: list[tuple[str, str, str]]
    means: str
    link: str  # the plot as a file


@dataclass(frozen=True, slots=True)
class BiasPlot:
    """One bias of every judge, and of people."""

    label: str
    unit: str
    plot: SafeString
    link: str


@dataclass(frozen=True, slots=True)
class BiasPage:
    heads: list[tuple[str, str, SafeString]]  # label, unit, axis
    rows: list[BiasRow]
    of_pairs: bool
    distributions: list[Distribution]
    plots: list[BiasPlot]


def page_of(address: Address, board: BiasBoard, *, kind: Kind) -> BiasPage:
    """Everything that the page shows."""
    names = board.biases
    by_run: dict[int | None, dict[str, Row]] = {}
    for row in board.rows:
        by_run.setdefault(row.run, {})[row.bias] = row
    runs = Run.objects.filter(pk__in=[run for run in by_run if run]).select_related("judge").in_bulk()
    empty = marks.Axis(0.0, 1.0, ())
    with_values = {row.bias for row in board.rows if row.value.value is not None}
    scales = {
        name: empty
        if name not in with_values
        else marks.axis(
            [0.0, *(end for row in board.rows if row.bias == name for end in row.value.ends)],
            unit=_unit(name, of_pairs="position" in names),
        )
        for name in names
    }
    order = sorted(by_run, key=lambda run: _place(runs.get(run) if run else None))
    rows = [_row(address, runs.get(run) if run else None, by_run[run], names, scales, kind) for run in order]
    heads = [(LABELS[name], _words(name, names), _axis(name, scales[name], names)) for name in names]
    drawings = [
        BiasPlot(LABELS[name], _words(name, names), svg, _file(address, name))
        for name in names
        if (svg := plot_of(board, name))
    ]
    return BiasPage(heads, rows, "position" in names, _distributions(address, board), drawings)


def _file(address: Address, metric: str) -> str:
    """Where a plot of this page is, as a file."""
    return address.to("leaderboard:plot", "bias", **address.view(), metric=metric)


def plot_of(board: BiasBoard, metric: str) -> SafeString:
    """A bias of every judge as a forest plot, or the distribution of scores of the run ``scores-RUN``; else empty."""
    if metric.startswith("scores-"):
        row = next((row for row in _with_scores(board) if metric == f"scores-{row.run}"), None)
        return _distribution(row) if row else SafeString()
    rows_with_values = [row for row in board.rows if row.bias == metric and row.value.value is not None]
    if not rows_with_values:
        return SafeString()
    names = board.biases
    judges = [row.judge for row in rows_with_values]
    rows = [
        marks.ForestRow(
            _name(row, judges), row.value.value or 0.0, row.value.low, row.value.high, quiet=row.run is None
        )
        for row in sorted(rows_with_values, key=lambda row: (row.run is not None, row.value.value or 0.0))
    ]
    title = f"{LABELS[metric]}: {_words(metric, names)}, with 95% intervals"
    return marks.forest(rows, title=title, write=lambda value: _tick(metric, value, names))


def _place(run: Run | None) -> tuple[bool, bool, str, int]:
    """People first, then judges by name, then baselines."""
    if run is None:
        return False, False, "", 0
    return True, run.judge.is_baseline, run.judge.name.casefold(), run.pk


def _unit(name: str, *, of_pairs: bool) -> float:
    return 0.01 if name == "position" or (name == "self" and of_pairs) else 1.0


def _words(name: str, names: Any) -> str:
    return "points of win rate, own minus others" if name == "self" and "position" in names else UNITS[name]


def _tick(name: str, value: float, names: Any) -> str:
    return whole(100 * value) if _unit(name, of_pairs="position" in names) == 0.01 else f"{value:g}".replace("-", "−")


def _axis(name: str, scale: marks.Axis, names: Any) -> SafeString:
    return marks.axis_head(scale, lambda value: _tick(name, value, names))


def _row(
    address: Address, run: Run | None, biases: dict[str, Row], names: Any, scales: dict[str, marks.Axis], kind: Kind
) -> BiasRow:
    consistent = biases["position"].detail.consistent if "position" in biases else None
    longer = biases["length"].detail.longer if "length" in biases else None
    return BiasRow(
        name="People" if run is None else run.judge.name,
        people=run is None,
        baseline=bool(run and run.judge.is_baseline),
        run=str(run.pk) if run else "",
        run_link=run_link(address.viewer, run) if run else "",
        settings=settings_in_words(run.protocol, run.settings) if run and not run.judge.is_baseline else "",
        cells=[_cell(name, biases.get(name), scales[name], names, kind) for name in names],
        consistent=percent(consistent.value) if consistent else NONE,
        longer=percent(longer.value) if longer else NONE,
        n=whole(max(row.n for row in biases.values()) or None),
        link=verdicts_link(address, run) if run else "",
    )


def _cell(name: str, row: Row | None, scale: marks.Axis, names: Any, kind: Kind) -> BiasCell:
    if row is None or row.value.value is None:
        reason = (row and row.detail.reason) or ""
        return BiasCell(NONE, marks.interval_bar(scale, None, None, None), reason, reason=reason)
    write = signed_points if _unit(name, of_pairs="position" in names) == 0.01 else signed
    p = row.detail.p
    title = [interval(row.value, write), f"n = {whole(row.n)}", "" if p is None else f"sign test p = {p:.2g}"]
    bar = marks.interval_bar(scale, *row.value.ends, write=write)
    return BiasCell(write(row.value.value), bar, ", ".join(filter(None, title)), _css(name, row, kind))


def _css(name: str, row: Row, kind: Kind) -> str:
    """``warn`` for a notable bias, ``bad`` for a strong one; no mark for people or if the interval includes 0."""
    if row.run is None or row.value.value is None or _holds_zero(row.value):
        return ""
    notable, strong = (kind.scale_width * limit for limit in LIMITS[name])
    return "bad" if abs(row.value.value) >= strong else "warn" if abs(row.value.value) >= notable else ""


def _holds_zero(value: Number) -> bool:
    """Whether the interval leaves open that there is no bias."""
    return value.low is not None and value.high is not None and value.low <= 0 <= value.high


@dataclass(frozen=True, slots=True)
class Chip:
    """A bias of a judge in short, beside its name on the board of judges."""

    text: str
    css: str
    title: str
    link: str


SHORT = {"position": "position", "length": "length", "self": "own family", "high_score": "scores"}


def chips_of(address: Address, board: BiasBoard, kind: Kind) -> dict[int, list[Chip]]:
    """By run, the biases whose interval excludes 0."""
    link = address.to("leaderboard:bias", **(address.view() | {"kind": kind.in_address}))
    chips: dict[int, list[Chip]] = {}
    for row in board.rows:
        if row.run is None or row.value.value is None or _holds_zero(row.value):
            continue
        css = _css(row.bias, row, kind)
        if row.value.low is None and not css:  # where every pair went the same way there is no interval, and no doubt
            continue
        write = signed_points if _unit(row.bias, of_pairs=kind.pairwise) == 0.01 else signed
        title = f"{LABELS[row.bias]}, {_words(row.bias, board.biases)}"
        ends = interval(row.value, write)
        chip = Chip(
            f"{SHORT[row.bias]} {write(row.value.value)}", css or "line", f"{title}; {ends}" if ends else title, link
        )
        chips.setdefault(row.run, []).append(chip)
    return chips


def _name(row: Row, judges: list[str]) -> str:
    if row.run is None:
        return "People"
    return row.judge if judges.count(row.judge) == 1 else f"{row.judge}, {row.run}"


def _with_scores(board: BiasBoard) -> list[Row]:
    """The rows that hold distributions, where the scale has few steps."""
    return [row for row in board.rows if row.detail.scale is not None and len(row.detail.scale) <= 11]


def _distribution(row: Row) -> SafeString:
    return marks.two_distributions(_shares(row.detail), title=f"Scores of {row.judge} beside people's")


def _shares(detail: Detail) -> list[tuple[str, float, float]]:
    """Each step of the scale with the judge's share of it and people's."""
    people = detail.people if isinstance(detail.people, list) else []
    shares = zip(detail.scale or [], detail.judge or [], people, strict=True)
    return [(f"{step:g}", judge, people) for step, judge, people in shares]


def _distributions(address: Address, board: BiasBoard) -> list[Distribution]:
    """Judge beside people."""
    return [
        Distribution(
            row.judge,
            _distribution(row),
            [(step, percent(judge), percent(people)) for step, judge, people in _shares(row.detail)],
            f"mean {row.detail.judge_mean:.2f}, people {row.detail.people_mean:.2f}",
            _file(address, f"scores-{row.run}"),
        )
        for row in _with_scores(board)
    ]
