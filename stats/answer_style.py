"""How an answer is written: what markdown it holds. Without numpy, so that it loads at once."""

from __future__ import annotations

import re
from dataclasses import dataclass

_FENCE = re.compile(r"^ {0,3}(?P<mark>`{3,}|~{3,})")
_HEADER = re.compile(r"^ {0,3}#{1,6}[ \t]+\S")
_ITEM = re.compile(r"^[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+\S")
_BOLD = re.compile(r"\*\*(?=[^\s*])[^*]+\*\*|(?<!\w)__(?=[^\s_])[^_]+__(?!\w)")


@dataclass(frozen=True, slots=True)
class Style:
    """How many headers, bold stretches and items of lists an answer has."""

    headers: int = 0
    bold: int = 0
    lists: int = 0


def style_of(text: str) -> Style:
    """The markdown of an answer outside its fences of code: headers (``#``), ``**bold**`` or ``__bold__`` within a
    line, and items of lists (``-``, ``*``, ``+``, ``1.``, ``1)``). What counts is how it is written, not how it is
    rendered.
    """
    headers = bold = lists = 0
    fence = ""
    for line in text.splitlines():
        mark = _FENCE.match(line)
        if fence:
            if mark and mark["mark"].startswith(fence) and not line.strip(" \t`~"):
                fence = ""
            continue
        if mark:
            fence = mark["mark"]
            continue
        headers += bool(_HEADER.match(line))
        lists += bool(_ITEM.match(line))
        bold += len(_BOLD.findall(line))
    return Style(headers, bold, lists)
