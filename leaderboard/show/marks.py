"""Marks in tables, as SVG by attributes alone, which the policy allows: interval bars on one axis, votes on a line,
classes of coloured cells. Classes give them the page's colours.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from stats.figures import two

BLANK = SafeString()
WIDTH = 116
WIDE = 168
COLUMN = 300  # of a board's main number
INSET = 8  # pixels left free at both ends, so that a dot or a figure at the end is whole


@dataclass(frozen=True, slots=True)
class Axis:
    """A column's scale: what lies between ``low`` and ``high`` is drawn, the rest is cut at the ends. ``row``: the
    height of the table's rows in pixels, through which its lines go.
    """

    low: float
    high: float
    ticks: tuple[float, ...]
    width: int = WIDTH
    row: int = 36

    def at(self, value: float, start: float, end: float) -> float:
        """Where it is drawn between two places, the second of which is the high end."""
        share = (value - self.low) / (self.high - self.low)
        return round(start + min(1.0, max(0.0, share)) * (end - start), 1)

    def x(self, value: float) -> float:
        return self.at(value, INSET, self.width - INSET)

    def beyond(self, value: float, by: float = 1e-9) -> int:
        """-1 below its low end, 1 above its high one, else 0."""
        return int(value > self.high + by) - int(value < self.low - by)

    @staticmethod
    def arrow(x: float, y: float, way: int) -> str:
        """What is drawn at an end in place of a dot beyond it."""
        return f"M{x - 5 * way} {y - 4}L{x + 3 * way} {y}L{x - 5 * way} {y + 4}Z"

    @property
    def through(self) -> str:
        """Of a line from the top of the row to its foot."""
        return f"{8 - self.row // 2}V{8 + self.row // 2}"


def axis(
    values: Iterable[float | None], *, width: int = WIDTH, most: int = 4, unit: float = 1.0, row: int = 36
) -> Axis:
    """A scale that holds the values with at most ``most`` round ticks. ``unit`` is what the axis counts in."""
    finite = [value / unit for value in values if value is not None and isfinite(value)]
    if not finite:
        return Axis(0.0, unit, (), width, row)
    low, high = min(finite), max(finite)
    if high - low < 1e-9:
        margin = abs(high) * 0.05 or 0.5
        low, high = low - margin, high + margin
    step = _step((high - low) / most)
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    if first >= last:  # one tick says no scale: take the ticks around the data
        first, last = floor(low / step), ceil(high / step)
        low, high = first * step, last * step
    ticks = tuple(round(step * number, 10) * unit for number in range(first, last + 1))
    return Axis(low * unit, high * unit, ticks, width, row)


def _step(least: float) -> float:
    power = 10.0 ** floor(log10(least))
    return next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= least - 1e-12)


def axis_head(scale: Axis, write: Callable[[float], str]) -> SafeString:
    """The ticks' figures, for the head of the column."""
    texts = "".join(
        f'<text x="{scale.x(tick)}" y="12" text-anchor="middle">{write(tick)}</text>' for tick in scale.ticks
    )
    return _on_axis(scale, 'aria-hidden="true"', texts)


def _on_axis(scale: Axis, role: str, body: str) -> SafeString:
    size = f'width="{scale.width}" height="16" viewBox="0 0 {scale.width} 16"'
    return _drawn(f'<svg class="iv" {size} {role}>{body}</svg>')


def interval_bar(
    scale: Axis,
    value: float | None,
    low: float | None,
    high: float | None,
    *,
    write: Callable[[float], str] = two,
    provisional: bool = False,
    ceiling: float | None = None,
    band: tuple[float | None, float | None] = (None, None),
    reference: float | None = None,
    plain: float | None = None,
    others: Iterable[float | None] = (),
) -> SafeString:
    """A dot with its interval over the axis' lines; a dotted one for a provisional number, an arrow beyond the axis.
    ``reference``: a number that it is compared with, such as chance, drawn where the axis reaches it; ``ceiling``: what
    people reach, with their interval as ``band``; ``plain``: the number by another definition, as an open dot;
    ``others``: where the others stand, as ticks.
    """
    body = _zone(scale, band) + _lines(scale)
    if ticks := "".join(f"M{scale.x(other)} 4v8" for other in others if other is not None):
        body += f'<path class="oth" d="{ticks}"/>'
    if reference is not None and scale.low <= reference <= scale.high:
        body += f'<path class="ref" d="M{scale.x(reference)} {scale.through}"/>'
    if ceiling is not None:
        body += f'<path class="people" d="M{scale.x(ceiling)} {scale.through}"/>'
    if value is None:
        return _on_axis(scale, 'aria-hidden="true"', body)
    if plain is not None:
        body += f'<path class="oth" d="M{scale.x(plain)} 8H{scale.x(value)}"/>'
        body += f'<circle class="open" cx="{scale.x(plain)}" cy="8" r="3.4"/>'
    words = write(value)
    if way := scale.beyond(value):
        body += f'<path class="pt" d="{scale.arrow(scale.x(value), 8, way)}"/>'
    else:
        if low is not None and high is not None:
            words += f", 95%: {write(low)} to {write(high)}"
        body += _dot(scale, value, low, high, provisional=provisional)
    return _on_axis(scale, format_html('role="img" aria-label="{}"', words), body)


def _lines(scale: Axis) -> str:
    """One at each tick."""
    lines = "".join(f"M{scale.x(tick)} {scale.through}" for tick in scale.ticks)
    return f'<path class="gl" d="{lines}"/>'


def _zone(scale: Axis, ends: tuple[float | None, float | None]) -> str:
    start, end = ends
    if start is None or end is None:
        return ""
    left, right = scale.x(start), scale.x(end)
    size = f'width="{round(right - left, 1)}" height="{scale.row}"'
    return f'<rect class="band" x="{left}" y="{8 - scale.row // 2}" {size}/>'


def _dot(scale: Axis, value: float, low: float | None, high: float | None, *, provisional: bool) -> str:
    """A dot with its interval, which is dotted where the number is provisional."""
    bar = ""
    if low is not None and high is not None:
        left, right = scale.x(low), scale.x(high)
        bar = f'<path class="{"ghost" if provisional else "rng"}" d="M{left} 8H{right}"/>'
        bar += "" if provisional else f'<path class="end" d="M{left} 5v6M{right} 5v6"/>'
    return f'{bar}<circle class="pt" cx="{scale.x(value)}" cy="8" r="2.8"/>'


def below(scale: Axis, value: float, words: str) -> SafeString:
    """Words under a line at this value, within the width."""
    wide = 7.2 * len(words) / 2
    x = min(max(scale.x(value), wide), scale.width - wide)
    return _on_axis(
        scale, 'aria-hidden="true"', f'<text class="people" x="{x:.1f}" y="12" text-anchor="middle">{words}</text>'
    )


def dots(scale: Axis, values: Iterable[float], mean: float) -> SafeString:
    """Several values as dots on one axis, with a line at their mean."""
    body = _lines(scale) + "".join(f'<circle class="open" cx="{scale.x(value)}" cy="8" r="2.4"/>' for value in values)
    body += f'<path class="end" d="M{scale.x(mean)} 2v12"/>'
    return _on_axis(scale, 'aria-hidden="true"', body)


def histogram(shares: Sequence[float], most: float) -> SafeString:
    """Shares side by side as bars; ``most`` fills the height."""
    wide, high = 7, 18
    bars = "".join(
        f'<rect class="w" x="{wide * at}" y="{round(high - high * share / most, 1)}" width="{wide - 1}" '
        f'height="{round(high * share / most, 1)}"/>'
        for at, share in enumerate(shares)
        if share
    )
    size = f'width="{wide * len(shares)}" height="{high}" viewBox="0 0 {wide * len(shares)} {high}"'
    return _drawn(f'<svg class="histogram" {size} aria-hidden="true">{bars}</svg>')


VOTES = {"first": 22, "tie": 66, "undecided": 66, "second": 110}  # where a verdict stands on the line, in pixels


def vote_line(counts: Mapping[str, int], *, judge: bool = False, hollow: bool = False, width: int = 132) -> SafeString:
    """Verdicts on a pair on one line, first, tie and second: a dot for every person, a diamond for a judge, ``hollow``
    where it differs from people. More than five at a place are a dot with their number.
    """
    places = {choice: round(x * width / 132) for choice, x in VOTES.items()}
    body = f'<path class="gl" d="{"".join(f"M{x} 3V13" for x in sorted(set(places.values())))}"/>'
    at: dict[int, int] = {}
    for choice, n in counts.items():
        at[places[choice]] = at.get(places[choice], 0) + n
    for x, n in at.items():
        if not n:
            continue
        if judge:
            body += f'<path class="{"differs" if hollow else "pt"}" d="M{x - 4.2} 8L{x} 3.8L{x + 4.2} 8L{x} 12.2Z"/>'
        elif n > (5 if width > 100 else 2):
            body += f'<circle class="w" cx="{x - 8}" cy="8" r="3.4"/><text x="{x}" y="12">{n}</text>'
        else:
            middle = x - 4.5 * (n - 1)
            body += "".join(f'<circle class="w" cx="{middle + 9 * i}" cy="8" r="3.4"/>' for i in range(n))
    size = f'width="{width}" height="16" viewBox="0 0 {width} 16"'
    return _drawn(f'<svg class="vp" {size} aria-hidden="true">{body}</svg>')


def vote_heads(width: int = 132) -> SafeString:
    """The words above vote lines of this width."""
    texts = "".join(
        f'<text x="{round(VOTES[word.lower()] * width / 132)}" y="12" text-anchor="middle">{word}</text>'
        for word in ("First", "Tie", "Second")
    )
    size = f'width="{width}" height="16" viewBox="0 0 {width} 16"'
    return _drawn(f'<svg class="vp" {size} aria-hidden="true">{texts}</svg>')


def share_bar(share: float) -> SafeString:
    """A share of the whole width; the figure stands beside it."""
    return _drawn(
        '<svg class="meter short" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="t" width="100" height="6"/>'
        f'<rect class="v" width="{round(100 * share, 1)}" height="6"/></svg>'
    )


STEPS = 5


def shade(value: float | None, limits: Sequence[float]) -> str:
    """The class of a coloured cell, by the four limits between its five classes."""
    return "qx" if value is None else f"q{bisect_right(limits, value + 1e-12)}"


def heat(value: float | None, low: float, high: float) -> str:
    """The class of a coloured cell, by five equal steps of a fixed range."""
    return shade(value, [low + (high - low) * step / STEPS for step in range(1, STEPS)])


@dataclass(frozen=True, slots=True)
class Chip:
    """A word in a frame beside a name or in place of a number."""

    text: str
    css: str = "line"
    title: str = ""
    link: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """What a table shows in one place. ``css``: its colour, of a heat cell as ``heat`` gives it; ``small``: a second
    figure; ``bar``: a mark beside the text, ``icon`` one before it; ``unseen``: words for those who cannot see it;
    ``strong``: printed bold.
    """

    text: str = ""
    small: str = ""
    css: str = ""
    title: str = ""
    link: str = ""
    bar: SafeString = BLANK
    icon: str = ""
    chips: tuple[Chip, ...] = ()
    small_css: str = ""
    small_title: str = ""
    small_link: str = ""
    unseen: str = ""
    strong: bool = False


ITSELF = Cell(css="self", unseen="itself")


def _drawn(svg: str) -> SafeString:
    return mark_safe(svg)  # noqa: S308 (numbers, and text escaped above)
