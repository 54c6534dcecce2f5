"""Every board over every set of the shared research data with two models; and a page whose second table fails."""

import random
from collections import defaultdict

import pytest
from django.urls import reverse

from bank.criteria import Criterion
from bank.models import Benchmark, Sample
from judging.protocols.settings import AS_PRINTED
from leaderboard import kinds
from leaderboard.boards import seen
from leaderboard.boards.biases import page as bias_page
from leaderboard.boards.judges import repeats
from leaderboard.boards.judges import stand_in as standin
from leaderboard.boards.models import lengths_page
from leaderboard.boards.models import page as models_page
from leaderboard.pages import pictures
from leaderboard.registry import TABLES
from leaderboard.scope import BadScope
from leaderboard.views.boards import PAGES
from tests.leaderboard.conftest import judgments, labels
from tests.markup import flat

pytestmark = pytest.mark.django_db
TWO = ("model-one", "model-two")
COMPARED = {"compare": {"a": TWO[0], "b": TWO[1]}}
ALWAYS = ("models", "judges", "apart", "abilities", "letters", "extraction", "bias", "agreement")


def rotated(options, answer, shift):
    """The letter under which the answer stands in a rotation."""
    letters = list(options)
    return letters[(letters.index(answer) - shift) % len(letters)]


def of_mmbench():
    """Two models, each in every rotation, each wrong here and there."""
    rng = random.Random(5)
    keys = {row.sample.key: row.text for row in Criterion.unguarded.select_related("sample")}
    return [
        {
            "sample": sample.key,
            "model": model,
            "variant": f"circular-{shift}" if shift else "",
            "text": rotated(sample.options, keys[sample.key], shift if rng.random() < 0.8 else shift + 1),
        }
        for sample in Sample.objects.all()
        for model in TWO
        for shift in range(len(sample.options))
    ]


def of_pope():
    rng = random.Random(5)
    rows = Criterion.unguarded.select_related("sample").order_by("pk")[:600]
    keys = [(row.sample.key, row.text) for row in rows]
    return [
        {"sample": key, "model": model, "text": said if rng.random() < 0.8 else "no"}
        for key, said in keys
        for model in TWO
    ]


def in_words():
    keys = Sample.objects.values_list("key", flat=True)
    return [{"sample": key, "model": model, "text": f"{model} on {key}"} for key in keys for model in TWO]


def points():
    """A judge's points for every component of both models' answers."""
    rng = random.Random(5)
    rows = []
    weights = defaultdict(list)
    for row in Criterion.unguarded.select_related("sample").order_by("position"):
        weights[row.sample.key].append(row.weight)
    for key, of_sample in weights.items():
        common = {"kind": "score", "protocol": "components", "sample": key, "judge": "J"}
        for model in TWO:
            parts = [{"component": str(n), "points": rng.randint(0, int(w))} for n, w in enumerate(of_sample, 1)]
            rows.append(common | {"responses": [model], "parts": parts})
    return rows


@pytest.fixture
def every_set(shared_data, llmfao_folder, manage, folder, media):
    """Each set as a benchmark with answers of two models or more, and verdicts where it has some."""

    def brought(slug, path, *what):
        for each in what:
            public = ["--public"] if each == "benchmark" else []
            status, _, err = manage(f"import_{each}", "auto", path, "--benchmark", slug, "--skip-bad", *public)
            assert status == 0, (slug, each, err)

    def made(slug, what, rows):
        status, _, err = manage(f"import_{what}", "generic", folder(what, rows), "--benchmark", slug)
        assert status == 0, (slug, what, err)

    def make(slug):
        path = llmfao_folder if slug == "llmfao" else shared_data / slug
        if slug == "mmbench":
            brought(slug, path, "benchmark")
            made(slug, "responses", of_mmbench())
        elif slug == "pope":
            brought(slug, path, "benchmark")
            made(slug, "responses", of_pope())
        elif slug == "mia-bench":
            brought(slug, path, "benchmark")
            made(slug, "responses", in_words())
            made(slug, "judgments", points())
        elif slug == "mllm-bench":
            brought(slug, path, "benchmark", "responses", "judgments")
        elif slug == "alt-test-lesion":
            brought(slug, path, "benchmark", "labels", "judgments")
        elif slug == "mllm-as-a-judge":
            brought(slug, path, "benchmark", "responses", "labels")
        else:
            brought(slug, path, "benchmark", "responses")
            brought(slug, path / "crowd-comparisons.csv", "labels")
            brought(slug, path / "gpt4-crowd-comparisons.csv", "judgments")
        return Benchmark.objects.get(slug=slug)

    return make


# The largest in soak: the demo has it, and test_demo draws its boards.
LLMFAO = pytest.param("llmfao", marks=pytest.mark.soak)
SETS = ("mmbench", "pope", "mia-bench", "mllm-bench", "mllm-as-a-judge", "alt-test-lesion", LLMFAO)


@pytest.mark.parametrize("slug", SETS)
def test_every_board_of_every_research_data_set_is_drawn_as_is_and_as_printed(slug, every_set, client_of):
    """Only views that there are none of are refused. On all of the answers in every rotation, one page was an error."""
    benchmark, client, shown = every_set(slug), client_of("curator"), set()
    for page in PAGES:
        for kind in kinds.available(benchmark, "models", staff=True) or [kinds.USUAL]:
            for counted in ({}, dict(kind.printed)):
                answer = client.get(reverse(f"leaderboard:{page}", args=[slug]), {"kind": kind.name} | counted)
                refused = answer.status_code == 400 and "This view does not exist" in answer.text
                assert answer.status_code == 200 or refused, (page, kind, counted)
                shown |= set() if refused else {page}
    assert {"models", "judges", "agreement", "correlation"} <= shown
    for name, table in TABLES.items():
        for kind in kinds.available(benchmark, table.board, staff=True):
            for counted in ({}, {AS_PRINTED: "1"} if kind.printed else {}):
                asked = {"kind": kind.name} | COMPARED.get(name, {}) | counted
                taken = {key: value for key, value in asked.items() if key in (*table.view, *table.takes)}
                answer = client.get(reverse(f"api-leaderboard-{name}"), {"benchmark": slug} | taken)
                always = table.fits(kind) and name in ALWAYS
                assert answer.status_code in ((200,) if always else (200, 400)), (name, asked, answer.text)


def broken(*args, **more):
    raise ZeroDivisionError("a fault of ours")


@pytest.mark.faulty_tables
@pytest.mark.parametrize(
    ("page", "fault", "missing", "there"),
    [
        ("judges", (standin, "_stand_ins"), "The stand-in test", "lark"),
        ("judges", (standin, "_stand_ins"), "The stand-in test", "Asked again"),
        ("judges", (repeats, "most_alike"), "Asked again: how many verdicts are the same", "May a judge stand in?"),
        ("judges", (bias_page, "chips_of"), "The biases", "lark"),
        ("models", (models_page, "apart_table"), "How many more items tell models apart", "Alder"),
        ("models", (seen, "rated_otherwise"), "The other rating", "Alder"),
        ("models", (pictures, "titled"), "", "Alder"),
        ("bias", (lengths_page, "tables_of"), "The lengths of answers and replies", "lark"),
    ],
)
def test_a_page_stands_without_its_second_table_says_so_and_the_fault_is_logged(
    page, fault, missing, there, brought, client_of, monkeypatch, caplog
):
    brought("labels", labels())
    brought("judgments", judgments("lark", noise=0.5, seed=2, repeats=2))
    monkeypatch.setattr(*fault, broken)
    answer = client_of("curator").get(f"/leaderboards/grove/{page}/", {"source": "lark"} if page == "models" else {})
    assert answer.status_code == 200
    shown = flat(answer.text)
    assert there in shown
    assert (f"{missing} could not be computed" in shown) == bool(missing)
    assert any("a fault of ours" in str(record.exc_info[1]) for record in caplog.records if record.exc_info)


@pytest.mark.faulty_tables
def test_what_a_reader_may_not_see_or_what_does_not_exist_is_no_fault_of_one_table(brought, client_of, monkeypatch):
    brought("labels", labels())
    brought("judgments", judgments("lark", noise=0.5, seed=2))

    def refused(*args, **more):
        raise BadScope("No such view.")

    monkeypatch.setattr(standin, "_stand_ins", refused)
    answer = client_of("curator").get("/leaderboards/grove/judges/")
    assert (answer.status_code, "No such view." in answer.text) == (400, True)
