"""Scores of benchmarks that are not held here: typed, and ranked beside those that are (MIA-Bench, Table 2)."""

import pytest

from leaderboard.boards.correlation import outside
from leaderboard.models import OutsideScore
from tests.bank.conftest import manage
from tests.hidden import show
from tests.markup import flat

__all__ = ["manage"]
pytestmark = pytest.mark.django_db
PAGE, API = "/outside-scores/", "/api/v1/outside-scores/"
CORRELATIONS = "/leaderboards/grove/correlation/"


def typed(**values):
    return {"board": "MMMU", "source": "Table 5", "scores": 'model,score\nheron, 51.5\n"egret, 7B",40'} | values


def test_curators_type_scores_below_the_correlations_and_everybody_reads_their_sources(grove, client_of):
    show("public")
    curator = client_of("curator")
    saved = curator.post(PAGE, typed(path=CORRELATIONS))
    assert (saved.status_code, saved.headers["Location"]) == (302, CORRELATIONS)
    assert {(row.model, row.score) for row in OutsideScore.objects.all()} == {("heron", 51.5), ("egret, 7B", 40.0)}
    page = flat(client_of("anonymous").get(CORRELATIONS))
    assert "<b>MMMU</b>, 2 models" in page
    assert "Table 5" in page
    assert "Type scores" not in page
    assert f'formaction="{PAGE}"' in flat(curator.get(CORRELATIONS))
    curator.post(PAGE, typed(scores="heron, 52"))  # replaces them
    assert OutsideScore.objects.get().score == 52
    assert (
        curator.post(PAGE, typed(scores="", path="https://elsewhere.example/")).headers["Location"] == "/leaderboards/"
    )
    assert not OutsideScore.objects.exists()
    assert client_of("researcher").post(PAGE, typed()).status_code == 403


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        ("heron", "Line 1: a model"),
        ("heron, much", "Line 1: a model"),
        ("heron, 1\nheron , 2", "Line 2: &#x27;heron&#x27; is named twice"),
        ("heron, nan", "a number"),
        ('"heron, 1', "This is not CSV"),
    ],
)
def test_what_are_no_scores_is_refused_in_words(scores, words, client_of):
    page = client_of("curator").post(PAGE, typed(scores=scores)).content.decode()
    assert words in page
    assert not OutsideScore.objects.exists()


def test_scores_come_by_api_and_command(client_of, manage, tmp_path):
    body = {"board": "POPE", "source": "Table 2", "lower_is_better": True, "scores": {"heron": 3, "egret": 5}}
    curator = client_of("curator")
    assert curator.post(API, body, content_type="application/json").status_code == 201
    rows = client_of("anonymous").get(f"{API}?board=POPE").json()["results"]
    assert {(row["model"], row["score"], row["lower_is_better"]) for row in rows} == {
        ("heron", 3.0, True),
        ("egret", 5.0, True),
    }
    assert curator.post(API, body | {"source": ""}, content_type="application/json").status_code == 400
    path = tmp_path / "scores.csv"
    path.write_text("model,score\nheron,9\n", encoding="utf-8")
    assert manage("outside_scores", "MMMU", path, "--source", "Table 5")[0] == 0
    out = manage("outside_scores")[1]
    assert out.splitlines()[0] == "board,model,score,lower_is_better,source"
    assert "MMMU,heron,9.0,False,Table 5" in out
    assert manage("outside_scores", "MMMU", path)[0] == 2


def test_typed_scores_stand_among_the_rankings_and_count_in_the_mean_of_ranks(brought, grove, client):
    from tests.leaderboard.conftest import labels

    brought("labels", labels())
    rows = client.get("/api/v1/leaderboards/models/?benchmark=grove").json()
    ranked = [row["model"] for row in sorted(rows, key=lambda row: -(row["bt"] or 0)) if row["n"] >= 30]
    assert len(ranked) >= 3
    outside.set_scores(board="Reversed", scores={model: n for n, model in enumerate(ranked)}, source="Table 5")
    errors = {model: n for n, model in enumerate(ranked)}
    outside.set_scores(board="Errors", scores=errors, source="Table 6", lower_is_better=True)
    outside.set_scores(board="Others", scores={"somebody": 1, "else": 2}, source="Table 7")
    pairs = client.get("/api/v1/leaderboards/correlation/?benchmark=grove").json()
    of_people = {row["b"]: row["value"] for row in pairs if row["a"] == "people"}
    assert of_people["Reversed (typed)"] == pytest.approx(-1)
    assert of_people["Errors (typed)"] == pytest.approx(1)
    assert "Others (typed)" not in of_people  # no models in common
    page = client.get("/leaderboards/grove/correlation/").content.decode()
    assert "Reversed (typed)" in page
    assert "not computed here" in page
