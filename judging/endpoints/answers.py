"""How a call ended: each way it can end is an ``Outcome``."""

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Any

import orjson

from judging.endpoints.limits import Allowance, seconds_until

DETAIL_LENGTH = 4_000  # characters kept of an endpoint's error
SENTENCE = 300  # characters shown of what it says
WAIT_HEADERS = ("retry-after-ms", "retry-after")
QUOTA_CODES = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "access_terminated"}
FILTER_CODES = {"content_filter", "content_policy_violation", "responsibleaipolicyviolation", "moderation_blocked"}
# Parameters that an endpoint may not take, and how it says so.
PARAMETERS = ("temperature", "top_p", "max_completion_tokens", "max_tokens", "seed")
_PARAMETER = re.compile(rf"\b(?:{'|'.join(PARAMETERS)})\b")
_NOT_TAKEN = re.compile(
    r"unsupported|not supported|not support|unknown|unrecogni[sz]ed|unexpected|not permitted|not allowed|not accepted"
    r"|deprecated|only the default|extra (?:fields|inputs|parameter)",
    re.IGNORECASE,
)
FILTER_CODES |= {"invalid_prompt"}  # from OpenAI's reasoning models for prompts they refuse
NO_CREDIT = b"credit balance is too low"  # Anthropic, with status 400
FILTERED_BY = {"safety", "recitation", "blocklist", "prohibited_content", "spii", "image_safety"}
KNOWN_CODES = QUOTA_CODES | FILTER_CODES | {"context_length_exceeded"}


@dataclass(frozen=True, slots=True)
class Token:
    """One token of a reply, and the candidates for its place, itself included, with their log-probabilities."""

    text: str
    candidates: tuple[tuple[str, float], ...]


PROMPT_END = 400  # tokens of a prompt that are kept: its likelihoods are read from the end


@dataclass(frozen=True, slots=True)
class Reply:
    """A chat completion. ``prompt_tail``: the last tokens of the prompt with their log-probabilities, if asked for and
    returned (vLLM's ``prompt_logprobs``)."""

    text: str = ""
    finish_reason: str = ""
    refusal: str = ""
    reasoning: str = ""  # some endpoints return it separately
    tokens: tuple[Token, ...] = ()  # if log-probabilities were requested and returned
    prompt_tail: tuple[tuple[str, float], ...] = ()


class Outcome(StrEnum):
    """How a call ended."""

    OK = "ok"  # a completion; the protocol decides whether it contains a verdict
    GARBAGE = "garbage"  # status 200, but not a completion
    FILTERED = "filtered"
    PERMANENT = "permanent"  # this request will never succeed
    RATE = "rate"
    TRANSIENT = "transient"
    TIMEOUT = "timeout"
    UNREACHABLE = "unreachable"
    QUOTA = "quota"
    AUTHENTICATION = "authentication"
    SETUP = "setup"  # wrong address, unknown model, redirect


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of one call. ``words`` are ours and safe to show; ``detail`` quotes the endpoint, for staff only."""

    outcome: Outcome
    seconds: float = 0.0
    http_status: int | None = None
    reply: Reply | None = None
    words: str = ""
    detail: str = ""
    retry_after: float | None = None  # seconds
    allowances: tuple[Allowance, ...] = ()
    parameter: str = ""  # that the endpoint does not take
    model: str = ""
    fingerprint: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int = 0  # of the prompt's, those that the endpoint had read before


@dataclass(frozen=True, slots=True)
class Received:
    """A complete HTTP response of any status."""

    status: int
    content: bytes
    headers: dict[str, str]  # only those that ask for a pause, or tell limits


class Failed(Exception):
    """A call without a complete HTTP response."""

    def __init__(self, outcome: Outcome, words: str) -> None:
        super().__init__(words)
        self.outcome = outcome
        self.words = words


def _reply(data: Mapping[str, Any], choice: Mapping[str, Any], message: Mapping[str, Any]) -> Reply:
    return Reply(
        text=_text(message.get("content")),
        finish_reason=_finish(_text(choice.get("finish_reason")).lower()),
        refusal=_text(message.get("refusal")),
        reasoning=_text(message.get("reasoning_content")) or _text(message.get("reasoning")),
        tokens=_tokens(choice.get("logprobs")),
        prompt_tail=_prompt_tail(data.get("prompt_logprobs") or choice.get("prompt_logprobs")),
    )


def _finish(said: str) -> str:
    """Gemini says some reasons in words of its own, in capitals."""
    return "content_filter" if said in FILTERED_BY else "length" if said == "max_tokens" else said


def completed(content: bytes) -> Answer:
    """Read a response with status 200, which may or may not be a completion."""
    data: Any = None
    try:
        data = orjson.loads(content)
        choice = data["choices"][0]
        message = choice["message"]
        if message is None and choice.get(
            "finish_reason"
        ):  # Gemini's, of a reply that was stopped before its first word
            message = {}
        if not isinstance(message, dict):
            raise TypeError
    except (ValueError, TypeError, LookupError):
        if failed := _error_inside(data.get("error") if isinstance(data, dict) else None, content):
            return failed
        return Answer(Outcome.GARBAGE, 0.0, 200, words="not a chat completion", detail=_detail(content))
    usage = data.get("usage") if isinstance(data.get("usage"), dict) else {}
    answer = Answer(
        Outcome.OK,
        0.0,
        200,
        reply=_reply(data, choice, message),
        model=_printable(data.get("model")),
        fingerprint=_printable(data.get("system_fingerprint")),
        prompt_tokens=_count(usage.get("prompt_tokens")),
        completion_tokens=_completion_tokens(usage),
        cached_tokens=_cached(usage),
    )
    if not choice.get("error") and choice.get("finish_reason") != "error":
        return answer
    # It broke off: the text so far is not a reply, but its tokens are paid for.
    failed = _error_inside(choice.get("error"), content) or Answer(
        Outcome.TRANSIENT, 0.0, 200, words="the model behind the endpoint failed", detail=_detail(content)
    )
    counts = {name: getattr(answer, name) for name in ("prompt_tokens", "completion_tokens", "cached_tokens")}
    return replace(failed, **counts)


def _error_inside(error: Any, content: bytes) -> Answer | None:
    """An error with its own status inside a 200, as routers pass on errors of the model behind them."""
    status = error.get("code") if isinstance(error, dict) else None
    if type(status) is not int or not 400 <= status <= 599:
        return None
    return replace(refused(status, orjson.dumps({"error": error}), {}), detail=_detail(content))


def _is_out_of_quota(status: int, code: str) -> bool:
    return status == 402 or (status == 429 and code in QUOTA_CODES)


BY_STATUS: tuple[tuple[Container[int], Outcome, str], ...] = (
    ((429,), Outcome.RATE, "rate limit ({})"),
    ((401, 403), Outcome.AUTHENTICATION, "the key was not accepted ({})"),
    (range(300, 400), Outcome.SETUP, "it redirects elsewhere ({}), which is not followed"),
    ((404, 405), Outcome.SETUP, "it knows no such address or model ({})"),
    ({408, 409, 425, *range(500, 1000)}, Outcome.TRANSIENT, "the endpoint failed ({})"),
)


def refused(status: int, content: bytes, headers: Mapping[str, str]) -> Answer:
    """Read a response with any other status."""
    code = _error_code(content)
    retry_after = seconds_to_wait(headers, now=datetime.now(UTC))
    if retry_after is None:
        retry_after = next((found for one in _details(content) if (found := _delay(one)) is not None), None)

    def answer(outcome: Outcome, words: str) -> Answer:
        return Answer(outcome, 0.0, status, words=words, detail=_detail(content), retry_after=retry_after)

    if _is_out_of_quota(status, code) or NO_CREDIT in content:
        return answer(Outcome.QUOTA, "the account has no quota left")
    if any(one.get("reason") == "API_KEY_INVALID" for one in _details(content)):
        return answer(Outcome.AUTHENTICATION, f"the key was not accepted ({status})")
    if status == 403 and (code in FILTER_CODES or _moderated(content)):
        return answer(Outcome.FILTERED, "stopped by the provider's moderation")
    for statuses, outcome, words in BY_STATUS:
        if status in statuses:
            return answer(outcome, words.format(status))
    if code in FILTER_CODES:
        return answer(Outcome.FILTERED, "stopped by the provider's content filter")
    if code == "context_length_exceeded":
        return answer(Outcome.PERMANENT, "the prompt is longer than the model's context")
    refusal = answer(Outcome.PERMANENT, f"the endpoint refused the request ({status})")
    return replace(refusal, parameter=_parameter_not_taken(content) if status in (400, 422) else "")


def _error_in(content: bytes) -> dict[str, Any]:
    """The object in which an endpoint describes an error, or its whole reply; empty where that is no object."""
    try:
        data = orjson.loads(content)
    except ValueError:
        return {}
    if isinstance(data, list) and data:  # Gemini's
        data = data[0]
    if not isinstance(data, dict):
        return {}
    return data["error"] if isinstance(data.get("error"), dict) else data


def _details(content: bytes) -> list[dict[str, Any]]:
    """What Google adds to an error (google.rpc)."""
    details = _error_in(content).get("details")
    return [one for one in details if isinstance(one, dict)] if isinstance(details, list) else []


def _delay(detail: Mapping[str, Any]) -> float | None:
    """Seconds that a RetryInfo asks for: Gemini has no header for it."""
    return seconds_until(_text(detail.get("retryDelay")), datetime.now(UTC))


def _parameter_not_taken(content: bytes) -> str:
    """The parameter that a refusal names, in the formats of common servers; "" for none."""
    error = _error_in(content)
    said = f"{error.get('code')} {sentence(content)}"
    if not error or "error" in error or not _NOT_TAKEN.search(said.replace("_", " ")):
        return ""
    if error.get("param") in PARAMETERS:
        return str(error["param"])
    named = _PARAMETER.search(said)
    return _located_parameter(error.get("detail")) or (named[0] if named else "")


def _located_parameter(details: Any) -> str:
    """In the list of faults that FastAPI writes, and so vLLM."""
    for detail in details if isinstance(details, list) else ():
        place = detail.get("loc") if isinstance(detail, dict) else None
        if isinstance(place, list) and place and place[-1] in PARAMETERS:
            return str(place[-1])
    return ""


def sentence(content: bytes | str) -> str:
    """The endpoint's own words for an error, on one line; for staff only, as it may quote the prompt."""
    text = content.decode(errors="replace") if isinstance(content, bytes) else content
    try:
        said = orjson.loads(text)
    except ValueError:
        said = re.sub(r"<[^>]*>", " ", text)
    for name in ("error", "message", "detail", "msg"):
        if isinstance(said, list) and said:
            said = said[0]
        if isinstance(said, dict):
            said = said.get(name, said)
    said = said if isinstance(said, str) else text
    return " ".join("".join(char if char.isprintable() else " " for char in said).split())[:SENTENCE]


def seconds_to_wait(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """The pause that ``retry-after-ms`` or ``retry-after`` (seconds or a date) asks for; None if absent or invalid."""
    for name, scale in zip(WAIT_HEADERS, (0.001, 1.0), strict=True):
        value = headers.get(name, "").strip()
        try:
            seconds = float(value) * scale
        except ValueError:
            try:
                date = parsedate_to_datetime(value)
            except (ValueError, TypeError, OverflowError):
                continue
            seconds = (date.replace(tzinfo=date.tzinfo or UTC) - now).total_seconds()
        if seconds >= 0 and seconds != float("inf"):
            return seconds
    return None


def _error_code(content: bytes) -> str:
    """The error code in the formats of common servers; "" if there is none."""
    error = _error_in(content)
    inner = error.get("innererror")
    for value in (error.get("code"), inner.get("code") if isinstance(inner, dict) else None, error.get("type")):
        if isinstance(value, str) and value.lower() in KNOWN_CODES:
            return value.lower()
    return ""


def _moderated(content: bytes) -> bool:
    """Whether a 403 means flagged input rather than a refused key (OpenRouter)."""
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
    """The tokens of a reply with their candidates; none if the format is not as expected."""
    rows = logprobs.get("content") if isinstance(logprobs, dict) else None
    tokens: list[Token] = []
    for row in rows if isinstance(rows, list) else ():
        if not isinstance(row, dict) or not isinstance(row.get("token"), str):
            return ()
        top_logprobs = row.get("top_logprobs")
        rows_of_token = (row, *(top_logprobs if isinstance(top_logprobs, list) else ()))
        candidates = {one["token"]: float(one["logprob"]) for one in rows_of_token if _is_candidate(one)}
        tokens.append(Token(row["token"], tuple(candidates.items())))
    return tuple(tokens)


def _is_candidate(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("token"), str)
        and type(value.get("logprob")) in (int, float)
        and value["logprob"] == value["logprob"]
    )


def _prompt_tail(rows: Any) -> tuple[tuple[str, float], ...]:
    """The last tokens of a prompt, each with its log-probability; none if the format is not as expected."""
    tail: list[tuple[str, float]] = []
    last: list[Any] = rows[-PROMPT_END:] if isinstance(rows, list) else []
    for row in reversed(last):
        # The prompt's own token comes first; others are the likeliest in its place.
        token = next(iter(row.values()), None) if isinstance(row, dict) else None
        if not isinstance(token, dict) or type(token.get("logprob")) not in (int, float):
            break
        if not isinstance(token.get("decoded_token"), str) or token["logprob"] != token["logprob"]:
            break
        tail.append((token["decoded_token"], float(token["logprob"])))
    return tuple(reversed(tail))


def _printable(value: Any) -> str:
    return "".join(char for char in _text(value) if char.isprintable())[:200]


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < 2**31 else None


def _completion_tokens(usage: Mapping[str, Any]) -> int | None:
    """Gemini counts what a model thinks in the total alone; it is paid for like what it says."""
    said, sent, total = (_count(usage.get(f"{name}_tokens")) for name in ("completion", "prompt", "total"))
    return said if sent is None or total is None else max(said or 0, total - sent)


def _cached(usage: Mapping[str, Any]) -> int:
    details = usage.get("prompt_tokens_details")
    return _count(details.get("cached_tokens")) or 0 if isinstance(details, dict) else 0


def _detail(content: bytes) -> str:
    return content[: DETAIL_LENGTH * 4].decode(errors="replace")[:DETAIL_LENGTH]
