"""For templates: the context of every page, and the scripts' texts."""

import json
import re
from collections.abc import Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest
from django.utils.translation import gettext, override

from accounts import notices
from accounts.middleware import is_translated, language_of
from accounts.rules import ANYWHERE, Viewer, admitted, allowed


class May(NamedTuple):
    """The permissions of a viewer, as far as templates ask: see ``accounts.rules``."""

    administer: bool
    bank: bool
    curate: bool
    grant: bool
    label: bool
    judging: bool
    submit: bool
    write_judging: bool


def may_of(viewer: Viewer) -> May:
    return May(
        administer=allowed(viewer, "administer"),
        bank=allowed(viewer, "read-bank"),
        curate=admitted("read-bank", viewer, ANYWHERE, {}),
        grant=allowed(viewer, "grant-rights"),
        label=admitted("label", viewer, ANYWHERE, {}),
        judging=allowed(viewer, "read-judging"),
        submit=allowed(viewer, "submit"),
        write_judging=allowed(viewer, "write-judging"),
    )


def chrome(request: HttpRequest) -> dict[str, Any]:
    """The facts about its viewer that the frame of every page needs."""
    user = getattr(request, "user", None)
    if user is None:
        return {}
    return {
        "frame": "leaderboard/_parts.html" if hasattr(request, "preparing") else "base.html",
        "other_language": partial(_other_language, request),
        "preferences": getattr(user, "preferences", {}),
        "unread": partial(notices.unread, user),  # asked of the database by pages that show the bell
        "may": may_of(user),
        "version": settings.VERSION,
        "origin": _origin(request),
    }


def _origin(request: HttpRequest) -> str:
    """Scheme and host of this site; empty where the request names none of ours."""
    try:
        return f"{request.scheme}://{request.get_host()}"
    except DisallowedHost:
        return ""


def _other_language(request: HttpRequest) -> str:
    """What the reader of a page that is in English alone would read, if it is another language."""
    language = "" if is_translated(request) else language_of(request)
    return "" if language == settings.LANGUAGE_CODE else language


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
