"""A picture as it is shared: a figure with its words, the site, the benchmark and the day, as SVG and as PNG."""

import struct
import zlib
from dataclasses import dataclass, replace
from datetime import datetime

import resvg_py
from django.utils.safestring import SafeString

from leaderboard.show import fonts
from leaderboard.show.drawing import PAPER, rect, standing_alone, svg, text
from leaderboard.show.fonts import BOLD, width_of
from leaderboard.show.plots import Figure
from stats.figures import number_of

SIZE = WIDTH, HEIGHT = 1200, 630  # pixels, as social networks show them
MARGIN, BEGIN, FOOT = 64, 86, 600  # the sides; the lines that the title and the source stand on
TITLES, UNDER, SOURCE = (48, 42, 36), (26, 23), 28  # pixels of letters, the largest that fit
MOST_LINES, STEP = 2, 1.2
MARK = (  # of the site
    '<g transform="translate(62 571) scale(1.7)"><path d="M2 11h18M2 7v8M20 7v8" stroke="#0B696D" stroke-width="1.8" '
    'fill="none"/><circle fill="#0B696D" cx="12.5" cy="11" r="3.6"/></g>'
)


@dataclass(frozen=True, slots=True)
class Source:
    """Where a picture is from. ``slug`` stands for the benchmark's title where no font here has its letters."""

    site: str
    benchmark: str
    slug: str
    at: datetime


# ---- as SVG ----


def card(figure: Figure, source: Source) -> SafeString:
    """White in every theme, with nothing to click on."""
    left, right = MARGIN, WIDTH - MARGIN
    title, large = _fitted(figure.title, TITLES, bold=True)
    under = BEGIN + (len(title) - 1) * large * STEP + 42
    said, small = _fitted(figure.under, UNDER)
    top = under + (len(said) - 1) * small * STEP + 22
    wide, tall = right - left, FOOT - 52 - top
    scale = figure.scale(wide, tall)
    body = [
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{PAPER}"/>',
        rect("people", 0, 0, WIDTH, 12),
        *(_line(BEGIN, n, words, large, bold=True) for n, words in enumerate(title)),
        *(_line(under, n, words, small) for n, words in enumerate(said)),
        f'<g transform="translate({left} {round(top, 1)}) scale({scale})">',
        *figure.body(wide / scale, tall / scale),
        "</g>",
        MARK,
        *_foot(source),
    ]
    return svg("picture", WIDTH, HEIGHT, titled(figure), body, family="Inter, system-ui, sans-serif")


def _line(begin: float, n: int, words: str, size: int, *, bold: bool = False) -> str:
    css, weight = ("lab", BOLD) if bold else ("tk", 400)
    return text(MARGIN, begin + n * size * STEP, words, css, size=size, weight=weight)


def _foot(source: Source) -> list[str]:
    """The site at the left, the benchmark with the day at the right, cut where there is no room."""
    day, begin = f" · {source.at:%-d %b %Y}", MARGIN + 50
    site = _cut(source.site, 500, SOURCE, bold=True)
    room = WIDTH - MARGIN - begin - width_of(site, SOURCE, bold=True) - width_of(day, SOURCE) - 40
    benchmark = _cut(source.benchmark, room, SOURCE)
    return [
        text(begin, FOOT, site, "lab", size=SOURCE, weight=BOLD),
        text(WIDTH - MARGIN, FOOT, benchmark + day, anchor="end", size=SOURCE),
    ]


def _fitted(words: str, sizes: tuple[int, ...], *, bold: bool = False) -> tuple[list[str], int]:
    """In lines, in the largest size in which they are few enough, else in the last with the last line cut."""
    wide = WIDTH - 2 * MARGIN
    for size in sizes:
        lines = [""]
        for word in words.split():
            longer = f"{lines[-1]} {word}".strip()
            if lines[-1] and width_of(longer, size, bold=bold) > wide:
                lines.append(word)
            else:
                lines[-1] = longer
        if len(lines) <= MOST_LINES:
            break
    kept = [*lines[: MOST_LINES - 1], " ".join(lines[MOST_LINES - 1 :])]
    return [_cut(each, wide, size, bold=bold) for each in kept if each], size


def _cut(words: str, wide: float, size: float, *, bold: bool = False) -> str:
    """Cut at a word, where one is left, with an ellipsis."""
    if width_of(words, size, bold=bold) <= wide:
        return words
    while words and width_of(f"{words}…", size, bold=bold) > wide:
        words = words.rpartition(" ")[0] or words[:-1]
    return f"{words}…"


# ---- as PNG ----


def png(figure: Figure, source: Source) -> bytes:
    """The same drawing, without what no font here has the letters of."""
    drawn = standing_alone(card(*_written(figure, source)))
    pixels = resvg_py.svg_to_bytes(
        svg_string=drawn, skip_system_fonts=True, font_files=fonts.files(), font_family="Inter"
    )
    return _with_title(pixels, titled(figure))


def titled(figure: Figure) -> str:
    """The picture's title, for those who do not see it; with the names that the PNG leaves out."""
    missing = ", ".join(_missing(figure))
    return f"{figure.title}. {figure.under}." + (f" Left out, for want of a font: {missing}." if missing else "")


def _missing(figure: Figure) -> list[str]:
    return [name for name in dict.fromkeys(figure.names) if fonts.lacks(name)]


def _written(figure: Figure, source: Source) -> tuple[Figure, Source]:
    def plain(words: str) -> str:
        words = words.replace(source.benchmark, source.slug) if fonts.lacks(words) else words
        return "".join(letter for letter in words if not fonts.lacks(letter))

    under, missing = plain(figure.under), _missing(figure)
    if missing:
        under += f"; {number_of(len(missing), 'name')} left out, for want of a font"
    figure = replace(figure.without(missing), title=plain(figure.title), under=under)
    return figure, replace(source, benchmark=plain(source.benchmark))


def _with_title(pixels: bytes, title: str) -> bytes:
    """A PNG with a chunk of text after its first one (PNG specification, 11.3.3)."""
    chunk = b"iTXtTitle\0\0\0\0\0" + title.encode()
    begin = 8 + 25  # signature and header
    return b"".join(
        [pixels[:begin], struct.pack(">I", len(chunk) - 4), chunk, struct.pack(">I", zlib.crc32(chunk)), pixels[begin:]]
    )
