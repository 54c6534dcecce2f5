"""Whether a judge can be called from here, and what test calls showed it to be able to do."""

import os
from dataclasses import dataclass

from django.conf import settings

from judging import client
from judging.models import Judge

ABILITIES = {
    "vision": "Sees pictures",
    "json_schema": "Keeps to a JSON schema",
    "logprobs": "Gives log-probabilities",
    "seed": "Takes a seed",
    "temperature": "Takes a temperature",
    "reasoning_effort": "Takes a reasoning effort",
    "max_tokens": "Limit of tokens as",
}


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether a judge could be called from here, as far as that shows without a call."""

    host_listed: bool  # among JUDGE_HOSTS
    key_set: bool | None  # the variable holds something in this process; None for a judge without one


def readiness(judge: Judge) -> Readiness:
    """The variable's value is neither returned nor looked at beyond whether there is one."""
    listed = client.host_allowed(judge.base_url, settings.JUDGE_HOSTS)
    return Readiness(listed, bool(os.environ.get(judge.key_env)) if judge.key_env else None)


def abilities(judge: Judge) -> list[tuple[str, str]]:
    """What test calls showed a judge to be able to do, in words; what is not known is left out."""
    found = []
    for name, words in ABILITIES.items():
        if name in judge.abilities:
            value = judge.abilities[name]
            found.append((words, {True: "yes", False: "no", "": "none taken"}.get(value, str(value))))
    return found
