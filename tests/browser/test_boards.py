"""The boards in a real browser: whole on a screen and on a phone, sorted and filtered by hand."""

import re

import pytest
from PIL import Image
from playwright.sync_api import expect

from bank.models import EvaluatedModel, Item
from judging.models import Run
from tests.browser.conftest import looked_at
from tests.hidden import show
from tests.leaderboard.conftest import brought, folder, grove, judgments, manage, voted
from tests.leaderboard.test_languages import ASKED, asked

__all__ = ["asked", "brought", "folder", "grove", "manage", "voted"]

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def paths(brought, voted):
    """Every page of the boards, with a baseline among the judges."""
    brought("judgments", judgments("baseline-longest", noise=4.0, seed=8))
    run = Run.objects.get(judge__name="keen").pk
    base = "/leaderboards/grove"
    return [
        "/",
        "/leaderboards/",
        f"{base}/models/",
        f"{base}/models/?source=keen&anchor=Cedar&sort=-level:Perception",
        f"{base}/models/?level=Nowhere",
        f"{base}/models/matrix/?source=keen",
        f"{base}/models/together/",
        f"{base}/bias/",
        f"{base}/correlation/",
        f"{base}/judges/",
        f"{base}/agreement/",
        f"{base}/agreement/?metric=kappa&who=majority",
        f"{base}/votes/?model=Alder",
        f"{base}/votes/",
        f"{base}/compare/?a=majority&b=run-{run}",
        f"{base}/items/{Item.objects.order_by('pk').first().pk}/?model=Alder",
    ]


def test_every_board_is_whole_and_clean(paths, live_server, page, faults):
    said = faults(page)
    wrong = {
        path: looked_at(page, live_server.url + path, said, status=400 if "Nowhere" in path else 200) for path in paths
    }
    assert not any(wrong.values()), "\n".join(f"{path}: {found}" for path, found in wrong.items() if found)


def test_boards_without_a_verdict_are_whole_for_staff_who_are_told_what_to_do(
    grove, people, live_server, page, sign_in, faults
):
    sign_in(page.context, people["curator"])
    said = faults(page)
    boards = ("models", "judges", "agreement", "bias", "correlation", "votes")
    wrong = {name: looked_at(page, f"{live_server.url}/leaderboards/grove/{name}/", said) for name in boards}
    assert not any(wrong.values()), wrong
    page.goto(f"{live_server.url}/leaderboards/grove/models/")
    assert page.get_by_role("link", name="Import a file").is_visible()


def test_a_plot_leaves_as_png_at_twice_its_size(voted, live_server, page, faults):
    said = faults(page)
    page.goto(f"{live_server.url}/leaderboards/grove/models/matrix/?source=keen")
    with page.expect_download() as waiting:
        page.get_by_role("link", name="PNG").click()
    assert waiting.value.suggested_filename == "grove-matrix.png"
    with Image.open(waiting.value.path()) as picture:
        assert picture.format == "PNG"
        drawn = page.request.get(live_server.url + page.get_by_role("link", name="PNG").get_attribute("href")).text()
        assert f'width="{picture.width // 2}" height="{picture.height // 2}"' in drawn
        assert len(picture.convert("RGB").getcolors(1 << 24)) > 9  # drawn, not blank
    assert not said


def test_two_languages_beside_each_other_are_whole_and_clean(asked, live_server, page, faults):
    asked("atlas", {"en": (ASKED, "map-en-{}".format), "zh": (ASKED, "map-zh-{}".format)})
    show("public")  # else this is staff's
    assert looked_at(page, f"{live_server.url}/leaderboards/atlas/correlation/", faults(page)) == []
    assert page.get_by_role("heading", name="English and Chinese").is_visible()


def names(page):
    return page.locator("table.lb tbody th[scope=row] a").all_inner_texts()


def test_a_click_on_a_head_sorts_and_another_turns_it_round(voted, live_server, page):
    page.goto(f"{live_server.url}/leaderboards/grove/models/?source=keen")
    page.get_by_role("link", name="Model", exact=True).click()
    page.wait_for_url("**sort=model**")
    assert names(page) == ["Alder", "Birch", "Cedar", "Dogwood"]
    page.get_by_role("link", name="Model", exact=True).click()
    page.wait_for_url("**sort=-model**")
    assert names(page) == ["Cedar", "Birch", "Alder", "Dogwood"]  # provisional: last either way
    assert page.locator("th[aria-sort=descending]").inner_text().startswith("Model")


def test_a_filter_goes_into_the_address_and_clear_takes_it_out(voted, live_server, page):
    page.goto(f"{live_server.url}/leaderboards/grove/models/")
    page.get_by_label("Judged by").select_option("keen")
    page.wait_for_url("**source=keen**")
    assert "level=" not in page.url  # what is not set leaves no trace
    page.get_by_label("Capability").select_option("Creation")
    page.wait_for_url("**level=Creation**")
    assert "source=keen" in page.url
    assert "Poetry" in page.locator("table.lb thead").inner_text()
    page.get_by_role("link", name="Clear").click()
    page.wait_for_url("**/models/")


def test_a_number_opens_its_rows_and_a_row_its_item(voted, live_server, page):
    page.goto(f"{live_server.url}/leaderboards/grove/models/?source=keen")
    row = page.locator("table.lb tbody tr", has_text="Alder")
    row.locator("td.n a").first.click()
    page.wait_for_url("**outcome=win**")
    assert page.get_by_role("link", name="Won", exact=False).get_attribute("aria-current") == "true"
    page.locator("table.pairlist tbody th[scope=row] a").first.click()
    page.wait_for_url("**/items/**")
    assert page.locator(".panes article").count() == 2
    page.get_by_role("link", name="Next").click()
    assert page.get_by_text("2 of").is_visible()


def test_the_boards_work_without_javascript(voted, live_server, browser):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{live_server.url}/leaderboards/grove/models/")
    page.get_by_label("Judged by").select_option("keen")
    page.get_by_role("button", name="Show").click()
    assert "source=keen" in page.url
    page.get_by_role("link", name="Rating", exact=True).click()
    page.wait_for_url("**sort=-bt**")
    assert "source=keen" in page.url
    assert names(page)[0] == "Alder"
    context.close()


def test_head_and_first_column_stay_in_sight(voted, live_server, browser):
    context = browser.new_context(viewport={"width": 375, "height": 500})
    page = context.new_page()
    page.goto(f"{live_server.url}/leaderboards/grove/models/?source=keen")
    wrap = page.locator(".tablewrap").first
    assert wrap.evaluate("element => element.scrollWidth <= element.clientWidth"), "a phone shows rows in lines"
    page.goto(f"{live_server.url}/leaderboards/grove/agreement/")
    wrap = page.locator(".tablewrap:has(.matrix)").first
    wrap.evaluate("element => { element.scrollLeft = 40; }")
    assert wrap.evaluate("element => element.scrollLeft") == 40
    box = wrap.bounding_box()
    name = wrap.locator("tbody th.stick").nth(1).bounding_box()
    assert name["x"] == pytest.approx(box["x"], abs=2)
    page.goto(f"{live_server.url}/leaderboards/grove/models/?source=keen")
    page.set_viewport_size({"width": 1440, "height": 300})
    page.evaluate("scrollTo(0, document.querySelector('.lb tbody').getBoundingClientRect().top + scrollY + 20)")
    head = page.locator(".lb thead th").first.bounding_box()
    assert head["y"] == pytest.approx(0, abs=1), "the head sticks to the window"
    context.close()


def test_a_phone_shows_one_bias_at_a_time_and_a_screen_all_with_their_figures_over_their_lines(
    brought, voted, live_server, browser
):
    long_ones = [{"sample": f"s{n:02}", "model": "Elm", "text": "word " * (9 + n)} for n in range(24)]
    long_ones += [{"sample": f"s{n:02}", "model": "Fir", "text": "word " * 50} for n in range(24)]
    brought("responses", long_ones)
    pair = {"kind": "pair", "protocol": "pair", "judge": "wordy", "settings": {"order": "fixed"}}
    likes = [
        pair | {"sample": f"s{n:02}", "responses": ["Elm", "Fir"], "choice": "first" if n % 3 else "second"}
        for n in range(24)
    ]
    brought("judgments", likes)
    context = browser.new_context(viewport={"width": 375, "height": 800})
    page = context.new_page()
    page.goto(f"{live_server.url}/leaderboards/grove/bias/")
    position, length = (page.locator(f"tbody .of-{bias}.figure").first for bias in ("position", "length"))
    assert (position.is_visible(), length.is_visible()) == (True, False)
    page.get_by_text("Longer", exact=True).first.click()
    assert (position.is_visible(), length.is_visible()) == (False, True)
    page.set_viewport_size({"width": 1440, "height": 900})
    assert (position.is_visible(), length.is_visible()) == (True, True)
    assert not page.get_by_role("radio").first.is_visible()
    tops = {page.locator("tr.over th").nth(at).bounding_box()["height"] for at in (0, 1)}
    assert len(tops) == 1, "heads are as high as each other"
    head, row = (page.locator(f"{part} .plotted.of-length svg").first.bounding_box() for part in ("thead", "tbody"))
    assert head["x"] == pytest.approx(row["x"], abs=0.5)
    context.close()


def test_long_names_stay_in_their_cells(voted, live_server, page):
    EvaluatedModel.objects.filter(name="Alder").update(name="Chronos Hermes 2 Instruct (13B)")
    EvaluatedModel.objects.filter(name="Birch").update(name="a-name-without-a-place-to-break-it-at-all-70b")
    beyond = """cells => cells.flatMap(cell => [...cell.querySelectorAll("a, .name")].filter(name =>
        name.getBoundingClientRect().right > cell.getBoundingClientRect().right + 1).map(name => name.innerText))"""
    for path in ("", "models/", "models/matrix/", "judges/"):
        page.goto(f"{live_server.url}/leaderboards/grove/{path}")
        cells = page.locator("tbody th[scope=row]")
        for width in (375, 1440):
            page.set_viewport_size({"width": width, "height": 800})
            assert cells.count()
            assert cells.evaluate_all(beyond) == [], (width, path)


def test_a_dot_says_what_it_stands_for(voted, live_server, page, faults):
    said = faults(page)
    page.goto(f"{live_server.url}/leaderboards/grove/models/?source=keen")
    dot, tip = page.locator("tr[data-key=Alder] svg.iv"), page.locator(".tip")
    dot.hover()
    expect(tip).to_be_visible()
    expect(tip).to_contain_text("95%")
    page.keyboard.press("Escape")
    expect(tip).to_be_hidden()
    page.locator("tr[data-key=Alder] .ivcell a").click()
    expect(page).to_have_url(re.compile(r"/votes/\?.*model=Alder"))
    assert not said


def test_rows_are_filtered_by_name_and_told_apart_from_the_one_that_is_pointed_at(voted, live_server, page, faults):
    for number in range(12):
        EvaluatedModel.objects.create(name=f"Beside {number}")
    said = faults(page)
    page.goto(f"{live_server.url}/leaderboards/grove/models/?source=keen")
    page.get_by_text("Significant differences").click()
    page.locator("tr[data-key=Alder] td.rank").hover()
    expect(page.locator("tr[data-key=Alder]")).to_have_class(re.compile("pointed"))
    expect(page.locator("tr[data-key=Cedar] .against")).to_have_text("worse")
    page.locator("tr[data-key=Cedar] td.rank").hover()
    expect(page.locator("tr[data-key=Alder] .against")).to_have_text("better")
    page.get_by_text("Significant differences").click()
    expect(page.locator(".against")).to_have_count(0)
    page.locator(".chooser summary").click()
    page.get_by_role("checkbox", name="Elo").check()
    page.get_by_role("button", name="Show these").click()
    expect(page.locator(".lb thead")).to_contain_text("Elo")
    assert "show=" in page.url
    assert not said


def test_pickers_beyond_four_are_folded_and_what_is_in_use_is_not(voted, live_server, page, faults):
    said = faults(page)
    page.goto(f"{live_server.url}/leaderboards/grove/models/?source=keen")
    in_sight = page.locator(".filters > .sel")
    assert in_sight.count() <= 4
    page.get_by_text(re.compile(r"^More, \d+$")).click()
    page.locator('.morefilters select[name="control"]').select_option("length")
    expect(page).to_have_url(re.compile("control=length"))
    expect(page.locator('.filters > .sel.on select[name="control"]')).to_be_visible()
    assert not said


def test_how_to_read_a_board_and_what_made_it_is_one_fold(voted, live_server, page):
    page.goto(f"{live_server.url}/leaderboards/grove/models/?source=keen")
    words, fingerprint = page.get_by_text("Rank is a range"), page.get_by_text("Fingerprint", exact=True)
    expect(words).to_be_hidden()
    page.get_by_text("How to read it").click()
    expect(words).to_be_visible()
    expect(fingerprint).to_be_visible()


def test_two_are_chosen_and_compared_and_a_frozen_view_is_whole(voted, people, live_server, page, sign_in, faults):
    sign_in(page.context, people["researcher"])
    said = faults(page)
    start = f"{live_server.url}/leaderboards/grove/models/compare/?source=keen"
    assert not looked_at(page, start, said)
    page.goto(start)
    page.get_by_label("One").select_option("Alder")
    page.get_by_label("Other").select_option("Birch")
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Alder against Birch")
    expect(page.get_by_text("not won: it tied or lost")).to_be_visible()
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"{live_server.url}/leaderboards/grove/models/?source=keen")
    page.get_by_role("button", name="Cite this view").click()
    expect(page.get_by_text("These numbers do not change.")).to_be_visible()
    assert not looked_at(page, page.url, said)


OFF_THEIR_LINES = """() => [...document.querySelectorAll("table")].flatMap(table =>
  [...table.querySelectorAll("thead tr:last-child th")].flatMap((head, at) => {
    const ticks = head.querySelector("svg.iv"), cell = table.querySelector("tbody svg.iv")?.closest("tr").children[at];
    const lines = cell?.querySelector("svg.iv"), left = svg => Math.round(svg.getBoundingClientRect().left);
    return ticks && lines && left(ticks) !== left(lines) ? [head.innerText] : [];
  }))"""


def test_the_ticks_of_every_head_stand_over_the_lines_of_its_rows_at_every_width(paths, live_server, page):
    for path in [path for path in paths if "Nowhere" not in path]:
        page.goto(live_server.url + path)
        for width in (1024, 1440, 1920):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate(OFF_THEIR_LINES) == [], (path, width)
