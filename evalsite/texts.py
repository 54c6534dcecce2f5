"""The scripts' texts: marked in ``static/js``, translated with all others (``manage.py translations``)."""

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from django.conf import settings
from django.utils.translation import gettext, override

_MARKED = re.compile(r"\b(?:t|words)\(\s*(\"(?:\\.|[^\"\\])*\")")


def in_scripts() -> Iterator[tuple[str, Path]]:
    """Each marked text with the script it stands in."""
    for path in sorted((Path(settings.BASE_DIR) / "static" / "js").glob("*.js")):
        for match in _MARKED.finditer(path.read_text(encoding="utf-8")):
            yield json.loads(match[1]), path


@lru_cache(maxsize=8)
def of_scripts(language: str) -> dict[str, str]:
    """The scripts' texts in this language; those that stay as they are left out."""
    with override(language):
        words = {text: gettext(text) for text, _ in in_scripts()}
    return {text: said for text, said in words.items() if said != text}
