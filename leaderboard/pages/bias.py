"""The board of biases as a page: one row a judge, people's own on top, each bias with its interval."""

from dataclasses import dataclass
from typing import Any

from django.utils.safestring import SafeString

from judging.models import Run
from leaderboard.boards import Board
from leaderboard.boards.base import Row
from leaderboard.figures import NONE, percent, signed, signed_points, whole
from leaderboard.kinds import Kind
from leaderboard.pages import marks
from leaderboard.pages.address import Address, settings_in_words
from leaderboard.pages.provenance import run_link, verdicts_link

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
    """Shares of each score of one judge, beside people's on the same answers."""

    name: str
    plot: SafeString
    rows: list[tuple[str, str, str]]
    means: str
    link: str  # the plot as a file


@dataclass(frozen=True, slots=True)
class BiasPlot:
    """One bias of every judge, beside people's."""

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


def page_of(address: Address, board: Board, *, kind: Kind) -> BiasPage:
    """Everything that the page shows."""
    names = board.extra["biases"]
    by_run: dict[int | None, dict[str, Row]] = {}
    for row in board.rows:
        by_run.setdefault(row["run"], {})[row["bias"]] = row
    runs = Run.objects.filter(pk__in=[run for run in by_run if run]).select_related("judge").in_bulk()
    empty = marks.Axis(0.0, 1.0, ())
    known = {row["bias"] for row in board.rows if row["value"] is not None}
    scales = {
        name: empty
        if name not in known
        else marks.axis(
            [0.0, *(row[end] for row in board.rows if row["bias"] == name for end in _ENDS)],
            unit=_unit(name, of_pairs="position" in names),
        )
        for name in names
    }
    order = sorted(by_run, key=lambda run: _place(runs.get(run) if run else None))
    rows = [_row(address, runs.get(run) if run else None, by_run[run], names, scales, kind) for run in order]
    heads = [(LABELS[name], _words(name, names), _axis(name, scales[name], names)) for name in names]
    drawn = [
        BiasPlot(LABELS[name], _words(name, names), svg, _file(address, name))
        for name in names
        if (svg := plot_of(board, name))
    ]
    return BiasPage(heads, rows, "position" in names, _distributions(address, board), drawn)


def _file(address: Address, metric: str) -> str:
    """Where a plot of this page is, as a file."""
    return address.to("leaderboard:plot", "bias", **address.view(), metric=metric)


def plot_of(board: Board, metric: str) -> SafeString:
    """A bias of every judge as a forest plot, or the distribution of scores of the run ``scores-RUN``; else empty."""
    if metric.startswith("scores-"):
        found = [row for row in _with_scores(board) if metric == f"scores-{row['run']}"]
        return _distribution(found[0]) if found else SafeString()
    known = [row for row in board.rows if row["bias"] == metric and row["value"] is not None]
    if not known:
        return SafeString()
    names = board.extra["biases"]
    judges = [row["judge"] for row in known]
    rows = [
        marks.ForestRow(
            _name(row, judges),
            row["value"],
            row["value_low"],
            row["value_high"],
            quiet=row["run"] is None,
        )
        for row in sorted(known, key=lambda row: (row["run"] is not None, row["value"]))
    ]
    title = f"{LABELS[metric]}: {_words(metric, names)}, with 95% intervals"
    return marks.forest(rows, title=title, write=lambda value: _tick(metric, value, names))


_ENDS = ("value", "value_low", "value_high")


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
    position, length = biases.get("position", {}).get("detail", {}), biases.get("length", {}).get("detail", {})
    consistent, longer = position.get("consistent"), length.get("longer")
    return BiasRow(
        name="People" if run is None else run.judge.name,
        people=run is None,
        baseline=bool(run and run.judge.is_baseline),
        run=str(run.pk) if run else "",
        run_link=run_link(address.viewer, run) if run else "",
        settings=settings_in_words(run.protocol, run.settings) if run and not run.judge.is_baseline else "",
        cells=[_cell(name, biases.get(name), scales[name], names, kind) for name in names],
        consistent=percent(consistent["value"]) if consistent else NONE,
        longer=percent(longer["value"]) if longer else NONE,
        n=whole(max(row["n"] for row in biases.values()) or None),
        link=verdicts_link(address, run) if run else "",
    )


def _cell(name: str, row: Row | None, scale: marks.Axis, names: Any, kind: Kind) -> BiasCell:
    if row is None or row["value"] is None:
        reason = (row or {}).get("detail", {}).get("reason", "")
        return BiasCell(NONE, marks.interval_bar(scale, None, None, None), reason, reason=reason)
    write = signed_points if _unit(name, of_pairs="position" in names) == 0.01 else signed
    low, high = row["value_low"], row["value_high"]
    said = "" if low is None else f"95%: {write(low)} to {write(high)}, "
    css = _css(name, row, kind)
    p = row["detail"].get("p")
    tested = "" if p is None else f", sign test p = {p:.2g}"
    bar = marks.interval_bar(scale, row["value"], low, high, write=write)
    return BiasCell(write(row["value"]), bar, f"{said}n = {whole(row['n'])}{tested}", css)


def _css(name: str, row: Row, kind: Kind) -> str:
    """``warn`` for a notable bias, ``bad`` for a strong one; what may be none is not marked, nor are people."""
    low, high = row["value_low"], row["value_high"]
    if row["run"] is None or (low is not None and low <= 0 <= high):
        return ""
    notable, strong = (kind.wide * limit for limit in LIMITS[name])
    return "bad" if abs(row["value"]) >= strong else "warn" if abs(row["value"]) >= notable else ""


@dataclass(frozen=True, slots=True)
class Chip:
    """A bias of a judge in short, beside its name on the board of judges."""

    text: str
    css: str
    title: str
    link: str


SHORT = {"position": "position", "length": "length", "self": "own family", "high_score": "scores"}


def chips_of(address: Address, board: Board, kind: Kind) -> dict[int, list[Chip]]:
    """By run the biases whose interval leaves 0 out."""
    link = address.to("leaderboard:bias", **(address.view() | {"kind": kind.in_address}))
    found: dict[int, list[Chip]] = {}
    for row in board.rows:
        low, high = row["value_low"], row["value_high"]
        name, value = row["bias"], row["value"]
        css = "" if value is None else _css(name, row, kind)
        # Where every pair went the same way there is no interval, and no doubt either.
        if row["run"] is None or value is None or (low is None and not css) or (low is not None and low <= 0 <= high):
            continue
        points = _unit(name, of_pairs=kind.pairwise) == 0.01
        write = signed_points if points else signed
        ends = "" if low is None else f"; 95%: {write(low)} to {write(high)}"
        title = f"{LABELS[name]}, {_words(name, board.extra['biases'])}{ends}"
        found.setdefault(row["run"], []).append(Chip(f"{SHORT[name]} {write(value)}", css or "line", title, link))
    return found


def _name(row: Row, judges: list[str]) -> str:
    if row["run"] is None:
        return "People"
    return row["judge"] if judges.count(row["judge"]) == 1 else f"{row['judge']}, {row['run']}"


def _with_scores(board: Board) -> list[Row]:
    """The rows that hold distributions, where the scale has few steps."""
    return [
        row
        for row in board.rows
        if row["bias"] == "high_score" and "scale" in row["detail"] and len(row["detail"]["scale"]) <= 11
    ]


def _distribution(row: Row) -> SafeString:
    detail = row["detail"]
    steps = [f"{step:g}" for step in detail["scale"]]
    shares = list(zip(steps, detail["judge"], detail["people"], strict=True))
    return marks.two_distributions(shares, title=f"Scores of {row['judge']} beside people's")


def _distributions(address: Address, board: Board) -> list[Distribution]:
    """Judge beside people."""
    found = []
    for row in _with_scores(board):
        detail = row["detail"]
        shares = zip(detail["scale"], detail["judge"], detail["people"], strict=True)
        found.append(
            Distribution(
                row["judge"],
                _distribution(row),
                [(f"{step:g}", percent(one), percent(other)) for step, one, other in shares],
                f"mean {detail['judge_mean']:.2f}, people {detail['people_mean']:.2f}",
                _file(address, f"scores-{row['run']}"),
            )
        )
    return found
