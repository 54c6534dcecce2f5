"""Texts that are translated: found in code, templates and scripts; kept in locale/*/LC_MESSAGES/django.po.

``manage.py translations`` brings the catalogues up to date and compiles them, without gettext's tools. The compiled
files are kept in the repository, so that a fresh clone speaks every language.
"""

import ast
import json
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from django.conf import settings
from django.utils.translation import gettext, override
from django.utils.translation.template import templatize

ROOMS = ("accounts", "bank", "judging", "annotations", "leaderboard", "evalsite")
MARKS = {"_", "gettext", "lazy", "gettext_lazy", "noop", "gettext_noop", "ngettext"}
_STRING = r"u?(?:\'(?:\\.|[^\'\\])*\'|\"(?:\\.|[^\"\\])*\")"
_IN_TEMPLATE = re.compile(rf"(?:\b_|gettext)\(\s*({_STRING}(?:\s*,\s*{_STRING})?)")
_IN_SCRIPT = re.compile(r"\b(?:t|words)\(\s*(\"(?:\\.|[^\"\\])*\")")
_PLACE = re.compile(r"%\((\w+)\)[sd]|\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Text:
    """A text as it stands in the source; ``plural`` where its words depend on a number."""

    one: str
    plural: str = ""

    @property
    def places(self) -> set[str]:
        """The names of what is filled in."""
        return {a or b for text in (self.one, self.plural) for a, b in _PLACE.findall(text)}


def found() -> dict[Text, str]:
    """Every text that is marked, with the file it stands in first."""
    texts: dict[Text, str] = {}
    root = Path(settings.BASE_DIR)
    for room in ROOMS:
        for path in sorted((root / room).rglob("*.py")):
            for text in _in_code(path.read_text(encoding="utf-8")):
                texts.setdefault(text, str(path.relative_to(root)))
    for path in sorted((root / "templates").rglob("*.html")):
        for match in _IN_TEMPLATE.finditer(templatize(path.read_text(encoding="utf-8"))):
            # A lone % stands doubled in what the template engine asks for.
            texts.setdefault(Text(*ast.literal_eval(f"({match[1]},)")), str(path.relative_to(root)))
    for words, path in _in_scripts():
        texts.setdefault(Text(words), str(path.relative_to(root)))
    return texts


def _in_code(source: str) -> Iterator[Text]:
    if "django.utils.translation" not in source:
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MARKS:
            words = [arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
            if words:
                yield Text(*words[: 2 if node.func.id == "ngettext" else 1])


def _in_scripts() -> Iterator[tuple[str, Path]]:
    for path in sorted((Path(settings.BASE_DIR) / "static" / "js").glob("*.js")):
        for match in _IN_SCRIPT.finditer(path.read_text(encoding="utf-8")):
            yield json.loads(match[1]), path


@lru_cache(maxsize=8)
def of_scripts(language: str) -> dict[str, str]:
    """The scripts' texts in this language; those that stay as they are left out."""
    with override(language):
        words = {text: gettext(text) for text, _ in _in_scripts()}
    return {text: said for text, said in words.items() if said != text}


# ---- catalogues

HEAD = "Content-Type: text/plain; charset=UTF-8\nContent-Transfer-Encoding: 8bit\nLanguage: {language}\n{plural}"
PLURALS = {"zh_Hans": "Plural-Forms: nplurals=1; plural=0;\n"}


def catalogues() -> dict[str, Path]:
    """The .po file of every language but English, by locale."""
    return {path.parent.parent.name: path for path in sorted(settings.LOCALE_PATHS[0].glob("*/LC_MESSAGES/django.po"))}


def read_po(source: str) -> dict[Text, str]:
    """Translations by text; one that is fuzzy counts as none. Holds one form of each plural."""
    known: dict[Text, str] = {}
    for block in re.split(r"\n\s*\n", source):
        fields: dict[str, str] = {}
        name = ""
        for line in block.splitlines():
            match = re.fullmatch(r"(msgid_plural|msgid|msgstr(?:\[0\])?)?\s*(\".*\")", line.strip())
            if match is None:
                continue
            name = (match[1] or name).removesuffix("[0]")
            fields[name] = fields.get(name, "") + json.loads(match[2])
        if fields.get("msgid") and not re.search(r"^#,.*fuzzy", block, re.M):
            known[Text(fields["msgid"], fields.get("msgid_plural", ""))] = fields.get("msgstr", "")
    return known


def po(texts: dict[Text, str], known: dict[Text, str], *, language: str) -> str:
    """A catalogue of these texts, in the order of where they stand."""

    def quoted(text: str) -> str:
        return json.dumps(text, ensure_ascii=False)

    head = HEAD.format(language=language, plural=PLURALS[language])
    blocks = ['msgid ""\nmsgstr ""\n' + "\n".join(quoted(line + "\n") for line in head.splitlines())]
    for text, where in sorted(texts.items(), key=lambda one: (one[1], one[0].one)):
        said = known.get(text, "")
        if text.plural:
            blocks.append(
                f"#: {where}\nmsgid {quoted(text.one)}\nmsgid_plural {quoted(text.plural)}\nmsgstr[0] {quoted(said)}"
            )
        else:
            blocks.append(f"#: {where}\nmsgid {quoted(text.one)}\nmsgstr {quoted(said)}")
    return "\n\n".join(blocks) + "\n"


def mo(known: dict[Text, str], *, language: str) -> bytes:
    """The catalogue as gettext reads it: sorted texts, their translations, and tables of where each lies."""
    pairs = {"": HEAD.format(language=language, plural=PLURALS[language])}
    pairs |= {f"{text.one}\0{text.plural}" if text.plural else text.one: said for text, said in known.items() if said}
    rows = sorted((text.encode(), said.encode()) for text, said in pairs.items())
    texts, said = [text for text, _ in rows], [words for _, words in rows]
    begin = 7 * 4 + 2 * 8 * len(rows)
    tables, bodies = b"", b""
    for words in (texts, said):
        for word in words:
            tables += struct.pack("<II", len(word), begin + len(bodies))
            bodies += word + b"\0"
    return struct.pack("<7I", 0x950412DE, 0, len(rows), 28, 28 + 8 * len(rows), 0, 0) + tables + bodies
