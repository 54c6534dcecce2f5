"""Frozen views: an address that stays, numbers that can be had again, and what changed since."""

import io
import json
import re
from datetime import UTC, datetime

import pyarrow.parquet as pq
import pytest
from django.core.management import call_command

from annotations.models import Label
from bank.intake.parquet import NEEDED
from bank.models import Benchmark
from judging.models import Run
from leaderboard.models import Snapshot
from tests.leaderboard.conftest import judgments, labels, without_state
from tests.markup import flat

pytestmark = pytest.mark.django_db


def freeze(client, what="models", query=""):
    answer = client.post(f"/leaderboards/grove/{what}/freeze/{query}")
    assert answer.status_code == 302, answer.content
    return Snapshot.objects.get(code=answer.headers["Location"].strip("/").rpartition("/")[2])


def test_a_view_is_frozen_with_what_made_it_and_stays_as_it_was(voted, brought, client_of, board):
    rows = board("models", "--source", "keen")
    one = freeze(client_of("researcher"), query="?source=keen")
    assert one.tables["rows"] == [without_state(row) for row in rows]
    (run,) = one.made_from["runs"]
    assert (run["judge"], run["protocol"], run["settings"]["order"]) == ("keen", "pairwise-criteria", "both")
    assert freeze(client_of("curator"), query="?source=keen") == one  # the same data: the same snapshot
    brought("judgments", judgments("keen", noise=3.0, seed=8, repeats=1, settings={"criteria": False}))
    Snapshot.objects.update(created_at=datetime(2026, 3, 9, 12, tzinfo=UTC))  # of numbers that were computed before
    page = client_of("anonymous").get(f"/snapshots/{one.code}/").content.decode()
    assert ">9 Mar 2026, 12:00 UTC</time>.</b> These numbers do not change." in flat(page)
    assert f"{100 * rows[0]['win_rate']:.1f}" in page
    assert one.fingerprint[:8] in page
    assert "keen, run" in page


@pytest.mark.parametrize(
    ("what", "view"), [("models", "?source=keen"), ("judges", ""), ("bias", ""), ("agreement", "")]
)
def test_a_frozen_board_is_drawn_as_the_board_was_and_says_what_moved_since(what, view, voted, brought, client_of):
    visitor = client_of("anonymous")
    board = told(visitor.get(f"/leaderboards/grove/{what}/{view}"))
    path = f"/snapshots/{freeze(client_of('researcher'), what=what, query=view).code}/"
    assert told(visitor.get(path)) == board
    assert "Same as today." in visitor.get(path).content.decode()
    for view in ("beside", "moved"):
        gone = visitor.get(f"{path}?view={view}")
        assert (gone.status_code, f"{path}changes/now/" in gone.content.decode()) == (410, True)
    brought("judgments", judgments("dull", noise=0.1, seed=5, repeats=1, settings={"criteria": False}))
    Label.objects.filter(pk__in=Label.objects.order_by("pk").values("pk")[:20]).update(choice="tie")
    changed = visitor.get(path).content.decode()
    assert told(visitor.get(path)) == board
    if what != "models":  # that board is of the judge alone
        assert "numbers that differ" in changed
        assert re.search(r"Today <a[^>]+>\d+ numbers?</a> differ|Same as today", changed)
        assert "Rows that changed" in visitor.get(f"{path}changes/now/").content.decode()


def told(answer):
    """The figures of the first table of a page, without what merely leads elsewhere or is tested anew."""
    (table,) = re.findall(r"<tbody>(.*?)</tbody>", answer.content.decode(), re.DOTALL)[:1]
    table = re.sub(r'<td class="maystand.*?</td>', "", table, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", table).split())


def test_only_who_signs_in_freezes_and_never_a_name_or_an_oracle(voted, client_of):
    assert client_of("anonymous").post("/leaderboards/grove/models/freeze/").status_code == 302
    assert not Snapshot.objects.exists()
    shot = freeze(client_of("curator"), what="agreement")
    told = json.dumps(shot.tables)
    assert "Ada" not in told
    assert "annotator-" in told
    refused = client_of("curator").post("/leaderboards/grove/models/freeze/?level=Nowhere")
    assert refused.status_code == 400
    assert client_of("curator").get("/leaderboards/grove/models/freeze/").status_code == 405
    Benchmark.objects.update(visibility="private")
    assert client_of("researcher").get(f"/snapshots/{shot.code}/").status_code == 404


def test_rows_leave_as_csv_json_and_parquet(voted, client_of):
    shot = freeze(client_of("researcher"), what="judges")
    files = {s: client_of("anonymous").get(f"/snapshots/{shot.code}/rows.{s}") for s in ("csv", "json", "parquet")}
    assert files["json"].json()["rows"] == shot.tables["rows"]
    table = pq.read_table(io.BytesIO(files["parquet"].content)).to_pylist()
    assert [row["value"] for row in table] == [row["value"] for row in shot.tables["rows"]]
    lines = files["csv"].content.decode().splitlines()
    assert len(lines) == len(table) + 1
    assert lines[0].startswith("judge,run,")  # in the order of the board, whatever the database makes of objects
    assert client_of("anonymous").get(f"/snapshots/{shot.code}/rows.xlsx").status_code == 404
    live = client_of("anonymous").get("/leaderboards/grove/judges/rows.parquet")
    assert pq.read_table(io.BytesIO(live.content)).num_rows == len(table)


def test_without_pyarrow_no_page_offers_parquet_and_its_address_says_what_is_missing(voted, client_of, no_pyarrow):
    shot, client = freeze(client_of("researcher")), client_of("anonymous")
    for page in (f"/snapshots/{shot.code}/", "/leaderboards/grove/models/"):
        shown = client.get(page).content.decode().lower()
        assert "csv" in shown
        assert "parquet" not in shown
    for file in (f"/snapshots/{shot.code}/rows.parquet", "/leaderboards/grove/judges/rows.parquet"):
        refused = client.get(file)
        assert (refused.status_code, refused.content.decode()) == (501, NEEDED)


def test_what_changed_between_two_is_told_with_its_cause(voted, brought, client_of):
    first = freeze(client_of("researcher"))
    more = [row | {"annotator": "Dora", "choice": "second"} for row in list(labels(seed=4))[:60]]
    unique = {(row["sample"], *row["responses"]): row for row in more}
    brought("labels", unique.values())
    second = freeze(client_of("researcher"))
    assert first.pk != second.pk
    page = client_of("anonymous").get(f"/snapshots/{first.code}/changes/{second.code}/").content.decode()
    assert "Alder" in page
    n = Label.objects.count()
    day = Label.objects.latest("changed_at").changed_at
    link = r'<a href="/leaderboards/grove@1/votes/[^"]*">'
    cause = rf">{day.day} {day:%b %Y}</time>\s+</span>\s+{link}Labels: {n - len(unique)}, then {n}\.</a>"
    assert re.search(cause, page)
    old, new = ({row["model"]: row["bt"] for row in one.tables["rows"]} for one in (first, second))
    assert f"{new['Alder'] - old['Alder']:+.2f}".replace("-", "−") in page
    history = client_of("anonymous").get("/leaderboards/grove/snapshots/?entry=Alder").content.decode()
    assert f"{old['Alder']:.3f}" in history
    assert f"{new['Alder']:.3f}" in history


def test_what_only_the_newer_of_two_counted_is_no_cause(voted, client_of):
    old = freeze(client_of("researcher"))
    old.made_from["counted"].pop("labels")
    Snapshot.objects.filter(pk=old.pk).update(made_from=old.made_from)
    page = client_of("anonymous").get(f"/snapshots/{old.code}/").content.decode()
    assert "Nothing: the same runs, data, prompts and method." in page
    assert "Labels:" not in page


def test_a_run_that_takes_the_place_of_another_is_a_cause_with_its_day_and_its_verdicts(voted, brought, client_of):
    first = freeze(client_of("researcher"), "judges")
    old = Run.objects.get(judge__name="keen").pk
    settings = {"order": "both", "temperature": 1.0}
    brought("judgments", [row | {"settings": settings} for row in judgments("keen", noise=1, seed=9)])
    new = Run.objects.filter(judge__name="keen").latest("pk")
    Run.objects.get(pk=old).delete()
    day = new.finished_at or new.created_at
    link = (
        rf'<a href="/leaderboards/grove@1/compare/\?[^"]*b=run-{new.pk}">Run {new.pk} of keen replaces run {old}\.</a>'
    )
    dated = rf'datetime="{day:%Y-%m-%d}[^"]*">{day.day} {day:%b %Y}</time>\s+</span>\s+{link}'
    assert re.search(dated, client_of("curator").get(f"/snapshots/{first.code}/").content.decode())
    below = client_of("anonymous").get(f"/snapshots/{first.code}/").content.decode()
    assert re.search(link, below)
    assert not re.search(dated, below)  # when a run with criteria was done is not for everybody


def test_the_command_gives_the_same_numbers_from_the_exported_rows(voted, manage, tmp_path, board):
    """Export everything, import it under another name, and compute again (to 1e-9, whatever the ids)."""
    expected = {what: board(what, *more) for what, *more in (("models",), ("judges",), ("bias",))}
    for table in ("samples", "responses", "labels", "judgments"):
        path = tmp_path / f"{table}.jsonl"
        secret = ["--with-criteria", "--reason", "again"] if table == "samples" else []
        names = ["--names"] if table == "labels" else []
        call_command(
            "export", table, "--benchmark", "grove", "--format", "jsonl", "--output", str(path), *names, *secret
        )
        if table == "samples":  # the pictures stay where they are
            rows = [json.loads(line) | {"images": []} for line in path.read_text().splitlines()]
            path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        what = "benchmark" if table == "samples" else table
        campaign = ["--campaign", "again"] if table == "labels" else []
        told = manage(f"import_{what}", "generic", path, "--benchmark", "again", *campaign)
        assert told[0] == 0, told
    for what, rows in expected.items():
        again = board(what, benchmark="again")
        assert len(again) == len(rows)
        order = lambda row: json.dumps([row.get(k) for k in KEYS])  # noqa: E731
        for one, other in zip(sorted(rows, key=order), sorted(again, key=order), strict=True):
            assert _numbers(one) == pytest.approx(_numbers(other), abs=1e-9, nan_ok=True), (one, other)


KEYS = ("model", "judge", "reference", "metric", "bias", "value", "rank")


def _numbers(row):
    found = {}
    for name, value in row.items():
        if isinstance(value, int | float) and not isinstance(value, bool) and name != "run":
            found[name] = value
        elif isinstance(value, dict) and name in ("levels", "categories"):
            found |= {
                f"{name} {level} {key}": n for level, each in value.items() for key, n in each.items() if n is not None
            }
    return found
