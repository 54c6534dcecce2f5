"""The board of biases as a page: one row a judge, people's own on top, each bias with its interval."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, floor
from typing import Any

from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from judging.models import Run
from leaderboard.boards.biases.board import ONE_ORDER, BiasBoard, BiasRow
from leaderboard.kinds import Kind
from leaderboard.lookups import runs_of
from leaderboard.rows import UNKNOWN, Number
from leaderboard.show import marks, plots
from leaderboard.show.marks import BLANK, Cell, Chip
from leaderboard.show.provenance import run_link, verdicts_link
from leaderboard.show.table import Column, Over, Table, drawn, names, table, tick_of
from leaderboard.view import Address
from stats.figures import (
    NONE,
    in_brackets,
    in_words,
    interval,
    number_of,
    percent,
    short,
    signed,
    signed_points,
    two,
    whole,
    whole_percent,
    with_interval,
)
from stats.power import detectable

LABELS = {"position": "Position", "length": "Length", "self": "Own family", "high_score": "High scores"}
UNITS = {
    "position": "1 follows the order shown, −1 turns it round",
    "length": "points per standard deviation of length",
    "self": "judge minus people, own minus others",
    "high_score": "judge minus people",
}
UNITS_OF_PAIRS = {
    "position": "points towards the answer shown first",
    "length": "points by which the longer answer wins above half",
    "self": "points by which it lifts its own maker's models",
}
HEADS = {"position": "Shown first", "length": "Longer", "self": "Own family", "high_score": "High scores"}
IN_SHORT = {"position": "position", "length": "length", "self": "own family", "high_score": "scores"}
# What a judge does that is swayed, and one that is swayed the other way.
DOES = {
    "position": ("leans to the answer shown first", "leans to the answer shown second"),
    "length": ("rewards longer answers", "rewards shorter answers"),
    "self": ("lifts its own maker's models", "holds its own maker's models down"),
}
ON = {"position": "the order shown", "length": "length", "self": "own family"}
AGAINST_PEOPLE = ("self", "high_score")  # measured as a difference from people already
WIDE = 340
ROW = 54  # pixels
# How far from people a bias is notable and strong, in its unit; of what counts on a wider scale more: see ``limits``.
LIMITS = {"position": (0.05, 0.10), "length": (0.15, 0.20), "self": (0.05, 0.08), "high_score": (0.25, 0.5)}
POINTS = (0.05, 0.10)  # of pairs: shares
LEAST = 10  # points that the axis of pairs reaches either way
APART = 3  # times as far as all others: such a value has an axis of its own


def limits(bias: str, kind: Kind) -> tuple[float, float]:
    """How far from people a bias is notable, and strong."""
    notable, strong = POINTS if kind.pairwise else LIMITS[bias]
    width = 1 if kind.pairwise else kind.scale_width
    return width * notable, width * strong


def words_of(bias: str, kind: Kind) -> str:
    return (UNITS_OF_PAIRS if kind.pairwise else UNITS)[bias]


@dataclass(frozen=True, slots=True)
class Effect:
    """A bias that is notable or strong; ``size``: as a share of what is strong."""

    run: int
    bias: str
    number: Number
    size: float


class Biases:
    """The board by run and bias, people's own under None: who is swayed, and how far beyond people."""

    def __init__(self, board: BiasBoard, kind: Kind) -> None:
        self.kind, self.labels = kind, board.labels
        self.rows = {(row.run, row.bias): row for row in board.rows}
        self.beyond = {(each.run, each.bias): each.difference for each in board.beyond}
        known = {row.bias for row in board.rows if row.told.value is not None}
        self.measured = [bias for bias in board.biases if bias in known]
        self.missing = [bias for bias in board.biases if bias not in known]
        self.write: Callable[[float | None], str] = signed_points if kind.pairwise else signed

    @cached_property
    def runs(self) -> dict[int, Run]:
        return runs_of(run for run, _ in self.rows if run)

    @cached_property
    def voters(self) -> list[int | None]:
        """People, then judges from the largest effect to the smallest, then what needs no skill."""

        def place(run: int | None) -> tuple[bool, bool, float, float, int]:
            marked = max((each.size for each in self.effects if each.run == run), default=0.0)
            size = max(self.size(run, bias) for bias in LABELS)
            return run is not None, self.needs_no_skill(run), -marked, -size, run or 0

        return sorted({run for run, _ in self.rows}, key=place)

    @cached_property
    def effects(self) -> list[Effect]:
        """Of judges, the largest first."""
        found = []
        for run, bias in self.rows:
            if run and self.css(run, bias) and not self.needs_no_skill(run):
                found.append(Effect(run, bias, self.difference(run, bias), self.size(run, bias)))
        return sorted(found, key=lambda effect: -effect.size)

    @property
    def judges(self) -> list[int]:
        return [run for run in self.voters if run in self.runs and not self.needs_no_skill(run)]

    def told(self, run: int | None, bias: str) -> Number:
        row = self.rows.get((run, bias))
        return row.told if row else UNKNOWN

    def people(self, bias: str) -> Number:
        """Where people stand: at 0 where a judge is measured against them."""
        return Number(0.0) if bias in AGAINST_PEOPLE else self.told(None, bias)

    def knows_people(self, bias: str) -> bool:
        return self.people(bias).value is not None

    def difference(self, run: int | None, bias: str) -> Number:
        """How far from people, or from 0 where people are not known, somebody stands."""
        told, people = self.told(run, bias), self.people(bias)
        if told.value is None or people.value is None or bias in AGAINST_PEOPLE:
            return told
        without = Number(told.value - people.value, reason="frozen before differences had intervals")
        return self.beyond.get((run or 0, bias), without)

    def size(self, run: int | None, bias: str) -> float:
        value = self.difference(run, bias).value
        return 0.0 if value is None else abs(value) / limits(bias, self.kind)[1]

    def css(self, run: int | None, bias: str) -> str:
        """``warn`` for a notable difference, ``bad`` for a strong one, where its interval leaves 0."""
        number = self.difference(run, bias)
        if number.value is None or not self.is_fair(run, bias) or holds_zero(number) is not False:
            return ""
        notable, strong = limits(bias, self.kind)
        distance = abs(number.value) + 1e-12
        return "bad" if distance >= strong else "warn" if distance >= notable else ""

    def is_fair(self, run: int | None, bias: str) -> bool:
        """Whether it is a judge that can be held to people. What answers deserve is in a position that was measured in
        one order, and not in that of people, where theirs is known.
        """
        row = self.rows.get((run, bias))
        if row is None or run is None:
            return False
        return not (bias == "position" and row.detail.method == ONE_ORDER and self.knows_people(bias))

    def needs_no_skill(self, run: int | None) -> bool:
        return run in self.runs and self.runs[run].judge.is_baseline

    def row_css(self, run: int | None) -> str:
        return "base" if run is None or self.needs_no_skill(run) else ""

    def label(self, run: int | None) -> str:
        """The name where no chips stand beside it: it says simulated itself, and the run where two share a name."""
        if run not in self.runs:
            return "People"
        judge = self.runs[run].judge
        shared = sum(other.judge_id == judge.pk for other in self.runs.values()) > 1
        return f"{judge.titled}, {run}" if shared else judge.titled

    def verdicts(self, address: Address, run: int | None) -> str:
        """Where a judge's verdicts are; of people's labels there is no list."""
        return verdicts_link(address, self.runs[run]) if run in self.runs else ""


def holds_zero(number: Number) -> bool | None:
    """Whether its interval does; None where it has none."""
    if number.low is None or number.high is None:
        return None
    return number.low <= 0 <= number.high


def build_bias_page(address: Address, board: BiasBoard, *, kind: Kind) -> dict[str, Any]:
    """What the page shows: ``finding``, what the table comes to, or the ``reason`` why there is none; ``files``: of
    each plot, its name and where it is.
    """
    biases = Biases(board, kind)
    finding = _finding(biases)
    return {
        "finding": finding,
        "reason": "" if finding or not kind.pairwise else _reason(biases),
        "table": _table(address, biases),
        "shown": {bias: HEADS[bias] for bias in biases.measured},
        "marked": _marked(kind),
        "unmeasured": _unmeasured(biases),
        "makers": _makers(address, biases),
        "panels": list(_panels(address, biases)),
        "files": [(f"{LABELS[bias]} as SVG", _file(address, bias)) for bias in biases.measured],
    }


def chips_of(address: Address, board: BiasBoard, kind: Kind) -> dict[int, list[Chip]]:
    """By run, the biases that are notable or strong, each by how far it lies from people's."""
    link = address.to("leaderboard:bias", **(address.view() | {"kind": kind.in_address}))
    biases, chips = Biases(board, kind), dict[int, list[Chip]]()
    for run, bias in biases.rows:
        css, number = biases.css(run, bias), biases.difference(run, bias)
        if run and css:
            beyond = " beyond people" if biases.knows_people(bias) else ""
            title = f"{words_of(bias, kind)}{beyond}, {interval(number, biases.write)}"
            words = f"{IN_SHORT[bias]} {biases.write(number.value)}"
            chips.setdefault(run, []).append(Chip(words, css, title, link))
    return chips


# ---- the sentence ----


def _finding(biases: Biases) -> SafeString:
    """The largest effect of each bias, the largest first, then who is not told apart from people. Empty where nothing
    has an interval.
    """
    if not biases.kind.pairwise:
        return SafeString()
    if not biases.effects:
        return _none_apart(biases)
    said: list[SafeString] = []
    largest: dict[str, Effect] = {}
    for effect in biases.effects:
        largest.setdefault(effect.bias, effect)
    run = None
    for effect in largest.values():
        words = _does(biases, effect)
        if effect.run == run:
            said[-1] = format_html("{}, and {}", said[-1], words)
        else:
            said.append(format_html("{} {}", biases.label(effect.run), words))
        run = effect.run
    said += _not_apart(biases)
    return format_html_join(" ", "{}.", ((sentence,) for sentence in said))


def _does(biases: Biases, effect: Effect) -> SafeString:
    value = effect.number.value or 0.0
    toward, away = DOES[effect.bias]
    by = percent(abs(value))
    largest = ", the largest effect here" if effect == biases.effects[0] else ""
    if biases.knows_people(effect.bias):
        more = "more" if value > 0 else "less"
        return format_html("{} <b>{} points {}</b> than people{}", toward, by, more, largest)
    words = toward if value > 0 else away
    return format_html("{} by <b>{} points</b>{} ({})", words, by, largest, _unknown_of_people(biases, effect.bias))


def _unknown_of_people(biases: Biases, bias: str) -> str:
    if not biases.labels:
        return "no labels by people count here"
    return "people's own order was not kept" if bias == "position" else "people's own is not known"


def _not_apart(biases: Biases) -> Iterator[SafeString]:
    for bias in biases.measured:
        if not biases.knows_people(bias):
            continue
        fair = [run for run in biases.judges if biases.is_fair(run, bias)]
        alike = [run for run in fair if holds_zero(biases.difference(run, bias))]
        if alike:
            several = f"{in_words(len(alike))} of {in_words(len(biases.judges))} judges are"
            who = f"{biases.label(alike[0])} is" if len(alike) == 1 else several
            yield format_html("On {} {} not told apart from people", ON[bias], who)


def _none_apart(biases: Biases) -> SafeString:
    """With what the least certain of the differences could have shown."""
    could = []
    for run, bias in biases.rows:
        number = biases.difference(run, bias)
        if run in biases.judges and biases.is_fair(run, bias) and holds_zero(number) is not None and number.se:
            counted = [of.n for of in (biases.told(run, bias), biases.people(bias)) if of.n]
            could.append((detectable(number.se), min(counted, default=0)))
    if not could:
        return SafeString()
    points, n = max(could)
    of = "told apart from people" if any(map(biases.knows_people, biases.measured)) else "clearly swayed"
    return format_html(
        "No judge is {} here; {} could show {} points or more.", of, number_of(n, "pair"), ceil(100 * points)
    )


def _reason(biases: Biases) -> str:
    """Why there is no sentence: the reason that most of the numbers give."""
    reasons: Counter[str] = Counter()
    for (run, bias), row in biases.rows.items():
        if run in biases.judges and bias in biases.measured:
            reasons[biases.difference(run, bias).reason or row.detail.reason or "not measured"] += 1
    if not reasons:
        return ""
    ((most, _),) = reasons.most_common(1)
    return f"No finding here, for no number of a judge has an interval: {most}."


def _marked(kind: Kind) -> dict[str, str]:
    """What the two marks say."""
    leaves = "and the interval of the difference leaves 0"
    if not kind.pairwise:
        return {"strong": f"far beyond people, {leaves}", "notable": "less far"}
    beyond = "beyond people (beyond 0 where people are not known)"
    return {"strong": f"10 points or more {beyond}, {leaves}", "notable": "5 to 10"}


UNNAMED = "the judge's family is not known"


def _unmeasured(biases: Biases) -> str:
    """``Not measured here: own family, no judge's maker is named.``"""
    said = []
    for bias in biases.missing:
        reasons = Counter(row.detail.reason for (run, of), row in biases.rows.items() if run and of == bias)
        most = next((reason for reason, _ in reasons.most_common(1) if reason), "")
        why = "no judge's maker is named" if set(reasons) == {UNNAMED} else most
        said.append(", ".join(filter(None, [LABELS[bias].lower(), why])))
    return f"Not measured here: {'; '.join(said)}." if said else ""


def _makers(address: Address, biases: Biases) -> str:
    """Where a curator names the maker of a judge that has none."""
    unnamed = [biases.runs[run].judge for run in biases.judges if not biases.runs[run].judge.family]
    if "self" not in biases.missing or not unnamed or not address.may("write-judging"):
        return ""
    return f"{reverse('judging:judge-detail', args=[unnamed[0].pk])}#maker"


# ---- the table ----


def _table(address: Address, biases: Biases) -> Table:
    columns, over, axes = [_judge(address, biases)], [Over()], _axes(biases)
    for bias in biases.measured:
        columns += _columns(address, biases, bias, axes[bias])
        over.append(Over(HEADS[bias], _said_above(biases, bias, axes), 3, f"sep of-{bias}"))
    return table(
        columns,
        biases.voters,
        row_css=biases.row_css,
        label="Board of biases",
        caption="Biases of every judge with 95% intervals, people's own first",
        css="lb lines biases",
        over=over,
    )


def _judge(address: Address, biases: Biases) -> Column[int | None]:
    def name(run: int | None) -> Cell:
        if run not in biases.runs:
            return Cell("People", "the line, the band", title="in each column the line is where people stand")
        judge = biases.runs[run].judge
        chips = (Chip("simulated"),) if judge.simulated else ()
        shown = judge.titled if judge.is_baseline else judge.name
        return Cell(
            shown, f"run {run}", title=judge.name, chips=chips, small_link=run_link(address.viewer, biases.runs[run])
        )

    return names("Judge", name, under="largest effect first", opens=lambda run: biases.verdicts(address, run))


def _said_above(biases: Biases, bias: str, axes: dict[str, marks.Axis]) -> str:
    """The unit of a bias, and what is to be known before judges are compared."""
    rows = [biases.rows.get((run, bias)) for run in biases.judges]
    methods = [row.detail.method for row in rows if row and row.told.value is not None]
    once = methods.count(ONE_ORDER) if bias == "position" else 0
    said = [words_of(bias, biases.kind)]
    if once:
        of = (
            "one order only"
            if once == len(methods)
            else f"{in_words(once)} of {in_words(len(methods))} saw one order only"
        )
        said.append(f"{of}, so what answers deserve is in it")
    if biases.kind.pairwise and len({(axis.low, axis.high) for axis in axes.values()}) > 1:
        said.append(f"axis from {_tick(axes[bias].low)} to {_tick(axes[bias].high)}")
    return "; ".join(said)


_tick = tick_of(signed_points)


def _axes(biases: Biases) -> dict[str, marks.Axis]:
    """Of pairs one for all biases, which are told in points; but a bias that lies far beyond the others has its own."""
    width = min(marks.COLUMN, 1160 // max(1, len(biases.measured)) - 212)
    ends = {bias: _ends(biases, bias) for bias in biases.measured}
    if not biases.kind.pairwise:
        return {bias: marks.axis([0.0, *of], width=width, row=ROW) for bias, of in ends.items()}
    reach = {bias: max(map(abs, of), default=0.0) for bias, of in ends.items()}
    shared: list[float] = []
    own = []
    for bias, of in ends.items():
        others = [far for other, far in reach.items() if other != bias]
        if others and reach[bias] > APART * max(LEAST / 100, *others):
            own.append(bias)
        else:
            shared += of
    return {bias: _in_points(ends[bias] if bias in own else shared, width) for bias in biases.measured}


def _ends(biases: Biases, bias: str) -> list[float]:
    """What an axis has to hold. What needs no skill does not widen one of pairs: judges would be dots on a line."""
    found: list[float] = []
    for run in biases.voters:  # what needs no skill comes last
        told = biases.told(run, bias)
        far = max([LEAST / 100, *map(abs, found)])
        if not biases.needs_no_skill(run) or not biases.kind.pairwise or abs(told.value or 0.0) <= far:
            found += [end for end in told.ends if end is not None]
    return found


def _in_points(ends: Sequence[float], width: int) -> marks.Axis:
    """From the data: rounded out to the next 5 points, and at least 10 either way."""
    low = 5 * floor(round(20 * min([-LEAST / 100, *ends]), 6))
    high = 5 * ceil(round(20 * max([LEAST / 100, *ends]), 6))
    most = width // 42  # ticks that there is room for
    step = next(step for step in (5, 10, 20, 25, 50, 100) if (high - low) / step <= most)
    ticks = range(step * ceil(low / step), high + 1, step)
    return marks.Axis(low / 100, high / 100, tuple(tick / 100 for tick in ticks), width, ROW)


def _columns(address: Address, biases: Biases, bias: str, scale: marks.Axis) -> list[Column[int | None]]:
    """Of one bias: its figure, the figure on the axis, and how far it lies from people's."""
    people, write = biases.people(bias), biases.write

    def figure(run: int | None) -> Cell:
        number = biases.told(run, bias)
        if number.value is None:
            return _without(biases, run, bias)
        between = in_brackets(number, write) or "no interval"
        link = biases.verdicts(address, run)
        return Cell(
            write(number.value), between, title=_behind(biases, run, bias), link=link, strong=True, small_css="block"
        )

    def bar(run: int | None) -> SafeString:
        band = (people.low, people.high)
        ends = biases.told(run, bias).ends
        return marks.interval_bar(scale, *ends, write=write, ceiling=people.value, band=band, reference=0.0)

    return [
        Column("points" if biases.kind.pairwise else "value", figure, css=f"n figure sep of-{bias}"),
        drawn(scale, _tick if biases.kind.pairwise else short, bar, f"plotted of-{bias}"),
        Column(
            "beyond people" if biases.knows_people(bias) else "against 0",
            lambda run: _beyond(biases, run, bias),
            css=f"n beyond of-{bias}",
        ),
    ]


def _without(biases: Biases, run: int | None, bias: str) -> Cell:
    """In place of a figure."""
    row = biases.rows.get((run, bias))
    reason = (row and row.detail.reason) or "not measured"
    if run is not None:
        return Cell(NONE, title=reason)
    if bias in AGAINST_PEOPLE:
        return Cell("0", "the reference", title=reason, small_css="block")
    return Cell(
        "not known", "order not kept" if bias == "position" else "", title=reason, strong=True, small_css="block"
    )


def _behind(biases: Biases, run: int | None, bias: str) -> str:
    """What is said of a figure to those who point at it."""
    row, number = biases.rows[run, bias], biases.told(run, bias)
    test = "" if row.detail.p is None else f"sign test p = {row.detail.p:.2g}"
    method = row.detail.method if bias == "position" and not test else ""
    return ", ".join(filter(None, [interval(number, biases.write), f"n = {whole(number.n)}", test, method]))


def _beyond(biases: Biases, run: int | None, bias: str) -> Cell:
    number, write = biases.difference(run, bias), biases.write
    if run is None or number.value is None:
        return Cell()
    css = "" if biases.needs_no_skill(run) else biases.css(run, bias)
    sort = {"bad": "strong", "warn": "notable"}.get(css, "")
    told_already = number == biases.told(run, bias)  # the interval stands beside the figure
    small = sort if told_already else in_brackets(number, write) or "no interval"
    words, title = write(number.value), ", ".join(filter(None, [sort, interval(number, write)]))
    if css:
        return Cell(small=small, chips=(Chip(words, css, title),), small_css="block")
    return Cell(words, small, title=title, small_css="block")


def _file(address: Address, metric: str) -> str:
    """Where a plot of this page is, as a file."""
    return address.to("leaderboard:plot", "bias", **address.view(), metric=metric)


# ---- figures of single judges ----

SHORT = 11  # steps of a scale whose distribution is drawn
ORDERS = 8  # drawn, of those that rankings give
CURVES = 4  # drawn unasked
CURVE = (580, 190)  # pixels, as drawn


@dataclass(frozen=True, slots=True)
class Sort:
    """A sort of figure about one judge: its numbers in a table of ``columns``, and mostly a plot."""

    name: str
    points: Callable[[BiasRow], Sequence[Any]]
    columns: Sequence[Column[Any]]
    words: Callable[[BiasRow], str]
    draw: Callable[[Biases, BiasRow], SafeString] | None = None


def _steps(row: BiasRow, part: str) -> list[tuple[str, float, float]]:
    """Each step of a short scale with the judge's share of it and people's."""
    detail = row.detail
    judge = getattr(detail, part)
    people = getattr(detail, "people" if part == "judge" else f"{part}_people")
    if not judge or not detail.scale or len(detail.scale) > SHORT:
        return []
    return list(zip(map(short, detail.scale), judge, people, strict=True))


def _distribution(name: str, part: str, of: str, words: Callable[[BiasRow], str]) -> Sort:
    def draw(biases: Biases, row: BiasRow) -> SafeString:
        return plots.two_distributions(_steps(row, part), title=f"{biases.label(row.run)}: {of}, beside people's")

    columns: list[Column[Any]] = [
        names("Score", lambda step: step[0]),
        Column("Judge %", lambda step: step[1], percent),
        Column("People %", lambda step: step[2], percent),
    ]
    return Sort(name, lambda row: _steps(row, part), columns, words, draw)


def _curve(row: BiasRow | None) -> Sequence[Any]:
    curve = (row and row.detail.curve) or []
    return curve if len(curve) > 1 else []


def _length(label: str, counted: str, below: str, write: Any, on_plot: Any, unit: float, base: float) -> Sort:
    """The preference for the longer answer, or the score, against the difference of lengths."""

    def steps(row: BiasRow | None) -> list[plots.Step]:
        found = []
        for at in _curve(row):
            said = (with_interval(at.value, on_plot), f"longer by {short(at.difference)}", f"n = {whole(at.n)}")
            found.append(plots.Step(at.difference, at.value, said))
        return [step for step in found if step.number.value is not None]

    def draw(biases: Biases, row: BiasRow) -> SafeString:
        across, up = [0.0], [base]
        for each in biases.rows.values():
            for step in steps(each):
                across.append(step.x)
                up += [end for end in step.number.ends if end is not None]
        x = marks.axis(across, most=5)
        return plots.lines(
            *("curve", steps(row)),
            title=f"{biases.label(row.run)}: what longer answers get, against the difference of lengths",
            x=x,
            y=marks.axis(up, unit=unit),
            ticks=[(tick, short(tick)) for tick in x.ticks],
            write=on_plot,
            people=steps(biases.rows.get((None, "length"))),
            base=base,
            size=CURVE,
            below=below,
        )

    columns: list[Column[Any]] = [
        names("Difference", lambda at: f"{short(at.low)} to {short(at.high)}"),
        Column(label, lambda at: write(at.value.value)),
        Column("95%", lambda at: interval(at.value, write)),
        Column("n", "n"),
    ]
    return Sort("length", _curve, columns, lambda row: number_of(row.n, counted), draw)


def _orders(biases: Biases, row: BiasRow) -> SafeString:
    most = list((row.detail.orders or {}).items())[:ORDERS]
    bars = [plots.ForestRow(order, Number(100 * part)) for order, part in most]
    return plots.forest(bars, title=f"Orders that {biases.label(row.run)} gives: shares of rankings, %", write=short)


def _models(row: BiasRow) -> list[tuple[str, Any]]:
    """What judge and people give each model (MLLM-as-a-Judge, Figure 20)."""
    own = row.detail.models or ()
    given = row.detail.by_model or {}
    return [(f"{model} (own)" if model in own else model, of) for model, of in given.items()]


def _share(label: str, field: str) -> Column[Any]:
    return Column(label, lambda each: percent(getattr(each[1], field)))


MODELS = Sort(
    "models",
    _models,
    [
        names("Model", lambda each: each[0]),
        _share("Judge: points %", "judge"),
        _share("People: points %", "people"),
        _share("Judge: wins of decided %", "judge_decided"),
        _share("People: wins of decided %", "people_decided"),
        Column("n", lambda each: each[1].n),
    ],
    lambda row: f"n {whole(row.n)}",
)
ORDERS_GIVEN = Sort(
    "orders",
    lambda row: list((row.detail.orders or {}).items()),
    [names("Order", lambda given: given[0]), Column("%", lambda given: given[1], percent)],
    lambda row: f"{len(row.detail.orders or ())} orders, n {whole(row.n)}",
    _orders,
)
SCORES = _distribution(
    "scores",
    "judge",
    "scores",
    lambda row: f"mean {row.detail.judge_mean or 0:.2f}, people {row.detail.people_mean or 0:.2f}",
)
OWN = _distribution("own", "own", "scores of answers of its own family", lambda row: ", ".join(row.detail.models or ()))
OTHERS = _distribution("others", "others", "scores of other answers", lambda row: "others")
AXES = "the same axes in each picture"
CURVES_OF_PAIRS = "Longer won %", "pair", "by how much the longer answer is longer"
CURVES_OF_SCORES = "Points", "answer", "by how much the answer is longer than others to the same"


@dataclass(frozen=True, slots=True)
class Panel:
    """``key``: of the marks in its figures."""

    title: str
    words: str
    sorts: Sequence[Sort]
    key: str = ""


PANELS_OF_PAIRS = (
    Panel(
        "How often the longer answer wins",
        f"% of pairs it won, by how many words it is longer; {AXES}",
        [_length(*CURVES_OF_PAIRS, percent, whole_percent, 0.01, 0.5)],
        "curves",
    ),
    Panel("Model by model", "a tie is half a point; the same pairs", [MODELS]),
)
PANELS = (
    Panel("Scores, judge and people", "", [SCORES], "bars"),
    Panel(
        "What longer answers get",
        f"points beside the mean of the sample, by the difference of lengths; {AXES}",
        [_length(*CURVES_OF_SCORES, signed, two, 1.0, 0.0)],
        "curves",
    ),
    Panel("Own family and others", "scores given by judge and people", [OWN, OTHERS], "bars"),
    Panel("Orders given", "letters in the order in which answers were shown", [ORDERS_GIVEN]),
)


def _panels_of(kind: Kind) -> Sequence[Panel]:
    return PANELS_OF_PAIRS if kind.pairwise else PANELS


def _panels(address: Address, biases: Biases) -> Iterator[dict[str, Any]]:
    for panel in _panels_of(biases.kind):
        figures = list(_figures(address, biases, panel))
        if figures:
            few = CURVES if panel.key == "curves" else len(figures)
            yield {"is": panel, "figures": figures[:few], "more": figures[few:], "all": len(figures)}


def _figures(address: Address, biases: Biases, panel: Panel) -> Iterator[dict[str, Any]]:
    curves = panel.key == "curves"  # people's own is drawn into each
    for run in biases.judges if curves else biases.voters:
        for bias in LABELS:
            row = biases.rows.get((run, bias))
            for sort in panel.sorts if row else ():
                if row and sort.points(row):
                    yield _figure(address, biases, sort, row)


def _figure(address: Address, biases: Biases, sort: Sort, row: BiasRow) -> dict[str, Any]:
    name = biases.label(row.run)
    return {
        "name": name,
        "words": sort.words(row),
        "verdicts": biases.verdicts(address, row.run),
        "table": table(sort.columns, sort.points(row), label=name, caption=name, css="cmpt"),
        "plot": sort.draw(biases, row) if sort.draw else BLANK,
        "link": _file(address, f"{sort.name}-{row.run or 'people'}"),
    }


# ---- plots as files ----


def plot_of(board: BiasBoard, metric: str, kind: Kind) -> SafeString:
    """A bias of every judge as a forest plot, or a figure of one of them (``length-3``: of run 3); else empty."""
    biases = Biases(board, kind)
    name, _, whose = metric.partition("-")
    for panel in _panels_of(kind):
        for sort in panel.sorts:
            found = [row for row in board.rows if str(row.run or "people") == whose and sort.points(row)]
            if sort.name == name and found and sort.draw:
                return sort.draw(biases, found[0])
    rows = _rows_of(biases, metric)
    if not rows:
        return BLANK
    title = f"{LABELS[metric]}: {words_of(metric, kind)}, with 95% intervals"
    return plots.forest(rows, title=title, write=_tick_of(kind), width=WIDE)


def _tick_of(kind: Kind) -> Callable[[float], str]:
    return lambda value: short(100 * value if kind.pairwise else value)


def _rows_of(biases: Biases, metric: str) -> list[plots.ForestRow]:
    """People, then judges by how far they are swayed. What needs no skill does not widen the axis."""
    found = [row for row in biases.rows.values() if row.bias == metric and row.told.value is not None]
    rows = []
    for row in sorted(found, key=lambda row: (row.run is not None, row.told.value or 0.0)):
        said = (with_interval(row.told, biases.write), f"n = {whole(row.told.n)}", row.detail.reason or "")
        apart, quiet = biases.needs_no_skill(row.run), row.run is None
        rows.append(plots.ForestRow(biases.label(row.run), row.told, quiet=quiet, said=said, apart=apart))
    return rows


def picture_of(board: BiasBoard, kind: Kind, benchmark: str) -> plots.Rows | None:
    """The bias that sways a judge most, of all judges beside people; None where none is measured."""
    biases = Biases(board, kind)
    of_judges = {metric: [row for row in _rows_of(biases, metric) if not row.apart] for metric in LABELS}
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
        figure=biases.write,
        unit=0.01 if kind.pairwise else 1.0,
        zero=True,
    )
