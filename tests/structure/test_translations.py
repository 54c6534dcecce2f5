"""Every text that is marked for translation has its Chinese, and the compiled catalogue is that of the source."""

import gettext
import io
import re
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po
from django.conf import settings

from evalsite.management.commands import translations

PLACE = re.compile(r"%\((\w+)\)[sd]|\{(\w+)\}")


@pytest.fixture(scope="module", params=translations.catalogues())
def path(request):
    return translations.catalogues()[request.param]


@pytest.fixture(scope="module")
def catalogue(path):
    return translations.read(path)


def ids(catalogue):
    return {message.id for message in catalogue if message.id}


def forms(words):
    return (words,) if isinstance(words, str) else words


def places(words):
    """The names of what is filled in."""
    return {a or b for text in forms(words) for a, b in PLACE.findall(text)}


def test_every_marked_text_is_translated_and_no_other_is_kept(catalogue):
    assert ids(translations.marked_texts()) == ids(catalogue), "run manage.py translations, and translate what is new"
    untold = [message.id for message in catalogue if not all(said.strip() for said in forms(message.string))]
    assert untold == []
    assert not [message.id for message in catalogue if message.id and message.fuzzy]


def test_no_text_is_marked_where_the_extraction_sees_none():
    for room in translations.ROOMS:
        for path in (Path(settings.BASE_DIR) / room).rglob("*.py"):
            assert not re.search(r"\bf\"[^\"\n]*\{(?:_|n?gettext)\(['\"]", path.read_text(encoding="utf-8")), path


def test_what_is_filled_in_is_the_same_in_both(catalogue):
    assert [message.id for message in catalogue if message.id and places(message.id) != places(message.string)] == []


def test_the_compiled_catalogue_is_that_of_the_source(path, catalogue):
    compiled = path.with_suffix(".mo").read_bytes()
    assert compiled == translations.as_mo(catalogue), "run manage.py translations"
    read = gettext.GNUTranslations(io.BytesIO(compiled))
    assert read.gettext("Tie") == catalogue["Tie"].string
    plural = next(message for message in catalogue if isinstance(message.id, tuple))
    assert read.ngettext(*plural.id, 5) == plural.string[-1]


def test_a_catalogue_comes_back_as_it_was_written_with_every_plural_form():
    marked, catalogue = Catalog(), Catalog(locale="pl")
    for text in ('say "\\n"\nhere', ("{n} item", "{n} items")):
        marked.add(text, locations=[("x.py", 0)])
    catalogue.add('say "\\n"\nhere', "ä\n")
    catalogue.add(("{n} item", "{n} items"), ("{n} rzecz", "{n} rzeczy", "{n} rzeczy w sumie"))
    catalogue.add("gone", "nie ma")
    written = translations.as_po(translations.updated(catalogue, marked))
    read = read_po(io.BytesIO(written), locale="pl")
    assert {message.id: message.string for message in read if message.id} == {
        'say "\\n"\nhere': "ä\n",
        ("{n} item", "{n} items"): ("{n} rzecz", "{n} rzeczy", "{n} rzeczy w sumie"),
    }
    compiled = gettext.GNUTranslations(io.BytesIO(translations.as_mo(read)))
    assert [compiled.ngettext("{n} item", "{n} items", n) for n in (1, 2, 5)] == [
        "{n} rzecz",
        "{n} rzeczy",
        "{n} rzeczy w sumie",
    ]
