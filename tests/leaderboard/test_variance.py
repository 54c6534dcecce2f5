"""What verdicts differ by, of campaigns and of judges."""

import re

import numpy as np
import pytest

from annotations.labels.agreement import components_of, label_rows
from annotations.models import Campaign, Label
from bank import guard
from judging.models import Judge
from tests.bank.conftest import folder, manage
from tests.leaderboard.conftest import judgments
from tests.leaderboard.test_graded_boards import rankings
from tests.leaderboard.test_tables import got, told
from tests.markup import flat

__all__ = ["folder", "manage"]
pytestmark = pytest.mark.django_db


def parts(rows, **of):
    (name, value), *_ = of.items()
    return {row["part"]: row for row in rows if row[name] == value}


def test_a_campaigns_page_shows_the_parts_that_command_and_api_give(voted, client_of):
    campaign, client = Campaign.objects.get(), client_of("curator")
    rows = got(client, "variance", campaign=campaign.name).json()
    assert rows == told("variance", "--campaign", campaign.name)
    found = components_of(label_rows(campaign))
    assert [(row["part"], row["share"], row["share_low"]) for row in rows] == [
        (part.name, part.share.value, part.share.interval and part.share.interval.low) for part in found.parts
    ]
    assert sum(row["share"] for row in rows) == pytest.approx(1)
    page = flat(client.get(f"/campaigns/{campaign.pk}/agreement/"))
    panel = page[page.index('id="variance"') :]
    for row in rows:
        assert f"{100 * row['share']:.1f}%" in panel
    narrower = 1 - rows[0]["twice_items"] / rows[0]["error"]
    assert f"{100 * narrower:.0f}% narrower with twice the items" in panel


def test_somebody_who_leans_to_one_side_is_a_part_of_the_variance(voted, client_of):
    client, name = client_of("curator"), Campaign.objects.get().name
    before = parts(got(client, "variance", campaign=name).json(), campaign=name)["person"]["share"]
    with guard.working():
        one = Label.objects.order_by("annotator").first().annotator
        Label.objects.filter(annotator=one).update(choice="first")
    after = parts(got(client, "variance", campaign=name).json(), campaign=name)["person"]["share"]
    assert after > before + 0.1


def test_a_judge_that_takes_the_first_place_differs_by_the_order(brought, voted, client):
    rng = np.random.default_rng(1)
    rows = [
        row | {"choice": "first" if row["order"] == row["responses"] else "second"} if rng.random() < 0.8 else row
        for row in judgments("swayed", noise=0.1, seed=3)
    ]
    brought("judgments", rows)
    found = parts(got(client, "variance").json(), judge="swayed")
    assert found["order"]["share"] > found["item"]["share"]
    assert found["order"]["count"] == 2
    judge = Judge.objects.get(name="swayed")
    said = re.search(r"Verdicts differ by.{0,80}?order (\d+)%", flat(client.get(f"/judges/{judge.pk}/")))
    assert int(said[1]) == round(100 * found["order"]["share"])


def test_campaigns_are_for_those_who_may_read_them(voted, client, client_of):
    assert not any(row["campaign"] for row in got(client, "variance").json())
    assert any(row["campaign"] for row in got(client_of("researcher"), "variance").json())


def test_rankings_stand_on_no_scale_and_their_judge_has_its_page(brought, client):
    brought("labels", rankings(0.5, 1, annotator="Ada"))
    brought("judgments", rankings(1, 2, judge="keen"))
    refused = got(client, "variance", status=400, kind="batch").json()
    assert "have a variance; none of kind batch" in refused["detail"]
    page = client.get(f"/judges/{Judge.objects.get(name='keen').pk}/")
    assert page.status_code == 200
    assert "Verdicts differ by" not in page.content.decode()
