"""Prompt templates, jinja2. A version that was used is never edited.

Built-in ones are files, ``<protocol>.<name>.v<version>.txt``. What staff write in the browser is stored under names of
its own (``judging.models.PromptTemplate``), so that neither can ever stand for the other.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from jinja2 import StrictUndefined, nodes

from bank.forms.fields import whole_number
from judging.models import PromptTemplate
from judging.protocols.prompts import sandbox
from judging.protocols.prompts.sandbox import TooMuch

__all__ = ["Prompt", "TooMuch", "UnknownPrompt", "chosen", "get", "names", "parsed", "split", "stored_names"]

FOLDER = Path(__file__).resolve().parent
# Texts go in as values, never as templates, so braces in an answer mean nothing. The prompt is plain text, not HTML.
_ENVIRONMENT = sandbox.Bounded(
    autoescape=False,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=False,
    optimized=False,  # what is worked out when a template is compiled is not metered
)


class UnknownPrompt(LookupError):
    """No template of that protocol, name and version."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """One version of one template."""

    protocol: str
    name: str
    version: int
    text: str
    sha256: str

    @classmethod
    def from_row(cls, row: PromptTemplate) -> "Prompt":
        return cls(row.protocol, row.name, row.version, row.text, row.sha256)

    def render(self, values: Mapping[str, Any]) -> str:
        """The text of a request. Raises TooMuch where it would be without measure."""
        with sandbox.metered():
            return _compiled(self.text).render(values)


def names(protocol: str) -> list[str]:
    """The names of a protocol's built-in templates, ``default`` first."""
    found = {path.name.split(".")[1] for path in FOLDER.glob(f"{protocol}.*.txt")}
    return sorted(found, key=lambda name: (name != "default", name))


def stored_names(protocol: str) -> list[str]:
    """The names of a protocol's templates that staff wrote."""
    return list(
        PromptTemplate.objects.filter(protocol=protocol).order_by("name").values_list("name", flat=True).distinct()
    )


def get(protocol: str, name: str = "default", version: int | None = None) -> Prompt:
    """A template, the newest version unless one is named. Raises UnknownPrompt."""
    if name in names(protocol):
        return _built_in(protocol, name, version)
    return _stored(protocol, name, version)


def chosen(protocol: str, setting: str) -> str:
    """What the setting ``prompt`` stands for: a built-in NAME, or NAME@VERSION of a stored one. Raises UnknownPrompt.

    NAME alone is the newest version, and is written with it: a run that began with one never goes on with another.
    """
    name, version = split(setting)
    if version is None and name in names(protocol):
        return name
    found = get(protocol, name, version)
    return name if name in names(protocol) else f"{name}@{found.version}"


def split(setting: str) -> tuple[str, int | None]:
    """Name and version of the setting ``prompt``."""
    name, _, version = setting.partition("@")
    number = whole_number(version, below=10**9)
    return (setting, None) if number is None else (name, number)


@cache
def _built_in(protocol: str, name: str, version: int | None) -> Prompt:
    found = {
        int(path.name.split(".")[2].removeprefix("v")): path
        for path in FOLDER.glob(f"{protocol}.*.txt")
        if path.name.split(".")[1] == name
    }
    wanted = version or max(found)
    if wanted not in found:
        raise UnknownPrompt(f"There is no version {wanted} of the prompt {name!r} for {protocol}.")
    raw = found[wanted].read_bytes()
    return Prompt(protocol, name, wanted, raw.decode(), hashlib.sha256(raw).hexdigest())


def _stored(protocol: str, name: str, version: int | None) -> Prompt:
    rows = PromptTemplate.objects.filter(protocol=protocol, name=name).order_by("-version")
    row = (rows if version is None else rows.filter(version=version)).first()
    if row is None:
        known = ", ".join([*names(protocol), *stored_names(protocol)])
        raise UnknownPrompt(f"There is no prompt {name!r} for {protocol}. There are: {known}.")
    return Prompt.from_row(row)


def parsed(text: str) -> nodes.Template:
    """The template's tree. Raises jinja2.TemplateSyntaxError."""
    return _ENVIRONMENT.parse(text)


@lru_cache(maxsize=64)
def _compiled(text: str) -> Any:
    return _ENVIRONMENT.from_string(sandbox.counted(_ENVIRONMENT.parse(text), _ENVIRONMENT))
