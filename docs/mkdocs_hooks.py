"""What the site of the documentation has beyond mkdocs.yml: pages from the root, diagrams as tables."""

import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
FROM_ROOT = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
DIAGRAM = re.compile(r"```mermaid\nerDiagram\n(.*?)```", re.DOTALL)
ARROW = re.compile(r"(\w+) (\S+) (\w+) : (\w+)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """They stay where code hosts look for them, and are pages of the site nevertheless."""
    for name in FROM_ROOT:
        text = (ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](")
        files.append(File.generated(config, name, content=text))
    for decision in (file for file in files if re.match(r"adr/\d", file.src_uri)):
        decision.inclusion = decision.inclusion.NOT_IN_NAV
    return files


def on_page_markdown(markdown: str, **rest: Any) -> str:
    """Links to the root lead to the page made of it. Drawing diagrams would take a script from elsewhere: the arrows
    are listed instead."""
    for name in FROM_ROOT:
        markdown = markdown.replace(f"](../{name})", f"]({name})")
    return DIAGRAM.sub(_listed, markdown)


def on_post_page(output: str, **rest: Any) -> str:
    """The theme's search is a dialog without a name."""
    dialog = 'data-md-component="search" role="dialog"'
    return output.replace(dialog, f'{dialog} aria-label="Search"')


def _listed(diagram: re.Match[str]) -> str:
    rows = [
        f"| `{table}` | `{column}` | `{other.replace('_', '.', 1)}` |"
        for table, _, other, column in ARROW.findall(diagram[1])
    ]
    return "\n".join(["| table | column | refers to |", "|---|---|---|", *rows]) if rows else ""
