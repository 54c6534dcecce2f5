"""What templates need: context for every page, a loader that drops indentation, the scripts' texts."""

import json
import re
from collections.abc import Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.template import Origin
from django.template.loaders.filesystem import Loader as FilesystemLoader
from django.utils.translation import gettext, override

from accounts import notices
from accounts.rules import allowed


def chrome(request: HttpRequest) -> dict[str, Any]:
    """Which parts of the main navigation this viewer may open."""
    user = getattr(request, "user", None)
    if user is None:
        return {}
    return {
        "preferences": getattr(user, "preferences", {}),
        "unread": partial(notices.unread, user),  # asked of the database by pages that show the bell
        "may": {
            "administer": allowed(user, "administer"),
            "bank": allowed(user, "read-bank"),
            "label": allowed(user, "label"),
            "campaigns": allowed(user, "read-judging"),
            "judging": allowed(user, "read-judging"),
            "submit": allowed(user, "submit"),
            "manage_submissions": allowed(user, "manage-submissions"),
            "write_judging": allowed(user, "write-judging"),
            "labels": allowed(user, "read-labels"),
        },
    }


_VERBATIM = re.compile(r"(<(pre|textarea)\b.*?</\2>)", re.S)


class Loader(FilesystemLoader):
    def get_contents(self, origin: Origin) -> str:
        parts = _VERBATIM.split(super().get_contents(origin))
        # Of three parts one is verbatim, and one its element's name.
        return "".join(part if at % 3 else re.sub(r"\n +", "\n", part) for at, part in enumerate(parts) if at % 3 != 2)


_MARKED = re.compile(r"\b(?:t|words)\(\s*(\"(?:\\.|[^\"\\])*\")")


def in_scripts() -> Iterator[tuple[str, Path]]:
    """Each marked text with the script that contains it."""
    for path in sorted((Path(settings.BASE_DIR) / "static" / "js").glob("*.js")):
        for match in _MARKED.finditer(path.read_text(encoding="utf-8")):
            yield json.loads(match[1]), path


@lru_cache(maxsize=8)
def of_scripts(language: str) -> dict[str, str]:
    """The scripts' texts in this language, without untranslated ones."""
    with override(language):
        words = {text: gettext(text) for text, _ in in_scripts()}
    return {text: translated for text, translated in words.items() if translated != text}
