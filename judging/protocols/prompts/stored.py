"""Prompt templates that staff wrote, and which runs used which version."""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import Count, QuerySet
from rest_framework import serializers

from accounts.models import User
from accounts.rules import Viewer
from bank.errors import BadInput
from judging import protocols
from judging.models import PromptTemplate, Run
from judging.protocols import prompts
from judging.protocols.prompts import checks

ANSWERS = "responses"  # prompts that models are asked with, by runs that collect and by recipes
ANSWERS_TITLE = "Answers of a model"


def titles() -> dict[str, str]:
    """What prompts can be written for: protocols of judges, and answers of models."""
    return {name: protocol.title for name, protocol in protocols.all_by_name().items()} | {ANSWERS: ANSWERS_TITLE}


AS_PUBLISHED = (
    "Judged with a prompt as published: it has no fences, so what an answer says to the judge may be followed like its "
    "own instructions."
)


def any_as_published(runs: Iterable[int]) -> bool:
    """Whether one of these runs asked with a template that is exempt from the rules about fences."""
    exempt = PromptTemplate.objects.filter(as_published=True)
    names = {(f"{row.protocol}.{row.name}", row.version) for row in exempt.only("protocol", "name", "version")}
    if not names:
        return False
    used = Run.objects.filter(pk__in=list(runs)).values_list("template", "template_version")
    return not names.isdisjoint(used)


def faults_of(protocol: str, text: str, *, as_published: bool = False) -> list[str]:
    """Everything that keeps a template from being used. Raises UnknownProtocol."""
    if protocol == ANSWERS:
        return checks.query_faults(text)
    return checks.faults(protocols.get(protocol), text, as_published=as_published)


def variables_of(protocol: str) -> list[str]:
    return list(checks.QUERY_VARIABLES) if protocol == ANSWERS else checks.variables(protocols.get(protocol))


def runs_with(protocol: str, name: str, version: int) -> QuerySet[Run]:
    """The runs that used this version of a template."""
    return Run.objects.filter(protocol=protocol, template=f"{protocol}.{name}", template_version=version)


@dataclass(frozen=True, slots=True)
class Template:
    """A version of a template and how often it was used."""

    prompt: prompts.Prompt
    title: str  # of its protocol
    stored: PromptTemplate | None  # None for a built-in one
    runs: int
    newest: bool


def templates(viewer: Viewer) -> list[Template]:
    """Every version of every template, by protocol, built-in ones first."""
    rows = Run.objects.visible_to(viewer).exclude(template="").order_by()
    used = {
        (row["template"], row["template_version"]): row["n"]
        for row in rows.values("template", "template_version").annotate(n=Count("pk"))
    }
    stored: dict[str, list[PromptTemplate]] = {}
    for row in PromptTemplate.objects.select_related("by"):
        stored.setdefault(row.protocol, []).append(row)
    templates_with_use = []
    for protocol, title in titles().items():
        versions: list[tuple[prompts.Prompt, PromptTemplate | None]] = [
            (prompts.get(protocol, name), None) for name in prompts.names(protocol)
        ]
        versions += [(prompts.Prompt.from_row(row), row) for row in stored.get(protocol, [])]
        names_seen: set[str] = set()
        for prompt, stored_row in versions:
            runs = used.get((f"{protocol}.{prompt.name}", prompt.version), 0)
            templates_with_use.append(Template(prompt, title, stored_row, runs, prompt.name not in names_seen))
            names_seen.add(prompt.name)
    return templates_with_use


class TemplateIn(serializers.Serializer[Any]):
    """The next version of a name."""

    protocol = serializers.CharField(max_length=40)
    name = serializers.CharField(
        max_length=40, help_text="Lower-case letters, digits, hyphens. An existing name gets its next version."
    )
    text = serializers.CharField(max_length=30_000, trim_whitespace=False)
    note = serializers.CharField(
        max_length=300, default="", allow_blank=True, help_text="What is different, for people who choose a prompt."
    )
    as_published = serializers.BooleanField(
        default=False, help_text="a paper's own prompt, exempt from the rules about fences"
    )


@transaction.atomic
def add_template(
    *, protocol: str, name: str, text: str, note: str = "", as_published: bool = False, by: User | None = None
) -> PromptTemplate:
    """Store a template as the next version of its name. Raises BadInput with all faults of the text.

    ``as_published``: it is a paper's own prompt, exempt from the rules about fences; boards made with it say so.
    """
    if protocol not in titles():
        raise BadInput(f"Unknown protocol {protocol!r}. Known: {', '.join(titles())}.", "protocol")
    name, text = name.strip(), text.replace("\r\n", "\n").rstrip("\n")
    if not re.fullmatch(r"[a-z][a-z0-9-]{0,39}", name):
        raise BadInput(
            "The name is lower-case letters, digits and hyphens, at most 40, and starts with a letter.", "name"
        )
    if name in prompts.names(protocol):
        raise BadInput(f"{name} is built in and cannot be changed. Choose another name.", "name")
    if faults := faults_of(protocol, text, as_published=as_published):
        raise BadInput("\n".join(faults), "text")
    sha256_of_text = hashlib.sha256(text.encode()).hexdigest()
    earlier = PromptTemplate.objects.filter(protocol=protocol, name=name).select_for_update()
    versions = {row.version: row.sha256 for row in earlier}
    if same := [version for version, sha256 in versions.items() if sha256 == sha256_of_text]:
        raise BadInput(f"Version {same[0]} of {name} has exactly this text.", "text")
    number = max(versions, default=0) + 1
    return PromptTemplate.objects.create(
        protocol=protocol,
        name=name,
        version=number,
        text=text,
        sha256=sha256_of_text,
        note=note.strip()[:300],
        as_published=as_published,
        by=by,
    )


@transaction.atomic
def discard_template(*, template: PromptTemplate) -> None:
    """Delete a version that no run has used. Raises BadInput."""
    if runs_with(template.protocol, template.name, template.version).exists():
        raise BadInput("A run has used this version, so it is kept as a record of what its judge was asked.")
    if PromptTemplate.objects.filter(
        protocol=template.protocol, name=template.name, version__gt=template.version
    ).exists():
        raise BadInput("There is a newer version, so this one is kept: version numbers are never reused.")
    template.delete()
