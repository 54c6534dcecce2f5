"""Plots that stand by themselves: heat tables, profiles, a number over snapshots; as SVG by attributes alone.

Classes give a page's colours, light and dark; the attributes are what a downloaded file shows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import cos, pi, sin
from typing import Protocol

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from leaderboard.pages import marks

HEAT = ("#F2F6F6", "#E0EDEF", "#C9E1E5", "#AAD0D7", "#86BCC8", "#619FB3", "#33718C", "#235A76", "#164259")
DARK_FROM = 6  # steps whose text is white
INK, QUIET, LINE = "#14191C", "#616C73", "#E1E5E7"
# Distinguishable by color-blind readers, and without any color by their dashes and dots.
SERIES = (("#2F6DB5", ""), ("#C4631F", "7 3"), ("#1E8A63", "2 3"), ("#8A63B8", "9 3 2 3"))
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
    left = 16 + round(LETTER * max((min(len(name), 30) for name, _ in rows), default=0))
    top = 30 + round(LETTER * max((min(len(name), 24) for name in columns), default=0))
    width, height = 52, 26
    body = [_text(0, 14, title, fill=INK, size=13, weight=600)]
    for at, name in enumerate(columns):
        x = left + width * at + width / 2 + 4
        body.append(_text(x, top - 6, _short(name, 24), fill=QUIET, turn=True, full=name))
    for line, (name, cells) in enumerate(rows):
        y = top + height * line
        body.append(_text(left - 8, y + 17, _short(name, 30), fill=INK, anchor="end", full=name))
        for at, cell in enumerate(cells):
            step = int(cell.css[1:]) if cell.css[:1] == "q" and cell.css[1:].isdigit() else None
            fill = "#FFFFFF" if step is None else HEAT[step]
            ink = QUIET if step is None else "#FFFFFF" if step >= DARK_FROM else "#101B20"
            x = left + width * at
            body.append(f'<rect x="{x}" y="{y}" width="{width - 1}" height="{height - 1}" fill="{fill}"/>')
            body.append(_text(x + width / 2, y + 17, cell.text, fill=ink, anchor="middle"))
    foot = top + height * len(rows) + 14
    body.append(_text(left, foot + 9, low, fill=QUIET, size=11))
    begin = left + 8 + round(LETTER * len(low))
    body += [f'<rect x="{begin + 20 * n}" y="{foot}" width="20" height="10" fill="{HEAT[n]}"/>' for n in range(9)]
    body.append(_text(begin + 188, foot + 9, high, fill=QUIET, size=11))
    wide = max(left + width * len(columns), begin + 188 + 8 * len(high), round(7.6 * len(title))) + 8
    return _svg("heatmap", wide, foot + 20, title, body)


@dataclass(frozen=True, slots=True)
class Profile:
    """One model on the axes of a radar: shares of the scale from 0 to 1, None where nothing was counted."""

    name: str
    shares: tuple[float | None, ...]


def radar(axes: Sequence[str], profiles: Sequence[Profile], *, title: str, ends: tuple[str, str]) -> SafeString:
    """Models as polygons over three axes or more; an axis without a number leaves a gap. Empty for fewer axes."""
    if len(axes) < 3:
        return SafeString()
    middle_x, middle_y, radius = 240.0, 160.0, 120.0
    angles = [2 * pi * at / len(axes) - pi / 2 for at in range(len(axes))]

    def point(at: int, share: float) -> tuple[float, float]:
        distance = radius * min(1.0, max(0.0, share))
        return round(middle_x + distance * cos(angles[at]), 1), round(middle_y + distance * sin(angles[at]), 1)

    body = []
    for share in (0.25, 0.5, 0.75, 1.0):
        ring = " ".join(f"{x},{y}" for x, y in (point(at, share) for at in range(len(axes))))
        body.append(f'<polygon class="gl" points="{ring}" fill="none" stroke="{LINE}"/>')
    for at, name in enumerate(axes):
        x, y = point(at, 1.0)
        body.append(f'<path class="gl" d="M{middle_x} {middle_y}L{x} {y}" stroke="{LINE}"/>')
        label_place = (
            round(middle_x + (radius + 12) * cos(angles[at]), 1),
            round(middle_y + (radius + 12) * sin(angles[at]) + 4, 1),
        )
        side = "middle" if abs(cos(angles[at])) < 0.2 else "start" if cos(angles[at]) > 0 else "end"
        body.append(_text(*label_place, _short(name, 16), fill=INK, anchor=side, full=name, css="lab"))
    body.append(_text(middle_x + 4, middle_y - 4, ends[0], fill=QUIET, size=11, css="tk"))
    body.append(_text(middle_x + 4, middle_y - radius + 12, ends[1], fill=QUIET, size=11, css="tk"))
    for profile, (colour, dashes) in zip(profiles, SERIES, strict=False):
        body += _outline(profile, colour, dashes, point)
    foot = 2 * middle_y + 14
    for line, (profile, (colour, dashes)) in enumerate(zip(profiles, SERIES, strict=False)):
        y = foot + 18 * line
        body.append(f'<path d="M110 {y - 4}H146" stroke="{colour}" stroke-width="2"{_dashed(dashes)}/>')
        body.append(_text(154, y, _short(profile.name, 44), fill=INK, full=profile.name, css="lab"))
    return _svg("radar", 480, foot + 18 * len(profiles), title, body)


def _outline(
    profile: Profile, colour: str, dashes: str, point: Callable[[int, float], tuple[float, float]]
) -> list[str]:
    """The polygon, or the pieces of it where axes have no number, and a dot at each number."""
    numbers = [(at, share) for at, share in enumerate(profile.shares) if share is not None]
    places = {at: point(at, share) for at, share in numbers}
    size, path = len(profile.shares), ""
    for at in places:
        following = (at + 1) % size
        if following in places:
            (x, y), (to_x, to_y) = places[at], places[following]
            path += f"M{x} {y}L{to_x} {to_y}"
    lines = [f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2"{_dashed(dashes)}/>'] if path else []
    return lines + [f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>' for x, y in places.values()]


@dataclass(frozen=True, slots=True)
class Point:
    """A number at one of several equal steps: a snapshot, a bin."""

    label: str
    value: float
    low: float | None
    high: float | None


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

    body = []
    for tick in scale.ticks:
        body.append(f'<path class="gl" d="M{left} {y(tick)}H{width}" stroke="{LINE}"/>')
        body.append(_text(left - 8, y(tick) + 4, write(tick), fill=QUIET, size=11, anchor="end", css="tk"))
    if base is not None:
        body.append(f'<path class="zero" d="M{left} {y(base)}H{width}" stroke="{QUIET}"/>')
    places = [(round(left + 20 + step * at, 1), y(point.value)) for at, point in enumerate(points)]
    if len(places) > 1:
        line = "L".join(f"{x} {at}" for x, at in places)
        body.append(f'<path class="rng" d="M{line}" fill="none" stroke="#48535A" stroke-width="1.5"/>')
    label_step = -(-len(points) // 6)  # as many labels as have room
    for at, (point, (x, middle)) in enumerate(zip(points, places, strict=True)):
        if point.low is not None and point.high is not None:
            body.append(
                f'<path class="rng" d="M{x} {y(point.low)}V{y(point.high)}" stroke="#48535A" stroke-width="2"/>'
            )
        body.append(f'<circle class="pt" cx="{x}" cy="{middle}" r="3.5" fill="{INK}"/>')
        if at % label_step == 0:
            body.append(_text(x, top + tall + 20, point.label, fill=QUIET, size=11, anchor="middle", css="tk"))
    return _svg("forest overtime", width, top + tall + 28, title, body)


@dataclass(frozen=True, slots=True)
class Place:
    """A point of a scatter plot: its name, its two numbers with their intervals' ends, and where a click leads."""

    name: str
    x: float
    y: float
    x_ends: tuple[float | None, float | None] = (None, None)
    y_ends: tuple[float | None, float | None] = (None, None)
    words: str = ""
    link: str = ""


def scatter(
    places: Sequence[Place],
    *,
    title: str,
    across: str,
    up: str,
    write_x: Callable[[float], str],
    write_y: Callable[[float], str],
    units: tuple[float, float] = (1.0, 1.0),
) -> SafeString:
    """Points on two axes cut to the data, with thin lines for intervals and names where they do not collide."""
    width, tall, left, top = 520, 280, 62, 12
    x_scale = marks.axis([end for place in places for end in (place.x, *place.x_ends)], most=6, unit=units[0])
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
    for tick in y_scale.ticks:
        body.append(f'<path class="gl" d="M{left} {y(tick)}H{width - 8}" stroke="{LINE}"/>')
        body.append(_text(left - 6, y(tick) + 4, write_y(tick), fill=QUIET, size=11, anchor="end", css="tk"))
    body.append(_text((left + width) / 2, top + tall + 38, across, fill=INK, anchor="middle", css="lab"))
    body.append(_text(12, top + tall / 2, up, fill=INK, anchor="middle", turn=True, css="lab"))
    for place in places:
        (low, high), (under, over) = place.x_ends, place.y_ends
        lines = f"M{x(low)} {y(place.y)}H{x(high)}" if low is not None and high is not None else ""
        lines += f"M{x(place.x)} {y(under)}V{y(over)}" if under is not None and over is not None else ""
        body.append(f'<path class="thin" d="{lines}" stroke="#C6CDD1"/>' if lines else "")
    taken: list[tuple[float, float, float]] = []
    for place in places:
        words = format_html("<title>{}</title>", place.words or place.name)
        dot = f'<circle class="pt" cx="{x(place.x)}" cy="{y(place.y)}" r="4" fill="{INK}">{words}</circle>'
        body.append(format_html('<a href="{}">{}</a>', place.link, mark_safe(dot)) if place.link else dot)  # noqa: S308
    for place in places:
        body.append(_label(place.name, x(place.x), y(place.y), left, width, taken))
    return _svg("forest scatter", width, top + tall + 46, title, body, group=any(place.link for place in places))


def _label(name: str, x: float, y: float, left: float, width: float, taken: list[tuple[float, float, float]]) -> str:
    """The name beside its dot, right, left, above or below, where it covers no other; else none: its title has it."""
    short = _short(name, 22)
    wide = LETTER * len(short)
    for begin, line in ((x + 7, y + 4), (x - 7 - wide, y + 4), (x - wide / 2, y - 8), (x - wide / 2, y + 17)):
        free = all(abs(line - other) >= 13 or begin + wide < start or begin > end for start, end, other in taken)
        if free and begin >= left and begin + wide <= width:
            taken.append((begin, begin + wide, line))
            return _text(round(begin, 1), line, short, fill=INK, css="lab", full=name)
    return ""


def standing_alone(svg: SafeString) -> str:
    """A plot as a file: with its size, which a program that has no page to fit it into needs."""
    parts = svg.split('viewBox="0 0 ', 1)
    if len(parts) < 2:
        return svg
    width, height = parts[1].split('"', 1)[0].split(" ")
    return f'{parts[0]}width="{width}" height="{height}" viewBox="0 0 {parts[1]}'


def _short(name: str, most: int) -> str:
    return name if len(name) <= most else name[: most - 1].rstrip(" -_/.") + "…"


def _dashed(dashes: str) -> str:
    return f' stroke-dasharray="{dashes}"' if dashes else ""


def _text(
    x: float, y: float, text: str, *, fill: str, size: int = 12, anchor: str = "", weight: int = 0, turn: bool = False,
    full: str = "", css: str = "",
) -> str:  # fmt: skip
    attributes = f' text-anchor="{anchor}"' if anchor else ""
    attributes += f' font-weight="{weight}"' if weight else ""
    attributes += f' transform="rotate(-90 {x} {y})"' if turn else ""
    attributes += f' class="{css}"' if css else ""
    title = format_html("<title>{}</title>", full) if full and full != text else ""
    return f'<text x="{x}" y="{y}" font-size="{size}" fill="{fill}"{attributes}>{title}{format_html("{}", text)}</text>'


def _svg(css: str, width: float, height: float, title: str, body: Sequence[str], *, group: bool = False) -> SafeString:
    """``group``: it holds links, which a picture as a whole would hide."""
    role, label = "group" if group else "img", format_html("{}", title)
    return mark_safe(  # noqa: S308 (numbers, and text escaped above)
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{css}" viewBox="0 0 {round(width)} {round(height)}" '
        f'font-family="system-ui, sans-serif" role="{role}" aria-label="{label}">{"".join(body)}</svg>'
    )
