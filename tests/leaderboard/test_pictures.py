"""Pictures to share: what agreement and ratings cost, and where no prices are known the numbers with intervals."""

import io
import re

import pytest
from PIL import Image

from bank import exposure
from bank.models import EvaluatedModel
from judging.models import Judge, Judgment, Run
from leaderboard.rows import Number
from leaderboard.show.plots import Point, best_for_price
from tests.leaderboard.conftest import judgments
from tests.leaderboard.test_graded_boards import scores
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


def shown(client, page):
    """What stands for a page elsewhere."""
    html = flat(client.get(f"{BASE}/{page}"))
    found = re.findall(r'<meta ([^>]*)property="og:([\w:]+)" content="([^"]*)"', html)
    return {name: content.removeprefix("http://testserver") for _, name, content in found}


def test_a_board_elsewhere_shows_as_its_own_picture_and_as_the_sites_where_it_has_none(priced, client):
    judges, models, agreement = (shown(client, board)["image"] for board in ("judges/", "models/", "agreement/"))
    assert judges == f"{BASE}/pictures/judges-price.png"
    assert models == f"{BASE}/pictures/models.png", "no model has a price"
    assert "social" in agreement
    assert client.get(judges).headers["Content-Type"] == "image/png"
    assert f'href="{judges}" download="picture.png"' in flat(client.get(f"{BASE}/judges/"))
    assert shown(client, "")["image"] == judges, "a benchmark's first page"
    assert shown(client, "")["image:alt"].startswith("What agreement with people costs. Judges on")


def test_each_board_has_a_title_and_words_of_its_own_elsewhere(voted, client):
    pages = ("models/", "models/matrix/", "models/together/", "judges/", "bias/", "correlation/",
             "agreement/")  # fmt: skip
    told = {page: shown(client, page) for page in pages}
    assert all("grove" in each["title"] for each in told.values())
    for part in ("title", "description"):
        assert len({each[part] for each in told.values()}) == len(pages), part
    assert "Agreement with people on" in told["judges/"]["description"]
    assert "Agreement with people on" in told["judges/"]["image:alt"]


@pytest.mark.parametrize("what", ["judges", "models", "bias"])
def test_a_board_without_prices_has_a_picture(voted, client, what):
    assert client.get(f"{BASE}/pictures/{what}-price.png").status_code == 404
    assert shown(client, f"{what}/")["image"] == f"{BASE}/pictures/{what}.png"
    answer = client.get(f"{BASE}/pictures/{what}.png")
    picture = Image.open(io.BytesIO(answer.content))
    assert picture.size == (1200, 630)
    assert sum(picture.convert("L").histogram()[:100]) > 2000, "not blank"
    svg = client.get(f"{BASE}/pictures/{what}.svg").text
    names = {
        "judges": ("keen", "dull", "one more person"),
        "models": ("Alder", "Birch"),
        "bias": ("keen", "What sways"),
    }
    for said in (*names[what], "testserver", "grove · "):
        assert said in svg
    assert "with 95% intervals" in svg
    assert client.get(f"{BASE}/pictures/{what}.gif").status_code == 404


def test_scores_are_a_picture_too_and_nothing_counted_is_none(grove, brought, client):
    for what in ("judges", "models", "bias"):
        assert client.get(f"{BASE}/pictures/{what}.png").status_code == 404, what
    brought("judgments", scores(0.5, 1, judge="marker"))
    svg = client.get(f"{BASE}/pictures/models.svg?kind=score").text
    assert "Mean score on" in svg
    assert "by marker" in svg
    assert "Alder" in svg
    assert client.get(f"{BASE}/pictures/models.png?kind=score").status_code == 200


def test_a_name_in_letters_without_a_font_is_named_in_the_title_of_picture_and_page(priced, client):
    Judge.objects.filter(name="keen").update(name="文心一言")
    assert "文心一言" in client.get(f"{BASE}/pictures/judges-price.svg").text
    png = Image.open(io.BytesIO(client.get(f"{BASE}/pictures/judges-price.png").content))
    assert "Left out, for want of a font: 文心一言." in png.text["Title"]
    assert "Left out, for want of a font: 文心一言." in shown(client, "judges/")["image:alt"]
