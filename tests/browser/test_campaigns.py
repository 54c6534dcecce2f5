"""The form for a new campaign in a browser: size, preview, missing items."""

import pytest
from playwright.sync_api import expect

from accounts.models import User
from annotations.models import Campaign
from bank.models import Benchmark, EvaluatedModel, Response, Sample
from tests.browser.conftest import looked_at

pytestmark = [pytest.mark.django_db(transaction=True)]


@pytest.fixture
def answered(db):
    """Three samples that two models have answered, without items."""
    benchmark = Benchmark.objects.create(slug="boats", title="Boats", visibility="public")
    models = [EvaluatedModel.objects.create(name=name) for name in ("One", "Two")]
    for number in range(3):
        sample = Sample.objects.create(benchmark=benchmark, key=f"s{number}", instruction=f"Boats, number {number}?")
        for model in models:
            Response.objects.create(sample=sample, model=model, text=f"There are {number}.")
    return benchmark


def test_missing_items_are_made_in_the_form_and_one_is_shown_before_it_opens(
    page, live_server, answered, sign_in, faults
):
    said = faults(page)
    sign_in(page.context, User.objects.create_user("cora", role="curator"))
    address = f"{live_server.url}/campaigns/new/"
    assert looked_at(page, address, said) == []
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(address)
    page.get_by_role("textbox", name="Name").fill("Boats, round 1")
    page.get_by_label("Protocol").select_option("pair")
    page.get_by_role("button", name="Make 3 pairs now").click()
    expect(page.get_by_text("3 items of Boats were made.")).to_be_visible()
    expect(page.get_by_role("textbox", name="Name")).to_have_value("Boats, round 1")
    expect(page.locator("#campaign-count")).to_contain_text("Labels wanted 6")
    expect(page.locator("#campaign-count")).to_contain_text("our guess")
    page.get_by_role("button", name="Show an item").click()
    expect(page.locator("#item-preview")).to_contain_text("Boats, number 0?")
    expect(page.locator("#item-preview")).to_contain_text("First is better")
    page.locator("summary").filter(has_text="Guidelines").click()
    page.get_by_role("textbox", name="Guidelines").fill("Look at the boats.")
    page.get_by_role("button", name="Make and open").click()
    expect(page.get_by_text("Boats, round 1 is open.")).to_be_visible()
    assert Campaign.objects.get().guidelines == "Look at the boats."
    assert said == []
