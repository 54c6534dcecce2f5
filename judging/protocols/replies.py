"""What an endpoint returned, and what it amounts to."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from judging.endpoints.answers import Reply

NONE_OF_THEM = "X"
Status = Literal["ok", "parse_failed", "refused", "filtered", "truncated", "empty", "error"]
Place = Literal["first", "last"]  # the line of the reply that carries the vote

REASONS: dict[Status, str] = {
    "refused": "the judge refused",
    "filtered": "stopped by the provider's content filter",
    "truncated": "cut off at the length limit",
    "empty": "empty reply",
}


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


def read_reply(reply: Reply, parse: Callable[[str], Found]) -> Reading:
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


NO_VOTE: dict[Place, str] = {"last": "no vote on the last line", "first": "no vote on the first line"}
NOTHING: dict[Place, str] = {"last": "no verdict on the last line", "first": "no verdict on the first line"}

_LINE_END = re.compile(r"\r\n|\r|\n")  # no others: an answer may have brought in characters that some call line ends
_FENCE = re.compile(r"[`~]{3,}[\w-]*|[-*_=]{3,}")
_FENCED = re.compile(r"\s*```(?:json)?[ \t]*\n(?P<inside>.*?)\n?```\s*", re.DOTALL | re.IGNORECASE)
_THINK = re.compile(r"<think(?:ing)?>(?P<thought>.*?)</think(?:ing)?>", re.DOTALL)
_KEYS = frozenset("judgement judgment verdict score rating mark ranking rank choice answer option vote".split())
_LABEL = re.compile(
    r"(?:(?:my|the|final|overall)\s+)*"
    r"(?:judge?ment|verdict|score|rating|mark|rank(?:ing)?|choice|answer|option|vote|decision)\s*(?:is\s*)?[:：]\s*",
    re.IGNORECASE,
)
_JUDGEMENT = re.compile(r"[\s*_#>-]*judge?ment\s*[*_]*\s*[:：](?P<rest>.*)", re.IGNORECASE | re.DOTALL)
_ONE = r"\[[^\[\]]{1,12}\]"
_BETWEEN = r"\s*[,>]?\s*"
_BRACKETS = re.compile(rf"\[{_ONE}\](?:{_BETWEEN}\[{_ONE}\])*|\[{_ONE}(?:{_BETWEEN}{_ONE})*\]")


@dataclass(frozen=True, slots=True)
class Stated:
    """A piece of a reply that may be its verdict, and the rest of the reply."""

    value: str
    analysis: str


def verdict_line(text: str, *, place: Place, missing: str) -> Stated:
    """The last (or first) line that says something; fences and rules are no lines. Raises NoVerdict(missing)."""
    thought, said = split_thought(text, place=place)
    lines = _LINE_END.split(said)
    full = [n for n, line in enumerate(lines) if line.strip() and not _FENCE.fullmatch(line.strip())]
    if not full:
        raise NoVerdict(missing)
    at = full[-1] if place == "last" else full[0]
    rest = lines[:at] if place == "last" else lines[at + 1 :]
    return Stated(lines[at], joined(thought, "\n".join(rest)))


def stated(text: str, *, place: Place) -> Iterator[Stated]:
    """What may be the verdict of a reply, the surest first.

    A reply that is one JSON object: the value under ``judgement``, ``score`` or the like, and nothing else. Otherwise
    the verdict's line without its label ("Judgement: [[4]]" gives ``[[4]]``), or the only group in double brackets on
    it where it begins with "Judgement:", as MLLM-as-a-Judge's judges write it ("Judgement: I rank them [[C]], [[A]],
    [[B]] because ..."). No other line is looked at: what stands there may be quoted from an answer. Raises NoVerdict.
    """
    thought, said = split_thought(text, place=place)
    fenced = _FENCED.fullmatch(said)
    bare = (fenced["inside"] if fenced else said).strip()
    if bare.startswith("{") and bare.endswith("}"):
        yield _in_object(bare, thought)
        return
    line = verdict_line(text, place=place, missing=NOTHING[place])
    clean = re.sub(r"[*_`#]", "", line.value).strip()
    label = _LABEL.match(clean)
    yield Stated(clean[label.end() :] if label else clean, line.analysis)
    if judgement := _JUDGEMENT.fullmatch(line.value):
        groups = _BRACKETS.findall(judgement["rest"])
        if len(groups) == 1:
            yield Stated(groups[0], joined(thought, said))


def _in_object(text: str, thought: str) -> Stated:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name.casefold() for name, _ in pairs]
        if len(set(names)) != len(names):
            raise NoVerdict("the JSON object names something twice")
        return dict(zip(names, (value for _, value in pairs), strict=True))

    try:
        found = json.loads(text, object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        if isinstance(error, NoVerdict):
            raise
        raise NoVerdict("the reply begins like a JSON object and is not one") from None
    keys = [name for name in found if name in _KEYS]
    if len(keys) != 1:
        raise NoVerdict("the JSON object holds no verdict" if not keys else "the JSON object holds several verdicts")
    value = found[keys[0]]
    if isinstance(value, bool) or not isinstance(value, str | int | float | list):
        raise NoVerdict("the verdict in the JSON object is neither a text nor a number")
    shown = value if isinstance(value, str) else json.dumps(value).replace('"', "")
    rest = [str(other) for name, other in found.items() if name != keys[0] and isinstance(other, str)]
    return Stated(shown.strip(), joined(thought, *rest))


def split_thought(text: str, *, place: Place) -> tuple[str, str]:
    """What a model thought aloud at the start, and what it then said.

    Only a single closed block counts: with a second closing tag, which the answers under judgment may have brought in,
    nothing tells where thinking ends.
    """
    if not re.match(r"\s*<think(?:ing)?>", text):
        return "", text
    closings = len(re.findall(r"</think(?:ing)?>", text))
    match = _THINK.match(text.lstrip())
    if closings == 1 and match:
        return match["thought"], text.lstrip()[match.end() :]
    if closings and place == "last":
        return "", text
    raise NoVerdict(NO_VOTE[place])


def plain(value: str) -> str:
    """A value without quotes, balanced brackets and a closing full stop round it. Signs and points stay."""
    before = None
    while value != before:
        before = value
        value = value.strip().strip("\"'“”‘’").strip()
        if value.endswith(".") and not value.endswith(".."):
            value = value[:-1]
        if len(value) > 1 and value[0] + value[-1] in ("[]", "()", "{}") and _balanced(value[1:-1]):
            value = value[1:-1]
    return value


def _balanced(inside: str) -> bool:
    depth = 0
    for letter in inside:
        depth += (letter in "[({") - (letter in "])}")
        if depth < 0:
            return False
    return depth == 0
