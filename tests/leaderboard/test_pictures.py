"""Pictures to share: what agreement with people costs, and what a rating costs."""

import io
import re

import pytest
from PIL import Image

from bank import exposure
from bank.models import EvaluatedModel
from judging.models import Judge, Judgment, Run
from leaderboard.pages.plots import Point, best_for_price
from leaderboard.rows import Number
from tests.leaderboard.conftest import judgments
from tests.markup import flat

BASE = "/leaderboards/grove"


@pytest.fixture
def priced(voted, brought):
    brought("judgments", judgments("third", noise=1.5, seed=9))
    Run.objects.update(held=exposure.NOTHING)
    for name, cost in (("keen", 0.004), ("dull", 0.0002), ("third", 0.03)):
        Judgment.objects.filter(run__judge__name=name).update(cost=cost)


def test_what_agreement_costs_is_a_picture_on_home_and_two_files(priced, client):
    home = flat(client.get("/"))
    assert "What agreement with people costs" in home
    assert "one more person" in re.search(r'<svg[^>]*class="picture".*?</svg>', home).group(0)
    (png,) = set(re.findall(r'og:image"[^>]*content="http://testserver([^"]+)"', home))
    picture = client.get(png)
    assert picture.headers["Content-Type"] == "image/png"
    assert Image.open(io.BytesIO(picture.content)).size == (1200, 630)
    svg = client.get(f"{BASE}/pictures/judges-price.svg").text
    for said in ("keen", "dull", "third", "$4.00 for 1,000 verdicts"):
        assert said in svg
    assert "<a " not in svg, "a file has nothing to click on"


def test_a_price_that_is_not_for_everybody_is_in_nobodys_picture(priced, client, client_of):
    Run.objects.filter(judge__name="keen").update(held=exposure.UNKNOWN)
    assert client.get(f"{BASE}/pictures/judges-price.png").status_code == 404, "two are no picture"
    assert client_of("curator").get(f"{BASE}/pictures/judges-price.png").status_code == 200


def test_ratings_stand_against_prices_of_models_where_three_have_one(voted, client):
    path = f"{BASE}/pictures/models-price.svg?source=keen"
    assert client.get(path).status_code == 404
    for name, price in (("Alder", 10), ("Birch", 1), ("Cedar", 0.1)):
        EvaluatedModel.objects.filter(name=name).update(price_out=price)
    assert "$10.00 for a million tokens" in client.get(path).text
    assert client.get(f"{BASE}/pictures/nothing.svg").status_code == 404


def test_a_judges_name_is_text_in_the_picture(priced, client):
    Judge.objects.filter(name="keen").update(name="<script>alert(1)</script>")
    assert "<script" not in client.get(f"{BASE}/pictures/judges-price.svg").text


def test_best_for_its_price_is_what_no_cheaper_one_reaches():
    points = [Point(name, price, Number(value), "") for name, price, value in
              (("a", 1, 0.6), ("b", 2, 0.5), ("c", 3, 0.7), ("d", 3, 0.65))]  # fmt: skip
    assert [point.name for point in best_for_price(points)] == ["a", "c"]


def test_a_board_elsewhere_shows_as_its_own_picture_and_as_the_sites_where_it_has_none(priced, client):
    shown = r'og:image"[^>]*content="http://testserver([^"]+)"'
    judges, models = (re.search(shown, flat(client.get(f"{BASE}/{board}/"))).group(1) for board in ("judges", "models"))
    assert judges == f"{BASE}/pictures/judges-price.png"
    assert models.endswith(".png")
    assert "pictures" not in models, "no model has a price"
    assert client.get(judges).headers["Content-Type"] == "image/png"
    assert f'href="{judges}" download="picture.png"' in flat(client.get(f"{BASE}/judges/"))
