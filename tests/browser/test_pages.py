"""Every page of the site in a real browser: no overflow, nothing in the console, nothing that axe finds."""

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from bank.models import Item
from tests.access.test_routes import TABLE
from tests.access.world import PUBLIC, routes
from tests.browser.conftest import looked_at

pytestmark = pytest.mark.django_db(transaction=True)
# Not pages: files, fragments' own addresses, answers to scripts, and what only takes POST.
NOT_PAGES = (
    "api-schema",
    "healthz",
    "readyz",
    "favicon",
    "bank:image",
    "bank:upload-problems",
    "bank:upload-image",
    "annotations:assignment-image",
)


ROLES = ("anonymous", "annotator", "curator")  # a researcher's pages are a curator's with less on them
LEAST, MOST = 0, -1  # of those whom a page opens to, by their rights


def addresses(world, role, rights):
    """What opens to this role as to who has the least rights, or the most."""
    for name, route, _ in routes():
        having = [one for one in ROLES if one in TABLE.get(name, ())]
        if name in NOT_PAGES or route.startswith("api/v1/") or not having or having[rights] != role:
            continue
        if role == "anonymous" and route.startswith("leaderboards/<str:name>/"):
            continue  # test_boards looks at them as a stranger does
        if name == "api-docs" and role != "anonymous":
            continue  # the largest page by far, and the same for all
        yield name, reverse(name, kwargs=world.arguments(route, PUBLIC))


@pytest.mark.parametrize(
    ("role", "rights"), [*((role, LEAST) for role in ROLES), pytest.param("curator", MOST, marks=pytest.mark.soak)]
)
@pytest.mark.check("D2")
def test_every_page_is_clean_in_a_browser(role, rights, world, people, live_server, page, sign_in, faults):
    if role != "anonymous":
        sign_in(page.context, people[role])
    said = faults(page)
    wrong = {
        name: looked_at(page, live_server.url + path, said, pages_alone=True)
        for name, path in addresses(world, role, rights)
    }
    whole = {name: found for name, found in wrong.items() if found is not None}
    assert len(whole) > 5
    assert not any(whole.values()), "\n".join(f"{name}: {found}" for name, found in whole.items() if found)


def test_a_person_signs_in_by_typing_and_finds_the_way_back(people, live_server, page):
    page.goto(live_server.url + "/bank/")
    page.get_by_label("Name").fill("curator")
    page.get_by_label("Password").fill("wrong-password")
    page.get_by_role("button", name="Sign in").click()
    assert "The name or password is wrong" in page.get_by_role("alert").inner_text()
    page.get_by_label("Name").fill("curator")
    page.get_by_label("Password").fill("a-long-password")
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/bank/")
    page.get_by_role("button", name="Switch between light and dark").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_criteria_open_on_request_and_the_reading_is_logged(world, people, live_server, browser, sign_in):
    from bank.criteria import CriteriaAccess

    context = browser.new_context()
    sign_in(context, people["curator"])
    page = context.new_page()
    page.goto(f"{live_server.url}/bank/samples/{world.samples[PUBLIC].pk}/")
    assert "Counts" not in page.content()
    assert not CriteriaAccess.objects.filter(how="page").exists()
    page.get_by_role("link", name="Show").click()
    page.get_by_text("this reading was logged").wait_for()
    assert "Counts" in page.content()
    assert CriteriaAccess.objects.get(how="page").who == people["curator"]
    context.close()


def test_the_protocols_of_a_new_run_follow_its_judge_and_the_estimate_follows_them(
    world, people, live_server, page, sign_in, faults
):
    said = faults(page)
    sign_in(page.context, people["curator"])
    answer = world.samples[PUBLIC].responses.first()
    item = Item.objects.create(kind="score", sample=answer.sample, content_hash="score")
    item.responses.set([answer], through_defaults={"position": 0})
    page.goto(f"{live_server.url}/judging/runs/new/?benchmark={answer.sample.benchmark_id}")
    protocol = page.get_by_label("Protocol", exact=True)
    with page.expect_response("**/judging/runs/choices/**"):
        page.get_by_label("Judge", exact=True).select_option(label="Always the longer answer")
    expect(protocol.get_by_role("option", name="Scores")).to_have_count(0)
    page.get_by_text("Not for this judge").click()
    expect(page.get_by_text("Always the longer answer gives no such verdicts").first).to_be_visible()
    expect(protocol.get_by_role("option", name="Scores")).to_have_count(0)
    page.get_by_label("Judge", exact=True).select_option(label="A coin")
    expect(protocol.get_by_role("option", name="Scores")).to_have_count(1)
    expect(page.locator(".htmx-added, .htmx-settling, .htmx-swapping")).to_have_count(0)
    protocol.focus()
    protocol.select_option("score")
    expect(page.locator("#protocol-words")).to_contain_text("1 answer")
    expect(protocol).to_be_focused()
    with page.expect_response(lambda one: "estimate" in one.url and "pairwise-criteria" in one.request.post_data):
        page.get_by_label("Judge", exact=True).select_option(label="Always the longer answer")
    expect(protocol).to_have_value("pairwise-criteria")
    assert said == []
