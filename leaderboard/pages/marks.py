"""Marks as SVG: interval bars on one axis, micro bars, forest plots, classes of coloured cells.

Drawn by attributes alone, which the policy allows; classes give the page's colours, and the forest plot repeats them
as attributes so that it stands by itself when downloaded.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from leaderboard.figures import two

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

    def x(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return round(INSET + min(1.0, max(0.0, share)) * (self.width - 2 * INSET), 1)

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
    calm: tuple[float | None, float | None] = (None, None),
    reference: float | None = None,
    plain: float | None = None,
    others: Iterable[float | None] = (),
) -> SafeString:
    """A dot with its interval over the axis' lines; a dotted one for a provisional number, an arrow beyond the axis.
    ``reference``: a number that it is compared with, such as chance, drawn where the axis reaches it; ``ceiling``: what
    people reach, with their interval as ``band``; ``calm``: between which ends a number is of no account; ``plain``:
    the number by another definition, as an open dot; ``others``: where the others stand, as ticks.
    """
    body = _zone(scale, calm, "calm") + _zone(scale, band, "band")
    lines = "".join(f"M{scale.x(tick)} {scale.through}" for tick in scale.ticks)
    body += f'<path class="gl" d="{lines}"/>'
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
    if scale.low - 1e-9 <= value <= scale.high + 1e-9:
        if low is not None and high is not None:
            words += f", 95%: {write(low)} to {write(high)}"
        body += _dot(scale, value, low, high, provisional=provisional)
    else:
        edge, way = (scale.width - INSET, 1) if value > scale.high else (INSET, -1)
        body += f'<path class="pt" d="M{edge - 5 * way} 4L{edge + 3 * way} 8L{edge - 5 * way} 12Z"/>'
    return _on_axis(scale, format_html('role="img" aria-label="{}"', words), body)


def _zone(scale: Axis, ends: tuple[float | None, float | None], css: str) -> str:
    start, end = ends
    if start is None or end is None:
        return ""
    left, right = scale.x(start), scale.x(end)
    size = f'width="{round(right - left, 1)}" height="{scale.row}"'
    return f'<rect class="{css}" x="{left}" y="{8 - scale.row // 2}" {size}/>'


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
    lines = "".join(f"M{scale.x(tick)} {scale.through}" for tick in scale.ticks)
    body = f'<path class="gl" d="{lines}"/>'
    body += "".join(f'<circle class="open" cx="{scale.x(value)}" cy="8" r="2.4"/>' for value in values)
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


def vote_heads() -> SafeString:
    """The words above vote lines."""
    texts = "".join(
        f'<text x="{VOTES[word.lower()]}" y="12" text-anchor="middle">{word}</text>'
        for word in ("First", "Tie", "Second")
    )
    return _drawn(f'<svg class="vp" width="132" height="16" viewBox="0 0 132 16" aria-hidden="true">{texts}</svg>')


def share_bar(share: float) -> SafeString:
    """A share of the whole width; the figure stands beside it."""
    return _drawn(
        '<svg class="meter short" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="t" width="100" height="6"/>'
        f'<rect class="v" width="{round(100 * share, 1)}" height="6"/></svg>'
    )


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """Mean confidence, share right, questions; ``link``: where its answers stand."""

    confidence: float
    accuracy: float
    n: int
    link: str = ""


def reliability(bins: Sequence[ReliabilityBin], *, title: str) -> SafeString:
    """A reliability diagram: mean confidence across, share right up, a dot a bin, and its gap to the diagonal."""
    edge, left, foot = 168, 32, 18

    def at(confidence: float, accuracy: float) -> tuple[float, float]:
        return round(left + confidence * edge, 1), round(6 + (1 - accuracy) * edge, 1)

    body = [f'<path class="gl" d="M{left} 6V{6 + edge}H{left + edge}" fill="none" stroke="#868f95"/>']
    for tick in (0, 50, 100):
        x, y = at(tick / 100, tick / 100)
        body.append(
            f'<text x="{x}" y="{edge + foot + 4}" text-anchor="middle" font-size="12" fill="#616C73">{tick}</text>'
        )
        body.append(f'<text x="{left - 6}" y="{y + 4}" text-anchor="end" font-size="12" fill="#616C73">{tick}</text>')
    (x0, y0), (x1, y1) = at(0, 0), at(1, 1)
    body.append(f'<path class="ref" d="M{x0} {y0}L{x1} {y1}" stroke="#616C73" stroke-dasharray="3 3"/>')
    words = []
    for part in bins:
        (x, y), (_, onto) = at(part.confidence, part.accuracy), at(part.confidence, part.confidence)
        body.append(f'<path class="gap" d="M{x} {y}V{onto}" stroke="#c2691c" stroke-width="1.5"/>')
        said = [f"{100 * part.accuracy:.1f}% right", f"{100 * part.confidence:.1f}% sure", f"{part.n:,} questions"]
        words.append(", ".join(said))
        body.append(hit(f'<circle class="pt at" cx="{x}" cy="{y}" r="3.5" fill="#14191C"/>', said, link=part.link))
    label = format_html("{}: {}", title, "; ".join(words))
    role = "group" if any(part.link for part in bins) else "img"
    width, height = left + edge + 12, edge + foot + 10
    return _drawn(
        f'<svg xmlns="http://www.w3.org/2000/svg" class="forest reliability" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" '
        f'font-family="system-ui, sans-serif" role="{role}" aria-label="{label}">{"".join(body)}</svg>'
    )


def micro_bar(wins: float, ties: float, losses: float) -> SafeString:
    """Won, tied, lost as three parts of 56 pixels; the figures stand in the cell's title."""
    parts = [(name, n) for name, n in (("w", wins), ("t", ties), ("l", losses)) if n]
    room = 56 - (len(parts) - 1)
    total = wins + ties + losses
    x, body = 0.0, ""
    for name, n in parts:
        width = round(room * n / total, 1)
        body += f'<rect class="{name}" x="{round(x, 1)}" width="{width}" height="4"/>'
        x += width + 1
    return _drawn(f'<svg class="mb" viewBox="0 0 56 4" preserveAspectRatio="none" aria-hidden="true">{body}</svg>')


STEPS = 5


def shade(value: float | None, limits: Sequence[float]) -> str:
    """The class of a coloured cell, by the four limits between its five classes."""
    return "qx" if value is None else f"q{bisect_right(limits, value + 1e-12)}"


def heat(value: float | None, low: float, high: float) -> str:
    """The class of a coloured cell, by five equal steps of a fixed range."""
    return shade(value, [low + (high - low) * step / STEPS for step in range(1, STEPS)])


def heat_scale() -> SafeString:
    """The five colours side by side, for the legend."""
    steps = "".join(f'<rect class="q{n}" x="{26 * n}" width="26" height="12"/>' for n in range(STEPS))
    return _drawn(f'<svg class="scale" viewBox="0 0 130 12" aria-hidden="true">{steps}</svg>')


def two_distributions(shares: list[tuple[str, float, float]], *, title: str) -> SafeString:
    """Two bars a step: the judge's share and, lighter, people's; the largest share fills the height."""
    width, high, step = 276, 84, 276 / max(len(shares), 1)
    most = max((max(judge_share, people_share) for _, judge_share, people_share in shares), default=0) or 1
    body = []
    for at, (name, judge_share, people_share) in enumerate(shares):
        bar = min(22.0, step * 0.34)
        middle = round(step * (at + 0.5), 1)
        for left, share, css, fill in (
            (middle - bar, judge_share, "w", "#2f6db5"),
            (middle, people_share, "t", "#8f999f"),
        ):
            tall = round(high * share / most, 1)
            body.append(
                f'<rect class="{css}" x="{round(left, 1)}" y="{round(high + 4 - tall, 1)}" width="{round(bar - 1, 1)}" '
                f'height="{tall}" fill="{fill}"/>'
            )
        body.append(f'<text class="tk" x="{middle}" y="{high + 20}" text-anchor="middle" font-size="11">{name}</text>')
    body.append(f'<path class="ref" d="M0 {high + 4.5}H{width}" stroke="#868f95"/>')
    label = format_html("{}", title)
    return _drawn(
        f'<svg xmlns="http://www.w3.org/2000/svg" class="forest" viewBox="0 0 {width} {high + 26}" '
        f'font-family="system-ui, sans-serif" role="img" aria-label="{label}">{"".join(body)}</svg>'
    )


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


@dataclass(frozen=True, slots=True)
class ForestRow:
    """``plain``: the number before something was taken out of it, as an open dot. ``said``: what is told of the row to
    those who point at it, line by line after its name.
    """

    name: str
    value: float
    low: float | None
    high: float | None
    quiet: bool = False  # the anchor: there to compare with
    plain: float | None = None
    said: tuple[str, ...] = ()
    apart: bool = False  # does not widen the axis: an arrow at its end where it lies beyond


LETTER = 0.58  # width of a letter, as a share of its size
LABELS = 0.52  # of the width, at most, for names


def forest(
    rows: list[ForestRow],
    *,
    title: str,
    write: Callable[[float], str],
    width: int = 276,
) -> SafeString:
    """Dots with intervals, one line a row, the ticks below; a line at 0. A long name takes several lines, so that none
    is cut.
    """
    many = len(rows) > 32
    step, font = (17, 11) if many else (21, 12)
    letters = int(LABELS * width / (LETTER * font))
    names = [in_lines(row.name, letters) for row in rows]
    left = min(LABELS * width, LETTER * font * max((len(line) for name in names for line in name), default=0)) + 8
    within = [row for row in rows if not row.apart] or rows
    scale = axis([*(end for row in within for end in (row.low, row.high, row.value, row.plain)), 0.0], most=5)
    place = _Placing(scale, left, width, step, font)
    tops = [0]
    for name in names:
        tops.append(tops[-1] + step + (len(name) - 1) * (font + 2))
    foot = tops[-1] + 6
    x, body = place.x, []
    for tick in scale.ticks:
        kind, colour = ("ref", "#616C73") if abs(tick) < 1e-9 else ("gl", "#E1E5E7")
        body.append(f'<path class="{kind}" d="M{x(tick)} 0V{foot}" stroke="{colour}"/>')
        body.append(
            f'<text x="{x(tick)}" y="{foot + 15}" text-anchor="middle" font-size="11" fill="#616C73">'
            f"{write(tick)}</text>"
        )
    body += [
        _forest_row(row, name, top, end - top, place)
        for row, name, top, end in zip(rows, names, tops, tops[1:], strict=False)
    ]
    label = format_html("{}", title)
    return _drawn(
        f'<svg xmlns="http://www.w3.org/2000/svg" class="forest{" many" if many else ""}" '
        f'viewBox="0 0 {width} {foot + 22}" '
        f'font-family="system-ui, sans-serif" role="img" aria-label="{label}">{"".join(body)}</svg>'
    )


def in_lines(name: str, letters: int) -> list[str]:
    """A name in lines of so many letters, broken after a space, a hyphen, a dash or a stroke where it has one."""
    lines = [""]
    for part in re.findall(r"[^\s/_-]*[\s/_-]?", name):
        if len(lines[-1]) + len(part.rstrip()) > letters and lines[-1]:
            lines.append("")
        while len(part.rstrip()) > letters:
            lines[-1], part = part[:letters], part[letters:]
            lines.append("")
        lines[-1] += part
    return [line.rstrip() for line in lines]


def hit(drawn: str, said: Iterable[str], *, link: str = "") -> str:
    """Something that can be pointed at: ``said`` stands beside it then, line by line. ``link``: where a click leads."""
    told = format_html("<title>{}</title>", "\n".join(filter(None, said)))
    if not link:
        return f'<g class="hit">{told}{drawn}</g>'
    return format_html('<a class="hit" href="{}">', link) + f"{told}{drawn}</a>"


@dataclass(frozen=True, slots=True)
class _Placing:
    """Of the rows of a forest plot: the scale right of the names, the width, the height of a line, and its letters."""

    scale: Axis
    left: float
    width: int
    step: int
    font: int

    @property
    def ends(self) -> tuple[float, float]:
        return self.left + 8, self.width - 14

    def x(self, value: float) -> float:
        share = (value - self.scale.low) / (self.scale.high - self.scale.low)
        start, end = self.ends
        return round(start + min(1.0, max(0.0, share)) * (end - start), 1)


def _forest_row(row: ForestRow, name: list[str], top: float, height: float, at: _Placing) -> str:
    x, y = at.x, top + height / 2
    kind, colour = ("tk", "#616C73") if row.quiet else ("lab", "#14191C")
    begin = y + 4 - (len(name) - 1) * (at.font + 2) / 2
    drawn = "".join(
        format_html(
            '<text class="{}" x="0" y="{}" font-size="{}" fill="{}">{}</text>',
            *(kind, begin + number * (at.font + 2), at.font, colour, line),
        )
        for number, line in enumerate(name)
    )
    if not at.scale.low <= row.value <= at.scale.high:  # beyond the axis: an arrow at its end
        edge, way = (at.ends[1], 1) if row.value > at.scale.high else (at.ends[0], -1)
        drawn += f'<path class="pt" d="M{edge - 5 * way} {y - 4}L{edge + 3 * way} {y}L{edge - 5 * way} {y + 4}Z"/>'
        return hit(drawn, (row.name, *row.said))
    if row.low is not None and row.high is not None:
        drawn += f'<path class="rng" d="M{x(row.low)} {y}H{x(row.high)}" stroke="#48535A" stroke-width="2"/>'
    if row.plain is not None:
        drawn += f'<circle class="open" cx="{x(row.plain)}" cy="{y}" r="3" fill="#FFFFFF" stroke="#48535A"/>'
    dot, fill = ("open", "#FFFFFF") if row.quiet else ("pt", "#14191C")
    edged = ' stroke="#48535A" stroke-width="1.5"' if row.quiet else ""
    r = 3 if at.step < 20 else 3.5
    drawn += f'<circle class="{dot} at" cx="{x(row.value)}" cy="{y}" r="{r}" fill="{fill}"{edged}/>'
    return hit(drawn, (row.name, *row.said))


def _drawn(svg: str) -> SafeString:
    return mark_safe(svg)  # noqa: S308 (numbers, and text escaped above)
