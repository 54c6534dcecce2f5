"""A request as it goes to an endpoint, and its identity."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from accounts.installation_key import keyed
from bank.models import SampleImage
from judging import prompts
from judging.models import Run

TOP_TOKENS = 20  # as many as the usual endpoints give


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it is sent: the text, the pictures beside it, what is written on them, the parameters.

    ``sha256`` is its identity within the run; ``key`` is the same for identical calls of any run: the mark that borders
    the material, which each run draws anew, is left out of it.
    """

    text: str
    images: tuple[SampleImage, ...]
    parameters: Mapping[str, Any]
    sha256: str
    key: str
    overlay: str = field(default="", kw_only=True)


def identity(
    run: Run,
    *,
    template: prompts.Prompt,
    text: str,
    images: Sequence[SampleImage],
    sent: Mapping[str, Any],
    order: str,
    repeat: int,
    overlay: str = "",
) -> str:
    """The hash of everything that matters to what an endpoint answers.

    Keyed: the text holds criteria, and whoever has the source and a guess at them could tell whether it is right.
    """
    policy = {name: run.settings[name] for name in ("image_size", "detail") if name in run.settings}
    parts = {
        "template": template.sha256,
        "text": text.encode(errors="replace").decode(),
        "images": [image.sha256 for image in images],
        "model": run.judge.model,
        "parameters": dict(sent),
        "order": order,
        "repeat": repeat,
    } | policy
    if overlay:
        parts["overlay"] = overlay
    return keyed("prompt", hashlib.sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).hexdigest())


def call_key(
    run: Run, *, text: str, images: Sequence[SampleImage], sent: Mapping[str, Any], repeat: int, overlay: str = ""
) -> str:
    """What identical calls share: endpoint, model, text, pictures and how they are sent, parameters, repeat."""
    parts = [run.judge.base_url, run.judge.model, text.encode(errors="replace").decode(), dict(sent), repeat]
    parts += [[image.sha256 for image in images], run.settings.get("image_size"), run.settings.get("detail")]
    parts += [overlay] if overlay else []
    return keyed("call", hashlib.sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).hexdigest())


def parameters(run: Run, *, repeat: int = 0, weighted: bool = False) -> dict[str, Any]:
    """What goes to the endpoint beside the message, as far as the endpoint was seen to take it when the run started.

    ``weighted`` asks for the log-probabilities of its tokens, too. Repeats of a seeded call get seeds of their own.
    """
    chosen, able = run.settings, run.abilities
    sent: dict[str, Any] = {}
    if able.get("temperature") is not False:
        sent["temperature"] = chosen.get("temperature", 0.0)
    for name in ("top_p", "reasoning_effort"):
        if name in chosen:
            sent[name] = chosen[name]
    if "seed" in chosen or able.get("seed"):
        sent["seed"] = chosen.get("seed", 0) + repeat
    if "max_tokens" in chosen:
        sent[able.get("max_tokens") or _usual_name(chosen)] = chosen["max_tokens"]
    if weighted and able.get("logprobs"):
        sent |= {"logprobs": True, "top_logprobs": TOP_TOKENS}
    return sent


def _usual_name(chosen: Mapping[str, Any]) -> str:
    """What the limit of tokens is called where nobody has looked: reasoning models have a name of their own."""
    return "max_completion_tokens" if "reasoning_effort" in chosen else "max_tokens"
