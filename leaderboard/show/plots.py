"""Plots of a page that are files as well: forests, heat tables, profiles, lines, points on two axes."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise, product
from math import log10
from typing import TYPE_CHECKING

from django.utils.safestring import SafeString

from leaderboard.rows import Number
from leaderboard.show import drawing
from leaderboard.show.drawing import area, dot, hit, in_lines, level, line, name_in_lines, rect, svg, text, upright
from leaderboard.show.fonts import BOLD, Measure, width_of, width_on_page
from leaderboard.show.labels import Label, Room
from leaderboard.show.marks import Axis, Cell, axis
from leaderboard.show.table import Table
from stats.figures import percent, whole_percent

if TYPE_CHECKING:
    from leaderboard.boards.recipes.board import BinRow

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
    step = 17 if len(rows) > 32 else 21
    drawn = _Rows(rows, write=write, width=width, step=step, font=12)
    return svg("forest", width, drawn.foot + 22, title, drawn.body())


def _scale_of(rows: Sequence[ForestRow], person: Number | None, unit: float, *, zero: bool) -> Axis:
    ends: list[float | None] = [0.0] if zero else []
    if person:
        ends += person.ends
    for row in [row for row in rows if not row.apart] or rows:
        ends += [*row.number.ends, row.plain]
    return axis(ends, most=5, unit=unit)


class _Rows:
    """Such rows, with what they are compared with above them. ``figure``: the numbers are written at the right as well;
    ``person``: one more person, a line with a band through them; ``more``: words below the names.
    """

    def __init__(
        self,
        rows: Sequence[ForestRow],
        *,
        write: Write,
        width: float,
        step: float,
        font: int,
        figure: Write | None = None,
        person: Number | None = None,
        unit: float = 1.0,
        zero: bool = True,
        more: str = "",
        width_of: Measure = width_on_page,
    ) -> None:
        self.rows, self.write, self.figure, self.person = rows, write, figure, person
        self.width, self.font, self.width_of, self.more = width, font, width_of, more
        self.names = [in_lines(row.name, LABELS * width, font, width_of) for row in rows]
        self.left = max((width_of(part, font) for part in chain(*self.names, [more])), default=0) + 8
        self.scale = _scale_of(rows, person, unit, zero=zero)
        self.heights = [step + (len(name) - 1) * (font + 2) for name in self.names]
        self.top = font + 8.0 if person else 0.0
        self.foot = self.top + sum(self.heights) + 6
        figures = [width_of(figure(row.number.value or 0.0), font) for row in rows] if figure else []
        self.right = width - 14 - max(figures, default=0)

    def x(self, value: float) -> float:
        return self.scale.at(value, self.left + 8, self.right)

    def body(self) -> Iterator[str]:
        yield from self._person()
        for tick in self.scale.ticks:
            yield line("gl" if tick else "ref", (self.x(tick), self.top), (self.x(tick), self.foot))
            yield text(self.x(tick), self.foot + self.font + 3, self.write(tick), anchor="middle", size=self.font - 1)
        if self.more:
            yield text(0, self.foot + self.font + 3, self.more, size=self.font - 1)
        yield from self._line()
        top = self.top
        for row, name, height in zip(self.rows, self.names, self.heights, strict=True):
            yield self._row(row, name, top + height / 2)
            top += height

    def _person(self) -> Iterator[str]:
        if self.person and self.person.between:
            low, high = map(self.x, self.person.between)
            yield rect("band", low, self.top, high - low, self.foot - self.top)

    def _line(self) -> Iterator[str]:
        if self.person and self.person.value is not None:
            x, words = self.x(self.person.value), f"one more person {(self.figure or self.write)(self.person.value)}"
            half = self.width_of(words, self.font, bold=True) / 2
            yield line("people", (x, self.top), (x, self.foot))
            middle = min(max(x, half), self.width - half)
            yield text(middle, self.top - 5, words, "people", anchor="middle", size=self.font, weight=BOLD)

    def _row(self, row: ForestRow, name: list[str], y: float) -> str:
        x, font, value = self.x, self.font, row.number.value or 0.0
        drawn = name_in_lines(name, 0, y, "tk" if row.quiet else "lab", font)
        if beyond := self.scale.beyond(value):
            drawn += f'<path class="pt" d="{self.scale.arrow(x(value), y, beyond)}"/>'
        else:
            drawn += line("rng", *level(row.number, x, y))
            drawn += dot("open", x(row.plain), y, 3) if row.plain is not None else ""
            drawn += dot("open" if row.quiet else "pt", x(value), y, 3.5)
        if self.figure:
            drawn += text(self.width, y + font / 3, self.figure(value), "lab", anchor="end", size=font)
        return hit(drawn, (row.name, *row.said))


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


def reliability(bins: Sequence[tuple["BinRow", str]], *, title: str) -> SafeString:
    """A reliability diagram: mean confidence across, share right up, a dot a bin, and its gap to the diagonal. Each bin
    has a link to where its answers stand. Eight of them stand in a row of a page, each as large as it is drawn.
    """
    left, top, right, foot = 28, 8, 136, 116

    def at(confidence: float, accuracy: float) -> tuple[float, float]:
        return UNIT.at(confidence, left, right), UNIT.at(accuracy, foot, top)

    body = [line("gl", (left, top), (left, foot), (right, foot)), line("ref", at(0, 0), at(1, 1), dashed=True)]
    for tick in UNIT.ticks:
        x, y = at(tick, tick)
        words = whole_percent(tick)
        body.append(text(x, foot + 17, words, anchor="middle", size=12))
        body.append(text(left - 6, y + 4, words, anchor="end", size=12))
    every = []
    for part, link in bins:
        x, y = at(part.confidence, part.accuracy)
        said = (f"{percent(part.accuracy)}% right", f"{percent(part.confidence)}% sure", f"{part.n:,} questions")
        every.append(", ".join(said))
        gap = line("gap", (x, y), at(part.confidence, part.confidence))
        body.append(hit(gap + dot("pt", x, y, 3), said, link=link))
    drawn = svg("forest reliability", right + 12, foot + 22, f"{title}: {'; '.join(every)}", body)
    return SafeString(drawing.standing_alone(drawn))


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


def _beside_lines(words_at: Sequence[tuple[float, str]], ends: tuple[float, float], foot: float) -> list[str]:
    """Words beside upright lines, right of them or else left, in as many as three rows from the foot up, where none
    lies on another; those that find no place are left to what is told of their step.
    """
    rows: list[list[tuple[float, float]]] = [[], [], []]
    written = []
    for at, words in words_at:
        wide = width_on_page(words, 12)
        sides = {"start": (at + 6, at + 6 + wide), "end": (at - 6 - wide, at - 6)}
        for (number, taken), (anchor, (low, high)) in product(enumerate(rows), sides.items()):
            free = all(high + 6 < begins or ends_at + 6 < low for begins, ends_at in taken)
            if ends[0] <= low and high <= ends[1] and free:
                taken.append((low, high))
                written.append(text(at + (6 if anchor == "start" else -6), foot - 14 * number, words, anchor=anchor))
                break
    return written


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
    below: str = "",
) -> SafeString:
    """Steps with their intervals, joined by a line, over those of people; ``ticks``: words under places on ``x``;
    ``base``: a value with a line; ``below``: what ``x`` is, in words.
    """
    left, top, right, foot = 48, 10, size[0], 10 + size[1]

    def across(value: float) -> float:
        return x.at(value, left + 20, right - 34)  # a date under the last one has room

    def up(value: float) -> float:
        return y.at(value, foot, top)

    def path(of: Sequence[Step]) -> list[tuple[float, float]]:
        return [(across(step.x), up(step.number.value or 0.0)) for step in of]

    known = [(across(step.x), *map(up, step.number.between)) for step in people if step.number.between]
    band = [(at, low) for at, low, _ in known] + [(at, high) for at, _, high in reversed(known)]
    body = [area("band", *band) if len(known) > 1 else "", *_levels(y, write, foot, top, (left, right))]
    body += [text(across(at), foot + 20, words, anchor="middle") for at, words in ticks]
    body.append(line("ref", (left, up(base)), (right, up(base))) if base is not None else "")
    body += [line("people", *path(people)), line("rng", *path(steps))]
    changes = [(across(step.x), step.changed) for step in steps if step.changed]
    body += [line("then", (at, top), (at, foot), dashed=True) for at, _ in changes]
    body += _beside_lines(changes, (left, right), foot - 4)
    for step, (at, middle) in zip(steps, path(steps), strict=True):
        drawn = line("rng", *upright(step.number, up, at)) + dot("pt", at, middle, 3.5)
        body.append(hit(drawn, step.said, link=step.link))
    if below:
        body.append(text(right - 34, foot + 38, below, anchor="end"))
    return svg(f"forest {css}", right, foot + (46 if below else 28), title, body)


# ---- pictures of a page that are shared as well ----

FEWEST = 3  # points
ROW_LEAST, ROW_MOST, BELOW = 21.0, 64.0, 20.0  # pixels of a row, and of the figures below them
SCALES = 2.8, 2.4, 2.1, 1.9, 1.7


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure(ABC):
    """What a picture shows. ``title`` and ``under`` are its words above; ``write``: the value's axis; ``unit``: what it
    counts in; ``person``: one more person, a line with a band.
    """

    title: str
    under: str
    write: Write
    unit: float = 1.0
    person: Number | None = None

    @property
    @abstractmethod
    def names(self) -> list[str]: ...

    @abstractmethod
    def without(self, names: Collection[str]) -> "Figure":
        """The same, but for these names, of which nothing is written."""

    @abstractmethod
    def scale(self, width: float, height: float) -> float:
        """How much larger it is drawn where it is shared, in so many pixels."""

    @abstractmethod
    def body(self, width: float, height: float) -> list[str]: ...


# ---- rows as a picture ----

NOT_WRITTEN = "(a name in other letters)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows(Figure):
    """The first ``rows`` that there is room for, best first, each with its number, written by ``figure``. ``zero``:
    whether the axis reaches it.
    """

    rows: Sequence[ForestRow]
    figure: Write
    zero: bool = False

    @property
    def names(self) -> list[str]:
        return [row.name for row in self.rows]

    def without(self, names: Collection[str]) -> "Rows":
        return replace(self, rows=[replace(row, name=NOT_WRITTEN) if row.name in names else row for row in self.rows])

    def scale(self, width: float, height: float) -> float:
        """The largest at which all rows fit."""
        fits = (scale for scale in SCALES if self._fit(width / scale, height / scale) == len(self.rows))
        return next(fits, SCALES[-1])

    def _fit(self, width: float, height: float) -> int:
        """How many rows there is room for."""
        fits = (n for n in range(len(self.rows), 1, -1) if self._laid(n, width, ROW_LEAST).foot + BELOW <= height)
        return next(fits, 1)

    def _laid(self, n: int, width: float, step: float) -> _Rows:
        return _Rows(
            self.rows[:n],
            write=self.write,
            width=width,
            step=step,
            font=13,
            figure=self.figure,
            person=self.person,
            unit=self.unit,
            zero=self.zero,
            more=f"and {len(self.rows) - n:,} more" if n < len(self.rows) else "",
            width_of=width_of,
        )

    def body(self, width: float, height: float) -> list[str]:
        n = self._fit(width, height)
        spare = height - BELOW - self._laid(n, width, ROW_LEAST).foot
        return list(self._laid(n, width, min(ROW_MOST, ROW_LEAST + max(0.0, spare) / n)).body())


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot(Figure):
    """``floor``: what needs no skill, with its words. ``priced``: across are prices, on a logarithmic axis, and what is
    best for its price is a filled dot, or what is of its ``own`` name; else both axes are alike.
    """

    across: str
    points: Sequence[Point]
    floor: tuple[str, float] | None = None
    priced: bool = True
    own: str = ""

    def place(self, x: float) -> float:
        return log10(x) if self.priced else x

    @property
    def names(self) -> list[str]:
        return [point.name for point in self.points]

    def without(self, names: Collection[str]) -> "Plot":
        return replace(self, points=[replace(p, name="") if p.name in names else p for p in self.points])

    def scale(self, width: float, height: float) -> float:
        return 1.75

    def body(self, width: float, height: float) -> list[str]:
        return _Points(self, width, height, 4, width_of).drawn(links=False)


def points(plot: Plot, *, width: int = 768, height: int = 420, links: bool = True) -> SafeString:
    body = _Points(plot, width, height, 8).drawn(links=links)
    return svg("picture", width, height, f"{plot.title}: {plot.under}", body)


def narrow(plot: Plot) -> SafeString:
    """On a phone: without points that another beats, where enough are left."""
    best = best_for_price(plot.points)
    return points(replace(plot, points=best) if len(best) >= FEWEST else plot, width=310, height=300)


NAME, RADIUS = 13, 5  # pixels


@dataclass(frozen=True, slots=True)
class _Level:
    """A line across a plot."""

    css: str
    words: str
    number: Number


class _Points:
    """A plot between its sides."""

    def __init__(self, plot: Plot, width: float, height: float, top: float, width_of: Measure = width_on_page) -> None:
        self.plot, self.top, self.width_of = plot, top, width_of
        self.levels = []
        if plot.person:
            words = f"one more person {plot.write(plot.person.value or 0.0)}"
            self.levels.append(_Level("people", words, plot.person))
        if plot.floor:
            words, value = plot.floor
            self.levels.append(_Level("oth", words, Number(value)))
        places: list[float] = []
        ends: list[float | None] = []
        for point in plot.points:
            places += map(plot.place, (point.x, *point.x_ends))
            ends += point.value.ends
        for each in self.levels:
            ends += each.number.ends
        self.across = axis(places, most=6, unit=1.0 if plot.priced else plot.unit)
        self.up = axis(ends, unit=plot.unit)
        wide = max((width_of(plot.write(tick), NAME) for tick in self.up.ticks), default=0)
        self.left, self.right, self.foot = wide + 10, width - 2, height - 44
        self.room = Room((self.left + 2, top, self.right, self.foot - 2), width_of)
        self.short = _shortened({point.name for point in plot.points})

    def x(self, value: float) -> float:
        return self.across.at(self.plot.place(value), self.left + 24, self.right - 36)

    def y(self, value: float | None) -> float:
        return self.up.at(value or 0.0, self.foot - 10, self.top + 10)

    def through(self, css: str, value: float | None) -> str:
        """A level line."""
        return line(css, (self.left, self.y(value)), (self.right, self.y(value)), dashed=css == "oth")

    def drawn(self, *, links: bool) -> list[str]:
        return [*self._axes(), *self._dots(links=links), *self._names()]

    @property
    def best(self) -> Sequence[Point]:
        return best_for_price(self.plot.points) if self.plot.priced else self.plot.points

    def _axes(self) -> Iterator[str]:
        plot = self.plot
        for each in self.levels:
            if each.number.between:
                low, high = map(self.y, each.number.between)
                yield rect("band", self.left, high, self.right - self.left, low - high)
        for tick in self.up.ticks:
            yield self.through("gl", tick)
            yield text(self.left - 8, self.y(tick) + 4, plot.write(tick), anchor="end", size=NAME)
        until = 0.0
        for tick, words in self._below():
            x, half = self.x(tick), self.width_of(words, NAME) / 2
            if x - half > until and x + half <= self.right:
                yield text(x, self.foot + 17, words, anchor="middle", size=NAME)
                until = x + half + 6
        yield text(self.right, self.foot + 38, plot.across, anchor="end", size=NAME)
        for each in self.levels:
            yield self.through(each.css, each.number.value)

    def _below(self) -> Iterator[tuple[float, str]]:
        if not self.plot.priced:
            yield from ((tick, self.plot.write(tick)) for tick in self.across.ticks)
            return
        for power, factor in product(range(-6, 7), (1, 3)):
            price = factor * 10.0**power
            if not self.across.beyond(log10(price), 0.004):
                yield price, f"${price:,.10g}"

    def _dots(self, *, links: bool) -> Iterator[str]:
        plot, room = self.plot, self.room
        if plot.priced and not plot.own:
            path = [(self.x(point.x), self.y(point.value.value)) for point in self.best]
            room.barred.extend(pairwise(path))
            yield line("oth", *path, dashed=True)
        filled = self._filled()
        for point in plot.points:
            x, y = self.x(point.x), self.y(point.value.value)
            between, aside = upright(point.value, self.y, x), [(self.x(end), y) for end in point.x_ends]
            room.dots.append(((x, y), RADIUS))
            room.thin.extend([*pairwise(between), *pairwise(aside)])
            drawn = line("rng" if plot.priced else "oth", *between) + line("oth", *aside)
            drawn += dot("pt" if point in filled else "open", x, y, RADIUS)
            yield hit(drawn, (point.name, point.words), link=point.link if links else "")

    def _filled(self) -> Sequence[Point]:
        plot = self.plot
        return [point for point in plot.points if point.name == plot.own] if plot.own else self.best

    def _names(self) -> Iterator[str]:
        """Of the lines, of what is best, and of others that there is room for."""
        room, filled = self.room, self._filled()
        heights = [self.y(each.number.value) for each in self.levels]
        room.barred.extend(((self.left, y), (self.right, y)) for y in heights)
        for each, y in zip(self.levels, heights, strict=True):
            css, words = each.css, each.words
            right, colour, weight = (True, "tk", 400) if css == "oth" else (False, css, BOLD)
            shorter = words.replace("one more person", "people"), words.rpartition(" ")[2]
            for said, across in product((words, *shorter), (False, True)):
                if label := room.along(said, y, NAME, across=across, from_right=right, bold=not right):
                    yield text(label.x, label.y, said, colour, anchor=label.anchor, size=NAME, weight=weight)
                    break
        for point in sorted(self.plot.points, key=lambda point: point not in filled):
            if found := self._beside(point):
                label, words = found
                leader = line("ref", *label.leader) if label.leader else ""
                css = "lab" if point in filled else "tk"
                yield leader + text(label.x, label.y, words, css, anchor=label.anchor, size=NAME)

    def _beside(self, point: Point) -> tuple[Label, str] | None:
        """Whole where that covers no interval, else shortened."""
        spot = self.x(point.x), self.y(point.value.value)
        for across in (False, True):
            for words in filter(None, (point.name, self.short.get(point.name))):
                if label := self.room.beside(words, spot, NAME, across=across):
                    return label, words
        return None


SHORT = 24  # letters


def _shortened(names: Collection[str]) -> dict[str, str]:
    """Long names without whose they are, and cut; none that would be the same as another."""
    last = {name: name.rpartition("/")[2] or name for name in names if len(name) > SHORT}
    cut = {name: end if len(end) <= SHORT else f"{end[: SHORT - 1].rstrip('-_ ')}…" for name, end in last.items()}
    many = Counter([*cut.values(), *names])
    return {name: short for name, short in cut.items() if many[short] == 1}


def best_for_price(points: Sequence[Point]) -> list[Point]:
    """Those that no cheaper one reaches, from the cheapest on."""
    best: list[Point] = []
    for point in sorted(points, key=lambda point: (point.x, -(point.value.value or 0.0))):
        if not best or (point.value.value or 0.0) > (best[-1].value.value or 0.0):
            best.append(point)
    return best
