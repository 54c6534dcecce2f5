"""manage.py translations: bring the catalogues up to date with the texts in the source, and compile them.

By Babel, which is installed for development only. The compiled catalogues are kept in the repository, so that a fresh
clone speaks every language.
"""

import ast
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from babel.messages.catalog import Catalog
from babel.messages.extract import extract
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from django.conf import settings
from django.core.management.base import BaseCommand
from django.utils.translation.template import templatize

from evalsite import templates

ROOMS = ("accounts", "bank", "judging", "annotations", "leaderboard", "evalsite")
KEYWORDS: dict[str, Any] = {
    **dict.fromkeys(("_", "gettext", "lazy", "gettext_lazy", "noop", "gettext_noop")),
    "ngettext": (1, 2),
}
_STRING = r"u?(?:\'(?:\\.|[^\'\\])*\'|\"(?:\\.|[^\"\\])*\")"
# In what Django makes of a template for such tools; a lone % stands doubled there, as the template engine asks for it.
_IN_TEMPLATE = re.compile(rf"(?:\b_|gettext)\(\s*({_STRING}(?:\s*,\s*{_STRING})?)")


class Command(BaseCommand):
    help = "Bring locale/*/LC_MESSAGES/django.po up to date with the marked texts, and compile it to django.mo."

    def handle(self, *args: Any, **options: Any) -> None:
        marked = marked_texts()
        for language, path in catalogues().items():
            catalogue = updated(read(path), marked)
            path.write_bytes(as_po(catalogue))
            path.with_suffix(".mo").write_bytes(as_mo(catalogue))
            missing = sum(not one.string for one in catalogue if one.id)
            self.stdout.write(f"{language}: {len(catalogue)} texts, {missing} without a translation.")


def marked_texts() -> Catalog:
    """Every text that is marked in code, templates and scripts, with the files that it stands in."""
    root = Path(settings.BASE_DIR)
    catalogue = Catalog()
    for text, path in (*_in_code(root), *_in_templates(root / "templates"), *templates.in_scripts()):
        catalogue.add(text, locations=[(str(path.relative_to(root)), 0)])
    return catalogue


def _in_code(root: Path) -> Iterator[tuple[Any, Path]]:
    for path in sorted(path for app in ROOMS for path in (root / app).rglob("*.py")):
        source = path.read_bytes()
        if b"django.utils.translation" in source:
            for _, text, *_ in extract("python", io.BytesIO(source), KEYWORDS):
                yield text, path


def _in_templates(folder: Path) -> Iterator[tuple[Any, Path]]:
    for path in sorted(path for path in folder.rglob("*.*") if path.suffix in (".html", ".txt")):
        for match in _IN_TEMPLATE.finditer(templatize(path.read_text(encoding="utf-8"))):
            words = ast.literal_eval(f"({match[1]},)")
            yield (words if len(words) > 1 else words[0]), path


def catalogues() -> dict[str, Path]:
    """The .po file of every language but English, by locale."""
    return {path.parent.parent.name: path for path in sorted(settings.LOCALE_PATHS[0].glob("*/LC_MESSAGES/django.po"))}


def read(path: Path) -> Catalog:
    with path.open("rb") as file:
        return read_po(file, locale=path.parent.parent.name)


def updated(catalogue: Catalog, marked: Catalog) -> Catalog:
    """The catalogue with the marked texts and no others; translations that there are stay."""
    date = catalogue.creation_date
    catalogue.update(marked, no_fuzzy_matching=True)
    catalogue.creation_date = date  # the same texts make the same file
    return catalogue


def as_po(catalogue: Catalog) -> bytes:
    file = io.BytesIO()
    write_po(file, catalogue, width=0, sort_by_file=True, include_lineno=False, ignore_obsolete=True)
    return file.getvalue()


def as_mo(catalogue: Catalog) -> bytes:
    """The compiled catalogue; a translation that is fuzzy counts as none."""
    file = io.BytesIO()
    write_mo(file, catalogue)
    return file.getvalue()
