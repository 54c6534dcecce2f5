"""What an endpoint returned, and what it amounts to."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

Status = Literal["ok", "parse_failed", "refused", "filtered", "truncated", "empty", "error"]
Place = Literal["first", "last"]  # the line of the reply that carries the vote

REASONS: dict[Status, str] = {
    "refused": "the judge refused",
    "filtered": "stopped by the provider's content filter",
    "truncated": "cut off at the length limit",
    "empty": "empty reply",
}


@dataclass(frozen=True, slots=True)
class Token:
    """One token of a reply, and those that might have stood in its place with their log-probabilities (itself too)."""

    text: str
    candidates: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Reply:
    """What an endpoint returned as one completion."""

    text: str = ""
    finish_reason: str = ""
    refusal: str = ""
    reasoning: str = ""  # some endpoints return it beside the text
    tokens: tuple[Token, ...] = ()  # where log-probabilities were asked for and given


@dataclass(frozen=True, slots=True)
class Found:
    """A verdict found in a reply, in presented order, and the rest of the reply."""

    verdict: dict[str, Any]
    analysis: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reply amounts to. ``verdict`` is empty unless ``status`` is ok."""

    status: Status
    verdict: dict[str, Any] = field(default_factory=dict)
    reason: str = ""
    analysis: str = ""


class NoVerdict(ValueError):
    """A reply without the verdict that was asked for; says what is missing."""


def read(reply: Reply, parse: Callable[[str], Found]) -> Reading:
    """Read a reply with a protocol's ``parse``, which raises NoVerdict.

    Why the model stopped is looked at before the text: a vote in a reply that was cut off or filtered does not count.
    """
    text = reply.text.strip()
    if reply.refusal.strip():
        return _without("refused", reply)
    if reply.finish_reason == "content_filter":
        return _without("filtered", reply)
    if reply.finish_reason == "length":
        return _without("truncated", reply)
    if not text:
        return _without("empty", reply)
    try:
        found = parse(text)
    except NoVerdict as error:
        if _REFUSAL.match(text):
            return _without("refused", reply)
        return Reading("parse_failed", reason=str(error), analysis=joined(reply.reasoning, text))
    return Reading("ok", found.verdict, analysis=joined(reply.reasoning, found.analysis))


def _without(status: Status, reply: Reply) -> Reading:
    return Reading(status, reason=REASONS[status], analysis=joined(reply.reasoning, reply.refusal or reply.text))


def joined(*parts: str) -> str:
    return "\n\n".join(part.strip() for part in parts if part.strip())


# The beginnings with which models decline in plain words, where an endpoint has no field for it.
_REFUSAL = re.compile(
    r"(?:i['’]?m sorry|i am sorry|sorry|i apologi[sz]e|unfortunately)?[\s,.:;]*(?:but\s+)?"
    r"(?:i\s*(?:can(?:['’]t|not|\s+not)|am\s+(?:unable|not\s+able)|['’]m\s+(?:unable|not\s+able)|won['’]t|must\s+decline)"
    r"|as\s+an\s+ai)\b(?!\s+(?:decide|choose|tell|see)\b)",
    re.IGNORECASE,
)
