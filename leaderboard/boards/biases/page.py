"""The board of biases as a page: one row a judge, people's own on top, each bias with its interval."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import ceil

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from judging.models import Run
from leaderboard.boards.biases.board import ONE_ORDER, BiasBoard, Detail
from leaderboard.boards.biases.board import BiasRow as Row
from leaderboard.kinds import Kind
from leaderboard.lookups import runs_of
from leaderboard.rows import UNKNOWN, Number
from leaderboard.show import marks, plots
from leaderboard.show.marks import BLANK, Cell, Chip
from leaderboard.show.provenance import run_link, verdicts_link
from leaderboard.show.table import Column, Table, names, table, tick_of
from leaderboard.view import Address
from stats.figures import (
    NONE,
    in_words,
    interval,
    percent,
    short,
    signed,
    signed_points,
    two,
    whole,
    whole_percent,
    with_interval,
)

LABELS = {"position": "Position", "length": "Length", "self": "Own family", "high_score": "High scores"}
UNITS = {
    "position": "1 follows the order shown, −1 turns it round",
    "length": "points per standard deviation of length",
    "self": "judge minus people, own minus others",
    "high_score": "judge minus people",
}
UNITS_OF_PAIRS = {
    "position": "points towards the answer shown first",
    "length": "points the longer answer wins above half",
    "self": "points it lifts its own maker's models",
}
HEADS = {"position": "First shown", "length": "Longer", "self": "Own family", "high_score": "High scores"}
SHORT = 11  # steps of a scale whose distribution is drawn
ORDERS = 8  # drawn, of those that rankings give
WIDE = 340
STEPS_OF_SCALE = ("Score", "Judge %", "People %")
CURVES = 8  # drawn unasked, of the judges that are swayed most
# How far from people a bias is notable and strong, in its unit; of what counts on a wider scale more: see ``limits``.
LIMITS = {"position": (0.05, 0.10), "length": (0.15, 0.20), "self": (0.05, 0.08), "high_score": (0.25, 0.5)}
POINTS = (0.05, 0.10)  # of pairs: shares
ENDS = (-0.15, 0.30)  # of the axis of pairs


@dataclass(frozen=True, slots=True)
class Figure:
    """A plot about one judge with its numbers as a table, or the table alone."""

    name: str
    words: str
    heads: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    plot: SafeString = BLANK
    link: str = ""  # the plot as a file
    verdicts: str = ""  # where the verdicts behind it are; of people's labels there is no list


@dataclass(frozen=True, slots=True)
class Panel:
    """Figures of one sort. ``bars``: whether they are bars of a judge beside people's; ``curves``: or curves."""

    title: str
    words: str
    figures: list[Figure]
    bars: bool = False
    curves: bool = False


@dataclass(frozen=True, slots=True)
class BiasPage:
    """``finding``: what the table comes to; ``files``: of each plot, its name and where it is."""

    finding: SafeString
    table: Table
    panels: list[Panel]
    files: list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class _Shown:
    """The rows by run and bias, people's under None, and the runs in their order: least swayed first."""

    kind: Kind
    by_run: dict[int | None, dict[str, Row]]
    runs: dict[int, Run]

    @classmethod
    def of(cls, board: BiasBoard, kind: Kind) -> "_Shown":
        by_run: dict[int | None, dict[str, Row]] = {}
        for row in board.rows:
            by_run.setdefault(row.run, {})[row.bias] = row
        runs = runs_of(run for run in by_run if run)
        return cls(kind, by_run, runs)

    def people(self, bias: str) -> float:
        """Where people stand; a judge's own family is told against people already."""
        return people_in(self.by_run.get(None, {}).get(bias), self.kind)

    def beyond(self, run: int | None, bias: str) -> float | None:
        """How far from people the judge stands, as a share of what is strong."""
        value = told(self.by_run[run].get(bias), self.kind).value
        if value is None:
            return None
        _, strong = limits(bias, self.kind)
        return (value - self.people(bias)) / strong

    def order(self) -> list[int | None]:
        """People, then judges from the least swayed to the most, then what needs no skill."""

        def place(run: int | None) -> tuple[bool, bool, float, int]:
            distances = [abs(self.beyond(run, bias) or 0.0) for bias in self.by_run[run]]
            return run is not None, self.needs_no_skill(run), max(distances, default=0.0), run or 0

        return sorted(self.by_run, key=place)

    def needs_no_skill(self, run: int | None) -> bool:
        return run in self.runs and self.runs[run].judge.is_baseline

    def name(self, run: int | None) -> str:
        if run not in self.runs:
            return "People"
        judge = self.runs[run].judge
        return judge.titled if judge.is_baseline else judge.name

    def label(self, run: int | None) -> str:
        """The name where no chips stand beside it: it says simulated itself, and the run where two share a name."""
        judge = self.runs[run].judge if run in self.runs else None
        label = judge.titled if judge else self.name(run)
        shared = judge and sum(other.judge_id == judge.pk for other in self.runs.values()) > 1
        return f"{label}, {run}" if shared else label


def told(row: Row | None, kind: Kind) -> Number:
    """What the page tells of a bias: of the lengths of pairs, by how much the longer answer wins above half."""
    if row is None:
        return UNKNOWN
    if not (kind.pairwise and row.bias == "length"):
        return row.value
    share = row.detail.longer or UNKNOWN
    value, low, high = (None if end is None else end - 0.5 for end in share.ends)
    return replace(share, value=value, low=low, high=high)


def people_in(row: Row | None, kind: Kind) -> float:
    """Where people stand on a bias; 0 where that is not known."""
    return told(row, kind).value or 0.0


def limits(bias: str, kind: Kind) -> tuple[float, float]:
    """How far from people a bias is notable, and strong."""
    if kind.pairwise:
        return POINTS
    notable, strong = LIMITS[bias]
    return kind.scale_width * notable, kind.scale_width * strong


def build_bias_page(address: Address, board: BiasBoard, *, kind: Kind) -> BiasPage:
    """Everything that the page shows."""
    shown = _Shown.of(board, kind)
    order = shown.order()
    measured = {row.bias for row in board.rows if told(row, kind).value is not None}
    rows_in_order: list[Row] = []
    for run in order:
        rows_in_order += shown.by_run[run].values()
    return BiasPage(
        _finding(shown, order),
        table(
            _bias_columns(address, board, shown),
            order,
            row_css=lambda run: "base" if run is None or shown.needs_no_skill(run) else "",
            label="Board of biases",
            caption="Biases of every judge with 95% intervals, people's own first",
            css="lb",
        ),
        _panels(address, rows_in_order, shown),
        [(f"{LABELS[bias]} as SVG", _file(address, bias)) for bias in board.biases if bias in measured],
    )


def _finding(shown: _Shown, order: Sequence[int | None]) -> SafeString:
    """``Two of four judges reward longer answers clearly more than people do, Prefers length by 12.5 points. ...``."""
    judges = [run for run in order if run in shown.runs and not shown.runs[run].judge.is_baseline]
    if not shown.kind.pairwise or not judges:
        return SafeString()
    said, named = [], set()
    for bias, words in DOES.items():
        more = _swayed_more(shown, judges, bias)
        if not more:
            continue
        most = max(more, key=lambda run: more[run])
        named.add(most)
        of = f"{in_words(len(more)).capitalize()} of {in_words(len(judges))} judges" if len(judges) > 1 else "The judge"
        who = f"{of} {words[len(more) > 1]}"
        by = percent(more[most] * POINTS[1])
        said.append(format_html("{} more than people do, {} by <b>{} points</b>.", who, shown.label(most), by))
    if not said:
        return SafeString("No judge is clearly more swayed than people.")
    if len(judges) > 1 and judges[0] not in named:
        said.append(format_html("{} is the least swayed.", shown.label(judges[0])))
    return format_html_join(" ", "{}", ((sentence,) for sentence in said))


def _swayed_more(shown: _Shown, judges: Sequence[int | None], bias: str) -> dict[int | None, float]:
    """The judges that are clearly more swayed than people, and by how much, as a share of what is strong."""
    more = {}
    for run in judges:
        beyond = shown.beyond(run, bias) or 0.0
        if beyond > 0 and css_of(shown.by_run[run].get(bias), shown.kind, shown.people(bias)):
            more[run] = beyond
    return more


DOES = {
    "position": ("leans to the answer shown first", "lean to the answer shown first"),
    "length": ("rewards longer answers", "reward longer answers"),
    "self": ("lifts its own family", "lift their own family"),
}


def _verdicts_of(address: Address, run: int | None, shown: _Shown) -> str:
    """Where a judge's verdicts are; of people's labels there is no list."""
    return verdicts_link(address, shown.runs[run]) if run in shown.runs else ""


def _bias_columns(address: Address, board: BiasBoard, shown: _Shown) -> list[Column[int | None]]:
    width = min(marks.COLUMN, 780 // max(1, len(board.biases)))
    farthest = max([ENDS[1], *(ceil(10 * (shown.people(bias) + 0.15)) / 10 for bias in board.biases)])

    def verdicts(run: int | None) -> str:
        return _verdicts_of(address, run, shown)

    def scale(bias: str) -> marks.Axis:
        """One for all biases of pairs, which are told in points."""
        if shown.kind.pairwise:
            return marks.Axis(ENDS[0], farthest, (-0.1, *(step / 10 for step in range(ceil(10 * farthest)))), width)
        ends: list[float | None] = [0.0]
        for rows in shown.by_run.values():
            ends += told(rows.get(bias), shown.kind).ends
        return marks.axis(ends, width=width)

    def name(run: int | None) -> Cell:
        if run not in shown.runs:
            return Cell("People", "the line", title="the line in each column is where people stand")
        judge = shown.runs[run].judge
        chips = (Chip("simulated"),) if judge.simulated else ()
        link = run_link(address.viewer, shown.runs[run])
        return Cell(shown.name(run), f"run {run}", title=judge.name, chips=chips, small_link=link)

    by_name = names("Judge", name, under="least swayed first", opens=verdicts)
    return [by_name, *(_bias_column(bias, scale(bias), shown, verdicts) for bias in board.biases)]


def _bias_column(
    bias: str, scale: marks.Axis, shown: _Shown, verdicts: Callable[[int | None], str]
) -> Column[int | None]:
    kind, people = shown.kind, shown.people(bias)
    write = write_of(kind)
    calm: tuple[float | None, float | None] = (None, None)
    ceiling = None
    if bias == "self" or told(shown.by_run.get(None, {}).get(bias), kind).value is not None:
        notable, _ = limits(bias, kind)
        calm, ceiling = (people - notable, people + notable), people

    def cell(run: int | None) -> Cell:
        row = shown.by_run[run].get(bias)
        number = told(row, kind)
        bar = marks.interval_bar(scale, *number.ends, write=write, calm=calm, ceiling=ceiling)
        if row is None or number.value is None:
            reason = (row and row.detail.reason) or "not measured"
            return Cell(NONE, title=reason, bar=bar, unseen=reason)
        said: list[str | None] = [interval(number, write), f"n = {whole(row.n)}"]
        if row.detail.p is not None:
            said.append(f"sign test p = {row.detail.p:.2g}")
        elif bias == "position":
            said.append(row.detail.method)
        return Cell(
            write(number.value),
            title=", ".join(filter(None, said)),
            css="" if shown.needs_no_skill(run) else css_of(row, kind, people),
            bar=bar,
        )

    head = marks.axis_head(scale, tick_of(signed_points) if kind.pairwise else short)
    words = words_of(bias, kind)
    return Column(
        HEADS[bias],
        cell,
        kind="interval",
        css="plotted",
        opens=verdicts,
        title=words,
        under=words,
        axis=head,
    )


def _file(address: Address, metric: str) -> str:
    """Where a plot of this page is, as a file."""
    return address.to("leaderboard:plot", "bias", **address.view(), metric=metric)


def plot_of(board: BiasBoard, metric: str, kind: Kind) -> SafeString:
    """A bias of every judge as a forest plot, or a figure of one of them (``length-3``: of run 3); else empty.

    Baselines do not widen the axis: judges would be dots on a line.
    """
    if "-" in metric:
        sort, _, of = metric.partition("-")
        row = next((row for row in board.rows if of == _key(row) and sort in _sorts(row, kind)), None)
        return (
            _drawn(sort, row, _Shown.of(board, kind).label(row.run), _scales(board.rows, kind), kind) if row else BLANK
        )
    if metric not in LABELS:
        return BLANK
    rows = _rows_of(board, metric, kind)
    title = f"{LABELS[metric]}: {words_of(metric, kind)}, with 95% intervals"
    return plots.forest(rows, title=title, write=_tick_of(kind), width=WIDE) if rows else BLANK


def _tick_of(kind: Kind) -> Callable[[float], str]:
    return lambda value: short(100 * value if kind.pairwise else value)


def _rows_of(board: BiasBoard, metric: str, kind: Kind) -> list[plots.ForestRow]:
    """People, then judges by how far they are swayed."""
    of_metric = [row for row in board.rows if row.bias == metric and told(row, kind).value is not None]
    shown, write = _Shown.of(board, kind), write_of(kind)
    rows = []
    for row in sorted(of_metric, key=lambda row: (row.run is not None, told(row, kind).value or 0.0)):
        number = told(row, kind)
        said = (with_interval(number, write), f"n = {whole(row.n)}", row.detail.reason or "")
        apart = shown.needs_no_skill(row.run)
        rows.append(plots.ForestRow(shown.label(row.run), number, quiet=row.run is None, said=said, apart=apart))
    return rows


def picture_of(board: BiasBoard, kind: Kind, benchmark: str) -> plots.Rows | None:
    """The bias that sways a judge most, of all judges beside people; None where none is measured."""
    of_judges = {metric: [row for row in _rows_of(board, metric, kind) if not row.apart] for metric in LABELS}
    largest = {
        metric: max((abs(row.number.value or 0.0) for row in rows if not row.quiet), default=-1.0)
        for metric, rows in of_judges.items()
    }
    metric = max(largest, key=lambda name: largest[name])
    if largest[metric] < 0:
        return None
    return plots.Rows(
        title=f"What sways judges: {LABELS[metric].lower()}",
        under=f"On {benchmark}, {words_of(metric, kind)}, with 95% intervals",
        rows=sorted(of_judges[metric], key=lambda row: (not row.quiet, -abs(row.number.value or 0.0))),
        write=_tick_of(kind),
        figure=write_of(kind),
        unit=0.01 if kind.pairwise else 1.0,
        zero=True,
    )


def write_of(kind: Kind) -> Callable[[float | None], str]:
    """How a bias is written: of pairs in points of percent."""
    return signed_points if kind.pairwise else signed


def words_of(name: str, kind: Kind) -> str:
    return (UNITS_OF_PAIRS if kind.pairwise else UNITS)[name]


def css_of(row: Row | None, kind: Kind, people: float) -> str:
    """``warn`` for a notable bias, ``bad`` for a strong one, counted from people; no mark for people, or where the
    interval holds people's own.
    """
    number = told(row, kind)
    if row is None or row.run is None or number.value is None or row.detail.method == ONE_ORDER:
        return ""
    if number.low is not None and number.high is not None and number.low <= people <= number.high:
        return ""
    notable, strong = limits(row.bias, kind)
    size = abs(number.value - people) + 1e-12
    return "bad" if size >= strong else "warn" if size >= notable else ""


IN_SHORT = {"position": "position", "length": "length", "self": "own family", "high_score": "scores"}


def chips_of(address: Address, board: BiasBoard, kind: Kind) -> dict[int, list[Chip]]:
    """By run, the biases that are notable or strong."""
    link = address.to("leaderboard:bias", **(address.view() | {"kind": kind.in_address}))
    shown, write = _Shown.of(board, kind), write_of(kind)
    chips: dict[int, list[Chip]] = {}
    for row in board.rows:
        css = css_of(row, kind, shown.people(row.bias))
        if row.run is None or not css:
            continue
        number = told(row, kind)
        title = ", ".join(filter(None, [words_of(row.bias, kind), interval(number, write)]))
        chips.setdefault(row.run, []).append(Chip(f"{IN_SHORT[row.bias]} {write(number.value)}", css, title, link))
    return chips


# ---- figures of single judges ----


def _key(row: Row) -> str:
    return "people" if row.run is None else str(row.run)


def _sorts(row: Row, kind: Kind) -> list[str]:
    """The figures that a row has numbers for."""
    detail = row.detail
    sorts = ["length"] if detail.curve and len(detail.curve) > 1 else []
    sorts += ["orders"] if detail.orders else []
    if detail.scale is not None and len(detail.scale) <= SHORT:
        sorts += ["scores"] if detail.judge else []
        sorts += ["own", "others"] if detail.own and not kind.pairwise else []
    return sorts


def _panels(address: Address, rows: list[Row], shown: _Shown) -> list[Panel]:
    kind = shown.kind
    scales = _scales(rows, kind)

    def figures(rows: list[Row], *sorts: str) -> list[Figure]:
        found = []
        for row in rows:
            there = _sorts(row, kind)
            found += [_figure(address, sort, row, shown, scales) for sort in sorts if sort in there]
        return found

    if kind.pairwise:
        heading, curve = "How often the longer answer wins", "% of pairs it won, by how many words it is longer"
    else:
        heading, curve = "What longer answers get", "points beside the mean of the sample, by the difference of lengths"
    of_judges = [row for row in rows if row.run is not None and not shown.needs_no_skill(row.run)]
    curves = figures(of_judges, "length")[-CURVES:]
    by_model = [row for row in rows if kind.pairwise and row.detail.by_model]
    panels = [
        Panel("Scores, judge and people", "", figures(rows, "scores"), bars=True),
        Panel(heading, f"{curve}; the same axes in each picture", curves, curves=True),
        Panel("Own family and others", "scores given by judge and people", figures(rows, "own", "others"), bars=True),
        Panel(
            "Model by model",
            "a tie is half a point; the same pairs",
            [_of_models(address, row, shown) for row in by_model],
        ),
        Panel("Orders given", "letters in the order in which answers were shown", figures(rows, "orders")),
    ]
    return [panel for panel in panels if panel.figures]


def _length_cells(detail: Detail, kind: Kind) -> list[tuple[str, ...]]:
    write = percent if kind.pairwise else signed
    return [
        (f"{point.low:g} to {point.high:g}", write(point.value.value), interval(point.value, write), whole(point.n))
        for point in detail.curve or ()
    ]


def _figure(address: Address, sort: str, row: Row, shown: _Shown, scales: "_Curves") -> Figure:
    kind, name, detail = shown.kind, shown.label(row.run), row.detail
    heads: tuple[str, ...]
    rows: list[tuple[str, ...]]
    if sort == "length":
        words, heads = f"n {whole(row.n)}", ("Difference", "Longer won %" if kind.pairwise else "Points", "95%", "n")
        rows = _length_cells(detail, kind)
    elif sort == "orders":
        rows = [(order, percent(part)) for order, part in (detail.orders or {}).items()]
        words, heads = f"{len(rows)} orders, n {whole(row.n)}", ("Order", "%")
    else:
        words, heads = f"mean {detail.judge_mean or 0:.2f}, people {detail.people_mean or 0:.2f}", STEPS_OF_SCALE
        if sort != "scores":
            words = ", ".join(detail.models or ()) if sort == "own" else "others"
        rows = [(step, percent(judge), percent(people)) for step, judge, people in _shares(sort, detail)]
    plot, file = _drawn(sort, row, name, scales, kind), _file(address, f"{sort}-{_key(row)}")
    return Figure(name, words, heads, rows, plot, file, _verdicts_of(address, row.run, shown))


def _of_models(address: Address, row: Row, shown: _Shown) -> Figure:
    """What judge and people give each model (MLLM-as-a-Judge, Figure 20)."""
    given = row.detail.by_model or {}
    rows = [
        (
            f"{model} (own)" if model in (row.detail.models or ()) else model,
            *map(percent, (of.judge, of.people, of.judge_decided, of.people_decided)),
            whole(of.n),
        )
        for model, of in given.items()
    ]
    heads = (
        "Model",
        "Judge: points %",
        "People: points %",
        "Judge: wins of decided %",
        "People: wins of decided %",
        "n",
    )
    verdicts = _verdicts_of(address, row.run, shown)
    return Figure(shown.label(row.run), f"n {whole(row.n)}", heads, rows, verdicts=verdicts)


@dataclass(frozen=True, slots=True)
class _Curves:
    """The axes that all curves share, and people's own."""

    x: marks.Axis
    y: marks.Axis
    people: list[plots.Step]


def _curve(row: Row, kind: Kind) -> list[plots.Step]:
    write = _points_of(kind)
    return [
        plots.Step(
            at.difference,
            at.value,
            (with_interval(at.value, write), f"longer by {short(at.difference)}", f"n = {whole(at.n)}"),
        )
        for at in row.detail.curve or ()
        if at.value.value is not None
    ]


def _points_of(kind: Kind) -> Callable[[float | None], str]:
    return whole_percent if kind.pairwise else two


def _scales(rows: Sequence[Row], kind: Kind) -> _Curves:
    drawn = [(row, _curve(row, kind)) for row in rows if "length" in _sorts(row, kind)]
    points = list(chain.from_iterable(curve for _, curve in drawn))
    unit, base = (0.01, 0.5) if kind.pairwise else (1.0, 0.0)
    ends: list[float | None] = [base]
    for point in points:
        ends += point.number.ends
    people = next((curve for row, curve in drawn if row.run is None), [])
    return _Curves(
        marks.axis([0.0, *(point.x for point in points)], most=5),
        marks.axis(ends, unit=unit),
        people,
    )


def _drawn(sort: str, row: Row, name: str, scales: _Curves, kind: Kind) -> SafeString:
    detail = row.detail
    if sort == "length":
        title = f"{name}: what longer answers get, against the difference of lengths"
        return plots.lines(
            *("curve", _curve(row, kind)),
            title=title,
            x=scales.x,
            y=scales.y,
            ticks=[(tick, short(tick)) for tick in scales.x.ticks],
            write=_points_of(kind),
            people=scales.people,
            base=0.5 if kind.pairwise else 0.0,
            size=(328, 128),
        )
    if sort == "orders":
        most = list((detail.orders or {}).items())[:ORDERS]
        bars = [plots.ForestRow(order, Number(100 * part)) for order, part in most]
        title = f"Orders that {name} gives: shares of rankings, %"
        return plots.forest(bars, title=title, write=lambda value: f"{value:g}")
    of = {"scores": "scores", "own": "scores of answers of its own family", "others": "scores of other answers"}[sort]
    return plots.two_distributions(_shares(sort, detail), title=f"{name}: {of}, beside people's")


def _shares(sort: str, detail: Detail) -> list[tuple[str, float, float]]:
    """Each step of the scale with the judge's share of it and people's."""
    judge, people = {
        "scores": (detail.judge, detail.people),
        "own": (detail.own, detail.own_people),
        "others": (detail.others, detail.others_people),
    }[sort]
    steps = zip(detail.scale or [], judge or [], people if isinstance(people, list) else [], strict=True)
    return [(f"{step:g}", of_judge, of_people) for step, of_judge, of_people in steps]
