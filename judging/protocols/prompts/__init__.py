"""Prompt templates in Jinja. A version that was used is never edited.

Built-in templates are files, ``<protocol>.<name>.v<version>.txt``. Templates that staff write in the browser are stored
(``judging.models.PromptTemplate``) under other names, so the two can never be confused.
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

__all__ = [
    "Prompt",
    "TooMuch",
    "UnknownPrompt",
    "chosen",
    "get",
    "names",
    "parsed",
    "rendered",
    "stored_names",
]

FOLDER = Path(__file__).resolve().parent
# Texts are inserted as values, never as templates, so braces in an answer do nothing. Prompts are plain text, not HTML.
_ENVIRONMENT = sandbox.MeteredEnvironment(
    autoescape=False,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=False,
    optimized=False,  # what the compiler evaluates is not metered
)


class UnknownPrompt(LookupError):
    """There is no template with that protocol, name and version."""


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
        """The text of a request. Raises TooMuch if it exceeds the limits."""
        return rendered(self.text, values)


def rendered(text: str, values: Mapping[str, Any]) -> str:
    """A template's text with these values. Raises TooMuch if it exceeds the limits."""
    with sandbox.metered():
        return str(_compiled(text).render(values))


def names(protocol: str) -> list[str]:
    """The names of a protocol's built-in templates, ``default`` first."""
    built_in = {path.name.split(".")[1] for path in FOLDER.glob(f"{protocol}.*.txt")}
    return sorted(built_in, key=lambda name: (name != "default", name))


def stored_names(protocol: str) -> list[str]:
    """The names of the templates that staff wrote for a protocol."""
    return list(
        PromptTemplate.objects.filter(protocol=protocol).order_by("name").values_list("name", flat=True).distinct()
    )


def get(protocol: str, setting: str = "default", version: int | None = None) -> Prompt:
    """A template by NAME or NAME@VERSION; a NAME alone means this version, or the newest. Raises UnknownPrompt."""
    name, named = split(setting)
    version = version if named is None else named
    if name in names(protocol):
        return _built_in(protocol, name, version)
    return _stored(protocol, name, version)


def chosen(protocol: str, setting: str) -> str:
    """The canonical value of the setting ``prompt``: a built-in NAME, or NAME@VERSION of a stored one.

    A stored NAME alone means its newest version, which is added: a run that started with one version never continues
    with another. Raises UnknownPrompt.
    """
    name, version = split(setting)
    if version is None and name in names(protocol):
        return name
    template = get(protocol, setting)
    return name if name in names(protocol) else f"{name}@{template.version}"


def split(setting: str) -> tuple[str, int | None]:
    """The name and version in the setting ``prompt``."""
    name, _, version = setting.partition("@")
    number = whole_number(version, below=10**9)
    return (setting, None) if number is None else (name, number)


@cache
def _built_in(protocol: str, name: str, version: int | None) -> Prompt:
    paths = {
        int(path.name.split(".")[2].removeprefix("v")): path
        for path in FOLDER.glob(f"{protocol}.*.txt")
        if path.name.split(".")[1] == name
    }
    wanted = version or max(paths)
    if wanted not in paths:
        raise UnknownPrompt(f"The prompt {name!r} for {protocol} has no version {wanted}.")
    content = paths[wanted].read_bytes()
    return Prompt(protocol, name, wanted, content.decode(), hashlib.sha256(content).hexdigest())


def _stored(protocol: str, name: str, version: int | None) -> Prompt:
    rows = PromptTemplate.objects.filter(protocol=protocol, name=name).order_by("-version")
    row = (rows if version is None else rows.filter(version=version)).first()
    if row is None:
        known = ", ".join([*names(protocol), *stored_names(protocol)])
        raise UnknownPrompt(f"Unknown prompt {name!r} for {protocol}. Known prompts: {known}.")
    return Prompt.from_row(row)


def parsed(text: str) -> nodes.Template:
    """The template's tree. Raises jinja2.TemplateSyntaxError."""
    return _ENVIRONMENT.parse(text)


@lru_cache(maxsize=64)
def _compiled(text: str) -> Any:
    return _ENVIRONMENT.from_string(sandbox.metered_tree(_ENVIRONMENT.parse(text), _ENVIRONMENT))
