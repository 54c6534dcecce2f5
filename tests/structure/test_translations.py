"""Every text that is marked for translation has its Chinese, and the compiled catalogue is that of the source."""

import gettext
import io

import pytest

from evalsite import texts


@pytest.fixture(scope="module", params=texts.catalogues())
def catalogue(request):
    path = texts.catalogues()[request.param]
    return request.param, path, texts.read_po(path.read_text(encoding="utf-8"))


def test_every_marked_text_is_translated_and_no_other_is_kept(catalogue):
    _, _, known = catalogue
    assert set(texts.found()) == set(known), "run manage.py translations, and translate what is new"
    assert [text.one for text, said in known.items() if not said.strip()] == []


def test_what_is_filled_in_is_the_same_in_both(catalogue):
    _, _, known = catalogue
    assert [text.one for text, said in known.items() if text.places != texts.Text(said).places] == []


def test_the_compiled_catalogue_is_that_of_the_source(catalogue):
    language, path, known = catalogue
    compiled = path.with_suffix(".mo").read_bytes()
    assert compiled == texts.mo(known, language=language), "run manage.py translations"
    read = gettext.GNUTranslations(io.BytesIO(compiled))
    assert read.gettext("Tie") == known[texts.Text("Tie")]
    plural = next(text for text in known if text.plural)
    assert read.ngettext(plural.one, plural.plural, 5) == known[plural]


def test_a_catalogue_comes_back_as_it_was_written():
    known = {texts.Text('say "\\n"\nhere'): "ä\n", texts.Text("one", "many"): "都"}
    written = texts.po(dict.fromkeys(known, "x.py"), known, language="zh_Hans")
    assert texts.read_po(written) == known
