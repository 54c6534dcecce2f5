"""Tests what an endpoint can do: a few short calls, each with one feature added to a plain call."""

import asyncio
import base64
import io
import json
import random
from typing import TYPE_CHECKING, Any

import orjson
from django.conf import settings
from django.utils import timezone
from PIL import Image

from accounts import loop
from bank.errors import BadInput
from judging.endpoints.answers import Answer, Outcome
from judging.endpoints.judges import KeyMissing, host_allowed, key_of
from judging.endpoints.messages import PREFILLED
from judging.models import Judge

if TYPE_CHECKING:
    from judging.endpoints.client import Endpoint

TIMEOUT = 20.0  # seconds for one call
COLOURS = {
    "red": (220, 20, 20),
    "green": (20, 160, 40),
    "blue": (20, 40, 220),
    "yellow": (240, 220, 20),
    "black": (0, 0, 0),
    "white": (255, 255, 255),
}
REFUSED = {Outcome.PERMANENT, Outcome.GARBAGE}
QUESTION = "Reply with the single digit 4 and nothing else."
SCHEMA = {
    "type": "object",
    "properties": {"digit": {"type": "integer", "enum": [1, 2, 3, 4, 5]}},
    "required": ["digit"],
    "additionalProperties": False,
}
PROBES: dict[str, dict[str, Any]] = {
    "temperature": {"temperature": 0.0},
    "seed": {"seed": 1},
    "reasoning_effort": {"reasoning_effort": "low"},
    "max_tokens": {"max_tokens": 2_000},
    "max_completion_tokens": {"max_completion_tokens": 2_000},
    "logprobs": {"logprobs": True, "top_logprobs": 5},
    "prompt_logprobs": {"prefill": "4", **PREFILLED},
    "json_schema": {
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "probe", "strict": True, "schema": SCHEMA},
        }
    },
}


class ProbeFailed(RuntimeError):
    """The plain call failed; says why."""


def probe_judge(*, judge: Judge) -> dict[str, Any]:
    """Make ten short calls and store the abilities they show. Raises BadInput and then stores nothing.

    Runs that have already started keep the abilities known at their start.
    """
    if not judge.base_url:
        raise BadInput(f"{judge.name} has no endpoint.")
    if not (judge.any_host or host_allowed(judge.base_url, settings.JUDGE_HOSTS)):
        raise BadInput(f"The host of {judge.name} is not in JUDGE_HOSTS.")
    try:
        key = key_of(judge)
    except KeyMissing as missing:
        raise BadInput(f"The environment variable {missing} is empty here.") from None

    async def main() -> dict[str, Any]:
        from judging.endpoints.client import Endpoint

        endpoint = Endpoint(judge.route)
        timeout = min(TIMEOUT, judge.timeout)
        try:
            return await probe(endpoint, model=judge.model, key=key, timeout=timeout, rng=random.SystemRandom())
        finally:
            await endpoint.close()

    try:
        abilities = loop.run(main)
    except ProbeFailed as failed:
        raise BadInput(f"{judge.at_host}: {failed}.") from None
    judge.abilities = judge.abilities | abilities | {"at": timezone.now().isoformat(timespec="seconds")}
    judge.save(update_fields=["abilities"])
    return judge.abilities


async def probe(endpoint: "Endpoint", *, model: str, key: str, timeout: float, rng: random.Random) -> dict[str, Any]:
    """The abilities of a model: ``vision``, ``json_schema``, ``logprobs``, ``prompt_logprobs``, ``seed``,
    ``temperature`` and ``reasoning_effort`` true or false, ``max_tokens`` the name under which it takes a limit ("" for
    none).

    What could not be determined (a rate limit, a temporary failure) is left out. Raises ProbeFailed.
    """

    async def ask(**extra: Any) -> Answer:
        messages = [{"role": "user", "content": extra.pop("content", QUESTION)}]
        if "prefill" in extra:
            messages.append({"role": "assistant", "content": extra.pop("prefill")})
        body = {"model": model, "messages": messages} | extra
        return await endpoint.complete(orjson.dumps(body), key=key, timeout=timeout)

    plain = await ask()
    if plain.outcome != Outcome.OK:
        raise ProbeFailed(plain.words)
    colour = rng.choice(sorted(COLOURS))
    answers = await asyncio.gather(ask(content=_picture(colour)), *(ask(**dict(extra)) for extra in PROBES.values()))
    answers_by_name = dict(zip(("vision", *PROBES), answers, strict=True))
    abilities: dict[str, Any] = {}
    for name, answer in answers_by_name.items():
        if answer.outcome == Outcome.OK:
            abilities[name] = _shows(name, answer, colour)
        elif answer.outcome in REFUSED:
            abilities[name] = False
    accepted = tuple(abilities.pop(name, None) for name in ("max_tokens", "max_completion_tokens"))
    if (limit := _limit_name(*accepted)) is not None:
        abilities["max_tokens"] = limit
    return dict(sorted(abilities.items()))


def _limit_name(max_tokens: bool | None, max_completion_tokens: bool | None) -> str | None:
    """The name that a limit is accepted by, "" for none, None if that is not known."""
    if max_tokens or max_completion_tokens:
        return "max_tokens" if max_tokens else "max_completion_tokens"
    return "" if (max_tokens, max_completion_tokens) == (False, False) else None


def _picture(colour: str) -> list[dict[str, Any]]:
    buffer = io.BytesIO()
    Image.new("RGB", (64, 64), COLOURS[colour]).save(buffer, "PNG")
    url = f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"
    question = f"Which colour is this picture? One word: {', '.join(COLOURS)}."
    return [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": question}]


def _shows(name: str, answer: Answer, colour: str) -> bool:
    """Whether an accepted call did what was asked: some endpoints silently ignore what they cannot do."""
    reply = answer.reply
    if reply is None:
        return False
    if name == "vision":
        return _colours_in(reply.text) == [colour]
    if name == "logprobs":
        return any(len(token.candidates) > 1 for token in reply.tokens)
    if name == "prompt_logprobs":
        return bool(reply.prompt_tail) and "".join(token for token, _ in reply.prompt_tail).rstrip().endswith("4")
    if name == "json_schema":
        return _follows_schema(reply.text)
    return True


def _colours_in(text: str) -> list[str]:
    return [colour for colour in COLOURS if colour in text.casefold()]


def _follows_schema(text: str) -> bool:
    try:
        parsed = json.loads(text)
    except ValueError:
        return False
    return isinstance(parsed, dict) and set(parsed) == {"digit"} and parsed["digit"] in range(1, 6)
