"""Checks for the settings of protocols. Each function returns the canonical value or raises BadSettings."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson

from bank.errors import BadInput

Settings = dict[str, Any]
Check = Callable[[str, Any], Any]

NAMES = ("order", "criteria", "context", "reasoning", "step_calls", "prompt", "repeats", "unanswered")
MOST_SYSTEM, MOST_EXTRA = 20_000, 4_000  # characters
# What stands in the body already, by settings of their own or because of how replies are read.
OWN_IN_BODY = frozenset(
    "model messages temperature top_p seed max_tokens max_completion_tokens reasoning_effort response_format logprobs "
    "top_logprobs n stream stream_options tools tool_choice functions".split()
)
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh")
# What answers that are empty, refused or an error count: no verdict, without a call; the lowest verdict, without a
# call; or whatever the judge says of them.
UNANSWERED = ("no-verdict", "loses", "asked")
DETAILS = ("low", "high", "auto")
NO_OBJECT = 'Settings are a JSON object, e.g. {"order": "both"}.'
# The least and the largest value of settings that are numbers.
BOUNDS = {
    "temperature": (0, 2),
    "top_p": (0, 1),
    "repeats": (1, 100),
    "seed": (0, 2**31 - 1),
    "max_tokens": (1, 1_000_000),
    "image_size": (64, 8_192),
    "ask_again": (0, 10),
}
# What ``step_calls`` asks in a call of its own before the verdict: every step of three (true), or one of these alone
# before the reasons and the verdict (MLLM-as-a-Judge, Table 7).
ONE_STEP = {
    "picture-and-instruction": "what has to be seen and said so that the instruction is fulfilled?",
    "picture": "what does the picture show that matters here?",
    "instruction": "what does the instruction ask for, in substance and in form?",
}
CONTEXTS = ("image", "none", "caption", "objects", "caption+objects")


@dataclass(frozen=True, slots=True)
class Printed:
    """How a ``paper`` asks, and ``where`` it says so: the settings that it states."""

    paper: str
    where: str
    settings: Mapping[str, Any]

    def holds(self, settings: Mapping[str, Any]) -> bool:
        """Whether canonical settings are as printed."""
        return all(settings.get(name) == value for name, value in self.settings.items())


_JUDGE: Settings = {"temperature": 0.9, "top_p": 0.9, "max_tokens": 2048, "ask_again": 1, "repeats": 3}
MLLM_AS_A_JUDGE = Printed("MLLM-as-a-Judge", "C.2, its top-k of 0.9 read as top-p; three samples, Table 2", _JUDGE)
ONE_ORDER = replace(MLLM_AS_A_JUDGE, settings=_JUDGE | {"order": "fixed"})
AS_PRINTED = "as_printed"  # a setting that stands for those of the paper; others of the same request come first


class BadSettings(BadInput):
    """Settings that a protocol does not accept; says which, and what it accepts."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "settings")


def settings_hash(settings: Mapping[str, Any]) -> str:
    """The hash that identifies canonical settings."""
    canonical = json.dumps(settings, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def one_of(name: str, value: Any, choices: tuple[str, ...]) -> str:
    if not (isinstance(value, str) and value in choices):
        raise BadSettings(f"{name}: {_shown(value)} is not one of {', '.join(choices)}.")
    return value


def boolean(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise BadSettings(f"{name}: true or false, not {_shown(value)}.")
    return value


def whole(name: str, value: Any) -> int:
    low, high = BOUNDS[name]
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise BadSettings(f"{name}: a whole number from {low} to {high}, not {_shown(value)}.")
    return value


def number_or_null(name: str, value: Any) -> float | None:
    """A number within bounds; null leaves the parameter to the endpoint."""
    low, high = BOUNDS[name]
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise BadSettings(f"{name}: a number from {low:g} to {high:g}, or null, not {_shown(value)}.")
    return float(value)


def _can_be_sent(value: Any, most: int) -> bool:
    """Whether it is JSON that every database and endpoint takes, of at most so many characters."""
    try:
        orjson.dumps(value)
        written = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return len(written) <= most and "\\u0000" not in written


def system_message(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or not _can_be_sent(value, MOST_SYSTEM):
        raise BadSettings(f"{name}: a text of at most {MOST_SYSTEM:,} characters, not {_shown(value)}.")
    return value


def extra_body(name: str, value: Any) -> Settings:
    """What is sent besides, as the endpoint takes it."""
    if not isinstance(value, dict) or not _can_be_sent(value, MOST_EXTRA):
        raise BadSettings(f"{name}: a JSON object of at most {MOST_EXTRA:,} characters, not {_shown(value)}.")
    if own := sorted(value.keys() & OWN_IN_BODY):
        raise BadSettings(f"{name}: {own[0]} cannot be sent so; what can be chosen of it is a setting of its own.")
    return value


def request_settings(chosen: Mapping[str, Any], *, temperature: float | None) -> Settings:
    """The canonical settings of the request. Raises BadSettings."""
    settings: Settings = {"temperature": number_or_null("temperature", chosen.get("temperature", temperature))}
    for name, check in REQUEST.items():
        if chosen.get(name) is not None:
            settings[name] = check(name, chosen[name])
    return {name: value for name, value in settings.items() if name not in OFF_BY_DEFAULT or value}


def _one_of(choices: tuple[str, ...]) -> Check:
    return lambda name, value: one_of(name, value, choices)


# What goes to the endpoint with every request, beside the temperature, which is always included. Canonical settings
# leave out what was not chosen, so that settings from before a parameter existed stay the same.
REQUEST: dict[str, Check] = {
    "top_p": number_or_null,
    "structured": boolean,
    "seed": whole,
    "max_tokens": whole,
    "reasoning_effort": _one_of(EFFORTS),
    "image_size": whole,
    "detail": _one_of(DETAILS),
    "ask_again": whole,  # so many times, where a reply breaks the format or refuses (MLLM-as-a-Judge, C.2)
    "system": system_message,  # before all other messages
    "extra_body": extra_body,  # more of what an endpoint takes, such as {"top_k": 40}
}
OFF_BY_DEFAULT = ("ask_again", "structured", "extra_body")  # left out where they are 0, false or empty


def with_printed(chosen: Mapping[str, Any], printed: Printed | None) -> Mapping[str, Any]:
    """The chosen settings, with those of the paper where ``as_printed`` asks for them. Raises BadSettings."""
    if not isinstance(chosen, Mapping) or AS_PRINTED not in chosen:
        return chosen
    rest = {name: value for name, value in chosen.items() if name != AS_PRINTED}
    if not boolean(AS_PRINTED, chosen[AS_PRINTED]):
        return rest
    if printed is None:
        raise BadSettings(f"{AS_PRINTED}: this is asked in no paper's way; leave it out.")
    return {**printed.settings, **rest}


def check_names(chosen: Mapping[str, Any], names: tuple[str, ...]) -> None:
    if not isinstance(chosen, Mapping):
        raise BadSettings(NO_OBJECT)
    names += ("temperature", *REQUEST)
    unknown = sorted(str(name) for name in set(chosen) - set(names))
    if unknown:
        raise BadSettings(f"{unknown[0][:60]} is not a setting. Settings: {', '.join(names)}.")


def _shown(value: Any) -> str:
    return json.dumps(value, default=str)[:60]
