"""Plots that stand by themselves: heat tables, profiles, a number over snapshots; as SVG by attributes alone.

Classes give a page's colours, light and dark; the attributes are what a downloaded file shows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from leaderboard.pages import marks

HEAT = ("#F7F8F8", "#ECF4F4", "#DCEDED", "#C8E3E2", "#AFD6D5")  # as pages have them in light
INK, QUIET, LINE = "#14191C", "#616C73", "#E1E5E7"
SERIES = ("#2F6DB5", "#C4631F", "#1E8A63", "#8A63B8")  # distinguishable by color-blind readers
LETTER = 6.6  # pixels of a letter of 12


class HeatCell(Protocol):
    """What a cell of a heat table has: its text, and the class ``q0`` to ``q8`` of its step."""

    @property
    def text(self) -> str: ...
    @property
    def css(self) -> str: ...


def heatmap(
    columns: Sequence[str], rows: Sequence[tuple[str, Sequence[HeatCell]]], *, title: str, low: str, high: str
) -> SafeString:
    """A table of coloured cells with the scale below; column names stand upright."""
    left = 16 + round(LETTER * max((len(name) for name, _ in rows), default=0))
    top = 30 + round(LETTER * max((len(name) for name in columns), default=0))
    width, height = 52, 26
    body = [_text(8, 14, title, fill=INK, size=13, weight=600)]
    for at, name in enumerate(columns):
        x = left + width * at + width / 2 + 4
        body.append(_text(x, top - 6, name, fill=QUIET, turn=True))
    for line, (name, cells) in enumerate(rows):
        y = top + height * line
        body.append(_text(left - 8, y + 17, name, fill=INK, anchor="end"))
        for at, cell in enumerate(cells):
            step = int(cell.css[1:]) if cell.css[:1] == "q" and cell.css[1:].isdigit() else None
            fill = "#FFFFFF" if step is None else HEAT[step]
            ink = QUIET if step is None else INK
            x = left + width * at
            body.append(f'<rect x="{x}" y="{y}" width="{width - 1}" height="{height - 1}" fill="{fill}"/>')
            body.append(_text(x + width / 2, y + 17, cell.text, fill=ink, anchor="middle"))
    foot = top + height * len(rows) + 14
    body.append(_text(left, foot + 9, low, fill=QUIET, size=11))
    begin = left + 8 + round(LETTER * len(low))
    body += [
        f'<rect x="{begin + 20 * n}" y="{foot}" width="20" height="10" fill="{HEAT[n]}"/>' for n in range(len(HEAT))
    ]
    body.append(_text(begin + 108, foot + 9, high, fill=QUIET, size=11))
    wide = max(left + width * len(columns), begin + 108 + 8 * len(high), 8 + round(7.6 * len(title))) + 8
    return _svg("heatmap", wide, foot + 20, title, body)


@dataclass(frozen=True, slots=True)
class Dot:
    """A model's number at one level. ``said``: what is told of it, line by line; ``link``: where a click leads."""

    value: float
    low: float | None
    high: float | None
    said: tuple[str, ...] = ()
    link: str = ""


@dataclass(frozen=True, slots=True)
class Profile:
    """One model over the levels of a plot; None where nothing was counted."""

    name: str
    dots: tuple[Dot | None, ...]


def profiles(
    levels: Sequence[str], of: Sequence[Profile], *, title: str, write: Callable[[float], str], unit: float = 1.0
) -> SafeString:
    """Models beside each other, a band a level: each a dot of its own colour and shape with its interval, all on one
    axis cut to the data. Empty without a number.
    """
    dots = [dot for profile in of for dot in profile.dots if dot is not None]
    if not dots:
        return SafeString()
    width, lane = 440, 15
    letter = marks.LETTER * 15  # as large as names are on a phone
    names = [marks.in_lines(level, int(0.34 * width / letter)) for level in levels]
    left = letter * max(len(line) for name in names for line in name) + 20
    scale = marks.axis([end for dot in dots for end in (dot.value, dot.low, dot.high)], most=7, unit=unit)

    def x(value: float) -> float:
        share = (value - scale.low) / (scale.high - scale.low)
        return round(left + min(1.0, max(0.0, share)) * (width - left - 16), 1)

    body, top = [], 8
    for number, profile in enumerate(of):  # the legend
        body.append(_shape(number, left + 5, top + 6))
        body.append(_text(left + 16, top + 10, profile.name, fill=INK, css="lab"))
        top += 20
    top = ticks_at = top + 14
    top += 10
    bands = []
    for number, (level, name) in enumerate(zip(levels, names, strict=True)):
        tall = max(lane * len(of) + 8, 16 * len(name) + 8)
        if number % 2 == 0:
            bands.append(f'<rect class="calm" y="{top}" width="{width}" height="{tall}" fill="#F6F8F8"/>')
        begin = top + tall / 2 + 4 - 8 * (len(name) - 1)
        body += [_text(8, begin + 16 * line, text, fill=INK, css="lab") for line, text in enumerate(name)]
        first = top + (tall - lane * len(of)) / 2 + lane / 2
        for place, profile in enumerate(of):
            dot, y = profile.dots[number], first + lane * place
            if dot is None:
                continue
            drawn = ""
            if dot.low is not None and dot.high is not None:
                drawn = (
                    f'<path class="line c{place}" d="M{x(dot.low)} {y}H{x(dot.high)}" stroke="{SERIES[place]}" '
                    'stroke-width="1.5" fill="none"/>'
                )
            drawn += _shape(place, x(dot.value), y)
            body.append(marks.hit(drawn, (f"{profile.name}, {level}", *dot.said), link=dot.link))
        top += tall
    for tick in scale.ticks:
        bands.append(f'<path class="gl" d="M{x(tick)} {ticks_at + 6}V{top}" stroke="{LINE}"/>')
        body.append(_text(x(tick), ticks_at, write(tick), fill=QUIET, size=11, anchor="middle", css="tk"))
    return _svg("forest dotted", width, top + 4, title, [*bands, *body], group=any(dot.link for dot in dots))


def _shape(number: int, x: float, y: float) -> str:
    """The mark of a series: told apart by its shape as well as its colour."""
    outline = {
        0: f"M{x - 4} {y}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z",
        1: f"M{x - 3.6} {y - 3.6}h7.2v7.2h-7.2Z",
        2: f"M{x} {y - 4.8}L{x + 4.6} {y + 3.4}H{x - 4.6}Z",
        3: f"M{x} {y - 5}L{x + 5} {y}L{x} {y + 5}L{x - 5} {y}Z",
    }[number]
    return f'<path class="mark c{number} at" d="{outline}" fill="{SERIES[number]}"/>'


@dataclass(frozen=True, slots=True)
class Point:
    """A number at one of several equal steps: a snapshot, a bin. ``said``: what is told of it, line by line; ``link``:
    where a click leads; ``changed``: what is no longer as it was at the step before, in a few words.
    """

    label: str
    value: float
    low: float | None
    high: float | None
    said: tuple[str, ...] = ()
    link: str = ""
    changed: str = ""


def _levels(ticks: Sequence[tuple[float, str]], left: float, right: float, *, gap: int) -> list[str]:
    """The lines of a vertical axis, each with its number."""
    return [
        f'<path class="gl" d="M{left} {at}H{right}" stroke="{LINE}"/>'
        + _text(left - gap, at + 4, words, fill=QUIET, size=11, anchor="end", css="tk")
        for at, words in ticks
    ]


def steps(
    points: Sequence[Point],
    *,
    title: str,
    write: Callable[[float], str],
    width: int = 560,
    unit: float = 1.0,
    base: float | None = None,
) -> SafeString:
    """A number with its interval from step to step. ``unit`` as of ``marks.axis``; ``base``: a value with a line."""
    if not points:
        return SafeString()
    left, top, tall = (56, 12, 150) if width > 300 else (36, 6, 84)
    ends = [end for point in points for end in (point.value, point.low, point.high)]
    scale = marks.axis([*ends, base], unit=unit)
    step = (width - left - 40) / max(1, len(points) - 1)

    def y(value: float) -> float:
        share = (value - scale.low) / (scale.high - scale.low)
        return round(top + tall * (1 - min(1.0, max(0.0, share))), 1)

    body = _levels([(y(tick), write(tick)) for tick in scale.ticks], left, width, gap=8)
    if base is not None:
        body.append(f'<path class="ref" d="M{left} {y(base)}H{width}" stroke="{QUIET}"/>')
    start = left + 20 if len(points) > 1 else (left + width) / 2
    places = [(round(start + step * at, 1), y(point.value)) for at, point in enumerate(points)]
    for point, (x, _) in zip(points, places, strict=True):
        if point.changed:
            body.append(
                f'<path class="then" d="M{x} {top}V{top + tall}" stroke="{QUIET}" stroke-dasharray="3 3" fill="none"/>'
            )
            right = x < (left + width) / 2
            body.append(
                _text(x + (6 if right else -6), top + tall - 4, point.changed, fill=QUIET, size=11, css="tk",
                      anchor="" if right else "end")
            )  # fmt: skip
    if len(places) > 1:
        line = "L".join(f"{x} {at}" for x, at in places)
        body.append(f'<path class="rng" d="M{line}" fill="none" stroke="#48535A" stroke-width="1.5"/>')
    label_step = -(-len(points) // 6)  # as many labels as have room
    for at, (point, (x, middle)) in enumerate(zip(points, places, strict=True)):
        drawn = ""
        if point.low is not None and point.high is not None:
            drawn = f'<path class="rng" d="M{x} {y(point.low)}V{y(point.high)}" stroke="#48535A" stroke-width="2"/>'
        drawn += f'<circle class="pt at" cx="{x}" cy="{middle}" r="3.5" fill="{INK}"/>'
        body.append(marks.hit(drawn, (point.label, *point.said), link=point.link))
        if at % label_step == 0:
            body.append(_text(x, top + tall + 20, point.label, fill=QUIET, size=11, anchor="middle", css="tk"))
    group = any(point.link for point in points)
    return _svg(f"forest overtime{' narrow' if width <= 300 else ''}", width, top + tall + 28, title, body, group=group)


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """A value over ``x`` with its interval; ``n``: over how many, in words."""

    x: float
    value: float
    low: float | None
    high: float | None
    n: str


def curve(
    points: Sequence[CurvePoint],
    people: Sequence[CurvePoint],
    *,
    title: str,
    x: marks.Axis,
    y: marks.Axis,
    base: float,
    write_x: Callable[[float], str],
    write_y: Callable[[float], str],
) -> SafeString:
    """A judge's curve with intervals over people's, on axes that several such plots share; a line at ``base``."""
    left, top, width, tall = 36, 10, 328, 128

    def across(value: float) -> float:
        return round(left + (value - x.low) / (x.high - x.low) * (width - left - 12), 1)

    def up(value: float) -> float:
        return round(top + tall * (1 - min(1.0, max(0.0, (value - y.low) / (y.high - y.low)))), 1)

    def line(of: Sequence[CurvePoint]) -> str:
        return "M" + "L".join(f"{across(point.x)} {up(point.value)}" for point in of)

    body = _levels([(up(tick), write_y(tick)) for tick in y.ticks], left, width, gap=8)
    for tick in x.ticks:
        label = _text(across(tick), top + tall + 18, write_x(tick), fill=QUIET, size=13, anchor="middle", css="tk")
        body.append(label)
    body.append(f'<path class="ref" d="M{left} {up(base)}H{width}" stroke="{QUIET}"/>')
    if len(people) > 1:
        body.append(f'<path class="people" d="{line(people)}" fill="none" stroke="#0B696D" stroke-width="1.5"/>')
    body.append(f'<path class="rng" d="{line(points)}" fill="none" stroke="{INK}" stroke-width="1.75"/>')
    for point in points:
        at, drawn = across(point.x), ""
        if point.low is not None and point.high is not None:
            drawn = f'<path class="rng" d="M{at} {up(point.low)}V{up(point.high)}" stroke="#48535A" stroke-width="2"/>'
        drawn += f'<circle class="pt at" cx="{at}" cy="{up(point.value)}" r="3.5" fill="{INK}"/>'
        ends = "" if point.low is None or point.high is None else f" [{write_y(point.low)}, {write_y(point.high)}]"
        body.append(
            marks.hit(drawn, (f"{write_y(point.value)}{ends}", f"longer by {write_x(point.x)}", f"n = {point.n}"))
        )
    return _svg("forest curve", width, top + tall + 26, title, body)


@dataclass(frozen=True, slots=True)
class Place:
    """A point of a scatter plot: its name, its two numbers with their intervals' ends, and where a click leads.
    ``beside``: it is not what the plot is about, and drawn as a ring.
    """

    name: str
    x: float
    y: float
    x_ends: tuple[float | None, float | None] = (None, None)
    y_ends: tuple[float | None, float | None] = (None, None)
    words: str = ""
    link: str = ""
    beside: bool = False


def _cross(place: Place, x: Callable[[float], float], y: Callable[[float], float]) -> str:
    """The intervals of a place on both axes, as far as it has them."""
    (low, high), (under, over) = place.x_ends, place.y_ends
    lines = f"M{x(low)} {y(place.y)}H{x(high)}" if low is not None and high is not None else ""
    lines += f"M{x(place.x)} {y(under)}V{y(over)}" if under is not None and over is not None else ""
    return f'<path class="oth" d="{lines}" stroke="#C6CDD1"/>' if lines else ""


def scatter(
    places: Sequence[Place],
    *,
    title: str,
    across: str,
    up: str,
    write_x: Callable[[float], str],
    write_y: Callable[[float], str],
    units: tuple[float, float] = (1.0, 1.0),
    narrow: bool = False,
) -> SafeString:
    """Points on two axes cut to the data, with thin lines for intervals and names where they do not collide."""
    width, tall, left, top = (300, 170, 56, 8) if narrow else (520, 280, 62, 12)
    most = 3 if narrow else 6
    x_scale = marks.axis([end for place in places for end in (place.x, *place.x_ends)], most=most, unit=units[0])
    y_scale = marks.axis([end for place in places for end in (place.y, *place.y_ends)], most=5, unit=units[1])

    def x(value: float) -> float:
        share = (value - x_scale.low) / (x_scale.high - x_scale.low)
        return round(left + 10 + min(1.0, max(0.0, share)) * (width - left - 30), 1)

    def y(value: float) -> float:
        share = (value - y_scale.low) / (y_scale.high - y_scale.low)
        return round(top + 8 + (tall - 16) * (1 - min(1.0, max(0.0, share))), 1)

    body = []
    for tick in x_scale.ticks:
        body.append(f'<path class="gl" d="M{x(tick)} {top}V{top + tall}" stroke="{LINE}"/>')
        body.append(_text(x(tick), top + tall + 18, write_x(tick), fill=QUIET, size=11, anchor="middle", css="tk"))
    body += _levels([(y(tick), write_y(tick)) for tick in y_scale.ticks], left, width - 8, gap=6)
    body.append(_text((left + width) / 2, top + tall + 38, across, fill=INK, anchor="middle", css="lab"))
    body.append(_text(12, top + tall / 2, up, fill=INK, anchor="middle", turn=True, css="lab"))
    body += [_cross(place, x, y) for place in places]
    taken: list[tuple[float, float, float]] = []
    for place in places:
        ring = f'class="open" fill="#FFFFFF" stroke="{INK}"' if place.beside else f'class="pt" fill="{INK}"'
        dot = f'<circle {ring} cx="{x(place.x)}" cy="{y(place.y)}" r="4"/>'
        body.append(marks.hit(dot, (place.name, place.words), link=place.link))
    for place in sorted(places, key=lambda place: place.beside):  # its own name has room first
        body.append(_label(place.name, x(place.x), y(place.y), left, width, taken))
    return _svg(
        f"forest scatter{' narrow' if narrow else ''}",
        width,
        top + tall + 46,
        title,
        body,
        group=any(place.link for place in places),
    )


def _label(name: str, x: float, y: float, left: float, width: float, taken: list[tuple[float, float, float]]) -> str:
    """The name beside its dot, right, left, above or below, where it covers no other; else none: its title has it."""
    wide = LETTER * len(name)
    for begin, line in ((x + 7, y + 4), (x - 7 - wide, y + 4), (x - wide / 2, y - 8), (x - wide / 2, y + 17)):
        free = all(abs(line - other) >= 13 or begin + wide < start or begin > end for start, end, other in taken)
        if free and begin >= left and begin + wide <= width:
            taken.append((begin, begin + wide, line))
            return _text(round(begin, 1), line, name, fill=INK, css="lab")
    return ""


def standing_alone(svg: SafeString) -> str:
    """A plot as a file: with its size, which a program that has no page to fit it into needs."""
    parts = svg.split('viewBox="0 0 ', 1)
    if len(parts) < 2:
        return svg
    width, height = parts[1].split('"', 1)[0].split(" ")
    return f'{parts[0]}width="{width}" height="{height}" viewBox="0 0 {parts[1]}'


def _text(
    x: float, y: float, text: str, *, fill: str, size: int = 12, anchor: str = "", weight: int = 0, turn: bool = False,
    css: str = "",
) -> str:  # fmt: skip
    attributes = f' text-anchor="{anchor}"' if anchor else ""
    attributes += f' font-weight="{weight}"' if weight else ""
    attributes += f' transform="rotate(-90 {x} {y})"' if turn else ""
    attributes += f' class="{css}"' if css else ""
    return f'<text x="{x}" y="{y}" font-size="{size}" fill="{fill}"{attributes}>{format_html("{}", text)}</text>'


def _svg(css: str, width: float, height: float, title: str, body: Sequence[str], *, group: bool = False) -> SafeString:
    """``group``: it holds links, which a picture as a whole would hide."""
    role, label = "group" if group else "img", format_html("{}", title)
    return mark_safe(  # noqa: S308 (numbers, and text escaped above)
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{css}" viewBox="0 0 {round(width)} {round(height)}" '
        f'font-family="system-ui, sans-serif" role="{role}" aria-label="{label}">{"".join(body)}</svg>'
    )
