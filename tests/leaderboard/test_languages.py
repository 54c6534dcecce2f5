"""English and Chinese: the same questions in two languages, in one benchmark or in two."""

import csv
import io
import re
from html import unescape

import pytest

from bank.models import Benchmark
from leaderboard.boards.correlation.languages import languages
from leaderboard.rows import plain
from leaderboard.view import scope_of
from tests.bank.conftest import folder, manage
from tests.hidden import show

__all__ = ["folder", "manage"]
pytestmark = pytest.mark.django_db
LABELS = ("A", "B", "C", "D")
ASKED = 24


def question(key, n, language):
    options = {label: f"thing {label}" for label in LABELS}
    return {"key": key, "instruction": "?", "language": language, "options": options, "answer": LABELS[n % 4]}


def said(key, n, model, right):
    return {"sample": key, "model": model, "text": f"({LABELS[(n if right else n + 1) % 4]})"}


@pytest.fixture
def asked(folder, manage):
    """``asked(slug, {language: (questions, key of n)})``: Sure is right, Shaky in Chinese to every second question."""

    def run_import(slug, spoken):
        samples, answers = [], []
        for language, (many, key) in spoken.items():
            for n in range(many):
                samples.append(question(key(n), n, language))
                answers.append(said(key(n), n, "Sure", True))
                answers.append(said(key(n), n, "Shaky", language == "en" or n % 2 == 0))
        assert (
            manage("import_benchmark", "generic", folder("samples", samples), "--benchmark", slug, "--public")[0] == 0
        )
        assert manage("import_responses", "generic", folder("responses", answers), "--benchmark", slug)[0] == 0
        return Benchmark.objects.get(slug=slug)

    return run_import


def test_two_languages_of_one_benchmark_are_compared_on_the_questions_that_correspond(asked, client_of):
    atlas = asked("atlas", {"en": (ASKED, "map-en-{}".format), "zh": (ASKED, "map-zh-{}".format)})
    client = client_of("curator")
    (found,) = languages(scope_of(benchmark=atlas, kind="choice", staff=True), [])
    assert (found.a.language, found.b.language, found.measure, found.pairs) == ("en", "zh", "vanilla", ASKED)
    sure, shaky = sorted(plain(found.rows), key=lambda row: row["model"], reverse=True)
    assert (sure["a"], sure["b"], sure["difference"], sure["n"], sure["significant"]) == (1, 1, 0, ASKED, False)
    assert (shaky["a"], shaky["b"], shaky["difference"], shaky["n"]) == (1, 0.5, 0.5, ASKED)
    assert 0 < shaky["difference_low"] < 0.5 < shaky["difference_high"]
    assert shaky["p"] == pytest.approx(2 * 0.5**12)  # McNemar: twelve questions differ, all of them one way
    html = client.get("/leaderboards/atlas/correlation/").content.decode()
    assert "English and Chinese" in html
    assert "+50.0" in html
    link = unescape(re.search(r'href="([^"]*part=languages[^"]*format=csv)"', html)[1])
    rows = list(csv.DictReader(io.StringIO(client.get(link).content.decode())))
    assert [(row["model"], row["a_language"], row["b_language"]) for row in rows] == [
        (row["model"], "en", "zh") for row in plain(found.rows)
    ]
    assert {row["model"]: float(row["difference"]) for row in rows}[shaky["model"]] == 0.5


def test_a_version_in_another_language_is_compared_and_with_hidden_keys_by_staff_alone(asked, client_of):
    asked("atlas", {"en": (ASKED, "{}".format)})
    asked("atlas-cn", {"zh": (ASKED + 3, "{}".format)})
    atlas, other = (Benchmark.objects.get(slug=slug) for slug in ("atlas", "atlas-cn"))
    (found,) = languages(scope_of(benchmark=atlas, kind="choice", staff=True), [(other, True)])
    assert (found.b.benchmark, found.pairs) == (other, ASKED)
    assert [row["difference"] for row in sorted(plain(found.rows), key=lambda row: row["model"])] == [0.5, 0]
    assert all(row["a_n"] == ASKED and row["b_n"] == ASKED + 3 for row in plain(found.rows))
    assert languages(scope_of(benchmark=atlas, kind="choice"), [(other, False)]) == []
    path = "/leaderboards/atlas/correlation/?kind=choice"
    assert "+50.0" in client_of("curator").get(path).content.decode()
    assert "+50.0" not in client_of("researcher").get(path).content.decode()
    show("public")
    assert "+50.0" in client_of("anonymous").get(path).content.decode()
