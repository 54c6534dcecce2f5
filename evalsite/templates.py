"""What templates need: context for every page, the scripts' texts."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.utils.translation import gettext, override

from accounts import notices
from accounts.rules import RULES, role_of


@dataclass(frozen=True, slots=True)
class May:
    """What a role may do, as far as templates ask: see ``accounts.rules``."""

    administer: bool
    bank: bool
    label: bool
    judging: bool
    submit: bool
    write_judging: bool


@cache
def may_of(role: str) -> May:
    return May(
        administer=role in RULES["administer"],
        bank=role in RULES["read-bank"],
        label=role in RULES["label"],
        judging=role in RULES["read-judging"],
        submit=role in RULES["submit"],
        write_judging=role in RULES["write-judging"],
    )


def chrome(request: HttpRequest) -> dict[str, Any]:
    """What the frame of every page needs to know of its viewer."""
    user = getattr(request, "user", None)
    if user is None:
        return {}
    return {
        "preferences": getattr(user, "preferences", {}),
        "unread": partial(notices.unread, user),  # asked of the database by pages that show the bell
        "may": may_of(role_of(user)),
    }


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
