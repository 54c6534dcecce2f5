"""Categories of 500 characters, on every database."""

import pytest

from annotations import ballots
from annotations.models import Campaign
from tests.leaderboard.test_nominal import CATEGORIES, judged, labelled

pytestmark = pytest.mark.django_db
LONG = {name: name.ljust(500, "x") for name in CATEGORIES}


def in_full(rows):
    for row in rows:
        yield row | {"option": LONG[row["option"]]}


def agreements(rows):
    kept = [row for row in rows if (row["metric"], row["reference"]) == ("agreement", "majority")]
    return {row["judge"]: (row["value"], row["n"]) for row in kept}


def test_categories_of_500_characters_come_in_and_judges_are_compared_by_them(brought, board, client):
    settings = {"settings": {"categories": list(LONG.values())}}
    people, judge = list(labelled()), list(judged())
    brought("labels", in_full(people))
    brought("judgments", [row | settings for row in in_full(judge)])
    assert {*ballots.of(Campaign.objects.get()).names} == {*LONG.values()}
    rows = board("judges", "--kind", "nominal")
    assert agreements(rows)["keen"][0] > 0.6
    assert client.get("/api/v1/leaderboards/judges/?benchmark=grove&kind=nominal").json() == rows
    page = client.get("/leaderboards/grove/judges/?kind=nominal").text
    assert "over the categories" in page
    brought("judgments", judged("by another name"))
    assert agreements(board("judges", "--kind", "nominal"))["by another name"][0] == 0
