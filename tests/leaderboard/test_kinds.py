"""Every kind of verdict has its boards, and every protocol a kind."""

import ast
import re
from pathlib import Path

import pytest

from bank.models import Benchmark, EvaluatedModel, Item, Response, Sample
from bank.models.items import content_hash
from judging import protocols
from judging.models import Judge, Judgment, Run
from leaderboard import kinds
from leaderboard.boards.by_kind import MAKERS
from leaderboard.boards.seen import judges, models
from leaderboard.models import ONCE_FROZEN_LIVE
from leaderboard.view import scope_of
from tests.hidden import show, write_criterion

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("protocol", protocols.all_by_name())
def test_the_verdicts_of_every_protocol_reach_the_boards_of_one_kind(protocol):
    wanted = protocols.get(protocol)
    owners = [kind for kind in kinds.KINDS.values() if protocol in kind.protocols]
    assert [kind.name for kind in owners] == [wanted.verdict_kind]
    assert owners[0].item_kind == wanted.kind


def test_an_edition_may_be_published_of_every_kind_that_ranks_models():
    ranking = {name for name, kind in kinds.KINDS.items() if not kind.no_models}
    assert set(kinds.WITH_EDITIONS) == ranking >= {name for name, kind in kinds.KINDS.items() if kind.hidden}
    assert set(ONCE_FROZEN_LIVE) <= ranking


@pytest.fixture
def marked():
    """Two models whose answers to 12 samples were marked against a reference by one judge: 4 and 2, 8 and 5."""
    benchmark = Benchmark.objects.create(slug="open", title="Open answers", visibility="public")
    makers = [EvaluatedModel.objects.create(name=name) for name in ("heron", "egret")]
    judge = Judge.objects.create(name="marker")
    runs = {
        protocol: Run.objects.create(
            judge=judge, benchmark=benchmark, protocol=protocol, state="finished", settings={"order": "fixed"}
        )
        for protocol in ("reference-score", "reasoning-quality")
    }
    marks = {"reference-score": (4, 2), "reasoning-quality": (8, 5)}
    for n in range(12):
        sample = Sample.objects.create(benchmark=benchmark, key=f"s{n}", instruction="?", status="approved")
        write_criterion(sample=sample, key="r", kind="exact_reference", text=f"answer {n}")
        for place, maker in enumerate(makers):
            text = f" Answer {n}." if place == 0 and n < 9 else f"It is so, says {maker.name}."
            given = Response.objects.create(sample=sample, model=maker, text=text)
            hashed = content_hash(kind="score", sample_id=sample.pk, response_ids=[given.pk])
            item = Item.objects.create(kind="score", sample=sample, content_hash=hashed)
            item.places.create(position=0, response=given)
            for protocol, run in runs.items():
                Judgment.objects.create(run=run, item=item, order="0", score=marks[protocol][place])
    return benchmark


@pytest.mark.parametrize(
    ("kind", "expected"), [("reference", {"heron": 4.0, "egret": 2.0}), ("reasoning", {"heron": 8.0, "egret": 5.0})]
)
def test_marks_against_a_reference_rank_models_by_their_mean(marked, kind, expected):
    board = models(scope_of(benchmark="open", kind=kind, source="marker", staff=True))
    assert {row["model"]: row["score"] for row in board.as_json()} == expected
    assert [row["model"] for row in board.as_json()] == ["heron", "egret"]
    assert {row["n"] for row in board.as_json()} == {12}
    assert not judges(scope_of(benchmark="open", kind=kind, staff=True)).as_json()


def test_beside_the_marks_stands_the_share_of_answers_that_are_the_key(marked, client_of):
    rows = {
        row["model"]: row
        for row in models(scope_of(benchmark="open", kind="reference", staff=True, source="marker")).as_json()
    }
    heron, egret = rows["heron"], rows["egret"]
    assert (heron["exact_match"], heron["exact_match_n"], egret["exact_match"]) == (0.75, 12, 0.0)
    assert heron["exact_match_low"] < 0.75 < heron["exact_match_high"]
    page = client_of("curator").get("/leaderboards/open/models/?kind=reference&source=marker").content.decode()
    assert "Exact match %" in page
    assert "75.0" in page
    run = Run.objects.get(protocol="reference-score")
    client_of("curator").post("/leaderboards/open/models/editions/new/?kind=reference", {"run": run.pk})
    told = client_of("researcher").get("/api/v1/leaderboards/models/?benchmark=open&kind=reference").json()
    assert [row["exact_match"] for row in told] == [None, None]  # it would tell about keys
    assert "would tell about keys" in " ".join(told[0]["notes"])


@pytest.mark.parametrize("kind", ["reference", "reasoning"])
def test_the_board_of_marks_is_found_from_the_page_and_is_an_edition_below_staff(marked, kind, client_of):
    curator, visitor = client_of("curator"), client_of("researcher")
    page = curator.get(f"/leaderboards/open/models/?kind={kind}")
    assert page.status_code == 200
    assert b"heron" in page.content
    assert all(f"kind={one}".encode() in page.content for one in ("reference", "reasoning"))
    assert b"heron" not in visitor.get(f"/leaderboards/open/models/?kind={kind}").content
    assert visitor.get(f"/api/v1/leaderboards/models/?benchmark=open&kind={kind}").json() == []
    show("public")
    rows = visitor.get(f"/api/v1/leaderboards/models/?benchmark=open&kind={kind}&source=marker").json()
    assert [row["model"] for row in rows] == ["heron", "egret"]


def test_an_edition_of_marks_tells_the_whole_and_no_level(marked, client_of):
    curator = client_of("curator")
    run = Run.objects.get(protocol="reference-score")
    sent = curator.post("/leaderboards/open/models/editions/new/?kind=reference", {"run": run.pk})
    assert sent.status_code == 302
    rows = client_of("researcher").get("/api/v1/leaderboards/models/?benchmark=open&kind=reference").json()
    assert [(row["model"], row["score"]) for row in rows] == [("heron", 4.0), ("egret", 2.0)]
    assert [row["levels"] for row in rows] == [{}, {}]


MOST_SWITCHES = 9
APPS = ("accounts", "annotations", "bank", "evalsite", "judging", "leaderboard")


def test_few_places_ask_what_a_kind_or_protocol_is_called_or_which_class_its_board_has():
    """Both say what they need: comparisons with a name or a class make a new kind a change in many files."""
    names = {*kinds.KINDS, *(also for kind in kinds.KINDS.values() for also in kind.aliases), *protocols.all_by_name()}
    constants = {"GRADED", "LABEL"}  # of bank.models.verdict
    classes = {makers.shape.__name__ for makers in MAKERS.values()} | {"KeyedBoard", "PairRow", "ScoreRow"}
    found = []
    for path in (path for app in APPS for path in Path(app).rglob("*.py") if "migrations" not in path.parts):
        apart = set() if path.parts[0] == "leaderboard" else set(Item.Kind.values)  # which are names of items, too
        for node in ast.walk(ast.parse(path.read_text())):
            used = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
            if isinstance(node, ast.Compare) and re.search("kind|protocol", ast.unparse(node.left)):
                words = {one.value for one in ast.walk(node) if isinstance(one, ast.Constant)}
                asks = words & (names - apart) or used & constants
            else:
                asks = isinstance(node, ast.Call) and "isinstance" in used and used & classes
            if asks:
                found.append(f"{path}:{node.lineno}")
    for path in Path("templates").rglob("*.html"):
        found += [str(path)] * len(re.findall(r"(?:protocol|ballot\.kind) [!=]= \"", path.read_text()))
    assert len(found) <= MOST_SWITCHES, found


ELSEWHERE = [
    "/leaderboards/open/models/compare/?kind={kind}&source=marker&a=heron&b=egret",
    "/leaderboards/open/answers/?kind={kind}&source=marker&model=heron",
    "/leaderboards/open/models/rows.csv?kind={kind}&source=marker",
    "/api/v1/leaderboards/models/?benchmark=open&kind={kind}&source=marker",
    "/api/v1/leaderboards/models/compare/?benchmark=open&kind={kind}&source=marker&a=heron&b=egret",
]


@pytest.mark.check("J3")
@pytest.mark.parametrize("path", ELSEWHERE)
@pytest.mark.parametrize(("kind", "mark"), [("reference", "4"), ("reasoning", "8")])
def test_no_other_page_or_file_tells_the_marks_that_the_board_keeps_back(marked, path, kind, mark, client_of):
    def told(role):
        return client_of(role).get(path.format(kind=kind)).content.decode()

    mean = re.compile(rf"\b{mark}\.0")
    assert mean.search(told("curator"))
    assert not mean.search(told("researcher"))
