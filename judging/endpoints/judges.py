"""Judges: making them, which hosts they may be called at, and whether they can be called from here."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db import transaction

from bank.errors import BadInput
from judging.models import BASELINES, Judge

# Names of variables that hold this site's own secrets: no judge is sent those.
OWN_SECRETS = re.compile(r"SECRET_KEY|CRITERIA_KEYS|DATABASE_URL|.*PASSWORD.*|PG.*|AWS_.*")
USUAL_PORTS = {"https": 443, "http": 80}
ABILITIES = {
    "vision": "Sees pictures",
    "json_schema": "Keeps to a JSON schema",
    "logprobs": "Gives log-probabilities",
    "seed": "Takes a seed",
    "temperature": "Takes a temperature",
    "reasoning_effort": "Takes a reasoning effort",
    "max_tokens": "Limit of tokens as",
}


class KeyMissing(RuntimeError):
    """The environment variable that should hold a judge's key is empty where the worker runs."""


def key_from(variable: str) -> str:
    """The key in an environment variable; "" where a judge needs none. Raises KeyMissing."""
    if not variable:
        return ""
    key = os.environ.get(variable, "").strip()
    if not key:
        raise KeyMissing(variable)
    return key


def ensure_baselines() -> None:
    """The built-in judges, which need no endpoint, are in the database."""
    for baseline in BASELINES:
        Judge.objects.get_or_create(name=f"baseline-{baseline}", defaults={"baseline": baseline})


@transaction.atomic
def add_judge(
    *,
    name: str,
    base_url: str,
    model: str,
    key_env: str = "",
    concurrency: int = 16,
    rpm: int | None = None,
    tpm: int | None = None,
    timeout: int = 120,
    price_in: float | None = None,
    price_out: float | None = None,
    family: str = "",
    any_host: bool = False,
) -> Judge:
    """Make a judge behind an OpenAI-compatible endpoint. Raises BadInput.

    ``any_host`` is for commands: in the page and by the API only hosts in JUDGE_HOSTS and variables in JUDGE_KEYS are
    taken, for otherwise a curator could have other secrets of the machine sent somewhere. A name that exists with the
    same address and model gets the new limits and prices; the address and the variable that it has are taken as before.
    """
    name, model, base_url = name.strip(), model.strip(), base_url.strip().rstrip("/")
    if not name or name.startswith("baseline-"):
        raise BadInput("A judge has a name, and one that does not begin with baseline-.", "name")
    if not model:
        raise BadInput("Name the model as the endpoint calls it.", "model")
    existing = Judge.objects.filter(name=name).first()
    _check_address(base_url, any_host=any_host, known=bool(existing and existing.base_url == base_url))
    _check_variable(key_env, any_name=any_host or bool(existing and existing.key_env == key_env))
    for field, value, low in (
        ("concurrency", concurrency, 1),
        ("rpm", rpm, 1),
        ("tpm", tpm, 1),
        ("timeout", timeout, 1),
    ):
        if value is not None and not low <= value <= 1_000_000_000:
            raise BadInput(f"{field}: a whole number from {low} up.", field)
    if concurrency > 1_024:
        raise BadInput("concurrency: at most 1,024 calls at once.", "concurrency")
    for field, price in (("price_in", price_in), ("price_out", price_out)):
        if price is not None and not 0 <= price < 1e9:
            raise BadInput(f"{field}: US dollars per million tokens, 0 or more.", field)
    if (price_in is None) != (price_out is None):
        raise BadInput("Give both prices or none: for tokens sent and for tokens received.", "price_out")
    values: dict[str, Any] = {
        "key_env": key_env,
        "concurrency": concurrency,
        "rpm": rpm,
        "tpm": tpm,
        "timeout": timeout,
        "price_in": price_in,
        "price_out": price_out,
        "family": family,
    }
    if existing is None:
        return Judge.objects.create(name=name, base_url=base_url, model=model, any_host=any_host, **values)
    if (existing.base_url, existing.model) != (base_url, model) or existing.is_baseline:
        raise BadInput(
            f"{name} exists with another endpoint or model. Its verdicts would be mixed: choose another name.", "name"
        )
    if existing.any_host and not any_host:
        raise BadInput(f"{name} was made by command; change it there.", "name")
    for field, value in values.items():
        setattr(existing, field, value)
    existing.save()
    return existing


def _check_address(base_url: str, *, any_host: bool, known: bool) -> None:
    try:
        parts = urlsplit(base_url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise BadInput("The address is not a URL.", "base_url") from None
    if parts.scheme not in ("http", "https") or not host or len(base_url) > 500:
        raise BadInput("The address is a URL like https://api.example.org/v1.", "base_url")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise BadInput(
            "The address holds no name, password, ? or #. Keys come from an environment variable.", "base_url"
        )
    if not any_host and not host_allowed(base_url, settings.JUDGE_HOSTS):
        listed = ", ".join(settings.JUDGE_HOSTS) or "none"
        raise BadInput(
            f"{host} is not among the hosts that judges may use ({listed}). Whoever runs this site can add it to "
            "JUDGE_HOSTS, or make the judge with `manage.py add_judge`.",
            "base_url",
        )
    if not any_host and not known and (fault := address_fault(base_url, settings.JUDGE_HOSTS)):
        raise BadInput(f"{fault} Or whoever runs this site makes the judge with `manage.py add_judge`.", "base_url")


def _check_variable(name: str, *, any_name: bool) -> None:
    if not name:
        return
    if not re.fullmatch(r"[A-Z][A-Z0-9_]{0,99}", name):
        raise BadInput("The name of an environment variable, like OPENAI_API_KEY; never the key itself.", "key_env")
    if OWN_SECRETS.fullmatch(name):
        raise BadInput("That variable holds a secret of this site itself.", "key_env")
    if not any_name and not any(fnmatchcase(name, known) for known in settings.JUDGE_KEYS):
        raise BadInput(
            f"{name} is not among the variables that hold keys for judges ({', '.join(settings.JUDGE_KEYS)}). Whoever "
            "runs this site can add it to JUDGE_KEYS, or make the judge with `manage.py add_judge`.",
            "key_env",
        )


def host_allowed(base_url: str, hosts: Sequence[str]) -> bool:
    """Whether an allow-list names the host of an address, with or without its port."""
    try:
        parts = urlsplit(base_url)
        port = parts.port
    except ValueError:
        return False
    host = (parts.hostname or "").lower()
    return bool(host) and (host in hosts or (port is not None and f"{host}:{port}" in hosts))


def address_fault(base_url: str, hosts: Sequence[str]) -> str:
    """What is wrong with an address whose host is allowed, in words; "" for nothing.

    Over plain HTTP only this machine is called, and a port that is not the usual one must be named in the list.
    """
    parts = urlsplit(base_url)
    host, usual = (parts.hostname or "").lower(), USUAL_PORTS[parts.scheme]
    if parts.scheme == "http" and not is_this_machine(host):
        return "Over http:// everybody on the way reads the key and the texts: use https://."
    if (parts.port or usual) != usual and f"{host}:{parts.port}" not in hosts:
        return f"Port {parts.port} of {host} is not listed; {host}:{parts.port} in JUDGE_HOSTS would be."
    return ""


def is_this_machine(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether a judge could be called from here, as far as that shows without a call."""

    host_listed: bool  # among JUDGE_HOSTS
    key_set: bool | None  # the variable holds something in this process; None for a judge without one


def readiness(judge: Judge) -> Readiness:
    """The variable's value is neither returned nor looked at beyond whether there is one."""
    listed = host_allowed(judge.base_url, settings.JUDGE_HOSTS)
    return Readiness(listed, bool(os.environ.get(judge.key_env)) if judge.key_env else None)


def abilities(judge: Judge) -> list[tuple[str, str]]:
    """What test calls showed a judge to be able to do, in words; what is not known is left out."""
    found = []
    for name, words in ABILITIES.items():
        if name in judge.abilities:
            value = judge.abilities[name]
            found.append((words, {True: "yes", False: "no", "": "none taken"}.get(value, str(value))))
    return found
