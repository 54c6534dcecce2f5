"""docs/statistics.md as a page, a section a panel."""

import re
from dataclasses import dataclass
from functools import cache

from django.conf import settings
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import slugify
from markdown_it import MarkdownIt

FILE = "docs/statistics.md"
TO_A_FILE = re.compile(r"\[([^\]]+)\]\((?!https?:)[^)]+\)")  # beside it in the repository, and nowhere on the site


@dataclass(frozen=True, slots=True)
class Section:
    title: str
    anchor: str
    html: SafeString


@cache
def sections() -> list[Section]:
    """The introduction, with the document's title, and what stands below each heading."""
    text = TO_A_FILE.sub(r"\1", (settings.BASE_DIR / FILE).read_text(encoding="utf-8")).removeprefix("# ")
    reader = MarkdownIt("commonmark").enable("table")
    parts = (part.partition("\n") for part in text.split("\n## "))
    return [Section(title, slugify(title), mark_safe(reader.render(body))) for title, _, body in parts]  # noqa: S308
