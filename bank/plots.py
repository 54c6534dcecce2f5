"""Plots of the bank's pages as SVG, drawn by attributes alone; classes give the page's colours."""

from collections.abc import Sequence

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

STEP = 56  # pixels a round
BAR = 24
HEIGHT = 112
TOP = 20
LEFT = 8


def revised_per_round(rows: Sequence[tuple[int, int, int]]) -> SafeString:
    """Bars of (round, samples revised, sent back and not yet revised), the waiting ones outlined on top."""
    most = max([revised + waiting for _, revised, waiting in rows], default=0) or 1
    floor = TOP + HEIGHT
    scale = HEIGHT / most
    parts = []
    for place, (number, revised, waiting) in enumerate(rows):
        x = LEFT + place * STEP + (STEP - BAR) // 2
        full, open_ = round(revised * scale, 1), round(waiting * scale, 1)
        parts.append(
            format_html(
                '<rect class="done" x="{}" y="{}" width="{}" height="{}"/>'
                '<rect class="open" x="{}" y="{}" width="{}" height="{}"/>'
                '<text class="v" x="{}" y="{}" text-anchor="middle">{}</text>'
                '<text x="{}" y="{}" text-anchor="middle">{}</text>',
                *(x, floor - full, BAR, full),
                *(x + 0.5, round(floor - full - open_, 1) + 0.5, BAR - 1, max(0, open_ - 1)),
                *(x + BAR // 2, round(floor - full - open_ - 5, 1), revised if not waiting else f"{revised}+{waiting}"),
                *(x + BAR // 2, floor + 16, number),
            )
        )
    width = LEFT * 2 + max(3, len(rows)) * STEP
    body = format_html_join("", "{}", ((part,) for part in parts))
    return format_html(
        '<svg class="rounds" width="{}" height="{}" viewBox="0 0 {} {}" role="img" aria-label="{}">'
        '<path class="gl" d="M0 {}H{}"/>{}</svg>',
        *(width, floor + 22, width, floor + 22),
        "Samples revised in each round; the table beside it has the numbers",
        *(floor + 0.5, width),
        body,
    )
