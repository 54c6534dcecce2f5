"""Plots of a page that are files as well: forests, heat tables, profiles, lines, points on two axes."""

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from math import log10

from django.utils.safestring import SafeString
from PIL import Image, ImageDraw

from leaderboard.boards.recipes import BinRow
from leaderboard.pages import drawing
from leaderboard.pages.drawing import (
    LETTER,
    PAPER,
    Pen,
    Pixels,
    Room,
    dot,
    hit,
    in_lines,
    level,
    line,
    name_in_lines,
    rect,
    svg,
    text,
    upright,
)
from leaderboard.pages.marks import Axis, Cell, axis
from leaderboard.pages.table import Table
from leaderboard.rows import Number
from stats.figures import percent, whole_percent

Write = Callable[[float], str]
UNIT = Axis(0.0, 1.0, (0.0, 0.5, 1.0))


def _levels(y: Axis, write: Write, foot: float, top: float, ends: tuple[float, float]) -> list[str]:
    """The lines of an axis that goes up, each with its number."""
    left, right = ends
    places = [(y.at(tick, foot, top), write(tick)) for tick in y.ticks]
    return [line("gl", (left, at), (right, at)) + text(left - 8, at + 4, words, anchor="end") for at, words in places]


# ---- one row a number ----


@dataclass(frozen=True, slots=True)
class ForestRow:
    """``plain``: the number before something was taken out of it, as an open dot. ``said``: what is told of the row to
    those who point at it, line by line after its name.
    """

    name: str
    number: Number
    quiet: bool = False  # the anchor: there to compare with
    plain: float | None = None
    said: tuple[str, ...] = ()
    apart: bool = False  # does not widen the axis: an arrow at its end where it lies beyond


LABELS = 0.52  # of the width, at most, for names


def forest(rows: list[ForestRow], *, title: str, write: Write, width: int = 276) -> SafeString:
    """Dots with intervals, one line a row, the ticks below; a line at 0. A long name takes several lines, so that none
    is cut.
    """
    step, font = (17, 11) if len(rows) > 32 else (21, 12)
    names = [in_lines(row.name, int(LABELS * width / (LETTER * font))) for row in rows]
    left = min(LABELS * width, LETTER * font * max(map(len, chain(*names)), default=0)) + 8
    within = [row for row in rows if not row.apart] or rows
    scale = axis([*(end for row in within for end in (*row.number.ends, row.plain)), 0.0], most=5)
    heights = [step + (len(name) - 1) * (font + 2) for name in names]
    foot, top, body = sum(heights) + 6, 0.0, []

    def x(value: float) -> float:
        return scale.at(value, left + 8, width - 14)

    for tick in scale.ticks:
        body.append(line("gl" if tick else "ref", (x(tick), 0), (x(tick), foot)))
        body.append(text(x(tick), foot + 15, write(tick), anchor="middle"))
    for row, name, height in zip(rows, names, heights, strict=True):
        y, value = top + height / 2, row.number.value or 0.0
        drawn = name_in_lines(name, 0, y, "tk" if row.quiet else "lab", font)
        if beyond := scale.beyond(value):
            drawn += f'<path class="pt" d="{scale.arrow(x(value), y, beyond)}"/>'
        else:
            drawn += line("rng", *level(row.number, x, y))
            drawn += dot("open", x(row.plain), y, 3) if row.plain is not None else ""
            drawn += dot("open" if row.quiet else "pt", x(value), y, 3.5)
        body.append(hit(drawn, (row.name, *row.said)))
        top += height
    return svg("forest", width, foot + 22, title, body)


# ---- tables and shares ----

HEAT = 5  # steps


def heatmap(table: Table, *, title: str, low: str, high: str) -> SafeString:
    """The coloured cells of a table with the scale below; column names stand upright. Empty without any."""
    names = [head.column.label for head in table.heads if head.column.kind == "heat"]
    rows = [(_named(row.of_kind("name")[0]), row.of_kind("heat")) for row in table.rows]
    if not names:
        return SafeString()
    left, top = (space + round(6.6 * max(map(len, of), default=0)) for space, of in ((16, dict(rows)), (30, names)))
    width, height = 52, 26
    body = [text(8, 14, title, "lab", size=13)]
    for at, name in enumerate(names):
        x = left + width * (at + 0.5) + 4
        body.append(f'<g transform="rotate(-90 {x} {top - 6})">{text(x, top - 6, name, size=12)}</g>')
    for at, (name, cells) in enumerate(rows):
        y = top + height * at
        body.append(text(left - 8, y + 17, name, "lab", anchor="end"))
        for x, cell in zip(range(left, left + width * len(cells), width), cells, strict=True):
            colour = cell.css if cell.css[:1] == "q" else "qx"
            body.append(rect(colour, x, y, width - 1, height - 1))
            body.append(text(x + width / 2, y + 17, cell.text, "lab" if colour != "qx" else "tk", anchor="middle"))
    foot, begin = top + height * len(rows) + 14, left + 8 + round(6.6 * len(low))
    body += [text(left, foot + 9, low), text(begin + 108, foot + 9, high)]
    body += [rect(f"q{n}", begin + 20 * n, foot, 20, 10) for n in range(HEAT)]
    wide = max(left + width * len(names), begin + 108 + 8 * len(high), 8 + round(7.6 * len(title))) + 8
    return svg("heatmap", wide, foot + 20, title, body)


def _named(cell: Cell) -> str:
    """A name where no chips stand beside it: it says simulated itself."""
    return f"{cell.text} (simulated)" if any(chip.text == "simulated" for chip in cell.chips) else cell.text


def two_distributions(shares: list[tuple[str, float, float]], *, title: str) -> SafeString:
    """Two bars a step: the judge's share and, lighter, people's; the largest share fills the height."""
    width, foot, step = 276, 88, 276 / max(len(shares), 1)
    most, bar = max((max(of) for _, *of in shares), default=0) or 1, min(22.0, step * 0.34)
    body = []
    for at, (name, *of) in enumerate(shares):
        middle = step * (at + 0.5)
        for css, share, left in zip("wt", of, (middle - bar, middle), strict=True):
            tall = 84 * share / most
            body.append(rect(css, left, foot - tall, bar - 1, tall))
        body.append(text(middle, 104, name, anchor="middle"))
    body.append(line("ref", (0, foot + 0.5), (width, foot + 0.5)))
    return svg("forest", width, 110, title, body)


def reliability(bins: Sequence[tuple[BinRow, str]], *, title: str) -> SafeString:
    """A reliability diagram: mean confidence across, share right up, a dot a bin, and its gap to the diagonal. Each bin
    has a link to where its answers stand.
    """
    left, top, right, foot = 32, 6, 200, 174

    def at(confidence: float, accuracy: float) -> tuple[float, float]:
        return UNIT.at(confidence, left, right), UNIT.at(accuracy, foot, top)

    body = [line("gl", (left, top), (left, foot), (right, foot)), line("ref", at(0, 0), at(1, 1), dashed=True)]
    for tick in UNIT.ticks:
        x, y = at(tick, tick)
        words = whole_percent(tick)
        body += [text(x, foot + 16, words, anchor="middle"), text(left - 6, y + 4, words, anchor="end")]
    every = []
    for part, link in bins:
        x, y = at(part.confidence, part.accuracy)
        said = (f"{percent(part.accuracy)}% right", f"{percent(part.confidence)}% sure", f"{part.n:,} questions")
        every.append(", ".join(said))
        gap = line("gap", (x, y), at(part.confidence, part.confidence))
        body.append(hit(gap + dot("pt", x, y, 3.5), said, link=link))
    drawn = svg("forest reliability", right + 12, foot + 22, f"{title}: {'; '.join(every)}", body)
    return SafeString(drawing.standing_alone(drawn))


# ---- models over levels ----


@dataclass(frozen=True, slots=True)
class Dot:
    """A model's number at one level. ``said``: what is told of it, line by line; ``link``: where a click leads."""

    number: Number
    said: tuple[str, ...]
    link: str


@dataclass(frozen=True, slots=True)
class Profile:
    """One model over the levels of a plot; None where nothing was counted."""

    name: str
    dots: tuple[Dot | None, ...]


def profiles(
    levels: Sequence[str], of: Sequence[Profile], *, title: str, write: Write, unit: float = 1.0
) -> SafeString:
    """Models beside each other, a band a level: each a dot of its own colour and shape with its interval, all on one
    axis cut to the data. Empty without a number.
    """
    ends = [end for profile in of for dot in profile.dots if dot for end in dot.number.ends]
    if not ends:
        return SafeString()
    width, lane = 440, 15
    letter = LETTER * 15  # as large as names are on a phone
    names = [in_lines(level, int(0.34 * width / letter)) for level in levels]
    left = letter * max(map(len, chain(*names))) + 20
    scale = axis(ends, most=7, unit=unit)

    def x(value: float) -> float:
        return scale.at(value, left, width - 16)

    body = []
    for number, profile in enumerate(of):  # the legend
        body.append(dot(f"c{number}", left + 5, 14 + 20 * number))
        body.append(text(left + 16, 18 + 20 * number, profile.name, "lab"))
    begin = top = 32 + 20.0 * len(of)
    bands = []
    for number, (at, name) in enumerate(zip(levels, names, strict=True)):
        tall = max(lane * len(of) + 8, 16 * len(name) + 8)
        bands += [rect("calm", 0, top, width, tall)] if number % 2 == 0 else []
        body.append(name_in_lines(name, 8, top + tall / 2, "lab", 12))
        for place, profile in enumerate(of):
            if found := profile.dots[number]:
                y = top + tall / 2 + lane * (place - len(of) / 2 + 0.5)
                drawn = line(f"line c{place}", *level(found.number, x, y))
                drawn += dot(f"c{place}", x(found.number.value or 0.0), y)
                body.append(hit(drawn, (f"{profile.name}, {at}", *found.said), link=found.link))
        top += tall
    for tick in scale.ticks:
        bands.append(line("gl", (x(tick), begin - 4), (x(tick), top)))
        body.append(text(x(tick), begin - 10, write(tick), anchor="middle"))
    return svg("forest dotted", width, top + 4, title, [*bands, *body])


# ---- a number over something ----


@dataclass(frozen=True, slots=True)
class Step:
    """A number at ``x``: at a snapshot, a bin. ``said``: what is told of it, line by line; ``link``: where a click
    leads; ``changed``: what is no longer as it was at the step before, in a few words.
    """

    x: float
    number: Number
    said: tuple[str, ...] = ()
    link: str = ""
    changed: str = ""


def lines(
    css: str,
    steps: Sequence[Step],
    *,
    title: str,
    x: Axis,
    y: Axis,
    ticks: Sequence[tuple[float, str]],
    write: Write,
    people: Sequence[Step] = (),
    base: float | None = None,
    size: tuple[int, int] = (560, 150),
) -> SafeString:
    """Steps with their intervals, joined by a line, over that of people; ``ticks``: words under places on ``x``;
    ``base``: a value with a line.
    """
    left, top, right, foot = 48, 10, size[0], 10 + size[1]

    def across(value: float) -> float:
        return x.at(value, left + 20, right - 34)  # a date under the last one has room

    def up(value: float) -> float:
        return y.at(value, foot, top)

    def path(of: Sequence[Step]) -> list[tuple[float, float]]:
        return [(across(step.x), up(step.number.value or 0.0)) for step in of]

    body = _levels(y, write, foot, top, (left, right))
    body += [text(across(at), foot + 20, words, anchor="middle") for at, words in ticks]
    body.append(line("ref", (left, up(base)), (right, up(base))) if base is not None else "")
    body += [line("people", *path(people)), line("rng", *path(steps))]
    for step, (at, middle) in zip(steps, path(steps), strict=True):
        if step.changed:
            side, anchor = (6, "start") if at < (left + right) / 2 else (-6, "end")
            body.append(line("then", (at, top), (at, foot), dashed=True))
            body.append(text(at + side, foot - 4, step.changed, anchor=anchor))
        drawn = line("rng", *upright(step.number, up, at)) + dot("pt", at, middle, 3.5)
        body.append(hit(drawn, step.said, link=step.link))
    return svg(f"forest {css}", right, foot + 28, title, body)


# ---- points on two axes ----


@dataclass(frozen=True, slots=True)
class Point:
    """A name at a price, or another ``x`` with its interval; ``value`` with its own; ``link``: where a click leads."""

    name: str
    x: float
    value: Number
    words: str
    link: str = ""
    x_ends: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Plot:
    """``write``: the value's axis; ``unit``: what it counts in; ``person``: one more person, a line with a band;
    ``floor``: what needs no skill, with its words. ``priced``: across are prices, on a logarithmic axis, and what is
    best for its price is a filled dot, or what is of its ``own`` name; else both axes are alike.
    """

    title: str
    under: str
    across: str
    points: Sequence[Point]
    write: Write
    unit: float = 1.0
    person: Number | None = None
    floor: tuple[str, float] | None = None
    priced: bool = True
    own: str = ""

    def place(self, x: float) -> float:
        return log10(x) if self.priced else x


SHARED = 1200, 630  # pixels of a PNG, which social networks show
FEWEST = 3


def points(plot: Plot, *, width: int = 768, height: int = 420, links: bool = True) -> SafeString:
    body = _Points(drawing, plot, width, height, 8).drawn(links=links)
    return svg("picture", width, height, f"{plot.title}: {plot.under}", body)


def narrow(plot: Plot) -> SafeString:
    """On a phone: without points that another beats, where enough are left."""
    best = best_for_price(plot.points)
    return points(replace(plot, points=best) if len(best) >= FEWEST else plot, width=310, height=300)


def png(plot: Plot, *, at: datetime, address: str) -> bytes:
    """The plot with its title, day, and where it is from."""
    picture, scale = Image.new("RGB", SHARED, PAPER), 1.5
    pen = Pixels(ImageDraw.Draw(picture), scale)
    width, height = (side / scale for side in SHARED)
    pen.text(24, 36, plot.title, "lab", size=22)
    pen.text(24, 58, plot.under, size=13)
    _Points(pen, plot, width, height - 28, 72).drawn(links=False)
    pen.text(24, height - 12, f"{at:%-d %b %Y}", size=13)
    pen.text(width - 24, height - 12, address, anchor="end", size=13)
    file = io.BytesIO()
    picture.save(file, "PNG", optimize=True)
    return file.getvalue()


class _Points:
    """A plot between its sides."""

    def __init__(self, pen: Pen, plot: Plot, width: float, height: float, top: float) -> None:
        self.pen, self.plot, self.top = pen, plot, top
        self.left, self.right, self.foot = 52, width - 24, height - 46
        self.levels = []
        if plot.person:
            self.levels.append(("people", f"one more person {plot.write(plot.person.value or 0.0)}", plot.person))
        if plot.floor:
            self.levels.append(("oth", plot.floor[0], Number(plot.floor[1])))
        across = [plot.place(end) for point in plot.points for end in (point.x, *point.x_ends)]
        self.across = axis(across, most=6, unit=1.0 if plot.priced else plot.unit)
        numbers = [*(point.value for point in plot.points), *(number for *_, number in self.levels)]
        self.up = axis([end for number in numbers for end in number.ends], unit=plot.unit)
        self.room = Room(self.left, self.right, [], [self.y(number.value) for *_, number in self.levels])

    def x(self, value: float) -> float:
        return self.across.at(self.plot.place(value), self.left + 24, self.right - 36)

    def y(self, value: float | None) -> float:
        return self.up.at(value or 0.0, self.foot - 10, self.top + 10)

    def name(self, x: float, y: float, words: str, css: str = "tk", anchor: str = "start") -> str:
        return self.pen.text(x, y, words, css, anchor=anchor, size=13)

    def through(self, css: str, value: float | None) -> str:
        """A level line."""
        return self.pen.line(css, (self.left, self.y(value)), (self.right, self.y(value)), dashed=css == "oth")

    def drawn(self, *, links: bool) -> list[str]:
        return [*self._axes(), *self._compared(), *self._dots(links=links)]

    def _axes(self) -> Iterator[str]:
        plot = self.plot
        for tick in self.up.ticks:
            yield self.through("gl", tick)
            yield self.name(self.left - 8, self.y(tick) + 4, plot.write(tick), anchor="end")
        prices = [factor * 10.0**power for power in range(-6, 7) for factor in (1, 3)]
        inside = [price for price in prices if not self.across.beyond(log10(price), 0.004)]
        for tick in inside if plot.priced else self.across.ticks:
            words = f"${tick:,.10g}" if plot.priced else plot.write(tick)
            yield self.name(self.x(tick), self.foot + 18, words, anchor="middle")
        yield self.name(self.right, self.foot + 38, plot.across, anchor="end")

    def _compared(self) -> Iterator[str]:
        """One more person as a band, and what needs no skill as a dashed line, with their names."""
        for css, words, number in self.levels:
            if number.between:
                low, high = map(self.y, number.between)
                yield self.pen.rect("band", self.left, high, self.right - self.left, low - high)
            yield self.through(css, number.value)
            y, wide = self.y(number.value) - 6, LETTER * 13 * len(words)
            begin = self.left + 4 if css == "people" else self.right - wide
            self.room.taken.append((begin, begin + wide, y))
            if css == "people":
                yield self.name(begin, y, words, css)
            else:
                yield self.name(self.right, y, words, anchor="end")

    def _dots(self, *, links: bool) -> Iterator[str]:
        plot, pen = self.plot, self.pen
        best: Sequence[Point] = best_for_price(plot.points) if plot.priced else plot.points
        if plot.priced and not plot.own:
            yield pen.line("oth", *((self.x(point.x), self.y(point.value.value)) for point in best), dashed=True)
        filled = [point for point in plot.points if point.name == plot.own] if plot.own else best
        for point in plot.points:
            x, y = self.x(point.x), self.y(point.value.value)
            drawn = pen.line("rng" if plot.priced else "oth", *upright(point.value, self.y, x))
            drawn += pen.line("oth", *((self.x(end), y) for end in point.x_ends))
            drawn += pen.dot("pt" if point in filled else "open", x, y, 5)
            yield hit(drawn, (point.name, point.words), link=point.link if links else "")
        for point in sorted(plot.points, key=lambda point: point not in filled):
            if spot := self.room.spot(point.name, self.x(point.x), self.y(point.value.value)):
                yield self.name(*spot, point.name, "lab" if point in filled else "tk")


def best_for_price(points: Sequence[Point]) -> list[Point]:
    """Those that no cheaper one reaches, from the cheapest on."""
    best: list[Point] = []
    for point in sorted(points, key=lambda point: (point.x, -(point.value.value or 0.0))):
        if not best or (point.value.value or 0.0) > (best[-1].value.value or 0.0):
            best.append(point)
    return best
