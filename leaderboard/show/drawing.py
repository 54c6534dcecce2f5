"""What plots are drawn with: lines, boxes, dots and names, as SVG by attributes alone.

Classes give a page's colours, light and dark; the attributes are what a downloaded file shows.
"""

import re
from collections.abc import Callable, Iterable, Sequence

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from leaderboard.rows import Number
from leaderboard.show.fonts import Measure, width_on_page

INK, QUIET, PAPER, LINE = "#14191C", "#616C73", "#FFFFFF", "#E1E5E7"
COLOURS = {
    "gl": LINE, "ref": QUIET, "then": QUIET, "tk": QUIET, "lab": INK, "pt": INK, "open": PAPER, "rng": "#48535A",
    "oth": "#868F95", "people": "#0B696D", "band": "#DCEEEC", "gap": "#C2691C", "w": "#2F6DB5",
    "t": "#8F999F", "q0": "#F7F8F8", "q1": "#ECF4F4", "q2": "#DCEDED", "q3": "#C8E3E2", "q4": "#AFD6D5", "qx": PAPER,
}  # fmt: skip
WIDTHS = {"rng": 1.5, "oth": 1.5, "people": 1.5, "gap": 1.5}
NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
Spot = tuple[float, float]


def line(css: str, *spots: Spot, dashed: bool = False) -> str:
    """Through these spots; empty with fewer than two."""
    if len(spots) < 2:
        return ""
    path = "L".join(f"{round(x, 1)} {round(y, 1)}" for x, y in spots)
    stroke = f'stroke="{COLOURS[css]}" stroke-width="{WIDTHS.get(css, 1)}"'
    dash = ' stroke-dasharray="4 3"' * dashed
    return f'<path class="{css}" d="M{path}" fill="none" {stroke}{dash}/>'


def area(css: str, *spots: Spot) -> str:
    """What lies between these spots; empty with fewer than three."""
    if len(spots) < 3:
        return ""
    path = "L".join(f"{round(x, 1)} {round(y, 1)}" for x, y in spots)
    return f'<path class="{css}" d="M{path}Z" fill="{COLOURS[css]}"/>'


def rect(css: str, x: float, y: float, width: float, height: float) -> str:
    size = f'width="{round(width, 1)}" height="{round(height, 1)}"'
    return f'<rect class="{css}" x="{round(x, 1)}" y="{round(y, 1)}" {size} fill="{COLOURS[css]}"/>'


def dot(css: str, x: float, y: float, r: float = 4) -> str:
    """A circle, or a ring where it is ``open``."""
    edge = f' stroke="{INK}" stroke-width="1.5"' if css == "open" else ""
    return f'<circle class="{css}" cx="{round(x, 1)}" cy="{round(y, 1)}" r="{r}" fill="{COLOURS[css]}"{edge}/>'


def text(
    x: float, y: float, words: object, css: str = "tk", *, anchor: str = "start", size: float = 0, weight: int = 400
) -> str:
    """``y`` is the line that the letters stand on."""
    bold = format_html(' font-weight="{}"', weight) if weight != 400 else ""
    return format_html(
        '<text class="{}" x="{}" y="{}" font-size="{}" fill="{}" text-anchor="{}"{}>{}</text>',
        *(css, round(x, 1), round(y, 1), size or 12, COLOURS[css], anchor, bold, words),
    )


def hit(drawn: str, said: Iterable[str], *, link: str = "") -> str:
    """Something that can be pointed at: ``said`` stands beside it then, line by line. ``link``: where a click leads."""
    told = format_html("<title>{}</title>", "\n".join(filter(None, said)))
    if not link:
        return f'<g class="hit">{told}{drawn}</g>'
    return format_html('<a class="hit" href="{}">', link) + f"{told}{drawn}</a>"


def upright(number: Number, up: Callable[[float], float], x: float) -> list[Spot]:
    """The ends of its interval, on an axis that goes up."""
    return [(x, up(end)) for end in number.between]


def level(number: Number, across: Callable[[float], float], y: float) -> list[Spot]:
    """The same on one that goes across."""
    return [(across(end), y) for end in number.between]


def svg(
    css: str, width: float, height: float, title: str, body: Iterable[str], *, family: str = "system-ui, sans-serif"
) -> SafeString:
    """Those with links are a group, for as a picture they would hide these."""
    drawn = "".join(body)
    role, label = "group" if "<a class" in drawn else "img", format_html("{}", title)
    return mark_safe(  # noqa: S308 (numbers, and text escaped above)
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{css}" viewBox="0 0 {round(width)} {round(height)}" '
        f'font-family="{family}" role="{role}" aria-label="{label}">{drawn}</svg>'
    )


def standing_alone(svg: SafeString) -> str:
    """A plot as a file: with its size, which a program that has no page to fit it into needs, and without what names
    may hold and XML may not.
    """
    return NOT_XML.sub("", re.sub(r'(viewBox="0 0 (\d+) (\d+)")', r'width="\2" height="\3" \1', svg, count=1))


def in_lines(name: str, wide: float, size: float, width_of: Measure = width_on_page) -> list[str]:
    """A name in lines of so many pixels, broken after a space, a hyphen, a dash or a stroke where it has one."""
    lines = [""]
    for part in re.findall(r"[^\s/_-]+[\s/_-]?|[\s/_-]", name):
        if lines[-1] and width_of((lines[-1] + part).rstrip(), size) > wide:
            lines.append("")
        while width_of(part.rstrip(), size) > wide and len(part) > 1:
            fit = next((n for n in range(len(part) - 1, 1, -1) if width_of(part[:n], size) <= wide), 1)
            lines[-1], part = part[:fit], part[fit:]
            lines.append("")
        lines[-1] += part
    return [line.rstrip() for line in lines]


def name_in_lines(lines: Sequence[str], x: float, y: float, css: str, size: int) -> str:
    """A name around a middle ``y``."""
    begin, step = y + 4 - (len(lines) - 1) * (size + 2) / 2, size + 2
    return "".join(text(x, begin + step * at, words, css, size=size) for at, words in enumerate(lines))
