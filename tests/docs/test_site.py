"""The documentation hangs together: every page can be found, and every link leads somewhere."""

import re
import subprocess

import pytest
import yaml
from django.core.management import get_commands

from tests.docs.pages import DOCS, ROOT

FROM_ROOT = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")  # see docs/mkdocs_hooks.py
PAGES = [*sorted(DOCS.rglob("*.md")), *(ROOT / name for name in (*FROM_ROOT, "README.md"))]
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```|`[^`\n]+`", re.MULTILINE | re.DOTALL)
SITE = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))


def leaves(entry):
    if isinstance(entry, str):
        yield entry
    else:
        for part in entry.values() if isinstance(entry, dict) else entry:
            yield from leaves(part)


def anchors(path):
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in headings}


def test_every_page_stands_in_the_navigation():
    there = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")} | set(FROM_ROOT)
    decisions = {name for name in there if re.match(r"adr/\d", name)}  # their list leads to them
    assert there - decisions == set(leaves(SITE["nav"]))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_of_a_page_lead_somewhere(path):
    for link in LINK.findall(FENCE.sub("", path.read_text(encoding="utf-8"))):
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_pictures_of_the_documentation_are_small_and_all_of_them_are_shown():
    shown = {
        (path.parent / name).resolve() for path in PAGES for name in LINK.findall(path.read_text(encoding="utf-8"))
    }
    pictures = set((DOCS / "images").glob("*.png"))
    assert pictures <= shown
    assert {path.name for path in pictures if path.stat().st_size > 150_000} == set()


def test_the_list_of_commands_has_every_command_of_ours():
    ours = {
        name
        for name, app in get_commands().items()
        if app in ("accounts", "annotations", "bank", "evalsite", "judging", "leaderboard")
    }
    listed = re.findall(r"^\| `(\w+)", (DOCS / "commands.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(ours)


def test_a_page_fetches_nothing_from_elsewhere():
    assert SITE["theme"]["font"] is False
    assert not [name for name in leaves([SITE["extra_css"], SITE.get("extra_javascript", [])]) if "//" in name]
    assert "pymdownx.superfences" in SITE["markdown_extensions"]  # no diagrams: they would load a script


ADDING = sorted((DOCS / "adding").glob("*.md"))


@pytest.mark.parametrize("path", ADDING, ids=lambda path: path.stem)
def test_how_to_add_something_names_files_that_are_there_and_a_commit_that_did_it(path):
    text = path.read_text(encoding="utf-8")
    named = re.findall(r"\b(?:accounts|annotations|bank|evalsite|judging|leaderboard|tests|templates)/[\w/.-]+\w", text)
    assert [name for name in named if "NAME" not in name and not (ROOT / name).exists()] == []
    commits = re.findall(r"`git show (\w+)`", text)
    assert commits
    history = subprocess.run(["git", "rev-parse", "--is-shallow-repository"], cwd=ROOT, capture_output=True, text=True)
    if history.stdout.strip() == "false":  # neither a wheel's folder nor a shallow clone
        for commit in commits:
            found = subprocess.run(["git", "cat-file", "-e", f"{commit}^{{commit}}"], cwd=ROOT, capture_output=True)
            assert found.returncode == 0, commit
