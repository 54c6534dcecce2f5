"""What came of a call: every way in which it can end is an ``Outcome``."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Any

import orjson

KEPT_DETAIL = 4_000  # characters of what an endpoint said besides a verdict
WAIT_HEADERS = ("retry-after-ms", "retry-after")
QUOTA_CODES = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "access_terminated"}
FILTER_CODES = {"content_filter", "content_policy_violation", "responsibleaipolicyviolation", "moderation_blocked"}
FILTER_CODES |= {"invalid_prompt"}  # OpenAI, of what its reasoning models will not think about


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


class Outcome(StrEnum):
    """How a call ended."""

    OK = "ok"  # a completion; whether it holds a verdict is for the protocol to say
    GARBAGE = "garbage"  # 200 with something else
    FILTERED = "filtered"
    PERMANENT = "permanent"  # this request will never do
    RATE = "rate"
    TRANSIENT = "transient"
    TIMEOUT = "timeout"
    UNREACHABLE = "unreachable"
    QUOTA = "quota"
    AUTHENTICATION = "authentication"
    SETUP = "setup"  # wrong address, unknown model, redirect


@dataclass(frozen=True, slots=True)
class Answer:
    """One call's end. ``words`` are ours and fit for everybody; ``detail`` is what the endpoint said, for staff."""

    outcome: Outcome
    seconds: float = 0.0
    http_status: int | None = None
    reply: Reply | None = None
    words: str = ""
    detail: str = ""
    retry_after: float | None = None  # seconds
    model: str = ""
    fingerprint: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Received:
    """A whole HTTP response, whatever its status."""

    status: int
    content: bytes
    headers: dict[str, str] = field(default_factory=dict)  # those that ask for a pause


class Failed(Exception):
    """A call that brought no whole HTTP response."""

    def __init__(self, outcome: Outcome, words: str) -> None:
        super().__init__(words)
        self.outcome = outcome
        self.words = words


def completed(content: bytes) -> Answer:
    """Read a reply with status 200: a completion, or whatever else somebody sends with it."""
    data: Any = None
    try:
        data = orjson.loads(content)
        choice = data["choices"][0]
        message = choice["message"]
        if not isinstance(message, dict):
            raise TypeError
    except (ValueError, TypeError, LookupError):
        if failed := _failed_behind(data.get("error") if isinstance(data, dict) else None, content):
            return failed
        return Answer(Outcome.GARBAGE, 0.0, 200, words="not a chat completion", detail=_kept(content))
    usage = data.get("usage") if isinstance(data.get("usage"), dict) else {}
    answer = Answer(
        Outcome.OK,
        0.0,
        200,
        reply=Reply(
            text=_text(message.get("content")),
            finish_reason=_text(choice.get("finish_reason")),
            refusal=_text(message.get("refusal")),
            reasoning=_text(message.get("reasoning_content")) or _text(message.get("reasoning")),
            tokens=_tokens(choice.get("logprobs")),
        ),
        model=_label(data.get("model")),
        fingerprint=_label(data.get("system_fingerprint")),
        prompt_tokens=_count(usage.get("prompt_tokens")),
        completion_tokens=_count(usage.get("completion_tokens")),
    )
    if not choice.get("error") and choice.get("finish_reason") != "error":
        return answer
    # It broke off: what was said until then is no reply, but its tokens are paid for.
    failed = _failed_behind(choice.get("error"), content) or Answer(
        Outcome.TRANSIENT, 0.0, 200, words="the model behind the endpoint failed", detail=_kept(content)
    )
    return replace(failed, prompt_tokens=answer.prompt_tokens, completion_tokens=answer.completion_tokens)


def _failed_behind(error: Any, content: bytes) -> Answer | None:
    """What an error with a status of its own says, by which routers hand on one of the model behind them."""
    status = error.get("code") if isinstance(error, dict) else None
    if type(status) is not int or not 400 <= status <= 599:
        return None
    return replace(refused(status, orjson.dumps({"error": error}), {}), detail=_kept(content))


def refused(status: int, content: bytes, headers: Mapping[str, str]) -> Answer:
    """Read a reply with any other status."""
    code = _error_code(content)
    retry_after = seconds_to_wait(headers, now=datetime.now(UTC))

    def ended(outcome: Outcome, words: str) -> Answer:
        return Answer(outcome, 0.0, status, words=words, detail=_kept(content), retry_after=retry_after)

    if status == 402 or (status == 429 and code in QUOTA_CODES):
        return ended(Outcome.QUOTA, "the account has no quota left")
    if status == 429:
        return ended(Outcome.RATE, "rate limit (429)")
    if status == 403 and (code in FILTER_CODES or _moderated(content)):
        return ended(Outcome.FILTERED, "stopped by the provider's moderation")
    if status in (401, 403):
        return ended(Outcome.AUTHENTICATION, f"the key was not accepted ({status})")
    if 300 <= status < 400:
        return ended(Outcome.SETUP, f"it redirects elsewhere ({status}), which is not followed")
    if status in (404, 405):
        return ended(Outcome.SETUP, f"it knows no such address or model ({status})")
    if status in (408, 409, 425) or status >= 500:
        return ended(Outcome.TRANSIENT, f"the endpoint failed ({status})")
    if code in FILTER_CODES:
        return ended(Outcome.FILTERED, "stopped by the provider's content filter")
    if code == "context_length_exceeded":
        return ended(Outcome.PERMANENT, "the prompt is longer than the model's context")
    return ended(Outcome.PERMANENT, f"the endpoint refused the request ({status})")


def seconds_to_wait(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """What ``retry-after-ms`` or ``retry-after`` (seconds or a date) asks for; None when absent or nonsense."""
    for name, scale in zip(WAIT_HEADERS, (0.001, 1.0), strict=True):
        value = headers.get(name, "").strip()
        try:
            seconds = float(value) * scale
        except ValueError:
            try:
                at = parsedate_to_datetime(value)
            except (ValueError, TypeError, OverflowError):
                continue
            seconds = (at.replace(tzinfo=at.tzinfo or UTC) - now).total_seconds()
        if seconds >= 0 and seconds != float("inf"):
            return seconds
    return None


def _error_code(content: bytes) -> str:
    """The code by which the usual servers name an error; "" where there is none."""
    try:
        error = orjson.loads(content)
    except ValueError:
        return ""
    if isinstance(error, dict) and isinstance(error.get("error"), dict):
        error = error["error"]
    if not isinstance(error, dict):
        return ""
    inner = error.get("innererror")
    for value in (error.get("code"), inner.get("code") if isinstance(inner, dict) else None, error.get("type")):
        if isinstance(value, str) and value.lower() in QUOTA_CODES | FILTER_CODES | {"context_length_exceeded"}:
            return value.lower()
    return ""


def _moderated(content: bytes) -> bool:
    """Whether a router says that this input was flagged, and not that the key was refused (OpenRouter's 403)."""
    try:
        error = orjson.loads(content)["error"]
        metadata = error.get("metadata") or {}
        return bool(
            metadata.get("reasons")
            or metadata.get("flagged_input")
            or "moderation" in str(error.get("message")).lower()
        )
    except (ValueError, TypeError, LookupError, AttributeError):
        return False


def _text(value: Any) -> str:
    """The text of a field: a string, or the text parts of a list; "" for anything else."""
    if isinstance(value, list):
        return "".join(_text(part.get("text")) for part in value if isinstance(part, dict))
    return value if isinstance(value, str) else ""


def _tokens(logprobs: Any) -> tuple[Token, ...]:
    """The tokens of a reply with what might have stood in their place; none where they are not as they should be."""
    rows = logprobs.get("content") if isinstance(logprobs, dict) else None
    found: list[Token] = []
    for row in rows if isinstance(rows, list) else ():
        if not isinstance(row, dict) or not isinstance(row.get("token"), str):
            return ()
        others = row.get("top_logprobs")
        candidates = {
            one["token"]: float(one["logprob"])
            for one in (row, *(others if isinstance(others, list) else ()))
            if isinstance(one, dict)
            and isinstance(one.get("token"), str)
            and type(one.get("logprob")) in (int, float)
            and one["logprob"] == one["logprob"]
        }
        found.append(Token(row["token"], tuple(candidates.items())))
    return tuple(found)


def _label(value: Any) -> str:
    return "".join(char for char in _text(value) if char.isprintable())[:200]


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < 2**31 else None


def _kept(content: bytes) -> str:
    return content[: KEPT_DETAIL * 4].decode(errors="replace")[:KEPT_DETAIL]
