"""The font of pictures to share: how wide words are in it, and which of their letters it lacks.

It is Inter, cut to Latin, Greek, Cyrillic and signs (``leaderboard/fonts``); ``PICTURE_FONTS`` adds the installation's
own for other letters. Pages have the reader's fonts.
"""

import logging
import unicodedata
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from django.conf import settings
from PIL import ImageFont

Measure = Callable[..., float]  # of words in a size, perhaps ``bold``
log = logging.getLogger(__name__)
SHIPPED = Path(__file__).resolve().parent.parent / "fonts" / "Inter.ttf"
BOLD = 600
WIDER = 1.18  # than the shipped font are those that readers' systems have, at most
_SIZE = 100  # pixels, at which letters are measured
_NO_LETTER = "\U0010fffe"


def files() -> list[str]:
    """Those that can be read, the shipped one first."""
    return [path for path in (str(SHIPPED), *settings.PICTURE_FONTS) if _font(path) is not None]


@lru_cache(maxsize=16)
def _font(path: str, *, bold: bool = False) -> ImageFont.FreeTypeFont | None:
    try:
        font = ImageFont.truetype(path, _SIZE, layout_engine=ImageFont.Layout.BASIC)
    except OSError as error:
        log.warning("PICTURE_FONTS: %s cannot be read as a font: %s", path, error)
        return None
    if bold and path == str(SHIPPED):
        font.set_variation_by_axes([BOLD])
    return font


@lru_cache(maxsize=8192)
def _holds(path: str, letter: str) -> bool:
    font = _font(path)
    return font is not None and bytes(font.getmask(letter)) != bytes(font.getmask(_NO_LETTER))


def _file_of(letter: str) -> str | None:
    if letter.isspace() or unicodedata.category(letter) in ("Cf", "Cc"):  # drawn as nothing
        return str(SHIPPED)
    return next((path for path in files() if _holds(path, letter)), None)


def lacks(words: str) -> bool:
    """Whether a letter of them is in none of the fonts."""
    return any(_file_of(letter) is None for letter in words)


@lru_cache(maxsize=8192)
def width_of(words: str, size: float, *, bold: bool = False) -> float:
    """Of letters in no font, about what a reader's own font takes."""
    total, run = 0.0, ""
    for letter in words:
        path = _file_of(letter)
        if path == str(SHIPPED):
            run += letter
            continue
        font = _font(path) if path else None
        wide = 1.0 if unicodedata.east_asian_width(letter) in "WF" else 0.65
        total += font.getlength(letter) if font else wide * _SIZE
    shipped = _font(str(SHIPPED), bold=bold)
    return (total + (shipped.getlength(run) if shipped else 0.0)) * size / _SIZE


def width_on_page(words: str, size: float, *, bold: bool = False) -> float:
    """What they take at most in the reader's font."""
    return WIDER * width_of(words, size, bold=bold)
