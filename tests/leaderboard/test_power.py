"""What can be told apart: before labelling, and between neighbours of one rank."""

import json
from math import ceil

import pytest

from annotations.models import Campaign
from leaderboard.boards import seen
from leaderboard.boards.base import as_stored, whole_from_text
from leaderboard.view import scope_of
from stats.power import Plan
from tests.bank.conftest import folder, manage
from tests.leaderboard.test_tables import got, told
from tests.markup import flat

__all__ = ["folder", "manage"]
pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}


def test_a_campaigns_page_command_and_api_say_the_same_of_a_plan(voted, client_of):
    client = client_of("researcher")
    given = {"items": "200", "labels": "3", "rate": "0.4", "tie_rate": "0.1", "alike": "0.6", "difference": "0.08"}
    rows = got(client, "power", **given).json()
    assert rows == told("power", *(f"--{name.replace('_', '-')}={value}" for name, value in given.items()))
    planned, labelled, doubled = rows
    plan = Plan(items=200, labels=3, rate=0.4, ties=0.1, alike=0.6, in_group=planned["in_group"])
    assert (planned["detectable"], planned["needed"]) == (plan.detectable(), plan.items_for(0.08))
    assert (labelled["labels"], doubled["items"]) == (4, 400)
    assert doubled["detectable"] < labelled["detectable"] < planned["detectable"]
    page = flat(client.get(f"/campaigns/{Campaign.objects.get().pk}/", given))
    for row in rows:
        assert f"{100 * row['detectable']:.1f}</b> points" in page
        assert f"{row['needed']:,}</td>" in page


def test_the_page_asks_for_it_when_its_fold_is_opened(voted, client_of):
    client, address = client_of("researcher"), f"/campaigns/{Campaign.objects.get().pk}/"
    opened = flat(client.get(address))
    assert "</b> points" not in opened
    assert 'hx-get="?power=1" hx-trigger="toggle once"' in opened
    without_script, part = flat(client.get(f"{address}?power=1")), flat(client.get(f"{address}?power=1", headers=HTMX))
    assert part in without_script
    assert "hx-get" not in part
    (planned, *_) = got(client, "power").json()
    assert f"{100 * planned['detectable']:.1f}</b> points" in part


def test_without_a_plan_it_is_that_of_the_campaign_and_its_labels(voted, client_of):
    (planned, *_) = got(client_of("curator"), "power").json()
    assert planned["labels"] == Campaign.objects.get().overlap
    assert 0 < planned["alike"] < 1
    assert planned["alike"] != 0.5  # as the labels say


@pytest.mark.parametrize("given", [{"items": "many"}, {"rate": "2"}, {"rate": "0.95", "tie_rate": "0.5"}])
def test_a_plan_that_cannot_be_is_refused_in_words(given, voted, client_of):
    client = client_of("researcher")
    assert got(client, "power", 400, **given).json()["detail"]
    assert 'role="alert"' in flat(client.get(f"/campaigns/{Campaign.objects.get().pk}/", given))


def test_scores_have_no_rate_to_plan_for(voted, client_of):
    Campaign.objects.update(protocol="score")
    client = client_of("curator")
    assert got(client, "power").json() == []
    assert 'id="power"' not in client.get(f"/campaigns/{Campaign.objects.get().pk}/").content.decode()


def test_neighbours_of_one_rank_differ_by_the_contrast_of_the_boards_fit(voted, client):
    scope = scope_of(benchmark="grove", source="dull")
    board = seen.models(scope)
    tier = {row.model: row.tier for row in board.rows}
    rows = got(client, "apart", source="dull").json()
    assert rows
    for row in rows:
        contrast = seen.two_models(scope, row["a"], row["b"]).measures[-1].difference
        assert tier[row["a"]] == tier[row["b"]]
        assert (row["difference"], row["difference_se"]) == pytest.approx((contrast.value, contrast.se))
        assert (row["difference_low"], row["difference_high"]) == pytest.approx((contrast.low, contrast.high))
        assert row["detectable"] == pytest.approx(2.8016 * contrast.se, rel=1e-4)
        if row["more"] is not None:
            assert row["more"] == ceil(row["n"] * ((row["detectable"] / row["difference"]) ** 2 - 1))
        assert (row["more"] is None) == bool(row["reason"])
    told_of = [row for row in rows if row["more"] is not None]
    page = flat(client.get("/leaderboards/grove/models/?source=dull"))
    assert ('id="apart"' in page) == bool(told_of)
    assert all(f"{row['more']:,}" in page for row in told_of)


def test_an_edition_keeps_nothing_of_neighbours(voted):
    board = seen.models(scope_of(benchmark="grove", source="dull"))
    assert board.apart
    assert "apart" not in as_stored(board)
    assert whole_from_text(type(board), json.dumps(as_stored(board))).apart == ()
