"""Durations in words, in the language of the page."""

from datetime import timedelta

from django.utils.translation import gettext as _


def lasting(span: timedelta | float | None) -> str:
    """Of a span or seconds: "76 h", "1 h 16 min", "17 min", "2 min 30 s", "36 s". From ten minutes on without seconds.
    A dash for None.
    """
    if span is None:
        return "–"
    exact = span.total_seconds() if isinstance(span, timedelta) else span
    minutes, seconds = divmod(round(exact) if exact < 600 else 60 * round(exact / 60), 60)
    hours, minutes = divmod(minutes, 60)
    parts = [(hours, _("{n} h")), (minutes, _("{n} min")), (seconds, _("{n} s"))]
    return " ".join(words.format(n=f"{n:,}") for n, words in parts if n) or _("{n} s").format(n=0)
