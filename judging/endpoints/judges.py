"""Judges: adding them, which hosts and key variables they may use, and whether they can be called from here."""

import os
import re
from collections.abc import Sequence
from datetime import timedelta
from fnmatch import fnmatchcase
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db import transaction

from bank.errors import BadInput
from bank.text.names import as_stored
from judging.endpoints.prices import PRICES, listed
from judging.endpoints.waiting import DAY, WAITS
from judging.models import BASELINES, Judge

# Variables that hold this site's own secrets: they are never sent to a judge.
OWN_SECRETS = re.compile(r"SECRET_KEY|CRITERIA_KEYS|DATABASE_URL|.*PASSWORD.*|PG.*|AWS_.*")
KEY = re.compile(r"[\x21-\x7e]+")
DEFAULT_PORTS = {"https": 443, "http": 80}
ABILITIES = {
    "vision": "Sees pictures",
    "json_schema": "Follows a JSON schema",
    "logprobs": "Returns log-probabilities",
    "prompt_logprobs": "Returns the likelihood of an answer it is given",
    "seed": "Accepts a seed",
    "temperature": "Accepts a temperature",
    "reasoning_effort": "Accepts a reasoning effort",
    "max_tokens": "Name of the token limit",
}


class KeyMissing(RuntimeError):
    """The environment variable for a judge's key is empty where the worker runs."""


def key_of(judge: Judge) -> str:
    """The key of a judge, stored or in its environment variable; "" for one that needs none. Raises KeyMissing."""
    if not judge.key_env:
        return judge.key
    key = os.environ.get(judge.key_env, "").strip()
    if not key:
        raise KeyMissing(judge.key_env)
    return key


def waits_of(judge: Judge) -> tuple[timedelta, ...]:
    """How long a run waits before each try where its endpoint fails."""
    return tuple(timedelta(minutes=float(minutes)) for minutes in judge.waits.split(","))


def ensure_baselines() -> None:
    """Make sure the built-in judges, which need no endpoint, are in the database."""
    for baseline in BASELINES:
        Judge.objects.get_or_create(name=f"baseline-{baseline}", defaults={"baseline": baseline})


@transaction.atomic
def add_judge(
    *,
    name: str,
    base_url: str,
    model: str,
    key_env: str = "",
    key: str = "",
    key_header: str = "",
    query: str = "",
    headers: str = "",
    waits: str = "",
    give_up_after: int | None = None,
    any_host: bool = False,
    **limits: Any,
) -> Judge:
    """Add a judge behind an OpenAI-compatible endpoint, with ``limits`` as in ``inputs.JudgeIn``. Raises BadInput.

    ``any_host`` is for commands. Pages and the API accept only hosts in JUDGE_HOSTS and variables in JUDGE_KEYS:
    otherwise a curator could have other secrets of the machine sent somewhere. An existing name with the same address
    and model gets the new limits and prices, also one of the command; its own address and variable are accepted as
    before, and it keeps its stored key where neither a key nor a variable is given. Without prices it gets those that
    are listed for the address and model, if any are.
    """
    name, model, base_url = as_stored(name), model.strip(), base_url.strip().rstrip("/")
    _check_names(name, model)
    existing = Judge.objects.filter(name=name).first()
    check_address(
        base_url,
        field="base_url",
        setting="" if any_host else "JUDGE_HOSTS",
        otherwise=", or add the judge with `manage.py add_judge`",
        unchanged=bool(existing and existing.base_url == base_url),
    )
    _check_variable(key_env, any_name=any_host or bool(existing and existing.key_env == key_env))
    key = key.strip()
    if key and key_env:
        raise BadInput("Give the key or the name of a variable, not both.", "key")
    if key and not KEY.fullmatch(key):
        raise BadInput("A key is ASCII without spaces.", "key")
    values = _priced(limits, base_url, model) | {
        "key_env": key_env,
        "key_header": _header_name(key_header, "key_header") if key_header.strip() else "",
        "query": _query(query),
        "headers": _headers(headers),
        "waits": _waits(waits),
        "give_up_after": DAY // timedelta(minutes=1) if give_up_after is None else give_up_after,
    }
    if key or key_env:
        values["key"] = key
    if existing is None:
        return Judge.objects.create(name=name, base_url=base_url, model=model, any_host=any_host, **values)
    reached = key or any(values.get(name, "") != getattr(existing, name) for name in REACHED)
    _check_same(existing, base_url, model, any_host=any_host or not reached)
    for field, value in values.items():
        setattr(existing, field, value)
    existing.save()
    return existing


LONGEST_FAMILY = 100  # characters, as its column


def name_maker(*, judge: Judge, family: str) -> Judge:
    """Whose model a judge is: answers of models of the same family are its own. An imported judge has one, too. Raises
    BadInput.
    """
    family = as_stored(family)
    if judge.is_baseline:
        raise BadInput(f"{judge.name} is a baseline: it is nobody's model.", "family")
    if len(family) > LONGEST_FAMILY:
        raise BadInput("The name of a maker is too long.", "family")
    judge.family = family
    judge.save(update_fields=["family"])
    return judge


REACHED = ("key_env", "key_header", "query", "headers")  # what is sent to the address beside the model's name
# What calls send already, or what would change how they are carried.
OWN_HEADERS = re.compile(
    r"authorization|host|cookie|connection|upgrade|te|trailer|expect|(content|transfer|proxy|webhook)-.*|accept.*"
)
SECRET_NAMES = re.compile(r".*(key|token|secret|password|sig|auth).*", re.I)
QUERY = re.compile(r"[\w.~-]+=[\w.~:/,+%-]*(&[\w.~-]+=[\w.~:/,+%-]*)*", re.ASCII)
MOST_HEADERS = 10


def _query(written: str) -> str:
    """What stands behind each path, such as ``api-version=2024-10-21``. Raises BadInput."""
    query = written.strip().removeprefix("?")
    if query and not QUERY.fullmatch(query):
        raise BadInput("A query is written as name=value, several joined by &.", "query")
    if any(SECRET_NAMES.fullmatch(each.partition("=")[0]) for each in query.split("&")):
        raise BadInput("Queries stand in logs: a key goes into a header.", "query")
    return query


def _headers(written: str) -> str:
    """``Name: value``, a line each. Raises BadInput."""
    lines = [line.strip() for line in written.splitlines() if line.strip()]
    if len(lines) > MOST_HEADERS:
        raise BadInput(f"At most {MOST_HEADERS} headers can be sent.", "headers")
    headers = []
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not re.fullmatch(r"[\x20-\x7e]{1,500}", value.strip()):
            raise BadInput("A header is written as Name: value, in ASCII, one a line.", "headers")
        headers.append(f"{_header_name(name, 'headers')}: {value.strip()}")
    return "\n".join(headers)


def _header_name(written: str, field: str) -> str:
    name = written.strip()
    if not re.fullmatch(r"[A-Za-z0-9-]{1,60}", name) or OWN_HEADERS.fullmatch(name.lower()):
        raise BadInput(f"{name[:60]!r} is no header that can be added.", field)
    if field == "headers" and SECRET_NAMES.fullmatch(name):
        raise BadInput("A key is given as such, with the name of its header.", field)
    return name


def _waits(written: str) -> str:
    """Minutes in order, separated by commas; the usual ones where nothing is written. Raises BadInput."""
    if not written.strip():
        return ",".join(f"{wait / timedelta(minutes=1):g}" for wait in WAITS)
    try:
        minutes = [float(each) for each in written.split(",")]
    except ValueError:
        minutes = []
    if not 1 <= len(minutes) <= 10 or not all(0 < each <= 1_440 for each in minutes):
        raise BadInput("waits: one to ten numbers of minutes, at most 1,440 each, such as 1, 5, 15.", "waits")
    return ",".join(f"{each:g}" for each in minutes)


def _check_names(name: str, model: str) -> None:
    if not name or name.startswith("baseline-"):
        raise BadInput("A judge needs a name that does not begin with baseline-.", "name")
    if not model:
        raise BadInput("Give the model's name at the endpoint.", "model")


def _priced(limits: dict[str, Any], base_url: str, model: str) -> dict[str, Any]:
    """The limits with prices: those given, or those listed. Raises BadInput."""
    if (limits.get("price_in") is None) != (limits.get("price_out") is None):
        raise BadInput("Give both prices or neither: for tokens sent and for tokens received.", "price_out")
    if limits.get("price_in") is None and (known := listed(base_url, model)):
        return limits | {name: getattr(known, name) for name in PRICES}
    return limits


def _check_same(judge: Judge, base_url: str, model: str, *, any_host: bool) -> None:
    """Raises BadInput if a judge of this name is another one, or if what is sent to one of the command would change."""
    if (judge.base_url, judge.model) != (base_url, model) or judge.is_baseline:
        raise BadInput(
            f"{judge.name} exists with another endpoint or model. Their verdicts would be mixed: choose another name.",
            "name",
        )
    if judge.any_host and not any_host:
        raise BadInput(f"{judge.name} was added by command; change there how it is reached.", "name")


def check_address(address: str, *, field: str, setting: str, otherwise: str = "", unchanged: bool = False) -> None:
    """Raises BadInput for an address that may not be called: its host is not in a setting ("" allows any), or what is
    sent there could be read on the way. ``otherwise`` says what else could be done; an ``unchanged`` one is as it was
    accepted: calls ask the setting themselves.
    """
    host = _host_of(address, field)
    if not setting or unchanged:
        return
    hosts: Sequence[str] = getattr(settings, setting)
    if not host_allowed(address, hosts):
        raise BadInput(
            f"{host} is not one of the hosts in {setting} ({', '.join(hosts) or 'none'}). The operator of this site "
            f"can add it there{otherwise}.",
            field,
        )
    if fault := _address_fault(address, hosts, setting):
        raise BadInput(f"{fault} The operator of this site can change that{otherwise}.", field)


def _host_of(address: str, field: str) -> str:
    """Raises BadInput for what is no plain URL."""
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise BadInput("The address is not a URL.", field) from None
    if parts.scheme not in ("http", "https") or not host or len(address) > 500:
        raise BadInput("The address must be a URL like https://api.example.org/v1.", field)
    if parts.username or parts.password or parts.query or parts.fragment:
        raise BadInput("The address must not contain a user name, password, ? or #.", field)
    return host


def _check_variable(name: str, *, any_name: bool) -> None:
    if not name:
        return
    if not re.fullmatch(r"[A-Z][A-Z0-9_]{0,99}", name):
        raise BadInput(
            "Give the name of an environment variable, like OPENAI_API_KEY, never the key itself.", "key_env"
        )
    if OWN_SECRETS.fullmatch(name):
        raise BadInput("That variable holds a secret of this site itself.", "key_env")
    if not any_name and not any(fnmatchcase(name, pattern) for pattern in settings.JUDGE_KEYS):
        raise BadInput(
            f"{name} is not one of the variables for keys of judges ({', '.join(settings.JUDGE_KEYS)}). The operator "
            "of this site can add it to JUDGE_KEYS, or add the judge with `manage.py add_judge`.",
            "key_env",
        )


def host_allowed(base_url: str, hosts: Sequence[str]) -> bool:
    """Whether an allow-list contains the host of a URL, with or without its port."""
    try:
        parts = urlsplit(base_url)
        port = parts.port
    except ValueError:
        return False
    host = (parts.hostname or "").lower()
    return bool(host) and (host in hosts or (port is not None and f"{host}:{port}" in hosts))


def _address_fault(address: str, hosts: Sequence[str], setting: str) -> str:
    """The fault of a URL whose host is allowed; "" for none.

    Plain HTTP is only for this machine, and a port other than the default must be in the list.
    """
    parts = urlsplit(address)
    host, default_port = (parts.hostname or "").lower(), DEFAULT_PORTS[parts.scheme]
    if parts.scheme == "http" and not is_this_machine(host):
        return "With http:// anybody on the way can read what is sent: use https://."
    if (parts.port or default_port) != default_port and f"{host}:{parts.port}" not in hosts:
        return f"Port {parts.port} of {host} is not allowed; add {host}:{parts.port} to {setting} to allow it."
    return ""


def is_this_machine(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def readiness(judge: Judge) -> dict[str, bool | None]:
    """Whether a judge could be called from here, as far as one can tell without a call.

    ``host_listed``: in JUDGE_HOSTS; ``key_set``: its key is stored, or its variable set in this process; None where it
    has none.
    """
    key_set = bool(os.environ.get(judge.key_env)) if judge.key_env else bool(judge.key) or None
    return {"host_listed": host_allowed(judge.base_url, settings.JUDGE_HOSTS), "key_set": key_set}


def abilities(judge: Judge) -> list[tuple[str, str]]:
    """A judge's abilities as test calls have shown them, in words; what is unknown is left out."""
    described = []
    for name, label in ABILITIES.items():
        if name in judge.abilities:
            value = judge.abilities[name]
            described.append((label, {True: "yes", False: "no", "": "none accepted"}.get(value, str(value))))
    return described
