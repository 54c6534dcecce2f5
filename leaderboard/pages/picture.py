"""Pictures to share: points on two axes, drawn once and written as SVG, in the page's colours, or as PNG.

What a judge's agreement with people costs, and what a model's rating costs.
"""

import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
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
    "grid": GRID, "ink": INK, "quiet": QUIET, "accent": ACCENT, "band": BAND, "paper": PAPER, "range": RANGE,
    "front": "#868F95",
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
        colour = "ink" if filled else "paper"
        if self.draw is None:
            return (
                f'<circle class="{colour} at" cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{COLOURS[colour]}" '
                f'stroke="{INK}" stroke-width="1.5"/>'
            )
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


def png(plot: Plot, *, at: datetime, address: str) -> bytes:
    """The picture with its title, day, and where it is from, 1200 x 630 pixels."""
    scale = 1.5
    picture = Image.new("RGB", SIZE, PAPER)
    canvas = _Canvas(draw=ImageDraw.Draw(picture), scale=scale)
    width, height = SIZE[0] / scale, SIZE[1] / scale
    canvas.text(24, 36, plot.title, "ink", size=22)
    canvas.text(24, 58, plot.under, "quiet")
    _drawn(canvas, plot, width, height - 28, 72, links=False)
    canvas.text(24, height - 12, f"{at:%-d %b %Y}", "quiet")
    canvas.text(width - 24, height - 12, address, "quiet", anchor="end")
    file = io.BytesIO()
    picture.save(file, "PNG", optimize=True)
    return file.getvalue()


def _drawn(canvas: _Canvas, plot: Plot, width: float, height: float, top: float, *, links: bool) -> None:
    left, right, foot = 52, width - 24, height - 46
    person = plot.person.ends if plot.person else ()
    floor = plot.floor[1] if plot.floor else None
    prices = marks.axis([log10(point.price) for point in plot.points], most=6)
    values = marks.axis([*(end for point in plot.points for end in point.value.ends), *person, floor], unit=plot.unit)

    def x(price: float) -> float:
        return left + 24 + (log10(price) - prices.low) / (prices.high - prices.low) * (right - left - 60)

    def y(value: float) -> float:
        return foot - 10 - (value - values.low) / (values.high - values.low) * (foot - top - 20)

    for tick in values.ticks:
        canvas.line([(left, y(tick)), (right, y(tick))], "grid")
        canvas.text(left - 8, y(tick) + 4, plot.write(tick), "quiet", anchor="end")
    for price in _round_prices(10**prices.low, 10**prices.high):
        canvas.text(x(price), foot + 18, f"${price:,.10g}", "quiet", anchor="middle")
    canvas.text(right, foot + 38, plot.across, "quiet", anchor="end")
    if plot.person and plot.person.value is not None:
        low, high = plot.person.low, plot.person.high
        if low is not None and high is not None:
            canvas.rect(left, y(high), right - left, y(low) - y(high), "band")
        canvas.line([(left, y(plot.person.value)), (right, y(plot.person.value))], "accent", width=1.5)
        words = f"one more person {plot.write(plot.person.value)}"
        canvas.text(left + 4, y(plot.person.value) - 6, words, "accent")
    if plot.floor:
        canvas.line([(left, y(plot.floor[1])), (right, y(plot.floor[1]))], "front", dashed=True)
        canvas.text(right, y(plot.floor[1]) - 6, plot.floor[0], "quiet", anchor="end")
    best = best_for_price(plot.points)
    canvas.line([(x(point.price), y(point.value.value or 0.0)) for point in best], "front", width=1.5, dashed=True)
    taken: list[tuple[float, float, float]] = []
    for point in plot.points:
        middle, low, high = point.value.value or 0.0, point.value.low, point.value.high
        if low is not None and high is not None:
            canvas.line([(x(point.price), y(low)), (x(point.price), y(high))], "range", width=1.5)
        dot = canvas.dot(x(point.price), y(middle), filled=point in best)
        if dot:
            canvas.svg.append(marks.hit(dot, (point.name, point.words), link=point.link if links else ""))
    for point in sorted(plot.points, key=lambda point: point not in best):
        at = _free(point.name, x(point.price), y(point.value.value or 0.0), left, right, taken)
        if at:
            canvas.text(*at, point.name, "ink" if point in best else "quiet")


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
    name: str, x: float, y: float, left: float, right: float, taken: list[tuple[float, float, float]]
) -> tuple[float, float] | None:
    """Where the name covers no other: right, left, above or below its dot; None where it would."""
    wide = LETTER * 13 * len(name)
    for begin, line in ((x + 9, y + 16), (x - 9 - wide, y - 8), (x + 9, y - 8), (x - 9 - wide, y + 16)):
        free = all(abs(line - other) >= 15 or begin + wide < start or begin > end for start, end, other in taken)
        if free and begin >= left and begin + wide <= right:
            taken.append((begin, begin + wide, line))
            return begin, line
    return None
