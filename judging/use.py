"""Which runs used which version of a prompt template."""

from dataclasses import dataclass

from django.db.models import Count, QuerySet

from accounts.rules import Viewer
from judging import prompts, protocols
from judging.models import PromptTemplate, Run


def runs_with(protocol: str, name: str, version: int) -> QuerySet[Run]:
    """The runs that asked with a version of a template."""
    return Run.objects.filter(protocol=protocol, template=f"{protocol}.{name}", template_version=version)


@dataclass(frozen=True, slots=True)
class Template:
    """A version of a template with its use."""

    prompt: prompts.Prompt
    title: str  # of its protocol
    stored: PromptTemplate | None  # None for a built-in one
    runs: int
    newest: bool


def templates(viewer: Viewer) -> list[Template]:
    """Every version of every template, by protocol; built-in ones first."""
    rows = Run.objects.visible_to(viewer).exclude(template="").order_by()
    used = {
        (row["template"], row["template_version"]): row["n"]
        for row in rows.values("template", "template_version").annotate(n=Count("pk"))
    }
    stored: dict[str, list[PromptTemplate]] = {}
    for row in PromptTemplate.objects.select_related("by"):
        stored.setdefault(row.protocol, []).append(row)
    found = []
    for protocol in protocols.all_by_name().values():
        known: list[tuple[prompts.Prompt, PromptTemplate | None]] = [
            (prompts.get(protocol.name, name), None) for name in prompts.names(protocol.name)
        ]
        known += [(row.prompt, row) for row in stored.get(protocol.name, [])]
        seen: set[str] = set()
        for prompt, kept in known:
            runs = used.get((f"{protocol.name}.{prompt.name}", prompt.version), 0)
            found.append(Template(prompt, protocol.title, kept, runs, prompt.name not in seen))
            seen.add(prompt.name)
    return found
