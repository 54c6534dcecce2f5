"""docs/method.md, for readers of the boards, and docs/statistics.md, the formulas, as pages: a section a panel."""

import re
from dataclasses import dataclass
from functools import cache

from django.conf import settings
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import slugify
from markdown_it import MarkdownIt

from leaderboard.show import marks
from stats.figures import signed

READERS, FORMULAS = "docs/method.md", "docs/statistics.md"
TO_A_FILE = re.compile(r"\[([^\]]+)\]\((?!https?:)[^)]+\)")  # beside it in the repository, and nowhere on the site


@dataclass(frozen=True, slots=True)
class Section:
    title: str
    anchor: str
    html: SafeString


@cache
def sections(file: str) -> list[Section]:
    """The introduction, with the document's title, and what stands below each heading."""
    text = TO_A_FILE.sub(r"\1", (settings.BASE_DIR / file).read_text(encoding="utf-8")).removeprefix("# ")
    reader = MarkdownIt("commonmark").enable("table")
    parts = (part.partition("\n") for part in text.split("\n## "))
    return [Section(title, slugify(title), mark_safe(reader.render(body))) for title, _, body in parts]  # noqa: S308


def example() -> SafeString:
    """Three models as a board draws them: told apart, not told apart, and too few items."""
    scale = marks.axis([-1.0, 1.0], width=marks.COLUMN)
    rows = (
        ("Told apart from the two below", 0.62, 0.41, 0.83, False),
        ("Not told apart from the next", 0.08, -0.14, 0.30, False),
        ("", -0.05, -0.28, 0.18, False),
        ("Fewer than 30 items: not ranked yet", -0.4, -0.95, 0.15, True),
    )
    drawn = [
        (words, marks.interval_bar(scale, value, low, high, write=signed, provisional=few, reference=0.0))
        for words, value, low, high, few in rows
    ]
    lines = format_html_join("", '<p class="cluster">{} <span>{}</span></p>', ((bar, words) for words, bar in drawn))
    return format_html('<div class="stack close">{}</div>', lines)
