"""The board of biases as a page: one row a judge, people's own on top, each bias with its interval."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from django.utils.safestring import SafeString

from judging.models import Run
from leaderboard.boards.bias import ONE_ORDER, BiasBoard, Detail
from leaderboard.boards.bias import BiasRow as Row
from leaderboard.figures import NONE, in_brackets, interval, percent, signed, signed_points, whole
from leaderboard.kinds import Kind
from leaderboard.pages import marks, plots
from leaderboard.pages.address import Address, settings_in_words
from leaderboard.pages.marks import BLANK, Cell, Chip
from leaderboard.pages.provenance import run_link, verdicts_link
from leaderboard.pages.table import Column, Table, names, table, text
from leaderboard.rows import Number

LABELS = {"position": "Position", "length": "Length", "self": "Own family", "high_score": "High scores"}
UNITS = {
    "position": "1 follows the order shown, −1 turns it round",
    "length": "points per standard deviation of length",
    "self": "judge minus people, own minus others",
    "high_score": "judge minus people",
}
UNITS_OF_PAIRS = UNITS | {
    "position": "points to the first place",
    "length": "log odds for the longer",
    "self": "points of win rate, own minus others",
}
SHORT = 11  # steps of a scale whose distribution is drawn
ORDERS = 8  # drawn, of those that rankings give
NARROW, WIDE = 276, 340
# From where a bias is notable and strong, in its unit (points as shares).
# Of what counts on a wider scale more: see ``Kind.wide``.
LIMITS = {"position": (0.05, 0.10), "length": (0.15, 0.20), "self": (0.05, 0.08), "high_score": (0.25, 0.5)}


@dataclass(frozen=True, slots=True)
class Figure:
    """A plot about one judge with its numbers as a table, or the table alone."""

    name: str
    words: str
    heads: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    plot: SafeString = BLANK
    link: str = ""  # the plot as a file


@dataclass(frozen=True, slots=True)
class Panel:
    """Figures of one sort. ``bars``: whether they are bars of a judge beside people's."""

    title: str
    words: str
    figures: list[Figure]
    bars: bool = False


@dataclass(frozen=True, slots=True)
class BiasPlot:
    """One bias of every judge, and of people."""

    label: str
    unit: str
    plot: SafeString
    link: str
    limits: str


@dataclass(frozen=True, slots=True)
class BiasPage:
    table: Table
    units: str  # of each bias
    plots: list[BiasPlot]
    panels: list[Panel]
    reading: list[tuple[str, str]]


def build_bias_page(address: Address, board: BiasBoard, *, kind: Kind) -> BiasPage:
    """Everything that the page shows."""
    biases = board.biases
    by_run: dict[int | None, dict[str, Row]] = {}
    for row in board.rows:
        by_run.setdefault(row.run, {})[row.bias] = row
    runs = Run.objects.filter(pk__in=[run for run in by_run if run]).select_related("judge").in_bulk()
    order = sorted(by_run, key=lambda run: _place(runs.get(run) if run else None))
    links = {run: verdicts_link(address, runs[run]) for run in order if run in runs}
    drawings = [
        BiasPlot(LABELS[name], words_of(name, kind), svg, _file(address, name), thresholds(name, kind))
        for name in biases
        if (svg := plot_of(board, name, kind, {str(run): link for run, link in links.items()}))
    ]
    rows_in_order = [row for run in order for row in by_run[run].values()]
    return BiasPage(
        table(
            _bias_columns(address, board, by_run, runs, links, kind),
            order,
            row_css=lambda run: "base" if run not in runs or runs[run].judge.is_baseline else "",
            label="Board of biases",
            caption="Biases of every judge with 95% intervals, people's own first",
            css="jt judgeboard biasboard",
        ),
        ". ".join(f"{LABELS[name]}: {words_of(name, kind)}" for name in biases),
        drawings,
        _panels(address, rows_in_order, kind),
        _reading(biases, kind),
    )


def _bias_columns(
    address: Address,
    board: BiasBoard,
    by_run: dict[int | None, dict[str, Row]],
    runs: dict[int, Run],
    links: Mapping[int | None, str],
    kind: Kind,
) -> list[Column[int | None]]:
    def name(run: int | None) -> Cell:
        if run not in runs:
            return Cell("People", chips=(Chip("to compare"),))
        chips = (Chip("floor"),) if runs[run].judge.is_baseline else ()
        small_link = run_link(address.viewer, runs[run])
        return Cell(str(runs[run].judge), f"run {run}", link=links[run], chips=chips, small_link=small_link)

    def bias(bias: str) -> Column[int | None]:
        values = [row.value for row in board.rows if row.bias == bias]
        ends = [end for value in values for end in value.ends if end is not None]
        scale = marks.axis([0.0, *ends], unit=_unit(bias, kind)) if ends else marks.Axis(0.0, 1.0, ())
        return Column(
            LABELS[bias],
            lambda run: _bias_cell(bias, by_run[run].get(bias), scale, kind),
            kind="interval",
            css="",
            title=words_of(bias, kind),
            axis=marks.axis_head(scale, _ticks(bias, kind)),
        )

    def share(label: str, of_bias: str, detail: str, title: str) -> Column[int | None]:
        def cell(run: int | None) -> str:
            row = by_run[run].get(of_bias)
            number = getattr(row.detail, detail) if row else None
            return percent(number.value) if number else NONE

        return Column(label, cell, css="n two", title=title, shown=kind.pairwise)

    def settings(run: int | None) -> Cell:
        if run not in runs or runs[run].judge.is_baseline:
            return Cell(NONE)
        words = settings_in_words(runs[run].protocol, runs[run].settings)
        return Cell(words, title=words)

    return [
        names("Judge", name),
        *(bias(name) for name in board.biases),
        share("Same both ways %", "position", "consistent", "Share of pairs with the same verdict in both orders"),
        share("Longer won %", "length", "longer", "How often the longer answer of a decided pair won"),
        Column("n", lambda run: whole(max(row.n for row in by_run[run].values()) or None)),
        text("Settings", settings, css="small dim sets", head=""),
    ]


def _file(address: Address, metric: str) -> str:
    """Where a plot of this page is, as a file."""
    return address.to("leaderboard:plot", "bias", **address.view(), metric=metric)


def plot_of(board: BiasBoard, metric: str, kind: Kind, links: Mapping[str, str] = MappingProxyType({})) -> SafeString:
    """A bias of every judge as a forest plot, or a figure of one of them (``length-3``: of run 3); else empty.

    ``links``: by run, where its verdicts are. Baselines do not widen the axis: judges would be dots on a line.
    """
    if "-" in metric:
        sort, _, of = metric.partition("-")
        row = next((row for row in board.rows if of == _key(row) and sort in _sorts(row, kind)), None)
        return _drawn(sort, row, kind) if row else BLANK
    rows_with_values = [row for row in board.rows if row.bias == metric and row.value.value is not None]
    if not rows_with_values:
        return BLANK
    judges = [row.judge for row in rows_with_values]
    write = signed_points if is_share(metric, kind) else signed
    baselines = set(
        Run.objects.filter(pk__in=[row.run for row in rows_with_values if row.run])
        .exclude(judge__baseline="")
        .values_list("pk", flat=True)
    )
    rows = [
        marks.ForestRow(
            _name(row, judges),
            row.value.value or 0.0,
            row.value.low,
            row.value.high,
            quiet=row.run is None,
            said=(
                f"{write(row.value.value)} {in_brackets(row.value, write)}".strip(),
                f"n = {whole(row.n)}",
                row.detail.reason or "",
            ),
            link=links.get(str(row.run), ""),
            apart=row.run in baselines,
        )
        for row in sorted(rows_with_values, key=lambda row: (row.run is not None, row.value.value or 0.0))
    ]
    title = f"{LABELS[metric]}: {words_of(metric, kind)}, with 95% intervals"
    limits = [kind.scale_width * limit for limit in LIMITS[metric]]
    return marks.forest(rows, title=title, write=_ticks(metric, kind), width=WIDE, limits=limits)


def _place(run: Run | None) -> tuple[bool, bool, str, int]:
    """People first, then judges by name, then baselines."""
    if run is None:
        return False, False, "", 0
    return True, run.judge.is_baseline, run.judge.name.casefold(), run.pk


def is_share(name: str, kind: Kind) -> bool:
    """Whether the bias is told in points of percent."""
    return kind.pairwise and name in ("position", "self")


def _unit(name: str, kind: Kind) -> float:
    return 0.01 if is_share(name, kind) else 1.0


def words_of(name: str, kind: Kind) -> str:
    return (UNITS_OF_PAIRS if kind.pairwise else UNITS)[name]


def _ticks(name: str, kind: Kind) -> Callable[[float], str]:
    """How a value on the axis of a bias is written."""
    if is_share(name, kind):
        return lambda value: whole(100 * value)
    return lambda value: f"{value:g}".replace("-", "−")


def _bias_cell(name: str, row: Row | None, scale: marks.Axis, kind: Kind) -> Cell:
    if row is None or row.value.value is None:
        reason = (row and row.detail.reason) or ""
        return Cell(NONE, title=reason, bar=marks.interval_bar(scale, None, None, None), unseen=reason)
    write = signed_points if is_share(name, kind) else signed
    p = row.detail.p
    title = [interval(row.value, write), f"n = {whole(row.n)}", "" if p is None else f"sign test p = {p:.2g}"]
    title += [row.detail.method] if row.bias == "position" and row.detail.method and p is None else []
    bar = marks.interval_bar(scale, *row.value.ends, write=write)
    return Cell(write(row.value.value), title=", ".join(filter(None, title)), css=css_of(name, row, kind), bar=bar)


def css_of(name: str, row: Row, kind: Kind) -> str:
    """``warn`` for a notable bias, ``bad`` for a strong one; no mark for people or if the interval includes 0."""
    if not _is_clear(row):
        return ""
    notable, strong = (kind.scale_width * limit for limit in LIMITS[name])
    size = abs(row.value.value or 0.0)
    return "bad" if size >= strong else "warn" if size >= notable else ""


def _is_clear(row: Row) -> bool:
    """Whether a judge has the bias, as far as is known."""
    known = row.run is not None and row.value.value is not None and row.detail.method != ONE_ORDER
    return known and not _holds_zero(row.value)


def _holds_zero(value: Number) -> bool:
    """Whether the interval leaves open that there is no bias."""
    return value.low is not None and value.high is not None and value.low <= 0 <= value.high


IN_SHORT = {"position": "position", "length": "length", "self": "own family", "high_score": "scores"}


def chips_of(address: Address, board: BiasBoard, kind: Kind) -> dict[int, list[Chip]]:
    """By run, the biases whose interval excludes 0."""
    link = address.to("leaderboard:bias", **(address.view() | {"kind": kind.in_address}))
    chips: dict[int, list[Chip]] = {}
    for row in board.rows:
        css = css_of(row.bias, row, kind)
        # Where every pair went the same way there is no interval, and no doubt.
        if row.run is None or not _is_clear(row) or (row.value.low is None and not css):
            continue
        write = signed_points if is_share(row.bias, kind) else signed
        title = f"{LABELS[row.bias]}, {words_of(row.bias, kind)}"
        ends = interval(row.value, write)
        chip = Chip(
            f"{IN_SHORT[row.bias]} {write(row.value.value)}", css or "line", f"{title}; {ends}" if ends else title, link
        )
        chips.setdefault(row.run, []).append(chip)
    return chips


def _name(row: Row, judges: list[str]) -> str:
    if row.run is None:
        return "People"
    return row.judge if judges.count(row.judge) == 1 else f"{row.judge}, {row.run}"


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


def _panels(address: Address, rows: list[Row], kind: Kind) -> list[Panel]:
    judges = [row.judge for row in {row.run: row for row in rows}.values()]

    def figures(*sorts: str) -> list[Figure]:
        return [
            _figure(address, sort, row, judges, kind) for row in rows for sort in sorts if sort in _sorts(row, kind)
        ]

    curve = "% of pairs that the longer answer won" if kind.pairwise else "points beside the mean of the sample"
    by_model = [row for row in rows if kind.pairwise and row.detail.by_model]
    panels = [
        Panel("Scores, judge and people", "", figures("scores"), bars=True),
        Panel("Length", f"{curve}, against the difference of lengths", figures("length")),
        Panel("Own family and others", "scores given by judge and people", figures("own", "others"), bars=True),
        Panel("Model by model", "a tie is half a point; the same pairs", [_of_models(row, judges) for row in by_model]),
        Panel("Orders given", "letters in the order in which answers were shown", figures("orders")),
    ]
    return [panel for panel in panels if panel.figures]


def _length_cells(detail: Detail, kind: Kind) -> list[tuple[str, ...]]:
    write = percent if kind.pairwise else signed
    return [
        (f"{point.low:g} to {point.high:g}", write(point.value.value), interval(point.value, write), whole(point.n))
        for point in detail.curve or ()
    ]


def _figure(address: Address, sort: str, row: Row, judges: list[str], kind: Kind) -> Figure:
    detail, file, plot = row.detail, _file(address, f"{sort}-{_key(row)}"), _drawn(sort, row, kind)
    name = _name(row, judges)
    if sort == "length":
        heads = ("Difference", "Longer won %" if kind.pairwise else "Points", "95%", "n")
        return Figure(name, f"n {whole(row.n)}", heads, _length_cells(detail, kind), plot, file)
    if sort == "orders":
        shares = [(order, percent(part)) for order, part in (detail.orders or {}).items()]
        return Figure(name, f"{len(shares)} orders, n {whole(row.n)}", ("Order", "%"), shares, plot, file)
    rows = [(step, percent(judge), percent(people)) for step, judge, people in _shares(sort, detail)]
    words = f"mean {detail.judge_mean or 0:.2f}, people {detail.people_mean or 0:.2f}"
    if sort != "scores":
        words = ", ".join(detail.models or ()) if sort == "own" else "others"
    return Figure(name, words, ("Score", "Judge %", "People %"), rows, plot, file)


def _of_models(row: Row, judges: list[str]) -> Figure:
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
    return Figure(_name(row, judges), f"n {whole(row.n)}", heads, rows)


def _drawn(sort: str, row: Row, kind: Kind) -> SafeString:
    detail = row.detail
    if sort == "length":
        points = [
            plots.Point(f"{at.difference:.0f}".replace("-", "−"), at.value.value, at.value.low, at.value.high)
            for at in detail.curve or ()
            if at.value.value is not None
        ]
        title = f"{row.judge}: what longer answers get, against the difference of lengths"
        base, unit = (0.5, 0.01) if kind.pairwise else (0.0, 1.0)
        write = (lambda value: whole(100 * value)) if kind.pairwise else _ticks("length", kind)
        return plots.steps(points, title=title, write=write, width=NARROW, unit=unit, base=base)
    if sort == "orders":
        most = list((detail.orders or {}).items())[:ORDERS]
        bars = [marks.ForestRow(order, 100 * part, None, None) for order, part in most]
        title = f"Orders that {row.judge} gives: shares of rankings, %"
        return marks.forest(bars, title=title, write=lambda value: f"{value:g}")
    of = {"scores": "scores", "own": "scores of answers of its own family", "others": "scores of other answers"}[sort]
    return marks.two_distributions(_shares(sort, detail), title=f"{row.judge}: {of}, beside people's")


def _shares(sort: str, detail: Detail) -> list[tuple[str, float, float]]:
    """Each step of the scale with the judge's share of it and people's."""
    judge, people = {
        "scores": (detail.judge, detail.people),
        "own": (detail.own, detail.own_people),
        "others": (detail.others, detail.others_people),
    }[sort]
    steps = zip(detail.scale or [], judge or [], people if isinstance(people, list) else [], strict=True)
    return [(f"{step:g}", of_judge, of_people) for step, of_judge, of_people in steps]


# ---- how to read it ----


def _reading(names: Sequence[str], kind: Kind) -> list[tuple[str, str]]:
    """What each bias is, in a sentence or two."""
    if kind.pairwise:
        texts = {
            "position": "of pairs judged in both orders, the share of verdicts that lean to the answer shown first, "
            "minus the share for the one shown second; of pairs judged in one order, the share that the answer shown "
            "first won, minus the share of the second, to compare with people's.",
            "length": "how much longer answers win, in log odds. Longer answers can also be better, so compare it with "
            "people's own.",
            "self": "by how many points of win rate the judge lifts answers of its own family more than people do, "
            "less what it adds to the others.",
        }
    else:
        texts = {
            "position": "how far a ranking follows the order in which the answers were shown, from 1, a copy of it, to "
            "−1, its reverse.",
            "length": "by how many points a score rises when the answer is longer by one standard deviation than "
            "others to the same instruction. Longer answers can also be better, so compare it with people's own.",
            "high_score": "how much more the judge gives than people do to the same answers.",
            "self": "how much more of that goes to answers of the judge's own family than to the others.",
        }
    first = "A judge that looks at the answers alone stands at 0 everywhere, or where people stand."
    return [("", first), *((f"{LABELS[name]}:", f"{texts[name]} {thresholds(name, kind)}") for name in names)]


def thresholds(name: str, kind: Kind) -> str:
    """From where a bias is notable and strong, in words."""
    notable, strong = (kind.scale_width * limit for limit in LIMITS[name])
    if is_share(name, kind):
        said = f"Notable from {100 * notable:g} points, strong from {100 * strong:g}"
    else:
        said = f"Notable from {notable:g}, strong from {strong:g}"
    return f"{said}, where the interval leaves 0 out."
