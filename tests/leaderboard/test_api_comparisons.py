"""The API of correlations, comparisons and snapshots: the numbers of the pages."""

import csv
import io

import pytest

from bank.models import Benchmark
from judging.models import Run
from leaderboard.boards import seen
from leaderboard.models import Snapshot
from leaderboard.view import scope_of

pytestmark = pytest.mark.django_db
API = "/api/v1"


def got(client, path, status=200, **query):
    answer = client.get(f"{API}/{path}", {"benchmark": "grove"} | query)
    assert answer.status_code == status, answer.content
    return answer


def test_rankings_and_two_of_a_kind_leave_by_the_api_as_the_pages_show_them(voted, client):
    pairs = got(client, "leaderboards/correlation/").json()
    assert {"people", "keen", "dull"} == {row[side] for row in pairs for side in ("a", "b")}
    page = client.get("/leaderboards/grove/correlation/").content.decode()
    assert all(f"<b>{row['value']:.2f}</b>".replace("-", "−") in page for row in pairs)
    ranks = got(client, "leaderboards/correlation/", part="ranks").json()
    assert [row["meta"] for row in ranks] == sorted(row["meta"] for row in ranks)
    assert got(client, "leaderboards/correlation/", part="repeats").json() == []
    one, other = (Run.objects.get(judge__name=name).pk for name in ("keen", "dull"))
    rows = got(client, "leaderboards/judges/compare/", a=f"run-{one}", b=f"run-{other}").json()
    scope = scope_of(benchmark="grove")
    assert [row["difference"] for row in rows] == [
        row.difference.value for row in seen.two_judges(scope, one, other).measures
    ]
    rows = got(client, "leaderboards/models/compare/", a="Alder", b="Cedar", source="keen").json()
    assert max(row["difference_low"] or 0 for row in rows) > 0
    assert {row["a_name"] for row in rows} == {"Alder"}
    cells = got(client, "leaderboards/models/compare/", a="Alder", b="Cedar", part="levels", format="csv").content
    assert {row["level"] for row in csv.DictReader(io.StringIO(cells.decode()))} == {"Perception", "Creation"}


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("leaderboards/models/compare/", {"a": "Alder"}),
        ("leaderboards/models/compare/", {"a": "Alder", "b": "Nobody"}),
        ("leaderboards/judges/compare/", {"a": "run-x", "b": "run-1"}),
        ("leaderboards/correlation/", {"part": "all"}),
        ("leaderboards/correlation/", {"a": "Alder"}),
    ],
)
def test_what_cannot_be_compared_is_refused_in_words(path, query, voted, client):
    assert got(client, path, 400, **query).json()


def test_snapshots_are_listed_told_of_and_read_row_by_row(voted, client_of):
    client_of("researcher").post("/leaderboards/grove/models/freeze/?source=keen")
    shot = Snapshot.objects.get()
    client = client_of("anonymous")
    (listed,) = got(client, "snapshots/").json()["results"]
    assert (listed["code"], listed["benchmark"], listed["what"]) == (shot.code, "grove@1", "models")
    told = got(client, f"snapshots/{shot.code}/").json()
    assert told["made_from"]["runs"][0]["judge"] == "keen"
    assert "tables" not in told
    assert got(client, f"snapshots/{shot.code}/rows/").json() == shot.tables["rows"]
    assert got(client, f"snapshots/{shot.code}/rows/", format="csv").content.startswith(b"model,rank")
    Benchmark.objects.update(visibility="private")
    assert got(client, "snapshots/").json()["results"] == []
    got(client, f"snapshots/{shot.code}/rows/", 404)
