"""Reads replies: pure functions from text to verdict that never guess.

Only the judge's own reply is read, never the material it was shown. The verdict is on one line; everything else is
analysis. A reply without a verdict gets a status and a reason in our own words, because the reply may quote hidden
criteria.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from judging.endpoints.answers import Reply

NONE_OF_THEM = "X"
Status = Literal["ok", "parse_failed", "refused", "filtered", "truncated", "empty", "error"]
Place = Literal["first", "last"]  # the line of the reply with the verdict

REASONS: dict[Status, str] = {
    "refused": "the judge refused",
    "filtered": "stopped by the provider's content filter",
    "truncated": "cut off at the length limit",
    "empty": "empty reply",
}


@dataclass(frozen=True, slots=True)
class ParsedVerdict:
    """A verdict in presented order, and the rest of the reply."""

    verdict: dict[str, Any]
    analysis: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """The result of reading a reply. ``verdict`` is empty unless ``status`` is ok."""

    status: Status
    verdict: dict[str, Any] = field(default_factory=dict)
    reason: str = ""
    analysis: str = ""


class NoVerdict(ValueError):
    """The reply lacks the requested verdict; says what is missing."""


def read_reply(reply: Reply, parse: Callable[[str], ParsedVerdict]) -> Reading:
    """Read a reply with a protocol's ``parse``, which raises NoVerdict.

    The finish reason comes before the text: a vote in a reply that was cut off or filtered does not count.
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
        parsed = parse(text)
    except NoVerdict as error:
        if _REFUSAL.match(text):
            return _without("refused", reply)
        return Reading("parse_failed", reason=str(error), analysis=joined(reply.reasoning, text))
    return Reading("ok", parsed.verdict, analysis=joined(reply.reasoning, parsed.analysis))


def _without(status: Status, reply: Reply) -> Reading:
    return Reading(status, reason=REASONS[status], analysis=joined(reply.reasoning, reply.refusal or reply.text))


def joined(*parts: str) -> str:
    return "\n\n".join(part.strip() for part in parts if part.strip())


# How models refuse in plain words, for endpoints without a field for refusals.
_REFUSAL = re.compile(
    r"(?:i['’]?m sorry|i am sorry|sorry|i apologi[sz]e|unfortunately)?[\s,.:;]*(?:but\s+)?"
    r"(?:i\s*(?:can(?:['’]t|not|\s+not)|am\s+(?:unable|not\s+able)|['’]m\s+(?:unable|not\s+able)|won['’]t|must\s+decline)"
    r"|as\s+an\s+ai)\b(?!\s+(?:decide|choose|tell|see)\b)",
    re.IGNORECASE,
)


NO_VOTE: dict[Place, str] = {"last": "no vote on the last line", "first": "no vote on the first line"}


_LINE_END = re.compile(r"\r\n|\r|\n")  # no others: an answer may contain characters that some call line ends
_CODE_FENCE = re.compile(r"[`~]{3,}[\w-]*")
_FENCE = re.compile(r"[`~]{3,}[\w-]*|[-*_=]{3,}")
_FENCED = re.compile(r"\s*```(?:json)?[ \t]*\n(?P<inside>.*?)\n?```\s*", re.DOTALL | re.IGNORECASE)
_THINK = re.compile(r"<think(?:ing)?>(?P<thought>.*?)</think(?:ing)?>", re.DOTALL)
_KEYS = frozenset(
    "judgement judgment verdict score rating mark ranking rank choice answer option vote label category".split()
)
_LABEL = re.compile(
    r"(?:(?:my|the|final|overall)\s+)*"
    r"(?:judge?ment|verdict|score|rating|mark|rank(?:ing)?|choice|answer|option|vote|decision|label|category)"
    r"\s*(?:is\s*)?[:：]\s*",
    re.IGNORECASE,
)
_JUDGEMENT = re.compile(r"[\s*_#>-]*judge?ment\s*[*_]*\s*[:：](?P<rest>.*)", re.IGNORECASE | re.DOTALL)
_ONE = r"\[[^\[\]]{1,12}\]"
_BETWEEN = r"\s*[,>]?\s*"
_BRACKETS = re.compile(rf"\[{_ONE}\](?:{_BETWEEN}\[{_ONE}\])*|\[{_ONE}(?:{_BETWEEN}{_ONE})*\]")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A piece of a reply that may be the verdict, and the rest of the reply."""

    value: str
    analysis: str


def verdict_line(text: str, *, place: Place, missing: str) -> Candidate:
    """The last (or first) line with text; code fences and rules do not count. Raises NoVerdict(missing).

    A fenced block at the end of a reply that says more is a quotation, as of a verdict that a judged answer holds.
    """
    thought, rest_of_reply = split_thought(text, place=place)
    lines = _LINE_END.split(rest_of_reply)
    full = [n for n, line in enumerate(lines) if line.strip() and not _FENCE.fullmatch(line.strip())]
    if not full:
        raise NoVerdict(missing)
    at = full[-1] if place == "last" else full[0]
    if place == "last" and _is_quoted(lines, at):
        raise NoVerdict(missing)
    rest = lines[:at] if place == "last" else lines[at + 1 :]
    return Candidate(lines[at], joined(thought, "\n".join(rest)))


def _is_quoted(lines: Sequence[str], at: int) -> bool:
    """Whether a line stands between fences, and there is more in the reply than what they hold."""
    fences = [n for n, line in enumerate(lines) if _CODE_FENCE.fullmatch(line.strip())]
    above = [n for n in fences if n < at]
    if not above or fences[-1] < at:
        return False
    return len(above) > 1 or any(line.strip() for line in lines[: above[0]])


def verdict_candidates(text: str, *, place: Place) -> Iterator[Candidate]:
    """The pieces of a reply that may be its verdict, most likely first.

    If the reply is one JSON object: the value of ``judgement``, ``score`` or similar, and nothing else. Otherwise the
    verdict line without its label ("Judgement: [[4]]" gives ``[[4]]``), or, if it starts with "Judgement:", the only
    group in double brackets on it, as the judges of MLLM-as-a-Judge write it ("Judgement: I rank them [[C]], [[A]],
    [[B]] because ..."). Other lines are ignored, since they may be quoted from an answer. Raises NoVerdict.
    """
    thought, reply_text = split_thought(text, place=place)
    fenced = _FENCED.fullmatch(reply_text)
    bare = (fenced["inside"] if fenced else reply_text).strip()
    if bare.startswith("{") and bare.endswith("}"):
        yield _in_object(bare, thought)
        return
    line = verdict_line(text, place=place, missing=f"no verdict on the {place} line")
    clean = re.sub(r"[*_`#]", "", line.value).strip()
    label = _LABEL.match(clean)
    yield Candidate(clean[label.end() :] if label else clean, line.analysis)
    if judgement := _JUDGEMENT.fullmatch(line.value):
        groups = _BRACKETS.findall(judgement["rest"])
        if len(groups) == 1:
            yield Candidate(groups[0], joined(thought, reply_text))


def has_judgement_within(text: str) -> bool:
    """Whether a line before the last starts with "Judgement:", where it is not read."""
    return any(_JUDGEMENT.fullmatch(line) for line in _LINE_END.split(text.strip())[:-1])


def _in_object(text: str, thought: str) -> Candidate:
    try:
        parsed = json.loads(text, object_pairs_hook=_with_unique_names)
    except (ValueError, RecursionError) as error:
        if isinstance(error, NoVerdict):
            raise
        raise NoVerdict("the reply starts like a JSON object but is not valid JSON") from None
    keys = [name for name in parsed if name in _KEYS]
    if len(keys) != 1:
        raise NoVerdict("the JSON object has no verdict" if not keys else "the JSON object has several verdicts")
    value = parsed[keys[0]]
    rest = [str(other) for name, other in parsed.items() if name != keys[0] and isinstance(other, str)]
    return Candidate(_value_as_text(value), joined(thought, *rest))


def _with_unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name.casefold() for name, _ in pairs]
    if len(set(names)) != len(names):
        raise NoVerdict("the JSON object has a duplicate key")
    return dict(zip(names, (value for _, value in pairs), strict=True))


def _value_as_text(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float | list):
        raise NoVerdict("the verdict in the JSON object is neither text nor a number")
    return (value if isinstance(value, str) else json.dumps(value).replace('"', "")).strip()


def split_thought(text: str, *, place: Place) -> tuple[str, str]:
    """A model's thinking at the start of its reply, and the rest.

    Only a single closed block counts. With a second closing tag, which may come from the judged answers, it is
    impossible to tell where the thinking ends.
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


def unwrapped(value: str) -> str:
    """A value without the quotes, balanced brackets and full stop around it. Signs and decimal points stay."""
    previous = None
    while value != previous:
        previous = value
        value = value.strip().strip("\"'“”‘’").strip()
        if value.endswith(".") and not value.endswith(".."):
            value = value[:-1]
        if len(value) > 1 and value[0] + value[-1] in ("[]", "()", "{}") and _balanced(value[1:-1]):
            value = value[1:-1]
    return value


def _balanced(inside: str) -> bool:
    depth = 0
    for character in inside:
        depth += (character in "[({") - (character in "])}")
        if depth < 0:
            return False
    return depth == 0
