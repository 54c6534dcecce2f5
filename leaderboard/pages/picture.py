"""Pictures to share: points on two axes, drawn once and written as SVG, in the page's colours, or as PNG.

What a judge's agreement with people costs, and what a model's rating costs.
"""

import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import pairwise
from math import log10

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from PIL import Image, ImageDraw, ImageFont

from leaderboard.pages import marks
from leaderboard.rows import Number

SIZE = 1200, 630  # of a PNG, which social networks show
INK, QUIET, GRID, ACCENT, BAND, PAPER, RANGE = (
    "#14191C",
    "#616C73",
    "#E1E5E7",
    "#0B696D",
    "#DCEEEC",
    "#FFFFFF",
    "#48535A",
)
COLOURS = {
    "gl": GRID, "pt": INK, "tk": QUIET, "people": ACCENT, "band": BAND, "open": PAPER, "rng": RANGE, "oth": "#868F95",
}  # fmt: skip
LETTER = 0.56  # width of a letter, as a share of its size
FEWEST = 3  # points


@dataclass(frozen=True, slots=True)
class Point:
    """A name at a price; ``value`` with its interval; ``link``: where a click leads."""

    name: str
    price: float
    value: Number
    words: str
    link: str = ""


@dataclass(frozen=True, slots=True)
class Plot:
    """What a picture shows. ``write``: the value's axis; ``person``: one more person, a line with a band; ``floor``:
    what needs no skill, with its words; ``unit``: what the value's axis counts in.
    """

    title: str
    under: str
    across: str
    points: Sequence[Point]
    write: Callable[[float], str]
    unit: float = 1.0
    person: Number | None = None
    floor: tuple[str, float] | None = None


@dataclass(slots=True)
class _Canvas:
    """Shapes in order, with the names of their colours."""

    svg: list[str] = field(default_factory=list)
    draw: ImageDraw.ImageDraw | None = None
    scale: float = 1.0

    def line(self, ends: Iterable[tuple[float, float]], colour: str, *, width: float = 1, dashed: bool = False) -> None:
        points = list(ends)
        if self.draw is None:
            path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
            stroke = f'stroke="{COLOURS[colour]}" stroke-width="{width}"' + ' stroke-dasharray="4 3"' * dashed
            self.svg.append(f'<path class="{colour}" d="{path}" fill="none" {stroke}/>')
            return
        at = [(x * self.scale, y * self.scale) for x, y in points]
        for start, end in pairwise(at):
            for a, b in _dashes(start, end, 7 * self.scale) if dashed else [(start, end)]:
                self.draw.line([a, b], fill=COLOURS[colour], width=max(1, round(width * self.scale)))

    def rect(self, x: float, y: float, width: float, height: float, colour: str) -> None:
        if self.draw is None:
            self.svg.append(
                f'<rect class="{colour}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
                f'fill="{COLOURS[colour]}"/>'
            )
            return
        corners = [x * self.scale, y * self.scale, (x + width) * self.scale, (y + height) * self.scale]
        self.draw.rectangle(corners, fill=COLOURS[colour])

    def dot(self, x: float, y: float, *, filled: bool) -> str:
        """The SVG of a dot, which may become a link; drawn at once in a PNG."""
        colour = "pt" if filled else "open"
        if self.draw is None:
            edge = "" if filled else f' stroke="{INK}" stroke-width="1.5"'
            return f'<circle class="{colour} at" cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{COLOURS[colour]}"{edge}/>'
        r = 5 * self.scale
        box = [x * self.scale - r, y * self.scale - r, x * self.scale + r, y * self.scale + r]
        self.draw.ellipse(box, fill=COLOURS[colour], outline=INK, width=round(1.5 * self.scale))
        return ""

    def text(self, x: float, y: float, words: str, colour: str, *, anchor: str = "start", size: int = 13) -> None:
        """``y`` is the line that the letters stand on."""
        if self.draw is None:
            self.svg.append(
                format_html(
                    '<text class="{}" x="{}" y="{}" font-size="{}" fill="{}" text-anchor="{}">{}</text>',
                    *(colour, round(x, 1), round(y, 1), size, COLOURS[colour], anchor, words),
                )
            )
            return
        font = ImageFont.load_default(size * self.scale)
        side = {"start": "l", "middle": "m", "end": "r"}[anchor]
        self.draw.text((x * self.scale, y * self.scale), words, fill=COLOURS[colour], font=font, anchor=f"{side}s")


def _dashes(
    start: tuple[float, float], end: tuple[float, float], step: float
) -> Iterable[tuple[tuple[float, float], ...]]:
    length = max(abs(end[0] - start[0]), abs(end[1] - start[1]), 1e-9)
    at = 0.0
    while at < length:
        part = [min(1.0, (at + more) / length) for more in (0.0, step * 0.6)]
        yield tuple((start[0] + (end[0] - start[0]) * t, start[1] + (end[1] - start[1]) * t) for t in part)
        at += step


def svg(plot: Plot, *, width: int = 768, height: int = 420, links: bool = True) -> SafeString:
    """The picture in a page; empty with fewer than three points."""
    if len(plot.points) < FEWEST:
        return SafeString()
    canvas = _Canvas()
    _drawn(canvas, plot, width, height, 8, links=links)
    role = "group" if links else "img"
    label = format_html("{}: {}", plot.title, plot.under)
    return mark_safe(  # noqa: S308 (numbers, and text escaped above)
        f'<svg xmlns="http://www.w3.org/2000/svg" class="picture" viewBox="0 0 {width} {height}" '
        f'font-family="system-ui, sans-serif" role="{role}" aria-label="{label}">{"".join(canvas.svg)}</svg>'
    )


def narrow(plot: Plot) -> SafeString:
    """The picture on a phone: without points that another beats, where enough are left."""
    best = best_for_price(plot.points)
    return svg(replace(plot, points=best) if len(best) >= FEWEST else plot, width=310, height=300)


def png(plot: Plot, *, at: datetime, address: str) -> bytes:
    """The picture with its title, day, and where it is from, 1200 x 630 pixels."""
    scale = 1.5
    picture = Image.new("RGB", SIZE, PAPER)
    canvas = _Canvas(draw=ImageDraw.Draw(picture), scale=scale)
    width, height = SIZE[0] / scale, SIZE[1] / scale
    canvas.text(24, 36, plot.title, "pt", size=22)
    canvas.text(24, 58, plot.under, "tk")
    _drawn(canvas, plot, width, height - 28, 72, links=False)
    canvas.text(24, height - 12, f"{at:%-d %b %Y}", "tk")
    canvas.text(width - 24, height - 12, address, "tk", anchor="end")
    file = io.BytesIO()
    picture.save(file, "PNG", optimize=True)
    return file.getvalue()


@dataclass(frozen=True, slots=True)
class _Frame:
    """Where prices, on a logarithmic axis, and values lie on the canvas."""

    prices: marks.Axis
    values: marks.Axis
    right: float
    top: float
    foot: float
    left: float = 52

    @classmethod
    def of(cls, plot: Plot, width: float, height: float, top: float) -> "_Frame":
        ends = [end for point in plot.points for end in point.value.ends]
        people = [*plot.person.ends] if plot.person else []
        floor = [plot.floor[1]] if plot.floor else []
        prices = marks.axis([log10(point.price) for point in plot.points], most=6)
        values = marks.axis([*ends, *people, *floor], unit=plot.unit)
        return cls(prices, values, width - 24, top, height - 46)

    def x(self, price: float) -> float:
        share = (log10(price) - self.prices.low) / (self.prices.high - self.prices.low)
        return self.left + 24 + share * (self.right - self.left - 60)

    def y(self, value: float) -> float:
        share = (value - self.values.low) / (self.values.high - self.values.low)
        return self.foot - 10 - share * (self.foot - self.top - 20)

    def across(self, value: float) -> list[tuple[float, float]]:
        """The ends of a level line."""
        return [(self.left, self.y(value)), (self.right, self.y(value))]


def _drawn(canvas: _Canvas, plot: Plot, width: float, height: float, top: float, *, links: bool) -> None:
    at = _Frame.of(plot, width, height, top)
    for tick in at.values.ticks:
        canvas.line(at.across(tick), "gl")
        canvas.text(at.left - 8, at.y(tick) + 4, plot.write(tick), "tk", anchor="end")
    for price in _round_prices(10**at.prices.low, 10**at.prices.high):
        canvas.text(at.x(price), at.foot + 18, f"${price:,.10g}", "tk", anchor="middle")
    canvas.text(at.right, at.foot + 38, plot.across, "tk", anchor="end")
    taken = _compared(canvas, plot, at)
    best = best_for_price(plot.points)
    canvas.line([(at.x(point.price), at.y(point.value.value or 0.0)) for point in best], "oth", width=1.5, dashed=True)
    for point in plot.points:
        low, high = point.value.low, point.value.high
        if low is not None and high is not None:
            canvas.line([(at.x(point.price), at.y(low)), (at.x(point.price), at.y(high))], "rng", width=1.5)
        dot = canvas.dot(at.x(point.price), at.y(point.value.value or 0.0), filled=point in best)
        if dot:
            canvas.svg.append(marks.hit(dot, (point.name, point.words), link=point.link if links else ""))
    levels = (plot.person.value if plot.person else None, plot.floor[1] if plot.floor else None)
    lines = [at.y(level) for level in levels if level is not None]
    for point in sorted(plot.points, key=lambda point: point not in best):
        where = _free(point.name, at.x(point.price), at.y(point.value.value or 0.0), at.left, at.right, taken, lines)
        if where:
            canvas.text(*where, point.name, "pt" if point in best else "tk")


def _compared(canvas: _Canvas, plot: Plot, at: _Frame) -> list[tuple[float, float, float]]:
    """One more person as a band, and what needs no skill as a dashed line; returns where their names stand."""
    person, taken = plot.person, []
    if person and person.value is not None:
        if person.low is not None and person.high is not None:
            canvas.rect(at.left, at.y(person.high), at.right - at.left, at.y(person.low) - at.y(person.high), "band")
        canvas.line(at.across(person.value), "people", width=1.5)
        name = f"one more person {plot.write(person.value)}"
        canvas.text(at.left + 4, at.y(person.value) - 6, name, "people")
        taken.append((at.left + 4, at.left + 4 + LETTER * 13 * len(name), at.y(person.value) - 6))
    if plot.floor:
        canvas.line(at.across(plot.floor[1]), "oth", dashed=True)
        canvas.text(at.right, at.y(plot.floor[1]) - 6, plot.floor[0], "tk", anchor="end")
        taken.append((at.right - LETTER * 13 * len(plot.floor[0]), at.right, at.y(plot.floor[1]) - 6))
    return taken


def best_for_price(points: Sequence[Point]) -> list[Point]:
    """Those that no cheaper one reaches, from the cheapest on."""
    best: list[Point] = []
    for point in sorted(points, key=lambda point: (point.price, -(point.value.value or 0.0))):
        if not best or (point.value.value or 0.0) > (best[-1].value.value or 0.0):
            best.append(point)
    return best


def _round_prices(low: float, high: float) -> list[float]:
    steps = [factor * 10.0**power for power in range(-6, 7) for factor in (1, 3)]
    return [step for step in steps if low * 0.99 <= step <= high * 1.01]


def _free(
    name: str,
    x: float,
    y: float,
    left: float,
    right: float,
    taken: list[tuple[float, float, float]],
    lines: Sequence[float],
) -> tuple[float, float] | None:
    """Where the name covers no other and none of the level ``lines``: right, left, above or below its dot, near or a
    little farther; None where it would.
    """
    wide = LETTER * 13 * len(name)
    for begin, line in ((start, y + away) for away in (16, -8, 30, -24) for start in (x + 9, x - 9 - wide)):
        if any(line - 13 < level < line + 5 for level in lines):
            continue
        free = all(abs(line - other) >= 15 or begin + wide < start or begin > end for start, end, other in taken)
        if free and begin >= left and begin + wide <= right:
            taken.append((begin, begin + wide, line))
            return begin, line
    return None
